"""Every block of the page on frameworks runs offline and prints the output below it."""

import re
import runpy
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from frameworks.blocks import PAGE, import_or_skip
from support import offline

# LlamaIndex reads all attributes of its own Pydantic models, including deprecated ones.
pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

BLOCKS = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", PAGE, re.MULTILINE | re.DOTALL)
PROGRAMS = {"autogen_core", "google", "haystack"}
"""Packages whose import only these blocks test, in a program; the programs in `examples/` import the others."""


@pytest.mark.parametrize(("code", "printed"), BLOCKS)
def test_block_on_the_page_of_frameworks_prints_the_output_below_it(
    code: str, printed: str, clone: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    modules = re.findall(r"^(?:from|import) ([\w.]+)", code, re.MULTILINE)
    import_or_skip(*modules)
    program = clone / "demo" / "build" / "block.py"
    program.write_text(code)
    if PROGRAMS & {module.partition(".")[0] for module in modules}:
        command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", offline.__file__, str(program)]
        subprocess.run(command, cwd=clone, timeout=120, check=True)
    else:
        with chdir(clone):
            runpy.run_path(str(program), run_name="__main__")
    assert capfd.readouterr() == (printed, "")

"""Every block of the pages on agents runs offline and prints the output below it."""

import re
import runpy
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from frameworks.blocks import import_or_skip
from support import offline

# LlamaIndex reads all attributes of its own Pydantic models, including deprecated ones.
pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = "".join((DOCS / "how-to" / name).read_text() for name in ("agents.md", "agent-frameworks.md"))
BLOCKS = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", PAGES, re.MULTILINE | re.DOTALL)
PROGRAMS = {"autogen_core", "google", "haystack"}
"""Packages whose import only these blocks test, in a program; the programs in `examples/` import the others."""


@pytest.mark.parametrize(("code", "printed"), BLOCKS)
def test_block_on_the_agents_pages_prints_the_output_below_it(
    code: str, printed: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    modules = re.findall(r"^(?:from|import) ([\w.]+)", code, re.MULTILINE)
    import_or_skip(*modules)
    shutil.copytree(DOCS / "demo", tmp_path / "docs" / "demo")
    (tmp_path / "block.py").write_text(code)
    if PROGRAMS & {module.partition(".")[0] for module in modules}:
        command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", offline.__file__, "block.py"]
        subprocess.run(command, cwd=tmp_path, timeout=120, check=True)
    else:
        with chdir(tmp_path):
            runpy.run_path("block.py", run_name="__main__")
    assert capfd.readouterr() == (printed, "")

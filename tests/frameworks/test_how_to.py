"""Every block of the pages on agents runs offline and prints the output below it."""

import os
import re
import shutil
from pathlib import Path

import pytest

from support import forks, offline

pytestmark = [pytest.mark.extra, pytest.mark.slow]

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = "".join((DOCS / "how-to" / name).read_text() for name in ("agents.md", "agent-frameworks.md"))
BLOCKS = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", PAGES, re.MULTILINE | re.DOTALL)


@pytest.mark.posix
@pytest.mark.parametrize(("code", "printed"), BLOCKS)
def test_block_on_the_agents_pages_prints_the_output_below_it(code: str, printed: str, tmp_path: Path) -> None:
    for module in re.findall(r"^(?:from|import) ([\w.]+)", code, re.MULTILINE):
        pytest.importorskip(module, exc_type=ImportError)
    shutil.copytree(DOCS / "demo", tmp_path / "docs" / "demo")
    (tmp_path / "block.py").write_text(code)
    # LlamaIndex reads all attributes of its own Pydantic models, including deprecated ones.
    allowed = "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"
    program = allowed + Path(offline.__file__).read_text("utf-8")
    done = forks.run([offline.__file__, "block.py"], program, cwd=tmp_path, env=os.environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == printed

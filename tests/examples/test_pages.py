"""The page about data frames is run here, because its code needs what the other pages do not."""

import re
from pathlib import Path

import pytest

from test_docs import BLOCK, ROOT, run

BLOCKS = list(BLOCK.finditer((ROOT / "docs/how-to/data-frames.md").read_text()))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block["output"].partition("\n")[0])
def test_a_block_prints_what_stands_below_it(block: "re.Match[str]", tmp_path: Path) -> None:
    run(block, tmp_path)

"""`progress_rich.py` counts matches, and draws its bar on stderr alone."""

from pathlib import Path

import pytest

from support.runs import run

pytestmark = pytest.mark.slow


def test_progress_rich_prints_the_matches_of_each_file(clone: Path) -> None:
    code, out, _ = run("progress_rich.py", "TODO", clone / "demo")
    assert (code, out) == (0, "     1 README.txt\n     1 shop/cart.py\n     1 shop/till.py\n")


def test_progress_rich_exits_with_1_if_nothing_matches(clone: Path) -> None:
    assert run("progress_rich.py", "nowhere", clone / "demo")[:2] == (1, "")

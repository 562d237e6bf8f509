"""`progress_rich.py` counts matches, and draws its bar on stderr alone."""

import pytest

from support.runs import DEMO, run

pytestmark = pytest.mark.slow


def test_progress_rich_prints_the_matches_of_each_file() -> None:
    code, out, _ = run("progress_rich.py", "TODO", DEMO)
    assert (code, out) == (0, "     1 README.txt\n     1 shop/cart.py\n     1 shop/till.py\n")


def test_progress_rich_exits_with_1_if_nothing_matches() -> None:
    assert run("progress_rich.py", "nowhere", DEMO)[:2] == (1, "")

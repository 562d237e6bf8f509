"""`progress_tqdm.py` counts files, and draws its bar on stderr alone."""

from pathlib import Path

import pytest

pytest.importorskip("tqdm")

from support.runs import run

pytestmark = [pytest.mark.extra, pytest.mark.slow]


def test_progress_tqdm_prints_the_number_of_files(clone: Path) -> None:
    code, out, err = run("progress_tqdm.py", clone / "demo")
    assert (code, out) == (0, "6 files\n")
    assert "6 files" in err

"""`progress_tqdm.py` counts files, and draws its bar on stderr alone."""

import pytest

pytest.importorskip("tqdm")

from support.runs import DEMO, run

pytestmark = [pytest.mark.extra, pytest.mark.slow]


def test_progress_tqdm_prints_the_number_of_files() -> None:
    code, out, err = run("progress_tqdm.py", DEMO)
    assert (code, out) == (0, "3 files\n")
    assert "3 files" in err

"""The tests of `examples/downstream` pass, with rg and without."""

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2] / "examples" / "downstream"


@pytest.mark.slow
@pytest.mark.posix
def test_tests_of_the_downstream_project_pass(tmp_path: Path) -> None:
    # With its own --basetemp, pytest deletes no directories of other sessions, which may take a minute at the end.
    argv = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'tmp'}"]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0 and "10 passed" in done.stdout, done.stdout

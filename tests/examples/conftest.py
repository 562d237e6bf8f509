"""Shared fixtures of the examples' tests: a log of rg calls, and no downloads."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap import sync


@pytest.fixture(autouse=True)
def no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a test without rg fail instead of downloading one."""
    monkeypatch.setenv("RIPWRAP_OFFLINE", "1")


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return a function that gives the arguments of each rg run, one line each, without version queries."""
    log, wrapper = tmp_path / "log", tmp_path / "watched-rg"
    log.touch()
    wrapper.write_text(
        f"""#!/bin/sh
printf "%s " "$@" | tr "\\n" " " >> "{log}"
echo >> "{log}"
exec "{sync.resolve().path}" "$@"
"""
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("RIPWRAP_RG", str(wrapper))
    return lambda: [line for line in log.read_text().splitlines() if "--version" not in line]

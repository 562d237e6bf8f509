"""What the examples' tests share: which of them can be run here, and no network for any."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from ripwrap import sync

NEEDED = {"notebook": ("ipykernel", "nbclient", "nbformat"), "pages": ("pandas", "polars", "pyarrow")}
missing = {name: [one for one in modules if find_spec(one) is None] for name, modules in NEEDED.items()}
left_out = {name: modules for name, modules in missing.items() if modules}
collect_ignore = [f"test_{name}.py" for name in left_out]
if left_out and os.environ.get("RIPWRAP_ALL_EXAMPLES"):
    raise pytest.UsageError(f"not installed: {', '.join(one for modules in left_out.values() for one in modules)}")


def pytest_report_header() -> str:
    whys = [f"{name} (not installed: {', '.join(modules)})" for name, modules in left_out.items()]
    return f"examples LEFT OUT: {', '.join(whys) or 'none'}; agents_*.py: tested in `tests/frameworks`"


@pytest.fixture(autouse=True)
def no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that finds no rg fails, and downloads none."""
    monkeypatch.setenv("RIPWRAP_OFFLINE", "1")


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What each rg that the example starts is given, one line each, but for questions after its version."""
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

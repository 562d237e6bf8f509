"""The command line, each command in a separate process."""

import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str, cwd: Path, code: int = 0) -> str:
    """Run a command, check its exit code, and return its output and errors."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-m", "ripwrap", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=250,
        check=False,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["search", "store_cookie"], r"src\cookies.py"),
        (["search", "--json", "store_cookie"], r"src\\cookies.py"),
        (["files", "-g", "*.md"], "README.md"),
        (["tree"], "cookies.py"),
        (["rank", "store cookies"], r"src\cookies.py"),
        (["doctor"], "rg 15.2.0"),
    ],
)
def test_every_command_has_the_expected_output(arguments: list[str], found: str, shop: Path) -> None:
    assert found in run(*arguments, cwd=shop)


def test_invalid_pattern_has_an_error_line_and_exit_code_2(shop: Path) -> None:
    assert "unclosed group" in run("search", "(", cwd=shop, code=2)
    assert run("search", "nowhere_to_be_found", cwd=shop, code=1) == ""

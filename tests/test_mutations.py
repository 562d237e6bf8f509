"""Mutants of the guards in `support.guards`: without a guard, the hostile test that is named there must fail."""

import ast
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import ripwrap
from support.guards import GUARDS, Guard

PACKAGE = Path(ripwrap.__file__).parent
TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "explanation" / "guarantees.md"

SECONDS = 60
"""Time after which the test of a mutant has failed: some guards keep a call from never ending."""

LIMITED = ("sh", "-c", 'ulimit -v 8000000 2>/dev/null; exec "$@"', "sh")
"""Command that runs another one with at most 8 GB of memory: some guards keep a call from taking all of it."""


@cache
def functions(file: Path) -> set[str]:
    """Return the names of the tests in a file, as ids of pytest have them."""
    found: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}::{one.name}" for one in methods}
    return found


def test_there_are_eighty_guards() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS) >= 80
    print(f"{len(GUARDS)} guards")  # noqa: T201


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_guard_has_its_text_and_its_test(guard: Guard) -> None:
    assert (PACKAGE / guard.file).read_text().count(guard.old) == 1, "the text must be in the file exactly once"
    ast.parse(guard.mutated((PACKAGE / guard.file).read_text()))
    file, _, name = guard.test.partition("::")
    assert name.partition("[")[0] in functions(TESTS / file)


def test_page_lists_every_guard_with_its_test() -> None:
    rows = re.findall(r"^\| .+ \| `src/ripwrap/.+` \| `tests/.+` \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [guard.row for guard in GUARDS], "copy the rows of the guards to the page"


@pytest.mark.stress
@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_mutant_is_killed(guard: Guard, tmp_path: Path) -> None:
    if not os.environ.get("RIPWRAP_STRESS"):
        pytest.skip("the mutants run in `nox -s stress`")
    copy = tmp_path / "mutant" / "ripwrap"
    shutil.copytree(PACKAGE, copy)  # with the compiled files, which stay valid
    file = copy / guard.file
    file.write_text(guard.mutated(file.read_text()))
    environment = {name: value for name, value in os.environ.items() if name not in ("RIPWRAP_STRESS", "NO_COLOR")}
    environment["PYTHONPATH"] = os.pathsep.join((str(copy.parent), str(TESTS)))
    options = ("-q", "--no-header", "--color=no", "-rN", "-p", "no:cacheprovider", f"--timeout={SECONDS}")
    done = subprocess.run(
        [*LIMITED, sys.executable, "-m", "pytest", *options, f"--basetemp={tmp_path / 'base'}", guard.test],
        cwd=TESTS,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS + 240,
        check=False,
    )
    said = done.stdout[-3000:] + done.stderr[-1000:]
    assert done.returncode == 1, f"pytest ended with {done.returncode}, so the mutant survived or did not run: {said}"
    assert re.search(r"^(\d+ \w+, )*\d+ failed", said, re.MULTILINE), said
    assert not re.search(r"^E +(SyntaxError|NameError|ImportError|ModuleNotFoundError)", done.stdout, re.MULTILINE), (
        said
    )

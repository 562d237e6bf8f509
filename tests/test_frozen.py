"""Programs that PyInstaller or the like has frozen: `sys.executable` is the program itself, not Python."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ripwrap import RipwrapError, sync
from ripwrap._system.subprocess.worker import StartError, WorkerProcess

Plant = Callable[..., Path]

pytestmark = pytest.mark.posix

CELL: dict[str, Any] = {"cell_type": "code", "source": "needle = 1", "outputs": [], "metadata": {}}
NOTEBOOK = json.dumps({"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
BESIDE = {"a.ipynb": NOTEBOOK, "b.txt": "needle\n"}

APP = """\
import multiprocessing.spawn, sys
if STARTS:
    sys.frozen, sys.executable = True, PROGRAM
    with open(STARTS, "a") as starts:
        print(len(sys.argv), file=starts)
if SUPPORT:
    multiprocessing.spawn.freeze_support()  # PyInstaller makes `multiprocessing.freeze_support()` the same
from ripwrap import sync
print([match.path for match in sync.search("needle", cwd=FOLDER, inside="ipynb", sort="path")])
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a cache without the texts of documents that another test has read."""
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "cache"))


def frozen(tmp_path: Path, folder: Path, *, support: bool) -> tuple["subprocess.CompletedProcess[str]", int]:
    """Run a program that looks frozen; return how it ended, and how often it was started."""
    program, code, starts = tmp_path / "program", tmp_path / "app.py", tmp_path / "starts"
    names = {"PROGRAM": str(program), "STARTS": str(starts), "SUPPORT": support, "FOLDER": str(folder)}
    code.write_text("".join(f"{name} = {value!r}\n" for name, value in names.items()) + APP)
    # Started without end, the program stops here.
    program.write_text(
        f'#!/bin/sh\n[ "$(wc -l <{starts})" -lt 9 ] || exit 9\nexec {shlex.quote(sys.executable)} {code} "$@"\n'
    )
    program.chmod(0o755)
    starts.touch()
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=100)
    return done, len(starts.read_text().splitlines())


@pytest.mark.slow
@pytest.mark.python
def test_frozen_program_starts_itself_once_as_a_worker_process(tmp_path: Path, plant: Plant) -> None:
    """The worker process is the program, whose `freeze_support()` runs the code of the worker."""
    done, starts = frozen(tmp_path, plant(BESIDE), support=True)
    assert (done.stdout, done.stderr) == ("['b.txt', 'a.ipynb!/cell 1']\n", "")
    assert starts == 2


@pytest.mark.slow
@pytest.mark.python
def test_frozen_program_without_freeze_support_gets_one_error(tmp_path: Path, plant: Plant) -> None:
    """It started itself without end."""
    done, starts = frozen(tmp_path, plant(BESIDE), support=False)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith(
        "ripwrap.errors.RipwrapError: the process that reads documents cannot be started: it ended with exit code 1; "
        "a frozen program must call multiprocessing.freeze_support() at the beginning of its main module"
    )
    assert starts == 2


@pytest.mark.usefixtures("leaks_nothing")
def test_frozen_program_that_does_something_else_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program without `freeze_support()` may run as long as its user wants."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho Welcome to the program\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    worker = WorkerProcess("", 60, 60)
    with pytest.raises(StartError, match=r"^it did not answer; a frozen program must call"):
        worker.request([b""])


@pytest.mark.parametrize("executable", [None, ""])
def test_unknown_path_of_python_is_an_error_that_names_it(
    executable: str | None, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`None` was a raw `TypeError`."""
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(
        RipwrapError, match=r"^the process that reads documents cannot be started: sys\.executable, the"
    ):
        list(sync.search("needle", cwd=plant(BESIDE), inside="ipynb"))


@pytest.mark.extra
@pytest.mark.parametrize("executable", [None, ""])
def test_unknown_path_of_python_is_an_error_of_searches_by_syntax(
    executable: str | None, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ast_grep_py")
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(
        RipwrapError, match=r"^the process that parses code cannot be started: sys\.executable, the .*n$"
    ):
        list(sync.search_code("f($A)", lang="python", cwd=plant({"a.py": "f(1)\n"})))


def test_worker_process_starts_no_worker_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if `sys.executable` is an interpreter in another program that ignores `-c`."""
    answer = "serve_requests(lambda _: [os.environb[b'_RIPWRAP_WORKER']], 9, 9)"
    code = f"import os; from ripwrap._system.subprocess.worker import serve_requests; {answer}"
    worker = WorkerProcess(code, 60, 60)
    assert worker.request([b""]) == [b"1"]
    worker.close()
    monkeypatch.setenv("_RIPWRAP_WORKER", "1")
    with pytest.raises(StartError, match="this process is itself a worker process"):
        WorkerProcess("", 60, 60).request([b""])


SPEC = """\
a = Analysis([PROGRAM])
pyz = PYZ(a.pure)
EXE(pyz, a.scripts, a.binaries, a.datas, name="one_file")
COLLECT(EXE(pyz, a.scripts, exclude_binaries=True, name="one_dir"), a.binaries, a.datas, name="one_dir")
"""


@pytest.mark.extra
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_programs_of_pyinstaller_search_with_their_own_rg_and_a_worker_process(tmp_path: Path, plant: Plant) -> None:
    """`nox -s frozen` runs this test, which builds for a minute; the hook of the wheel adds rg."""
    if find_spec("PyInstaller") is None:
        pytest.skip("PyInstaller is not installed: run `nox -s frozen`")
    assert "hook-ripwrap.py" in os.listdir(entry_points(group="pyinstaller40")["hook-dirs"].load()()[0])
    program, folder = tmp_path / "app.py", plant(BESIDE)
    program.write_text(f"STARTS, SUPPORT, FOLDER = None, True, {str(folder)!r}\n{APP}print(sync.resolve().path)\n")
    (tmp_path / "app.spec").write_text(f"PROGRAM = {str(program)!r}\n{SPEC}")
    build = ["--log-level=WARN", "--noconfirm", f"--distpath={tmp_path / 'dist'}", f"--workpath={tmp_path / 'work'}"]
    command = [sys.executable, "-m", "PyInstaller", *build, str(tmp_path / "app.spec")]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=800)
    there, unpacked = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, tmp_path / "unpacked"
    unpacked.mkdir()
    for built in ("one_file", "one_dir/one_dir"):
        environment = {**there, "TMPDIR": str(unpacked), "RIPWRAP_CACHE_DIR": str(tmp_path / built[:7] / "cache")}
        done = subprocess.run(
            [tmp_path / "dist" / built], env=environment, capture_output=True, text=True, check=False, timeout=100
        )
        assert done.returncode == 0, done.stderr
        found, rg = done.stdout.splitlines()
        assert found == "['b.txt', 'a.ipynb!/cell 1']"
        assert rg.endswith("/bin/rg") and Path(rg).is_relative_to(
            unpacked if built == "one_file" else tmp_path / "dist"
        )
        assert list(unpacked.iterdir()) == []

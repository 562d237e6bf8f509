"""Hostile calls of all tools and resources that deny files, under strace: no denied file is opened or shown."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ALL_RGS
from support import hostile, hostile_deny, rgs, strace
from support.effort import times

_OPENED = re.compile(r'(?:open|openat|openat2|creat)\((?:AT_FDCWD<[^>]*>, |\d+<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
_REAL = re.compile(r"(?:= |resumed>.* = )\d+<(.*?)>(?:\(deleted\))?$")


def test_there_are_three_hundred_hostile_calls() -> None:
    assert len(set(hostile_deny.PATHS)) + len(set(hostile_deny.PATTERNS)) >= 200
    assert len({(name, repr(arguments)) for name, arguments in hostile_deny.calls()}) >= 300


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(600)
def test_no_denied_file_is_opened_or_shown(tmp_path: Path) -> None:
    assert answers_without_opening_a_denied_file(tmp_path, "tools", str(tmp_path / "index")) > times(75, 3_000)


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.extra
@pytest.mark.timeout(600)
def test_no_denied_file_is_opened_or_shown_as_a_resource(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    assert answers_without_opening_a_denied_file(tmp_path, "resources") > times(150, 3_000)


def answers_without_opening_a_denied_file(tmp_path: Path, what: str, *arguments: str) -> int:
    """Run the calls under strace, check what was opened, and return the number of answers."""
    try:
        command = strace.provide()
    except rgs.UnavailableError as error:
        if ALL_RGS:
            raise
        pytest.skip(f"no strace here: {error}")
    root = hostile_deny.furnish(tmp_path / "yard")
    log, scratch, cwd = tmp_path / "log", tmp_path / "scratch", tmp_path / "cwd"
    for folder in (scratch, cwd):
        folder.mkdir()
    words = (*command, "-f", "--seccomp-bpf", "-y", "-qq", "-s", "9999", "-o", str(log))
    traced = "trace=open,openat,openat2,creat,lstat,newfstatat"
    program = str(rgs.provide("15.2.0"))
    importable = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [*words, "-e", traced, sys.executable, hostile_deny.__file__, what, str(root), program, *arguments],
        cwd=cwd,
        env=os.environ
        | {"HOME": str(root), "TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": importable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    text = log.read_text(errors="surrogateescape")
    happened = text[text.index(hostile.BEGIN) : text.index(hostile.END)]
    lines = [line for line in happened.splitlines() if "O_PATH" not in line]
    real = {
        found[1].encode().decode("unicode_escape").encode("latin-1") for line in lines if (found := _REAL.search(line))
    }
    assert len({path for path in real if path.startswith(os.fsencode(root))}) > 10
    secret = {os.fsencode(root / name) for name in hostile_deny.DENIED} | {os.fsencode(root.parent / "beside" / ".env")}
    folders = {os.path.dirname(path) for path in secret if hostile_deny.INNER.encode() in path}
    assert not real & secret
    assert not {path for path in real if any(path == one or path.startswith(one + b"/") for one in folders)}
    tried = {found[2] for line in lines if (found := _OPENED.search(line))}
    assert not {name for name in tried if re.search(r"\.env|\.pem$|(^|/)id_", name, re.IGNORECASE)}
    return int(done.stdout)

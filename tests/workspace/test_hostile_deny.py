"""Hostile calls of all tools and resources that deny files, under strace: no denied file is opened or shown."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import hostile, hostile_calls, hostile_deny, rgs, strace
from support.effort import times


def test_there_are_three_hundred_hostile_calls() -> None:
    assert len(set(hostile_deny.PATHS)) + len(set(hostile_deny.PATTERNS)) >= 200
    assert len({(name, repr(arguments)) for name, arguments in hostile_deny.calls()}) >= 300


def test_every_argument_of_every_tool_gets_hostile_values() -> None:
    sent = {(tool, name) for tool, arguments in hostile_deny.calls() for name in arguments}
    assert sent == {(tool, name) for tool, properties in hostile_calls.SCHEMAS.items() for name in properties}


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(900)
def test_no_denied_file_is_opened_or_shown(tmp_path: Path) -> None:
    copy = hostile_deny.furnish(tmp_path / "copy")
    denied = [path for name in hostile_deny.DENIED if (path := copy / name).is_file()]
    before = [path.read_bytes() for path in denied]
    index = str(tmp_path / "index")
    assert answers_without_opening_a_denied_file(tmp_path, "tools", index, str(copy)) > times(65, 5_000)
    assert [path.read_bytes() for path in denied] == before


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.extra
@pytest.mark.timeout(600)
def test_no_denied_file_is_opened_or_shown_as_a_resource(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    assert answers_without_opening_a_denied_file(tmp_path, "resources") > times(150, 3_000)


def answers_without_opening_a_denied_file(tmp_path: Path, what: str, *arguments: str) -> int:
    """Run the calls under strace, check what was opened, and return the number of answers."""
    command = strace.provide()
    root = hostile_deny.furnish(tmp_path / "yard")
    log, scratch, cwd = tmp_path / "log", tmp_path / "scratch", tmp_path / "cwd"
    for folder in (scratch, cwd):
        folder.mkdir()
    words = (*command, "-f", "--seccomp-bpf", "-y", "-qq", "-s", "9999", "-o", str(log))
    program = str(rgs.provide("15.2.0"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "XDG_"))} | {
        "HOME": str(root),
        "TMPDIR": str(scratch),
        "XDG_STATE_HOME": str(scratch / "state"),
        "RIPWRAP_CACHE_DIR": str(scratch / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [*words, "-e", strace.WATCHED, sys.executable, hostile_deny.__file__, what, str(root), program, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    text = log.read_text(errors="surrogateescape")
    happened = list(strace.events(strace.between(text, hostile.BEGIN, hostile.END)))
    real = {event.opened for event in happened if event.opens}
    assert len({path for path in real if Path(path).is_relative_to(root)}) > 10
    secret = {str(top / name) for top in (root, tmp_path / "copy/root") for name in hostile_deny.DENIED}
    secret |= {str(top / "beside" / ".env") for top in (root.parent, tmp_path / "copy")}
    folders = {os.path.dirname(path) for path in secret if hostile_deny.INNER in path}
    assert not real & secret
    assert not {path for path in real if any(Path(path).is_relative_to(folder) for folder in folders)}
    tries = strace.events(strace.between(text, hostile.BEGIN, hostile.END), failed=True)
    tried = {name for event in tries if event.call.startswith("open") for name in event.names}
    # git looks for attributes in an empty directory that it has in place of the tree
    tried = {name for name in tried if not re.search(rf"^{re.escape(str(scratch))}/ripwrap-git-\w+/tree/", name)}
    assert not {name for name in tried if re.search(r"\.env|\.pem$|(^|/)id_", name, re.IGNORECASE)}
    changed = {name for event in happened if event.changes for name in event.names}
    assert not changed & secret
    return int(done.stdout)

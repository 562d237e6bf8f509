"""Hostile calls of every tool under strace: nothing outside of the roots is opened, changed, executed or shown."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from pprint import pformat

import pytest

from support import hostile, hostile_calls, rgs, strace
from support.effort import times

_RULES = re.compile(r'(\.(git|rg)?ignore|\.git/(info/exclude|commondir))"')

OWN = re.compile(
    r"/(proc/(self|thread-self|\d+)/(cgroup|mountinfo|mounts|maps|auxv|stat|status|fd)"
    r"|proc/(sys/vm/overcommit_memory|cpuinfo|meminfo|filesystems|stat)"  # the last one if /sys is not mounted
    r"|sys/(fs/cgroup|kernel/mm|devices/system/cpu)/.*|dev/(null|urandom)"
    r"|etc/(ld\.so\.\w+|localtime|locale\.alias|ssl/openssl\.cnf)"
    r"|(usr/)?lib\w*/.*|usr/share/(locale|zoneinfo|git-core)(/.*)?)"
)
"""Files that rg, git, Python, their allocators and the loader read of the system; none is a file of a user."""

LINKED = ("rules", "private/.git/info/exclude", "private/.git/commondir")
"""Ignore files outside of the roots to which something in a root refers."""

KEPT = {".git", ".jj", ".hg", ".svn", ".ripwrap"}
"""Directories below which no tool writes."""


def watched(tmp_path: Path, yard: Path, rg: str) -> tuple[list[str], list[strace.Event]]:
    """Run the hostile walk under strace, and return what leaked into answers, and what happened between its marks."""
    log, scratch, elsewhere = tmp_path / "log", tmp_path / "scratch", tmp_path / "elsewhere"
    for folder in (scratch, elsewhere):
        folder.mkdir()
    path = os.pathsep.join((str(eager_git(tmp_path / "bin").parent), os.environ["PATH"]))
    command = [*strace.provide(), "-f", "--seccomp-bpf", "-y", "-qq", "-s", "9999", "-o", str(log)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "XDG_"))} | {
        "HOME": str(yard / "home"),
        "PATH": path,
        "TMPDIR": str(scratch),
        "XDG_STATE_HOME": str(scratch / "state"),
        "RIPWRAP_CACHE_DIR": str(scratch / "cache"),
        "SEMBLE_GRAMMARS_CACHE_DIR": str(scratch / "grammars"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [*command, "-e", strace.WATCHED, sys.executable, "-W", "error", hostile.__file__, str(yard), rg],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)
    assert report["answers"] > times(100, 3_000)
    text = log.read_text(errors="surrogateescape")
    return report["leaks"], list(strace.events(strace.between(text, hostile.BEGIN, hostile.END)))


def eager_git(folder: Path) -> Path:
    """Write a program `git` that is git without `GIT_NO_LAZY_FETCH`, which many versions do not know."""
    folder.mkdir(exist_ok=True)
    program = folder / "git"
    program.write_text(f'#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    return program


def _contents(*folders: Path) -> dict[Path, bytes | str]:
    """Return the files and links below folders, with what they contain."""
    files = [path for folder in folders for path in [folder, *folder.rglob("*")] if path.is_symlink() or path.is_file()]
    return {path: os.readlink(path) if path.is_symlink() else path.read_bytes() for path in files}


def _is_below(path: str, folders: Iterable[Path | str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _real(path: str) -> str:
    """Return a path with the links of its directory resolved, but not itself."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def test_there_are_two_hundred_hostile_inputs() -> None:
    assert len(set(hostile.PATHS)) + len(set(hostile.PATTERNS)) >= 200


def test_every_argument_of_every_tool_gets_hostile_values() -> None:
    sent = {(tool, name) for tool, arguments in hostile_calls.calls(hostile.TABLE, 10**9) for name in arguments}
    assert sent >= {(tool, name) for tool, properties in hostile_calls.SCHEMAS.items() for name in properties}
    for tool, properties in hostile_calls.SCHEMAS.items():
        for name, schema in properties.items():
            least = 10 if schema["type"] in ("string", "array") and "enum" not in schema else 3
            assert len(hostile_calls.values_of(tool, name, hostile.TABLE)) >= least, (tool, name)


def test_an_argument_without_hostile_values_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hostile_calls.SCHEMAS, "tree", {"new": {"type": "string"}})
    with pytest.raises(LookupError, match="tree has an argument new without hostile values"):
        list(hostile_calls.calls(hostile.TABLE, 1))


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(600)
def test_no_file_outside_the_roots_is_opened(tmp_path: Path) -> None:
    strace.provide()
    yard = tmp_path / "yard"
    root = hostile.furnish(yard)
    copy = hostile.furnish(yard / "copy")
    kept = (yard / "outside", yard / "home", root, yard / "escapes", yard / "copy/outside", copy / ".git")
    before = _contents(*kept)
    rg, git = str(rgs.provide("15.2.0")), shutil.which("git") or ""
    leaks, happened = watched(tmp_path, yard, rg)

    opened = [event for event in happened if event.opens]
    assert len({event.opened for event in opened if Path(event.opened).is_relative_to(root)}) > 10
    own = (root, copy, *(yard / "escapes" / name for name in hostile.ESCAPES), tmp_path / "scratch")
    code = [
        *filter(None, sys.path),
        sys.prefix,
        sys.base_prefix,
        os.path.realpath(sys.executable),
        str(tmp_path / "bin"),
    ]
    read = {event.opened: event.text for event in opened if not _is_below(event.opened, (*own, *code))}
    changed = {path: event.text for event in happened if event.changes for path in map(_real, event.names)}
    started = {event.strings[0]: event.text for event in happened if event.starts}
    helper = subprocess.run([git, "--exec-path"], capture_output=True, text=True, check=True).stdout.strip() + "/git"
    problems = {
        "shown": leaks,
        "opened": {path: text for path, text in read.items() if not _may_be_read(path, text, yard)},
        "changed": {
            path: text
            for path, text in changed.items()
            if not _is_below(path, ("/dev/null", copy, tmp_path / "scratch"))
            # A worker process has no PYTHONDONTWRITEBYTECODE, because it inherits few variables.
            and not (_is_below(path, code) and "__pycache__" in Path(path).parts)
        },
        "changed below .git": {path for path in changed if KEPT & {*Path(os.path.relpath(path, yard)).parts}},
        "different": {path for path, _ in before.items() ^ _contents(*kept).items()},
        "executed": {
            path: text
            for path, text in started.items()
            if path not in (rg, git, helper, str(tmp_path / "bin/git"))
            and not (path == sys.executable and "ripwrap." in text)
        },
        "connected": [event.text for event in happened if event.call == "connect"],
    }
    assert not any(problems.values()), pformat(problems, width=300)
    assert {rg, git, str(tmp_path / "bin/git")} <= started.keys()


def _may_be_read(path: str, text: str, yard: Path) -> bool:
    """Return True for files of the system and git's configuration of the user, and for ignore files that rg opens.

    rg opens an ignore file that is a link, the file `info/exclude` of a repository that lies elsewhere, and ignore
    files above the root, although those do not apply. Their content gets into no answer: `hostile.check`.
    """
    config = (str(yard / "home/.gitconfig"), "/etc/gitconfig", str(yard / "home/.config/git/config"))
    ignore = [str(yard / top / name) for top in ("", "copy") for name in (".gitignore", ".ignore", ".rgignore")]
    linked = [str(yard / top / "outside" / name) for top in ("", "copy") for name in LINKED]
    return bool(OWN.fullmatch(path)) or path in config or (path in (*ignore, *linked) and bool(_RULES.search(text)))

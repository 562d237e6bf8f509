"""Two hundred hostile paths and patterns for every tool, under strace: nothing outside the roots is opened."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ALL_RGS
from support import hostile, rgs, strace
from support.effort import times

_BEGUN = re.compile(r'^(\d+) +(?:open|openat|openat2|creat)\((?:AT_FDCWD<[^>]*>, )?"([^"]*)".* <unfinished \.\.\.>$')
_ENDED = re.compile(r"^(\d+) +<\.\.\. (?:open|openat|openat2|creat) resumed>.* = \d+<(.*?)>(?:\(deleted\))?$")
_WHOLE = re.compile(
    r'^\d+ +(?:open|openat|openat2|creat)\((?:AT_FDCWD<[^>]*>, )?"([^"]*)".*\) = \d+<(.*?)>(?:\(deleted\))?$'
)
_RULES = re.compile(r"(.*/)?\.(git|rg)?ignore")

OWN = re.compile(
    r"/(proc/(self|thread-self|\d+)/(cgroup|mountinfo|maps|auxv)|proc/(sys/vm/overcommit_memory|cpuinfo|meminfo)"
    r"|sys/(fs/cgroup|kernel/mm|devices/system/cpu)/.*|dev/(null|urandom)|etc/(ld\.so\.\w+|localtime)|(usr/)?lib\w*/.*)"
)
"""Files that rg, its allocator, the loader and ripwrap read of the system; none is a file of a user."""


def watched(tmp_path: Path, root: Path, rg: str) -> str:
    """Run the hostile walk under strace and return its log."""
    log = tmp_path / "log"
    elsewhere, scratch = tmp_path / "elsewhere", tmp_path / "scratch"
    elsewhere.mkdir()
    scratch.mkdir()
    command = [*strace.provide(), "-f", "--seccomp-bpf", "-y", "-qq", "-s", "9999", "-o", str(log)]
    command += ["-e", "trace=open,openat,openat2,creat,execve,lstat,newfstatat,stat,connect"]
    environment = os.environ | {
        "HOME": str(root.parent / "home"),
        "TMPDIR": str(scratch),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [*command, sys.executable, "-W", "error", hostile.__file__, str(root), rg],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > times(110, 800)
    text = log.read_text(errors="surrogateescape")
    return text[text.index(hostile.BEGIN) : text.index(hostile.END)]


def openings(log: str) -> Iterator[tuple[str, str]]:
    """Yield each file that was opened: the requested name and the real path."""
    begun: dict[str, str] = {}
    for line in log.splitlines():
        if found := _WHOLE.match(line):
            yield found[1], found[2]
        elif found := _BEGUN.match(line):
            begun[found[1]] = found[2]
        elif found := _ENDED.match(line):
            yield begun.pop(found[1]), found[2]


def test_there_are_two_hundred_hostile_inputs() -> None:
    assert len(set(hostile.PATHS)) + len(set(hostile.PATTERNS)) >= 200


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(300)
def test_no_file_outside_the_roots_is_opened(tmp_path: Path) -> None:
    try:
        strace.provide()
    except rgs.UnavailableError as error:
        if ALL_RGS:
            raise
        pytest.skip(f"no strace here: {error}")
    root = hostile.furnish(tmp_path / "yard")
    program = str(rgs.provide("15.2.0"))
    happened = watched(tmp_path, root, program)
    opened = list(openings(happened))
    assert len(opened) > times(110, 1000)
    allowed = (root, tmp_path / "scratch")
    strangers = {
        (name, path)
        for name, path in opened
        if not any(Path(path).is_relative_to(one) for one in allowed) and not OWN.fullmatch(path)
    }
    # rg follows an ignore file that is a link, and opens ignore files above the root, although they do not apply. Their
    # content gets into no answer, which `hostile.walk` checks.
    above = {str(root.parent / name) for name in (".gitignore", ".ignore", ".rgignore")}
    assert {path for name, path in strangers if _RULES.fullmatch(name)} == {
        str(root.parent / "outside" / "rules"),
        *above,
    }
    assert not {name for name, _ in strangers if not _RULES.fullmatch(name)}
    started = set(re.findall(r'execve\("([^"]*)"', happened))
    assert started == {program}
    assert "connect(" not in happened

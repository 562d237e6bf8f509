"""System calls of a program, traced with strace: programs, processes, sockets and named files."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from support.rgs import CACHE, UnavailableError, extract_debian, or_skip

_PROCESSES = ("fork", "vfork", "clone", "clone3")
_SOCKETS = ("socket", "socketpair", "connect")
# strace ignores calls with a question mark if the processor does not have them.
_CALLS = f"trace=%file,{','.join(f'?{call}' for call in (*_PROCESSES, *_SOCKETS))}"
_NEEDS = ("strace", "libunwind8", "liblzma5")

_OPENS = frozenset(("open", "openat", "openat2", "creat"))
_STARTS = frozenset(("execve", "execveat"))
_CHANGES = frozenset(
    (
        *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "symlink", "symlinkat"),
        *("truncate", "mkdir", "mkdirat", "rmdir", "mknod", "mknodat", "chmod", "fchmodat", "chown", "lchown"),
        *("fchownat", "utime", "utimes", "utimensat", "futimesat", "setxattr", "lsetxattr", "mount", "chroot"),
    )
)
WATCHED = f"trace={','.join(f'?{call}' for call in sorted(_OPENS | _STARTS | _CHANGES | {'connect'}))}"
"""Calls that `events()` reads."""

_LINE = re.compile(r"^(\d+) +(\w+)\((.*)$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
_UNFINISHED = " <unfinished ...>"
_RESULT = re.compile(r"^(.*)\)\s+= (-?\w+)(?:<([^<>]*)>(?:\(deleted\))?)?[^()]*(?:\([^()]*\))?$")
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|(?:AT_FDCWD|\d+)<([^<>]*)>|(\[)')


@dataclass(frozen=True, slots=True)
class Trace:
    """System calls of one run.

    Attributes:
        programs: A call for each attempt to execute a program; the first is the traced program itself.
        processes: A call for each further process, not for threads.
        sockets: A call for each socket that was created or connected.
        files: Each other call that names a file.
    """

    programs: tuple[str, ...]
    processes: tuple[str, ...]
    sockets: tuple[str, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """A call that opens, changes or executes a file, or connects a socket, and that did not fail.

    Calls of `execve` and `connect` count even if they fail.

    Attributes:
        call: Name of the call.
        text: Line of the log.
        opened: Real path of the opened file; empty for other calls.
        names: Paths in the arguments, absolute; below the directory `UNKNOWN` if the call does not tell the directory.
        strings: Strings in the arguments as they are. For `execve`: the program, then its arguments.
    """

    call: str
    text: str
    opened: str
    names: tuple[str, ...]
    strings: tuple[str, ...]

    @property
    def opens(self) -> bool:
        """True if the call opened a file or directory for more than its descriptor (`O_PATH`)."""
        return self.call in _OPENS and "O_PATH" not in self.text

    @property
    def starts(self) -> bool:
        """True if the call executes a program."""
        return self.call in _STARTS

    @property
    def changes(self) -> bool:
        """True if the call changes a file or directory, or opens a file to write."""
        return self.call in _CHANGES or (self.call in _OPENS and bool(_WRITES.search(self.text)))


UNKNOWN = "/unknown-directory"
_WRITES = re.compile(r"\bO_(?:WRONLY|RDWR|CREAT|TRUNC|TMPFILE)\b|^\d+ +creat\(")


def mark(path: str) -> None:
    """Try to truncate a path that does not exist, to mark a place in the log of `WATCHED`."""
    with suppress(OSError):
        os.truncate(path, 0)


def between(log: str, begin: str, end: str) -> str:
    """Return the lines of a log between those that have two marks."""
    lines = log.splitlines()
    places = [[place for place, line in enumerate(lines) if mark in line] for mark in (begin, end)]
    return "\n".join(lines[places[0][-1] + 1 : places[1][0]])


def events(log: str, *, failed: bool = False) -> Iterator[Event]:
    """Yield the events of a log that `strace -f -y -e WATCHED` wrote, in the order of their ends.

    With `failed`, yield calls that failed, too.
    """
    begun: dict[str, str] = {}
    for line in log.splitlines():
        if line.endswith(_UNFINISHED):
            begun[line.partition(" ")[0]] = line.removesuffix(_UNFINISHED)
            continue
        resumed = _RESUMED.match(line)
        whole = begun.pop(resumed[1], "") + resumed[2] if resumed else line
        if (found := _LINE.match(whole)) and (event := _event(found[2], found[3], whole, failed)):
            yield event


def _event(call: str, rest: str, line: str, failed: bool) -> Event | None:
    ended = _RESULT.match(rest)
    if ended is None:
        raise ValueError(f"strace wrote a line that this module cannot read: {line[:500]}")
    if not failed and ended[2].startswith("-") and call not in _STARTS and call != "connect":
        return None
    names: list[str] = []
    strings: list[str] = []
    folder = UNKNOWN
    for found in _TOKEN.finditer(ended[1]):
        if found[1] is not None:
            strings.append(_unescaped(found[1]))
            names.append(os.path.join(folder, strings[-1]))
            folder = UNKNOWN
        elif found[2] is not None:
            folder = _unescaped(found[2])
    if call.startswith("symlink"):
        names = names[-1:]  # the other string is what the link says
    elif call in _STARTS:
        names = names[:1]
    return Event(call, line, _unescaped(ended[3] or ""), tuple(names), tuple(strings))


def _unescaped(text: str) -> str:
    r"""Return a text in which strace has replaced bytes by escapes such as `\303` and `\n`."""
    return os.fsdecode(text.encode("latin-1").decode("unicode_escape").encode("latin-1"))


def provide() -> tuple[str, ...]:
    """Return the command of strace for a test, which is skipped if this machine has no strace, or may not trace."""
    return or_skip(find_or_fetch)


def find_or_fetch() -> tuple[str, ...]:
    """Return the command of strace: the one in PATH, or Debian's, fetched if it is missing.

    Raises:
        UnavailableError: This machine has no strace, or may not trace.
    """
    installed = shutil.which("strace")
    command = (installed,) if installed else _from_debian()
    tried = subprocess.run(
        [*command, "-qq", "-o", os.devnull, "/bin/sh", "-c", ":"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        raise UnavailableError(f"strace cannot trace here: {tried.stderr.strip()}")
    return command


def launcher(path: Path, program: Path, traces: Path) -> Path:
    """Write a script to `path` that runs a program and traces each run into a file in `traces`."""
    traces.mkdir()
    words = (*provide(), "-f", "--seccomp-bpf", "-qq", "-s", "4096", "-e", _CALLS)
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} -o {shlex.quote(str(traces))}/$$ "{program}" "$@"\n')
    path.chmod(0o755)
    return path


def take(traces: Path) -> list[Trace]:
    """Return the traces of all runs since the last call."""
    taken = []
    for file in traces.iterdir():
        taken.append(_read(file.read_text(errors="surrogateescape")))
        file.unlink()
    return taken


def _read(log: str) -> Trace:
    """Sort the calls of a log by kind; an interrupted call counts where it begins."""
    kinds: dict[str, list[str]] = {"programs": [], "processes": [], "sockets": [], "files": []}
    for call in re.findall(r"^\d+ +([a-z]\w*\(.*)", log, re.MULTILINE):
        name = call.partition("(")[0]
        if name.startswith("execve"):
            kinds["programs"].append(call)
        elif name in _PROCESSES:
            if "CLONE_THREAD" not in call:
                kinds["processes"].append(call)
        elif name in _SOCKETS:
            kinds["sockets"].append(call)
        else:
            kinds["files"].append(call)
    return Trace(**{kind: tuple(calls) for kind, calls in kinds.items()})


def _from_debian() -> tuple[str, ...]:
    """Return a command that runs Debian's strace with its own libraries, which traced programs do not get."""
    home = CACHE / "strace"
    if not home.exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            fetched = Path(folder, "strace")
            fetched.mkdir()
            extract_debian(fetched, *_NEEDS)
            if not home.exists():
                fetched.rename(home)
    libraries = sorted({str(library.parent) for library in home.rglob("*.so.*")})
    env = shutil.which("env") or "/usr/bin/env"
    return (env, f"LD_LIBRARY_PATH={':'.join(libraries)}", str(home / "usr/bin/strace"), "-E", "LD_LIBRARY_PATH")

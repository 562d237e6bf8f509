"""System calls of a program, traced with strace: programs, processes, sockets and named files."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from support.rgs import CACHE, UnavailableError, extract_debian

_PROCESSES = ("fork", "vfork", "clone", "clone3")
_SOCKETS = ("socket", "socketpair", "connect")
# strace ignores calls with a question mark if the processor does not have them.
_CALLS = f"trace=%file,{','.join(f'?{call}' for call in (*_PROCESSES, *_SOCKETS))}"
_NEEDS = ("strace", "libunwind8", "liblzma5")


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


def provide() -> tuple[str, ...]:
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

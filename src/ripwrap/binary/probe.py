"""An rg that was found: what it says of itself, asked once and again only if the file changes."""

import errno
import functools
import os
import re
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import IO, Literal, TypeAlias

from ripwrap._child import Popen, gone, kill, pauses, reap, spawn, temporary_file, uninterrupted
from ripwrap.errors import BinaryError, SearchError

Source: TypeAlias = Literal["argument", "RIPWRAP_RG", "wheel", "PATH", "cache", "download"]

OLDEST = (13, 0, 0)
"""The oldest rg that is used: on Windows, older ones run programs out of the current directory (CVE-2021-3013)."""

_PROBE_SECONDS = 10
_MAX_ANSWER = 64 * 1024  # Bytes; rg's have some hundred.
_REAP = 1.0  # Seconds that a killed program has to be gone.
_WANTING = {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC}  # For these no rg is to blame.

CANCELLED: ContextVar[threading.Event] = ContextVar("ripwrap_cancelled", default=threading.Event())  # noqa: B039
"""Set once the task that waits for this thread is cancelled: what runs or is downloaded in here is then ended."""


@dataclass(frozen=True, slots=True)
class RgBinary:
    """An rg that was found.

    Attributes:
        path: Where it is, absolute.
        source: The step that found it.
    """

    path: str
    source: Source

    @property
    def version(self) -> tuple[int, int, int]:
        """Its version, e.g. `(15, 2, 0)`; runs `rg --version` once, and again if the file changes.

        Raises:
            BinaryError: It does not run, or is not rg.
            SearchError: The system has no process, descriptor or temporary file left to run it with.
        """
        about = _about(self.path, "--version")
        found = re.match(r"ripgrep (\d+)\.(\d+)\.(\d+)", about)
        if found is None:
            raise BinaryError(f"{self.path} is not ripgrep: `--version` gave {about[:200]!r}; pass another rg=")
        major, minor, patch = map(int, found.groups())
        return major, minor, patch

    @property
    def features(self) -> frozenset[str]:
        """What it was compiled with, e.g. `{"pcre2"}`; runs rg and raises as `version` does."""
        named = re.search(r"^features:(\S*)", _about(self.path, "--version"), re.MULTILINE)
        if named is None:  # rg 13 does not print them
            there = re.match(r"PCRE2 \d\S* is available", _about(self.path, "--pcre2-version"))
            return frozenset({"pcre2"} if there else ())
        return frozenset(feature[1:] for feature in named[1].split(",") if feature.startswith("+"))


def dotted(version: tuple[int, ...]) -> str:
    """A version as people write it: `15.2.0`."""
    return ".".join(map(str, version))


def _about(path: str, flag: str) -> str:
    """What rg says of itself."""
    try:
        state = os.stat(path)
    except OSError as error:
        raise BinaryError(f"{path} cannot be run: {error}; pass another rg=") from error
    return _printed(path, flag, (state.st_ino, state.st_size, state.st_mtime_ns))


@functools.lru_cache(maxsize=32)
def _printed(path: str, flag: str, state: tuple[int, ...]) -> str:  # noqa: ARG001 - an upgrade makes it another file
    try:
        returncode, printed, complained = ask(path, flag)
    except OSError as error:
        if error.errno in _WANTING:
            raise SearchError(f"{path} could not be started, for want of something else: {error.strerror}") from error
        raise BinaryError(f"{path} cannot be run: {error}; pass another rg=") from error
    if not printed:  # raised, not remembered: it may be better the next time
        gave = f"exit code {returncode} {complained.strip()[:200]!r}"
        raise BinaryError(f"{path} is not ripgrep: `{flag}` gave {gave}; pass another rg=")
    return printed


def ask(path: str, flag: str) -> tuple[int, str, str]:
    """What rg answers to a flag such as `--version`: exit code, stdout, stderr. Then nothing is left of it.

    Raises:
        OSError: It cannot be started.
        SearchError: There is no place for a temporary file.
        TimeoutError: It did not end within ten seconds, or writes without end; or nobody waits for it any more.
    """
    with temporary_file() as stdout, temporary_file() as stderr:
        popen: Popen | None = None
        try:
            with uninterrupted():
                popen = spawn([path, "--no-config", flag], stdout=stdout, stderr=stderr)
            returncode = _awaited(popen, stdout, stderr)
        finally:
            if popen is not None:
                kill(popen)
                gone(popen, _REAP)
        stdout.seek(0)
        stderr.seek(0)
        printed, complained = (file.read(_MAX_ANSWER).decode("utf-8", "replace") for file in (stdout, stderr))
        return returncode, printed, complained


def _awaited(popen: Popen, *files: IO[bytes]) -> int:
    for pause in pauses(_PROBE_SECONDS):
        if (returncode := reap(popen)) is not None:
            return returncode
        if CANCELLED.get().is_set() or any(os.fstat(file.fileno()).st_size > _MAX_ANSWER for file in files):
            break
        time.sleep(pause)
    raise TimeoutError(f"it does not end, or not within {_PROBE_SECONDS} seconds")

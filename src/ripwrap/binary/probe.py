"""An rg that was found: what it says of itself, asked once and again only if the file changes."""

import functools
import os
import re
import subprocess
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ripwrap._child import Popen, kill, spawn
from ripwrap.errors import BinaryError

Source: TypeAlias = Literal["argument", "RIPWRAP_RG", "wheel", "PATH", "cache", "download"]

OLDEST = (13, 0, 0)
"""The oldest rg that is used: on Windows, older ones run programs out of the current directory (CVE-2021-3013)."""

_PROBE_SECONDS = 10
_LOOK = 0.02  # Seconds between two looks at whether the answer is still wanted.

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
        with spawn([path, "--no-config", flag]) as popen:
            try:
                printed, complained = (text.decode("utf-8", "replace") for text in _communicate(popen))
            except BaseException:
                kill(popen)
                raise
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = error if isinstance(error, OSError) else f"it did not answer {flag} within {_PROBE_SECONDS} seconds"
        raise BinaryError(f"{path} cannot be run: {reason}; pass another rg=") from error
    return printed or f"exit code {popen.returncode} {complained.strip()}"


def _communicate(popen: Popen) -> tuple[bytes, bytes]:
    deadline = time.monotonic() + _PROBE_SECONDS
    while True:
        try:
            return popen.communicate(timeout=_LOOK)
        except subprocess.TimeoutExpired:
            if time.monotonic() >= deadline or CANCELLED.get().is_set():
                raise

"""Run an rg to get its version and features; the answers are cached until the file changes."""

import errno
import functools
import os
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Literal, TypeAlias

from ripwrap._system.concurrency import CANCELLED, Cancellation, defer_interrupts, poll_intervals
from ripwrap._system.subprocess import Popen, kill, open_temporary_file, reap, spawn, wait_for_exit
from ripwrap._system.windows import IS_WINDOWS, explain_exit, is_batch_file
from ripwrap.errors import BinaryError, Hint, HintedText, SearchError

Source: TypeAlias = Literal["argument", "RIPWRAP_RG", "wheel", "PATH", "cache", "download"]

OLDEST = (13, 0, 0)
"""Oldest supported version of rg. On Windows, older versions run programs from the current directory (CVE-2021-3013).
"""

OTHER_RG = HintedText("; pass the path of another rg as ", Hint("rg"))
"""End of an error message about a program that cannot be used as rg."""

BATCH_FILE = "a batch file: cmd.exe would run parts of a pattern as commands"
"""Reason why `.bat` and `.cmd` files of Windows are refused."""

PROBE_SECONDS = 10
"""Maximum number of seconds that `rg --version` may take."""

MAX_OUTPUT_BYTES = 64 * 1024
"""Maximum number of bytes of stdout and of stderr of `rg --version`, which usually has a few hundred."""

REAP_SECONDS = 1.0
"""Maximum number of seconds to wait for a killed program to end."""

RESOURCE_ERRNOS = {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC}
"""Error numbers for a lack of system resources, which is no fault of the program."""


class OutputTooLargeError(TimeoutError):
    """Error for a program that was ended because it wrote too much; it might not have ended by itself."""


@dataclass(frozen=True, slots=True)
class RgBinary:
    """An rg program that was found.

    Attributes:
        path: Absolute path of the program.
        source: Step of the search for rg that found the program, such as `PATH` or `cache`.
    """

    path: str
    source: Source

    def __post_init__(self) -> None:
        """Check the path, which a caller may have written."""
        if IS_WINDOWS and is_batch_file(self.path):
            raise BinaryError(HintedText(f"{self.path} is {BATCH_FILE}", OTHER_RG))

    @property
    def version(self) -> tuple[int, int, int]:
        """Version, e.g. `(15, 2, 0)`; runs `rg --version` once, and again if the file changes.

        Raises:
            BinaryError: The program does not run, or is not rg.
            SearchError: The system has no process, descriptor or temporary file left.
        """
        about = _ask_version(self.path, "--version")
        version = parse_version(about)
        if version is None:
            raise BinaryError(HintedText(f"{self.path} is not ripgrep: `--version` gave {about[:200]!r}", OTHER_RG))
        return version

    @property
    def features(self) -> frozenset[str]:
        """Features that rg was compiled with, e.g. `{"pcre2"}`; runs rg, and raises what `version` raises."""
        named = re.search(r"^features:(\S*)", _ask_version(self.path, "--version"), re.MULTILINE)
        if named is None:  # rg 13 does not print them
            there = re.match(r"PCRE2 \d\S* is available", _ask_version(self.path, "--pcre2-version"))
            return frozenset({"pcre2"} if there else ())
        return frozenset(feature[1:] for feature in named[1].split(",") if feature.startswith("+"))


def parse_version(about: str) -> tuple[int, int, int] | None:
    """Return the version in the output of `rg --version`, or `None` if another program wrote it."""
    found = re.match(r"ripgrep (\d+)\.(\d+)\.(\d+)", about)
    if found is None:
        return None
    major, minor, patch = map(int, found.groups())
    return major, minor, patch


def format_version(version: tuple[int, ...]) -> str:
    """Format a version: `15.2.0`."""
    return ".".join(map(str, version))


def _ask_version(path: str, flag: str) -> str:
    """Return rg's output for a flag; the output is cached until the file of rg changes."""
    try:
        state = os.stat(path)
    except OSError as error:
        raise BinaryError(HintedText(f"{path} cannot be run: {error}", OTHER_RG)) from error
    return _cached_output(path, flag, (state.st_ino, state.st_size, state.st_mtime_ns))


@functools.lru_cache(maxsize=32)
def _cached_output(path: str, flag: str, state: tuple[int, ...]) -> str:  # noqa: ARG001 - an upgrade of rg changes the state
    try:
        returncode, printed, complained = ask(path, flag)
    except OSError as error:
        if error.errno in RESOURCE_ERRNOS:
            raise SearchError(
                f"could not start {path}: {error.strerror}; close files or programs, and try again"
            ) from error
        raise BinaryError(HintedText(f"{path} cannot be run: {error}", OTHER_RG)) from error
    if not printed:  # an error is not cached, because the next try may succeed
        if returncode < 0:
            raise BinaryError(HintedText(f"{path} cannot be used: it was {explain_signal(-returncode)}", OTHER_RG))
        gave = f"exit code {returncode} {explain_exit(returncode) or repr(complained.strip()[:200])}"
        raise BinaryError(HintedText(f"{path} cannot be used as ripgrep: `{flag}` gave {gave}", OTHER_RG))
    return printed


def explain_signal(number: int) -> str:
    """Return a text about a program that a signal ended; SIGKILL is how a system ends one, and it says no more."""
    why = "; the system does that if memory is short, and macOS if the program is in quarantine" if number == 9 else ""
    return f"killed by signal {number}{why}"


def ask(path: str, flag: str, seconds: float = PROBE_SECONDS) -> tuple[int, str, str]:
    """Run rg with a flag such as `--version`, and return its exit code, stdout and stderr; leave no process behind."""
    returncode, *printed = run_program((path, "--no-config", flag), seconds)
    stdout, stderr = (text.decode("utf-8", "replace") for text in printed)
    return returncode, stdout, stderr


def run_program(
    argv: Sequence[str], seconds: float, *, stdin: int | IO[bytes] = subprocess.DEVNULL
) -> tuple[int, bytes, bytes]:
    """Run a program until it ends, and return its exit code, stdout and stderr; leave no process behind.

    The output must be small, because it is held in memory.
    """
    cancelled = CANCELLED.get()
    with cancelled.child(), open_temporary_file() as stdout, open_temporary_file() as stderr:
        popen: Popen | None = None
        try:
            with defer_interrupts():
                popen = spawn(argv, stdin=stdin, stdout=stdout, stderr=stderr)
            returncode = _wait(popen, seconds, cancelled, stdout, stderr)
        finally:
            if popen is not None:
                kill(popen)
                wait_for_exit(popen, REAP_SECONDS)
        stdout.seek(0)
        stderr.seek(0)
        return returncode, stdout.read(MAX_OUTPUT_BYTES), stderr.read(MAX_OUTPUT_BYTES)


def _wait(popen: Popen, seconds: float, cancelled: Cancellation, *files: IO[bytes]) -> int:
    for pause in poll_intervals(seconds):
        if (returncode := reap(popen)) is not None:
            return returncode
        cancelled.check()
        if any(os.fstat(file.fileno()).st_size > MAX_OUTPUT_BYTES for file in files):
            raise OutputTooLargeError(f"the program wrote more than {MAX_OUTPUT_BYTES >> 10} KiB")
        time.sleep(pause)
    raise TimeoutError(f"the program did not end within {seconds:g} seconds")

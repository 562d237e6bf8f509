"""Base class of hosts: find, run and install rg on a host, and tell failures of rg from failures of the connection."""

import errno
import os
import reprlib
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, TypeVar

from ripwrap._ripgrep.host import STARTED, host_start_error
from ripwrap._system.concurrency import in_thread
from ripwrap.binary.platforms import Platform
from ripwrap.binary.probe import OutputTooLargeError, RgBinary, run_program
from ripwrap.binary.resolver import INSTALL_SECONDS, DownloadProgress, Rg, install_blocking
from ripwrap.errors import BinaryNotFoundError, Hint, HintedText, RemoteError
from ripwrap.options import check_timeout
from ripwrap.remote import finding
from ripwrap.remote.finding import (
    CWD_DENIED,
    CWD_MISSING,
    CWD_NO_DIRECTORY,
    FIND,
    INSTALL,
    INSTALL_ERRORS,
    NAME,
    SHELL,
    WATCHDOG,
    ProgramFile,
    RemoteRg,
    choose,
    parse_answer,
    parse_installed,
)

MAX_SHOWN = 2000
"""Maximum number of characters of stderr in the message of an error."""

NOT_STARTED = (126, 127)
"""Exit codes of a shell that cannot run or find a program."""

_CWD = Hint("cwd", kind="correct")
_CWD_ERRORS: Mapping[int, tuple[type[OSError], int, str]] = {
    CWD_MISSING: (FileNotFoundError, errno.ENOENT, "does not exist"),
    CWD_NO_DIRECTORY: (NotADirectoryError, errno.ENOTDIR, "is not a directory"),
    CWD_DENIED: (PermissionError, errno.EACCES, "cannot be entered; change its permissions"),
}


def failure(host: str, argv: tuple[str, ...], cwd: str, code: int, stderr: str, advice: str) -> Exception:
    """Return the error for a local program (ssh, docker or podman) that ended without a result of rg."""
    if code in _CWD_ERRORS:
        kind, number, wrong = _CWD_ERRORS[code]
        return kind(number, HintedText(_CWD, f" {wrong} on {host}"), cwd)
    shown = stderr.strip()
    shown = shown if len(shown) <= MAX_SHOWN else f"…{shown[-MAX_SHOWN:]}"
    if finding.returncode(code) in NOT_STARTED:
        return BinaryNotFoundError(
            f"rg cannot be run on {host} any more: {shown}. Search again, to look for another rg on that host"
        )
    if code in INSTALL_ERRORS:
        text, step = INSTALL_ERRORS[code]
        message = f"{text.format(host)}: {shown}".removesuffix(": ")
        return RemoteError(message, argv=argv, returncode=code, stderr=stderr, hint=step)
    ended = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    text = f"{host}: {os.path.basename(argv[0])} {ended}, without a result from rg"
    message = f"{text}: {shown}" if shown else text
    return RemoteError(message, argv=argv, returncode=code, stderr=stderr, hint=advice)


def check_directory(path: str) -> str:
    """Check the path of a directory on a host, and return the path; `.` if the path is empty."""
    if "\0" in path:
        raise ValueError("a NUL character cannot be part of a path; remove it")
    if path.startswith("~"):
        said = (
            f" {path!r} begins with ~, which is not expanded; pass an absolute path, or, if the name itself begins "
            "with ~, write './' before it"
        )
        raise ValueError(HintedText(_CWD, said))
    return path or os.curdir


def check_name(rg: str) -> str:
    """Check the path or name of an rg on a host, and return it."""
    if not rg or rg.startswith("-") or "\0" in rg:
        text = f" must be a path or a name on the host, and not begin with a dash; got {rg!r}"
        raise ValueError(HintedText(Hint("rg", kind="correct"), text))
    return rg


FIND_SECONDS = 30.0
"""Maximum number of seconds to find out which rg a host has."""

T = TypeVar("T")


_remembered: dict[tuple["Host", str | None], RemoteRg] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Host(ABC):
    """A machine or container on which rg runs. `ssh()` and `docker()` make hosts; pass one to an operation as `on=`.

    Hosts are immutable: they can be compared, pickled, and used by many searches at the same time.

    Attributes:
        cwd: Directory on the host; the argument `cwd` of a search is relative to it. A relative directory starts at the
            login directory, or at the working directory of the container.
    """

    cwd: str = "."

    def __str__(self) -> str:
        """Return the host as the command line takes it, e.g. `ssh:build-7:/srv/src`."""
        return self.name if self.cwd == "." else f"{self.name}:{self.cwd}"

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the host without a directory, e.g. `ssh:build-7`."""

    @abstractmethod
    def script_line(self, script: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """Return the local command line that runs a shell script (POSIX), with its arguments, on the host."""

    @abstractmethod
    def cost(self, argument: str) -> int:
        """Return the number of bytes of an argument on the local command line, including the space or NUL after it."""

    @abstractmethod
    def advice(self, code: int, stderr: str) -> str:
        """Return advice about a local program that failed; empty if the program's message says enough."""

    def path(self, cwd: str) -> str:
        """Return the directory of a search on the host. A relative argument `cwd` starts at the host's `cwd`.

        Raises:
            ValueError: The argument begins with `~`, which the host does not expand, or has a NUL.
        """
        given = check_directory(cwd)
        if os.curdir in (given, self.cwd):
            return self.cwd if given == os.curdir else given
        return os.path.join(self.cwd, given)

    def command_line(self, argv: Sequence[str], cwd: str) -> tuple[str, ...]:
        """Return the local command line that runs rg in a directory on the host, and ends when rg ends."""
        # With `./` before the path, `cd` does not read `-` as the previous directory, and does not use CDPATH.
        directory = cwd if cwd.startswith("/") else f"./{cwd}"
        return self.script_line(WATCHDOG, (directory, *argv))

    def returncode(self, code: int) -> int | None:
        """Convert the exit code of the local command line to the exit code of rg; `None` if rg did not run.

        If a signal ended rg, return the negative number of the signal.
        """
        found = finding.returncode(code)
        return None if found in NOT_STARTED else found

    def forget(self) -> None:
        """Clear the cached result of `find()`. Call this after you have replaced rg on the host."""
        key = replace(self, cwd=os.curdir)
        for one in list(_remembered):
            if one[0] == key:
                _remembered.pop(one, None)

    def failure(self, argv: tuple[str, ...], cwd: str, code: int, stderr: bytes) -> Exception:
        """Return the error for a local command line that ended without an exit code of rg."""
        if finding.returncode(code) in NOT_STARTED:
            self.forget()
        said = stderr.decode("utf-8", "replace")
        return failure(self.name, argv, cwd, code, said, self.advice(code, said))

    def find(self, rg: Rg = None, *, timeout: float | None = None) -> RgBinary:
        """Return the rg to run on the host; blocking. The result is cached for each value of `rg`.

        Without `rg`, this is the rg that `install()` has installed, or else the rg in PATH. The PATH of ssh commands
        is often shorter than the PATH of a terminal.

        Args:
            rg: A path on the host, or a name to look up in the PATH of the host; `None` finds an rg as described above.
            timeout: Time limit in seconds, at most 30; `None`, or a larger number, is 30 seconds.

        Raises:
            BinaryNotFoundError: There is no usable rg on the host.
            BinaryError: The given rg cannot be used.
            RemoteError: The host cannot be reached, or did not answer in 30 seconds.
            TimeoutError: `timeout` is at most 30, and the host did not answer within `timeout` seconds.
            ValueError, TypeError: `rg` cannot be a path or name on the host.
        """
        if isinstance(rg, RemoteRg):
            return rg
        if isinstance(rg, RgBinary):
            raise TypeError(f"rg must be a path or a name on {self.name}, got an RgBinary of this machine")
        named = None if rg is None else check_name(os.fspath(rg))
        key = (replace(self, cwd=os.curdir), named)
        found = _remembered.get(key)
        if found is None:
            over = None if timeout is None or timeout > FIND_SECONDS else timeout
            found = _remembered[key] = choose(self._ask(named, over)[1], named, self.name)
        return found

    async def install(
        self,
        version: str | None = None,
        *,
        source: str | os.PathLike[str] | None = None,
        mirrors: Sequence[str] | None = None,
        sha256: str | None = None,
        allow_unpinned: bool = False,
        timeout: float = INSTALL_SECONDS,  # noqa: ASYNC109 - the worker thread's
        progress: DownloadProgress | None = None,
    ) -> RemoteRg:
        """Install rg on the host, in `~/.cache/ripwrap`, and use it in later searches with this host.

        If `XDG_CACHE_HOME` is set on the host, rg is installed in `$XDG_CACHE_HOME/ripwrap` instead.

        A release for the platform of the host is taken from the cache of this machine, or downloaded and verified. It
        is sent over the connection. Then the new rg is run once with `--version`, and renamed to its final name. A host
        with `sha256sum` or `shasum` also checks the hash of the new rg; an installed rg that already has this hash is
        not replaced.

        Args:
            version: Version to install; `None` is `RIPWRAP_VERSION` or the newest pinned version.
            source: Path of an rg on this machine, to send instead of a release; it must be able to run on the host.
            mirrors: See `ripwrap.binary.install()`.
            sha256: See `ripwrap.binary.install()`.
            allow_unpinned: See `ripwrap.binary.install()`.
            timeout: Seconds for the whole call.
            progress: Function that is called with the number of downloaded bytes, and the number of all bytes, which
                is `None` if it is not known.

        Raises:
            RemoteError: The host cannot be reached, cannot store the file, or cannot run the new rg.
            BinaryError: `source` cannot be read, or rg cannot be stored in the cache of this machine.
            UnsupportedPlatformError: This version of rg has no release for the platform of the host.
            DownloadFailedError: See `ripwrap.binary.install()`.
            TimeoutError: The host did not answer within `timeout` seconds. A download that takes longer raises
                `DownloadFailedError`.
        """
        return await in_thread(
            lambda: self.install_blocking(
                version,
                source=source,
                mirrors=mirrors,
                sha256=sha256,
                allow_unpinned=allow_unpinned,
                timeout=timeout,
                progress=progress,
            )
        )

    def install_blocking(
        self,
        version: str | None = None,
        *,
        source: str | os.PathLike[str] | None = None,
        mirrors: Sequence[str] | None = None,
        sha256: str | None = None,
        allow_unpinned: bool = False,
        timeout: float = INSTALL_SECONDS,
        progress: DownloadProgress | None = None,
    ) -> RemoteRg:
        """Install rg on the host, like `install()`, but blocking. The arguments and errors are the same."""
        check_timeout(timeout)
        give_up = time.monotonic() + timeout
        there, _ = self._ask(None, timeout if timeout <= FIND_SECONDS else None)
        if source is None:
            source = install_blocking(
                version,
                mirrors=mirrors,
                sha256=sha256,
                allow_unpinned=allow_unpinned,
                timeout=max(0.0, give_up - time.monotonic()),
                progress=progress,
                platform=there,
            ).path
        program = ProgramFile.read(source)
        with program.open() as file:
            argv = self.script_line(INSTALL, (program.sha256, str(program.size)))
            fields = self._run(argv, max(0.0, give_up - time.monotonic()), timeout, stdin=file)
        self.forget()
        found = self._parse(parse_installed, fields, argv)
        _remembered[replace(self, cwd=os.curdir), None] = found
        return found

    def _ask(self, named: str | None, timeout: float | None) -> tuple[Platform, list[RemoteRg]]:
        """Ask the host for its platform and rgs; wait at most `timeout` seconds, or `FIND_SECONDS` if it is `None`."""
        argv = self.script_line(FIND, () if named is None else (named,))
        fields = self._run(argv, FIND_SECONDS if timeout is None else timeout, timeout)
        return self._parse(parse_answer, fields, argv)

    def _parse(self, parse: Callable[[Sequence[str]], T], fields: Sequence[str], argv: tuple[str, ...]) -> T:
        try:
            return parse(fields)
        except ValueError as error:
            text = (
                f"{self.name} gave an answer that ripwrap does not understand: {reprlib.repr(fields)}; check that "
                f"{os.path.basename(argv[0])} and the shell on the host print no other text"
            )
            raise RemoteError(text, argv=argv) from error

    def _run(
        self, argv: tuple[str, ...], seconds: float, timeout: float | None, stdin: IO[bytes] | None = None
    ) -> list[str]:
        """Run a script that prints texts, each ended by a NUL, and return the texts."""
        try:
            code, stdout, stderr = run_program(argv, seconds, stdin=subprocess.DEVNULL if stdin is None else stdin)
        except OutputTooLargeError as error:
            text = f"{self.name} did not answer: {error}; check what the shell on the host prints at its start"
            raise RemoteError(text, argv=argv) from None
        except TimeoutError as error:
            if timeout is not None:
                text = f"{self.name} did not answer within timeout={timeout:g} seconds; allow more time"
                raise TimeoutError(text) from None
            text = f"{self.name} did not answer: {error}; check the connection to the host, and try again"
            raise RemoteError(text, argv=argv) from None
        except OSError as error:
            raise host_start_error(error, argv) from error
        _, mark, answer = stdout.partition(STARTED)
        stderr = stderr.partition(STARTED)[2] if STARTED in stderr else stderr
        if not mark or finding.returncode(code) != 0:
            raise self.failure(argv, self.cwd, code, stderr)
        return [os.fsdecode(text) for text in answer.split(b"\0")[:-1]]


def shell_line(script: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs a shell script (POSIX) with its arguments; the command must run on the host."""
    return (*SHELL, script, NAME, *arguments)

"""Base of the hosts: find rg there, run it, install it, and tell its end from that of the connection."""

import errno
import functools
import os
import re
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, TypeVar

from ripwrap._concurrency import CANCELLED, Lock, hold_lock, in_thread
from ripwrap._ripgrep.host import INSTALL_THERE, STARTED
from ripwrap.binary.probe import OLDEST, RgBinary, format_version, parse_version, run_program
from ripwrap.binary.resolver import INSTALL_SECONDS, Progress, Rg
from ripwrap.errors import BinaryError, BinaryNotFoundError, Hint, HintedText, RemoteError
from ripwrap.options import check_timeout
from ripwrap.remote import watchdog
from ripwrap.remote.finding import FIND, Answer, parse_answer
from ripwrap.remote.installing import INSTALL, INSTALL_ERRORS, Source, source_of
from ripwrap.remote.watchdog import CWD_DENIED, CWD_MISSING, CWD_NO_DIRECTORY, NAME, SHELL, WATCHDOG

FIND_SECONDS = 30.0
"""Seconds for the question which rg a host has."""

MAX_SHOWN = 2000
"""Characters of stderr in the message of an error."""

T = TypeVar("T")

_CWD = Hint("cwd", kind="correct")
_CWD_ERRORS: Mapping[int, tuple[type[OSError], int, str]] = {
    CWD_MISSING: (FileNotFoundError, errno.ENOENT, "does not exist"),
    CWD_NO_DIRECTORY: (NotADirectoryError, errno.ENOTDIR, "is not a directory"),
    CWD_DENIED: (PermissionError, errno.EACCES, "cannot be entered; change its permissions"),
}


@dataclass(frozen=True, slots=True)
class RemoteRg(RgBinary):
    """An rg on a host.

    Attributes:
        about: Output of `rg --version` there.
    """

    about: str = ""

    @property
    def version(self) -> tuple[int, int, int]:
        """Version, e.g. `(15, 2, 0)`."""
        return parse_version(self.about) or (0, 0, 0)

    @property
    def features(self) -> frozenset[str]:
        """Features that rg was compiled with, e.g. `{"pcre2"}`; rg 13 does not say."""
        named = re.search(r"^features:(\S*)", self.about, re.MULTILINE)
        return frozenset(one[1:] for one in named[1].split(",") if one.startswith("+")) if named else frozenset()


def parse_installed(fields: Sequence[str]) -> RemoteRg:
    """Return the rg in the texts that the script of an installation prints.

    Raises:
        ValueError: There are more or fewer than three.
    """
    step, path, about = fields
    return RemoteRg(path, "download" if step == "download" else "cache", about)


_remembered: dict[tuple["Host", str | None], RemoteRg] = {}
_locks: dict["Host", Lock] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Host(ABC):
    """A machine or container on which rg runs; `ssh()` and `docker()` make one, and `on=` of the operations takes it.

    Hosts are immutable: they can be compared, pickled, and used by many searches at the same time.

    Attributes:
        cwd: Directory on the host that `cwd` and `paths` of a search are relative to. A relative one is relative to the
            directory of a login, or to the working directory of a container.
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
        """Return the local command line that runs a script of the POSIX shell with arguments on the host."""

    @abstractmethod
    def cost(self, argument: str) -> int:
        """Return the size of an argument on the local command line, in bytes."""

    @abstractmethod
    def advice(self, code: int, stderr: str) -> str:
        """Return what to do about a local program that failed; empty if its own message says it."""

    def path(self, cwd: str) -> str:
        """Return the directory on the host that a caller means by `cwd`: relative to `self.cwd`.

        Raises:
            ValueError: It begins with `~`, which nothing would expand.
        """
        given = check_directory(cwd)
        if os.curdir in (given, self.cwd):
            return self.cwd if given == os.curdir else given
        return os.path.join(self.cwd, given)

    def command_line(self, argv: Sequence[str], cwd: str) -> tuple[str, ...]:
        """Return the local command line that runs rg in a directory of the host, and ends with it."""
        # `./` so that `-` and CDPATH have no meaning for `cd`.
        directory = cwd if cwd.startswith("/") else f"./{cwd}"
        return self.script_line(WATCHDOG, (directory, *argv))

    def returncode(self, code: int) -> int | None:
        """Return the exit code of rg from that of the local command line, or `None` if rg did not end by itself."""
        found = watchdog.returncode(code)
        return None if found in (126, 127) else found  # the shell could not run or find it

    def forget(self) -> None:
        """Forget which rg the host has; the next search asks again. Call it if you have replaced rg there."""
        key = replace(self, cwd=os.curdir)
        for one in [one for one in _remembered if one[0] == key]:
            _remembered.pop(one, None)

    def failure(self, argv: tuple[str, ...], cwd: str, code: int, stderr: bytes) -> Exception:
        """Return the error for a local command line that ended without an exit code of rg."""
        if code in _CWD_ERRORS:
            kind, number, wrong = _CWD_ERRORS[code]
            return kind(number, HintedText(_CWD, f" {wrong} on {self.name}"), cwd)
        said = stderr.decode("utf-8", "replace")
        if watchdog.returncode(code) in (126, 127):
            self.forget()
            gone = f"rg cannot be run on {self.name} any more: {_end_of(said)}. The next search looks for another one"
            return BinaryNotFoundError(gone)
        ended = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        text = f"{self.name}: {os.path.basename(argv[0])} {ended}, without an answer of rg"
        shown = _end_of(said)
        return RemoteError(
            f"{text}: {shown}" if shown else text,
            argv=argv,
            returncode=code,
            stderr=said,
            hint=self.advice(code, said),
        )

    def find(self, rg: Rg = None, *, timeout: float | None = None) -> RgBinary:
        """Return the rg to run on the host; ask the host once and remember the answer. Blocks.

        Without a name, it is the rg that `install()` has put there, or else the one in PATH. PATH is that of commands
        of ssh, which is often shorter than the one in a terminal.

        Args:
            rg: A path on the host, or a bare name to find in its PATH; `None` finds one.
            timeout: Time limit in seconds; `None` is half a minute.

        Raises:
            BinaryNotFoundError: There is no rg on the host.
            BinaryError: The given rg cannot be used.
            RemoteError: The host cannot be reached.
            TimeoutError: It took more than `timeout` seconds.
        """
        if isinstance(rg, RemoteRg):
            return rg
        if isinstance(rg, RgBinary):
            raise TypeError(f"rg must be a path or a name on {self.name}, got an RgBinary of this machine")
        named = None if rg is None else _check_name(os.fspath(rg))
        host = replace(self, cwd=os.curdir)
        give_up = time.monotonic() + (FIND_SECONDS if timeout is None else timeout)
        check = functools.partial(self._check_time, give_up, timeout)
        with hold_lock(_locks.setdefault(host, threading.Lock()), check):
            found = _remembered.get((host, named))
            if found is None:
                seconds = min(FIND_SECONDS, max(0, give_up - time.monotonic()))
                found = self._ask(named, seconds, timeout)
                _remembered[host, named] = found
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
        progress: Progress | None = None,
    ) -> RemoteRg:
        """Put rg on the host, into `~/.cache/ripwrap`, and use it in later searches with this host.

        A release for the platform of the host is taken from the cache of this machine, or downloaded and verified. It
        is sent over the connection, its SHA-256 is compared there if the host has a program for that, it is run once
        with `--version`, and published by a rename. If the same rg is there already, nothing is sent.

        Args:
            version: Version to install; `None` is `RIPWRAP_VERSION` or the newest pinned version.
            source: Path of an rg of this machine that runs on the host, to send in place of a release.
            mirrors: See `ripwrap.binary.install()`.
            sha256: See there.
            allow_unpinned: See there.
            timeout: Seconds for the whole call.
            progress: Function that is called with the number of downloaded bytes, and the total or `None`.

        Raises:
            RemoteError: The host cannot be reached, or cannot store the file.
            BinaryError: rg does not run on the host, or `source` cannot be read.
            UnsupportedPlatformError: This version has no release for the host.
            DownloadFailedError: See `ripwrap.binary.install()`.
            TimeoutError: It took more than `timeout` seconds.
        """
        call = functools.partial(
            self.install_blocking,
            version,
            source=source,
            mirrors=mirrors,
            sha256=sha256,
            allow_unpinned=allow_unpinned,
            timeout=timeout,
            progress=progress,
        )
        return await in_thread(call)

    def install_blocking(
        self,
        version: str | None = None,
        *,
        source: str | os.PathLike[str] | None = None,
        mirrors: Sequence[str] | None = None,
        sha256: str | None = None,
        allow_unpinned: bool = False,
        timeout: float = INSTALL_SECONDS,
        progress: Progress | None = None,
    ) -> RemoteRg:
        """Do what `install()` does, blocking."""
        check_timeout(timeout)
        give_up = time.monotonic() + timeout
        there = self._questions(None, min(FIND_SECONDS, timeout), timeout).platform
        release = functools.partial(
            source_of, there, version, mirrors=mirrors, sha256=sha256, allow_unpinned=allow_unpinned, progress=progress
        )
        program = Source.read(source) if source is not None else release(timeout=max(0.0, give_up - time.monotonic()))
        with program.open() as file:
            argv = self.script_line(INSTALL, (program.sha256, str(program.size)))
            fields = self._run(argv, max(0.0, give_up - time.monotonic()), timeout, stdin=file)
        self.forget()
        found = self._parse(lambda: parse_installed(fields), argv)
        _remembered[replace(self, cwd=os.curdir), None] = found
        return found

    def _ask(self, named: str | None, seconds: float, timeout: float | None) -> RemoteRg:
        """Return the first usable rg of the host."""
        answer = self._questions(named, seconds, timeout)
        reasons: list[str] = []
        for candidate in answer.candidates:
            version = parse_version(candidate.about)
            if version is not None and version >= OLDEST:
                return RemoteRg(candidate.path, candidate.source, candidate.about)
            wrong = "not ripgrep"
            if version is not None:
                wrong = f"rg {format_version(version)} is too old: 13 or later is needed"
            reasons.append(f"  {candidate.path}: {wrong}")
        if named is not None:
            seen = "\n".join(reasons) or f"  {named}: no such program"
            raise BinaryError(
                f"the given rg cannot be used on {self.name}:\n{seen}\nPass another one, or leave it out."
            )
        seen = "\n".join(reasons) or "  no rg in its PATH, and none that ripwrap has installed"
        raise BinaryNotFoundError(
            HintedText(
                f"rg (ripgrep) was not found on {self.name}:\n{seen}\nInstall it with ",
                INSTALL_THERE,
                ", or with the package manager there, or name one: ",
                Hint("rg"),
            )
        )

    def _questions(self, named: str | None, seconds: float, timeout: float | None) -> Answer:
        argv = self.script_line(FIND, () if named is None else (named,))
        fields = self._run(argv, seconds, timeout)
        return self._parse(lambda: parse_answer(fields), argv)

    def _parse(self, parse: Callable[[], T], argv: tuple[str, ...]) -> T:
        try:
            return parse()
        except ValueError as error:
            raise RemoteError(f"{self.name} gave an answer that ripwrap does not understand", argv=argv) from error

    def _run(
        self, argv: tuple[str, ...], seconds: float, timeout: float | None, stdin: IO[bytes] | None = None
    ) -> list[str]:
        """Run one of the scripts that answer with texts, each ended by a NUL, and return the texts.

        Args:
            argv: Local command line.
            seconds: Time limit.
            timeout: Time limit that the caller has given, for the error.
            stdin: Input; empty by default.
        """
        try:
            code, stdout, stderr = run_program(argv, seconds, stdin=subprocess.DEVNULL if stdin is None else stdin)
        except TimeoutError as error:
            if timeout is not None:
                raise self._over(timeout) from None
            raise RemoteError(f"{self.name} did not answer: {error}", argv=argv) from None
        except OSError as error:
            text = f"could not start {argv[0]}: {error.strerror}; install it, or name another program"
            raise RemoteError(text, argv=argv) from error
        _, mark, answer = stdout.partition(STARTED)
        stderr = stderr.partition(STARTED)[2] if STARTED in stderr else stderr
        if code in INSTALL_ERRORS:
            raise _install_error(code, self.name, argv, stderr.decode("utf-8", "replace"))
        if not mark or watchdog.returncode(code) != 0:
            raise self.failure(argv, self.cwd, code, stderr)
        return [os.fsdecode(text) for text in answer.split(b"\0")[:-1]]

    def _check_time(self, give_up: float, timeout: float | None) -> None:
        if CANCELLED.get().is_set():
            raise TimeoutError("the call was cancelled")
        if time.monotonic() >= give_up:
            raise self._over(FIND_SECONDS if timeout is None else timeout)

    def _over(self, timeout: float) -> TimeoutError:
        return TimeoutError(f"{self.name} did not answer within timeout={timeout:g} seconds; allow more time")


def _install_error(code: int, name: str, argv: tuple[str, ...], stderr: str) -> BinaryError | RemoteError:
    text = f"{INSTALL_ERRORS[code]} on {name}: {_end_of(stderr)}".removesuffix(": ")
    return RemoteError(text, argv=argv, returncode=code, stderr=stderr)


def _end_of(stderr: str) -> str:
    text = stderr.strip()
    return text if len(text) <= MAX_SHOWN else f"…{text[-MAX_SHOWN:]}"


def check_directory(path: str) -> str:
    """Return the directory, or raise as `Host.path()` does; an empty one is the current one."""
    if "\0" in path:
        raise ValueError("a NUL character cannot be part of a path; remove it")
    if path.partition("/")[0].startswith("~"):
        raise ValueError(
            HintedText(
                _CWD, f" {path!r} begins with ~, which is not expanded; leave out '~/', or write './~' for that name"
            )
        )
    return path or os.curdir


def _check_name(rg: str) -> str:
    if not rg or rg.startswith("-") or "\0" in rg:
        raise ValueError(HintedText(Hint("rg", kind="correct"), f" must be a path or a name on the host, got {rg!r}"))
    return rg


def shell_line(script: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs a script of the POSIX shell with arguments."""
    return (*SHELL, script, NAME, *arguments)

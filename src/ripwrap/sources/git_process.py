"""Run git in a repository, without a shell, with limits on time and memory.

Only the absolute entries of PATH are searched for git, so that a `git` in a checkout is never run. The directory
determines the repository; no variable `GIT_…` of the environment has an effect, except those that name the user's own
configuration. git asks no questions, takes no optional locks, and fetches nothing: it sees no server in the
configuration that `ripwrap.sources.repository` makes, and may use no protocol.
"""

import errno
import io
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, cast

from ripwrap._system.concurrency import CANCELLED, defer_interrupts
from ripwrap._system.subprocess import (
    Popen,
    TemporaryFolder,
    kill,
    open_temporary_file,
    start,
    wait_for_exit,
    wait_for_output,
)
from ripwrap._system.windows import IS_WINDOWS, path_entries
from ripwrap._text import named, shown
from ripwrap.errors import Hint, HintedText, SearchError
from ripwrap.options import StrPath
from ripwrap.sources.repository import RepositoryFinder, prepare


def find_program(name: str, *, windows: bool = IS_WINDOWS) -> str | None:
    """Return the path of a program in an absolute directory of PATH; `None` if no such directory has it.

    If `subprocess` gets only a name, it may start a program in the current directory, which may be an untrusted
    checkout. CreateProcess looks there first, and then in PATH
    (https://learn.microsoft.com/windows/win32/api/processthreadsapi).
    On POSIX, a relative entry of PATH such as `.` has the same effect.
    """
    path = os.environ.get("PATH", os.defpath)
    entries = path_entries(path) if windows else path.split(os.pathsep)
    file = f"{name}.exe" if windows else name
    for program in (os.path.join(entry, file) for entry in entries if os.path.isabs(entry)):
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


_KEPT_VARIABLES = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})
"""Variables `GIT_…` of the environment that reach git. All others are dropped: many choose what git reads or starts."""

_SETTINGS = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",  # from git 2.44 on
    "GIT_ALLOW_PROTOCOL": "",  # no protocol is allowed
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
_NOWHERE = {"GIT_DIR": os.path.join(os.sep, "nonexistent-repository")}
"""Variables for commands without a repository."""

_GLOBAL_OPTIONS = (
    *("--no-pager", "-c", "log.diffMerges=separate", "-c", "core.bigFileThreshold=16m"),
    *("-c", "core.multiPackIndex=false", "-c", "core.fsmonitor=false", "-c", "diff.relative=false"),
)
"""Options before the command. They override the user's `log.diffMerges`, with which `git log -m` could hide changes,
and let git copy large blobs without holding them in memory. A multi-pack-index is not read, because it names packs by
paths, which git does not check: `../` leads to another repository. Each pack also has its own index. `git diff` would
start the user's fsmonitor.
"""

PLAIN_LOG = (*("--no-show-signature", "--no-color", "--no-notes", "--no-mailmap", "--no-follow", "--encoding=UTF-8"),)
"""Options of `git log`, which override the user's configuration. For example, `log.showSignature` would start gpg."""

LOG_MARK = b"\x01"
"""First byte of a commit in a log that ripwrap formats; the fields of the commit follow, each ended by a NUL."""

MIN_VERSION = (2, 25)
"""Oldest version of git that is run. It is the first one with `git log --no-mailmap`."""

MAX_RECORD_BYTES = 64 << 10
"""Maximum size in bytes of a path or another field in git's output. The rest of a larger field may be missing."""

HELD_BYTES = 1 << 20
"""Size in bytes from which the content of a file is copied to a temporary file, and not held in memory."""

_CHECKED_PROGRAMS = set[object]()
"""Path and time of change of each git whose version was checked."""

_SPARE_BYTES = 16 << 20
"""Number of bytes that git may allocate at once, in addition to the maximum size of a blob."""

_EXIT_SECONDS = 5.0
_POLL_SECONDS = 0.1
_MAX_ERROR = 4000
_BUFFER_BYTES = 1 << 20


class NoRepositoryError(ValueError):
    """Error for a directory that is not in a git repository."""


class Git:
    """Runner of git in a directory, one command at a time. Another thread may call `close()` to end git."""

    def __init__(self, cwd: str, allowed: tuple[str, ...] | None, max_bytes: int) -> None:
        self.deadline: float | None = None
        self.max_bytes = max_bytes
        self._cwd = cwd
        self._allowed = allowed
        self._lock = threading.Lock()
        self._running: Popen | None = None
        self._closed = False
        self._folder: TemporaryFolder | None = None
        self._variables: Mapping[str, str] = {}

    def open(self) -> None:
        """Find and check the repository, and prepare a directory from which git reads it."""
        if self._variables:
            return
        self._check_version()
        if not os.path.isdir(self._cwd):
            raise _no_directory(self._cwd)
        finder = RepositoryFinder(self._cwd, self._allowed, self.check)
        repository = finder.find()
        if repository is None:
            raise NoRepositoryError(
                HintedText(
                    Hint("rev", kind="correct"),
                    f" needs a git repository, and {shown(self._cwd)} is not in a git repository; check ",
                    Hint("cwd", kind="correct"),
                )
            )
        finder.check_contents(repository)
        folder = TemporaryFolder("ripwrap-git-")
        try:
            variables = prepare(repository, finder, folder.path, self._parse_settings)
            with self._lock:  # until now, `close()` must not delete what this thread still writes
                self._folder = folder
            self.check()
        except BaseException:
            folder.delete()
            raise
        self._variables = variables

    def leave_the_tree(self) -> None:
        """Let later commands read neither attributes, because the tree is an empty directory, nor the user's settings.

        Both can name programs and files. git before 2.32 reads the settings all the same.
        """
        self._cwd = os.path.join(self._variables["GIT_DIR"], "tree")
        os.makedirs(self._cwd, exist_ok=True)
        nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        self._variables = {**self._variables, **nothing, "GIT_WORK_TREE": self._cwd}

    def lines(self, *arguments: str, stdin: IO[bytes] | int = subprocess.DEVNULL) -> "GitOutput":
        """Start a command of git in the repository, and return an `GitOutput`, from which its output can be read."""
        return self._start(self._cwd, self._variables, arguments, stdin)

    def read(self, *arguments: str) -> bytes:
        """Return the whole output of a command of git, which is short."""
        with self.lines(*arguments) as output:
            return output.stdout.read(MAX_RECORD_BYTES)

    def close(self) -> None:
        """End the command that runs, start no more commands, and delete the temporary directory."""
        with self._lock:
            self._closed = True
            if self._running is not None:
                kill(self._running)
            if self._folder is not None:
                self._folder.delete()

    def check(self) -> None:
        """Raise `InterruptedError` if the search has ended, and `TimeoutError` if its time limit was reached."""
        if self._closed:
            raise InterruptedError("the search has ended")
        CANCELLED.get().check()
        if self.left() == 0:
            raise TimeoutError("the time limit was reached while git read the repository; allow more time")

    def left(self, most: float | None = None) -> float | None:
        """Return the seconds until the deadline, 0 or more, but at most `most`; `None` is no limit."""
        if self.deadline is None:
            return most
        left = max(0.0, self.deadline - time.monotonic())
        return left if most is None else min(left, most)

    def _start(
        self, cwd: str, variables: Mapping[str, str], arguments: tuple[str, ...], stdin: IO[bytes] | int
    ) -> "GitOutput":
        program = find_program("git")
        argv = (program or "git", *_GLOBAL_OPTIONS, *arguments)
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        env |= {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        # git refuses a larger allocation, because an object may pretend any size. The variable is not in git's manual;
        # see memory_limit_check() in wrapper.c.
        env |= {**_SETTINGS, "GIT_ALLOC_LIMIT": str(self.max_bytes + _SPARE_BYTES), **variables}
        given = stdin if isinstance(stdin, int) else stdin.fileno()
        with self._lock:
            if self._closed:
                raise InterruptedError("the search has ended")
            stderr = open_temporary_file()
            try:
                if program is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                with defer_interrupts():
                    popen = start(argv, stdin=given, stdout=subprocess.PIPE, stderr=stderr, env=env, cwd=cwd)
            except OSError as error:
                stderr.close()
                if not os.path.isdir(cwd):
                    raise _no_directory(cwd) from error
                said = f"could not start git: {error.strerror}; install git, or put it into PATH"
                raise SearchError(said, argv=argv) from error
            self._running = popen
        return GitOutput(self, popen, argv, stderr)

    def _check_version(self) -> None:
        program = find_program("git")
        known = program and (program, os.stat(program).st_mtime_ns)
        if known in _CHECKED_PROGRAMS:
            return
        with self._start(os.sep, _NOWHERE, ("version",), subprocess.DEVNULL) as output:
            text = output.stdout.read(MAX_RECORD_BYTES).decode("utf-8", "replace").strip()
        found = re.match(r"git version (\d+)\.(\d+)", text)
        if found is None or (int(found[1]), int(found[2])) < MIN_VERSION:
            needed = ".".join(map(str, MIN_VERSION))
            raise SearchError(f"git {needed} or newer is needed, and {program} is {text[:100]!r}; update git")
        _CHECKED_PROGRAMS.add(known)

    def _parse_settings(self, config: bytes) -> bytes:
        """Return a configuration in the form of `git config --list -z`; git includes no other file."""
        with open_temporary_file() as file:
            file.write(config)
            file.seek(0)
            arguments = ("config", "--file", "-", "--no-includes", "--list", "-z")
            with self._start(os.sep, _NOWHERE, arguments, file) as output:
                return output.stdout.read()


class GitOutput:
    """Output of git. Leaving the context manager ends git, and raises an error if git failed."""

    def __init__(self, git: Git, popen: Popen, argv: tuple[str, ...], stderr: IO[bytes]) -> None:
        self._git = git
        self._popen = popen
        self._argv = argv
        self._stderr = stderr
        self.stdout: io.BufferedReader[Any] = io.BufferedReader(
            _Pipe(git, cast("IO[bytes]", popen.stdout)), _BUFFER_BYTES
        )

    def __enter__(self) -> "GitOutput":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            kill(self._popen)
        try:
            self.stdout.close()
            code = wait_for_exit(self._popen, self._git.left(_EXIT_SECONDS) or 0)
            if code is None:
                kill(self._popen)
                wait_for_exit(self._popen, _EXIT_SECONDS)
            elif code and kind is None:
                self._git.check()
                self._stderr.seek(0)
                text = self._stderr.read(_MAX_ERROR).decode("utf-8", "replace").strip()
                said = f"git {self._argv[len(_GLOBAL_OPTIONS) + 1]} failed: {text or f'exit code {code}'}"
                raise SearchError(said, argv=self._argv, returncode=code, stderr=text)
        finally:
            self._stderr.close()

    def records(self) -> Iterator[bytes]:
        """Yield the parts of the output, each of which git ends with a NUL.

        The end of a part with more than `MAX_RECORD_BYTES` may be missing.
        """
        rest = b""
        while chunk := self.stdout.read1(_BUFFER_BYTES):
            first, *whole = chunk.split(b"\0")
            rest += first[: MAX_RECORD_BYTES + 1 - len(rest)]
            if whole:
                yield rest
                rest = whole.pop()[: MAX_RECORD_BYTES + 1]
                yield from whole
        if rest:
            yield rest


class _Pipe(io.RawIOBase):
    """Pipe from git; a read ends with `TimeoutError` at the deadline of the search."""

    def __init__(self, git: Git, pipe: IO[bytes]) -> None:
        self._git = git
        self._pipe = pipe

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer, and return their number."""
        while not wait_for_output(self._pipe, self._git.left(_POLL_SECONDS) or 0):
            self._git.check()
        self._git.check()
        return cast("io.RawIOBase", self._pipe).readinto(buffer) or 0

    def close(self) -> None:
        """Close the pipe."""
        super().close()
        self._pipe.close()


def read_object(output: GitOutput, size: int) -> bytes | IO[bytes]:
    """Read the content of an object from git's output; return a large content as an open file."""
    if size <= HELD_BYTES:
        content = output.stdout.read(size + 1)
        if len(content) <= size:
            raise SearchError("git ended early")
        return content[:size]
    file = open_temporary_file()
    try:
        left = size + 1  # git writes a line feed after each object
        while left and (chunk := output.stdout.read1(min(left, HELD_BYTES))):
            try:
                file.write(chunk)
            except OSError as error:
                raise SearchError(
                    f"a temporary file cannot be written: {error}; set TMPDIR to a directory with enough free space"
                ) from error
            left -= len(chunk)
        if left:
            raise SearchError("git ended early")
        file.truncate(size)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _no_directory(cwd: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, HintedText(Hint("cwd", kind="correct"), " does not exist"), cwd)


def holds(root: str, name: str) -> bool:
    """Return True if a file is at a path, or below it."""
    return root in (os.curdir, name) or name.startswith(f"{root}/")


def missing_path_error(rev: str, paths: Sequence[str]) -> FileNotFoundError:
    """Return the error for paths that a revision does not have."""
    text = HintedText(f"no such path in {rev}; check ", Hint("paths", kind="correct"))
    return FileNotFoundError(errno.ENOENT, text, named(paths, 100))


def relative_path(cwd: str, path: StrPath) -> str:
    """Return a path relative to `cwd`, with `/` as separator."""
    text = os.fspath(path)
    if not text:
        raise ValueError("a path is empty; pass '.' for the directory itself")
    try:
        relative = os.path.normpath(os.path.relpath(text, cwd) if os.path.isabs(text) else text).replace(os.sep, "/")
    except ValueError:  # on another drive of Windows
        relative = ".."
    if relative == ".." or relative.startswith("../"):
        raise ValueError(
            HintedText(
                f"the path {shown(text)} is outside of {shown(cwd)}, the only directory that ",
                Hint("rev"),
                " searches; check ",
                Hint("cwd", kind="correct"),
            )
        )
    return relative

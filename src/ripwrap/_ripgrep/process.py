"""Run rg as a child process. No other module starts a search.

Steps of a child, async or blocking:

1. Start: stdin is empty, stderr goes to a temporary file, and no `RIPGREP_*` variable is in the environment (rg-facts
   1, 2). A file cannot fill up as a pipe does (rg-facts 26), so no task has to drain stderr.
2. `read()` until it returns no bytes.
3. `wait()`, which returns the exit.
4. Leave the context manager, even after an error in step 2 or 3: the child is killed and reaped within
   `Settings.reap_seconds`, and its descriptors are closed.

The async side polls and reads the pipe itself, without a subprocess transport of asyncio, for two reasons. On CPython
3.11.7, 3.12.1 and 3.13.0, `kill(); await wait()` never returns while stdout is unread (rg-facts 30). A cancelled
`create_subprocess_exec` can lose its child (rg-facts 32). So spawning has no `await`, and a generator that is suspended
at a `yield` holds only descriptors.

On a host (`Query.on`), the child is a local program, such as ssh. Its stdin is a pipe to which nothing is written.
When that pipe is closed, the host ends rg. Step 4 closes the pipe, or the system does so when this process is killed.

Find links that lead up, to a directory that holds the searched one, so that rg does not enter them.

rg finds a loop only if the link leads to the searched directory or one below it. Behind a link to a directory above, rg
would search all that lies there, beside the searched directory.
"""

import errno
import logging
import math
import os
import re
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, Self, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.lowlevel import RunVar

from ripwrap._ripgrep.change import Change
from ripwrap._ripgrep.command import render
from ripwrap._ripgrep.exit_status import MAX_STDERR, Exit, out_of_threads, panicked
from ripwrap._ripgrep.host import HOST_ROOM_BYTES, STARTED, host_start_error
from ripwrap._ripgrep.place import Part
from ripwrap._ripgrep.query import Query
from ripwrap._system.concurrency import defer_interrupts, poll_intervals
from ripwrap._system.subprocess import (
    KILLED_RETURNCODE,
    Popen,
    is_whole,
    kill,
    open_temporary_file,
    peek,
    read_beginning,
    reap,
    spawn,
    wait_for_exit,
    wait_for_output,
    widen_pipe,
)
from ripwrap._system.windows import COMMAND_TOO_LONG, command_length
from ripwrap.binary.probe import OTHER_RG, RgBinary
from ripwrap.errors import BinaryError, BinaryNotFoundError, Hint, HintedText, SearchError
from ripwrap.options import EXCLUDED, check_number

MAX_ENTRIES = 500
"""Maximum number of names of the searched directories, level by level, among which links are looked for.

rg starts in several milliseconds, and this takes one or two at most. Behind a link below these levels, rg does search.
"""

_SPECIAL = re.compile(r"[*?\[\]{}\\ ]" if os.sep == "/" else r"[*?\[\]{} ]")
"""Characters of globs, and the space, which rg removes at the end of a glob."""


def without_upward_links(query: Query) -> Query:
    """Return the query with a glob that leaves out each link that leads up; the query itself if there are none."""
    most = query.options.get("max_depth")
    if query.on is not None or query.mode == "types" or not query.follows or (most is not None and most < 2):
        return query
    links = [*_upward_links(query)]
    if not links:
        return query
    globs = [f"!{_SPECIAL.sub(_escaped, link.replace(os.sep, '/'))}" for link in links]
    # rg compares an absolute path that is outside of its working directory with the whole glob.
    globs = [one.replace("!", "!**" if one.startswith("!/") else "!/", 1) for one in globs]
    if query.values("iglob"):  # these apply after `glob`
        return query.with_(iglob=[*query.values("iglob"), *globs])
    return query.with_(glob=[*query.values("glob"), *globs])


def _upward_links(query: Query) -> Iterator[str]:
    """Yield the paths of links that lead up, relative to the working directory of the query if they are below it."""
    roots: dict[str, str] = {}
    # With each directory go the targets of the links above it: a directory with two links to it is read behind both.
    waiting: deque[tuple[str, str, frozenset[str]]] = deque()
    for path in query.paths[:MAX_ENTRIES]:
        if os.path.isdir(full := os.path.join(query.cwd, path)):
            target = roots[path] = os.path.realpath(full)
            waiting.append((path, path, frozenset({target})))
    here, left = os.path.realpath(query.cwd) if roots else "", MAX_ENTRIES
    while waiting and left > 0:
        root, folder, followed = waiting.popleft()
        names: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(os.path.join(query.cwd, folder)) as entries:
            names.extend(islice(entries, left))
        left -= max(1, len(names))
        for entry in names:
            if entry.name in EXCLUDED or not _is_folder(entry):
                continue
            path = entry.name if folder == os.curdir else os.path.join(folder, entry.name)
            target = os.path.realpath(entry.path) if entry.is_symlink() else ""
            # rg itself does not enter a link to the searched directory, or to one below it.
            top = roots[root]
            if target and not _holds(top, target) and (_holds(target, here) or _holds(target, top)):
                yield os.path.normpath(path.removeprefix(os.path.join(query.cwd, "")))
            elif target not in followed:
                waiting.append((root, path, followed | ({target} - {""})))


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def _escaped(found: "re.Match[str]") -> str:
    return "\\\\" if found[0] == "\\" else f"[{found[0]}]"


_LOGGER = logging.getLogger("ripwrap")

READ_BYTES = 64 * 1024
"""Maximum number of bytes of one read; other tasks run between reads."""

EXIT_GRACE_SECONDS = 1.0
"""Seconds for rg to exit by itself after it has closed its stdout."""

HOST_GRACE_SECONDS = 10.0
"""Seconds for a program such as ssh to exit after rg has closed its stdout; it still has to receive rg's exit code."""

SHORT_COMMAND = 8000
"""Number of characters that every system allows in a command line. Only longer command lines are measured."""

SHORT_TEXTS = 4000
"""Number of characters of a query's texts, with `MAX_FLAG` more for each text, below which the query is short.

Its arguments then have fewer than `SHORT_COMMAND` characters. To count the texts is faster than to make the arguments.
"""

MAX_FLAG = 32
"""Maximum number of characters that an argument has before its text, such as `--ignore-file=`."""

MAX_COMMAND = 32_767 if os.name == "nt" else 2 * 1024 * 1024
"""Maximum size of a command line: characters on Windows (CreateProcess), bytes with the environment on POSIX.

Linux allows a quarter of the stack's limit: 2 MiB by default, at least 128 KiB, at most 6 MiB (execve(2)). macOS
allows 1 MiB.
"""

SPARE_COMMAND = 1024 if os.name == "nt" else 16 * 1024
"""Part of `MAX_COMMAND` that is kept free for the path of rg, and for arguments that a launcher script adds."""


@dataclass(slots=True)
class ProcessSettings:
    """Settings of all rg processes; tests change them."""

    can_await_pipes: bool = os.name == "posix"
    stall_seconds: float = 1.0
    reap_seconds: float = 1.0


SETTINGS = ProcessSettings()

_CWD = Hint("cwd", kind="correct")


def check_cwd(cwd: str) -> None:
    """Raise an error if `cwd` is not a directory, which the system would report as a missing rg (rg-facts 7)."""
    if cwd and not os.path.isabs(cwd):  # `Query` makes it absolute, unless the current directory was deleted
        raise FileNotFoundError(
            errno.ENOENT, HintedText("the current directory was deleted; pass another directory as ", Hint("cwd")), cwd
        )
    if os.path.isdir(cwd):
        return
    try:
        os.stat(cwd)
    except FileNotFoundError:
        tilde = "; `~` is not expanded, so pass an absolute path" if "~" in cwd.split(os.sep) else ""
        raise FileNotFoundError(errno.ENOENT, HintedText(_CWD, f" does not exist{tilde}"), cwd) from None
    wrong = HintedText(_CWD, " is not a directory; pass a single file as ", Hint("paths"))
    raise NotADirectoryError(errno.ENOTDIR, wrong, cwd)


def split(query: Query) -> Sequence[Query]:
    """Return the query, or several with parts of its paths, in order, if they are too long for one command line."""
    texts = tuple(query.texts())
    if sum(map(len, texts)) + MAX_FLAG * len(texts) < SHORT_TEXTS:
        return (query,)
    arguments = render(query)
    if sum(map(len, arguments)) < SHORT_COMMAND:
        return (query,)
    room, cost = (_room(), _cost) if query.on is None else (HOST_ROOM_BYTES, query.on.cost)
    fixed = arguments[: len(arguments) - len(query.paths)]
    return tuple(query.batches(room - sum(map(cost, fixed)), cost))


def _room() -> int:
    """Return the maximum cost of the arguments of a query, in the units of `_cost()`."""
    if sys.platform == "win32":
        return MAX_COMMAND - SPARE_COMMAND
    limit = os.sysconf("SC_ARG_MAX")
    environment = sum(_cost(name) + len(os.fsencode(value)) + 1 for name, value in os.environ.items())
    return (min(limit, MAX_COMMAND) if limit > 0 else 128 * 1024) - SPARE_COMMAND - environment


def _cost(argument: str) -> int:
    """Return the size of an argument: characters on Windows; elsewhere bytes, plus a NUL and a pointer (execve(2))."""
    if os.name == "nt":
        return command_length([argument]) + 1
    return len(os.fsencode(argument)) + 1 + 8


def _start(argv: tuple[str, ...], query: Query, stderr: IO[bytes]) -> Popen:
    try:
        if query.on is not None:
            return spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
        if query.mode == "log":  # rg logs to stderr, a line for each entry, so it is read as stdout is in other modes
            return spawn(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=query.cwd)
        return spawn(argv, stdout=subprocess.PIPE, stderr=stderr, cwd=query.cwd)
    except OSError as error:
        raise start_error(error, argv, None if query.on is not None else query.cwd) from error


def start_error(error: OSError, argv: tuple[str, ...], cwd: str | None) -> Exception:
    """Return the error for an rg that could not be started, e.g. a command line that is too long, or a wrong `cwd`."""
    if error.errno == errno.E2BIG or getattr(error, "winerror", None) == COMMAND_TOO_LONG:
        size = sum(map(len, argv))
        return SearchError(
            f"the command line is too long for this system ({size} characters); pass fewer or shorter paths, globs and "
            "patterns, or split the search",
            argv=argv,
        )
    if cwd is None:
        return host_start_error(error, argv)
    check_cwd(cwd)
    if not os.access(cwd, os.X_OK):
        return PermissionError(errno.EACCES, HintedText(_CWD, " cannot be entered; change its permissions"), cwd)
    if isinstance(error, FileNotFoundError):
        missing = f"could not start {argv[0]}: the file, or the dynamic loader that it needs, does not exist"
        return BinaryNotFoundError(HintedText(missing, OTHER_RG))
    if isinstance(error, PermissionError) or error.errno == errno.ENOEXEC:
        return BinaryError(HintedText(f"could not start {argv[0]}: {error.strerror}", OTHER_RG))
    return SearchError(
        f"could not start rg: {error.strerror}; if a limit of the system is reached, close files or programs, and try "
        "again",
        argv=argv,
    )


def _destroy(popen: Popen, stdout: IO[bytes], stderr: IO[bytes], waiting: threading.Lock, seconds: float) -> None:
    """Kill rg if it runs, close its files, and wait at most `seconds` for its end."""
    kill(popen)
    stderr.close()
    if popen.stdin is not None:  # on a host, rg ends when this is closed
        popen.stdin.close()
    # On Windows a thread may still wait for output. Do not close the descriptor of stdout before that thread has ended
    # its wait, because the system could give the number of the descriptor to another file.
    if waiting.acquire(timeout=seconds):
        stdout.close()
        waiting.release()
    if wait_for_exit(popen, seconds) is None:
        _LOGGER.warning("rg (process %d) was killed but has not ended yet", popen.pid)


def _has_event_loop() -> bool:
    """Return True if an event loop runs. A generator may be garbage-collected after its loop has ended."""
    try:
        anyio.current_time()
    except (RuntimeError, ImportError):  # ImportError when the interpreter exits
        return False
    return True


async def parse_stderr(end: Exit) -> None:
    """Parse a large stderr in a worker thread, and keep its errors in `end`; a small stderr is parsed on first use."""
    if len(end.stderr) > READ_BYTES:  # parsing then takes long, and calls `stat()` for every missing path
        await anyio.to_thread.run_sync(end.path_errors, limiter=anyio.CapacityLimiter(1))


class _Child:
    """Running rg process; the base class of `AsyncChild` and `BlockingChild`."""

    def __init__(self, binary: RgBinary, query: Query, change: Change | None = None) -> None:
        self._query = query
        self._change = change
        self._argv = (binary.path, *render(without_upward_links(query)))
        if query.on is not None:
            self._argv = query.on.command_line(self._argv, query.cwd)
        self._started = query.on is None  # on a host, other programs may write before it starts rg
        self._rest = b""  # a part of `STARTED` may be at the end of a chunk
        self._exit_grace = EXIT_GRACE_SECONDS if query.on is None else HOST_GRACE_SECONDS
        self._stderr = open_temporary_file()
        self._checked_stderr_bytes = 0  # size of stderr when it was last read
        self._waiting = threading.Lock()
        self._wrote = False
        clean_up: Callable[[], object] = self._stderr.close
        try:
            with defer_interrupts():
                self._popen = _start(self._argv, query, self._stderr)
                self._stdout = cast("IO[bytes]", self._popen.stderr if query.mode == "log" else self._popen.stdout)
                # The finalizer runs at garbage collection or interpreter exit, if a generator is never closed (rg-facts
                # 31).
                held = (self._popen, self._stdout, self._stderr, self._waiting)
                clean_up = self._finalizer = weakref.finalize(self, _destroy, *held, SETTINGS.reap_seconds)
        except BaseException:
            clean_up()
            raise
        widen_pipe(self._stdout)

    def kill(self) -> None:
        """Kill rg; output that it has already written can still be read."""
        kill(self._popen)

    def _make_exit(self, returncode: int | None, *, lingers: bool) -> Exit:
        self._stderr.seek(0)
        stderr = self._stderr.read(MAX_STDERR + 1)
        known = KILLED_RETURNCODE if returncode is None else returncode
        lingered = lingers and known == KILLED_RETURNCODE
        end = Exit(self._query, self._argv, known, stderr, lingered=lingered, wrote=self._wrote)
        if (host := self._query.on) is not None:
            # The exit is that of a local program, which ran rg on the host.
            before, mark, rest = stderr.partition(STARTED)
            end = replace(end, stderr=rest if mark else before)
            code = host.returncode(known) if self._started else None
            if code is not None:
                end = replace(end, returncode=code)
            elif not lingered:
                end = replace(end, failed=host.failure(self._argv, self._query.cwd, known, end.stderr))
        return end if self._change is None else self._change.exit(end)

    def _take(self) -> bytes | None:
        """Return the next bytes of stdout, `b""` at its end; `None` if another program on a host wrote them."""
        chunk: bytes | None = self._stdout.read(READ_BYTES)
        if chunk and not self._started:
            before, mark, after = (self._rest + chunk).partition(STARTED)
            self._started, self._rest = bool(mark), before[1 - len(STARTED) :]
            chunk = after or None
        self._wrote = self._wrote or bool(chunk)
        return chunk

    def _has_stalled(self, *, whole: bool) -> bool:
        """Return True if waiting for stdout must stop; called after `stall_seconds` without output.

        Waiting must stop if rg has ended, but another process still holds the pipe open. If rg could not start a
        thread, or a thread panicked, rg may hang (rg-facts 8 and 61). In that case, this method kills rg and returns
        False, so waiting continues.
        """
        returncode = peek(self._popen)
        if returncode is not None and (whole or returncode):
            return True
        size = os.fstat(self._stderr.fileno()).st_size
        if size != self._checked_stderr_bytes:
            self._checked_stderr_bytes = size
            stderr = read_beginning(self._stderr, MAX_STDERR)
            if out_of_threads(stderr) or panicked(stderr):
                self.kill()
        return False


class AsyncChild(_Child):
    """A running rg process for an async task, on asyncio and trio."""

    async def __aenter__(self) -> Self:
        return self

    async def read(self, *, whole: bool = False) -> bytes:
        """Return the next bytes of stdout, with its change; `b""` at its end; other tasks run meanwhile."""
        while chunk := await self._read(whole=whole):
            if taken := chunk if self._change is None else self._change.feed(chunk):
                return taken
        return b"" if self._change is None else self._change.close()

    async def _read(self, *, whole: bool) -> bytes:
        taken: bytes | None = None
        while taken is None:
            if wait_for_output(self._stdout, 0):  # ten times faster than `wait_readable`
                await anyio.lowlevel.checkpoint()
            else:
                while not await self._readable():
                    if self._has_stalled(whole=whole):
                        return b""
            taken = self._take()
        return taken

    async def wait(self) -> Exit:
        """Return rg's exit, after the end of stdout; kill rg if it does not exit."""
        # Ctrl-C ends rg and cancels the task. Raise the cancellation before rg's exit code is interpreted (rg-facts
        # 35).
        await anyio.lowlevel.checkpoint()
        returncode = await self._wait_for_exit(self._exit_grace)
        if lingers := returncode is None:
            self.kill()
            returncode = await self._wait_for_exit(SETTINGS.reap_seconds)
        return self._make_exit(returncode, lingers=lingers)

    async def __aexit__(self, *_: object) -> None:
        self.kill()
        if not _has_event_loop():
            self._finalizer()
            return
        try:
            with anyio.CancelScope(shield=True):
                if await self._wait_for_exit(SETTINGS.reap_seconds) is None:
                    self._finalizer.detach()
                    _destroy(self._popen, self._stdout, self._stderr, self._waiting, 0)
        finally:
            self._finalizer()

    async def _readable(self) -> bool:
        if not SETTINGS.can_await_pipes:
            # A cancelled task does not wait for the thread: `__aexit__` kills rg, so that the thread ends, and
            # `_destroy` waits for the lock that the thread holds.
            def wait() -> bool:
                with self._waiting:
                    return wait_for_output(self._stdout, SETTINGS.stall_seconds)

            return await anyio.to_thread.run_sync(wait, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
        with anyio.move_on_after(SETTINGS.stall_seconds):
            await anyio.wait_readable(self._stdout)
            return True
        return False

    async def _wait_for_exit(self, seconds: float) -> int | None:
        """Wait until rg has ended and return its exit code, or `None` if rg still runs after `seconds`."""
        for pause in poll_intervals(seconds):
            if (returncode := reap(self._popen)) is not None:
                return returncode
            await anyio.sleep(pause)
        return reap(self._popen)


class _GivenOutput:
    """Output that is read as if rg had written it; see `Part.output`."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._left = part.output or b""

    def kill(self) -> None:
        """Do nothing."""

    def end(self) -> Exit:
        """Return the exit of an rg that wrote this output."""
        output, change = self._part.output, self._part.change
        end = Exit(replace(self._part.query, paths=()), (), 0 if output else 1, b"", wrote=bool(output))
        return end if change is None else change.exit(end)

    def _take(self) -> bytes:
        chunk, self._left, change = self._left, b"", self._part.change
        if change is None:
            return chunk
        return (change.feed(chunk) if chunk else b"") or change.close()


class AsyncOutput(_GivenOutput):
    """Output that is read as if rg had written it, for an async task; the interface of `AsyncChild`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing."""

    async def read(self, *, whole: bool = False) -> bytes:  # noqa: ARG002 - see `AsyncChild`
        """Return the whole output, then `b""`."""
        await anyio.lowlevel.checkpoint()
        return self._take()

    async def wait(self) -> Exit:
        """Return the exit of an rg that wrote this output."""
        return self.end()


class BlockingOutput(_GivenOutput):
    """Output that is read as if rg had written it, for a caller that blocks; the interface of `BlockingChild`."""

    timed_out = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def read(self, *, whole: bool = False) -> bytes:  # noqa: ARG002 - see `BlockingChild`
        """Return the whole output, then `b""`."""
        return self._take()

    wait = _GivenOutput.end


def timeout_error(seconds: float | None) -> TimeoutError:
    """Return the error for a blocking generator whose rg was killed at the time limit."""
    return TimeoutError(
        f"rg was stopped after timeout={seconds} seconds; all results before that were yielded; allow more time"
    )


class BlockingChild(_Child):
    """A running rg for a caller that blocks; it is killed `timeout` seconds after `begun` (of `time.monotonic()`)."""

    def __init__(
        self, binary: RgBinary, query: Query, timeout: float | None, begun: float, change: Change | None = None
    ) -> None:
        super().__init__(binary, query, change)
        self._timeout = timeout
        self._deadline = math.inf if timeout is None else begun + timeout
        self.timed_out = False

    def __enter__(self) -> Self:
        return self

    def read(self, *, whole: bool = False) -> bytes:
        """Return the next bytes of stdout, with its change; `b""` at its end, or after the time limit."""
        while chunk := self._read(whole=whole):
            if taken := chunk if self._change is None else self._change.feed(chunk):
                return taken
        return b"" if self._change is None or self.timed_out else self._change.close()

    def _read(self, *, whole: bool) -> bytes:
        while (left := self._deadline - time.monotonic()) >= 0:
            if wait_for_output(self._stdout, min(left, SETTINGS.stall_seconds)):
                if (taken := self._take()) is not None:
                    return taken
                continue
            if left > SETTINGS.stall_seconds and self._has_stalled(whole=whole):
                return b""
        if not is_whole(self._popen, self._stdout):  # rg, or a child of a launcher, may write more
            stderr = read_beginning(self._stderr, MAX_STDERR)
            self.timed_out = out_of_threads(stderr) or not panicked(stderr)
            self.kill()
        return (self._take() if wait_for_output(self._stdout, 0) else b"") or b""

    def wait(self) -> Exit:
        """Return rg's exit after stdout has ended. If rg does not exit, it is killed."""
        if self.timed_out:
            raise timeout_error(self._timeout)
        return self.end()

    def end(self) -> Exit:
        """Return rg's exit as `wait()` does, but raise no error if `timed_out` is True."""
        returncode = wait_for_exit(self._popen, self._exit_grace)
        if lingers := returncode is None:
            self.kill()
            returncode = wait_for_exit(self._popen, SETTINGS.reap_seconds)
        return self._make_exit(returncode, lingers=lingers)

    def __exit__(self, *_: object) -> None:
        with defer_interrupts():
            self._finalizer()


class _Slots:
    """Slots for blocking calls that run rg; async calls have others, in an `anyio.CapacityLimiter`."""

    def __init__(self) -> None:
        self.total = max(4, os.cpu_count() or 0)
        self.reset()

    def reset(self) -> None:
        """Free all slots after a fork: `fork(2)` copies only one thread, so no thread of the child holds a slot."""
        self._released = threading.Condition()
        self._running = 0
        self._thread = threading.local()

    def set_total(self, total: int) -> None:
        """Change the number of slots."""
        with self._released:
            self.total = total
            self._released.notify_all()

    @contextmanager
    def held(self, seconds: float | None) -> Generator[bool]:
        """Wait at most `seconds` for a slot, and hold it; the value is False if there was none in time."""
        # A signal or log handler may search in a thread that already holds a slot. Both searches then share that slot.
        # If the handler waited for a second slot, it could wait for ever, because the thread cannot free the first one
        # until the handler returns.
        thread = self._thread
        depth = getattr(thread, "depth", 0)
        if not depth:
            with self._released:
                free = self._running < self.total
                if not free and not self._released.wait_for(lambda: self._running < self.total, seconds):
                    yield False
                    return
                self._running += 1
        thread.depth = depth + 1
        try:
            yield True
        finally:
            thread.depth = depth
            if not depth and self._thread is thread:  # a child of a fork holds no slot
                with self._released:
                    self._running -= 1
                    self._released.notify()


SLOTS = _Slots()
_LIMITER: "RunVar[anyio.CapacityLimiter]" = RunVar("ripwrap_limiter")

if sys.platform != "win32":
    os.register_at_fork(after_in_child=SLOTS.reset)


def limit_processes(number: int) -> None:
    """Set how many rg processes may run at a time for calls that collect their answer, such as `grep()`.

    There are `number` slots, and such a call holds a slot while rg runs. If all slots are taken, the call waits for a
    slot, which counts for its `timeout`. Each event loop has its own slots. The blocking operations of all
    threads share another set of slots. The new number applies from the next call on; running searches continue.
    Streams, such as `search()` and `files()`, and `grep_in()` take no slot; limit the number of these calls yourself.

    The default is the number of CPUs, but at least 4.

    Args:
        number: Number of rg processes at a time, 1 or more.

    Raises:
        ValueError: `number` is less than 1.
        TypeError: `number` is not an int.
    """
    SLOTS.set_total(check_number(number, "number"))
    with suppress(RuntimeError):  # there may be no event loop here
        slot()


def slot() -> "anyio.CapacityLimiter":
    """Return the async context manager in which an async call runs rg; entering it waits for a slot of this loop."""
    limiter = _LIMITER.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(SLOTS.total)
        _LIMITER.set(limiter)
    elif limiter.total_tokens != SLOTS.total:
        limiter.total_tokens = SLOTS.total
    return limiter

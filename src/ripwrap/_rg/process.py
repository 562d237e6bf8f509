"""A running rg: the only module that starts one. Arguments in, bytes out, an exit, and nothing left behind.

Life of a child, asynchronous or blocking: `start` (stdin closed, stderr into a temporary file, which cannot fill up
as a pipe would, no `RIPGREP_*` in its environment) → `read` until end of file → `wait`, which gives the exit.
Whatever way the consumer leaves, the child is killed and reaped on the way out, within `_REAP` seconds, and its
descriptors are closed.

The async side reads the pipe's descriptor itself, once there is something to read. Nothing is open across a `yield`
but descriptors, spawning has no await in which a child could get lost, and there is no transport to hang on:
asyncio's own `kill(); await wait()` never returns on CPython 3.11.7, 3.12.1 and 3.13.0 while stdout is unread
(rg-facts 30, 32).
"""

import errno
import logging
import math
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Self, cast

import anyio
import anyio.lowlevel
import anyio.to_thread

from ripwrap._child import Popen, gone, kill, pauses, peek, reap, spawn, temporary_file, uninterrupted
from ripwrap._rg.argv import Command
from ripwrap._rg.exit import Exit
from ripwrap._rg.stderr import MAX_STDERR, out_of_threads
from ripwrap.binary.probe import RgBinary
from ripwrap.errors import BinaryError, BinaryNotFoundError, SearchError

_LOGGER = logging.getLogger("ripwrap")

_CHUNK = 64 * 1024  # Bytes that are read at a time; other tasks get their turn between two of them.
_PIPE = 256 * 1024  # Bytes that a pipe is made to hold on Linux, where a user's pipes may hold 64 MiB in all.
_EXIT_GRACE = 1.0  # Seconds that rg has to exit by itself once it has closed its stdout.
_STALL = 1.0  # Seconds of silence after which rg is looked at: without a thread it may hang (rg-facts 8).
_REAP = 1.0  # Seconds that a killed rg has to be gone; only one in uninterruptible sleep needs more (rg-facts 33).
_KILLED = -9  # The exit code of a killed rg that is not gone yet.
_POLLS_PIPES = os.name == "posix"  # Windows can wait for sockets only; there a thread reads.


def check_cwd(cwd: str) -> None:
    """Raise what is wrong with `cwd`, so that nobody takes it for a missing rg (rg-facts 7)."""
    if cwd and not os.path.isabs(cwd):  # or it would have been made so
        raise FileNotFoundError(errno.ENOENT, "the current directory is gone; name another one in cwd=", cwd)
    if os.path.isdir(cwd):
        return
    try:
        os.stat(cwd)
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "cwd does not exist", cwd) from None
    raise NotADirectoryError(errno.ENOTDIR, "cwd is not a directory; name a single file in paths=", cwd)


def _start(argv: tuple[str, ...], cwd: str, stderr: IO[bytes]) -> Popen:
    try:
        return spawn(argv, stdout=subprocess.PIPE, stderr=stderr, cwd=cwd)
    except OSError as error:
        raise _not_started(error, argv, cwd) from error


def _widen(pipe: IO[bytes]) -> None:
    """Have a pipe hold more than Linux gives it, so that rg need not wait for us as often."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # the user's pipes hold as much as they may
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def _not_started(error: OSError, argv: tuple[str, ...], cwd: str) -> Exception:
    if error.errno == errno.E2BIG:
        size = sum(map(len, argv))
        return SearchError(
            f"the command line is too long for this system ({size} characters); pass fewer or shorter paths, globs and "
            "patterns, or several searches",
            argv=argv,
        )
    check_cwd(cwd)
    if not os.access(cwd, os.X_OK):
        return PermissionError(errno.EACCES, "cwd cannot be entered", cwd)
    if isinstance(error, FileNotFoundError):
        return BinaryNotFoundError(f"{argv[0]} is not there, or the loader that it needs is not; pass another rg=")
    if isinstance(error, PermissionError) or error.errno == errno.ENOEXEC:
        return BinaryError(f"{argv[0]} cannot be started: {error.strerror}; pass another rg=")
    return SearchError(f"rg could not be started, for want of something else: {error.strerror}", argv=argv)


def _destroy(popen: Popen, stdout: IO[bytes], stderr: IO[bytes], reading: threading.Lock, seconds: float) -> None:
    """Kill rg if it runs, close its files, and wait at most `seconds` until it is reaped."""
    kill(popen)
    stderr.close()
    # A thread that still reads is about to see the end of the file; until then its descriptor must stay its own.
    if reading.acquire(timeout=seconds):
        stdout.close()
        reading.release()
    if gone(popen, seconds) is None:
        _LOGGER.warning("rg (process %d) was killed but is not gone yet", popen.pid)


def _in_event_loop() -> bool:
    """Whether anything can be awaited: not if the garbage collector closes a generator after its loop is gone."""
    try:
        anyio.current_time()
    except (RuntimeError, ImportError):  # the second at the interpreter's end
        return False
    return True


class _Child:
    """What the two kinds of child share: start, kill, leave, exit."""

    def __init__(self, binary: RgBinary, command: Command) -> None:
        self._command = command
        self._argv = (binary.path, *command.arguments)
        self._stderr = temporary_file()
        self._seen = 0  # bytes of stderr that were looked at
        self._reading = threading.Lock()
        leave: Callable[[], object] = self._stderr.close
        try:
            with uninterrupted():
                self._popen = _start(self._argv, command.cwd, self._stderr)
                self._stdout = cast("IO[bytes]", self._popen.stdout)
                # The net under a generator that nobody closes: garbage collection and interpreter exit end in it.
                leave = self._leave = weakref.finalize(
                    self, _destroy, self._popen, self._stdout, self._stderr, self._reading, seconds=_REAP
                )
        except BaseException:
            leave()
            raise
        _widen(self._stdout)

    def kill(self) -> None:
        """End rg at once; what it has written can still be read."""
        kill(self._popen)

    def _exit(self, returncode: int | None, *, lingers: bool) -> Exit:
        self._stderr.seek(0)
        stderr = self._stderr.read(MAX_STDERR + 1)
        known = _KILLED if returncode is None else returncode
        return Exit(self._command, self._argv, known, stderr, lingered=lingers and known == _KILLED)

    def _has_stalled(self, *, whole: bool) -> bool:
        """Whether stdout, which is silent, is not to be waited for any more.

        That is so if rg is gone, and has said all or failed: then somebody else has the pipe, as something that a
        launcher has started. An rg that waits for a thread that it could not start is killed here.
        """
        returncode = peek(self._popen)
        if returncode is not None and (whole or returncode):
            return True
        size = os.fstat(self._stderr.fileno()).st_size
        if size != self._seen:
            self._seen = size
            # Its offset in the file is rg's too, so it must not be moved; hence `pread`.
            if out_of_threads(os.pread(self._stderr.fileno(), MAX_STDERR, 0)):
                self.kill()
        return False

    def _poll(self, seconds: float) -> int:
        """What there is to read within so many seconds: `select.POLLIN`, `POLLHUP` for its end, both, or neither."""
        polling = select.poll()
        polling.register(self._stdout, select.POLLIN)
        return sum(events for _, events in polling.poll(seconds * 1000))


class AsyncChild(_Child):
    """rg for a task, on asyncio and trio."""

    async def __aenter__(self) -> Self:
        return self

    async def read(self, *, whole: bool = False) -> bytes:
        """The next bytes of stdout; empty at its end. Other tasks always get a turn.

        Args:
            whole: Whether rg has said all that it had to say, so that it is enough to wait for its end.
        """
        if not _POLLS_PIPES:
            return await self._read_in_thread()
        if self._poll(0):  # which costs a tenth of having the loop wait
            await anyio.lowlevel.checkpoint()
        else:
            while not await self._readable():
                if self._has_stalled(whole=whole):
                    return b""
        return self._stdout.read(_CHUNK)

    async def wait(self) -> Exit:
        """rg's exit, once stdout has ended; an rg that lingers is killed."""
        # A Ctrl-C ends rg and cancels the task: the cancellation is to be seen first (rg-facts 35).
        await anyio.lowlevel.checkpoint()
        returncode = await self._gone(_EXIT_GRACE)
        if lingers := returncode is None:
            self.kill()
            returncode = await self._gone(_REAP)
        end = self._exit(returncode, lingers=lingers)
        if len(end.stderr) > _CHUNK:  # which takes a while, and looks at every path that was missing
            await anyio.to_thread.run_sync(end.path_errors, limiter=anyio.CapacityLimiter(1))
        return end

    async def __aexit__(self, *_: object) -> None:
        self.kill()
        if not _in_event_loop():
            self._leave()
            return
        try:
            with anyio.CancelScope(shield=True):
                if await self._gone(_REAP) is None:
                    self._leave.detach()
                    _destroy(self._popen, self._stdout, self._stderr, self._reading, 0)
        finally:
            self._leave()

    async def _readable(self) -> bool:
        with anyio.move_on_after(_STALL):
            await anyio.wait_readable(self._stdout)
            return True
        return False

    async def _gone(self, seconds: float) -> int | None:
        """As `gone()`, while other tasks run."""
        for pause in pauses(seconds):
            if (returncode := reap(self._popen)) is not None:
                return returncode
            await anyio.sleep(pause)
        return reap(self._popen)

    async def _read_in_thread(self) -> bytes:
        # Abandoned on cancellation: the kill that follows ends the read, and `_destroy` waits for the lock.
        limiter = anyio.CapacityLimiter(1)
        return await anyio.to_thread.run_sync(self._read_locked, abandon_on_cancel=True, limiter=limiter)

    def _read_locked(self) -> bytes:
        with self._reading:
            return self._stdout.read(_CHUNK)


class BlockingChild(_Child):
    """rg for a thread; killed when `timeout` seconds have passed since `begun`, on the clock of `time.monotonic()`.

    Attributes:
        timed_out: Whether it was.
    """

    def __init__(self, binary: RgBinary, command: Command, timeout: float | None, begun: float) -> None:
        super().__init__(binary, command)
        self._timeout = timeout
        self._deadline = math.inf if timeout is None else begun + timeout
        self.timed_out = False
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if self._timeout is not None and not _POLLS_PIPES:
            self._timer = threading.Timer(max(self._deadline - time.monotonic(), 0), self._expire)
            self._timer.daemon = True
            self._timer.start()
        return self

    def read(self, *, whole: bool = False) -> bytes:
        """The next bytes of stdout; empty at its end, or when the time is over and what was there has been read.

        Args:
            whole: Whether rg has said all that it had to say, so that it is enough to wait for its end.
        """
        if not _POLLS_PIPES:
            return self._stdout.read(_CHUNK)
        while (left := self._deadline - time.monotonic()) >= 0:
            if self._poll(min(left, _STALL)):
                return self._stdout.read(_CHUNK)
            if left > _STALL and self._has_stalled(whole=whole):
                return b""
        if not self._poll(0) & select.POLLHUP:  # somebody may write more: rg, or what a launcher has started
            self.timed_out = True
            self.kill()
        return self._stdout.read(_CHUNK) if self._poll(0) else b""

    def wait(self) -> Exit:
        """rg's exit, once stdout has ended; an rg that lingers is killed.

        Raises:
            TimeoutError: The time was over before rg had ended.
        """
        if self.timed_out:
            raise TimeoutError(f"rg was ended after timeout={self._timeout} seconds; what it found by then was yielded")
        return self.end()

    def end(self) -> Exit:
        """As `wait()`, also for an rg whose time was over (`timed_out`)."""
        returncode = gone(self._popen, _EXIT_GRACE)
        if lingers := returncode is None:
            self.kill()
            returncode = gone(self._popen, _REAP)
        return self._exit(returncode, lingers=lingers)

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._leave()

    def _expire(self) -> None:  # where a thread reads
        if peek(self._popen) is None:
            self.timed_out = True
            self.kill()

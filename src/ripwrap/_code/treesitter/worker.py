"""Split files at their definitions in a worker process, because hostile source may make a parser hang or crash."""

import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from typing import IO

from ripwrap._code.treesitter.chunker import syntax_chunks
from ripwrap._code.treesitter.parser import MAX_FILE_CHARS, is_available, is_supported
from ripwrap._code.windows import Chunk, window_chunks
from ripwrap._concurrency import CANCELLED
from ripwrap._subprocess import Popen, defer_interrupts, kill, start
from ripwrap.errors import Hint, HintedText, RipwrapError

FILE_TIMEOUT = 20.0
"""Seconds for a file, after which the process is killed. `PARSE_TIMEOUT` is not enough: it stops only a parser that
reports progress.
"""

MAX_MEMORY_BYTES = 2 << 30
"""Address space of the process in bytes, on systems that can limit it."""

IDLE_TIMEOUT = 60.0
"""Seconds without a request after which the process is ended. It is kept so long because it starts slowly."""

_START_TIMEOUT = 30.0
_ALARM_MARGIN = 60.0
"""Seconds after its idle timeout at which the process ends itself, because its parent did not.

They are so many that the alarm never ends a process that has a request.
"""
_POLL_INTERVAL = 0.05
"""Seconds between two checks for a timeout or cancellation."""
_HEADER = struct.Struct(">II")
_READY = b"ready"
_INHERITED_VARIABLES = frozenset(
    (
        *("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),  # to start Python
        *("PROCESSOR_ARCHITECTURE", "PROCESSOR_ARCHITEW6432"),  # Windows' `platform.machine()`, to choose a grammar
        *("LANG", "TMPDIR", "TEMP", "TMP"),
        *(
            "HOME",
            "USERPROFILE",
            "XDG_CACHE_HOME",
            "SEMBLE_GRAMMARS_CACHE_DIR",
        ),  # to unpack grammars
    )
)
"""Environment variables that the process inherits. It inherits no others, which may hold keys, because hostile source
may take control of a parser.
"""
_WORKER_CODE = "from ripwrap._code.treesitter.worker import serve; serve({idle!r})"


class SyntaxChunker:
    """Splitter that runs the parser in a worker process, for one file at a time.

    A file at which the process hangs or crashes is split into windows. The process is started for the first file that
    is to be parsed, and again after it was lost. It ends with `close()`, with this object, with the process that
    started it, after a time without work, and as soon as the task that waits for the chunks is cancelled (`CANCELLED`).
    A lock lets one thread use the process at a time. After a fork, the child starts a worker process of its own.

    Each index has a splitter of its own. So no index waits for the files of another index, or loses its process because
    of such a file.
    """

    def __init__(self, *, seconds: float = FILE_TIMEOUT, idle: float = IDLE_TIMEOUT) -> None:
        """Set the limits; the process is started for the first file.

        Args:
            seconds: Time limit for a file.
            idle: Seconds without a file after which the process is ended.
        """
        self._worker = _Worker(seconds, idle)
        weakref.finalize(self, self._worker.kill)  # also called when the interpreter ends

    def chunks_of(self, path: str, text: str) -> list[Chunk]:
        """Return `syntax_chunks()` of a file, or windows if that fails.

        Raises:
            RipwrapError: The process cannot be started.
            TimeoutError: The task that waits for the chunks was cancelled.
        """
        if len(text) > MAX_FILE_CHARS or not is_available() or not is_supported(path, text):
            return list(window_chunks(text))
        answer = self._worker.request(path.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass"))
        if answer is None:
            return list(window_chunks(text))
        return [Chunk(*fields) for fields in json.loads(answer)]

    def close(self) -> None:
        """End the process; the next file starts another one."""
        self._worker.close()


class _Worker:
    """The worker process, with a thread that ends it when it is idle.

    The thread and the finalizer refer to this object; if they referred to the `SyntaxChunker`, it would never be
    collected.
    """

    def __init__(self, seconds: float, idle: float) -> None:
        self._seconds = seconds
        self._idle = idle
        self._lock = threading.RLock()  # the garbage collector may call `kill()` while this thread holds it
        self._process: Popen | None = None
        self._ended = threading.Event()
        self._used = 0.0
        _WORKERS.add(self)

    def request(self, path: bytes, text: bytes) -> bytes | None:
        """Return the answer for a file, or `None` if the process was lost.

        Raises:
            RipwrapError: The process cannot be started.
            TimeoutError: The task that waits for the answer was cancelled.
        """
        with self._lock:
            try:
                if self._process is not None and not self._is_usable(self._process):
                    self.close()
                if self._process is None:
                    self._start()
                answer = self._exchange(_HEADER.pack(len(path), len(text)) + path + text, self._seconds)
            except BaseException:  # after a Ctrl-C, an answer is still in the pipe
                self.close()
                raise
            if answer is None:
                self.close()
                _check_cancelled()
            self._used = time.monotonic()
            return answer

    def _is_usable(self, process: Popen) -> bool:
        # The process may have died, e.g. for lack of memory. If this process was stopped (SIGSTOP), the thread that
        # ends an idle worker is late, and the alarm of the worker may go off soon.
        return process.poll() is None and time.monotonic() - self._used <= self._idle

    def close(self) -> None:
        """End the process after the current request."""
        with self._lock:
            process, self._process = self._process, None
            self._ended.set()
            if process is not None:
                kill(process)
                _close_pipes(process)
                process.wait()

    def kill(self) -> None:
        """End the process at once, even during a request, e.g. of a daemon thread at exit."""
        if (process := self._process) is not None:
            kill(process)
        self.close()

    def abandon(self) -> None:
        """Forget the process in a forked child, because it is a child of the parent only."""
        # New locks, because the copied ones may be held by a thread that the fork did not copy.
        self._lock, self._ended = threading.RLock(), threading.Event()
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # so that `Popen` does not wait for it
            _close_pipes(process)

    def _start(self) -> None:
        with defer_interrupts():
            self._process = _start_process(self._idle)
        if self._exchange(b"", _START_TIMEOUT) != _READY:
            code = self._process.wait()
            _check_cancelled()
            raise _start_error(f"it ended with {code}")
        self._used, self._ended = time.monotonic(), threading.Event()
        # A daemon thread, so that the program can end without waiting for it.
        threading.Thread(
            target=self._close_when_idle, args=(self._ended,), name="ripwrap-parser-idle", daemon=True
        ).start()

    def _close_when_idle(self, ended: threading.Event) -> None:
        while not ended.wait(max(self._used + self._idle - time.monotonic(), 0)):
            with self._lock:
                if not ended.is_set() and time.monotonic() - self._used >= self._idle:
                    self.close()

    def _exchange(self, request: bytes, seconds: float) -> bytes | None:
        """Send a request and return the answer; on a timeout or cancellation, kill the process and return None."""
        # Reads and writes of pipes block, and on Windows they cannot have a time limit. So a thread watches the clock
        # and kills the process, which ends them.
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        done, cancelled = threading.Event(), CANCELLED.get()

        def watch() -> None:
            until = time.monotonic() + seconds
            while not done.wait(_POLL_INTERVAL):
                if cancelled.is_set() or time.monotonic() > until:
                    kill(process)
                    return

        thread = threading.Thread(target=watch, name="ripwrap-parser-watch")
        thread.start()
        try:
            _write(process.stdin, request)
            return _read_frame(process.stdout)
        except OSError:
            return None
        finally:
            done.set()
            thread.join()


_WORKERS: "weakref.WeakSet[_Worker]" = weakref.WeakSet()


def _abandon_all() -> None:
    for worker in list(_WORKERS):
        worker.abandon()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_abandon_all)


def _check_cancelled() -> None:
    if CANCELLED.get().is_set():
        raise TimeoutError("splitting the file was cancelled")


def _close_pipes(process: Popen) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _start_error(why: str) -> RipwrapError:
    return RipwrapError(
        HintedText(
            f"the process that splits files at their definitions does not work: {why}; pass ",
            Hint("chunker", "windows"),
            " to split by lines",
        )
    )


def serve(idle: float) -> None:
    """Answer requests on stdin until it ends: the worker's side of `SyntaxChunker`.

    Args:
        idle: Seconds without a request after which the parent ends this process. If the parent was killed, and a fork
            of it still holds the pipe, this process ends itself later, on systems with alarms.
    """
    if sys.platform != "win32":
        import resource

        with suppress(OSError, ValueError):  # a lower limit is already set
            resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    answer = _READY
    while True:
        answers.write(_HEADER.pack(len(answer), 0) + answer)
        answers.flush()
        _set_alarm(idle + _ALARM_MARGIN)
        header = requests.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        _set_alarm(2 * FILE_TIMEOUT)  # nothing else ends a hanging parser if the parent was killed
        path, text = (requests.read(size).decode("utf-8", "surrogatepass") for size in _HEADER.unpack(header))
        answer = json.dumps(syntax_chunks(path, text)).encode()


def _set_alarm(seconds: float) -> None:
    """Let the system end this process after some seconds, even in a parser; a new alarm replaces the last one."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _start_process(idle: float) -> Popen:
    environment = {
        name: value for name, value in os.environ.items() if name in _INHERITED_VARIABLES or name.startswith("LC_")
    }
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        # The process has its own process group, so that a terminal's Ctrl-C does not end it: its file would then be
        # split into windows. The pipes have no buffers, because a forked child would write the buffered bytes again.
        return start(
            [sys.executable, "-P", "-c", _WORKER_CODE.format(idle=idle)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
    except OSError as error:
        raise _start_error(f"{sys.executable} cannot be started: {error.strerror}") from error


def _write(stream: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]


def _read(stream: IO[bytes], size: int) -> bytes | None:
    """Return `size` bytes, or `None` if the stream has fewer."""
    parts: list[bytes] = []
    while size:
        part = stream.read(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _read_frame(stream: IO[bytes]) -> bytes | None:
    header = _read(stream, _HEADER.size)
    return None if header is None else _read(stream, _HEADER.unpack(header)[0])

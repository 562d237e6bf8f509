"""Split files at their definitions in a worker process, because hostile source may make a parser hang or crash."""

import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import IO

from ripwrap._code.treesitter.chunker import syntax_chunks
from ripwrap._code.treesitter.parser import MAX_FILE_CHARS, is_available, is_supported
from ripwrap._code.windows import Chunk, window_chunks
from ripwrap._concurrency import CANCELLED
from ripwrap.errors import Hint, HintedText, RipwrapError

FILE_TIMEOUT = 20.0
"""Seconds for a file, after which the process is killed; `PARSE_TIMEOUT` needs a parser that reports progress."""

MAX_MEMORY_BYTES = 2 << 30
"""Address space of the process, on systems that can limit it."""

_START_TIMEOUT = 30.0
_IDLE_TIMEOUT = 60.0
"""Seconds without a request after which the process ends, on systems with alarms."""
_REUSE_TIMEOUT = 30.0
"""Seconds after which an idle process is replaced; below `_IDLE_TIMEOUT`, so that it never ends during a request."""
_POLL_INTERVAL = 0.05
"""Seconds between two checks for a timeout or cancellation."""
_HEADER = struct.Struct(">II")
_READY = b"ready"
_INHERITED_VARIABLES = frozenset(
    (
        *("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),  # to start
        *("LANG", "TMPDIR", "TEMP", "TMP"),
        *(
            "HOME",
            "USERPROFILE",
            "XDG_CACHE_HOME",
            "SEMBLE_GRAMMARS_CACHE_DIR",
        ),  # to unpack grammars
    )
)
"""Environment variables of the process. It gets no keys, because hostile source may take control of a parser."""
_WORKER_CODE = "from ripwrap._code.treesitter.worker import serve; serve()"


class SyntaxChunker:
    """Splitter of files that runs the parser in a worker process, one file after the other.

    A file at which the process hangs or crashes is split into windows. The process starts with the first file that has
    to be parsed, and again after it was lost. It ends with `close()`, with the process that started it, after a minute
    without work, and at once if the task that waits for the chunks is cancelled (`CANCELLED`). A lock lets one
    thread use it at a time.
    """

    def __init__(self, *, seconds: float = FILE_TIMEOUT) -> None:
        """Start no process yet.

        Args:
            seconds: Time limit for a file.
        """
        self._seconds = seconds
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._used = 0.0

    def chunks_of(self, path: str, text: str) -> list[Chunk]:
        """Return `syntax_chunks()` of a file, or windows if that fails.

        Raises:
            RipwrapError: The process cannot be started.
            TimeoutError: The task that waits for the chunks was cancelled.
        """
        if len(text) > MAX_FILE_CHARS or not is_available() or not is_supported(path, text):
            return list(window_chunks(text))
        with self._lock:
            answer = self._request(path.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass"))
        if answer is None:
            return list(window_chunks(text))
        return [Chunk(*fields) for fields in json.loads(answer)]

    def close(self) -> None:
        """End the process; the next file starts another one."""
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            if self._owner == os.getpid():
                process.kill()
                with suppress(OSError):  # the rest of a request that it did not read
                    process.communicate()
                return
            # After a fork, the process is a child of the parent alone: only close the copies of its pipes.
            process.returncode = 0
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def __del__(self) -> None:
        self.close()

    def _request(self, path: bytes, text: bytes) -> bytes | None:
        if self._process and (self._owner != os.getpid() or time.monotonic() - self._used > _REUSE_TIMEOUT):
            self.close()
        answer = self._send(_HEADER.pack(len(path), len(text)) + path + text)
        self._used = time.monotonic()
        if answer is None:
            self.close()
            if CANCELLED.get().is_set():
                raise TimeoutError("splitting the file was cancelled")
        return answer

    def _send(self, request: bytes) -> bytes | None:
        if self._process is None:
            self._process, self._owner = _start_process(), os.getpid()
            if self._exchange(self._process, b"", _START_TIMEOUT) != _READY:
                code = self._process.wait()
                if CANCELLED.get().is_set():
                    return None
                self.close()
                raise _start_error(f"it ended with {code}")
        return self._exchange(self._process, request, self._seconds)

    def _exchange(self, process: "subprocess.Popen[bytes]", request: bytes, seconds: float) -> bytes | None:
        """Send a request and return the answer; kill the process, and return None, on a timeout or cancellation."""
        # Reading and writing pipes blocks and cannot be given a time limit on Windows. A thread watches the clock and
        # kills the process, which ends both.
        done, cancelled = threading.Event(), CANCELLED.get()

        def watch() -> None:
            until = time.monotonic() + seconds
            while not done.wait(_POLL_INTERVAL):
                if cancelled.is_set() or time.monotonic() > until:
                    process.kill()
                    return

        thread = threading.Thread(target=watch, name="ripwrap-parser-watch")
        thread.start()
        try:
            if process.stdin is None or process.stdout is None:
                return None
            process.stdin.write(request)
            process.stdin.flush()
            return _read_frame(process.stdout)
        except OSError:
            return None
        finally:
            done.set()
            thread.join()


def _start_error(why: str) -> RipwrapError:
    return RipwrapError(
        HintedText(
            f"the process that splits files at their definitions does not work: {why}; pass ",
            Hint("chunker", "windows"),
            " to split by lines",
        )
    )


def serve() -> None:
    """Answer requests on stdin until it ends: the worker's side of `SyntaxChunker`."""
    with suppress(ImportError, OSError, ValueError):  # Windows has no limits; or a lower one is set already
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    answer = _READY
    while True:
        answers.write(_HEADER.pack(len(answer), 0) + answer)
        answers.flush()
        _set_alarm(_IDLE_TIMEOUT)
        header = requests.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        _set_alarm(2 * FILE_TIMEOUT)  # if the parent was killed, nothing else ends a hanging parser
        path, text = (requests.read(size).decode("utf-8", "surrogatepass") for size in _HEADER.unpack(header))
        answer = json.dumps(syntax_chunks(path, text)).encode()


def _set_alarm(seconds: float) -> None:
    """Let the system end this process after a time, even inside a parser; another call replaces the alarm."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _start_process() -> subprocess.Popen[bytes]:
    environment = {
        name: value for name, value in os.environ.items() if name in _INHERITED_VARIABLES or name.startswith("LC_")
    }
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _WORKER_CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
    except OSError as error:
        raise _start_error(f"{sys.executable} cannot be started: {error.strerror}") from error


def _read_frame(stream: IO[bytes]) -> bytes | None:
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    size, _ = _HEADER.unpack(header)
    answer = stream.read(size)
    return answer if len(answer) == size else None

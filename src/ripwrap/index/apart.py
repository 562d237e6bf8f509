"""Chunks made in a process of their own, because hostile source may make a parser hang or crash."""

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

from ripwrap._ranking.chunks import Chunk
from ripwrap._ranking.chunks import chunks_of as windows_of
from ripwrap.binary.probe import CANCELLED
from ripwrap.errors import RipwrapError
from ripwrap.index.syntax import MOST, available, chunks_of, is_known

SECONDS = 20.0
"""How long a file may take before its chunks are windows of lines; the parser's own limit is for what it notices."""

MEMORY = 2 << 30
"""Bytes of the process, where the system can limit them."""

_START = 30.0  # Seconds until it is ready.
_IDLE = 60.0  # Seconds after which a process that nobody asks ends by itself, where the system has alarms,
_TRUSTED = 30.0  # and after which it is not asked any more, so that it never ends with a question.
_LOOK = 0.05  # Seconds between two looks at whether anybody still waits.
_HEAD = struct.Struct(">II")
_READY = b"ready"
_INHERITED = frozenset(
    (
        *("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),  # to start
        *("LANG", "TMPDIR", "TEMP", "TMP"),
        *("HOME", "USERPROFILE", "XDG_CACHE_HOME", "SEMBLE_GRAMMARS_CACHE_DIR"),  # where the grammars are unpacked
    )
)
"""What of the environment it has: no keys, as hostile source may make a parser do what it shall not."""
_SERVE = "from ripwrap.index.apart import serve; serve()"


class Chunker:
    """Makes the chunks of one file after the other; a file that its process hangs at or dies of is cut into windows.

    The process is started with the first file that has to be parsed, and again after it was lost. It ends with
    `close()`, with what started it, after a minute without work, and at once if the task that waits for its chunks is
    cancelled (`CANCELLED`). Threads take turns.
    """

    def __init__(self, *, seconds: float = SECONDS) -> None:
        """Start nothing yet.

        Args:
            seconds: How long a file may take.
        """
        self._seconds = seconds
        self._turn = threading.RLock()
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._used = 0.0

    def chunks_of(self, path: str, text: str) -> list[Chunk]:
        """What `syntax.chunks_of()` gives, if it gives anything.

        Raises:
            RipwrapError: The process cannot be started.
            TimeoutError: Nobody waits any more.
        """
        if len(text) > MOST or not available() or not is_known(path, text):
            return list(windows_of(text))
        with self._turn:
            answer = self._ask(path.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass"))
        if answer is None:
            return list(windows_of(text))
        return [Chunk(*fields) for fields in json.loads(answer)]

    def close(self) -> None:
        """End the process; the next file starts another."""
        with self._turn:
            child, self._child = self._child, None
            if child is None:
                return
            if self._owner == os.getpid():
                child.kill()
                with suppress(OSError):  # what it did not read
                    child.communicate()
                return
            # This process is a copy of the one that has started it.
            child.returncode = 0
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()

    def __del__(self) -> None:
        self.close()

    def _ask(self, path: bytes, text: bytes) -> bytes | None:
        if self._child and (self._owner != os.getpid() or time.monotonic() - self._used > _TRUSTED):
            self.close()
        answer = self._answer(_HEAD.pack(len(path), len(text)) + path + text)
        self._used = time.monotonic()
        if answer is None:
            self.close()
            if CANCELLED.get().is_set():
                raise TimeoutError("nobody waits for these chunks any more")
        return answer

    def _answer(self, question: bytes) -> bytes | None:
        if self._child is None:
            self._child, self._owner = _started(), os.getpid()
            if self._guarded(self._child, b"", _START) != _READY:
                code = self._child.wait()
                if CANCELLED.get().is_set():
                    return None
                self.close()
                raise _unusable(f"it ended with {code}")
        return self._guarded(self._child, question, self._seconds)

    def _guarded(self, child: "subprocess.Popen[bytes]", question: bytes, seconds: float) -> bytes | None:
        """What it answers, unless it takes too long, or nobody waits any more: it is killed then."""
        done, cancelled = threading.Event(), CANCELLED.get()

        def guard() -> None:
            until = time.monotonic() + seconds
            while not done.wait(_LOOK):
                if cancelled.is_set() or time.monotonic() > until:
                    child.kill()
                    return

        thread = threading.Thread(target=guard)
        thread.start()
        try:
            if child.stdin is None or child.stdout is None:
                return None
            child.stdin.write(question)
            child.stdin.flush()
            return _framed(child.stdout)
        except OSError:
            return None
        finally:
            done.set()
            thread.join()


def _unusable(why: str) -> RipwrapError:
    return RipwrapError(
        f"the process that cuts files at their definitions cannot be used: {why}; pass chunker='windows' to do without"
    )


def serve() -> None:
    """Answer with chunks until there is nothing more to read: the other side of `Chunker`."""
    with suppress(ImportError, OSError, ValueError):  # not on Windows; or less is allowed already
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    answer = _READY
    while True:
        answers.write(_HEAD.pack(len(answer), 0) + answer)
        answers.flush()
        _end_after(_IDLE)
        head = requests.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return
        _end_after(2 * SECONDS)  # if who asks is no more, nobody else ends it
        path, text = (requests.read(size).decode("utf-8", "surrogatepass") for size in _HEAD.unpack(head))
        answer = json.dumps(chunks_of(path, text)).encode()


def _end_after(seconds: float) -> None:
    """Have the system end this process, whatever it does then, unless it is told another time before."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _started() -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith("LC_")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
    except OSError as error:
        raise _unusable(f"{sys.executable} cannot be started: {error.strerror}") from error


def _framed(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    size, _ = _HEAD.unpack(head)
    answer = stream.read(size)
    return answer if len(answer) == size else None

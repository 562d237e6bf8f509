"""Chunks made in a process of their own, because hostile source may make a parser hang or crash."""

import json
import os
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import IO, Self

from ripwrap._ranking.chunks import Chunk
from ripwrap._ranking.chunks import chunks_of as windows_of
from ripwrap.index.syntax import MOST, available, chunks_of, is_known

SECONDS = 20.0
"""How long a file may take before its chunks are windows of lines; the parser's own limit is for what it notices."""

MEMORY = 2 << 30
"""Bytes of the process, where the system can limit them."""

_HEAD = struct.Struct(">II")
_SERVE = "from ripwrap.index.apart import serve; serve()"


class Chunker:
    """Makes the chunks of one file after the other; a file that its process hangs at or dies of is cut into windows.

    The process is started with the first file that has to be parsed, and again after it was lost. It is for one thread
    at a time, and ends with the block.
    """

    def __init__(self, *, seconds: float = SECONDS) -> None:
        """Start nothing yet.

        Args:
            seconds: How long a file may take.
        """
        self._seconds = seconds
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def chunks_of(self, path: str, text: str) -> list[Chunk]:
        """What `syntax.chunks_of()` gives, if it gives anything."""
        if len(text) > MOST or not available() or not is_known(path, text):
            return list(windows_of(text))
        answer = self._ask(path.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass"))
        if answer is None:
            return list(windows_of(text))
        return [Chunk(*fields) for fields in json.loads(answer)]

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            with suppress(OSError):  # what it did not read
                child.communicate()

    def _ask(self, path: bytes, text: bytes) -> bytes | None:
        child = self._child = self._child or _started()
        timer = threading.Timer(self._seconds, child.kill)
        timer.start()
        try:
            if child.stdin is None or child.stdout is None:
                return None
            child.stdin.write(_HEAD.pack(len(path), len(text)) + path + text)
            child.stdin.flush()
            answer = _framed(child.stdout)
        except OSError:
            answer = None
        finally:
            timer.cancel()
        if answer is None:
            self.close()
        return answer


def serve() -> None:
    """Answer with chunks until there is nothing more to read: the other side of `Chunker`."""
    with suppress(ImportError, OSError, ValueError):  # not on Windows; or less is allowed already
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(head := requests.read(_HEAD.size)) == _HEAD.size:
        path, text = (requests.read(size).decode("utf-8", "surrogatepass") for size in _HEAD.unpack(head))
        answer = json.dumps(chunks_of(path, text)).encode()
        answers.write(_HEAD.pack(len(answer), 0) + answer)
        answers.flush()


def _started() -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _framed(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    size, _ = _HEAD.unpack(head)
    answer = stream.read(size)
    return answer if len(answer) == size else None

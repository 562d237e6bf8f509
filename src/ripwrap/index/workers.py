"""Read and split the files of a large refresh in worker processes, because Python uses one CPU per process.

The workers get paths, and send back the data that the index stores for each file. This process writes the data in the
order of the paths, so the index is the same as without workers. Only this process opens the index, so a worker may be
killed at any time. If a worker ends or cannot be started, this process splits its files.
"""

import json
import logging
import os
import queue
import sys
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from contextvars import copy_context
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ripwrap._code.treesitter.chunker import chunker_version, syntax_chunks
from ripwrap._code.treesitter.worker import FILE_TIMEOUT, IDLE_TIMEOUT
from ripwrap._code.windows import WINDOW_VERSION, window_chunks
from ripwrap._concurrency import CANCELLED, Cancellation
from ripwrap._ranking.document import MAX_FILE_BYTES
from ripwrap._subprocess.worker import StartError, WorkerProcess, serve_requests
from ripwrap.index.splitting import TOKENIZER, Chunker, Position, Request, SplitFile, SplitText, split_file

MAX_PROCESSES = 4
"""Maximum number of processes by default; more would wait for the process that writes."""

MIN_BYTES = 4_000_000
"""Size in bytes of the files of a refresh above which processes are started: about half a second of work."""

_BATCH_BYTES = 400_000
_BATCH_FILES = 200
_WAIT_SECONDS = 0.05
_DIGEST_BYTES = 16
_LOGGER = logging.getLogger("ripwrap")
_INSTALLED = os.stat(__file__).st_mtime_ns if os.path.exists(__file__) else 0
"""Time at which this module was installed, in nanoseconds."""
_WITHOUT_TEXT = ("binary", "unreadable", "gone")
_CODE = "from ripwrap.index.workers import serve; serve({version!r})"


class SizedRequest(NamedTuple):
    """A file to read, and its size in bytes."""

    request: Request
    size: int


@dataclass(frozen=True, slots=True)
class Splitter:
    """Reader and splitter of the files of a refresh.

    Attributes:
        chunker: Splits the texts.
        processes: Maximum number of processes; 0 uses none. `None` is the number of CPUs, up to `MAX_PROCESSES`.
        least: Size in bytes of the files of a refresh above which processes are started.
    """

    chunker: Chunker
    processes: int | None = None
    least: int = MIN_BYTES

    def split(self, root: str, requests: Iterable[SizedRequest], total: int, *, follow: bool) -> Generator[SplitFile]:
        """Yield the results of `split_file()` for all files, in order. The caller must close the generator.

        Args:
            root: Directory of the paths.
            requests: The files; some are taken from the iterator in advance.
            total: Size of all files, in bytes.
            follow: Follow links.
        """

        def split(request: Request) -> SplitFile:
            return split_file(root, request, follow=follow, chunker=self.chunker)

        count = usable_cpus() if self.processes is None else self.processes
        if total < self.least or count < (2 if self.processes is None else 1) or not _can_start():
            yield from (split(request) for request, _ in requests)
            return
        with CANCELLED.get().child(), closing(_Pool(count, self.chunker)) as pool:
            yield from pool.split(root, requests, split, follow=follow)


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use, up to `MAX_PROCESSES`."""
    # On systems without affinity, such as macOS, all CPUs are usable.
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MAX_PROCESSES)


def _can_start() -> bool:
    """Return True if `sys.executable` is Python; in a frozen program, it would be the program itself."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


class _Pool:
    """Processes that split batches of files, each driven by a thread."""

    def __init__(self, count: int, chunker: Chunker) -> None:
        """Set the number of processes; they are started when they are needed.

        Args:
            count: Number of processes.
            chunker: Splits the texts.
        """
        code = _CODE.format(version=_version(chunker.version))
        workers = [WorkerProcess(code, FILE_TIMEOUT, IDLE_TIMEOUT) for _ in range(count)]
        self._workers = workers
        self._free: queue.SimpleQueue[WorkerProcess] = queue.SimpleQueue()
        for worker in workers:
            self._free.put(worker)
            weakref.finalize(self, worker.kill)  # called when the interpreter ends, too
        self._threads = ThreadPoolExecutor(count, "ripwrap-worker")
        self._failed = False
        self._ended = Cancellation()

    def close(self) -> None:
        """End the processes and threads at once."""
        self._ended.set()  # ends the process of a request that is under way, even if it is being started
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.kill()

    def split(
        self, root: str, requests: Iterable[SizedRequest], split: Callable[[Request], SplitFile], *, follow: bool
    ) -> Iterator[SplitFile]:
        """Yield the results of `split` for all files, in order."""
        context = copy_context()
        context.run(CANCELLED.set, self._ended)
        batches = _batches(requests)
        pending: deque[tuple[list[Request], Future[list[bytes] | None]]] = deque()
        while True:
            for batch in islice(batches, 2 * len(self._workers) - len(pending)):
                message = _encode_request(root, batch, follow=follow)
                pending.append((batch, self._threads.submit(context.copy().run, self._ask, message)))
            if not pending:
                return
            batch, future = pending.popleft()
            while not wait([future], _WAIT_SECONDS).done:  # Windows delivers a Ctrl-C only between two waits
                _check_cancelled()
            yield from _answers(batch, future.result(), split)

    def _ask(self, message: list[bytes]) -> list[bytes] | None:
        """Send a batch to a free process and return its answer, or `None` if the process ended before answering."""
        if self._failed or self._ended.is_set():
            return None
        worker = self._free.get()
        try:
            return worker.request(message)
        except StartError as error:
            if not self._failed:
                self._failed = True
                _LOGGER.info("files are split in this process only: %s", error)
            return None
        finally:
            self._free.put(worker)


def _check_cancelled() -> None:
    if CANCELLED.get().is_set():
        raise TimeoutError("the call of the index was cancelled")


def _answers(
    batch: Sequence[Request], message: list[bytes] | None, split: Callable[[Request], SplitFile]
) -> Iterator[SplitFile]:
    """Yield the files of a batch; if the answer is missing or damaged, split them in this process."""
    files = None if message is None else _decode_answer(message, batch)
    for request in batch if files is None else ():
        yield split(request)
    yield from files or ()


def _batches(requests: Iterable[SizedRequest]) -> Iterator[list[Request]]:
    batch: list[Request] = []
    bytes_of_batch = 0
    for request, size in requests:
        batch.append(request)
        bytes_of_batch += min(size, MAX_FILE_BYTES)
        if bytes_of_batch >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, bytes_of_batch = [], 0
    if batch:
        yield batch


def _version(chunker: str) -> list[str]:
    """Return the versions that must be equal in both processes. They differ after an upgrade of the package."""
    return [str(_INSTALLED), TOKENIZER, chunker]


# Messages are JSON and bytes, and not pickles, which could run code: hostile source may take control of a parser.


def _encode_request(root: str, batch: Iterable[Request], *, follow: bool) -> list[bytes]:
    files = [(path, [digest.hex() for digest in known]) for path, known in batch]
    return [json.dumps([root, follow, files]).encode()]


def _decode_request(message: Sequence[bytes]) -> tuple[str, bool, list[Request]]:
    root, follow, files = json.loads(message[0])
    return root, follow, [Request(path, [*map(bytes.fromhex, known)]) for path, known in files]


def _encode_answer(files: Sequence[SplitFile]) -> list[bytes]:
    texts = [one.text for one in files if one.text is not None]
    header = [
        (stamp, note, why, digest.hex(), text and (text.positions, text.names, text.lengths))
        for stamp, note, why, digest, text in files
    ]
    words = "\n".join(words for text in texts for words in text.words)  # the words have no line end; see `fold()`
    digests = b"".join(digest for text in texts for digest in text.digests)
    return [json.dumps(header).encode(), digests, words.encode()]


def _decode_answer(message: Sequence[bytes], batch: Sequence[Request]) -> list[SplitFile] | None:
    """Decode the files of an answer; return `None` if it is malformed."""
    with suppress(ValueError, TypeError):
        header, digests, joined = message
        words, at = joined.decode().split("\n"), 0
        files: list[SplitFile] = []
        for request, (stamp, note, why, hexadecimal, columns) in zip(batch, json.loads(header), strict=True):
            digest, text = bytes.fromhex(hexadecimal), None
            if columns is None:
                if note not in _WITHOUT_TEXT and digest not in request.known:
                    return None
            else:
                positions, names, lengths = columns
                end = at + len(positions)
                text = SplitText(
                    [Position(*position) for position in positions],
                    [digests[n * _DIGEST_BYTES : (n + 1) * _DIGEST_BYTES] for n in range(at, end)],
                    names,
                    words[at:end],
                    lengths,
                )
                at = end
            files.append(SplitFile(tuple(stamp), note, why, digest, text))
        if at == len(digests) // _DIGEST_BYTES and len(words) == max(at, 1):
            return files
    return None


def serve(version: Sequence[str]) -> None:
    """Answer requests on stdin until stdin ends; this runs in the worker process.

    Args:
        version: Version of the chunker in the calling process; this process ends if it has no chunker of this version.
    """
    windows = Chunker(WINDOW_VERSION, lambda _, text: window_chunks(text))
    chunkers = (windows, Chunker(chunker_version(), syntax_chunks))
    chunker = next(one for one in chunkers if _version(one.version) == list(version))

    def answer(message: list[bytes]) -> list[bytes]:
        root, follow, batch = _decode_request(message)
        return _encode_answer([split_file(root, request, follow=follow, chunker=chunker) for request in batch])

    serve_requests(answer, FILE_TIMEOUT, IDLE_TIMEOUT)

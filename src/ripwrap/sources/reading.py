"""Read documents in a separate process, with limits on memory and time, because a document may be hostile.

The process is started for the first document that is not in the cache, and ends with the search. If a document takes
too long, needs too much memory or makes the process crash, an error is recorded for the document, and a new process
reads the next document.
"""

import hashlib
import json
import os
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from ripwrap._system.concurrency import CANCELLED, defer_interrupts, replace_file
from ripwrap._system.subprocess.worker import StartError, WorkerProcess, serve_requests
from ripwrap._text import in_seconds, plural, raw_bytes
from ripwrap.errors import Hint, HintedText, RipwrapError
from ripwrap.models import Location
from ripwrap.sources.base import Format

_VERSION = "1"
"""Version of the file format. The names of the files depend on it, so files of other versions are never read."""

MAX_BYTES = 256 << 20
"""Maximum size of the cache in bytes. After a search, the least recently used texts are deleted down to this size."""

_MAX_CACHED_BYTES = MAX_BYTES // 8
"""Maximum size in bytes of a text that is stored."""

_LEFT_OVER_SECONDS = 3600
"""Age in seconds above which a temporary file is deleted, because a killed process must have left it."""

_TEMPORARY = "writing-"


class TextCache:
    """Cache of texts in files. Errors are ignored: a text that cannot be read or written counts as not stored."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        """Set the directory, which is made when the first text is stored."""
        self._folder = folder
        self._max_bytes = max_bytes
        self._has_grown = False

    @staticmethod
    def key(reader: str, content: bytes) -> str:
        """Return the key of the text of a document: a hash, which is also the name of the file in the cache."""
        digest = hashlib.sha256(f"{_VERSION}\0{reader}\0".encode())
        digest.update(content)
        return digest.hexdigest()

    def get(self, key: str) -> bytes | None:
        """Return the text with this key; `None` if no text is stored, or if the stored text is damaged."""
        path = self._folder / key
        try:
            stored = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        digest, text = stored[:32], stored[32:]
        return text if hashlib.sha256(text).digest() == digest else None

    def put(self, key: str, text: bytes) -> None:
        """Store the text with this key, unless it is too large."""
        if len(text) > min(_MAX_CACHED_BYTES, self._max_bytes):
            return
        with suppress(OSError):
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with defer_interrupts():
                number, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=self._folder)
                try:
                    with open(number, "wb") as file:
                        file.write(hashlib.sha256(text).digest())
                        file.write(text)
                    replace_file(Path(name), self._folder / key)
                finally:
                    Path(name).unlink(missing_ok=True)
            self._has_grown = True

    def trim(self) -> None:
        """Delete temporary files of killed processes and, if the cache is too large, the least recently used texts."""
        if not self._has_grown:
            return
        self._has_grown = False
        with suppress(OSError):
            files = [(entry.stat(), entry) for entry in os.scandir(self._folder) if entry.is_file()]
            total = sum(state.st_size for state, _ in files)
            now = time.time()
            for state, entry in sorted(files, key=lambda file: file[0].st_mtime):
                is_left_over = entry.name.startswith(_TEMPORARY) and now - state.st_mtime > _LEFT_OVER_SECONDS
                if total > self._max_bytes or is_left_over:
                    with suppress(OSError):
                        os.unlink(entry.path)
                        total -= state.st_size


DOCUMENT_SECONDS = 30.0
"""Maximum number of seconds for a document. After that, the process is killed."""

MAX_TEXT_BYTES = 64 << 20
"""Maximum size in bytes of the text of a document."""

MAX_PARTS = 100_000
"""Maximum number of parts of a document, with those that cannot be read."""

_MAX_HEAD_BYTES = 16 << 20
"""Maximum size in bytes of the locations and errors of a document, as JSON."""

_IDLE_SECONDS = 60.0
_CODE = "from ripwrap.sources.reading import serve; serve({seconds!r}, {idle!r})"
_MAX_MESSAGE_CHARS = 300


class DocumentError(Exception):
    """Error for a document that cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class DocumentText:
    """Parts and errors of a document that was read."""

    parts: list[tuple[Location, bytes]]
    errors: list[tuple[Location | None, str]]


class DocumentReader:
    """Reader of documents, with a cache of their texts. Use it in one thread at a time; any thread may close it."""

    def __init__(
        self, cache: TextCache | None, *, seconds: float = DOCUMENT_SECONDS, until: float | None = None
    ) -> None:
        """Set the `seconds` for each document, and the time (of `time.monotonic()`) of a `TimeoutError`, `until`.

        The process is started when it is needed.
        """
        self._cache = cache
        self._seconds = seconds
        self._until = until
        self._worker = WorkerProcess(_CODE.format(seconds=seconds, idle=_IDLE_SECONDS), seconds, _IDLE_SECONDS)
        weakref.finalize(self, self._worker.kill)  # called when the interpreter ends, too

    def read(self, wanted: Format, content: bytes) -> DocumentText:
        """Return the text of a document."""
        key = "" if self._cache is None else TextCache.key(wanted.version, content)
        stored = None if self._cache is None else self._cache.get(key)
        if stored is not None:
            size = int.from_bytes(stored[:8], "big")
            return _unpack(stored[8 : 8 + size], stored[8 + size :])
        head, texts = self._request(wanted, content)
        found = _unpack(head, texts)
        if self._cache is not None and not found.errors:
            self._cache.put(key, len(head).to_bytes(8, "big") + head + texts)
        return found

    def close(self) -> None:
        """End the process at once, and trim the cache."""
        self._worker.kill()
        if self._cache is not None:
            self._cache.trim()

    def _request(self, wanted: Format, content: bytes) -> tuple[bytes, bytes]:
        begun = time.monotonic()
        left = self._seconds if self._until is None else min(self._seconds, self._until - begun)
        try:
            with CANCELLED.get().child():
                answer = self._worker.request([wanted.name.encode(), wanted.target.encode(), content], left)
        except StartError as error:
            said = f"the process that reads documents cannot be started: {error}; pass a value of "
            raise RipwrapError(
                HintedText(said, Hint("inside", kind="correct"), " without notebooks and documents")
            ) from error
        now = time.monotonic()
        if self._until is not None and now >= self._until:
            raise TimeoutError("the time limit was reached while a document was read; allow more time")
        if answer is None:
            raise DocumentError(
                f"not searched: the process that reads it was stopped after {in_seconds(self._seconds)}"
                if now - begun >= self._seconds
                else "not searched: the process that reads it crashed, or needed too much memory"
            )
        return answer[0], answer[1]


def serve(seconds: float, idle: float) -> None:
    """Run the worker process of a `DocumentReader`: answer the requests on stdin until stdin ends."""

    def answer(request: list[bytes]) -> list[bytes]:
        sys.stdout = sys.stderr  # the answers go to stdout, where a reader must print nothing
        name, target, content = request
        return extract(Format(name.decode(), "", target.decode()), content)

    serve_requests(answer, seconds, idle)


def extract(wanted: Format, content: bytes) -> list[bytes]:
    """Return the parts and errors of a document, as two byte strings.

    The first is JSON: the errors, and the location and size of each part. The second has the texts of all parts.
    """
    head: list[tuple[dict[str, Any], int]] = []
    errors: list[tuple[dict[str, Any] | None, str]] = []
    texts = bytearray()
    try:
        for number, (location, text) in enumerate(_parts(wanted, content)):
            if number == MAX_PARTS:
                raise ValueError(f"it has more than {plural(MAX_PARTS, 'part')}; the rest was not searched")
            if isinstance(text, Exception):
                errors.append((location.model_dump(exclude_defaults=True), _said(text)))
                continue
            encoded = raw_bytes(text)
            if len(texts) + len(encoded) > MAX_TEXT_BYTES:
                raise ValueError(f"its text is larger than {plural(MAX_TEXT_BYTES, 'byte')}")
            head.append((location.model_dump(mode="json", exclude_defaults=True), len(encoded)))
            texts += encoded
    except Exception as error:  # noqa: BLE001 - a reader of hostile bytes raises anything
        errors.append((None, _said(error)))
    known = json.dumps({"parts": head, "errors": errors}).encode()
    if len(known) > _MAX_HEAD_BYTES:
        said = f"not searched: the names of its parts are larger than {plural(_MAX_HEAD_BYTES, 'byte')}"
        return [json.dumps({"parts": [], "errors": [(None, said)]}).encode(), b""]
    return [known, bytes(texts)]


def _parts(wanted: Format, content: bytes) -> Iterator[tuple[Location, str | Exception]]:
    """Yield the parts of a document, as the adapter of its format yields them."""
    for part in wanted.load()(content):
        match part:
            case (Location(), str() | Exception()):
                yield part
            case _:
                raise TypeError(
                    f"its adapter must yield (Location, str or Exception), got {part!r}"[:_MAX_MESSAGE_CHARS]
                )


def _said(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "reading it needed too much memory"
    if isinstance(error, RecursionError):
        return "broken: it is nested too deeply"
    if isinstance(error, ImportError):
        return f"its adapter cannot be imported: {error}"
    text = " ".join(str(error).split())[:_MAX_MESSAGE_CHARS]
    return text or f"broken: {type(error).__name__}"


def _unpack(head: bytes, texts: bytes) -> DocumentText:
    known = json.loads(head)
    ends = accumulate((size for _, size in known["parts"]), initial=0)
    parts = [
        (Location(**location), texts[start:end])
        for (location, _), (start, end) in zip(known["parts"], pairwise(ends), strict=True)
    ]
    errors = [(None if location is None else Location(**location), text) for location, text in known["errors"]]
    return DocumentText(parts, errors)

"""Read code in a worker process, because hostile source may make a parser hang or crash."""

import json
import math
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from ripwrap._code.outline import CodeNames, Definition, LiteralSpan, Outline
from ripwrap._code.treesitter.merge import Chunk, CodeChunks, named_windows, syntax_chunks
from ripwrap._code.treesitter.occurrences import NamePlace, Places, find_places
from ripwrap._code.treesitter.parser import MAX_FILE_CHARS, check_installed, is_available, is_supported, parse_outline
from ripwrap._system.subprocess.worker import StartError, WorkerProcess, serve_requests
from ripwrap.errors import Hint, HintedText, RipwrapError

FILE_TIMEOUT = 20.0
"""Seconds for a file, after which the process is killed. `PARSE_TIMEOUT` is not enough, because it is checked only when
the parser reports progress, which a hanging parser does not do.
"""

IDLE_TIMEOUT = 60.0
"""Seconds without a request after which the process is ended. The time is long because the process starts slowly."""

_MAX_BATCH_CHARS = 4_000_000
"""Maximum number of characters of the files of one request, unless one file has more."""
_WORKER_CODE = "from ripwrap._code.treesitter.worker import serve; serve({idle!r})"

Task = Literal["chunks", "names", "outline", "places"]


class Source(NamedTuple):
    """File to read: its path, which tells the language, and its text."""

    path: str
    text: str


class CodeOutline(NamedTuple):
    """Outline of a file, and its comments and strings; `parsed` is False if the parser failed."""

    outline: Outline
    literals: Sequence[LiteralSpan] = ()
    parsed: bool = True


class CodeReader:
    """Reader of code, which runs the parser in a worker process that ends when this object is deleted.

    If the process hangs or crashes at a file, this file is read without the parser. Each index has its own reader, so
    that it does not wait for the files of another one.
    """

    def __init__(self, *, seconds: float = FILE_TIMEOUT, idle: float = IDLE_TIMEOUT) -> None:
        """Set the limits for a file, and for the time without one; the process is started for the first file."""
        self._seconds = seconds
        self._worker = WorkerProcess(_WORKER_CODE.format(idle=idle), seconds, idle)
        weakref.finalize(self, self._worker.kill)  # called when the interpreter ends, too

    def chunks_of(self, path: str, text: str) -> CodeChunks:
        """Return the chunks of a file, split at its definitions, or by lines if it cannot be parsed."""
        found = next(self._ask("chunks", [Source(path, text)])) if is_available() else None
        if found is None:
            return CodeChunks(named_windows(path, text))
        return CodeChunks((Chunk(*one)._replace(names=tuple(one[-1])) for one in found[0]), f"{found[1]}")

    def outlines_of(self, sources: Sequence[Source]) -> Iterator[CodeOutline]:
        """Yield the outline of each file; it is empty if the language has no grammar."""
        check_installed()
        for (path, text), found in zip(sources, self._ask("outline", sources), strict=True):
            lines = text.split("\n")
            if found is None:
                failed = is_supported(path, text)
                yield CodeOutline(Outline(lines, ()), parsed=not failed)
                continue
            definitions, qualified, literals = found
            outline = Outline(lines, (Definition(*one) for one in definitions), qualified=qualified)
            yield CodeOutline(outline, [LiteralSpan(*one) for one in literals])

    def names_of(self, sources: Sequence[Source], seconds: float) -> Iterator[CodeNames | None]:
        """Yield the definitions of each file, and their names; None if it cannot be parsed, or the time is over."""
        for source, found in zip(sources, self._ask("names", sources, seconds=seconds), strict=True):
            yield None if found is None else CodeNames.of(found, source.text)

    def places_of(self, name: str, sources: Sequence[Source]) -> Iterator[tuple[Outline, Places]]:
        """Yield for each file its outline, and the places that have a name; mentions if the file cannot be parsed."""
        check_installed()
        for (path, text), found in zip(sources, self._ask("places", sources, name), strict=True):
            lines = text.split("\n")
            if found is None:
                yield Outline(lines, ()), find_places(path, text, None, name)
                continue
            definitions, qualified, (places, *rest) = found
            outline = Outline(lines, (Definition(*one) for one in definitions), qualified=qualified)
            yield outline, Places([NamePlace(*one) for one in places], *rest)

    def close(self) -> None:
        """End the process; the next file starts another one."""
        self._worker.close()

    def _ask(self, task: Task, sources: Sequence[Source], name: str = "", seconds: float = math.inf) -> Iterator[Any]:
        """Yield the answer for each file, in few requests; None if the file cannot be parsed, or the time is over."""
        deadline = time.monotonic() + seconds
        for batch in _batches(sources):
            known = [len(text) <= MAX_FILE_CHARS and is_supported(path, text) for path, text in batch]
            asked = [one for one, parses in zip(batch, known, strict=True) if parses]
            answers = iter(self._request(task, name, asked, deadline))
            yield from (next(answers) if parses else None for parses in known)

    def _request(self, task: Task, name: str, sources: Sequence[Source], deadline: float) -> list[Any]:
        seconds = min(self._seconds, deadline - time.monotonic())
        if not sources or seconds <= 0:
            return [None for _ in sources]
        try:
            answer = self._worker.request([task.encode(), name.encode(), json.dumps(sources).encode()], seconds)
        except StartError as error:
            said = f"the process that reads code does not work: {error}; an index can do without it: pass "
            raise RipwrapError(HintedText(said, Hint("chunker", "windows"))) from error
        if answer is not None:
            return list(json.loads(answer[0]))
        if len(sources) == 1:
            return [None]
        return [one for source in sources for one in self._request(task, name, [source], deadline)]


def _batches(sources: Sequence[Source]) -> Iterator[list[Source]]:
    batch: list[Source] = []
    size = 0
    for source in sources:
        if batch and size + len(source.text) > _MAX_BATCH_CHARS:
            yield batch
            batch, size = [], 0
        batch.append(source)
        size += len(source.text)
    if batch:
        yield batch


@cache
def shared_reader() -> CodeReader:
    """Return the reader of all calls that have no index; its process ends when it is idle."""
    return CodeReader()


def read_outline(path: str, lines: Sequence[str]) -> CodeOutline:
    """Return the outline of a file; see `CodeReader.outlines_of()`."""
    return next(shared_reader().outlines_of([Source(path, "\n".join(lines))]))


def serve(idle: float) -> None:
    """Answer the requests of a `CodeReader` on stdin until stdin ends; this runs in the worker process."""

    def answer(request: list[bytes]) -> list[bytes]:
        task, name, sources = request[0].decode(), request[1].decode(), json.loads(request[2])
        if task == "places":
            return [json.dumps([_places(path, text, name) for path, text in sources]).encode()]
        read: Callable[[str, str], object] = {"chunks": _chunks, "names": _names}.get(task, _outline)
        return [json.dumps([read(path, text) for path, text in sources]).encode()]

    serve_requests(answer, FILE_TIMEOUT, idle)


def _chunks(path: str, text: str) -> tuple[object, ...]:
    found = syntax_chunks(path, text)
    return found, found.code


def _outline(path: str, text: str) -> tuple[object, ...] | None:
    found = parse_outline(path, text)
    return None if found is None else (found.definitions(), found.grammar.qualified, found.literals())


def _names(path: str, text: str) -> tuple[object, ...] | None:
    found = parse_outline(path, text)
    return None if found is None else found.code()


def _places(path: str, text: str, name: str) -> tuple[object, ...] | None:
    found = parse_outline(path, text)
    if found is None:
        return None
    return found.definitions(), found.grammar.qualified, find_places(path, text, found, name)

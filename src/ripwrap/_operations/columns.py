"""Search files and yield the matches in batches of columns, with one list for each field."""

from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Unpack

from ripwrap._operations.search import refuse_context
from ripwrap._ripgrep.columns import ColumnDecoder
from ripwrap._ripgrep.decoder import too_long_errors
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.progress import OnProgress, meter_answer
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.stream import stream, stream_blocking
from ripwrap.binary.resolver import Rg
from ripwrap.columns import Columns, joined
from ripwrap.errors import named_paths
from ripwrap.options import SearchOptions, StrPath, check_callback, check_limit, check_timeout
from ripwrap.places.where import PlacedSearchOptions, placed_search

BATCH_ROWS = 65_536
"""Default number of matches in a batch."""


@named_paths
def search_columns(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    limit: int | None = None,
    batch: int = BATCH_ROWS,
    on_progress: OnProgress | None = None,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> AsyncGenerator[Columns]:
    """Search files for a pattern and yield the matches in batches of columns.

    Each column is a list, such as the paths of the matches. The rows are the matches of `search()`, in the same order.
    No `Match` objects are made, so a search with very many matches takes less time than with `search()`.
    A batch can be converted to a table of Arrow, pandas or polars.

    ```python
    import asyncio

    import ripwrap


    async def main():
        async for columns in ripwrap.search_columns("TODO", cwd="demo", glob="*.py", sort="path"):
            print(columns.path, columns.line_number, columns.spans)


    asyncio.run(main())
    ```

    ```text
    ['shop/cart.py', 'shop/till.py'] [5, 1] [((6, 10),), ((20, 24),)]
    ```

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, as in `search()`; empty is all of `cwd`.
        limit: Maximum number of matches, over all files. At this number, rg is stopped.
        batch: Number of matches in a batch. The last batch, which is yielded when the search has ended, may have fewer.
        on_progress: Function that is called with a `Progress`, as in `search()`.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags, and where to search, as in `search()`.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: `limit` is negative, `batch` is below 1, there is no pattern, or a pattern, path or option has a
            NUL.
        TypeError: `limit` or `batch` is not an int.
        FileNotFoundError, PermissionError: `cwd`, one of `paths`, or an `ignore_file` does not exist or cannot be read.
        NotADirectoryError: `cwd` is not a directory.
        BinaryNotFoundError: There is no rg.
        RemoteError: The host cannot be reached, or does not run rg.
        PatternError, GlobError, UnknownTypeError, CapabilityError, SearchError: rg rejects the search, or fails.
        DecodeError: rg's output is malformed.

    The call itself raises `ValidationError`, `ValueError` and `TypeError`. The first iteration raises the other errors.
    If the search fails midway, the matches found before the error are yielded first.
    """
    return run_columns(columns_request(pattern, cwd, paths, limit, batch, options, on_progress), rg)


@dataclass(frozen=True, slots=True)
class ColumnsRequest:
    """Checked arguments of `search_columns()`."""

    query: Query
    limit: int | None
    batch: int
    on_progress: OnProgress | None


def columns_request(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    limit: int | None,
    batch: int,
    options: SearchOptions,
    on_progress: OnProgress | None = None,
) -> ColumnsRequest:
    """Check the arguments, and return the request of `search_columns()`."""
    if not isinstance(batch, int) or isinstance(batch, bool):
        raise TypeError(f"batch must be an int, got {type(batch).__name__}")
    if batch < 1:
        raise ValueError(f"batch must be at least 1, got {batch}")
    check_callback(on_progress)
    refuse_context("search_columns()", options)
    query = placed_search("search_columns()", pattern, cwd, paths, options)
    return ColumnsRequest(query, check_limit(limit), batch, on_progress)


async def run_columns(request: ColumnsRequest, rg: Rg) -> AsyncGenerator[Columns]:
    """Run rg and yield the batches. Before an error of `stream()` is raised, yield the matches found until then."""
    answer = ColumnsAnswer(request.limit, request.batch)
    try:
        metered = meter_answer(answer, request.on_progress, request.limit)
        async with aclosing(stream(request.query, metered, rg)) as batches:
            async for batch in batches:
                yield batch
    except Exception:
        for batch in answer.take_rest():
            yield batch
        raise


def run_columns_blocking(request: ColumnsRequest, rg: Rg, timeout: float | None) -> Generator[Columns]:
    """Run rg and yield the batches, blocking. Before an error or a timeout, yield the matches found until then."""
    return _run_blocking(request, rg, check_timeout(timeout))


def _run_blocking(request: ColumnsRequest, rg: Rg, timeout: float | None) -> Generator[Columns]:
    answer = ColumnsAnswer(request.limit, request.batch)
    try:
        metered = meter_answer(answer, request.on_progress, request.limit)
        with closing(stream_blocking(request.query, metered, rg, timeout)) as batches:
            yield from batches
    except Exception:
        yield from answer.take_rest()
        raise


class ColumnsAnswer:
    """Converter of rg's output that collects matches as columns, and yields each batch when it is full."""

    def __init__(self, limit: int | None, batch: int) -> None:
        self.full: bool = limit == 0
        self._left = limit
        self._batch = batch
        self._decoder = ColumnDecoder()
        self._parts: deque[Columns] = deque()
        self._rows = 0

    @property
    def pending(self) -> int:
        """Number of bytes of the unfinished record."""
        return self._decoder.pending

    @property
    def ended(self) -> bool:
        """True if rg's summary was read."""
        return self._decoder.summary is not None

    def feed(self, chunk: bytes) -> Iterator[Columns]:
        """Yield the batches that `chunk` completes."""
        yield from self._add(self._decoder.feed(chunk))

    def end_run(self, end: Exit) -> Iterator[Columns]:
        """Decode the rest of rg's output, and raise an error if rg wrote no summary."""
        if end.ended:
            yield from self._add(self._decoder.close())
        end.check(summary=self.ended)
        self._decoder.summary = None

    def finish(self, end: Exit) -> Iterator[Columns]:
        """Yield the last batch, and log the files and lines that could not be read."""
        end.warn(too_long_errors(self._decoder.dropped, end.query))
        yield from self.take_rest()

    def take_rest(self) -> Iterator[Columns]:
        """Yield one batch with the matches that are not in a batch yet; nothing if there are no such matches."""
        if self._rows:
            yield self._take(self._rows)

    def _add(self, parts: Iterator[Columns]) -> Iterator[Columns]:
        for part in parts:
            self._parts.append(part if self._left is None else part[: self._left])
            added = len(self._parts[-1])
            self._rows += added
            while self._rows >= self._batch:
                yield self._take(self._batch)
            if self._left is not None:
                self._left -= added
                if not self._left:
                    self.full = True
                    yield from self.take_rest()
                    return

    def _take(self, rows: int) -> Columns:
        """Return a batch of the first `rows` matches that are not in a batch yet."""
        self._rows -= rows
        taken: list[Columns] = []
        while rows:
            part = self._parts.popleft()
            if len(part) > rows:
                self._parts.appendleft(part[rows:])
                part = part[:rows]
            taken.append(part)
            rows -= len(part)
        return joined(taken)

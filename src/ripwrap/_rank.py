"""Ranked search without an index: rg finds the files that have the words, and SQLite, in memory, the places in them."""

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Unpack

from ripwrap._fts import memory, pool_of, store, warn
from ripwrap._open import opened
from ripwrap._ranking.choose import chosen, pattern_of, roots_of, words_of
from ripwrap._ranking.chunks import Chunk, chunks_of
from ripwrap._ranking.score import Candidate, ranked
from ripwrap._ranking.tokens import Query, understood
from ripwrap._rg.argv import Command, words_command
from ripwrap._rg.collect import Plan, Step, Work, carry_out
from ripwrap._rg.hits import Hits
from ripwrap._source import MAX_FILE, Source, beginning, decoded, place_of
from ripwrap._text import shown
from ripwrap.binary.probe import CANCELLED
from ripwrap.binary.resolver import Rg
from ripwrap.options import FileOptions, StrPath, check_limit, check_timeout
from ripwrap.results import RankedChunk

LIMIT = 10

_LOGGER = logging.getLogger("ripwrap")
_DEPTH = 20  # As `pool_of()` takes it: each of the files has a place.
_MAX_LINES = 1_000  # Of a file that rg gives hits of; more say nothing new.
_MAX_TEXT = 8_000_000  # Bytes of all of them; those that matter less come last.


async def rank(
    query: str,
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = LIMIT,
    rg: Rg = None,
    **options: Unpack[FileOptions],
) -> list[RankedChunk]:
    """Find the places that answer a question in words, or define a symbol, the best first; there is no index.

    rg finds the files that have the query's words, in any form and as parts of identifiers. Of the 40 that promise
    most, pieces of at most 1,000 characters are ranked by BM25, by whether they define what is asked for, and by the
    names of file and folder. Tests, examples and legacy code come behind, unless the query asks for them. The same tree
    and query give the same answer.

    Of a file the first million bytes are looked at; binary files are left out. Of a query 32 words are looked for,
    those of identifiers and long ones first. What could not be read, and words that are not looked for, are logged as
    a warning; the latter are also in the reasons.

    Args:
        query: Words, e.g. "how are cookies stored", or a name, e.g. "CookieJar"; "where is CookieJar defined" is one.
        cwd: The directory to search; globs and `paths` start from there.
        paths: Files or directories to search; empty is all of `cwd`.
        limit: How many places to give at most; `None` gives all that are ranked, which are some hundred.
        rg: Which rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags; see `FileOptions`.

    Raises:
        ValueError: There is no word in the query, or none of at most 200 characters; `limit` is negative; or a NUL is
            in a path or option.
        RipwrapError: This Python's SQLite has no full-text search (FTS5).

    It raises what `files()` raises, too.
    """
    return await carry_out(rank_plan(query, cwd, paths, limit, options, None), rg)


def rank_plan(
    query: str,
    cwd: StrPath,
    paths: StrPath | Sequence[StrPath],
    limit: int | None,
    options: FileOptions,
    timeout: float | None,
    allowed: Callable[[str], bool] | None = None,
) -> Plan[list[RankedChunk]]:
    """The search for files, and then what is done with them; arguments are `rank()`'s.

    Only files that are `allowed` are looked at and opened, if that is said.
    """
    asked, limit, timeout = understood(query), check_limit(limit), check_timeout(timeout)
    roots = roots_of(asked)
    command = words_command(pattern_of(roots, asked.symbols), cwd, paths, options, _MAX_LINES)
    if limit == 0:
        return []
    warn(asked)
    begun = 0.0

    def collector() -> Hits:
        nonlocal begun
        begun = time.monotonic()  # as its turn does, or the second one that it gets
        return Hits(partial(words_of, roots=roots), timeout)

    hits: Hits = yield Step(command, collector, timeout)
    if hits.end is not None:
        hits.end.warn()
    if not hits.files:
        return []
    deadline = _Deadline(timeout, begun)
    places: list[RankedChunk] = yield Work(partial(_places, asked, command, hits, limit, deadline, allowed))
    return places


@dataclass(frozen=True, slots=True)
class _Deadline:
    timeout: float | None
    begun: float

    def check(self) -> None:
        """Raise if the time is over, or nobody waits any more."""
        if CANCELLED.get().is_set():
            raise TimeoutError("nobody waits for this ranking any more")
        if self.timeout is not None and time.monotonic() > self.begun + self.timeout:
            raise TimeoutError(f"there was no ranking within timeout={self.timeout} seconds")


def _places(
    query: Query,
    command: Command,
    hits: Hits,
    limit: int | None,
    deadline: _Deadline,
    allowed: Callable[[str], bool] | None,
) -> list[RankedChunk]:
    """The best places in the files that have the words."""
    files: Mapping[str, Mapping[str, int]] = hits.files
    if allowed is not None:
        files = {path: counts for path, counts in files.items() if _lets(allowed, path, deadline)}
    order = chosen(query, files, _sizes(command.cwd, files), hits.having, hits.total)
    sources = list(_read(command, order, deadline))
    pool = _pool(query, sources, deadline)
    of_path = {source.path: source for source in sources}
    places: list[RankedChunk] = []
    for entry in ranked(query, pool, limit):
        deadline.check()
        places.append(place_of(query, entry, of_path[entry.candidate.path]))
    return places


def _lets(allowed: Callable[[str], bool], path: str, deadline: _Deadline) -> bool:
    deadline.check()
    return allowed(path)


def _sizes(cwd: str, paths: Iterable[str]) -> dict[str, int]:
    """Bytes of each file that is still there."""
    sizes: dict[str, int] = {}
    for path in paths:
        with suppress(OSError):
            sizes[path] = os.stat(os.path.join(cwd, path)).st_size
    return sizes


def _read(command: Command, paths: Iterable[str], deadline: _Deadline) -> Iterator[Source]:
    left = _MAX_TEXT
    for path in paths:
        deadline.check()
        try:
            with open(opened(command.cwd, path, follow=command.follows, named=command.paths), "rb") as file:
                raw = file.read(MAX_FILE + 1)
        except OSError as error:
            _LOGGER.warning("%s could not be read: %s", shown(path), error.strerror)
            continue
        raw = beginning(raw)
        left -= len(raw)
        if (source := decoded(path, raw)) is not None:
            yield source
        if left <= 0:
            return


def _pool(query: Query, sources: Sequence[Source], deadline: _Deadline) -> list[Candidate]:
    """The chunks that are to be ranked."""
    pieces: list[tuple[Source, Chunk]] = []
    files: list[int] = []
    with closing(memory()) as database:
        for number, source in enumerate(sources):
            deadline.check()
            chunks = list(chunks_of(source.text))
            texts = (source.readable(source.text[chunk.start : chunk.end]) for chunk in chunks)
            store(database, len(pieces), shown(source.path), texts)
            pieces += [(source, chunk) for chunk in chunks]
            files += [number] * len(chunks)
        deadline.check()
        pool = pool_of(database, query, lambda rows: {row: (files[row], row) for row in rows}, _DEPTH)
    return [_candidate(*pieces[row], bm25) for row, bm25 in pool]


def _candidate(source: Source, chunk: Chunk, bm25: float) -> Candidate:
    return Candidate(source.path, chunk.start_line, chunk.end_line, source.text[chunk.start : chunk.end], bm25)

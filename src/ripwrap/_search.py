"""Searching: the matches alone, or every message of rg's."""

import logging
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from typing import Unpack, cast

from ripwrap._rg.argv import search_command
from ripwrap._rg.decoder import MessageDecoder, Record
from ripwrap._rg.exit import Exit
from ripwrap._rg.framer import MAX_RECORD
from ripwrap._rg.stream import stream
from ripwrap.binary.resolver import Rg
from ripwrap.models import Match, Message
from ripwrap.options import SearchOptions, StrPath, check_limit

_LOGGER = logging.getLogger("ripwrap")


def search(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[Match]:
    r"""Search files for a pattern and yield each matching line as rg finds it.

    What could not be read is logged as a warning; `search_messages()` gives it as data. A file with a NUL in its first
    64 KiB is taken for binary and left out; one with a NUL further on is searched up to there (`End.binary_offset` says
    where). `text=True` searches all of both; a file that is named in `paths` is searched in any case. To leave early,
    wrap the generator in `contextlib.aclosing`, or give a `limit`.

    ```python
    import asyncio

    import ripwrap


    async def main():
        async for match in ripwrap.search(r"TODO: \w+", cwd="docs/demo", type="py", sort="path"):
            print(match.path, match.line_number, match.submatches[0].match)


    asyncio.run(main())
    ```

    ```text
    shop/cart.py 5 TODO: taxes
    shop/till.py 1 TODO: cards
    ```

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        cwd: The directory to search; globs and `paths` start from there.
        paths: Files or directories to search; empty is all of `cwd`. A file named here is searched even if it is
            ignored, hidden, or left out by a glob (rg-facts 40).
        limit: How many matches to yield at most, over all files; rg is ended with the last one. Whether there are more
            is not told: ask for one more than you show. (`max_count` is per file.)
        rg: Which rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags; see `SearchOptions`.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: `limit` is negative, there is no pattern, or a NUL is in a pattern, path or option.
        FileNotFoundError: `cwd` does not exist.
        NotADirectoryError: `cwd` is not a directory.
        BinaryNotFoundError: There is no rg.
        PatternError, GlobError, UnknownTypeError, CapabilityError, SearchError: rg cannot do this search.
        DecodeError: rg wrote something that it never writes.

    The first two are raised by the call, the others by the first iteration.
    """
    return stream(search_command(pattern, cwd, paths, options), Matches(limit), rg)


def search_messages(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[Message]:
    """Search files for a pattern and yield all that rg says, in its order.

    For each file with a match comes a `Begin`, then its `Match` and `Context` lines, then an `End`; at last a
    `Summary`, with what could not be read. Files are never interleaved. With `limit`, which counts matches, the
    stream ends at the last one: no `End` or `Summary` follows.

    Args and errors are those of `search()`.
    """
    return stream(search_command(pattern, cwd, paths, options), Messages(limit), rg)


class _SearchAnswer:
    """What both answers share: a decoder, a limit on matches, and the rule for rg's exit."""

    def __init__(self, limit: int | None, kinds: Collection[str]) -> None:
        self._left = check_limit(limit)
        self.full = limit == 0
        self._decoder = MessageDecoder(kinds)

    @property
    def ended(self) -> bool:
        """Whether rg's summary has come."""
        return self._decoder.summary is not None

    def _feed(self, chunk: bytes) -> Iterator[Record]:
        messages = self._decoder.feed(chunk)
        return messages if self._left is None else self._limited(messages, self._left)

    def _limited(self, messages: Iterator[Record], left: int) -> Iterator[Record]:
        for message in messages:
            left -= message.type == "match"
            self._left = left
            self.full = not left
            yield message
            if self.full:
                return

    def _finish(self, end: Exit) -> Iterator[Record]:
        """What an unended last line holds; raises unless rg gave an answer, be it a partial one."""
        if end.ended:
            yield from self._decoder.close()
        end.check(summary=self.ended)


class Matches(_SearchAnswer):
    """The matches of a search."""

    def __init__(self, limit: int | None) -> None:
        super().__init__(limit, ("match",))

    def feed(self, chunk: bytes) -> Iterator[Match]:
        return cast("Iterator[Match]", self._feed(chunk))

    def finish(self, end: Exit) -> Iterator[Match]:
        yield from cast("Iterator[Match]", self._finish(end))
        end.warn()
        if dropped := self._decoder.dropped_records:
            _LOGGER.warning(
                "%d matching lines were left out, each of over %d bytes in rg's JSON; max_filesize= or glob= can leave "
                "out such files",
                dropped,
                MAX_RECORD,
            )


class Messages(_SearchAnswer):
    """All messages of a search; the summary knows what could not be read."""

    def __init__(self, limit: int | None) -> None:
        super().__init__(limit, ("begin", "match", "context", "end"))

    def feed(self, chunk: bytes) -> Iterator[Message]:
        return self._feed(chunk)

    def finish(self, end: Exit) -> Iterator[Message]:
        yield from self._finish(end)
        if summary := self._decoder.summary:
            known = {"errors": end.path_errors(), "dropped_records": self._decoder.dropped_records}
            yield summary.model_copy(update=known)

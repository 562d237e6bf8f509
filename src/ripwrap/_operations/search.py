"""Search and stream the matches, or all messages of rg."""

from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import ClassVar, Unpack, cast

from ripwrap._operations.streaming import StreamRequest, run_stream
from ripwrap._ripgrep.command import search_command
from ripwrap._ripgrep.decoder import MessageDecoder, Record, too_long_errors
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.host import RgHost
from ripwrap.binary.resolver import Rg
from ripwrap.models import Elapsed, Match, Message, PathError, Stats, Summary
from ripwrap.options import SearchOptions, StrPath, check_limit
from ripwrap.sources.base import Inside


def search(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    limit: int | None = None,
    inside: Inside | Iterable[Inside] = (),
    rg: Rg = None,
    on: RgHost | None = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[Match]:
    r"""Search files for a pattern and yield each matching line as rg finds it.

    Unreadable paths are logged as warnings, broken links as information; `search_messages()` returns both as data.
    A file with a NUL in its first 64 KiB is binary and is skipped. A file with a NUL further on is searched up to the
    NUL (`End.binary_offset`). `text=True` searches all of both. A file that is named in `paths` is always searched. To
    stop early, wrap the generator in `contextlib.aclosing`, or pass a `limit`.

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
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, any number of them; empty is all of `cwd`. A file named here is searched
            even if it is ignored, hidden, or excluded by a glob (rg-facts 40). Paths that are too long for one command
            line are searched by several rg, one after another. Then `sort` must be `"path"`, which sorts below each
            path and keeps the order of `paths`.
        limit: Maximum number of matches, over all files; rg is stopped when it is reached. To know if there are more,
            ask for one more than you show. (`max_count` is per file.)
        inside: Formats of archives and compressed files to search inside, too: `zip`, `tar`, `gz`, `bz2`, `xz`, `zst`.
            Their members follow the files, with paths such as `a.zip!/dir/b.py`. Globs and types choose
            members. What cannot be read of an archive is logged as a warning.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        on: The host to run rg on, from `ripwrap.remote`; `None` is this machine. `cwd` is then a directory there,
            relative to that of the host; `paths` and `rg` are also paths there.
        **options: rg's flags; see `SearchOptions`.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: `limit` is negative, there is no pattern, or a pattern, path or option has a NUL.
        FileNotFoundError: `cwd` does not exist, or nothing in `paths` does. (If some do, others are unreadable paths.)
        NotADirectoryError: `cwd` is not a directory.
        BinaryNotFoundError: There is no rg.
        RemoteError: The host cannot be reached, or does not run rg.
        PatternError, GlobError, UnknownTypeError, CapabilityError, SearchError: rg rejects the search, or fails.
        DecodeError: rg's output is malformed.

    The call raises the first two, the first iteration the others.
    """
    if inside:
        from ripwrap._operations.inside import inside_request, run_inside  # it imports this module

        return run_inside(inside_request(pattern, cwd, paths, limit, options, inside, on), rg)
    return run_stream(search_request(pattern, cwd, paths, limit, options, on), rg)


def search_messages(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    on: RgHost | None = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[Message]:
    """Search files for a pattern and yield all messages of rg, in its order.

    Each file with a match has a `Begin`, then its `Match` and `Context` lines, then an `End`. The last message is a
    `Summary`, with the paths that rg could not read. Files are never interleaved. `limit` counts matches; when it is
    reached, the stream ends without an `End` or `Summary`.

    Args and errors are those of `search()`, without `inside`.
    """
    return run_stream(messages_request(pattern, cwd, paths, limit, options, on), rg)


def search_request(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    limit: int | None,
    options: SearchOptions,
    on: RgHost | None = None,
) -> StreamRequest[Match]:
    """Return the checked request of `search()`."""
    command = search_command(pattern, cwd, paths, options, on=on)
    return StreamRequest(command, partial(MatchAnswer, check_limit(limit)))


def messages_request(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    limit: int | None,
    options: SearchOptions,
    on: RgHost | None = None,
) -> StreamRequest[Message]:
    """Return the checked request of `search_messages()`."""
    command = search_command(pattern, cwd, paths, options, on=on)
    return StreamRequest(command, partial(MessageAnswer, check_limit(limit)))


class SearchAnswer:
    """Base of both answers: a decoder, a limit on matches, and the check of rg's exit."""

    kinds: ClassVar[Collection[str]]
    """Kinds of messages that are yielded."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit
        self.full = limit == 0
        self._decoder = MessageDecoder(self.kinds)
        self._summary: Summary | None = None  # of the runs that have ended

    @property
    def ended(self) -> bool:
        """True if rg's summary was read."""
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

    def _too_long(self) -> tuple[PathError, ...]:
        """Return the errors about lines that were left out."""
        return too_long_errors(self._decoder.dropped)

    def _end_run(self, end: Exit) -> Iterator[Record]:
        """Decode a last line without a newline; raise unless rg gave an answer, even a partial one."""
        if end.ended:
            yield from self._decoder.close()
        end.check(summary=self.ended)
        summary, self._decoder.summary = self._decoder.summary, None
        self._summary = _sum(self._summary, summary)


class MatchAnswer(SearchAnswer):
    """Answer that yields the matches of a search."""

    kinds = ("match",)

    def feed(self, chunk: bytes) -> Iterator[Match]:
        return cast("Iterator[Match]", self._feed(chunk))

    def end_run(self, end: Exit) -> Iterator[Match]:
        return cast("Iterator[Match]", self._end_run(end))

    def finish(self, end: Exit) -> Iterator[Match]:
        end.warn(self._too_long())
        return iter(())


class MessageAnswer(SearchAnswer):
    """Answer that yields all messages of a search; the summary has the paths that rg could not read."""

    kinds = ("begin", "match", "context", "end")

    def feed(self, chunk: bytes) -> Iterator[Message]:
        return self._feed(chunk)

    def end_run(self, end: Exit) -> Iterator[Message]:
        return self._end_run(end)

    def finish(self, end: Exit) -> Iterator[Message]:
        if summary := self._summary:
            errors = (*end.path_errors(), *self._too_long())
            known = {"errors": errors, "dropped_records": self._decoder.dropped_records}
            yield summary.model_copy(update=known)


def _sum(before: Summary | None, summary: Summary | None) -> Summary | None:
    """Return the summary of two runs of rg, as if one rg had searched the paths of both."""
    if before is None or summary is None:
        return before or summary
    counts = before.stats.model_dump(exclude={"elapsed"})
    added = {name: count + getattr(summary.stats, name) for name, count in counts.items()}
    return Summary(
        stats=Stats(**added, elapsed=_sum_elapsed(before.stats.elapsed, summary.stats.elapsed)),
        elapsed_total=_sum_elapsed(before.elapsed_total, summary.elapsed_total),
    )


def _sum_elapsed(before: Elapsed, elapsed: Elapsed) -> Elapsed:
    more, nanos = divmod(before.nanos + elapsed.nanos, 1_000_000_000)
    secs = before.secs + elapsed.secs + more
    return Elapsed(secs=secs, nanos=nanos, human=f"{secs + nanos / 1e9:.6f}s")

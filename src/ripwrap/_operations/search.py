"""Search and stream the matches, or all messages of rg."""

from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, Unpack, cast, overload

from pydantic import BaseModel

from ripwrap._ripgrep.decoder import MODELS, MessageDecoder, Record, too_long_errors
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.progress import OnProgress
from ripwrap._ripgrep.query import Query, may_use_pcre2
from ripwrap._ripgrep.stream import StreamRequest, metered, run_stream
from ripwrap._text import raw_bytes, text_of
from ripwrap.binary.resolver import Rg
from ripwrap.errors import DecodeError, Hint, HintedText, SearchError, combination_error, named_paths
from ripwrap.models import CapturedMatch, Captures, Elapsed, Match, Message, Stats, Submatch, Summary
from ripwrap.options import SearchOptions, StrPath, check_limit
from ripwrap.places.where import PlacedSearchOptions, placed_search

if TYPE_CHECKING:
    from ripwrap._ripgrep.groups import Groups

T = TypeVar("T")


@overload
def search(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = None,
    captures: Literal[True],
    on_progress: OnProgress | None = None,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> AsyncGenerator[CapturedMatch]: ...


@overload
def search(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = None,
    captures: bool = False,
    on_progress: OnProgress | None = None,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> AsyncGenerator[Match]: ...


@named_paths
def search(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = None,
    captures: bool = False,
    on_progress: OnProgress | None = None,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> AsyncGenerator[Match]:
    r"""Search files for a pattern and yield each matching line as rg finds it.

    Unreadable paths are logged as warnings, and broken links at level INFO; `search_messages()` returns both as data. A
    file with a NUL byte in its first 64 KiB is binary and is skipped. A file with a NUL byte after that is searched up
    to the NUL (`End.binary_offset`). `text=True` searches both kinds of files to the end. A file that is named in
    `paths` is always searched. To stop early, wrap the generator in `contextlib.aclosing`, or pass a `limit`.

    ```python
    import asyncio

    import ripwrap


    async def main():
        async for match in ripwrap.search(r"TODO: \w+", cwd="demo", type="py", sort="path"):
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
            even if it is ignored, hidden, or excluded by a glob (rg-facts 40). As in rg, a file is searched once for
            each path that reaches it. If the paths are too long for one command line, several rg processes search them,
            one after another. In that case, the only allowed order is `sort="path"`, which sorts the files of each
            path, and keeps the order of `paths`.
        limit: Maximum number of matches, over all files. At this number, rg is stopped. To learn if there are more
            matches, ask for one match more than you show. (`max_count` is the limit for each file.)
        captures: Yield each match as a `CapturedMatch`, with the text of each group of the pattern in
            `match.groups`, `match.named` and `match.captures`. `captures` needs a single pattern, and rg 15 or later.
            Not with `invert_match` or `replace`.
        on_progress: Function that is called with a `Progress` while rg writes its output, at most ten times a second,
            and once at the end. The function runs in this task or thread. An exception in the function ends the
            search.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags, and where to search, such as `rev="main"`, `inside="zip"`, `on=host` or `where=place`;
            see `SearchOptions` and `ripwrap.places.PlaceOptions`.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: `limit` is negative, there is no pattern, two arguments exclude each other, an option such as
            `context` has no effect, or a pattern, path or option has a NUL.
        TypeError: `limit` is not an int.
        RipwrapError: The package that `encoding="detect"` or a format in `inside` needs is not installed.
        FileNotFoundError, PermissionError: `cwd`, one of `paths`, or an `ignore_file` does not exist or cannot be read.
            (`search_messages()` and `grep()` list such paths in the answer, unless all of `paths` are missing.)
        NotADirectoryError: `cwd` is not a directory.
        BinaryNotFoundError: There is no rg.
        RemoteError: The host cannot be reached, or does not run rg.
        PatternError, GlobError, UnknownTypeError, CapabilityError, SearchError: rg rejects the search, or fails.
        DecodeError: rg's output is malformed.

    The call itself raises the errors about arguments and missing packages. The first iteration raises the other errors.
    """
    refuse_context("search()", options)
    answer: MatchAnswer
    if captures:
        groups = read_groups(patterns := single_pattern(pattern, options), options)
        query = capturing_query("search()", patterns, groups, cwd, paths, options)
        answer = CaptureAnswer(check_limit(limit), groups)
    else:
        query = placed_search("search()", pattern, cwd, paths, options)
        answer = MatchAnswer(check_limit(limit))
    return run_stream(metered(StreamRequest(query, answer), on_progress, limit), rg)


@named_paths
def search_messages(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> AsyncGenerator[Message]:
    """Search files for a pattern and yield all messages of rg, in the order in which rg writes them.

    Each file with a match has a `Begin`, then its `Match` and `Context` lines, then an `End`. The last message is a
    `Summary`, with the paths that rg could not read. Messages of two files are never mixed. `limit` counts matches.
    When the limit is reached, the stream ends without an `End` or `Summary`.

    The arguments and errors are the same as in `search()`, without `captures` and `on_progress`. With `inside`, the
    errors of the summary include the parts of files that could not be read.
    """
    query = placed_search("search_messages()", pattern, cwd, paths, options, keeps_errors=True)
    return run_stream(StreamRequest(query, MessageAnswer(check_limit(limit))), rg)


def refuse_context(operation: str, options: SearchOptions) -> None:
    """Raise `ValueError` if lines of context are asked for, which the operation does not yield."""
    for name in ("context", "before_context", "after_context", "passthru"):
        if options.get(name):
            wrong = (
                f" has no effect in {operation}, which yields only matches: grep() and search_messages() return context"
            )
            raise ValueError(HintedText(Hint(name, kind="omit"), wrong, "; leave it out"))


def single_pattern(pattern: str | Sequence[str], options: SearchOptions) -> Sequence[str]:
    """Return the pattern of a search with `captures`, as the only one of a list; refuse options without groups."""
    patterns = [pattern] if isinstance(pattern, str) else list(pattern)
    if len(patterns) > 1:
        called = Hint(kind="call", target="scan")
        raise ValueError(HintedText("captures needs a single pattern, got ", f"{len(patterns)}; use ", called))
    for name in ("invert_match", "replace"):
        if options.get(name) not in (None, False):
            raise combination_error(name, Hint("captures", True))
    return patterns


def capturing_query(
    operation: str,
    patterns: Sequence[str],
    groups: "Groups | None",
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    options: SearchOptions,
) -> Query:
    """Return the query with which rg writes the groups of each match, for `with_groups()` with the same groups."""
    known = patterns if groups is None else [groups.pattern]
    replacement = "$0" if groups is None else groups.replacement
    return placed_search(operation, known, cwd, paths, options, captures=replacement)


def read_groups(patterns: Sequence[str], options: SearchOptions) -> "Groups | None":
    """Return the groups of a single pattern; `None` for several patterns, or for a pattern with unknown syntax."""
    if len(patterns) != 1 or not isinstance(patterns[0], str):
        return None
    from ripwrap._ripgrep.groups import UnknownSyntaxError, groups_of  # imported late, because few searches need it

    with suppress(UnknownSyntaxError):
        return groups_of(
            patterns[0],
            pcre2=may_use_pcre2(options),
            verbatim=bool(options.get("fixed_strings")),
            in_line=not options.get("multiline") and not options.get("null_data"),
        )
    return None


class SearchAnswer(Generic[T]):
    """Base class of answers. An answer decodes rg's output, stops at the limit of matches, and checks rg's exit."""

    kinds: ClassVar[Collection[str]]
    """Kinds of messages that are yielded."""

    models: ClassVar[Mapping[str, type[BaseModel]]] = MODELS
    """Model of each kind of message."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit
        self.full = limit == 0
        self._decoder = MessageDecoder(self.kinds, models=self.models)
        self._summary: Summary | None = None  # sum of the summaries of the runs that have ended

    @property
    def pending(self) -> int:
        """Number of bytes of the unfinished record."""
        return self._decoder.pending

    @property
    def ended(self) -> bool:
        """True if rg's summary was read."""
        return self._decoder.summary is not None

    def feed(self, chunk: bytes) -> Iterator[T]:
        messages = self._decoder.feed(chunk)
        return cast("Iterator[T]", messages if self._left is None else self._limited(messages, self._left))

    def end_run(self, end: Exit) -> Iterator[T]:
        """Decode the rest of rg's output, raise an error if rg wrote no summary, and add up the summaries."""
        if end.ended:
            yield from cast("Iterator[T]", self._decoder.close())
        end.check(summary=self.ended)
        before, summary, self._decoder.summary = self._summary, self._decoder.summary, None
        self._summary = sum_summaries(before, summary) if before and summary else before or summary

    def finish(self, end: Exit) -> Iterator[T]:
        end.warn(too_long_errors(self._decoder.dropped, end.query))
        return iter(())

    def _limited(self, messages: Iterator[Record], left: int) -> Iterator[Record]:
        for message in messages:
            left -= message.type == "match"
            self._left = left
            self.full = not left
            yield message
            if self.full:
                return


class MatchAnswer(SearchAnswer[Match]):
    """Answer that yields the matches of a search."""

    kinds = ("match",)


class CaptureAnswer(MatchAnswer):
    """Answer that yields the matches of a search, each with its groups.

    rg writes the groups of a match as its replacement. In the yielded matches, `replacement` is `None`, as in a search
    without groups.
    """

    def __init__(self, limit: int | None, groups: "Groups | None") -> None:
        super().__init__(limit)
        self._groups = groups

    def feed(self, chunk: bytes) -> Iterator[Match]:
        return map(self._with_groups, super().feed(chunk))

    def end_run(self, end: Exit) -> Iterator[Match]:
        return map(self._with_groups, super().end_run(end))

    def _with_groups(self, match: Match) -> CapturedMatch:
        return with_groups(match, self._groups)


def with_groups(match: Match, groups: "Groups | None") -> CapturedMatch:
    """Return a copy of `match` with its groups, which are read from the replacements of its submatches."""
    if groups is None:
        said = (
            "ripwrap cannot find the groups of the pattern, because the pattern has syntax that ripwrap does not "
            "know; leave "
        )
        raise SearchError(HintedText(said, Hint("captures", kind="omit"), " out"))
    captures: list[Captures] = []
    for hit in match.submatches:
        if hit.replacement is None:
            raise DecodeError("rg wrote a match without its groups")
        texts = [None if raw is None else text_of(raw) for raw in groups.split(raw_bytes(hit.replacement))]
        named = {name: text for name, text in zip(groups.names, texts, strict=True) if name is not None}
        captures.append(Captures.model_construct(groups=tuple(texts), named=named))
    plain = tuple(Submatch.model_construct(match=hit.match, start=hit.start, end=hit.end) for hit in match.submatches)
    known: dict[str, Any] = {**dict(match), "submatches": plain, "captures": tuple(captures)}
    return CapturedMatch.model_construct(**known)


class MessageAnswer(SearchAnswer[Message]):
    """Answer that yields all messages of a search; the summary has the paths that rg could not read."""

    kinds = ("begin", "match", "context", "end")

    def finish(self, end: Exit) -> Iterator[Message]:
        if summary := self._summary:
            errors = (*end.path_errors(), *too_long_errors(self._decoder.dropped, end.query))
            known = {"errors": errors, "dropped_records": self._decoder.dropped_records}
            yield summary.model_copy(update=known)


def sum_summaries(before: Summary, summary: Summary) -> Summary:
    """Return the sum of the summaries of two runs of rg, as if one run had searched all paths, without errors."""
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

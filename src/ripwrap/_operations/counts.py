"""List files with or without a match, count the matches of each file, and list the file types of rg."""

import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Unpack

from ripwrap._operations.files import ListingAnswer
from ripwrap._ripgrep.decoder import CountDecoder, FileTypes, decode_types, listing_decoder
from ripwrap._ripgrep.page_collector import WholeOutput, refuse_failure
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap._ripgrep.stream import StreamRequest, run_stream
from ripwrap.binary.resolver import Rg
from ripwrap.errors import named_paths
from ripwrap.models import FileCount
from ripwrap.options import StrPath, check_timeout
from ripwrap.places.where import PlacedSearchOptions, placed_search


@named_paths
def files_with_matches(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> AsyncGenerator[str]:
    """Yield the path of each file with a match (`rg --files-with-matches`); rg stops in a file at its first match.

    Options for context have no effect. Unreadable paths are logged as warnings. With `invert_match`, `multiline` or
    PCRE2, rg buffers its output, so the first paths come late (rg-facts 51).

    The arguments and errors are the same as in `search()`, without `captures` and `on_progress`. `limit` is
    the maximum number of files.
    """
    query = placed_search("files_with_matches()", pattern, cwd, paths, options, "files-with-matches")
    return run_stream(StreamRequest(query, ListingAnswer(listing_decoder(counts=query.counts), limit)), rg)


@named_paths
def files_without_match(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> AsyncGenerator[str]:
    """Yield the path of each file without a match (`rg --files-without-match`).

    The arguments and errors are the same as in `search()`, without `captures` and `on_progress`. `limit` is
    the maximum number of files.
    """
    query = placed_search("files_without_match()", pattern, cwd, paths, options, "files-without-match")
    decoder = listing_decoder(counts=query.counts, matching=False)
    return run_stream(StreamRequest(query, ListingAnswer(decoder, limit)), rg)


@named_paths
def count(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = None,
    include_zero: bool = False,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> AsyncGenerator[FileCount]:
    """Yield the number of matching lines of each file with a match (`rg --count`).

    With `multiline`, and a pattern that can span lines, rg counts matches instead of lines. rg prints no count for a
    file in which it finds a NUL byte after a match; a warning is logged, and with `text` the file is counted.

    The arguments and errors are the same as in `search()`, without `captures` and `on_progress`. `limit` is
    the maximum number of files. With `include_zero`, files without a match are yielded, too, with the number 0.
    """
    query = placed_search("count()", pattern, cwd, paths, options, "count", include_zero=include_zero)
    return run_stream(StreamRequest(query, ListingAnswer(CountDecoder(), limit)), rg)


@named_paths
def count_matches(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = None,
    include_zero: bool = False,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> AsyncGenerator[FileCount]:
    """Yield the number of matches of each file with a match (`rg --count-matches`); a line may have several.

    As in `count()`, a file in which rg finds a NUL byte after a match has no count.

    The arguments and errors are the same as in `search()`, without `captures` and `on_progress`. `limit` is
    the maximum number of files. With `include_zero`, files without a match are yielded, too, with the number 0.
    """
    query = placed_search("count_matches()", pattern, cwd, paths, options, "count-matches", include_zero=include_zero)
    return run_stream(StreamRequest(query, ListingAnswer(CountDecoder(), limit)), rg)


@named_paths
async def file_types(*, rg: Rg = None) -> dict[str, tuple[str, ...]]:
    """Return the file types that `type=` and `type_not=` accept, each with its globs (`rg --type-list`).

    The types depend on the version of rg (rg-facts 44); `type_add=` adds further types.

    Args:
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.

    Raises:
        BinaryNotFoundError: There is no rg.
        SearchError: rg fails.
    """
    return await run_file_types(AsyncRunner(rg), timeout=None)


async def run_file_types(run: Runner, *, timeout: float | None) -> FileTypes:  # noqa: ASYNC109 - a limit for rg
    """Run `rg --type-list`, and return the globs of each file type."""
    seconds = check_timeout(timeout)
    query = Query("types", _any_directory(), ())
    output = await run.collect(Step(query, lambda: WholeOutput(refuse_failure), seconds))
    if output.timed_out:
        raise TimeoutError(
            f"rg was stopped after timeout={seconds} seconds, before it had listed all types; allow more time"
        )
    return decode_types(b"".join(output.chunks))


def _any_directory() -> str:
    """Return the current directory; if this directory has been removed, return `/`."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.path.abspath(os.sep)

"""rg's other modes: which files match, which do not, how often, and which file types there are."""

from collections.abc import AsyncGenerator, Sequence
from typing import Unpack

from ripwrap._files import Listing
from ripwrap._rg.argv import search_command, types_command
from ripwrap._rg.decoder import CountDecoder, listing_decoder
from ripwrap._rg.limiter import turn
from ripwrap._rg.stream import known_types, stream
from ripwrap.binary.resolver import Rg, resolve
from ripwrap.models import FileCount
from ripwrap.options import SearchOptions, StrPath


def files_with_matches(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[str]:
    """Yield the path of each file with a match (`rg --files-with-matches`); rg leaves a file at its first match.

    Options about lines of context change nothing here. What could not be read is logged as a warning. With
    `invert_match` or `multiline` rg keeps paths to itself until it has some, or ends (rg-facts 51).

    Args and errors are those of `search()`; `limit` counts files.
    """
    command = search_command(pattern, cwd, paths, options, "files-with-matches")
    return stream(command, Listing(listing_decoder(counts=command.counts), limit), rg)


def files_without_match(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[str]:
    """Yield the path of each file without a match (`rg --files-without-match`).

    Args and errors are those of `search()`; `limit` counts files.
    """
    command = search_command(pattern, cwd, paths, options, "files-without-match")
    return stream(command, Listing(listing_decoder(counts=command.counts, matching=False), limit), rg)


def count(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    include_zero: bool = False,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[FileCount]:
    """Yield how many lines match in each file with a match (`rg --count`).

    With `multiline`, and a pattern that can span lines, rg counts matches instead of lines.

    Args and errors are those of `search()`; `limit` counts files, and `include_zero` gives those without a match too.
    """
    command = search_command(pattern, cwd, paths, options, "count", include_zero=include_zero)
    return stream(command, Listing(CountDecoder(), limit), rg)


def count_matches(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    include_zero: bool = False,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[FileCount]:
    """Yield how many matches there are in each file with one (`rg --count-matches`), of which a line may have several.

    Args and errors are those of `search()`; `limit` counts files, and `include_zero` gives those without a match too.
    """
    command = search_command(pattern, cwd, paths, options, "count-matches", include_zero=include_zero)
    return stream(command, Listing(CountDecoder(), limit), rg)


async def file_types(*, rg: Rg = None) -> dict[str, tuple[str, ...]]:
    """The file types that `type=` and `type_not=` take, each with its globs (`rg --type-list`).

    Which there are depends on the rg (rg-facts 44); `type_add=` makes more.

    Args:
        rg: Which rg to ask: a path, or a bare name to find in PATH; `None` finds one.

    Raises:
        BinaryNotFoundError: There is no rg.
    """
    binary = await resolve(rg)
    async with turn():
        return await known_types(types_command(), binary)

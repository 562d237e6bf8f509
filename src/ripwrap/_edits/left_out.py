"""Find the matches that a plan leaves out although rg does not report them: in hidden files and in binary files."""

import os
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import PurePath
from typing import NamedTuple

from ripwrap._ripgrep.decoder import CountDecoder
from ripwrap._ripgrep.listing_collector import ListingCollector
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._safe_open import open_regular_file
from ripwrap.models import PathError

_READ_BYTES = 1 << 20


class UnsearchedMatches(NamedTuple):
    """Matches that a search does not report."""

    errors: tuple[PathError, ...] = ()
    hidden: int = 0


def why_binary(offset: int) -> str:
    """Return the reason to leave out a file with a NUL byte at this offset."""
    return f"it is binary (NUL at byte {offset}); text=True changes binary files, too"


async def find_left_out(
    run: Runner,
    query: Query,
    known: Collection[str],
    seconds: float | None,
    allowed: Callable[[str], bool] | None,
) -> UnsearchedMatches:
    """Search once more, with binary and hidden files, and return what the first search did not report.

    rg stops at the first NUL of a file that it found in a directory, and if this NUL is near the beginning, it does not
    report the file.
    """
    if query.options.get("text") and query.options.get("hidden"):
        return UnsearchedMatches()
    options = query.without("replace").with_(hidden=True, binary=not query.options.get("text", False)).options
    counting = query.another("count-matches", query.patterns, options)
    found = await run.collect(Step(counting, lambda: ListingCollector(CountDecoder(), sys.maxsize), seconds))

    def sort_out() -> UnsearchedMatches:
        more = [one for one in found.every() if one.path not in known and (allowed is None or allowed(one.path))]
        hidden = [one for one in more if _is_hidden(one.path, query.paths)]
        visible = sorted({one.path for one in more} - {one.path for one in hidden})
        errors = [
            PathError(path=path, kind="other", message=f"left out: {why_binary(offset)}")
            for path in visible
            if (offset := _first_nul(query.cwd, path)) is not None
        ]
        if found.timed_out:
            text = f"binary and hidden files were not all searched in {seconds} seconds, so some are not named"
            errors.append(PathError(path=None, kind="other", message=text))
        return UnsearchedMatches(tuple(errors), sum(one.count for one in hidden))

    return await run.call(sort_out)


def _is_hidden(path: str, given: Sequence[str]) -> bool:
    """Return True if a file that rg found is hidden; the caller may have named a path through hidden directories."""
    file = PurePath(path)
    above = [PurePath(os.path.normpath(one)) for one in given] or [PurePath()]
    below = [file.relative_to(one).parts for one in above if file.is_relative_to(one)]
    return all(any(part.startswith(".") for part in parts) for parts in below)


def _first_nul(cwd: str, path: str) -> int | None:
    """Return the offset of the first NUL byte of a file; `None` if it has none, or cannot be read."""
    done = 0
    try:
        with open_regular_file(cwd, path, follow=True) as file:
            while chunk := file.read(_READ_BYTES):
                if (at := chunk.find(0)) >= 0:
                    return done + at
                done += len(chunk)
    except OSError:
        pass
    return None

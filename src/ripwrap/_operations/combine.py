"""List the files in which several patterns match, on the same line or on different lines."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

from ripwrap._ripgrep.decoder import listing_decoder
from ripwrap._ripgrep.literals import AllOf, Required, required_literals
from ripwrap._ripgrep.page_collector import ListingCollector, path_order
from ripwrap._ripgrep.place import Place
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Mode, Query, unmarked, without_options
from ripwrap._ripgrep.runner import AsyncRunner, DeadlineRunner
from ripwrap._system.safe_open import open_regular_file
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, HintedText, named_paths
from ripwrap.options import SearchOptions, StrPath, check_timeout
from ripwrap.places.items import Candidates, ItemPlace
from ripwrap.places.where import PlacedSearchOptions, placed_search

ARGUMENTS = ("all_of", "any_of", "none_of", "cwd", "paths", "rg")
_BLOCK = 1 << 20


@named_paths
async def files_matching(
    *,
    all_of: str | Sequence[str] = (),
    any_of: str | Sequence[str] = (),
    none_of: str | Sequence[str] = (),
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> list[str]:
    """Return the paths of the files that match several patterns, in the order of `rg --sort=path`.

    The patterns may match on different lines. The first search reads all files. Each further search reads only the
    files that are left. Of `all_of`, patterns with long literals are searched first, because long literals are rare.
    The answer is the same as if `files_with_matches()` ran once for each pattern, and the lists of paths were combined.

    ```python
    import asyncio

    import ripwrap

    print(asyncio.run(ripwrap.files_matching(all_of=["TODO", "def "], none_of="cards", cwd="demo")))
    ```

    ```text
    ['shop/cart.py']
    ```

    Args:
        all_of: Regular expressions (https://docs.rs/regex), each of which must match in a file.
        any_of: Regular expressions of which at least one must match in a file.
        none_of: Regular expressions of which none may match in a file.
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, any number of them, as in `search()`; empty is all of `cwd`.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags for all patterns, and where to search, as in `search()`. `sort` and `sortr` have no
            effect.

    Raises:
        ValueError: There is no pattern; or see `search()`.
        TypeError, pydantic.ValidationError, FileNotFoundError, NotADirectoryError, BinaryNotFoundError: See `search()`.
        PatternError, GlobError, UnknownTypeError, CapabilityError, SearchError, DecodeError: See `search()`.
    """
    every, some, none = ((one,) if isinstance(one, str) else tuple(one) for one in (all_of, any_of, none_of))
    if not (every or some or none):
        names = (Hint("all_of"), ", ", Hint("any_of"), " or ", Hint("none_of"))
        raise ValueError(HintedText("no pattern given; pass ", *names))
    unsorted = without_options(options, ("sort", "sortr"))
    patterns = (*every, *some, *none)
    query = placed_search("files_matching()", patterns, cwd, paths, unsorted, arguments=ARGUMENTS)
    conditions = [Condition((one,), matching=True) for one in sorted(every, key=lambda one: commonness(options, one))]
    conditions += [Condition(some, matching=True)] if some else []
    conditions += [Condition(none, matching=False)] if none else []
    return await run_matching(AsyncRunner(rg), query, conditions, timeout=None)


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition on a file."""

    patterns: tuple[str, ...]
    matching: bool


def _alone(query: Query, condition: Condition) -> list[Condition]:
    """Return the conditions to search for one by one: with `invert_match`, one for each pattern.

    In one run with several patterns, only a line that matches none of them would count.
    """
    if not query.options.get("invert_match"):
        return [condition]
    return [replace(condition, patterns=(pattern,)) for pattern in condition.patterns]


def commonness(options: SearchOptions, pattern: str) -> int:
    """Return a sort key that is lower for a pattern with longer literals; 0 for a pattern without literals."""
    required = required_literals([pattern], options)
    return 0 if required is None else -_length(required)


def _length(required: Required) -> int:
    if isinstance(required, bytes):
        return len(required)
    longest: Callable[[Iterable[int]], int] = max if isinstance(required, AllOf) else min
    return longest(map(_length, required.parts))


async def run_matching(
    run: Runner,
    query: Query,
    conditions: Sequence[Condition],
    *,
    timeout: float | None,  # noqa: ASYNC109
) -> list[str]:
    """Search once for each condition, in the files that meet the earlier conditions; return the files that meet all."""
    within = DeadlineRunner(run, check_timeout(timeout))
    first, *others = conditions
    listings = [await within.collect(_first_step(query, one)) for one in _alone(query, first)]
    if listings[0].end is not None:  # the others could not read the same paths
        listings[0].end.warn()
    combined = set[str].union if first.matching else set[str].intersection
    left = combined(*(set(listing.every()) for listing in listings))
    query = replace(query, must_exist=False)  # a file may vanish between two searches
    binary = await _binary(within, query, left) if others else set[str]()
    for condition in others:
        found: set[str] = set()
        for one in _alone(query, condition):
            found |= await _matching(within, query, one, left, binary)
        left = left & found if condition.matching else left - found
    return sorted(map(unmarked, left), key=lambda path: path_order(os.fsencode(path)))


def _first_step(query: Query, condition: Condition) -> Step[ListingCollector[str]]:
    mode: Mode = "files-with-matches" if condition.matching else "files-without-match"
    query = replace(query, patterns=condition.patterns, mode=mode, numbered="")
    counts, matching = query.counts, condition.matching
    return Step(query, lambda: ListingCollector[str](listing_decoder(counts=counts, matching=matching)), None)


async def _matching(run: Runner, query: Query, condition: Condition, left: set[str], binary: set[str]) -> set[str]:
    """Return the files of `left` in which at least one pattern of the condition matches; see `_binary()`."""
    paths = sorted(left)
    if left and not _can_name_files(query):
        step = _first_step(query, replace(condition, matching=True))
        return set((await run.collect(step)).every())
    plain = tuple(path for path in paths if path not in binary)
    place: Place = Candidates(len(paths), plain, tuple(sorted(binary & left)), (), None, query.follows)
    if query.place is not None:
        place = ItemPlace(tuple)
    query = replace(query, patterns=condition.patterns, mode="files-with-matches", place=place)
    step = Step(query, lambda: ListingCollector[str](listing_decoder(counts=query.counts)), None)
    return set((await run.collect(step)).every()) & left


def _can_name_files(query: Query) -> bool:
    """Return True if a search can name the files that are left in its paths; False in a place or on a host."""
    return query.place is None and query.on is None


async def _binary(run: Runner, query: Query, left: set[str]) -> set[str]:
    """Return the files with a NUL byte that the caller did not name; an empty set if no search names files."""
    named = frozenset(query.paths)
    if not _can_name_files(query):
        return set()
    return await run.call(lambda: {path for path in left - named if _has_nul(query.cwd, path)})


def _has_nul(cwd: str, path: str) -> bool:
    """Return True if a file, or its text in an overlay, has a NUL byte.

    rg searches such a file to its end only if the command line names the file (rg-facts 20).
    """
    try:
        with open_regular_file(cwd, path, follow=True) as file:
            while block := file.read(_BLOCK):
                if b"\0" in block:
                    return True
    except OSError:  # the file is gone or cannot be read; rg reports that
        return False
    return False

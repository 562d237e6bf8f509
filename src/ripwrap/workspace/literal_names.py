"""Globs that are names of files: `app/[slug]/page.tsx`, or `data,2024.csv`, whose comma separates no globs."""

import re
from collections.abc import Awaitable, Callable
from functools import partial

from ripwrap._ripgrep.command import files_query
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.listing_collector import ListingCollector
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._windows import IS_WINDOWS
from ripwrap.options import FileOptions
from ripwrap.workspace.arguments import comma_separated
from ripwrap.workspace.scope import LEFT_OUT, Scope, anchored, as_name, half, plain_glob, unescaped, wider

HasName = Callable[[str], Awaitable[bool]]
"""Function that returns True if a file matches a glob, or is in a directory that matches it."""


async def resolve_names(globs: str, has: HasName) -> str:
    """Return the globs of a call, separated by commas, in which the names of files are escaped.

    If the whole text is a name, its commas separate no globs. A glob that does not parse, or has backslashes, may be a
    name, too. Both only count if there is such a file. A text with a wildcard before its first comma, or a `!` at its
    beginning, is a list.
    """
    split = comma_separated(globs)
    if (
        len(split) > 1
        and not globs.lstrip().startswith("!")
        and "," in re.split(r"[*?]", globs, maxsplit=1)[0]
        and await has(as_name(globs))
    ):
        return as_name(globs)
    return ",".join([await _resolved(one, has) for one in split]) if any(map(_may_be_name, split)) else globs


async def _resolved(glob: str, has: HasName) -> str:
    mark, bare = ("!", glob[1:]) if glob.startswith("!") else ("", glob)
    return mark + as_name(bare) if _may_be_name(glob) and await has(as_name(bare)) else glob


def _may_be_name(glob: str) -> bool:
    """Return True if a glob with brackets or braces does not parse, or if it has backslashes that may be meant so."""
    if "\\" in glob and not IS_WINDOWS:
        return unescaped(glob) == glob
    if not re.search(r"[\[\]{}]", glob):
        return False
    from ripwrap._ignore.globs import parse_glob  # late: it imports pathspec

    try:
        parse_glob(glob.removeprefix("!"), allow_unclosed=False)
    except ValueError:
        return True
    return False


def names_on_disk(run: Runner, scope: Scope, placed: Callable[[Query], Query] | None = None) -> HasName:
    """Return the function that looks up a name with rg, also among hidden and ignored files."""
    return partial(_is_listed, run, scope, placed)


async def _is_listed(run: Runner, scope: Scope, placed: Callable[[Query], Query] | None, name: str) -> bool:
    globs = [one for glob in (name, f"{name.rstrip('/')}/") for one in anchored(plain_glob(glob), scope.location)]
    wide = wider(scope, LEFT_OUT, half(scope.timeout))
    options: FileOptions = {**wide.options, "glob": globs}
    query = files_query(scope.location.cwd, scope.location.paths, options)
    query = query if placed is None else placed(query)
    listing = await run.collect(
        Step(query, lambda: ListingCollector(PathDecoder(), 1, allowed=scope.allowed), wide.timeout)
    )
    return listing.total > 0

"""Trees: files arranged as an indented listing that shows a little of every directory.

The seed's algorithm: directories before files, each alphabetically whatever their case; entries are taken level by
level, and in a level in turn from every directory, until `limit` are taken; a directory that has more shows `[N
truncated]`, the number of its direct children that are missing.
"""

import os
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator
from contextlib import aclosing
from itertools import zip_longest
from typing import TypeAlias, Unpack

import anyio.lowlevel

from ripwrap._files import Listing
from ripwrap._rg.argv import Command, files_command
from ripwrap._rg.decoder import PathDecoder
from ripwrap._rg.limiter import turn
from ripwrap._rg.stream import able, stream
from ripwrap.binary.resolver import Rg
from ripwrap.models import TreeEntry
from ripwrap.options import FileOptions, StrPath, check_limit
from ripwrap.results import TreeText

Directory: TypeAlias = dict[str, "Directory | None"]
"""Names to what they are: a directory, or `None` for a file."""

Children: TypeAlias = list[tuple[str, Directory | None]]
Order: TypeAlias = Callable[[Directory], Children]

EXCLUDE = (".opencode",)
LIMIT = 50
_TURN = 100


def tree(
    *,
    cwd: StrPath = ".",
    limit: int | None = LIMIT,
    exclude: Collection[str] = EXCLUDE,
    rg: Rg = None,
    **options: Unpack[FileOptions],
) -> AsyncGenerator[TreeEntry]:
    """List files as a tree and yield its entries in the order in which they are printed; `str(entry)` is the line.

    All files are listed before the first entry comes. Directories without files do not show, since rg lists files only.

    Args:
        cwd: The root, which is itself no entry.
        limit: How many files and directories to show at most; `[N truncated]` entries are not counted. `None` shows
            all.
        exclude: Names of files and directories to leave out, wherever they stand.
        rg: Which rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags; see `FileOptions`.

    Raises what `files()` raises.
    """
    return _tree(files_command(cwd, (), options), rg, check_limit(limit), checked_names(exclude))


async def tree_text(
    *,
    cwd: StrPath = ".",
    limit: int | None = LIMIT,
    exclude: Collection[str] = EXCLUDE,
    rg: Rg = None,
    **options: Unpack[FileOptions],
) -> TreeText:
    """The text of a tree: `render_tree()` of what `tree()` yields; same arguments, same errors.

    ```python
    import asyncio

    import ripwrap

    print(asyncio.run(ripwrap.tree_text(cwd="docs/demo")))
    ```

    ```text
    shop/
        cart.py
        till.py
    README.txt
    ```
    """
    return render_tree([entry async for entry in tree(cwd=cwd, limit=limit, exclude=exclude, rg=rg, **options)])


def render_tree(entries: Iterable[TreeEntry]) -> TreeText:
    """The entries' lines: four spaces a level, `/` after a directory, no newline at the end.

    It is a string that a notebook and a rich console know to show.
    """
    return TreeText(entries)


async def _tree(command: Command, rg: Rg, limit: int | None, exclude: frozenset[str]) -> AsyncGenerator[TreeEntry]:
    root: Directory = {}
    binary = await able(command, rg)
    async with turn(), aclosing(stream(command, Listing(PathDecoder(), None), binary)) as listing:
        async for path in listing:
            plant(root, path, exclude)
    for number, entry in enumerate(arrange(root, limit)):
        if number % _TURN == 0:  # A tree without a limit may have a million entries.
            await anyio.lowlevel.checkpoint()
        yield entry


def checked_names(exclude: Collection[str]) -> frozenset[str]:
    """The names to leave out.

    Raises:
        TypeError: It is a single string, whose letters would be taken for names.
    """
    if isinstance(exclude, str):
        raise TypeError(f"exclude should be a collection of names, e.g. ({exclude!r},), not a str")
    return frozenset(exclude)


def plant(root: Directory, path: str, exclude: frozenset[str]) -> None:
    """Put a file where it belongs below `root`, unless a part of its path is to be left out."""
    *parents, name = path.split(os.sep)
    if name not in exclude and exclude.isdisjoint(parents):
        plant_parts(root, parents, name)


def plant_parts(root: Directory, parents: Iterable[str], name: str) -> None:
    """Put a file into the directory that is below `root` by the names of its parents."""
    directory_at(root, parents).setdefault(name, None)


def directory_at(root: Directory, names: Iterable[str]) -> Directory:
    """The directory that is below `root` by these names, made if need be."""
    directory = root
    for name in names:
        below = directory.get(name)
        if below is None:
            below = directory[name] = {}
        directory = below
    return directory


def arrange(root: Directory, limit: int | None, order: Order | None = None) -> Iterator[TreeEntry]:
    """The entries in the order in which they are printed, with those for what `limit` leaves out.

    Args:
        root: What to arrange.
        limit: How many entries at most.
        order: What gives the children of a directory in their order, if that is known from before.
    """
    order = order or in_order
    shares = None if limit is None else _shares(root, limit, order)
    # A stack and not recursion: paths may be deeper than Python's stack.
    stack = [_entries(root, "", 0, shares, order)]
    while stack:
        for entry, directory in stack[-1]:
            yield entry
            if directory is not None:
                stack.append(_entries(directory, entry.path, entry.depth + 1, shares, order))
                break
        else:
            stack.pop()


def _entries(
    directory: Directory, path: str, depth: int, shares: dict[int, int] | None, order: Order
) -> Iterator[tuple[TreeEntry, Directory | None]]:
    share = len(directory) if shares is None else shares.get(id(directory), 0)
    for name, child in order(directory)[:share]:
        is_dir = child is not None
        yield TreeEntry(path=os.path.join(path, name), name=name, depth=depth, is_dir=is_dir), child
    if missing := len(directory) - share:
        yield TreeEntry(path=path, name=f"[{missing} truncated]", depth=depth, truncated=missing), None


def _shares(root: Directory, limit: int, order: Order) -> dict[int, int]:
    """How many children each directory (by its id) may show; always the first ones, so a number says it all."""
    shares: dict[int, int] = {}
    level = [root]
    while level and limit:
        taken: list[Directory] = []
        for row in zip_longest(*map(order, level)):
            for directory, child in zip(level, row, strict=True):
                if child is None or not limit:
                    continue
                limit -= 1
                shares[id(directory)] = shares.get(id(directory), 0) + 1
                below: Directory | None = child[1]
                if below is not None:
                    taken.append(below)
        level = taken
    return shares


def in_order(directory: Directory) -> Children:
    """The children of a directory: directories before files, each alphabetically whatever their case."""
    return sorted(directory.items(), key=lambda item: (item[1] is None, item[0].casefold(), item[0]))

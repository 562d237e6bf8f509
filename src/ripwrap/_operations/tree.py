"""Arrange files as a tree that shows a few entries of every directory.

Directories come before files; both are sorted by name, ignoring case. Entries are chosen level by level, up to `limit`
entries. Within a level, the first entry of each directory is chosen, then the second entry of each directory, and so
on. If entries of a directory are left out, its last line is `[N truncated]`; N is the number of its direct children
that are left out.
"""

import os
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator
from itertools import zip_longest
from typing import TypeAlias, Unpack

from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.page_collector import BaseListingCollector
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap.binary.resolver import Rg
from ripwrap.errors import named_paths
from ripwrap.models import TreeEntry
from ripwrap.options import FileOptions, StrPath, check_limit, check_timeout
from ripwrap.places.where import PlacedFileOptions, placed_files
from ripwrap.results import Tree

TreeDirectory: TypeAlias = dict[str, "TreeDirectory | None"]
"""Entries of a directory by name; the value is another directory, or `None` for a file."""

Children: TypeAlias = list[tuple[str, TreeDirectory | None]]
Order: TypeAlias = Callable[[TreeDirectory], Children]

EXCLUDE = (".opencode",)
TREE_LIMIT = 50
CHECKPOINT_INTERVAL = 100
"""Number of entries after which other tasks run; a tree without a limit may have a million entries."""


@named_paths
def tree(
    *,
    cwd: StrPath | None = ".",
    limit: int | None = TREE_LIMIT,
    exclude: Collection[str] = EXCLUDE,
    rg: Rg = None,
    **options: Unpack[PlacedFileOptions],
) -> AsyncGenerator[TreeEntry]:
    """List files as a tree and yield its entries in the order in which they are printed; `str(entry)` is its line.

    All files are listed before the first entry is yielded. A directory without files has no entry, because rg lists
    only files. With `max_depth`, a directory at this depth has an entry, and what is in it has none.

    Args:
        cwd: The root of the tree. The root itself has no entry.
        limit: Maximum number of files and directories; `[N truncated]` entries are not counted. `None` shows all.
        exclude: Names of files and directories to leave out, at any depth; by default `.opencode`.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags, and where to list files, as in `files()`.

    Raises what `files()` raises, and `TypeError` if `exclude` is a string.
    """
    return _yield_entries(AsyncRunner(rg), tree_request(cwd, limit, exclude, options, timeout=None))


@named_paths
async def tree_text(
    *,
    cwd: StrPath | None = ".",
    limit: int | None = TREE_LIMIT,
    exclude: Collection[str] = EXCLUDE,
    rg: Rg = None,
    **options: Unpack[PlacedFileOptions],
) -> Tree:
    """List files as a tree and return the whole tree; its `str()` is the text.

    ```python
    import asyncio

    import ripwrap

    print(asyncio.run(ripwrap.tree_text(cwd="demo", glob="*.py")))
    ```

    ```text
    shop/
        cart.py
        till.py
    ```

    The arguments and errors are the same as in `tree()`.
    """
    return await run_tree(AsyncRunner(rg), tree_request(cwd, limit, exclude, options, timeout=None))


TreeRequest: TypeAlias = tuple[Step["FileTreeCollector"], int | None]
"""Checked arguments of `tree()` or `tree_text()`: what lists the files, and the limit."""


def tree_request(
    cwd: StrPath | None, limit: int | None, exclude: Collection[str], options: FileOptions, *, timeout: float | None
) -> TreeRequest:
    """Check the arguments, and return the request of `tree()` and `tree_text()`."""
    query = placed_files("tree()", cwd, (), options, ("cwd", "limit", "exclude", "rg"))
    seconds, checked = check_timeout(timeout), check_limit(limit)
    if isinstance(exclude, str):
        raise TypeError(f"exclude must be a collection of names such as ({exclude!r},), got a str")
    names = frozenset(exclude)
    # rg lists only files, so the directories at the maximum depth are known from the files below them.
    depth, query = query.options.get("max_depth"), query.without("max_depth", "sort", "sortr")
    return Step(query, lambda: FileTreeCollector(names, depth, seconds), seconds), checked


async def run_tree(run: Runner, request: TreeRequest) -> Tree:
    """List the files, and return them as a tree."""
    entries: list[TreeEntry] = []
    for number, entry in enumerate(await run_listing(run, request), 1):
        entries.append(entry)
        if number % CHECKPOINT_INTERVAL == 0:
            await run.checkpoint()
    return Tree(entries=tuple(entries))


async def run_listing(run: Runner, request: TreeRequest) -> Iterator[TreeEntry]:
    """List the files, and return an iterator over the entries of their tree."""
    step, limit = request
    return arrange((await run.collect(step)).root, limit)


async def _yield_entries(run: AsyncRunner, request: TreeRequest) -> AsyncGenerator[TreeEntry]:
    for number, entry in enumerate(await run_listing(run, request)):
        if number % CHECKPOINT_INTERVAL == 0:
            await run.checkpoint()
        yield entry


class FileTreeCollector(BaseListingCollector[str]):
    """Collector that arranges paths of files below their directories."""

    def __init__(self, exclude: frozenset[str], depth: int | None, timeout: float | None) -> None:
        super().__init__(PathDecoder())
        self.root: TreeDirectory = {}
        self._exclude = exclude
        self._depth = depth
        self._timeout = timeout

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        for path in self._decoder.feed(chunk):
            insert_path(self.root, path, self._exclude, self._depth)

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Store the exit of rg."""
        super().finish(end, timed_out=timed_out)
        if self.timed_out:
            raise TimeoutError(
                f"rg was stopped after timeout={self._timeout} seconds, before it had listed all files; allow more time"
            )
        end.warn()


def render_tree(entries: Iterable[TreeEntry]) -> Tree:
    """Return the tree of these entries; deprecated, use `Tree(entries=…)`."""
    return Tree(entries=tuple(entries))


def insert_path(root: TreeDirectory, path: str, exclude: frozenset[str], depth: int | None = None) -> None:
    """Insert a file below `root`, unless a name in its path is excluded; below `depth`, only its directories."""
    *parents, name = path.split(os.sep)
    if name in exclude or not exclude.isdisjoint(parents):
        return
    if depth is None or len(parents) < depth:
        insert_parts(root, parents, name)
    else:
        directory_at(root, parents[:depth])


def insert_parts(root: TreeDirectory, parents: Iterable[str], name: str) -> None:
    """Insert a file below `root`, into the directory with the path `parents`."""
    directory_at(root, parents).setdefault(name, None)


def directory_at(root: TreeDirectory, names: Iterable[str]) -> TreeDirectory:
    """Return the directory with the path `names` below `root`; make it if it is missing."""
    directory = root
    for name in names:
        below = directory.get(name)
        if below is None:
            below = directory[name] = {}
        directory = below
    return directory


def arrange(root: TreeDirectory, limit: int | None, order: Order | None = None) -> Iterator[TreeEntry]:
    """Yield the entries of a tree as they are printed. Where `limit` leaves entries out, `[N truncated]` is yielded."""
    order = order or in_order
    visible = None if limit is None else _visible_counts(root, limit, order)
    # This uses a stack instead of recursion, because a path may be deeper than Python's recursion limit.
    stack = [_entries(root, "", 0, visible, order)]
    while stack:
        for entry, directory in stack[-1]:
            yield entry
            if directory is not None:
                stack.append(_entries(directory, entry.path, entry.depth + 1, visible, order))
                break
        else:
            stack.pop()


def _entries(
    directory: TreeDirectory, path: str, depth: int, visible: dict[int, int] | None, order: Order
) -> Iterator[tuple[TreeEntry, TreeDirectory | None]]:
    shown = len(directory) if visible is None else visible.get(id(directory), 0)
    for name, child in order(directory)[:shown]:
        is_dir = child is not None
        yield TreeEntry(path=os.path.join(path, name), name=name, depth=depth, is_dir=is_dir), child
    if missing := len(directory) - shown:
        yield TreeEntry(path=path, name=f"[{missing} truncated]", depth=depth, truncated=missing), None


def _visible_counts(root: TreeDirectory, limit: int, order: Order) -> dict[int, int]:
    """Return the number of children to show for each directory, by the `id()` of the directory."""
    visible: dict[int, int] = {}
    level = [root]
    while level and limit:
        taken: list[TreeDirectory] = []
        for row in zip_longest(*map(order, level)):
            if not limit:
                break
            for directory, child in zip(level, row, strict=True):
                if child is None or not limit:
                    continue
                limit -= 1
                visible[id(directory)] = visible.get(id(directory), 0) + 1
                below: TreeDirectory | None = child[1]
                if below is not None:
                    taken.append(below)
        level = taken
    return visible


def in_order(directory: TreeDirectory) -> Children:
    """Return the children of a directory: directories before files, both sorted by name, ignoring case."""
    return sorted(directory.items(), key=lambda item: (item[1] is None, item[0].casefold(), item[0]))

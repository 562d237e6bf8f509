"""ripwrap's operations for code that does not await: the same names, blocking.

Each takes what its asynchronous twin takes, and `timeout` in seconds besides, since a blocking call cannot be
cancelled: rg is ended when so long has passed since the first item was asked for, and after what it had found by then
comes a `TimeoutError`. (Time in which a call waits for its turn is not counted; see `ripwrap.limit_processes()`.) A
generator that is left early ends its rg when it is closed or collected; `contextlib.closing` makes that moment
certain.

```python
from ripwrap import sync

for match in sync.search("TODO", cwd="docs/demo", glob="*.py", sort="path", timeout=10):
    print(match.path, match.spans())
```

```text
shop/cart.py ((6, 10),)
shop/till.py ((20, 24),)
```
"""

import sys
from collections.abc import Collection, Generator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Unpack

from ripwrap._files import Listing
from ripwrap._grep import MAX_MATCHES, TIMEOUT, grep_plan
from ripwrap._rank import LIMIT as PLACES
from ripwrap._rank import rank_plan
from ripwrap._rg.argv import Command, files_command, search_command, types_command
from ripwrap._rg.collect import carry_out_blocking
from ripwrap._rg.decoder import CountDecoder, PathDecoder, listing_decoder
from ripwrap._rg.limiter import turn_blocking
from ripwrap._rg.stream import able_blocking, known_types_blocking, stream_blocking
from ripwrap._search import Matches, Messages
from ripwrap._tree import EXCLUDE, LIMIT, Directory, arrange, checked_names, plant, render_tree
from ripwrap._workspace_blocking import Workspace
from ripwrap.binary.probe import RgBinary
from ripwrap.binary.resolver import Rg, find
from ripwrap.binary.resolver import install_blocking as install
from ripwrap.models import FileCount, Match, Message, TreeEntry
from ripwrap.options import FileOptions, SearchOptions, StrPath, check_limit, check_timeout
from ripwrap.results import GrepResult, RankedChunk, TreeText

if TYPE_CHECKING:
    from ripwrap.index.blocking import Index

__all__ = [
    "Index",
    "Workspace",
    "count",
    "count_matches",
    "file_types",
    "files",
    "files_with_matches",
    "files_without_match",
    "grep",
    "install",
    "rank",
    "render_tree",
    "resolve",
    "search",
    "search_messages",
    "tree",
    "tree_text",
]


if not TYPE_CHECKING:  # or every name would be one of ours

    def __getattr__(name: str) -> Any:
        if name != "Index":  # which is loaded when it is first used
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        from ripwrap.index.blocking import Index

        return globals().setdefault(name, Index)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


def resolve(rg: Rg = None, *, timeout: float | None = None) -> RgBinary:
    """As `ripwrap.binary.resolve()`, blocking; installing may take `timeout` seconds, or two minutes."""
    return find(rg, timeout=check_timeout(timeout))


def search(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    timeout: float | None = None,
    **options: Unpack[SearchOptions],
) -> Generator[Match]:
    """As `ripwrap.search()`, blocking; raises `TimeoutError` after `timeout` seconds."""
    return stream_blocking(search_command(pattern, cwd, paths, options), Matches(limit), rg, check_timeout(timeout))


def search_messages(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    timeout: float | None = None,
    **options: Unpack[SearchOptions],
) -> Generator[Message]:
    """As `ripwrap.search_messages()`, blocking; raises `TimeoutError` after `timeout` seconds."""
    return stream_blocking(search_command(pattern, cwd, paths, options), Messages(limit), rg, check_timeout(timeout))


def grep(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    max_matches: int | None = MAX_MATCHES,
    max_files: int | None = None,
    offset: int = 0,
    timeout: float | None = TIMEOUT,
    explain: bool = False,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> GrepResult:
    """As `ripwrap.grep()`, blocking."""
    plan = grep_plan(pattern, cwd, paths, max_matches, max_files, offset, timeout, options, explain=explain)
    return carry_out_blocking(plan, rg)


def files_with_matches(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    timeout: float | None = None,
    **options: Unpack[SearchOptions],
) -> Generator[str]:
    """As `ripwrap.files_with_matches()`, blocking; raises `TimeoutError` after `timeout` seconds."""
    command = search_command(pattern, cwd, paths, options, "files-with-matches")
    decoder = listing_decoder(counts=command.counts)
    return stream_blocking(command, Listing(decoder, limit), rg, check_timeout(timeout))


def files_without_match(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    timeout: float | None = None,
    **options: Unpack[SearchOptions],
) -> Generator[str]:
    """As `ripwrap.files_without_match()`, blocking; raises `TimeoutError` after `timeout` seconds."""
    command = search_command(pattern, cwd, paths, options, "files-without-match")
    decoder = listing_decoder(counts=command.counts, matching=False)
    return stream_blocking(command, Listing(decoder, limit), rg, check_timeout(timeout))


def count(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    include_zero: bool = False,
    rg: Rg = None,
    timeout: float | None = None,
    **options: Unpack[SearchOptions],
) -> Generator[FileCount]:
    """As `ripwrap.count()`, blocking; raises `TimeoutError` after `timeout` seconds."""
    command = search_command(pattern, cwd, paths, options, "count", include_zero=include_zero)
    return stream_blocking(command, Listing(CountDecoder(), limit), rg, check_timeout(timeout))


def count_matches(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    include_zero: bool = False,
    rg: Rg = None,
    timeout: float | None = None,
    **options: Unpack[SearchOptions],
) -> Generator[FileCount]:
    """As `ripwrap.count_matches()`, blocking; raises `TimeoutError` after `timeout` seconds."""
    command = search_command(pattern, cwd, paths, options, "count-matches", include_zero=include_zero)
    return stream_blocking(command, Listing(CountDecoder(), limit), rg, check_timeout(timeout))


def file_types(*, rg: Rg = None, timeout: float | None = None) -> dict[str, tuple[str, ...]]:
    """As `ripwrap.file_types()`, blocking; raises `TimeoutError` after `timeout` seconds."""
    seconds = check_timeout(timeout)
    binary = find(rg, timeout=seconds)
    with turn_blocking():
        return known_types_blocking(types_command(), binary, seconds)


def files(
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    timeout: float | None = None,
    **options: Unpack[FileOptions],
) -> Generator[str]:
    """As `ripwrap.files()`, blocking; raises `TimeoutError` after `timeout` seconds."""
    return stream_blocking(
        files_command(cwd, paths, options), Listing(PathDecoder(), limit), rg, check_timeout(timeout)
    )


def rank(
    query: str,
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = PLACES,
    rg: Rg = None,
    timeout: float | None = None,
    **options: Unpack[FileOptions],
) -> list[RankedChunk]:
    """As `ripwrap.rank()`, blocking; raises `TimeoutError` if there is no answer after `timeout` seconds."""
    return carry_out_blocking(rank_plan(query, cwd, paths, limit, options, timeout), rg)


def tree(
    *,
    cwd: StrPath = ".",
    limit: int | None = LIMIT,
    exclude: Collection[str] = EXCLUDE,
    rg: Rg = None,
    timeout: float | None = None,
    **options: Unpack[FileOptions],
) -> Generator[TreeEntry]:
    """As `ripwrap.tree()`, blocking; raises `TimeoutError` after `timeout` seconds, before the first entry."""
    command = files_command(cwd, (), options)
    return _tree(command, rg, check_timeout(timeout), check_limit(limit), checked_names(exclude))


def tree_text(
    *,
    cwd: StrPath = ".",
    limit: int | None = LIMIT,
    exclude: Collection[str] = EXCLUDE,
    rg: Rg = None,
    timeout: float | None = None,
    **options: Unpack[FileOptions],
) -> TreeText:
    """As `ripwrap.tree_text()`, blocking; raises `TimeoutError` after `timeout` seconds."""
    return render_tree(tree(cwd=cwd, limit=limit, exclude=exclude, rg=rg, timeout=timeout, **options))


def _tree(
    command: Command, rg: Rg, timeout: float | None, limit: int | None, exclude: frozenset[str]
) -> Generator[TreeEntry]:
    root: Directory = {}
    binary = able_blocking(command, rg, timeout)
    with (
        turn_blocking(),
        closing(stream_blocking(command, Listing(PathDecoder(), None), binary, timeout)) as listing,
    ):
        for path in listing:
            plant(root, path, exclude)
    yield from arrange(root, limit)

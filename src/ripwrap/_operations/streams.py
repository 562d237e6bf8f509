"""Search items: pairs of a name and a content, such as members of an archive, objects in a store or texts in memory."""

from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import replace
from typing import TypeVar, Unpack

from ripwrap._operations.grep import GREP_LIMIT, GREP_TIMEOUT, grep_request, run_grep
from ripwrap._operations.search import MatchAnswer, refuse_context
from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap._ripgrep.spool import check_items
from ripwrap._ripgrep.stream import StreamRequest, run_stream, run_stream_blocking
from ripwrap.binary.resolver import Rg
from ripwrap.errors import named_paths
from ripwrap.models import Match
from ripwrap.options import SearchOptions, check_limit
from ripwrap.places.items import ARGUMENTS, NOWHERE, ItemPlace, in_items
from ripwrap.results import GrepResult
from ripwrap.sources.base import AnyItems

T = TypeVar("T")


@named_paths
def search_in(
    pattern: str | Sequence[str],
    items: AnyItems,
    *,
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[Match]:
    """Search items for a pattern and yield each matching line, in the order of the items.

    An item is a pair of a name and a content, which is `bytes` or `str`. The results are the same as if each item was a
    file of one directory: line numbers and offsets count within the item, no match spans two items, and binary items
    are treated as binary files. `Match.path` is the name of the item. A name may be any string, and two items may have
    the same name.

    Items are taken from `items` while the caller iterates, a few batches in advance. A batch is full at 2,048 items
    (the first batches at fewer items), or as soon as its items have 16 MiB or more. Batches are written to a private
    temporary directory, which is deleted at the end. If items arrive slowly, a batch is searched before it is full, so
    that its matches are yielded at the latest when the next item has arrived.

    ```python
    import asyncio

    import ripwrap

    items = [("till.py", "def pay(amount):  # TODO: cards"), ("notes", b"nothing to do")]


    async def main():
        async for match in ripwrap.search_in("TODO", items):
            print(match.path, match.line_number, match.text)


    asyncio.run(main())
    ```

    ```text
    till.py 1 def pay(amount):  # TODO: cards
    ```

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        items: Iterable or async iterable of pairs: a name, and a content as `bytes` or `str`. A `str` is searched as
            UTF-8. An iterable that is not async is read in a worker thread. ripwrap does not close the iterator.
        limit: Maximum number of matches, over all items. (`max_count` is the limit for each item.)
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags; see `SearchOptions`. `glob`, `type`, `hidden` and `max_depth` choose items by their
            names, as if these were paths. `sort`, `sortr`, `threads` and `ignore_file` are errors. Other options about
            ignore files and links have no effect.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: `limit` is negative, there is no pattern, a pattern or option has a NUL, or `sort`, `sortr`,
            `threads` or `ignore_file` is given.
        TypeError: `items` is not iterable, an item is not a pair of a name and a content, or `limit` is not an int.
        BinaryNotFoundError: There is no rg.
        PatternError, GlobError, UnknownTypeError, CapabilityError, SearchError: rg rejects the search, or fails, or an
            item could not be written to a temporary file.
        DecodeError: rg's output is malformed.

    If `items` raises an error, the matches of the items before the error are yielded first. The call itself raises
    errors about arguments. The first iteration raises the other errors.
    """
    refuse_context("search_in()", options)
    check_items(items)
    query = in_items(search_query(pattern, NOWHERE, (), options, arguments=ARGUMENTS), ItemPlace(lambda: items))
    return run_search_in(StreamRequest(query, MatchAnswer(check_limit(limit))), items, rg)


@named_paths
async def grep_in(
    pattern: str | Sequence[str],
    items: AnyItems,
    *,
    limit: int | None = GREP_LIMIT,
    max_files: int | None = None,
    offset: int = 0,
    timeout: float | None = GREP_TIMEOUT,  # noqa: ASYNC109 - as in `grep()`
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> GrepResult:
    r"""Search items and return a page of matches with their context, and the number of all matches.

    The result has the form of a result of `grep()`. `GrepResult.files` are the items with matches on the page, in the
    order of the items, and context never has lines of another item. `GrepResult.root` is empty. If `timeout` seconds
    pass, the result has the matches found until then.

    ```python
    import asyncio

    import ripwrap

    items = [("a.py", "one\nTODO\nthree\n"), ("b.py", "TODO\n")]
    result = asyncio.run(ripwrap.grep_in("TODO", items, context=1))
    print(result)
    ```

    ```text
    a.py-1-one
    a.py:2:TODO
    a.py-3-three
    --
    b.py:1:TODO
    2 matches in 2 files.
    ```

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        items: Pairs of a name and `bytes` or `str`, as in `search_in()`.
        limit: Maximum number of matches on the page, over all items; `None` returns all and holds them in memory.
        max_files: Maximum number of items on the page; `None` is no limit.
        offset: Number of matches before the page: the `next_offset` of the previous page.
        timeout: Seconds that the call may take; `None` is no limit. The time in which `items` produces items is
            included.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags, as in `search_in()`, with the default context of `grep()`.

    Raises what `search_in()` raises, and `ValueError` if an argument is a negative number, or if `passthru` is given.
    """
    check_items(items)
    request = grep_request(
        pattern, NOWHERE, (), limit, max_files, offset, timeout, options, explain=False, arguments=ARGUMENTS
    )
    query = in_items(request.query, ItemPlace(lambda: items))
    return await run_grep(AsyncRunner(rg), replace(request, query=query, rootless=True))


def run_search_in(request: StreamRequest[T], items: AnyItems, rg: Rg) -> AsyncGenerator[T]:  # noqa: ARG001 - see below
    """Search items and yield the matches or messages; raise what `run_stream()` raises."""
    return run_stream(request, rg)


def run_search_in_blocking(request: StreamRequest[T], items: AnyItems, rg: Rg, timeout: float | None) -> Generator[T]:
    """Search items and yield the matches or messages, blocking; raise what `run_stream_blocking()` raises."""
    check_items(items, blocking=True)
    return run_stream_blocking(request, rg, timeout)

"""Results of the decoders for bytes in any chunks, for `test_decoder.py` and `fuzz/`."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

from pydantic import BaseModel

from ripwrap import DecodeError
from ripwrap._operations import pagination as _page
from ripwrap._ripgrep.decoder import MAX_RECORD, CountDecoder, MessageDecoder, PathDecoder
from ripwrap._ripgrep.page_collector import PageCollector, PageRequest
from ripwrap._ripgrep.runner import BlockingRunner, run_blocking


class Outcome(NamedTuple):
    """The decoded items, and True if a `DecodeError` followed them."""

    items: list[Any]
    failed: bool


def without_context(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an operation that yields only matches, which refuses those of context."""
    left_out = ("context", "before_context", "after_context", "passthru")
    return {name: value for name, value in options.items() if name not in left_out}


def cut(stream: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    """Yield the stream in chunks of these sizes, repeated."""
    start = 0
    for size in cycle(sizes):
        if start >= len(stream):
            return
        yield stream[start : start + size]
        start += size


def of_messages(chunks: Iterable[bytes], **options: Any) -> Outcome:
    """Decode as `search_messages()` does; the last two items are the summary and the number of dropped records."""
    decoder = MessageDecoder(**options)
    items, failed = _of(_fed(decoder, chunks))
    return Outcome([*items, decoder.summary, failed or decoder.dropped_records], failed)


def of_matches(chunks: Iterable[bytes]) -> Outcome:
    """Decode as `search()` does."""
    return of_messages(chunks, kinds=("match",))


def of_paths(chunks: Iterable[bytes]) -> Outcome:
    """Decode as `files()` does."""
    return _of(_fed(PathDecoder(), chunks))


def of_counts(chunks: Iterable[bytes]) -> Outcome:
    """Decode as `count()` does."""
    return _of(_fed(CountDecoder(), chunks))


def of_page(chunks: Iterable[bytes], request: PageRequest, max_record: int = MAX_RECORD) -> Outcome:
    """Decode as `grep()` does; the first item is a tuple of counts, the others are the files of the page."""
    collector = PageCollector(request, max_record=max_record)
    _, collect_failed = _of(_fed(collector, chunks))
    files, page_failed = _of(_page_of(request, collector))
    numbers = (
        collector.matches,
        collector.files,
        collector.binary,
        collector.ended,
        collect_failed or collector.dropped_records,
    )
    return Outcome([numbers, *files], collect_failed or page_failed)


def of_grep_matches(chunks: Iterable[bytes]) -> Outcome:
    """Decode all record types that a page uses with its models."""
    models: Mapping[str, type[BaseModel]] = _page._MODELS
    return of_messages(chunks, models=models)


def _page_of(request: PageRequest, collector: PageCollector) -> Generator[Any]:
    yield from run_blocking(_page.files_in_path_order(BlockingRunner(None), request, collector.blocks()))


def _fed(decoder: Any, chunks: Iterable[bytes]) -> Iterator[Any]:
    for chunk in chunks:
        yield from decoder.feed(chunk) or ()
    yield from decoder.close() or ()


def _of(decoding: Iterator[Any]) -> Outcome:
    items: list[Any] = []
    while True:
        try:
            items.append(next(decoding))
        except StopIteration:
            return Outcome(items, failed=False)
        except DecodeError:
            return Outcome(items, failed=True)

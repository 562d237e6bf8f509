"""What the decoders make of rg's bytes, however these are cut, for `test_decoder.py` and `fuzz/`."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

from pydantic import BaseModel

from ripwrap import DecodeError, _page
from ripwrap._rg.decoder import CountDecoder, MessageDecoder, PathDecoder
from ripwrap._rg.framer import MAX_RECORD
from ripwrap._rg.sifter import Sifter, Window


class Outcome(NamedTuple):
    """What was made, and whether a `DecodeError` came behind it."""

    made: list[Any]
    refused: bool


def cut(stream: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    """The stream in chunks of these sizes, over and over."""
    start = 0
    for size in cycle(sizes):
        if start >= len(stream):
            return
        yield stream[start : start + size]
        start += size


def of_messages(chunks: Iterable[bytes], **options: Any) -> Outcome:
    """The messages, then the summary, and, if nothing was refused, how many records were dropped."""
    decoder = MessageDecoder(**options)
    made, refused = _of(_fed(decoder, chunks))
    return Outcome([*made, decoder.summary, refused or decoder.dropped_records], refused)


def of_matches(chunks: Iterable[bytes]) -> Outcome:
    """As `search()` decodes."""
    return of_messages(chunks, kinds=("match",))


def of_paths(chunks: Iterable[bytes]) -> Outcome:
    """As `files()` decodes."""
    return _of(_fed(PathDecoder(), chunks))


def of_counts(chunks: Iterable[bytes]) -> Outcome:
    """As `count()` decodes."""
    return _of(_fed(CountDecoder(), chunks))


def of_page(chunks: Iterable[bytes], window: Window, max_record: int = MAX_RECORD) -> Outcome:
    """As `grep()` decodes: the numbers, then the files."""
    sifter = Sifter(window, max_record=max_record)
    _, sift_refused = _of(_fed(sifter, chunks))
    files, page_refused = _of(_page_of(window, sifter))
    numbers = sifter.matches, sifter.files, sifter.binary, sifter.ended, sift_refused or sifter.dropped_records
    return Outcome([numbers, *files], sift_refused or page_refused)


def of_grep_matches(chunks: Iterable[bytes]) -> Outcome:
    """With the models of a page, of all kinds that it decodes."""
    models: Mapping[str, type[BaseModel]] = _page._MODELS
    return of_messages(chunks, models=models)


def _page_of(window: Window, sifter: Sifter) -> Generator[Any]:
    page = _page.files_of(window, sifter.blocks())
    while True:
        try:
            next(page)
        except StopIteration as end:
            yield from end.value
            return


def _fed(decoder: Any, chunks: Iterable[bytes]) -> Iterator[Any]:
    for chunk in chunks:
        yield from decoder.feed(chunk) or ()
    yield from decoder.close() or ()


def _of(items: Iterator[Any]) -> Outcome:
    made: list[Any] = []
    while True:
        try:
            made.append(next(items))
        except StopIteration:
            return Outcome(made, refused=False)
        except DecodeError:
            return Outcome(made, refused=True)

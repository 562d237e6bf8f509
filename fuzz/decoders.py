"""Fuzz the decoders: the chunks of a stream never change the decoded items, and only `DecodeError` is raised.

An input is a head of five bytes (one for the decoder, three for chunk sizes, one for its options) and a stream.
"""

import os
import sys
from collections.abc import Callable, Iterator

import atheris

from harness import TESTS, fuzz

with atheris.instrument_imports(include=["ripwrap"]):
    from ripwrap import Begin, DecodeError
    from ripwrap._ripgrep.decoder import MAX_RECORD, decode_types, kind_of, path_of
    from ripwrap._ripgrep.page_collector import PageRequest
    from support.outcomes import Outcome, cut, of_counts, of_grep_matches, of_matches, of_messages, of_page, of_paths

_HEAD = 5


def _messages(stream: bytes, sizes: bytes, choice: int) -> None:
    limit = 200 if choice % 2 else MAX_RECORD
    items, _ = _same(lambda chunks: of_messages(chunks, max_record=limit), stream, sizes)
    for message in items[:-1]:  # the last item is the number of dropped records
        if message is not None:
            assert type(message).model_validate_json(message.model_dump_json()) == message, message


def _matches(stream: bytes, sizes: bytes, _: int) -> None:
    _same(of_matches, stream, sizes)


def _grep_matches(stream: bytes, sizes: bytes, _: int) -> None:
    _same(of_grep_matches, stream, sizes)


def _page(stream: bytes, sizes: bytes, choice: int) -> None:
    request = PageRequest(
        offset=choice % 3,
        max_matches=choice // 3 % 4,
        max_files=choice // 12 % 3,
        before=choice // 36 % 2,
        after=choice // 72 % 2,
        max_count=(None, 1)[choice // 144],
    )
    limit = 200 if sizes[0] % 2 else MAX_RECORD
    (_, *files), _ = _same(lambda chunks: of_page(chunks, request, limit), stream, sizes)
    for file in files:
        assert type(file).model_validate_json(file.model_dump_json()) == file, file


def _paths(stream: bytes, sizes: bytes, _: int) -> None:
    _same(of_paths, stream, sizes)


def _counts(stream: bytes, sizes: bytes, _: int) -> None:
    items, _ = _same(of_counts, stream, sizes)
    for count in items:
        assert type(count).model_validate_json(count.model_dump_json()) == count, count


def _types(stream: bytes, *_: object) -> None:
    decode_types(stream)


def _heads(stream: bytes, *_: object) -> None:
    """Check that `kind_of()` and `path_of()`, which `grep()` uses, agree with the decoder."""
    for record in stream.split(b"\n"):
        *messages, _, _ = of_messages([record]).items
        try:
            kind = kind_of(record)
            path = path_of(record) if kind == "begin" else b""
        except DecodeError:
            assert not messages, messages
            continue
        for message in messages:
            assert kind == message.type, message
            if isinstance(message, Begin):
                assert os.fsdecode(path) == (message.path or ""), message


_DECODERS = (_messages, _matches, _grep_matches, _page, _paths, _counts, _types, _heads)


def _same(outcome: Callable[[Iterator[bytes]], Outcome], stream: bytes, sizes: bytes) -> Outcome:
    whole = outcome(iter([stream]))
    in_chunks = outcome(cut(stream, [size + 1 for size in sizes]))
    assert in_chunks == whole, f"{in_chunks} in chunks, {whole} as a whole"
    return whole


def one(data: bytes) -> None:
    """Run one input."""
    head, stream = data[:_HEAD], data[_HEAD:]
    if len(head) == _HEAD:
        _DECODERS[head[0] % len(_DECODERS)](stream, head[1:4], head[4])


def _seeds() -> Iterator[bytes]:
    transcripts = [path.read_bytes() for path in sorted((TESTS / "data").glob("*.jsonl"))]
    records = [line for one in transcripts for line in one.split(b"\n")]
    pieces = [*transcripts, *(b"\n".join(records[at : at + 3]) for at in range(0, len(records), 3))]
    long = b"9" * (sys.int_info.default_max_str_digits + 1)  # more digits than `int()` accepts
    pieces.append(b'{"type":"end","data":{"binary_offset":%b}}' % long)
    listings = [
        b"./a\0%b\n" % long,
        b"./a\0b/c\0\xff\0",
        b"./a\0001\n./b c\00020\n\xff\0003\n",
        b"./a\0001\r\nb\0002\0",
    ]
    types = b"py: *.py, *.pyi\nmake: [Gg]nu[Mm]akefile, *.mk\n"
    for number, decoder in enumerate(_DECODERS):
        written = {_paths: listings, _counts: listings, _types: [types]}.get(decoder, pieces)
        for place, stream in enumerate(written):
            yield bytes([number, 6 * place % 256, 31, 0, 37 * place % 256]) + stream


_WORDS = (
    b'{"type":"begin","data":{"path":{"text":"./',
    *(b'{"type":"%b","data":{"' % kind for kind in (b"begin", b"match", b"context", b"end", b"summary")),
    *(b'"type":"%b"' % kind for kind in (b"begin", b"match", b"context", b"end", b"summary", b"new")),
    *(
        b'"%b":' % key
        for key in (b"data", b"type", b"path", b"text", b"bytes", b"lines", b"submatches", b"replacement")
    ),
    *(b'"%b":' % key for key in (b"line_number", b"absolute_offset", b"binary_offset", b"stats", b"elapsed_total")),
    *(
        b"null",
        b"true",
        b"1e999",
        b"-1",
        b"1.5",
        b"NaN",
        b'"',
        b"{",
        b"}",
        b"}}",
        b"[",
        b"]",
        b",",
        b"\n",
        b"\n\n",
        b"\0",
    ),
    *(b"\r\n", b"./", b"\\ud800", b"\\u0000", b"\\n", b"/w==", b"\xff", b"\xe2\x80\xa8", b"9" * 30),
)

if __name__ == "__main__":
    fuzz(one, _seeds(), _WORDS)

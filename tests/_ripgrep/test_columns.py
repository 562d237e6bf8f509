"""Decoding of rg's output into columns: the rows are those of the models, in chunks of any size."""

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripwrap import Columns, DecodeError, Match
from ripwrap._operations import columns as columns_module
from ripwrap._operations.columns import ColumnDecoder
from ripwrap._ripgrep.decoder import MessageDecoder
from support.effort import times
from support.outcomes import cut

TRANSCRIPTS = sorted((Path(__file__).parents[1] / "data").glob("*.jsonl"))
ALL = {path.stem: path.read_bytes() for path in TRANSCRIPTS}
Row = tuple[object, ...]

HEAD = '{"type":"match","data":{"path":{"text":"%s"},"lines":{"text":"%s"},"line_number":%s,"absolute_offset":7,'
TAIL = '"submatches":[{"match":{"text":"n"},"start":%d,"end":%d}]}}\n'
END = b'{"type":"end","data":{"path":{"text":"a"}}}\n'


def record(path: str = "./a", lines: str = "n\\n", line_number: str = "1", start: int = 0, end: int = 1) -> bytes:
    return ((HEAD % (path, lines, line_number)) + (TAIL % (start, end))).encode()


def rows(columns: Columns) -> list[Row]:
    parts = (columns.path, columns.line_number, columns.absolute_offset, columns.text, columns.spans)
    return list(zip(*parts, strict=True))


def decoded(chunks: Iterable[bytes], max_record: int = 1 << 20) -> tuple[list[Row], bool, dict[str, int], bool]:
    """Return the rows, whether an error followed them, the dropped records, and whether the summary was read."""
    messages, found, failed = MessageDecoder(("match",), max_record=max_record), list[Row](), False
    decoder = ColumnDecoder(messages)
    try:
        for chunk in chunks:
            for columns in decoder.feed(chunk):
                found += rows(columns)
        for columns in decoder.close():
            found += rows(columns)
    except DecodeError:
        failed = True
    return found, failed, dict(messages.dropped), messages.summary is not None


def expected(chunks: Iterable[bytes], max_record: int = 1 << 20) -> tuple[list[Row], bool, dict[str, int], bool]:
    """Return the same, decoded with models."""
    decoder, found, failed = MessageDecoder(("match",), max_record=max_record), list[Match](), False
    try:
        for chunk in chunks:
            for message in decoder.feed(chunk):
                assert isinstance(message, Match)
                found.append(message)
        for message in decoder.close():
            assert isinstance(message, Match)
            found.append(message)
    except DecodeError:
        failed = True
    return rows(Columns.of(found)), failed, dict(decoder.dropped), decoder.summary is not None


@pytest.mark.parametrize("transcript", ALL)
def test_rows_of_a_recorded_search_equal_its_matches(transcript: str) -> None:
    assert decoded([ALL[transcript]]) == expected([ALL[transcript]])


ODD = [
    record(lines=r"n\r\n"),
    record(lines=r"n\u0000"),
    record(lines=r"é n, \"n\"\n", start=3, end=4),
    record(lines=r"é𝄞n\n", start=6, end=7),
    record(lines=r"é𝄞n\n", start=1, end=7),  # a byte pattern matches inside of a character
    record(lines=r"n \\"),  # a backslash at the end of a file
    record(lines=r"n\n\nn\n"),
    record(lines=""),
    record(path=r"./a\\b\"c"),
    record(path="./é/b"),
    record(path="/abs"),
    record(line_number="null"),
    record(lines=r"\"},\"line_number\":1,\"absolute_offset\":2,\"submatches\":[]\n"),
    record().replace(rb'{"text":"n\n"}', b'{"bytes":"bv8K"}'),
    record().replace(b'{"text":"./a"}', b'{"bytes":"Li//"}'),
    record().replace(b'"start":0', b'"replacement":{"text":"x"},"start":0'),
    record().replace(b'"submatches":[', b'"submatches":[{"match":{"text":"},"},"start":0,"end":1},'),
    record().replace(b'"match","data"', b'"context","data"'),
    (
        b'{"data":{"path":{"text":"k"},"lines":{"text":"n"},"line_number":1,"absolute_offset":1,"submatches":[]},'
        b'"type":"match"}\n'
    ),
    b'{"type":"begin","data":{"path":{"text":"a"}}}\n',
    b'{"type":"news","data":{}}\n',
    b"\n",
    END,
    END.removesuffix(b"\n"),  # a match in the same line belongs to this record
]
BROKEN = [
    b"junk\n",
    b"junk",
    record()[:-4] + b"\n",
    record(line_number="1e"),
    record(lines=r"\x"),
    b'{"type":"match"}\n',
]


@pytest.mark.parametrize("odd", [*ODD, *BROKEN], ids=repr)
def test_odd_record_gives_the_rows_of_the_models(odd: bytes) -> None:
    stream = record(line_number="1") + odd + record(line_number="3")
    assert decoded([stream]) == expected([stream])
    assert decoded([odd]) == expected([odd])


@given(st.lists(st.sampled_from([record(), *ODD, *BROKEN]), max_size=8), st.lists(st.integers(1, 900), min_size=1))
def test_chunks_never_change_the_rows(records: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(records)
    assert decoded(cut(stream, sizes)) == expected([stream])


TEXTS = ("é", "𝄞", "\u2028", '{"type":"match","data":{"path":{"text":"', '"},"line_number":')
PIECES = (
    *(b"n", b" ", b'"', b"\\", b"\t", b"\n", b"\r", b"\0", b"\x01", b"\x7f", b"\xff", b"./", b"{", b"}]}}"),
    b"x" * 3000,
    *(text.encode() for text in TEXTS),
)
texts = st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join)


def written(raw: bytes) -> dict[str, str]:
    """Return a text as rg writes it: as bytes if it is not UTF-8."""
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(raw).decode()}


@st.composite
def written_records(draw: st.DrawFn) -> bytes:
    """Return a record as rg writes it, of any kind."""
    kind = draw(st.sampled_from(["match"] * 6 + ["context", "begin", "end"]))
    data: dict[str, Any] = {"path": written(draw(st.sampled_from([b"./a", b"./a/b"]) | texts))}
    if kind in ("match", "context"):
        raw = draw(texts) + draw(st.sampled_from([b"\n", b"\n", b"\r\n", b"\0", b""]))
        bounds = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=6)))
        hits = [
            {"match": written(raw[a:b]), "start": a, "end": b} for a, b in zip(bounds[::2], bounds[1::2], strict=False)
        ]
        if draw(st.integers(0, 9)) == 0:
            hits = [{"match": hit["match"], "replacement": written(draw(texts)), **hit} for hit in hits]
        number = draw(st.none() | st.integers(1, 10**6))
        data |= {"lines": written(raw), "line_number": number, "absolute_offset": draw(st.integers(0, 2**40))}
        data["submatches"] = hits
    message = {"type": kind, "data": data}
    return (json.dumps(message, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


@pytest.mark.slow
@settings(max_examples=times(100, 2000))
@given(st.lists(written_records(), max_size=12), st.lists(st.integers(1, 20_000), min_size=1, max_size=4))
def test_columns_equal_rows_for_any_texts(records: list[bytes], sizes: list[int]) -> None:
    """The columns of generated output are the fields of its matches, however the output is cut."""
    stream = b"".join(records)
    assert decoded(cut(stream, sizes)) == expected([stream])


@given(st.sampled_from(sorted(ALL)), st.lists(st.integers(1, 5000), min_size=1, max_size=5), st.integers(20, 2000))
def test_records_that_are_too_long_are_dropped_and_named(name: str, sizes: list[int], limit: int) -> None:
    chunks = list(cut(ALL[name], sizes))
    assert decoded(chunks, limit) == expected(chunks, limit)


def test_memory_for_known_paths_and_spans_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "_KNOWN_BYTES", 500)
    decoder = ColumnDecoder(MessageDecoder(("match",)))
    stream = [record(path=f"./{number}", start=number, end=number + 1) for number in range(100)]
    assert [row for one in stream for part in decoder.feed(one) for row in rows(part)] == expected(stream)[0]
    for known in (decoder._paths, decoder._spans):  # pyright: ignore[reportPrivateUsage]
        assert 0 < sum(map(len, known)) <= 500


def test_last_record_needs_no_newline() -> None:
    stream = record() + record(line_number="2").removesuffix(b"\n")
    assert decoded([stream]) == expected([stream])
    assert [row[1] for row in decoded([stream])[0]] == [1, 2]


def test_empty_columns_have_no_rows() -> None:
    assert len(Columns.of([])) == 0
    assert Columns.of([]) == Columns([], [], [], [], [])
    assert not Columns.of([])

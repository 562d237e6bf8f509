"""The decoder: what rg wrote, in chunks of any size, becomes models; what rg would not write, an error."""

import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap import Begin, Context, DecodeError, End, Match
from ripwrap._rg import decoder
from ripwrap._rg.decoder import MessageDecoder, PathDecoder, Record

TRANSCRIPTS = sorted((Path(__file__).parent / "data").glob("*.jsonl"))
ALL = {path.stem: path.read_bytes() for path in TRANSCRIPTS}


def decode(chunks: Sequence[bytes], **options: Any) -> tuple[list[Record], MessageDecoder]:
    messages = MessageDecoder(**options)
    got = [message for chunk in chunks for message in messages.feed(chunk)]
    return [*got, *messages.close()], messages


def text_of(value: dict[str, str] | None) -> str | None:
    """An independent reading of rg's `{"text": …}` or `{"bytes": …}`."""
    if value is None:
        return None
    return value["text"] if "text" in value else base64.b64decode(value["bytes"]).decode("utf-8", "replace")


def path_of(value: dict[str, str]) -> str:
    path = value["text"] if "text" in value else os.fsdecode(base64.b64decode(value["bytes"]))
    return path.removeprefix("./")


@pytest.mark.parametrize("transcript", ALL)
def test_every_field_is_what_rg_wrote(transcript: str) -> None:
    records = [json.loads(line) for line in ALL[transcript].decode().split("\n") if line]
    messages, decoder = decode([ALL[transcript]])
    assert [message.type for message in messages] == [record["type"] for record in records[:-1]]
    for message, record in zip(messages, records[:-1], strict=True):
        data = record["data"]
        assert message.path == path_of(data["path"])
        if isinstance(message, (Match, Context)):
            assert message.lines == text_of(data["lines"])
            assert (message.line_number, message.absolute_offset) == (data["line_number"], data["absolute_offset"])
            assert [(hit.match, hit.start, hit.end) for hit in message.submatches] == [
                (text_of(hit["match"]), hit["start"], hit["end"]) for hit in data["submatches"]
            ]
        if isinstance(message, End):
            assert message.binary_offset == data["binary_offset"]
            assert message.stats.model_dump() == data["stats"]
    assert decoder.summary is not None
    assert decoder.summary.model_dump(include={"stats", "elapsed_total"}) == records[-1]["data"]


def test_the_transcripts_hold_what_they_are_for() -> None:
    messages, _ = decode([ALL["context-15.2.0"]])
    by_path = {message.path: message for message in messages if isinstance(message, Match)}
    assert by_path["latin1.txt"].raw_lines == b"caf\xe9 needle\n"
    assert by_path["latin1.txt"].lines == "caf\ufffd needle\n"
    assert by_path["odd \udcff name.txt"].lines == "needle\n"
    assert by_path["crlf.txt"].lines == "needle\r\n"
    assert by_path["unicode.txt"].lines.endswith("\u2028still the same line\n")
    assert '},"data":{"bytes":"' in by_path["quotes.txt"].lines
    (late,) = (message for message in messages if isinstance(message, End) and message.path == "late-nul.txt")
    assert late.binary_offset is not None


@given(st.sampled_from(sorted(ALL)), st.lists(st.integers(1, 6000), min_size=1))
def test_chunking_never_changes_what_is_decoded(transcript: str, sizes: list[int]) -> None:
    stream = ALL[transcript]
    chunks, start = list[bytes](), 0
    while start < len(stream):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(stream[start : start + size])
        start += size
    whole, cut = decode([stream]), decode(chunks)
    assert whole[0] == cut[0]
    assert whole[1].summary == cut[1].summary


def test_one_byte_at_a_time_is_decoded_too() -> None:
    stream = ALL["context-14.1.0"]
    assert decode([bytes([byte]) for byte in stream])[0] == decode([stream])[0]


@given(st.data())
def test_a_mutated_stream_is_decoded_or_refused_with_a_decode_error(data: st.DataObject) -> None:
    lines = ALL[data.draw(st.sampled_from(sorted(ALL)))].split(b"\n")
    line = bytearray(data.draw(st.sampled_from(lines)))
    at = data.draw(st.integers(0, len(line)))
    match data.draw(st.sampled_from(["insert", "delete", "replace"])):
        case "insert":
            line[at:at] = data.draw(st.binary(min_size=1, max_size=5))
        case "delete":
            del line[at : at + data.draw(st.integers(1, 30))]
        case _:
            line[at : at + 1] = data.draw(st.sampled_from([b"{", b"}", b'"', b"[", b",", b":", b"\\", b"9", b"n", b""]))
    try:
        messages = decode([bytes(line)])[0]
    except DecodeError:
        return
    assert all(isinstance(message, (Begin, Match, Context, End)) for message in messages)


@pytest.mark.parametrize(
    "record",
    [
        b"rubbish",
        b"[]",
        b"1",
        b'"type"',
        b"null",
        b"{}",
        b'{"type":"match"}',
        b'{"type":7,"data":{}}',
        b'{"type":{},"data":{}}',
        b'{"type":"match","data":{}}',
        b'{"type":"match","data":[]}',
        b'{"type":"begin","data":{"path":{"bytes":"%%%"}}}',
        b'{"type":"begin","data":{"path":{"nothing":"x"}}}',
        b'{"type":"summary","data":{"stats":null}}',
        b'{"type":"begin","data":{"path":{"text":"x"}}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_message_of_rgs_is_refused(record: bytes) -> None:
    good = b'{"type":"begin","data":{"path":{"text":"x"}}}'
    messages = MessageDecoder().feed(good + b"\n" + record + b"\n")
    assert next(messages) == Begin(path="x"), "what stood before it is delivered"
    with pytest.raises(DecodeError) as caught:
        next(messages)
    assert caught.value.record == record


@pytest.mark.parametrize(
    "record",
    [
        b'{"type":"overture","data":{"path":{"text":"x"}}}',
        b'{"data":{"anything":1},"type":"overture"}',
        b"",
    ],
)
def test_kinds_that_are_not_known_are_skipped(record: bytes) -> None:
    assert decode([record + b"\n"])[0] == []


@pytest.mark.parametrize(
    ("record", "path"),
    [
        (b'{"data":{"path":{"text":"./a/b"}},"type":"begin"}', "a/b"),
        (b'{"type":"begin","data":{"path":{"text":"./a/b"}},"later":[1]}', "a/b"),
        (b'{"type":"begin","data":{"new":{"text":"./"},"path":{"text":"./a/b"}}}', "a/b"),
        (b'{ "type" : "begin" , "data" : { "path" : { "text" : "./a/b" } } }', "a/b"),
        (b'{"type":"begin","data":{"path":{"bytes":"Li9hL/8="}}}', "a/\udcff"),
        (b'{"type":"begin","data":{"path":{"text":"./.hidden"}}}', ".hidden"),
        (b'{"type":"begin","data":{"path":{"text":"../up"}}}', "../up"),
        (b'{"type":"begin","data":{"path":{"text":"/abs"}}}', "/abs"),
        (b'{"type":"begin","data":{"path":null}}', None),
    ],
)
def test_paths_lose_their_leading_dot_however_the_record_is_spelled(record: bytes, path: str | None) -> None:
    assert decode([record])[0] == [Begin(path=path)]


def test_kinds_that_nobody_asked_for_are_not_decoded() -> None:
    malformed = b'{"type":"context","data":{"nothing":"right"}}\n{"type":"begin","data":{"path":{"text":"x"}}}\n'
    assert decode([malformed], kinds=["begin"])[0] == [Begin(path="x")]
    with pytest.raises(DecodeError):
        decode([malformed])


def test_the_last_record_may_lack_its_newline() -> None:
    assert decode([b'{"type":"begin","data":{"path":', b'{"text":"x"}}}'])[0] == [Begin(path="x")]


def begin(path: str) -> bytes:
    return json.dumps({"type": "begin", "data": {"path": {"text": path}}}, separators=(",", ":")).encode()


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_a_record_over_the_budget_is_dropped_and_counted_and_the_stream_goes_on(size: int) -> None:
    stream = b"\n".join([begin("a"), begin("b" * 500), begin("c"), begin("d" * 501), begin("e" * 50), b""])
    chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
    messages, decoder = decode(chunks, max_record=200)
    assert [message.path for message in messages] == ["a", "c", "e" * 50]
    assert decoder.dropped_records == 2


def test_a_record_of_exactly_the_budget_is_kept() -> None:
    record = begin("x")
    assert decode([record], max_record=len(record))[0] == [Begin(path="x")]
    messages, dropper = decode([record], max_record=len(record) - 1)
    assert (messages, dropper.dropped_records) == ([], 1)


def test_a_record_that_never_ends_is_not_kept_in_memory() -> None:
    messages = MessageDecoder(max_record=1000)
    for _ in range(10_000):
        assert list(messages.feed(b"x" * 1000)) == []
    assert sum(map(len, messages._framer._parts)) <= 1000
    assert messages.dropped_records == 1
    assert list(messages.feed(b"\n" + begin("x") + b"\n")) == [Begin(path="x")]


@given(st.lists(st.binary(min_size=1).filter(lambda path: b"\0" not in path)), st.integers(1, 50))
def test_paths_are_framed_on_nul_whatever_the_chunks(paths: list[bytes], size: int) -> None:
    stream = b"".join(b"./" + path + b"\0" for path in paths)
    chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
    decoder = PathDecoder()
    assert [path for chunk in chunks for path in decoder.feed(chunk)] == [os.fsdecode(path) for path in paths]
    decoder.close()


def test_half_a_path_at_the_end_is_refused() -> None:
    paths = PathDecoder()
    assert paths.feed(b"a\0b") == ["a"]
    with pytest.raises(DecodeError, match="without an end"):
        paths.close()


def test_a_path_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "MAX_RECORD", 100)
    paths = PathDecoder()
    assert paths.feed(b"x" * 60) == []
    with pytest.raises(DecodeError, match="over 100 bytes"):
        paths.feed(b"x" * 60)

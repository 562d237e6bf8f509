"""Decoding of rg's output: chunks of any size become models, and bytes that rg never writes raise `DecodeError`."""

import base64
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import ripwrap
from ripwrap import Begin, Context, DecodeError, End, FileCount, Match, Message, binary, sync
from ripwrap._ripgrep.decoder import (
    MAX_RECORD,
    CountDecoder,
    MessageDecoder,
    PathDecoder,
    Record,
    decode_path,
    kind_of,
    path_of,
)
from ripwrap._ripgrep.page_collector import PageRequest
from support.effort import times
from support.outcomes import Outcome, cut, of_counts, of_matches, of_messages, of_page, of_paths

TRANSCRIPTS = sorted((Path(__file__).parents[1] / "data").glob("*.jsonl"))
ALL = {path.stem: path.read_bytes() for path in TRANSCRIPTS}


def decode(chunks: Iterable[bytes], **options: Any) -> tuple[list[Record], MessageDecoder]:
    messages = MessageDecoder(**options)
    got = [message for chunk in chunks for message in messages.feed(chunk)]
    return [*got, *messages.close()], messages


def native_json(record: bytes) -> bytes:
    """Return a record of rg with the `./` of this system before its paths."""
    return record.replace(b'"./', json.dumps(f".{os.sep}")[:-1].encode())


def text_of(value: dict[str, str] | None) -> str | None:
    """Decode rg's `{"text": …}` or `{"bytes": …}` without ripwrap's code."""
    if value is None:
        return None
    return value["text"] if "text" in value else base64.b64decode(value["bytes"]).decode("utf-8", "replace")


def path_in(value: dict[str, str]) -> str:
    path = value["text"] if "text" in value else os.fsdecode(base64.b64decode(value["bytes"]))
    return path.removeprefix("./")


@pytest.mark.posix
@pytest.mark.parametrize("transcript", ALL)
@pytest.mark.fact(13)
def test_decoded_fields_equal_rgs_json(transcript: str) -> None:
    records = [json.loads(line) for line in ALL[transcript].decode().split("\n") if line]
    messages, decoder = decode([ALL[transcript]])
    assert [message.type for message in messages] == [record["type"] for record in records[:-1]]
    for message, record in zip(messages, records[:-1], strict=True):
        data = record["data"]
        assert message.path == path_in(data["path"])
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


@pytest.mark.posix
def test_transcripts_contain_their_special_cases() -> None:
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


@pytest.mark.posix
@given(st.sampled_from(sorted(ALL)), st.lists(st.integers(1, 6000), min_size=1))
def test_chunking_never_changes_what_is_decoded(transcript: str, sizes: list[int]) -> None:
    whole, in_chunks = decode([ALL[transcript]]), decode(cut(ALL[transcript], sizes))
    assert whole[0] == in_chunks[0]
    assert whole[1].summary == in_chunks[1].summary


@pytest.mark.posix
def test_output_in_single_bytes_is_decoded() -> None:
    stream = ALL["context-14.1.0"]
    assert decode([bytes([byte]) for byte in stream])[0] == decode([stream])[0]


ALL_OF_IT = PageRequest(offset=0, max_matches=100, max_files=100, before=1, after=1, max_count=None)
A_PAGE = PageRequest(offset=2, max_matches=3, max_files=2, before=0, after=2, max_count=1)

transcripts = st.sampled_from(sorted(ALL)).map(ALL.__getitem__)
names = st.binary(min_size=1, max_size=5).map(lambda name: name.replace(b"\0", b"\n"))
listings = st.lists(names.map(lambda name: b"./%b\0" % name), max_size=20).map(b"".join)
terminators = st.sampled_from([b"\n", b"\r\n", b"\0"])
counted = st.builds(
    lambda name, count, end: b"%b\0%d%b" % (name, count, end), names, st.integers(0, 10**12), terminators
)
countings = st.lists(counted, max_size=20).map(b"".join)

Reader = Callable[[Iterable[bytes]], Outcome]
READERS: dict[str, tuple[Reader, st.SearchStrategy[bytes]]] = {
    "messages": (of_messages, transcripts),
    "messages of which some are too long": (lambda chunks: of_messages(chunks, max_record=200), transcripts),
    "matches": (of_matches, transcripts),
    "everything grep finds": (lambda chunks: of_page(chunks, ALL_OF_IT), transcripts),
    "a page": (lambda chunks: of_page(chunks, A_PAGE), transcripts),
    "paths": (of_paths, listings),
    "counts": (of_counts, countings),
}

TOKENS = [
    b"{",
    b"}",
    b'"',
    b"[",
    b"]",
    b",",
    b":",
    b"\\",
    b"9",
    b"-",
    b"n",
    b"null",
    b"\n",
    b"\n\n",
    b"\r",
    b"\0",
    b"\xff",
]
KINDS = [b'"type":"%b"' % kind for kind in (b"begin", b"match", b"context", b"end", b"summary")]


@st.composite
def damaged(draw: st.DrawFn, streams: st.SearchStrategy[bytes]) -> tuple[bytes, int]:
    """Draw a stream with a few mutations, and the position of the first."""
    stream = bytearray(draw(streams))
    first = len(stream)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(stream)))
        first = min(first, at)
        match draw(st.sampled_from(["insert", "delete", "replace", "repeat", "truncate"])):
            case "insert":
                stream[at:at] = draw(st.binary(min_size=1, max_size=5) | st.sampled_from([*TOKENS, *KINDS]))
            case "delete":
                del stream[at : at + draw(st.integers(1, 300))]
            case "replace":
                stream[at : at + 1] = draw(st.sampled_from(TOKENS))
            case "repeat":
                start = draw(st.integers(0, len(stream)))
                stream[at:at] = stream[start : start + draw(st.integers(1, 300))]
            case _:
                del stream[at:]
    return bytes(stream), first


@pytest.mark.parametrize("kind", READERS)
@given(st.data(), st.lists(st.integers(1, 2000), min_size=1, max_size=5))
def test_chunking_never_changes_how_a_damaged_stream_is_decoded(
    kind: str, data: st.DataObject, sizes: list[int]
) -> None:
    """Read with a reader that lets every exception but `DecodeError` escape."""
    reader, streams = READERS[kind]
    stream, _ = data.draw(damaged(streams))
    assert reader(cut(stream, sizes)) == reader([stream])


@given(damaged(transcripts))
def test_messages_before_the_damage_are_delivered(drawn: tuple[bytes, int]) -> None:
    stream, first = drawn
    intact = stream[: stream.rfind(b"\n", 0, first) + 1]
    for reader in (of_messages, of_matches):
        *before, _, _ = reader([intact]).items
        assert reader([stream]).items[: len(before)] == before


@pytest.mark.posix
@pytest.mark.parametrize(("reader", "streams"), [(of_paths, listings), (of_counts, countings)])
@given(st.data())
def test_listed_items_before_the_damage_are_delivered(
    reader: Reader, streams: st.SearchStrategy[bytes], data: st.DataObject
) -> None:
    stream, first = data.draw(damaged(streams))
    before = reader([stream[:first]]).items
    assert reader([stream]).items[: len(before)] == before


@pytest.mark.slow
@pytest.mark.parametrize("transcript", [name for name in ALL if name.endswith("15.2.0")])
def test_truncated_transcript_is_decoded_up_to_its_last_whole_record(
    transcript: str,
) -> None:
    stream = ALL[transcript]
    *messages, _, _ = of_messages([stream]).items
    (everything, *_) = of_page([stream], ALL_OF_IT).items
    ends = {place for place, byte in enumerate(stream) if byte == ord("\n")}
    near = {end + distance for end in ends for distance in range(-3, 4)} & {*range(len(stream))}
    for end in sorted(near | {*range(0, len(stream), times(7, 1))}):
        whole = stream.count(b"\n", 0, end + 1)
        (*decoded, _, _), failed = of_messages([stream[:end]])
        assert decoded == messages[:whole], end
        assert failed == (end not in ends and end - 1 not in ends and end > 0), end
        (numbers, *_), _ = of_page([stream[:end]], ALL_OF_IT)
        assert numbers[0] <= everything[0] and numbers[1] <= everything[1], end
        assert numbers[3] == (end == len(stream) - 1), end


@pytest.mark.posix
@pytest.mark.parametrize(
    ("reader", "items"),
    [
        (of_paths, [b"./a\0", b"b/c\0", b"\xff\0"]),
        (of_counts, [b"./a\00010\n", b"b c\00020\r\n", b"\xff\0003\0", b"\n\0000\n"]),
    ],
)
def test_truncated_listing_is_decoded_up_to_its_last_whole_item(reader: Reader, items: list[bytes]) -> None:
    stream = b"".join(items)
    everything = reader([stream])
    assert (len(everything.items), everything.failed) == (len(items), False)
    ends = [sum(map(len, items[:number])) for number in range(len(items) + 1)]
    for end in range(len(stream) + 1):
        decoded, failed = reader([stream[:end]])
        assert decoded == everything.items[: sum(place <= end for place in ends) - 1], end
        assert failed == (end not in ends), end


def test_counts_before_a_malformed_count_are_delivered() -> None:
    counts = CountDecoder()
    assert counts.feed(b"a\0001\nb\0x") == [FileCount(path="a", count=1)]
    with pytest.raises(DecodeError, match="not a path and a count"):
        counts.feed(b"\n")
    with pytest.raises(DecodeError, match="not a path and a count"):
        counts.close()


@pytest.mark.parametrize("digits", [21, 5000])
def test_count_with_over_20_digits_is_rejected(digits: int) -> None:
    """Use up to 5000 digits, for which `int()` raises a `ValueError`."""
    assert of_counts([b"a\00018446744073709551615\n"]).items == [FileCount(path="a", count=2**64 - 1)]
    assert of_counts([b"a\0" + b"9" * digits + b"\n"]) == Outcome([], failed=True)


@pytest.mark.parametrize("chunks", [[b"\n\n\n"], [b"\n", b"\n", b"\n"]])
def test_empty_lines_are_ignored(chunks: list[bytes]) -> None:
    assert not of_messages(chunks).failed
    assert not of_page(chunks, ALL_OF_IT).failed


@pytest.mark.parametrize(
    ("record", "path"),
    [
        (b'{"type":"begin","data":{"path":{"text":"./a b"}}}', b"a b"),
        (b'{"type":"begin","data":{"path":{"text":"a"},"new":{"text":"b"}}}', b"a"),
        (b'{"type":"begin","data":{"path":{"text":"\\"\xc3\xa9"}}}', b'"\xc3\xa9'),
        pytest.param(b'{"type":"begin","data":{"path":{"bytes":"Li9hL/8="}}}', b"a/\xff", marks=pytest.mark.posix),
        (b'{"type":"begin","data":{"path":{"text":"\xff"}}}', None),
        (b'{"type":"begin","data":{"path":{"text":"\t"}}}', None),
    ],
)
def test_path_of_agrees_with_the_message_decoder(record: bytes, path: bytes | None) -> None:
    record = native_json(record)
    if path is None:
        with pytest.raises(DecodeError):
            path_of(record)
        assert of_messages([record]).failed
    else:
        assert path_of(record) == path
        assert of_messages([record]).items[0] == Begin(path=os.fsdecode(path))


@pytest.mark.parametrize("kind", ["begin", "context", "end", "summary", "new"])
def test_record_with_two_types_is_rejected(kind: str) -> None:
    """Reject a record with two different `type` keys: the collector would read the first, JSON parsers the last."""
    match = b'{"type":"match","data":{"path":{"text":"a"},"lines":{"text":"x"},"line_number":1,"absolute_offset":0,'
    record = match + b'"submatches":[]},"type":"%b","new":{}}' % kind.encode()
    assert kind_of(record) == "match"
    assert of_messages([record]).failed
    assert of_page([begin("a"), b"\n", record], ALL_OF_IT).failed


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
def test_bytes_that_are_not_an_rg_message_raise_decode_error(record: bytes) -> None:
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
@pytest.mark.fact(14)
def test_unknown_record_types_are_skipped(record: bytes) -> None:
    assert decode([record + b"\n"])[0] == []


@pytest.mark.parametrize(
    ("record", "path"),
    [
        (b'{"data":{"path":{"text":"./a/b"}},"type":"begin"}', "a/b"),
        (b'{"type":"begin","data":{"path":{"text":"./a/b"}},"later":[1]}', "a/b"),
        (b'{"type":"begin","data":{"new":{"text":"./"},"path":{"text":"./a/b"}}}', "a/b"),
        (b'{ "type" : "begin" , "data" : { "path" : { "text" : "./a/b" } } }', "a/b"),
        pytest.param(b'{"type":"begin","data":{"path":{"bytes":"Li9hL/8="}}}', "a/\udcff", marks=pytest.mark.posix),
        (b'{"type":"begin","data":{"path":{"text":"./.hidden"}}}', ".hidden"),
        (b'{"type":"begin","data":{"path":{"text":"../up"}}}', "../up"),
        (b'{"type":"begin","data":{"path":{"text":"/abs"}}}', "/abs"),
    ],
)
@pytest.mark.fact(24)
def test_leading_dot_is_removed_from_paths_in_any_json_layout(record: bytes, path: str) -> None:
    assert decode([native_json(record)])[0] == [Begin(path=path)]


def test_message_without_a_path_is_malformed() -> None:
    """rg always names the file, so `Match.path` is a `str`."""
    for record in (b'{"type":"begin","data":{"path":null}}\n', b'{"type":"begin","data":{}}\n'):
        with pytest.raises(DecodeError, match="a malformed message"):
            decode([record])


def test_unrequested_record_types_are_not_decoded() -> None:
    malformed = b'{"type":"context","data":{"nothing":"right"}}\n{"type":"begin","data":{"path":{"text":"x"}}}\n'
    assert decode([malformed], kinds=["begin"])[0] == [Begin(path="x")]
    with pytest.raises(DecodeError):
        decode([malformed])


def test_the_last_record_may_lack_its_newline() -> None:
    assert decode([b'{"type":"begin","data":{"path":', b'{"text":"x"}}}'])[0] == [Begin(path="x")]


def begin(path: str) -> bytes:
    return json.dumps({"type": "begin", "data": {"path": {"text": path}}}, separators=(",", ":")).encode()


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
@pytest.mark.fact(11)
def test_record_over_the_limit_is_dropped_and_counted(size: int) -> None:
    stream = b"\n".join([begin("a"), begin("b" * 500), begin("c"), begin("d" * 501), begin("e" * 50), b""])
    messages, decoder = decode(cut(stream, [size]), max_record=200)
    assert [message.path for message in messages] == ["a", "c", "e" * 50]
    assert decoder.dropped_records == 2


def test_record_over_the_limit_is_named_by_its_path() -> None:
    """The head of a record says which file it is from, if it can be read."""
    match = b'{"type":"match","data":{"path":{"text":"./a \\"\\u00e9"},"lines":{"text":"%b"}}}\n' % (b"x" * 300)
    match = native_json(match)
    assert decode([match, match], max_record=200)[1].dropped == {'a "é': 2}
    for head in (b'"path":{"text":"\\x"}', b'"path":{"bytes":"?"}', b'"path":null'):
        assert decode([head + b"x" * 300 + b"\n"], max_record=200)[1].dropped == {"": 1}


def test_record_of_exactly_the_limit_is_kept() -> None:
    record = begin("x")
    assert decode([record], max_record=len(record))[0] == [Begin(path="x")]
    messages, dropper = decode([record], max_record=len(record) - 1)
    assert (messages, dropper.dropped_records) == ([], 1)


def test_a_record_that_never_ends_is_not_kept_in_memory() -> None:
    messages = MessageDecoder(max_record=1000)
    for _ in range(10_000):
        assert list(messages.feed(b"x" * 1000)) == []
    assert sum(map(len, messages.framer._parts)) <= 1000
    assert messages.dropped_records == 1
    assert list(messages.feed(b"\n" + begin("x") + b"\n")) == [Begin(path="x")]


@pytest.mark.posix
@given(st.lists(st.binary(min_size=1).filter(lambda path: b"\0" not in path)), st.integers(1, 50))
def test_paths_are_split_at_nul_in_any_chunks(paths: list[bytes], size: int) -> None:
    stream = b"".join(b"./" + path + b"\0" for path in paths)
    decoder = PathDecoder()
    assert [path for chunk in cut(stream, [size]) for path in decoder.feed(chunk)] == [
        os.fsdecode(path) for path in paths
    ]
    decoder.close()


def test_truncated_path_at_the_end_is_rejected() -> None:
    paths = PathDecoder()
    assert paths.feed(b"a\0b") == ["a"]
    with pytest.raises(DecodeError, match="incomplete"):
        paths.close()


def test_path_over_the_limit_is_rejected() -> None:
    paths = PathDecoder()
    half = b"x" * (MAX_RECORD // 2 + 1)
    assert paths.feed(half) == []
    with pytest.raises(DecodeError, match=f"longer than {MAX_RECORD} bytes"):
        paths.feed(half)


def test_path_that_is_not_utf8_raises_decode_error_on_windows() -> None:
    def strict(raw: bytes) -> str:  # as `os.fsdecode` does on Windows
        return raw.decode("utf-8", "surrogatepass")

    assert decode_path("ä\ud800".encode("utf-8", "surrogatepass"), strict) == "ä\ud800"
    with pytest.raises(DecodeError, match="a path that is not UTF-8"):
        decode_path(b"a\xff", strict)


# `decode()` and `encode()`

SEARCHES: tuple[dict[str, Any], ...] = (
    {},
    {"context": 1},
    {"replace": "<$0>"},
    {"no_line_number": True},
    {"invert_match": True},
    {"passthru": True},
    {"multiline": True},
    {"encoding": "none"},
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    (folder / "a.txt").write_bytes(b'needle\none needle, needle\r\n\nlast \xe2\x80\xa8 needle\x07\x7f"')
    (folder / "latin1.txt").write_bytes(b"caf\xe9\ncaf\xe9 needle\n")
    (folder / "late.txt").write_bytes(b"needle\n" * 3 + b"x" * 70_000 + b"\0needle\n")
    if os.name == "posix":
        (folder / os.fsdecode(b"odd \xff.txt")).write_text("needle")
    return folder


def rg_json(rg: binary.RgBinary, folder: Path, *flags: str) -> bytes:
    command = [rg.path, "--no-config", "--json", "--sort=path", *flags]
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout


def flags_of(options: dict[str, Any]) -> list[str]:
    spelled = {name: name.replace("_", "-") for name in options}
    return [f"--{spelled[name]}" if value is True else f"--{spelled[name]}={value}" for name, value in options.items()]


def without_times(message: Message) -> dict[str, Any]:
    text = re.sub(r'"elapsed(_total)?":\{[^}]*\}', '"elapsed":null', message.model_dump_json())
    return dict(json.loads(text))


@pytest.mark.rg_matrix
@pytest.mark.parametrize("options", SEARCHES, ids=str)
def test_rgs_json_decodes_to_the_messages_of_a_search_and_encodes_to_rgs_records(
    rg: binary.RgBinary, folder: Path, options: dict[str, Any]
) -> None:
    if "replace" not in options or rg.version >= (15, 0, 0):  # before, rg has no replacements in JSON
        dotted = [*ripwrap.decode(rg_json(rg, folder, *flags_of(options), "--", "needle", "./"))]
        own = [*sync.search_messages("needle", cwd=folder, sort="path", rg=rg.path, **options)]
        assert [*map(without_times, dotted)] == [*map(without_times, own)]
    output = rg_json(rg, folder, *flags_of(options), "--", "needle")
    found = [*ripwrap.decode(output)]
    assert len(found) > 5
    assert [json.loads(ripwrap.encode(one)) for one in found] == [*map(json.loads, output.splitlines())]
    adapter: TypeAdapter[Message] = TypeAdapter(Message)
    for message, line in zip(found, output.split(b"\n"), strict=False):
        assert adapter.validate_json(line) == adapter.validate_python(json.loads(line)) == message
        assert adapter.validate_json(message.model_dump_json()) == message
        if message.type != "summary":  # rg has the keys of a summary in another order
            assert ripwrap.encode(message) == line + b"\n"


@pytest.mark.anyio
@given(st.sampled_from(sorted(ALL)), st.lists(st.integers(1, 6000), min_size=1))
async def test_chunks_decode_alike_from_all_kinds_of_iterables(transcript: str, sizes: list[int]) -> None:
    output = native_json(ALL[transcript]) * 2  # two outputs, one after the other

    async def chunks() -> AsyncIterator[bytes]:
        for chunk in cut(output, sizes):
            yield chunk

    whole = [*ripwrap.decode(output)]
    assert [*ripwrap.decode(iter(cut(output, sizes)))] == whole
    assert [message async for message in ripwrap.decode(chunks())] == whole
    assert [message.type for message in whole].count("summary") == 2
    assert whole[len(whole) // 2 - 1].type == whole[-1].type == "summary"
    assert not [message for message in whole if getattr(message, "path", "").startswith(f".{os.sep}")]


def test_records_that_are_too_long_are_errors_of_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    output = native_json(ALL["context-15.2.0"])
    *_, before, end, summary = output.splitlines(keepends=True)
    padded = end.replace(b'"data":{', b'"data":{"path":{"text":"big.txt"},"x":"%b",' % (b"x" * MAX_RECORD))
    last = [*ripwrap.decode([before, padded, summary, summary])]
    assert [message.type for message in last[1:]] == ["summary", "summary"]
    assert [(one.dropped_records, [error.path for error in one.errors]) for one in last[1:]] == [  # type: ignore[union-attr]
        (1, ["big.txt"]),
        (0, []),
    ]
    with pytest.raises(DecodeError, match=r"1 record left out, longer than 20 MiB.* no summary follows: big\.txt"):
        list(ripwrap.decode([before, padded]))


@pytest.mark.parametrize(
    ("chunks", "error"),
    [
        ([b"no JSON\n"], DecodeError),
        ([b'{"type":"begin","da'], DecodeError),  # rg was stopped
        ([b'{"path":"a","lines":"b"}\n'], DecodeError),
        ([b'{"type":"match","data":{"path":{"bytes":"!"}}}\n'], DecodeError),
        ("text", TypeError),
        (["text"], TypeError),
        (1, TypeError),
    ],
)
def test_what_is_not_rgs_json_raises_one_error(chunks: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        list(ripwrap.decode(chunks))

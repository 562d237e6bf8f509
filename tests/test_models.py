"""Public models: frozen, hashable, lossless, and equal after a round trip through JSON."""

import copy
import os
import pickle
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

import ripwrap
from ripwrap import (
    Begin,
    CapturedMatch,
    Captures,
    CodeMatch,
    Context,
    End,
    GrepMatch,
    HistoryMatch,
    Match,
    Message,
    PathError,
    Stats,
    Submatch,
    Summary,
    TreeEntry,
)
from ripwrap._text import raw_bytes, text_of

ELAPSED = {"secs": 1, "nanos": 500_000_000, "human": "1.5s"}
STATS = {
    "elapsed": ELAPSED,
    "searches": 1,
    "searches_with_match": 1,
    "bytes_searched": 2,
    "bytes_printed": 3,
    "matched_lines": 4,
    "matches": 5,
}

raws: st.SearchStrategy[bytes] = st.binary(max_size=20)
if os.name == "nt":  # where paths are Unicode
    raws = st.text(max_size=20).map(os.fsencode)
texts = raws.map(text_of) | st.text()
fs_paths = raws.map(os.fsdecode) | st.text()
submatches = st.builds(Submatch, match=texts, start=st.just(0), end=st.just(1), replacement=st.none() | texts)
lines = {
    "path": fs_paths,
    "lines": texts,
    "line_number": st.none() | st.integers(1, 9),
    "absolute_offset": st.integers(0, 9),
    "submatches": st.lists(submatches, max_size=2).map(tuple),
}
stats = st.just(Stats.model_validate(STATS))
errors = st.builds(PathError, path=st.none() | fs_paths, kind=st.just("denied"), message=st.text())
models = st.one_of(
    st.builds(Begin, path=fs_paths),
    st.builds(Match, **lines),
    st.builds(Context, **lines),
    st.builds(End, path=fs_paths, binary_offset=st.none() | st.integers(0, 9), stats=stats),
    st.builds(
        Summary,
        stats=stats,
        elapsed_total=st.just(Stats.model_validate(STATS).elapsed),
        errors=st.lists(errors, max_size=2).map(tuple),
    ),
    st.builds(TreeEntry, path=fs_paths, name=fs_paths, depth=st.integers(0, 9)),
)


@given(models)
def test_every_model_survives_json(model: BaseModel) -> None:
    again = type(model).model_validate_json(model.model_dump_json())
    assert again.model_dump_json() == model.model_dump_json()
    if not any("\ud800" <= letter <= "\udfff" for letter in str(model.model_dump())):
        assert again == model


@given(models)
def test_every_model_survives_pickling_copying_and_dumping(model: BaseModel) -> None:
    assert pickle.loads(pickle.dumps(model)) == model
    assert copy.deepcopy(model) == model
    assert type(model).model_validate(model.model_dump()) == model
    assert hash(copy.deepcopy(model)) == hash(model)


@given(raws)
@pytest.mark.fact(13)
def test_models_never_lose_bytes(raw: bytes) -> None:
    match = Match(path=os.fsdecode(raw), lines=text_of(raw), line_number=1, absolute_offset=0, submatches=())
    again = Match.model_validate_json(match.model_dump_json())
    assert again == match
    assert again.raw_lines == raw
    assert os.fsencode(again.path) == raw
    again.lines.encode()  # lone surrogates would raise here, and in terminals


def test_lines_with_different_bytes_and_equal_text_are_unequal() -> None:
    one, other = text_of(b"caf\xe9"), text_of(b"caf\xe8")
    assert (str.__eq__(one, other), one == other, one != other) == (True, False, True)
    assert one == "caf\ufffd" and raw_bytes(one) == b"caf\xe9"
    assert len({one, text_of(b"caf\xe9"), other}) == 2
    assert one != object()


def test_json_of_invalid_utf8_has_rgs_form() -> None:
    match = Match(path="\udcff", lines=text_of(b"\xff"), line_number=None, absolute_offset=0, submatches=())
    assert match.model_dump(mode="json") == {
        "path": {"bytes": "/w=="},
        "lines": {"bytes": "/w=="},
        "line_number": None,
        "absolute_offset": 0,
        "submatches": [],
        "location": None,
        "type": "match",
    }


def test_models_are_frozen_and_have_a_literal_type() -> None:
    begin = Begin(path="x")
    with pytest.raises(ValidationError, match="frozen"):
        begin.path = "y"  # type: ignore[misc]
    for model in (Begin, Match, Context, End, Summary):
        assert model.model_fields["type"].default == model.__name__.lower()


@given(models.filter(lambda model: hasattr(model, "type")))
def test_message_is_discriminated_by_its_type(model: Any) -> None:
    again = TypeAdapter[Message](Message).validate_json(model.model_dump_json())
    assert type(again) is type(model)


def line(raw: bytes, *hits: tuple[int, int]) -> Match:
    return Match(
        path="x",
        lines=text_of(raw),
        line_number=1,
        absolute_offset=0,
        submatches=tuple(Submatch(match=text_of(raw[a:b]), start=a, end=b) for a, b in hits),
    )


@pytest.mark.fact(15)
def test_spans_count_characters_and_utf16_spans_code_units() -> None:
    match = line("naïve \U0001f600 x".encode(), (0, 6), (7, 11), (12, 13))
    assert match.spans() == ((0, 5), (6, 7), (8, 9))
    assert [match.lines[a:b] for a, b in match.spans()] == ["naïve", "\U0001f600", "x"]
    assert match.utf16_spans() == ((0, 5), (6, 8), (9, 10))
    ascii_line = line(b"plain x", (6, 7))
    assert ascii_line.spans() == ascii_line.utf16_spans() == ((6, 7),)


def test_spans_index_the_shown_text_of_a_line_that_is_not_utf8() -> None:
    match = line(b"caf\xe9 x\xff", (5, 6), (6, 7))
    assert [match.lines[a:b] for a, b in match.spans()] == ["x", "\ufffd"]
    assert match.submatches[1].raw_match == b"\xff"


@given(st.text(min_size=1), st.data())
def test_spans_cut_out_the_match(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    raw = text.encode()
    offsets = len(text[:start].encode()), len(text[:end].encode())
    assert line(raw, offsets).spans() == ((start, end),)
    (units,) = line(raw, offsets).utf16_spans()
    assert text.encode("utf-16-le")[2 * units[0] : 2 * units[1]].decode("utf-16-le") == text[start:end]


@pytest.mark.fact(17)
def test_ranges_have_lines_and_columns() -> None:
    match = line("naïve \U0001f600 x\r\nnext ☃ y\n".encode(), (0, 6), (7, 19), (12, 12))
    assert match.ranges() == ((1, 0, 1, 5), (1, 6, 2, 4), (1, 8, 1, 8))
    assert match.utf16_ranges() == ((1, 0, 1, 5), (1, 6, 2, 4), (1, 9, 1, 9))
    (first, *_) = match.ranges()
    assert (first.start_line, first.start_column, first.end_line, first.end_column) == (1, 0, 1, 5)
    with pytest.raises(ValueError, match="no_line_number"):
        match.model_copy(update={"line_number": None}).ranges()


@pytest.mark.parametrize(
    ("raw", "text", "terminator"),
    [
        (b"a\n", "a", "\n"),
        (b"a\r\n", "a", "\r\n"),
        (b"a", "a", ""),
        (b"a\r", "a\r", ""),
        (b"\n", "", "\n"),
        (b"a\nb\r\n", "a\nb", "\r\n"),
        (b"a\nb\0", "a\nb", "\0"),
        (b"", "", ""),
        (b"\xff\r\n", "\ufffd", "\r\n"),
    ],
)
def test_text_of_a_line_has_no_terminator(raw: bytes, text: str, terminator: str) -> None:
    match = line(raw)
    assert (match.text, match.line_terminator) == (text, terminator)
    assert raw_bytes(match.text) + terminator.encode() == raw


def test_half_a_surrogate_is_two_characters() -> None:
    """An incremental decoder holds it back, although no third byte makes it a character."""
    match = line(b"a\xed\xa0", (0, 3), (3, 3))
    assert match.lines == "a\ufffd\ufffd"
    assert match.spans() == match.utf16_spans() == ((0, 3), (3, 3))
    assert match.ranges()[0] == (1, 0, 1, 3)


@given(st.binary(max_size=12), st.data())
def test_spans_and_ranges_equal_those_of_the_decoded_prefix(raw: bytes, data: st.DataObject) -> None:
    """Also check offsets within a character, and invalid bytes."""
    offsets = data.draw(st.lists(st.tuples(st.integers(0, len(raw)), st.integers(0, len(raw))), max_size=4))
    match = line(raw, *offsets)

    def place(offset: int, sep: str) -> tuple[int, int]:
        before = raw[:offset].decode("utf-8", "replace")
        return 1 + before.count(sep), len(before.rpartition(sep)[2])

    sep = "\0" if raw.endswith(b"\0") else "\n"
    assert match.spans() == tuple(
        (len(raw[:start].decode("utf-8", "replace")), len(raw[:end].decode("utf-8", "replace")))
        for start, end in offsets
    )
    assert match.ranges() == tuple((*place(start, sep), *place(end, sep)) for start, end in offsets)


@pytest.mark.slow
def test_spans_of_many_submatches_take_little_memory() -> None:
    raw = "é".encode() * 20_000
    match = line(raw, *((start, start + 2) for start in range(0, len(raw), 2)))
    tracemalloc.start()
    assert match.spans()[-1] == (19_999, 20_000)
    assert match.ranges()[-1] == (1, 19_999, 1, 20_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_replaced_returns_the_new_line() -> None:
    match = line(b"a b a\n", (0, 1), (4, 5))
    assert match.replaced() == "a b a\n"
    new = tuple(hit.model_copy(update={"replacement": "xy"}) for hit in match.submatches)
    assert match.model_copy(update={"submatches": new}).replaced() == "xy b xy\n"


def test_elapsed_is_read_in_seconds() -> None:
    assert Stats.model_validate(STATS).elapsed.total_seconds() == 1.5


def test_every_public_name_resolves() -> None:
    for name in ripwrap.__all__:
        assert getattr(ripwrap, name) is not None
    assert len(set(ripwrap.__all__)) == len(ripwrap.__all__)  # ruff sorts them


@pytest.mark.parametrize("name", ["groups", "named", "captures"])
@pytest.mark.parametrize("kind", [Match, GrepMatch, CodeMatch, HistoryMatch])
def test_match_without_groups_says_which_argument_gives_them(kind: type[Match], name: str) -> None:
    """They were silently empty."""
    plain = kind.model_construct(path="a", lines="x\n", line_number=1, absolute_offset=0, submatches=())
    with pytest.raises(AttributeError, match=rf"^a match has {name} only if it is found with search\(captures=True\)$"):
        getattr(plain, name)
    with pytest.raises(AttributeError, match="no attribute 'group'"):
        plain.group  # type: ignore[attr-defined]  # pyright: ignore  # noqa: B018, PGH003
    assert pickle.loads(pickle.dumps(plain)) == plain == copy.deepcopy(plain)
    found = CapturedMatch.model_construct(**dict(plain), captures=(Captures(groups=("x",), named={"n": "x"}),))
    assert (found.groups, found.named) == (("x",), {"n": "x"})

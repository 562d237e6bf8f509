"""Records with very many submatches: decoded in parts, and in a thread, so that an event loop goes on."""

import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import ripwrap
from ripwrap import DecodeError, Match, sync
from ripwrap._ripgrep.command import search_command
from ripwrap._ripgrep.decoder import LARGE_RECORD, MessageDecoder, Record
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.stream import stream
from support import fake_rg
from support.outcomes import cut
from support.waiting import until

HEAD = b'{"type":"match","data":{"path":{"text":"./a"},"lines":{"text":"%b\\n"},"line_number":1,"absolute_offset":0,'
ONE = b'{"match":{"text":"ab"},"start":%d,"end":%d}'


def record(number: int) -> bytes:
    """Return a match with many submatches, some of them not UTF-8 or with braces and quotes in their texts."""
    odd = [b'{"match":{"bytes":"/w=="},"start":0,"end":1}', b'{"match":{"text":"},{\\"match\\":"},"start":1,"end":2}']
    hits = [*odd, *(ONE % (2 * at, 2 * at + 2) for at in range(number))]
    return HEAD % (b"ab" * number) + b'"submatches":[' + b",".join(hits) + b"]}}\n"


def decoded(raw: bytes) -> list[Record]:
    """Decode a record in chunks, with another record after it."""
    decoder = MessageDecoder()
    return [message for chunk in cut(raw + record(1), [65_536]) for message in decoder.feed(chunk)]


@pytest.mark.slow
@pytest.mark.parametrize("number", [30_000, 29_998, 29_999])
def test_record_in_parts_equals_the_record_as_a_whole(number: int) -> None:
    raw = record(number)
    assert len(raw) > LARGE_RECORD
    found, after = decoded(raw)
    assert isinstance(found, Match)
    assert isinstance(after, Match)
    assert len(after.submatches) == 3
    whole = Match.model_validate_json(raw[len(b'{"type":"match","data":') : -2])
    assert found == whole.model_copy(update={"path": "a"})
    assert len(found.submatches) == number + 2


@pytest.mark.slow
def test_malformed_submatch_of_a_large_record_is_an_error() -> None:
    broken = record(30_000).replace(b'"start":40002', b'"start":"x"')
    with pytest.raises(DecodeError, match="malformed"):
        decoded(broken)


def test_other_large_records_are_decoded_too() -> None:
    text = HEAD % (b"x" * LARGE_RECORD) + b'"submatches":[{"match":{"text":"x"},"start":0,"end":1}]}}\n'
    found, _ = decoded(text)
    assert isinstance(found, Match)
    assert len(found.lines) == LARGE_RECORD + 1
    context = text.replace(b'"match","data"', b'"context","data"')
    assert [one.type for one in decoded(context)] == ["context", "match"]


class Waiting:
    """Answer with one large record, which is decoded only when the event loop has run something else."""

    full = False
    ended = False
    pending = LARGE_RECORD + 1

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def feed(self, chunk: bytes) -> Iterator[int]:
        if self.pending:
            self.pending = 0
            self.begun.set()
            assert self.go_on.wait(60)
            yield 1
        yield len(chunk)

    def end_run(self, _: Exit) -> Iterator[int]:
        return iter(())

    def finish(self, _: Exit) -> Iterator[int]:
        return iter(())


@pytest.mark.slow
@pytest.mark.anyio
async def test_event_loop_goes_on_while_a_large_record_is_decoded(tmp_path: Path) -> None:
    rg = fake_rg.write(tmp_path / "rg", "say(BEGIN, MATCH, SUMMARY)")
    answer, seen = Waiting(), list[int]()

    async def consume() -> None:
        items = stream(search_command("x", tmp_path, (), {}), answer, str(rg))
        seen.extend([item async for item in items])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(consume)
        await until(answer.begun.is_set)
        answer.go_on.set()  # this line runs only if the event loop is free
    assert seen[0] == 1
    assert len(seen) >= 2


@pytest.mark.slow
@pytest.mark.anyio
async def test_line_with_very_many_matches_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ab" * 40_000 + "\n")  # a record of more than `LARGE_RECORD`, in many chunks
    (match,) = [one async for one in ripwrap.search("ab", cwd=tmp_path)]
    assert len(match.submatches) == 40_000 > LARGE_RECORD / len(ONE % (80_000, 80_000))
    assert [one.submatches for one in sync.search("ab", cwd=tmp_path)] == [match.submatches]
    (columns,) = [one async for one in ripwrap.search_columns("ab", cwd=tmp_path)]
    assert columns.spans == [match.spans()]

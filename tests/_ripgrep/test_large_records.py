"""Records with very many submatches: decoded in parts, and in a thread, so that an event loop goes on."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

import ripwrap
from ripwrap import DecodeError, Match, sync
from ripwrap._operations.pagination import files_in_path_order
from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.decoder import LARGE_RECORD, MessageDecoder, Record
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.page_collector import Block, PageRequest
from ripwrap._ripgrep.protocols import Step
from ripwrap._ripgrep.runner import AsyncRunner, BlockingRunner, run_blocking
from ripwrap._ripgrep.stream import StreamRequest, run_stream
from support import fake_rg
from support.outcomes import cut
from support.waiting import until

T = TypeVar("T")
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
        items = run_stream(StreamRequest(search_query("x", tmp_path, (), {}), answer), str(rg))
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


@pytest.mark.parametrize("most", [1, 999, 1_000, 1_001, 2_500, 3_001, 3_002, 10_000])
def test_submatches_of_a_large_record_can_be_limited(most: int) -> None:
    raw = record(3_000)
    (whole,) = MessageDecoder(("match",)).decode_large([raw])
    (found,) = MessageDecoder(("match",), max_submatches=most).decode_large([raw])
    assert isinstance(whole, Match)
    assert found == whole.model_copy(update={"submatches": whole.submatches[:most]})


class WaitingCollector(Waiting):
    """Collector that is like `Waiting`."""

    def feed(self, chunk: bytes) -> Any:
        list(super().feed(chunk))

    def end_run(self, end: Exit) -> Any:
        end.check(summary=True)

    def finish(self, end: Exit, *, timed_out: bool = False) -> Any:
        assert end.returncode == 0
        assert not timed_out


@pytest.mark.slow
@pytest.mark.anyio
async def test_event_loop_goes_on_while_a_collector_takes_a_large_record(tmp_path: Path) -> None:
    rg = fake_rg.write(tmp_path / "rg", "say(BEGIN, MATCH, SUMMARY)")
    collector = WaitingCollector()
    step = Step(search_query("x", tmp_path, (), {}), lambda: collector, 60.0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(AsyncRunner(str(rg)).collect, step)
        await until(collector.begun.is_set)
        collector.go_on.set()  # this line runs only if the event loop is free
    assert collector.pending == 0


class ThreadsOfCalls(BlockingRunner):
    """Runner that counts the calls which an async runner makes in a worker thread."""

    calls = 0

    async def call(self, work: Callable[[], T], **limits: Any) -> T:
        self.calls += 1
        return await super().call(work, **limits)


@pytest.mark.parametrize(("number", "calls"), [(1_000, 0), (40_000, 1)])
def test_large_record_of_a_page_is_decoded_in_a_worker_thread(number: int, calls: int) -> None:
    block = Block(b"a", 1, [(True, record(number))])
    page, run = PageRequest(0, 1, 1, 0, 0, None), ThreadsOfCalls(None)
    (file,) = run_blocking(files_in_path_order(run, page, [block]))
    assert len(file.matches[0].submatches) == number + 2
    assert run.calls == calls

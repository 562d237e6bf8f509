"""Run rg and yield its answer: one async and one blocking loop, which pass rg's output to an `Answer`.

An `Answer` converts the output to the items that an operation yields; each operation has its own class. A loop takes
1 µs per record. With only one loop, a bridge between async and blocking code would take 43 µs per record.
"""

import itertools
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from ripwrap._ripgrep.decoder import LARGE_RECORD
from ripwrap._ripgrep.named_paths import check_end, check_named, check_named_blocking
from ripwrap._ripgrep.place import Part, Plan
from ripwrap._ripgrep.planning import AsyncRuns, BlockingRuns, plan
from ripwrap._ripgrep.process import parse_stderr
from ripwrap._ripgrep.progress import Meter, MeteredAnswer, OnProgress, count_json, count_paths
from ripwrap._ripgrep.protocols import Answer
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.runner import (
    AsyncRunner,
    BlockingRunner,
    find_usable_rg,
    find_usable_rg_blocking,
    run_blocking,
    with_suggestions,
    with_suggestions_blocking,
)
from ripwrap._system.concurrency import in_thread
from ripwrap.binary.probe import RgBinary
from ripwrap.binary.resolver import Rg
from ripwrap.errors import UnknownTypeError
from ripwrap.options import check_callback

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class StreamRequest(Generic[T]):
    """Checked arguments of an operation that yields items as rg writes them."""

    query: Query
    answer: Answer[T]


async def run_stream(  # noqa: C901 - no nested generators, which would take time for each item
    request: StreamRequest[T], rg: Rg
) -> AsyncGenerator[T]:
    """Run rg and yield the items into which the answer converts its output; other tasks run between two chunks."""
    answer = request.answer
    if answer.full:
        return
    query = replace(request.query, streamed=True)
    await check_named(query)
    binary = await find_usable_rg(query, rg)
    planned = Plan((Part(query),)) if query.is_plain else await plan(query, AsyncRunner(binary), None)
    async with AsyncRuns(planned, binary, ordered=True) as runs:
        while (runs.asks and await runs.ask()) or runs.pending:
            _, started = runs.next()
            async with started as child:
                while not answer.full and (chunk := await child.read(whole=answer.ended)):
                    for item in await _feed(answer, chunk):
                        if answer.full:
                            child.kill()
                        yield item
                if answer.full:
                    return
                end = await child.wait()
            if not end.wrote and runs.retry(end):
                continue
            runs.add(end)
            try:
                for item in answer.end_run(end):
                    yield item
            except UnknownTypeError:
                raise await with_suggestions(end, binary) from None
    end = runs.end(query)
    await parse_stderr(end)
    if runs.error is not None:
        raise runs.error
    check_end(query, end)
    for item in answer.finish(end):
        yield item


async def _feed(answer: Answer[T], chunk: bytes) -> Iterator[T]:
    """Return the items that `chunk` completes; decode a large record in a worker thread."""
    is_large = answer.pending > LARGE_RECORD
    items = answer.feed(chunk)
    if not is_large:
        return items
    first = await in_thread(lambda: list(itertools.islice(items, 1)))
    return itertools.chain(first, items)


def run_stream_blocking(request: StreamRequest[T], rg: Rg, timeout: float | None) -> Generator[T]:
    """Run rg and yield the items, blocking; see `run_stream()`."""
    answer = request.answer
    if answer.full:
        return
    begun, query = time.monotonic(), replace(request.query, streamed=True)
    check_named_blocking(query)
    binary = find_usable_rg_blocking(query, rg, timeout)
    planned = Plan((Part(query),)) if query.is_plain else _plan_blocking(query, binary, timeout, begun)
    with BlockingRuns(planned, binary, timeout, begun, ordered=True) as runs:
        while (runs.asks and run_blocking(runs.ask())) or runs.pending:
            _, started = runs.next()
            with started as child:
                while not answer.full and (chunk := child.read(whole=answer.ended)):
                    for item in answer.feed(chunk):
                        if answer.full:
                            child.kill()
                        yield item
                if answer.full:
                    return
                end = child.wait()
            if not end.wrote and runs.retry(end):
                continue
            runs.add(end)
            try:
                yield from answer.end_run(end)
            except UnknownTypeError:
                raise with_suggestions_blocking(end, binary) from None
    if runs.error is not None:
        raise runs.error
    end = runs.end(query)
    check_end(query, end)
    yield from answer.finish(end)


def _plan_blocking(query: Query, binary: RgBinary, timeout: float | None, begun: float) -> Plan:
    left = None if timeout is None else max(0.0, timeout - (time.monotonic() - begun))
    made = run_blocking(plan(query, BlockingRunner(binary), left))
    if made.end is not None or made.late:
        made.close()
        raise TimeoutError(f"rg was stopped after timeout={timeout} seconds; allow more time")
    return made


def metered(request: StreamRequest[T], report: OnProgress | None, limit: int | None) -> StreamRequest[T]:
    """Return a request that also reports its progress; if `report` is `None`, return the request itself."""
    if report is None:
        return request
    check_callback(report)
    count = count_json if request.query.patterns else count_paths
    return StreamRequest(request.query, MeteredAnswer(request.answer, Meter(report, count, limit)))

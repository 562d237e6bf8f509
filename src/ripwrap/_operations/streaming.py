"""Request of a streaming operation, and two functions that run it: one async, one blocking."""

from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from typing import Generic, TypeVar

from ripwrap._ripgrep.progress import OnProgress, count_json, count_paths, meter_answer
from ripwrap._ripgrep.protocols import Answer
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.stream import stream, stream_blocking
from ripwrap.binary.resolver import Rg
from ripwrap.options import check_callback, check_timeout

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StreamRequest(Generic[T]):
    """Checked arguments of an operation that yields items as rg writes them."""

    query: Query
    answer: Callable[[], Answer[T]]


def metered(request: StreamRequest[T], report: OnProgress | None, limit: int | None) -> StreamRequest[T]:
    """Return a request that also reports its progress; if `report` is `None`, return the request itself."""
    check_callback(report)
    if report is None:
        return request
    count = count_json if request.query.patterns else count_paths
    return StreamRequest(request.query, lambda: meter_answer(request.answer(), report, limit, count))


def run_stream(request: StreamRequest[T], rg: Rg) -> AsyncGenerator[T]:
    """Run rg and yield the items; raise what `stream()` raises."""
    return stream(request.query, request.answer(), rg)


def run_stream_blocking(request: StreamRequest[T], rg: Rg, timeout: float | None) -> Generator[T]:
    """Run rg and yield the items, blocking; raise what `stream_blocking()` raises."""
    return stream_blocking(request.query, request.answer(), rg, check_timeout(timeout))

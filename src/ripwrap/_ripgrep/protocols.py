"""Protocols between the parts of a search: the runner, the consumers of rg's output, and a step of an operation."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.query import Query

if TYPE_CHECKING:
    import anyio

T_co = TypeVar("T_co", covariant=True)


class Collector(Protocol):
    """Consumer of rg's output."""

    ended: bool

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        ...

    def end_run(self, end: Exit) -> None:
        """Process the end of a run that was not stopped; raise an error if rg failed. Another run may follow."""
        ...

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Process the end of the last run."""
        ...


@runtime_checkable
class OrderedCollector(Protocol):
    """Collector that sorts files by path, and can also keep the order in which they come."""

    def begin_ordered(self) -> None:
        """Keep the order of all further files: items that were selected by their names, after the files so far."""
        ...


C = TypeVar("C", bound=Collector)
T = TypeVar("T")
Lock: TypeAlias = (
    "Callable[[], anyio.Lock]"  # as text: anyio makes its locks when they are first named, which takes 5 ms
)


@dataclass(frozen=True, slots=True)
class Step(Generic[C]):
    """Search whose output goes to one collector: one run of rg, or several runs if its query has a place."""

    query: Query
    collector: Callable[[], C]
    timeout: float | None
    metered: bool = True
    install: bool = True


class Runner(Protocol):
    """Interface for the slow parts of an operation: running rg, blocking calls and requests to servers."""

    async def collect(self, step: Step[C]) -> C:
        """Run rg and return the collector of its output; raise what `ripwrap._ripgrep.stream.run_stream()` raises."""
        ...

    async def call(self, work: Callable[[], T], *, seconds: float | None = None, lock: "Lock | None" = None) -> T:
        """Call a function that blocks, such as a function that reads files; an async runner calls it in a thread."""
        ...

    async def call_to_end(self, work: Callable[[], T], *, seconds: float | None = None) -> T:
        """Call a function that blocks, and do not return before it has ended, even if the task is cancelled."""
        ...

    async def wait(self, work: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Await an awaitable, such as a request to a server; a blocking runner starts a loop for it."""
        ...

    async def checkpoint(self) -> None:
        """Let other tasks run."""
        ...


class Answer(Protocol[T_co]):
    """Converter of rg's output to items, used by both loops of this module."""

    @property
    def pending(self) -> int:
        """Number of bytes received of an incomplete last record; 0 if the last record is complete."""
        ...

    @property
    def full(self) -> bool:
        """True if the limit of items is reached."""
        ...

    @property
    def ended(self) -> bool:
        """True if the last message of rg was read."""
        ...

    def feed(self, chunk: bytes) -> Iterator[T_co]:
        """Yield the items that `chunk` completes."""
        ...

    def end_run(self, end: Exit) -> Iterator[T_co]:
        """Yield the items that are complete only at the end of a run; raise an error if rg failed.

        Another run may follow.
        """
        ...

    def finish(self, end: Exit) -> Iterator[T_co]:
        """Yield the items that are complete only at the end of the last run; `end` joins the exits of all runs."""
        ...

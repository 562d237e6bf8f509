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
    """Consumer of rg's output.

    Attributes:
        ended: True if rg has written its last message.
    """

    ended: bool

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        ...

    def end_run(self, end: Exit) -> None:
        """Process the end of a run that was not stopped; raise an error if rg failed. Another run may follow."""
        ...

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Process the end of the last run.

        Args:
            end: Exit codes and stderr of all runs that were started, joined into one `Exit`.
            timed_out: True if the last run was stopped at the time limit.
        """
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
    """Search whose output goes to one collector: one run of rg, or several runs if its query has a place.

    Attributes:
        query: Query of rg.
        collector: Function that makes the collector of the output. It is called again if rg is restarted.
        timeout: Seconds after which rg is stopped, not counting the wait until rg may start; `None` is no limit.
        metered: True if the output counts as progress of the call.
        install: True to install rg if there is none; False to raise `BinaryNotFoundError` at once.
    """

    query: Query
    collector: Callable[[], C]
    timeout: float | None
    metered: bool = True
    install: bool = True


class Runner(Protocol):
    """Interface for the slow parts of an operation: running rg, blocking calls and requests to servers."""

    async def collect(self, step: Step[C]) -> C:
        """Run rg and return the collector of its output.

        Raises what `ripwrap._ripgrep.stream.stream()` raises.
        """
        ...

    async def call(self, work: Callable[[], T], *, seconds: float | None = None, lock: "Lock | None" = None) -> T:
        """Call a function that blocks, such as a function that reads files; an async runner calls it in a thread.

        Args:
            work: Function to call. It ends early when `CANCELLED` is set.
            seconds: Time limit, including the wait for `lock`, after which `CANCELLED` is set; `None` is no limit.
            lock: Function that returns the lock to hold during the call; `None` is no lock. Tasks that wait for the
                lock take no thread.

        Raises:
            TimeoutError: The time limit was reached.
        """
        ...

    async def call_to_end(self, work: Callable[[], T], *, seconds: float | None = None) -> T:
        """Call a function that blocks, and do not return before it has ended, even if the task is cancelled.

        Args:
            work: Function to call. It ends, or undoes what it has done, when `CANCELLED` is set.
            seconds: Time limit after which `CANCELLED` is set; `None` is no limit.

        Raises:
            TimeoutError: The time limit was reached.
        """
        ...

    async def wait(self, work: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Await an awaitable, such as a request to a server; a blocking runner starts a loop for it.

        Args:
            work: Function that makes the awaitable.
            seconds: Time limit after which the awaitable is cancelled; `None` is no limit.

        Raises:
            TimeoutError: The time limit was reached.
        """
        ...

    async def checkpoint(self) -> None:
        """Let other tasks run."""
        ...


class Answer(Protocol[T_co]):
    """Converter of rg's output to items, used by both loops of this module.

    Attributes:
        full: True if the limit of items is reached.
        ended: True if the last message of rg was read.
        pending: Number of bytes received of an incomplete last record; 0 if the last record is complete.
    """

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

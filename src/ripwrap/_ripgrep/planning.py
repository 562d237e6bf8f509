"""Turn a query into the runs of rg that answer it: one for files on the disk, or those that its place makes."""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from ripwrap._ripgrep.change import Both, Change, Counted, Once
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.place import Part, Plan
from ripwrap._ripgrep.process import AsyncChild, AsyncOutput, BlockingChild, BlockingOutput, split
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.spool import OverdueError
from ripwrap._system.concurrency import countdown
from ripwrap.binary.probe import RgBinary
from ripwrap.errors import Hint, HintedText, SearchError
from ripwrap.models import PathError

_More = Callable[[], Awaitable[Sequence[Part] | None]]


async def plan(query: Query, run: Runner, seconds: float | None) -> Plan:
    """Return the runs of rg that a query needs; the query itself if it searches the files on the disk."""
    if query.place is not None:
        left = countdown(seconds)
        made = await query.place.plan(replace(query, place=None), run, seconds)
        return await _Joined(made, run, left).plan()
    if query.once and (nested := query.nested):
        # First the nested paths, because rg searches a file that is named past its first NUL (rg-facts 20).
        outer = tuple(path for path in dict.fromkeys(query.paths) if path not in nested)
        first = tuple(path for path in dict.fromkeys(query.paths) if path in nested)
        change = Once(query.output)
        parts = [Part(replace(query, paths=paths, once=False), change) for paths in (first, outer) if paths]
        return await _Joined(Plan(parts), run, countdown(seconds)).plan()
    if query.overlay is not None:
        from ripwrap._ripgrep import overlaid  # late: it imports pathspec, and few searches need it

        return await overlaid.plan(query, run, seconds)
    return Plan((Part(query),))


async def divide(part: Part, run: Runner, seconds: float | None) -> Plan:
    """Return the runs of rg that the query of a part needs, each with the change of the part after its own change."""
    if part.query.is_plain:
        return Plan((part,))
    return (await plan(part.query, run, seconds)).mapped(
        lambda one: replace(one, change=chain(one.change, part.change), in_order=one.in_order or part.in_order)
    )


async def divide_in_time(part: Part, run: Runner, seconds: float | None) -> Plan:
    """Return what `divide()` returns; raise `OverdueError` if the time limit was reached."""
    made = await divide(part, run, seconds)
    if made.end is not None or made.late:
        made.close()
        raise OverdueError("the time limit was reached before all files were searched; allow more time")
    return made


class _Joined:
    """Runs of a plan, with the runs of its place in place of each run that has one."""

    def __init__(self, made: Plan, run: Runner, left: Callable[[], float | None]) -> None:
        self._made, self._run, self._left = made, run, left
        self._plans = [made]
        self._places = 0
        self._later: deque[_More] = deque()

    async def plan(self) -> Plan:
        """Return one plan for all runs."""
        try:
            parts = await self._divided(self._made.parts, divide)
        except BaseException:
            self._close()
            raise
        for inner in self._plans:
            if inner.end is not None:
                self._close()
                return Plan((), end=inner.end)
        if self._made.more is not None:
            self._later.append(self._further)
        return replace(
            self._made,
            parts=parts,
            late=any(inner.late for inner in self._plans),
            more=self._more if self._later else None,
            ahead=max(inner.ahead for inner in self._plans),
            errors=self._errors,
            close=self._close,
        )

    async def _more(self) -> Sequence[Part] | None:
        while self._later:
            more = self._later[0]
            parts = await more()
            if parts is not None:
                return parts
            self._later.remove(more)
        return None

    async def _further(self) -> Sequence[Part] | None:
        parts = None if self._made.more is None else await self._made.more()
        return None if parts is None else await self._divided(parts, divide_in_time)

    async def _divided(
        self, parts: Iterable[Part], divided: Callable[[Part, Runner, float | None], Awaitable[Plan]]
    ) -> Sequence[Part]:
        now: list[Part] = []
        later: list[_More] = []
        for part in parts:
            if part.query.is_plain and not later:
                now.append(part)
                continue
            inner = await divided(self._numbered(part), self._run, self._left())
            self._plans.append(replace(inner, parts=()))
            if inner.end is not None:
                break
            if later and part.in_order:
                later.append(_once(inner.parts))
            else:
                now += inner.parts
            if inner.more is not None:
                later.append(inner.more)
        self._later.extendleft(reversed(later))
        return now

    def _numbered(self, part: Part) -> Part:
        """Return a part whose items have other numbers than those of the other parts."""
        if part.query.numbered is None:
            return part
        self._places += 1
        return replace(part, query=replace(part.query, numbered=f"{part.query.numbered}{self._places}."))

    def _errors(self) -> Sequence[PathError]:
        return [error for one in self._plans for error in one.errors()]

    def _close(self) -> None:
        with ExitStack() as stack:
            for one in self._plans:
                stack.callback(one.close)


def _once(parts: Sequence[Part]) -> _More:
    """Return a function that returns runs when it is called for the first time, and then `None`."""
    left = deque([parts])

    async def more() -> Sequence[Part] | None:
        return left.popleft() if left else None

    return more


def chain(first: Change | None, then: Change | None) -> Change | None:
    """Return a change that does both changes, one after the other."""
    if first is None or then is None:
        return first or then
    return Both(first, then)


_LOGGER = logging.getLogger("ripwrap")

Child = TypeVar("Child")


@dataclass(slots=True)
class _Run(Generic[Child]):
    """Run of rg that has not ended; until it is started, `child` is `None`."""

    part: Part
    child: Child | None = None


class Runs(ABC, Generic[Child]):
    """Successive runs of rg for one search: one run, or several if the place or the number of paths needs them.

    The output of the runs is read one after the other. First come the parts of the plan, of which one runs at a time.
    Then come the parts that `Plan.more` returns, of which several run at a time.
    """

    def __init__(self, plan: Plan, binary: RgBinary, *, ordered: bool) -> None:
        """Split each query whose paths are too long for one command line."""
        self.error: Exception | None = None
        self._plan = plan
        self._more = plan.more
        self._binary = binary
        self._parts = [
            part if query is part.query else replace(part, query=query)
            for part in plan.parts
            for query in split(part.query)
        ]
        if ordered and len(self._parts) > 1 and self._parts[0].query.sorts_all:
            said = (
                f"rg cannot sort the files of all {len(plan.parts[0].query.paths)} paths together, because this system "
                f"needs {len(self._parts)} command lines for so many paths; pass fewer paths, leave out "
            )
            sort, sortr = Hint("sort", kind="omit"), Hint("sortr", kind="omit")
            raise SearchError(HintedText(said, sort, " and ", sortr, ", or pass ", Hint("sort", "path")))
        self.pending: deque[_Run[Child]] = deque(map(_Run, self._parts))
        self._known = len(self._parts)  # number of the runs in `pending` that are parts of the plan
        self._waits = False
        self._end: Exit | None = None  # exits are joined, because each may have a MiB of stderr
        self._single_threaded = False

    @abstractmethod
    def _start(self, part: Part) -> Child:
        """Start rg for a part of the search; if its output is given, start nothing."""

    @property
    def asks(self) -> bool:
        """True if further runs can be asked for now with `ask()`."""
        return self._more is not None and not self._known and not (self._waits and self.pending)

    @property
    def unfinished(self) -> bool:
        """True if there are runs whose output is still to be read, or may be further runs."""
        return bool(self.pending) or self._more is not None

    async def ask(self) -> bool:
        """Start further runs, and return True if there is a run whose output is to be read."""
        self._waits = False
        while self._more is not None and len(self.pending) < self._plan.ahead and not self._waits:
            try:
                parts = await self._more()
            except Exception as error:  # noqa: BLE001 - raised after the results of the runs before it
                self.error, self._more = error, None
                break
            if parts is None:
                self._more = None
                break
            self._waits = not parts and bool(self.pending)
            for part in parts:
                self.pending.append(_Run(part, self._start(_counted(part))))
        return bool(self.pending)

    def next(self) -> tuple[Part, Child]:
        """Return the run to read now; tell its change whether it is the last run with this change."""
        run, part = self.pending[0], self.pending[0].part
        if part.change is not None:
            part.change.last = all(other.part.change is not part.change for other in list(self.pending)[1:])
        if run.child is None:
            run.child = self._start(_counted(part))
        return part, run.child

    def add(self, end: Exit) -> None:
        """Remove the first run from `pending`, because it has ended, and join its exit to earlier exits."""
        self.pending.popleft()
        self._known -= bool(self._known)
        self._end = end if self._end is None else self._end.followed_by(end)

    def end(self, query: Query) -> Exit:
        """Return the joined exit of all runs that have ended; `query` is the query of the whole search."""
        end = Exit(query, (), 1, b"") if self._end is None else self._end
        errors = tuple(self._plan.errors())
        return replace(end, also=(*end.also, *errors)) if errors else end

    def retry(self, end: Exit, *, everything: bool = False) -> bool:
        """Return True if rg must run again with one thread, because it could not start another thread (rg-facts 8)."""
        if self._single_threaded or not end.out_of_threads or not self._known:
            return False
        _LOGGER.info("rg could not start a thread; trying again with one thread")
        if everything:
            self.pending, self._end = deque(map(_Run, self._parts)), None
            self._known = len(self._parts)
            for part in self._parts:
                if part.change is not None:
                    part.change.restart()
        parts = (replace(run.part, query=run.part.query.with_(threads=1)) for run in self.pending)
        self.pending = deque(map(_Run, parts))
        self._single_threaded = True
        return True

    def _close(self) -> deque[_Run[Child]]:
        """Close the plan, and return the runs that were not read to their end."""
        self._more = None
        self._plan.close()
        return self.pending


class AsyncRuns(Runs[AsyncChild | AsyncOutput]):
    """Runs of rg for an async task; a context manager that ends the runs whose output was not read."""

    def _start(self, part: Part) -> AsyncChild | AsyncOutput:
        if part.output is not None:
            return AsyncOutput(part)
        return AsyncChild(self._binary, part.query, part.change)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for run in self._close():
            if run.child is not None:
                await run.child.__aexit__()


class BlockingRuns(Runs[BlockingChild | BlockingOutput]):
    """Runs of rg for a caller that blocks; a context manager that ends the runs whose output was not read."""

    def __init__(self, plan: Plan, binary: RgBinary, timeout: float | None, begun: float, *, ordered: bool) -> None:
        """Set the seconds after `begun` at which rg is killed; see `BlockingChild`."""
        super().__init__(plan, binary, ordered=ordered)
        self._timeout = timeout
        self._begun = begun

    def _start(self, part: Part) -> BlockingChild | BlockingOutput:
        if part.output is not None:
            return BlockingOutput(part)
        return BlockingChild(self._binary, part.query, self._timeout, self._begun, part.change)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._close():
            if run.child is not None:
                run.child.__exit__()


def _counted(part: Part) -> Part:
    """Return the run with rg's statistics if it counts, so that files without a count are noticed (rg-facts 58)."""
    query = part.query
    if query.mode not in ("count", "count-matches") or query.stats or query.silent:
        return part
    return replace(part, query=replace(query, stats=True), change=Counted(query, part.change))

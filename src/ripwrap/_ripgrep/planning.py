"""Turn a query into the runs of rg that answer it: one for files on the disk, or those that its place makes."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from ripwrap._concurrency import countdown
from ripwrap._ripgrep.change import Both, Change, Once
from ripwrap._ripgrep.place import Part, Plan
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.spool import OverdueError
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
    """Runs of a plan, with the runs of its place in place of each run that has one.

    Further runs come plan by plan, after the runs of all plans.
    """

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

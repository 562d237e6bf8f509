"""Successive runs of rg for one search: which one runs next, what is joined, and what runs again."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from ripwrap._ripgrep.change import Counted
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.place import Part, Plan
from ripwrap._ripgrep.process import split
from ripwrap._ripgrep.query import Query
from ripwrap.errors import Hint, HintedText, SearchError

_LOGGER = logging.getLogger("ripwrap")

Child = TypeVar("Child")


@dataclass(slots=True)
class _Run(Generic[Child]):
    """Run of rg that has not ended; until it is started, `child` is `None`."""

    part: Part
    child: Child | None = None


class Runs(Generic[Child]):
    """Successive runs of rg for one search: one run, or several if the place or the number of paths needs them.

    The output of the runs is read one after the other. First come the parts of the plan, of which one runs at a time.
    Then come the parts that `Plan.more` returns, of which several run at a time.
    """

    def __init__(self, plan: Plan, start: Callable[[Part], Child], *, ordered: bool = False) -> None:
        """Split each query whose paths are too long for one command line."""
        self.error: Exception | None = None
        self._plan = plan
        self._more = plan.more
        self._start = start
        self._parts = [
            part if query is part.query else replace(part, query=query)
            for part in plan.parts
            for query in split(part.query)
        ]
        if ordered and len(self._parts) > 1 and self._parts[0].query.sorts_all:
            raise _order_error(plan.parts[0].query, len(self._parts))
        self.pending: deque[_Run[Child]] = deque(map(_Run, self._parts))
        self._known = len(self._parts)  # number of the runs in `pending` that are parts of the plan
        self._waits = False
        self._end: Exit | None = None  # exits are joined, because each may have a MiB of stderr
        self._single_threaded = False

    @property
    def asks(self) -> bool:
        """True if further runs can be asked for now with `ask()`."""
        return self._more is not None and not self._known and not (self._waits and self.pending)

    @property
    def unfinished(self) -> bool:
        """True if there are runs whose output is still to be read, or may be further runs."""
        return bool(self.pending) or self._more is not None

    async def ask(self) -> bool:
        """Start further runs, and return True if there is a run whose output is to be read.

        With a `BlockingRunner`, this coroutine never suspends.
        """
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
        """Return True if rg must run again with one thread, because it could not start another thread (rg-facts 8).

        If so, change the queries in `pending` to use one thread.
        """
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

    def close(self) -> list[Child]:
        """Close the plan, and return the children that were started and not read to their end."""
        self._more = None
        self._plan.close()
        return [run.child for run in self.pending if run.child is not None]


def _counted(part: Part) -> Part:
    """Return the run with rg's statistics if it counts, so that files without a count are noticed (rg-facts 58)."""
    query = part.query
    if query.mode not in ("count", "count-matches") or query.stats or query.silent:
        return part
    return replace(part, query=replace(query, stats=True), change=Counted(query, part.change))


def _order_error(query: Query, lines: int) -> SearchError:
    return SearchError(
        HintedText(
            f"rg cannot sort the files of all {len(query.paths)} paths together, because this system needs {lines} "
            "command lines for so many paths; pass fewer paths, leave out ",
            Hint("sort", kind="omit"),
            " and ",
            Hint("sortr", kind="omit"),
            ", or pass ",
            Hint("sort", "path"),
        )
    )

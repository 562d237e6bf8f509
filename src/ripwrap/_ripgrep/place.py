"""Where a search takes place, besides the files on the disk: a place turns one query into several runs of rg."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ripwrap._ripgrep.change import Change
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.query import Query
from ripwrap.models import PathError


@dataclass(frozen=True, slots=True)
class Part:
    """Run of rg that is a part of a search.

    Attributes:
        query: Query of the run. If it has a place, the run is replaced by the runs of that place.
        change: Change of rg's output; `None` if the output is taken as it is.
        in_order: True if the files of this run come after those of all earlier runs, in the order of rg's output. The
            files of other runs are in path order, over all these runs.
        output: Output to read in place of a run of rg; `None` runs rg.
    """

    query: Query
    change: Change | None = None
    in_order: bool = False
    output: bytes | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Runs of rg that a search needs.

    Attributes:
        parts: Runs, in order; empty if there is an `end`.
        end: Exit of an rg that was stopped at the time limit while the plan was made; `None` if all was planned.
        late: True if results may be missing, because the time limit was reached while the plan was made.
        more: Function that returns the next runs, or `None` if there are no more. It is called after the output of
            `parts` was read. An empty sequence means that the output of all runs so far is to be read first, because
            the next runs take time. An error of the function is raised after the results of all runs before it.
        ahead: Maximum number of runs of `more` at a time.
        errors: Function that returns what could not be read, besides the paths that rg names; called at the end.
        close: Function that is called when the search has ended, even after an error.
    """

    parts: Sequence[Part]
    end: Exit | None = None
    late: bool = False
    more: Callable[[], Awaitable[Sequence[Part] | None]] | None = None
    ahead: int = 1
    errors: Callable[[], Sequence[PathError]] = tuple  # none
    close: Callable[[], object] = tuple  # does nothing

    def mapped(self, change: Callable[[Part], Part]) -> "Plan":
        """Return the plan with each of its runs changed, and each further run when it is made."""
        more = self.more
        if more is None:
            return replace(self, parts=[change(part) for part in self.parts])

        async def further() -> Sequence[Part] | None:
            parts = await more()
            return None if parts is None else [change(part) for part in parts]

        return replace(self, parts=[change(part) for part in self.parts], more=further)


class Place(Protocol):
    """Place of a search, such as texts that replace files, or files in several encodings.

    Any object with this method is a place, and can be passed as `where=`.
    """

    def plan(self, query: Query, run: Runner, seconds: float | None) -> Awaitable[Plan]:
        """Return the runs that search this place; an error is an error of the search.

        A blocking search has no event loop, so this method may await only the methods of `run`.

        Args:
            query: Query of the search; its `place` is `None`.
            run: Runner. `await run.call(function)` calls a function that blocks: in a thread if the search is async.
            seconds: Time limit for making the plan, in seconds; `None` is no limit.
        """
        ...

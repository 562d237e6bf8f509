"""Turn a query into the runs of rg that answer it: one for files on the disk, or those that its place makes."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from ripwrap._concurrency import countdown
from ripwrap._ripgrep.change import Both, Change
from ripwrap._ripgrep.place import Part, Plan
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.query import Query


async def plan(query: Query, run: Runner, seconds: float | None) -> Plan:
    """Return the runs of rg that a query needs; the query itself if it searches the files on the disk."""
    if query.place is not None:
        left = countdown(seconds)
        made: Plan = await query.place.plan(replace(query, place=None), run, seconds)
        parts: list[Part] = []
        for part in made.parts:
            inner = await divide(part, run, left())
            if inner.end is not None:
                made.close()
                return inner
            parts += inner.parts
        return replace(made, parts=parts, more=None if made.more is None else partial(_divide_more, made.more, run))
    if query.overlay is not None:
        from ripwrap._ripgrep import overlaid  # late: it imports pathspec, and few searches need it

        return await overlaid.plan(query, run, seconds)
    return Plan((Part(query),))


async def divide(part: Part, run: Runner, seconds: float | None) -> Plan:
    """Return the runs of rg that the query of a part needs, each with the change of the part after its own change."""
    if part.query.is_plain:
        return Plan((part,))
    made = await plan(part.query, run, seconds)
    parts = [replace(one, change=chain(one.change, part.change), in_order=part.in_order) for one in made.parts]
    return replace(made, parts=parts)


async def _divide_more(more: Callable[[], Awaitable[Sequence[Part] | None]], run: Runner) -> Sequence[Part] | None:
    parts = await more()
    if parts is None or all(part.query.is_plain for part in parts):
        return parts
    return [one for part in parts for one in (await divide(part, run, None)).parts]


def chain(first: Change | None, then: Change | None) -> Change | None:
    """Return a change that does both changes, one after the other."""
    if first is None or then is None:
        return first or then
    return Both(first, then)

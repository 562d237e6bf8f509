"""Search for the matches of a pattern that are near matches of other patterns.

rg searches once for each pattern. The line numbers of the matches of the other patterns are kept in memory (8 bytes for
each line). A match of the first pattern counts if every other pattern matches a line of the same file within the
distance.
"""

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from ripwrap._ripgrep.decoder import line_number_of
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.page_collector import MatchCollector, PageRequest, is_text
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query, unmarked, without_options
from ripwrap.errors import Hint, combination_error
from ripwrap.models import PathError
from ripwrap.options import SearchOptions, check_limit

NEAR_LINES = 5

QueryMaker: TypeAlias = Callable[[str | tuple[str, ...], SearchOptions], Query]

_REFUSED = {
    "invert_match": "with it, nearly every line would match",
    "multiline": "a match must be on one line",
    "no_line_number": "the distance is a difference of line numbers",
    "stop_on_nonmatch": "the search of a file would end at a different line for each pattern",
}
"""Options that have no meaning with `near`, with the reasons."""

_OF_OUTPUT = ("max_count", "context", "before_context", "after_context", "replace")
"""Options that the searches for the other patterns leave out. With `max_count`, lines would be missing when distances
are compared. The other options do not change which lines match."""

_NO_PAGE = PageRequest(offset=0, max_matches=0, max_files=0, before=0, after=0, max_count=None)


@dataclass(frozen=True, slots=True)
class Near:
    """Condition that a match is near matches of other patterns."""

    patterns: tuple[str, ...]
    within: int


def near_condition(near: str | Sequence[str], within: int, options: SearchOptions) -> Near | None:
    """Return the condition for the arguments `near` and `within` of `grep()`; `None` if `near` has no pattern."""
    distance = check_limit(within, "within")
    patterns = (near,) if isinstance(near, str) else tuple(near)
    if not patterns:
        return None
    if distance is None:
        raise TypeError("within must be an int, got None")
    for name, reason in _REFUSED.items():
        if cast("dict[str, object]", options).get(name) not in (None, False):
            raise combination_error(name, Hint("near", kind="omit"), reason)
    return Near(patterns, distance)


async def run_near(
    run: Runner,
    near: Near,
    make: QueryMaker,
    pattern: str | tuple[str, ...],
    options: SearchOptions,
    page: PageRequest,
    left: Callable[[], float | None],
) -> "NearCollector":
    """Search for the other patterns, then for `pattern`; return the collector of its matches that are near."""
    plain = without_options(options, _OF_OUTPUT)
    others = [
        await run.collect(Step(replace(make(one, plain), numbered=""), LineNumberCollector, left(), metered=False))
        for one in near.patterns
    ]
    # rg would apply `max_count` also to matches that are not near.
    wanted = replace(make(pattern, without_options(options, ("max_count",))), numbered="")
    return await run.collect(Step(wanted, lambda: NearCollector(page, others, near.within), left()))


class LineNumberCollector(MatchCollector):
    """Collector of the line numbers of all matches."""

    _counts_together = False

    def __init__(self) -> None:
        super().__init__(_NO_PAGE)
        self.lines: dict[bytes, array[int]] = {}

    def _begin(self, path: bytes) -> None:
        super()._begin(path)
        self._lines = self.lines[path] = array("Q")

    def _match(self, record: bytes) -> None:
        super()._match(record)
        self._lines.append(line_number_of(record))


class NearCollector(MatchCollector):
    """Collector of the matches that are near a match of every other pattern.

    All other matches become lines of context, and are dropped if they are not in the context of a match that counts.
    """

    _counts_together = False

    def __init__(self, page: PageRequest, others: Sequence[LineNumberCollector], within: int) -> None:
        super().__init__(page)
        self.far: int = 0
        self._others = others
        self._within = within
        self._lines: list[Sequence[int]] = []
        self._seen = False
        self._loose = 0  # number of context lines since the last match in the file
        for other in others:
            self._framer.dropped.update(other.dropped)

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Store the exit of rg. The result is incomplete if the search for any of the patterns was stopped."""
        super().finish(end, timed_out=timed_out or any(other.timed_out for other in self._others))

    def path_errors(self) -> tuple[PathError, ...]:
        """Return the paths that rg could not read in any of the searches."""
        errors = (error for one in self._others for error in one.path_errors())
        return tuple(dict.fromkeys((*super().path_errors(), *errors)))

    def _begin(self, path: bytes) -> None:
        super()._begin(os.fsencode(unmarked(os.fsdecode(path))))
        self._lines = [other.lines.get(path, ()) for other in self._others]
        self._seen, self._loose = False, 0

    def _match(self, record: bytes) -> None:
        self._seen = True
        number = line_number_of(record)
        near = ((lines, bisect_left(lines, number - self._within)) for lines in self._lines)
        if all(at < len(lines) and lines[at] <= number + self._within for lines, at in near):
            super()._match(record)
        else:
            self.far += 1
            self._append(record, is_match=False)

    def _append(self, record: bytes, *, is_match: bool) -> None:
        """Add a match or context line of rg's output; drop context lines that belong to no match that counts."""
        block = self._block
        if block is None:
            return
        before = len(block.records)
        super()._append(record, is_match=is_match)
        self._loose = 0 if is_match else self._loose + len(block.records) - before
        if self._loose > self._request.before + (self._request.after if block.matches else 0):
            del block.records[-1 - self._request.before]
            self._loose -= 1

    def _end(self, record: bytes) -> None:
        self.binary += self._seen and not self._in_file and not is_text(record)
        super()._end(record)

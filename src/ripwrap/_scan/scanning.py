"""State of a scan (a search for many rules): the runs of rg that are left, and the lines and texts that were found."""

import math
import os
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ripwrap._operations.files import files_request
from ripwrap._operations.search import capturing_query, with_groups
from ripwrap._operations.streaming import StreamRequest
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.query import only_options
from ripwrap._scan.keywords import KeywordSearch
from ripwrap._scan.scan_lines import (
    FoundLine,
    FoundText,
    LineAnswer,
    LineSearch,
    texts,
    timeout_error,
    widened,
    write_patterns,
)
from ripwrap._scan.scan_plan import ScanRequest, compile_rules, for_scan, plan_passes
from ripwrap.errors import PatternError
from ripwrap.models import HistoryScanMatch, ScanMatch, Submatch
from ripwrap.options import FileOptions, SearchOptions
from ripwrap.places.items import fields_of
from ripwrap.places.where import PLACE_OPTIONS, placed_search

_BATCH_LINES = 16384
"""Number of collected lines at which rg searches these lines for each rule."""

_BATCH_BYTES = 8 << 20
"""Length of all collected lines, in characters, at which rg searches these lines for each rule."""

_LONG_PATTERNS = 16 << 10
"""Length of all patterns in characters above which rg reads them from a file, because a command line is limited."""


class Scanning:
    """State of a scan: the runs of rg that are left, and the matched texts that are not yielded yet."""

    def __init__(self, request: ScanRequest, timeout: float | None, directory: str) -> None:
        """Choose the runs of rg."""
        self._request = request
        self._timeout = timeout
        self._deadline = math.inf if timeout is None else time.monotonic() + timeout
        self._directory = directory
        self._left = math.inf if request.limit is None else request.limit
        self._order = {rule.id: number for number, rule in enumerate(request.rules)}
        self._rules = {rule.id: rule for rule in request.rules}
        self.named = tuple(rule for rule in request.rules if rule.finds_names)
        texts_of = (rule for rule in request.rules if not rule.finds_names)
        self.passes = deque(plan_passes(compile_rules(texts_of, request.options), request.options))
        self._search = LineSearch(request, directory, timeout, self.left)
        self._keywords = KeywordSearch(request, timeout, self.left)
        self._lines: list[FoundLine] = []
        self._size = 0
        self._held: list[FoundText] = []  # texts that are held back, because texts of later runs may overlap them
        # By file: texts of the first run, which are held until the second run has searched the same file.
        self._early: dict[str, list[FoundText]] = {}
        self._open: tuple[str, ...] = ()  # file whose lines may continue in the next batch

    @property
    def full(self) -> bool:
        """True if the limit of texts is reached."""
        return self._left <= 0

    def left(self) -> float | None:
        """Return the seconds that are left for the scan; `None` is no limit."""
        if self._timeout is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise timeout_error(self._timeout)
        return left

    async def check(self, run: Runner) -> None:
        """Check that rules that share a run of rg compile, so that an error does not depend on the searched files."""
        rules = [rule for part in self.passes if not part.alone for rule in part.rules]
        if rules:
            await self._search.check(run, sorted(rules, key=lambda one: self._order[one.rule.id]))

    def begin(self) -> StreamRequest[FoundLine]:
        """Return the request of the next run of rg, which is the first of `passes`."""
        part, request = self.passes[0], self._request
        if part.alone:
            (one,) = part.rules
            options: SearchOptions = {**request.options, "multiline": True} if one.rule.multiline else request.options
            query = capturing_query("scan()", [one.rule.pattern], one.groups, request.cwd, request.paths, options)
            return StreamRequest(for_scan(query), partial(LineAnswer, None))
        patterns, file = part.patterns(), None
        if sum(map(len, patterns)) > _LONG_PATTERNS:
            file = os.path.join(self._directory, "patterns-of-run")
            write_patterns(file, patterns)
        query = placed_search(
            "scan()", patterns, request.cwd, request.paths, widened(request.options), pattern_file=file
        )
        return StreamRequest(for_scan(query), partial(LineAnswer, None))

    def listing(self) -> StreamRequest[str]:
        """Return the request that lists the files, for the rules that find files by name."""
        options = only_options(self._request.options, (*FileOptions.__annotations__, *PLACE_OPTIONS))
        request = files_request(self._request.cwd, self._request.paths, None, options)
        return replace(request, query=for_scan(request.query))

    def names(self, path: str) -> Sequence[ScanMatch]:
        """Return the matches of the rules that find files by name in the path of a file, as `listing()` lists it."""
        name, fields = fields_of(path)
        model = HistoryScanMatch if "blob" in fields else ScanMatch
        known = {**fields, "path": name, "lines": "", "line_number": None, "absolute_offset": 0}
        known["submatches"] = (Submatch(match="", start=0, end=0),)
        hits = (model.model_validate({**known, "rule": rule.id}) for rule in self.named)
        return self._limited([FoundText(path, hit) for hit in hits if self._rules[hit.rule].accepts(hit)])

    def add(self, line: FoundLine) -> bool:
        """Add a line of the current run; return True if `flush()` must be called.

        In a run for a single rule, `flush()` must be called after each line; in other runs, after a batch of lines.
        """
        self._lines.append(line)
        self._size += len(line.match.lines)
        return self.passes[0].alone or len(self._lines) >= _BATCH_LINES or self._size >= _BATCH_BYTES

    async def flush(self, run: Runner) -> Iterable[ScanMatch]:
        """Find the texts that the rules match in the added lines, and return the texts that can be yielded now."""
        lines, self._lines, self._size = self._lines, [], 0
        part = self.passes[0]
        if part.alone:
            (one,) = part.rules
            hits = [hit for line in lines for hit in texts(with_groups(line.match, one.groups), one.rule.id, line)]
        else:
            hits = await self._search.search(run, lines, part.rules) if lines else []
        if hits and any(one.rule.filters for one in part.rules):
            hits = await run.call(partial(self._accepted, hits))
            hits = await self._keywords.kept(run, hits, self._rules)
        if part.held:
            for hit in hits:
                self._early.setdefault(hit.file, []).append(hit)
            return ()
        return self._found(self._merge(hits))

    def _accepted(self, hits: Iterable[FoundText]) -> list[FoundText]:
        return [one for one in hits if self._rules[one.hit.rule].accepts(one.hit)]

    async def end(self, run: Runner) -> Iterable[ScanMatch]:
        """End the current run, remove it from `passes`, and return the texts that can be yielded now."""
        found = list(await self.flush(run))
        if not self.passes[0].held:
            found += self._found(self._merge([], ended=True))
        self.passes.popleft()
        if self._held and not self.passes:
            return self._limited(_without_overlaps(self._held, self._order))
        return found

    async def fail(self, run: Runner, error: PatternError) -> None:
        """Split the current run in two if the regex of its rules is too large for rg; otherwise raise an error."""
        part = self.passes[0]
        if error.rule is not None:
            raise error
        if len(part.rules) == 1:
            raise error.about_rule(part.rules[0].rule.id) from None
        if "exceeds size limit" not in error.stderr:
            await self._search.name_rule(run, error, part.rules)
        self.passes.popleft()
        self.passes.extendleft(reversed(part.halves()))

    def _merge(self, hits: list[FoundText], *, ended: bool = False) -> list[FoundText]:
        """Return `hits` and the texts that the first run found in the same files, sorted by file and position.

        rg writes all matches of a file before the next file. So only the last file of `hits` may have further hits; of
        this file, the texts after the last hit are kept for a later call.
        """
        if not (hits or ended) or not (self._early or self._open):
            return hits
        files = dict.fromkeys((*self._open, *(one.file for one in hits), *(self._early if ended else ())))
        self._open = () if ended else (hits[-1].file,)
        merged = list(hits)
        for file in files:
            early = self._early.pop(file, [])
            if file in self._open:
                until = hits[-1].hit.absolute_offset
                self._early[file] = [one for one in early if one.hit.absolute_offset > until]
                early = [one for one in early if one.hit.absolute_offset <= until]
            merged += early
        places = {file: number for number, file in enumerate(files)}

        def position(one: FoundText) -> tuple[int, int, int, int]:
            hit = one.hit
            return places[one.file], hit.absolute_offset, hit.submatches[0].start, self._order[hit.rule]

        return sorted(merged, key=position)

    def _found(self, hits: list[FoundText]) -> Sequence[ScanMatch]:
        """Return the texts to yield now: none if a later run may find overlapping texts; `hits` are then kept."""
        if self._request.overlaps:
            return self._limited(hits)
        if self._held or len(self.passes) > 1:
            self._held += hits
            return ()
        return self._limited(_without_overlaps(hits, self._order))

    def _limited(self, hits: Sequence[FoundText]) -> Sequence[ScanMatch]:
        taken = [one.hit for one in (hits if self._left == math.inf else hits[: int(self._left)])]
        self._left -= len(taken)
        return taken


def _without_overlaps(hits: Iterable[FoundText], order: Mapping[str, int]) -> list[FoundText]:
    """Return the texts that overlap no earlier text. Of texts with the same start, keep the text of the first rule."""
    files: dict[str, list[tuple[int, int, int, FoundText]]] = {}
    for one in hits:
        hit = one.hit
        (submatch,) = hit.submatches
        start = hit.absolute_offset + submatch.start
        end = hit.absolute_offset + submatch.end
        files.setdefault(one.file, []).append((start, order[hit.rule], end, one))
    kept: list[FoundText] = []
    for found in files.values():
        found.sort(key=lambda one: one[:3])
        last = (-1, -1)
        for start, _, end, one in found:
            if start >= last[1] and start != last[0]:
                kept.append(one)
                last = start, end
    return kept

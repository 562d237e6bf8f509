"""Keywords of rules: drop the matches in files that have none of the keywords of their rule.

gitleaks compares keywords and files in lower case, in all of Unicode. Here, rg looks for the keywords and ignores case,
so the keywords and the files are folded in the same way, and rg decodes the files as in the search for the rules.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import only_options
from ripwrap._scan.rules import Rule
from ripwrap._scan.scan_lines import Collected, FoundText, LineAnswer
from ripwrap._scan.scan_plan import ScanRequest, for_scan
from ripwrap.errors import SearchError
from ripwrap.models import ScanMatch
from ripwrap.options import FileOptions, SearchOptions, StrPath
from ripwrap.places.where import PLACE_OPTIONS, placed_search

_OPTIONS = frozenset((*FileOptions.__annotations__, *PLACE_OPTIONS, "encoding", "null_data")) - {"sort", "sortr"}
_MAX_KNOWN = 10_000
"""Number of answers that are kept: the matches of a file may come one by one."""


class KeywordSearch:
    """Search for the keywords of rules in the files in which the rules match."""

    def __init__(self, request: ScanRequest, timeout: float | None, left: Callable[[], float | None]) -> None:
        """Set the options and the time limit, as `LineSearch` does."""
        given = cast("Mapping[str, Any]", request.options)
        self._options: SearchOptions = {**only_options(given, _OPTIONS), "text": True, "max_count": 1}
        self._cwd = request.cwd
        # In another place than a directory, such as an archive, the name of a match may be no path to search. Then all
        # is searched, once for all matches of the scan.
        self._everywhere = request.paths if any(given.get(name) for name in PLACE_OPTIONS) else None
        self._all: dict[tuple[str, ...], set[str] | None] = {}
        self._timeout = timeout
        self._left = left
        self._known: dict[tuple[str, tuple[str, ...]], bool] = {}

    async def kept(self, run: Runner, hits: Sequence[FoundText], rules: Mapping[str, Rule]) -> list[FoundText]:
        """Return the matches whose rules have no keywords, or have one of them in the same file."""
        wanted: dict[tuple[str, ...], dict[str, None]] = {}
        for file, hit in hits:
            words = rules[hit.rule].keywords
            if words and (file, words) not in self._known and not _in_line(hit, words):
                wanted.setdefault(words, {})[file] = None
        if len(self._known) > _MAX_KNOWN:
            self._known.clear()
        for words, files in wanted.items():
            if self._everywhere is None:
                found = await self._search(run, words, files)
            elif words in self._all:
                found = self._all[words]
            else:
                found = self._all[words] = await self._search(run, words, self._everywhere)
            self._known |= {(file, words): found is None or file in found for file in files}
        return [one for one in hits if self._has(one, rules[one.hit.rule].keywords)]

    def _has(self, found: FoundText, words: tuple[str, ...]) -> bool:
        return not words or _in_line(found.hit, words) or self._known.get((found.file, words), True)

    async def _search(self, run: Runner, words: Iterable[str], paths: Iterable[StrPath]) -> set[str] | None:
        """Return the files that have one of the words; `None` if they cannot be searched any more."""
        pattern = f"(?iu:{'|'.join(map(re.escape, words))})"
        query = for_scan(
            placed_search("scan()", pattern, self._cwd, paths, self._options, sorts=False, keeps_errors=True)
        )
        step = Step(query, lambda: Collected(LineAnswer(None), self._timeout), self._left())
        try:
            return {line.file for line in (await run.collect(step)).matches}
        except SearchError:
            return None


def _in_line(hit: ScanMatch, words: Iterable[str]) -> bool:
    line = hit.lines.casefold()
    return any(word.casefold() in line for word in words)

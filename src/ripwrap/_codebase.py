"""What `codebase_search` does: the places that answer a question, with an index or without, in a budget."""

# pyright: reportTypedDictNotRequiredAccess=false
# A tool's arguments are all there (`_arguments.understood`); only a caller may leave some out.

from typing import TYPE_CHECKING

from ripwrap._arguments import CodebaseSearchOptions
from ripwrap._message import plural
from ripwrap._rank import rank_plan
from ripwrap._report import shortened, snippet
from ripwrap._rg.collect import Plan
from ripwrap._scope import Scope, Settings, scope
from ripwrap._text import shown
from ripwrap.answers import CodebaseSearchResult, CodePlace, Ranking
from ripwrap.errors import BinaryError, RipwrapError, SearchError
from ripwrap.results import RankedChunk

if TYPE_CHECKING:
    from ripwrap._indexes import Indexes

_LINES = (60, 25, 10, 4, 1, 0)
"""How many lines of a place are shown at most: the largest number with which all places fit."""


def codebase_plan(
    settings: Settings, query: str, path: str, arguments: CodebaseSearchOptions, indexes: "Indexes | None"
) -> Plan[CodebaseSearchResult]:
    """The best places; all arguments are given.

    Raises:
        ValueError: There is no word in the query.
    """
    limit = arguments["limit"]
    with scope(settings, path, hidden=False, ignored=False) as found:
        places: list[RankedChunk] | None = None
        notes = [*found.notes]
        if indexes is not None:
            try:
                places = yield from indexes.search(found, query, limit + 1)
            except (SearchError, BinaryError):
                raise
            except RipwrapError as error:  # whoever asks wants an answer, not a file
                notes.append(f"The index could not be used: {error}.")
            except TimeoutError:
                if found.timeout is None:
                    raise
                notes.append(
                    f"The index was not up to date within {found.timeout:g} seconds; index_codebase takes its time."
                )
        ranking: Ranking = "index"
        if places is None:
            ranking = "files"
            places = yield from _ranked(found, query, limit + 1)
        return _fitted(settings, found, query, places, limit, ranking, notes)


def _ranked(found: Scope, query: str, limit: int) -> Plan[list[RankedChunk]]:
    """The best places, without an index."""
    place = found.place
    return rank_plan(query, place.cwd, place.paths, limit, found.options, found.timeout, found.allowed)


def _fitted(
    settings: Settings,
    found: Scope,
    query: str,
    places: list[RankedChunk],
    limit: int,
    ranking: Ranking,
    notes: list[str],
) -> CodebaseSearchResult:
    """The answer, with as much of each place as the budget has room for."""

    def answer(count: int, lines: int) -> CodebaseSearchResult:
        more = len(places) > count
        how = "with the index" if ranking == "index" else "without an index, by the files as they are now"
        much = f"The {plural(count, 'best place')}" if count else "No place shown" if places else "No place found"
        way = "" if not more else " A larger limit gives more." if count == limit else " There was no room for more."
        if not places:
            way = " Ask with other words, or use grep_content."
        return CodebaseSearchResult(
            root=shown(found.place.cwd),
            path=found.place.name,
            query=query,
            ranking=ranking,
            places=tuple(_told(one, found, lines, settings.max_line) for one in places[:count]),
            truncated=more,
            next_offset=None,
            message=f"{much}, ranked {how}.{way}",
            notes=tuple(notes),
        )

    most = min(len(places), limit)
    for lines in _LINES:
        told = answer(most, lines)
        if len(str(told)) <= settings.max_chars:
            return told
    return shortened(lambda count: answer(count, _LINES[-1]), most, settings.max_chars)


def _told(one: RankedChunk, found: Scope, lines: int, max_line: int) -> CodePlace:
    return CodePlace(
        file=found.place.shown(one.path),
        start_line=one.start_line,
        end_line=one.end_line,
        symbol=None if one.symbol is None else snippet(one.symbol, 1, max_line),
        score=one.score,
        why=tuple(snippet(reason, 1, max_line) for reason in one.reasons),
        snippet=snippet(one.text, lines, max_line),
    )

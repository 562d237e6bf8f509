"""Print results of `grep()` and of the search of a history, for `ripwrap search` and `ripwrap index grep`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ripwrap import sync
from ripwrap._operations.near import NEAR_LINES
from ripwrap.cli.errors import FAILED, complain
from ripwrap.cli.lines import LinePrinter, printer_of, warn_of_binary
from ripwrap.cli.output import print_all, print_coverage, print_json
from ripwrap.cli.search_options import NearOptions, TerminalSearch
from ripwrap.models import Begin, Context, HistoryMatch, Match
from ripwrap.places.where import PlacedSearchOptions
from ripwrap.results import GrepResult


def print_grep(ask: Callable[[], GrepResult], show: LinePrinter, *, as_json: bool, errors: bool = True) -> int:
    """Call `ask`, print the lines of its result or the result as JSON, and return the exit code."""
    failed = False

    def results() -> Iterator[GrepResult | Begin | Match | Context]:
        nonlocal failed
        result = ask()
        real = [error for error in result.errors if not error.harmless]
        failed = bool(real)
        for error in real if errors else ():
            complain(str(error))
        if as_json:
            yield from (result,) if result else ()
            return
        for file in result:
            yield Begin.model_validate({"path": file.path})
            yield from file.lines()
            warn_of_binary(file.path, file.binary_offset)
        if result.coverage is not None:
            print_coverage(result.coverage, as_json=False)

    code = print_all(results(), print_json if as_json else show)
    return FAILED if failed else code


def search_near(search: TerminalSearch, where: NearOptions, *, coverage: bool) -> int:
    """Print the matches that are near a match of each pattern of `--near`, and return the exit code."""
    run = search.run
    options: PlacedSearchOptions = {"context": 0, **search.options}

    def ask() -> GrepResult:
        return sync.grep(
            search.pattern,
            near=where.near,
            within=NEAR_LINES if where.within is None else where.within,
            cwd=run.cwd,
            paths=search.paths,
            limit=search.limit,
            timeout=None,
            coverage=coverage,
            rg=run.rg,
            **options,
        )

    return print_grep(ask, printer_of(search), as_json=run.json, errors=not run.no_messages)


def search_history(search: TerminalSearch, where: Mapping[str, Any]) -> int:
    """Print the matches in the history `where`, each with the commit that introduced it, and return the exit code."""
    run = search.run

    def found() -> Iterator[HistoryMatch]:
        options: dict[str, Any] = {**search.options, **where}
        matches = sync.search_history(
            search.pattern, cwd=run.cwd, paths=search.paths, limit=search.limit, rg=run.rg, **options
        )
        for match in matches:
            named = f"{match.first.id[:12]}:{match.path}"
            yield match if run.json else match.model_copy(update={"path": named})

    show = LinePrinter(replace(search.lines, heading=False, no_heading=True), search.options, run.cwd)
    return print_all(found(), print_json if run.json else show, streams=run)

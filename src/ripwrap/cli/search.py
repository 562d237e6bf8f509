"""Command `ripwrap search`: search files for a regular expression."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast

from cyclopts import App

from ripwrap import sync
from ripwrap.cli.flags import (
    HERE,
    STDIN,
    Color,
    CountLines,
    CountMatches,
    CoverageFlag,
    Limit,
    LineNumber,
    ListFiles,
    ListOthers,
    MaxColumns,
    RunOptions,
    flags,
)
from ripwrap.cli.help import epilogue
from ripwrap.cli.places import (
    FILES,
    NO_HISTORY,
    HistoryFlags,
    PlaceFlags,
    history_options,
    refuse_together,
    stdin_is_pipe,
)
from ripwrap.cli.search_options import NO_NEAR, NO_ROOTS, ManyRoots, NearOptions, TerminalSearch
from ripwrap.options import SearchOptions

if TYPE_CHECKING:
    from ripwrap.places.where import PlacedSearchOptions

search: App = App(
    name="search",
    usage="ripwrap search [OPTIONS] PATTERN [PATH]...",
    help_epilogue=epilogue(
        "ripwrap search 'fn \\w+_total' src        # a regular expression",
        "ripwrap search -F 'a[0]' -t py           # plain text, in Python files",
        "ripwrap search TODO -g '!tests/**' -C 2  # not in tests; two lines of context",
        "ripwrap search TODO --json               # JSON lines, for programs",
        "ripwrap search retry --near timeout      # within 5 lines of a timeout",
        "ripwrap search TODO --coverage           # also count the searched files",
        "ripwrap search TODO --on ssh:box:/srv    # on another machine",
        "ripwrap search TODO --repositories 'src/*' --per-root 5",
        "ripwrap search TODO --rev main~3         # in a revision of git",
        "ripwrap search TODO --inside zip,ipynb   # in archives and notebooks, too",
        "ripwrap search -- --pre                  # a pattern that begins with a dash",
    ),
)


@search.default
@flags(SearchOptions)
def run_search(
    pattern: str,
    /,
    *paths: str,
    files_with_matches: ListFiles = False,
    files_without_match: ListOthers = False,
    count: CountLines = False,
    count_matches: CountMatches = False,
    line_number: LineNumber = False,
    color: Color = "auto",
    max_columns: MaxColumns = 0,
    limit: Limit = None,
    coverage: CoverageFlag = False,
    near: NearOptions = NO_NEAR,
    place: PlaceFlags = FILES,
    history: HistoryFlags = NO_HISTORY,
    many: ManyRoots = NO_ROOTS,
    run: RunOptions = HERE,
    **options: Unpack[SearchOptions],
) -> int:
    """Search files for a regular expression.

    Parameters
    ----------
    pattern
        Regular expression to search for
    paths
        Files and directories [default: a pipe, or all]; - is stdin
    """
    if line_number:
        options["no_line_number"] = False
    modes = {
        "files_with_matches": files_with_matches,
        "files_without_match": files_without_match,
        "count": count,
        "count_matches": count_matches,
    }
    given = {**modes, "coverage": coverage, "near": near.near, "history": history.history}
    asked = partial(TerminalSearch, pattern, run=run, color=color, max_columns=max_columns, limit=limit)
    placed = cast("PlacedSearchOptions", options)
    # The ways to search are imported when they are used, so that `--help` imports no models.
    if many.asked():
        from ripwrap.cli.many import search_repositories

        if paths or place != FILES or any({**given, "count": False}.values()):
            raise ValueError(
                "--repositories takes no PATH, no place such as --on, and no --coverage, --near, --history, "
                "--files-with-matches, --files-without-match or --count-matches; leave them out"
            )
        return search_repositories(asked(paths=(), options=placed), many, count=count)
    if history.asked():
        from ripwrap.cli.history import search_history

        refuse_together("history", {**given, "history": False})
        return search_history(asked(paths=paths, options=placed), history_options(place, history, paths))
    elsewhere = place.rev is not None or place.on is not None or run.cwd != HERE.cwd or coverage
    several, options = place.of((STDIN,) if not paths and not elsewhere and stdin_is_pipe() else paths, options)
    search = asked(paths=several, options=options)
    if coverage:
        from ripwrap.places.holes import refuse_places

        refuse_places("coverage", search.options)
    if near.asked():
        from ripwrap.cli.grep import search_near

        refuse_together("near", modes)
        return search_near(search, near, coverage=coverage)
    return _print_found(search, next((name for name, is_given in modes.items() if is_given), ""), coverage=coverage)


def _print_found(search: TerminalSearch, mode: str, *, coverage: bool) -> int:
    """Print the results of the library's function for a mode, which is a flag such as `count`, or empty."""
    from ripwrap.cli import output  # late, too

    color, run = search.color, search.run
    if mode.startswith("files"):
        show: Callable[[Any], None] = output.path_printer(color)
    else:
        show = output.count_printer(color) if mode else output.match_printer(color, search.max_columns)
    operation: output.Operation = getattr(sync, mode or "search_messages")
    found = partial(operation, search.pattern, paths=search.paths, limit=search.limit, **search.options)
    code = output.print_results(found, show, run)
    if coverage:
        with output.printed_warnings():
            files = sync.coverage(
                cwd=run.cwd, paths=search.paths, timeout=None, rg=run.rg, **cast("SearchOptions", search.options)
            )
        output.print_coverage(files, as_json=run.json)
    return code

"""Command `ripwrap search`: search files for a regular expression.

The ways to search, and Pydantic, are imported when they are used.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Unpack, cast

from ripwrap import sync
from ripwrap.cli.command import STDIN, Command, Option
from ripwrap.cli.errors import FAILED
from ripwrap.cli.flags import HERE, CoverageFlag, Limit
from ripwrap.cli.search_options import (
    FILES,
    IN_CWD,
    LINES,
    MATCHES_NOTHING,
    NO_HISTORY,
    NO_NEAR,
    NO_PATTERNS,
    NO_ROOTS,
    PLAIN,
    HistoryFlags,
    LineFlags,
    ManyRoots,
    ModeFlags,
    NearOptions,
    PatternFlags,
    PlaceFlags,
    SearchRun,
    TerminalSearch,
    history_options,
    refuse_together,
    stdin_is_pipe,
)
from ripwrap.errors import Hint, combination_error
from ripwrap.options import SearchOptions

if TYPE_CHECKING:
    from ripwrap.cli.lines import LinePrinter
    from ripwrap.models import FileCount
    from ripwrap.places.where import PlacedSearchOptions


def run_search(
    pattern: Annotated[str | None, Option("Regular expression to search for, unless -e or -f is given")] = None,
    /,
    *paths: Annotated[str, Option("Files and directories [default: a pipe, or all]; - is stdin")],
    patterns: PatternFlags = NO_PATTERNS,
    modes: ModeFlags = LINES,
    lines: LineFlags = PLAIN,
    limit: Limit = None,
    coverage: CoverageFlag = False,
    near: NearOptions = NO_NEAR,
    place: PlaceFlags = FILES,
    history: HistoryFlags = NO_HISTORY,
    many: ManyRoots = NO_ROOTS,
    run: SearchRun = IN_CWD,
    **options: Unpack[SearchOptions],
) -> int:
    """Search files for a regular expression."""
    wanted, named = patterns.of(pattern, paths, run.cwd)
    if wanted == MATCHES_NOTHING:  # as a text, this pattern could match
        options["fixed_strings"] = False
    if modes.count and lines.only_matching:  # as in rg
        modes = replace(modes, count=False, count_matches=True)
    given = {**vars(modes), "coverage": coverage, "near": near.near, "history": history.history}
    if run.records:
        _refuse_records({**given, "jsonl": run.json, "repositories": many.repositories})
    placed = cast("PlacedSearchOptions", lines.options(options))
    asked = partial(TerminalSearch, wanted, run=run, lines=lines, limit=limit)
    if many.asked():
        from ripwrap.cli.grep import search_repositories

        if named or place != FILES or any({**given, "count": False}.values()):
            raise ValueError(
                "--repositories takes no PATH, no place such as --on, and no --coverage, --near, --history, --quiet, "
                "--files-with-matches, --files-without-match or --count-matches; leave them out"
            )
        return search_repositories(asked(paths=(), options=placed), many, count=modes.count)
    if history.asked():
        from ripwrap.cli.grep import search_history

        refuse_together("history", {**given, "history": False})
        return search_history(asked(paths=named, options=placed), history_options(place, history, named))
    elsewhere = place.rev is not None or place.on is not None or run.cwd != HERE.cwd or coverage
    piped = not named and not elsewhere and not patterns.reads_stdin and stdin_is_pipe()
    several, placed = place.of((STDIN,) if piped else named, placed)
    search = asked(paths=several, options=placed)
    if coverage:
        from ripwrap.places.where import refuse_places

        refuse_places("coverage", search.options)
    if near.asked():
        from ripwrap.cli.grep import search_near

        refuse_together("near", vars(modes))
        return search_near(search, near, coverage=coverage)
    return _print_found(search, modes, coverage=coverage)


def _refuse_records(others: Mapping[str, object]) -> None:
    """Raise `ValueError` if `--json` was given with a flag for which rg has no JSON."""
    for name, value in others.items():
        if value and name not in ("coverage", "quiet"):
            raise combination_error(name, Hint("json"), "rg has no JSON for it; --jsonl prints ripwrap's")


def _print_found(search: TerminalSearch, modes: ModeFlags, *, coverage: bool) -> int:
    """Print the lines of a search, or what a mode such as `count` prints, and return the exit code."""
    from ripwrap.cli import output, verbatim  # late, too

    run = search.run
    mode = next((name for name, is_given in vars(modes).items() if is_given), "")
    if search.lines.stats and mode not in ("", "quiet"):
        raise combination_error("stats", Hint(mode))
    try:
        if not mode and verbatim.is_verbatim(search):
            code = verbatim.print_verbatim(search)
        else:
            code = _print_results(search, mode, quiet=modes.quiet)
    except OSError as error:
        if not run.no_messages or error.filename not in search.paths:
            raise
        return FAILED
    if coverage:
        with output.printed_warnings():
            files = sync.coverage(
                cwd=run.cwd, paths=search.paths, timeout=None, rg=run.rg, **cast("SearchOptions", search.options)
            )
        output.print_coverage(files, as_json=run.json)
    return code


def _print_results(search: TerminalSearch, mode: str, *, quiet: bool) -> int:
    """Print the results of the library's function for a mode, such as `count`, and return the exit code."""
    from ripwrap.cli import output
    from ripwrap.cli.lines import printer_of

    run, printer, limit = search.run, printer_of(search), search.limit
    show: Callable[[Any], None] = printer
    if quiet:  # as in rg, nothing is printed in other modes, either
        run = replace(run, json=False)
        show = printer.stats if search.lines.stats else _print_nothing
        listed = mode if mode == "files_without_match" else "files_with_matches"
        mode, limit = ("", limit) if search.lines.stats else (listed, 1)
    elif mode.startswith("files"):
        show = printer.path
    elif mode.startswith("count"):
        show = partial(_print_count, printer)
    elif run.records:
        show = output.print_record
    operation: output.Operation = getattr(sync, mode or "search_messages")
    found = partial(operation, search.pattern, paths=search.paths, limit=limit, **search.options)
    return output.print_results(found, show, run)


def _print_count(printer: "LinePrinter", counted: "FileCount") -> None:
    printer.count(counted.path, counted.count)


def _print_nothing(_: object) -> None:
    """Print nothing, for `--quiet`."""


search: Command = Command(
    run_search,
    "PATTERN [PATH]...",
    examples=(
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

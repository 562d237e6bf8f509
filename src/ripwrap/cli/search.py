"""Command `ripwrap search`: search files for a regular expression.

The ways to search, and Pydantic, are imported when they are used.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Unpack, cast

from ripwrap import sync
from ripwrap.cli.command import STDIN, Command, Option
from ripwrap.cli.flags import (
    MATCHES_NOTHING,
    CoverageFlag,
    HistoryFlags,
    Limit,
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
    spell_as_flag,
    stdin_is_pipe,
)
from ripwrap.cli.terminal import FAILED, complain
from ripwrap.errors import Hint, combination_error, spell_error
from ripwrap.options import SearchOptions

if TYPE_CHECKING:
    from ripwrap.places.where import PlacedSearchOptions


@Command(
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
def search(
    pattern: Annotated[str | None, Option("Regular expression to search for, unless -e or -f is given")] = None,
    /,
    *paths: Annotated[str, Option("Files and directories [default: a pipe, or all]; - is stdin")],
    patterns: PatternFlags,
    modes: ModeFlags,
    lines: LineFlags,
    limit: Limit = None,
    coverage: CoverageFlag = False,
    near: NearOptions,
    place: PlaceFlags,
    history: HistoryFlags,
    many: ManyRoots,
    run: SearchRun,
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
    search = TerminalSearch(wanted, (), run, lines, limit, cast("PlacedSearchOptions", lines.options(options)))
    if many.asked():
        from ripwrap.cli.grep import search_repositories

        if named or place != PlaceFlags() or any({**given, "count": False}.values()):
            raise ValueError(
                "--repositories takes no PATH, no place such as --on, and no --coverage, --near, --history, --quiet, "
                "--files-with-matches, --files-without-match or --count-matches; leave them out"
            )
        return search_repositories(search, many, count=modes.count)
    if history.asked():
        from ripwrap.cli.grep import search_history

        refuse_together("history", {**given, "history": False})
        return search_history(replace(search, paths=named), history_options(place, history, named))
    elsewhere = place.rev is not None or place.on is not None or run.cwd != "." or coverage
    piped = not named and not elsewhere and STDIN not in patterns.file and stdin_is_pipe()
    groups = [(STDIN,)] if piped else [named] if coverage or near.near else _around_stdin(named)
    searches = list[TerminalSearch]()
    for group in groups:
        place_paths, placed = place.of(group, cast("SearchOptions", search.options))
        searches.append(replace(search, paths=place_paths, options=placed))
    search = searches[0]
    if coverage:
        from ripwrap.places.where import refuse_places

        refuse_places("coverage", search.options)
    if near.asked():
        from ripwrap.cli.grep import search_near

        refuse_together("near", vars(modes))
        return search_near(search, near, coverage=coverage)
    return _print_found(searches, modes, coverage=coverage)


def _refuse_records(others: Mapping[str, object]) -> None:
    """Raise `ValueError` if `--json` was given with a flag for which rg has no JSON."""
    for name, value in others.items():
        if value and name not in ("coverage", "quiet"):
            raise combination_error(name, Hint("json"), "rg has no JSON for it; --jsonl prints ripwrap's")


def _around_stdin(paths: Sequence[str]) -> list[Sequence[str]]:
    """Split paths at standard input, which is searched by itself; a second one is empty."""
    if STDIN not in paths:
        return [paths]
    at = paths.index(STDIN)
    after = [path for path in paths[at:] if path != STDIN]
    return [one for one in (paths[:at], (STDIN,), after) if one]


def _print_found(searches: Sequence[TerminalSearch], modes: ModeFlags, *, coverage: bool) -> int:
    """Print the lines of a search, or what a mode such as `count` prints, and return the exit code."""
    from ripwrap.cli import output, verbatim  # late, too

    search = searches[0]
    run = search.run
    mode = next((name for name, is_given in vars(modes).items() if is_given), "")
    if search.lines.stats and mode not in ("", "quiet"):
        raise combination_error("stats", Hint(mode))
    try:
        if not mode and len(searches) == 1 and verbatim.is_verbatim(search):
            code = verbatim.print_verbatim(search)
        else:
            code = _print_results(searches, mode, quiet=modes.quiet)
    except OSError as error:
        if not run.no_messages or not any(error.filename in one.paths for one in searches):
            raise
        return FAILED
    if coverage:
        with output.printed_warnings():
            files = sync.coverage(
                cwd=run.cwd, paths=search.paths, timeout=None, rg=run.rg, **cast("SearchOptions", search.options)
            )
        output.print_coverage(files, as_json=run.json)
    return code


def _print_results(searches: Sequence[TerminalSearch], mode: str, *, quiet: bool) -> int:
    """Print the results of the library's function for a mode, such as `count`, and return the exit code."""
    from ripwrap.cli import output
    from ripwrap.cli.lines import printer_of

    search = searches[0]
    run, printer, limit = search.run, printer_of(search), search.limit
    show: Callable[[Any], None] = printer
    if quiet:  # as in rg, nothing is printed in other modes, either
        run = replace(run, json=False)
        show = printer.stats if search.lines.stats else output.print_nothing
        listed = mode if mode == "files_without_match" else "files_with_matches"
        mode, limit = ("", limit) if search.lines.stats else (listed, 1)
    elif mode.startswith("files"):
        show = printer.path
    elif mode.startswith("count"):
        show = printer.count
    elif run.records:
        show = output.print_record
    return output.print_results(lambda: _results(searches, mode, limit, quiet=quiet), show, run)


def _results(searches: Sequence[TerminalSearch], mode: str, limit: int | None, *, quiet: bool) -> Iterator[object]:
    """Yield the results of all searches, and one summary; the first path that is missing is an error at the end."""
    from ripwrap.cli.output import NO_RESULTS
    from ripwrap.models import PathError, Summary

    operations: Mapping[str, Callable[..., Iterable[object]]] = {
        "": sync.search_messages,
        "files_with_matches": sync.files_with_matches,
        "files_without_match": sync.files_without_match,
        "count": sync.count,
        "count_matches": sync.count_matches,
    }
    summary, errors, missing = None, list[PathError](), None
    for one in searches:
        if limit == 0 and one is not searches[0]:
            break
        try:
            for item in operations[mode](
                one.pattern, cwd=one.run.cwd, paths=one.paths, limit=limit, rg=one.run.rg, **one.options
            ):
                if isinstance(item, Summary):
                    if summary is None:
                        summary = item
                    else:
                        from ripwrap._operations.search import sum_summaries  # late: few searches need it

                        summary = sum_summaries(summary, item)
                    errors += item.errors
                    continue
                limit = limit if limit is None or isinstance(item, NO_RESULTS) else limit - 1
                yield item
        except FileNotFoundError as error:
            missing = missing or error
    if summary:
        yield summary.model_copy(update={"errors": tuple(errors)})
    if missing and not (quiet and limit == 0):
        raise missing
    if missing and not searches[0].run.no_messages:  # as in rg, a match is enough
        complain(spell_error(missing, spell_as_flag))

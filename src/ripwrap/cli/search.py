"""Command `ripwrap search`: search files for a regular expression."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from cyclopts import App

from ripwrap import sync
from ripwrap.cli.flags import (
    HERE,
    Color,
    CountLines,
    CountMatches,
    CoverageFlag,
    Inside,
    Limit,
    LineNumber,
    ListFiles,
    ListOthers,
    MaxColumns,
    OnHost,
    RunOptions,
    flags,
    parse_host,
)
from ripwrap.cli.help import epilogue
from ripwrap.cli.search_options import NO_GIT, NO_NEAR, NO_ROOTS, GitOptions, ManyRoots, NearOptions, TerminalSearch
from ripwrap.options import SearchOptions

if TYPE_CHECKING:
    from ripwrap.cli.output import Operation

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
    inside: Inside = "",
    on: OnHost = None,
    where: NearOptions = NO_NEAR,
    many: ManyRoots = NO_ROOTS,
    git: GitOptions = NO_GIT,
    run: RunOptions = HERE,
    **options: Unpack[SearchOptions],
) -> int:
    """Search files for a regular expression.

    Parameters
    ----------
    pattern
        Regular expression to search for
    paths
        Files and directories [default: all]; - is standard input
    """
    if coverage and on is not None:
        raise ValueError(
            "--coverage reads files of this machine, and cannot be combined with --on; leave one of them out"
        )
    host = parse_host(on)
    if line_number:
        options["no_line_number"] = False
    modes = {
        "--files-with-matches": files_with_matches,
        "--files-without-match": files_without_match,
        "--count": count,
        "--count-matches": count_matches,
        "--coverage": coverage,
        "--on": on is not None,
        "--repositories": many is not NO_ROOTS,
        "--inside": bool(inside),
        "--near": bool(where.near),
    }
    given = [flag for flag, is_given in modes.items() if is_given]
    asked = TerminalSearch(pattern, paths, run, color, max_columns, limit, host, options)
    # The other ways to search are imported when they are used, so that `--help` imports no models.
    if git.check(paths, given):
        from ripwrap.cli.sources import search_source

        return search_source(asked, git)
    if where.check([flag for flag in given if flag not in ("--on", "--near")]):
        from ripwrap.cli.grep import search_near

        return search_near(asked, where)
    _check_inside(given)
    other = files_with_matches or files_without_match or count_matches
    if many.check(paths, other_mode=other or coverage or on is not None):
        from ripwrap.cli.many import search_repositories

        return search_repositories(asked, many, count=count)

    from ripwrap.cli import output  # late, too

    def ask(operation: "Operation", show: Callable[[Any], None]) -> int:
        code = output.print_results(
            partial(operation, pattern, paths=paths, limit=limit, on=host, **options), show, run
        )
        if coverage:
            files = sync.coverage(cwd=run.cwd, paths=paths, timeout=None, rg=run.rg, **options)
            output.print_coverage(files, as_json=run.json)
        return code

    if files_with_matches or files_without_match:
        listing = sync.files_with_matches if files_with_matches else sync.files_without_match
        return ask(listing, output.path_printer(color))
    if count or count_matches:
        return ask(sync.count if count else sync.count_matches, output.count_printer(color))
    formats = [one.strip() for one in inside.split(",")] if inside else ()
    return ask(partial(sync.search_messages, inside=formats), output.match_printer(color, max_columns))


def _check_inside(given: Sequence[str]) -> None:
    """Raise `ValueError` if `given` has --inside and a flag that cannot be combined with it."""
    if "--inside" in given and len(given) > 1:
        raise ValueError(f"{given[0]} and --inside cannot be combined; leave one of them out")

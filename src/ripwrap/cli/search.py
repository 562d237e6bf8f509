"""Command `ripwrap search`: search files for a regular expression."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from cyclopts import App, Group, Parameter

from ripwrap import sync
from ripwrap.cli.flags import (
    HERE,
    RIPWRAP,
    STDIN,
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
    check_limit,
    flags,
    parse_host,
)
from ripwrap.cli.help import epilogue
from ripwrap.options import SearchOptions

if TYPE_CHECKING:
    from ripwrap.cli.output import Operation

GIT = Group("Options for git", sort_key=6)
MANY = Group("Options for many roots", sort_key=6)


def _flag(help: str, metavar: str) -> Parameter:  # noqa: A002 - cyclopts' name
    return Parameter(group=MANY, negative=(), help=help, metavar=metavar, show_default=False)


@Parameter(name="*")
@dataclass(frozen=True)
class NearOptions:
    """Options `--near` and `--within`, which drop matches that are not near a match of every `--near` pattern."""

    near: Annotated[
        tuple[str, ...],
        Parameter(
            group=RIPWRAP,
            negative=(),
            metavar="PATTERN",
            show_default=False,
            help="Only lines near a match of this pattern; may be repeated",
        ),
    ] = ()
    within: Annotated[
        int | None,
        Parameter(
            group=RIPWRAP,
            metavar="NUM",
            help="Maximum distance for --near, in lines",
            show_default="5",
            validator=check_limit,
        ),
    ] = None

    def check(self, others: Sequence[str]) -> bool:
        """Check the flags, and return True if `--near` was given.

        Args:
            others: Given flags that cannot be combined with `--near`.

        Raises:
            ValueError: `--near` was given with a flag of `others`, or `--within` without `--near`.
        """
        if self.within is not None and not self.near:
            raise ValueError("--within needs --near; add --near, or leave --within out")
        if self.near and others:
            raise ValueError(f"{others[0]} and --near cannot be combined; leave one of them out")
        return bool(self.near)


@Parameter(name="*")
@dataclass(frozen=True)
class ManyRoots:
    """Options of a search in many roots (directories)."""

    repositories: Annotated[tuple[str, ...], _flag("Search each directory that matches; may be repeated", "GLOB")] = ()
    only_root: Annotated[tuple[str, ...], _flag("Only roots whose name or path matches; may be repeated", "GLOB")] = ()
    exclude_root: Annotated[
        tuple[str, ...], _flag("Leave out roots whose name or path matches; may be repeated", "GLOB")
    ] = ()
    per_root: Annotated[
        int | None,
        Parameter(
            group=MANY,
            negative=(),
            help="Maximum number of matches of each root",
            metavar="NUM",
            validator=check_limit,
        ),
    ] = None
    dask: Annotated[str | None, _flag("Search on the Dask cluster with this scheduler", "ADDRESS")] = None

    def check(self, paths: Sequence[str], *, other_mode: bool) -> bool:
        """Check the flags, and return True if `--repositories` was given.

        Args:
            paths: Paths of the command line.
            other_mode: True if a flag was given that cannot be combined with `--repositories`.

        Raises:
            ValueError: A flag needs `--repositories`, which was not given; or a flag or path was given that cannot be
                combined with `--repositories`.
        """
        given = {
            "--only-root": self.only_root,
            "--exclude-root": self.exclude_root,
            "--per-root": self.per_root,
            "--dask": self.dask,
        }
        lone = [name for name, value in given.items() if value not in (None, ())]
        if lone and not self.repositories:
            raise ValueError(f"{lone[0]} needs --repositories; add --repositories, or leave {lone[0]} out")
        if self.repositories and (paths or other_mode):
            raise ValueError(
                "--repositories takes no PATH, --on, --coverage, --files-with-matches, --files-without-match or "
                "--count-matches; leave them out"
            )
        return bool(self.repositories)


@Parameter(name="*")
@dataclass(frozen=True)
class GitOptions:
    """Options `--rev` and the like, which search a revision or the history of git in place of files."""

    rev: Annotated[str | None, Parameter(group=GIT, metavar="REV", help="Search this revision, e.g. main~3")] = None
    history: Annotated[
        bool, Parameter(group=GIT, negative=(), show_default=False, help="Search all versions of files, up to --rev")
    ] = False
    since: Annotated[
        str | None, Parameter(group=GIT, metavar="DATE", help="With --history, only commits since DATE")
    ] = None
    repository: Annotated[
        tuple[str, ...] | None,
        Parameter(
            group=GIT, negative=(), metavar="DIR", help="With --rev or --history, refuse repositories outside of DIR"
        ),
    ] = None

    def check(self, paths: Sequence[str], others: Sequence[str]) -> bool:
        """Return True if standard input, a revision or a history is searched in place of files.

        Args:
            paths: Paths of the command line.
            others: Flags that were given, and that apply only to files.

        Raises:
            ValueError: Two flags, or a flag and a path, cannot be combined, or `--since` was given without `--history`.
        """
        if self.since is not None and not self.history:
            raise ValueError("--since needs --history; add --history, or leave --since out")
        if STDIN in paths and (len(paths) > 1 or self.rev is not None or self.history):
            raise ValueError(
                "standard input (-) cannot be combined with other paths, --rev or --history; "
                "for a file with the name -, write ./-"
            )
        if self.repository is not None and self.rev is None and not self.history:
            raise ValueError("--repository needs --rev or --history; add one of them, or leave --repository out")
        what = "--history" if self.history else "--rev" if self.rev is not None else STDIN if STDIN in paths else ""
        if what and others:
            raise ValueError(f"{others[0]} and {what} cannot be combined; leave one of them out")
        return bool(what)


NO_NEAR, NO_ROOTS, NO_GIT = NearOptions(), ManyRoots(), GitOptions()

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
    if git.check(paths, given):
        from ripwrap.cli.sources import search_source

        return search_source(
            pattern,
            paths,
            git,
            run.cwd,
            run.rg,
            as_json=run.json,
            color=color,
            max_columns=max_columns,
            limit=limit,
            options=options,
        )
    if where.check([flag for flag in given if flag not in ("--on", "--near")]):
        from ripwrap.cli.grep import search_near

        return search_near(
            pattern,
            paths,
            where,
            run.cwd,
            run.rg,
            as_json=run.json,
            color=color,
            max_columns=max_columns,
            limit=limit,
            on=host,
            options=options,
        )
    _check_inside(given)
    other = files_with_matches or files_without_match or count_matches
    if many.check(paths, other_mode=other or coverage or on is not None):
        from ripwrap.cli.many import search_repositories

        return search_repositories(
            pattern,
            many,
            run.cwd,
            run.rg,
            as_json=run.json,
            count=count,
            color=color,
            max_columns=max_columns,
            limit=limit,
            options=options,
        )

    from ripwrap.cli import output
    from ripwrap.models import FileCount, Match

    def ask(operation: "Operation", show: Callable[[Any], None], wanted: type) -> int:
        code = output.print_results(
            partial(operation, pattern, paths=paths, limit=limit, on=host, **options), show, wanted, run
        )
        if coverage:
            files = sync.coverage(cwd=run.cwd, paths=paths, timeout=None, rg=run.rg, **options)
            output.print_coverage(files, as_json=run.json)
        return code

    if files_with_matches or files_without_match:
        return ask(
            sync.files_with_matches if files_with_matches else sync.files_without_match, output.path_printer(color), str
        )
    if count or count_matches:
        return ask(sync.count if count else sync.count_matches, output.count_printer(color), FileCount)
    formats = [one.strip() for one in inside.split(",")] if inside else ()
    return ask(partial(sync.search_messages, inside=formats), output.match_printer(color, max_columns), Match)


def _check_inside(given: Sequence[str]) -> None:
    """Raise `ValueError` if `given` has --inside and a flag that cannot be combined with it."""
    if "--inside" in given and len(given) > 1:
        raise ValueError(f"{given[0]} and --inside cannot be combined; leave one of them out")

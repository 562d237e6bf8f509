"""Options of `ripwrap search` that choose another way to search: `--near`, many roots, or git."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from ripwrap.cli.flags import RIPWRAP, STDIN, RunOptions, When, check_limit
from ripwrap.options import SearchOptions

if TYPE_CHECKING:
    from ripwrap.remote import Host

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


@dataclass(frozen=True)
class TerminalSearch:
    """Search of the command line.

    Attributes:
        pattern: Regular expression to search for.
        paths: Files and directories to search; without one, all.
        run: Directory to search in, rg, and if results are printed as JSON.
        color: When to color lines.
        max_columns: Maximum length of a line in bytes; longer lines are omitted. 0 is no limit.
        limit: Maximum number of results; `None` is no limit.
        host: Machine to search on; `None` is this one.
        options: Options of the search.
    """

    pattern: str
    paths: Sequence[str]
    run: RunOptions
    color: When
    max_columns: int
    limit: int | None
    host: "Host | None"
    options: SearchOptions

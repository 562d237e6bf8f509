"""Options of `ripwrap search` that choose another way to search: `--near`, or many roots."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from ripwrap.cli.flags import RIPWRAP, RunOptions, When, check_limit

if TYPE_CHECKING:
    from ripwrap.places.where import PlacedSearchOptions

MANY = Group("Options for many roots", sort_key=7)


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

    def asked(self) -> bool:
        """Return True if `--near` was given; raise `ValueError` if `--within` was given without it."""
        if self.within is not None and not self.near:
            raise ValueError("--within needs --near; add --near, or leave --within out")
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

    def asked(self) -> bool:
        """Return True if `--repositories` was given; raise `ValueError` if a flag needs it, and it was not given."""
        given = {
            "--only-root": self.only_root,
            "--exclude-root": self.exclude_root,
            "--per-root": self.per_root,
            "--dask": self.dask,
        }
        lone = [name for name, value in given.items() if value not in (None, ())]
        if lone and not self.repositories:
            raise ValueError(f"{lone[0]} needs --repositories; add --repositories, or leave {lone[0]} out")
        return bool(self.repositories)


NO_NEAR, NO_ROOTS = NearOptions(), ManyRoots()


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
        options: Options of the search, and of the place in which it looks.
    """

    pattern: str
    paths: Sequence[str]
    run: RunOptions
    color: When
    max_columns: int
    limit: int | None
    options: "PlacedSearchOptions"

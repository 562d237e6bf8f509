"""Command `ripwrap files-matching`: list the files that match several patterns."""

from functools import partial
from typing import Annotated, Unpack

from cyclopts import App

from ripwrap import sync
from ripwrap.cli.declarations import Parameter
from ripwrap.cli.flags import GROUPS, HERE, RunOptions, flags
from ripwrap.cli.help import epilogue
from ripwrap.cli.lines import PathPrinter
from ripwrap.cli.output import print_results
from ripwrap.cli.places import FILES, PlaceFlags
from ripwrap.cli.search_options import LineFlags, Null
from ripwrap.options import SearchOptions

files_matching: App = App(
    name="files-matching",
    usage="ripwrap files-matching [OPTIONS] [PATH]...",
    help_epilogue=epilogue(
        "ripwrap files-matching --all-of TODO --all-of 'def ' src",
        "ripwrap files-matching --any-of import --none-of __future__ -t py",
    ),
)


def _patterns(help: str) -> Parameter:  # noqa: A002 - cyclopts' name
    return Parameter(
        group=GROUPS["pattern"], negative=(), metavar="PATTERN", show_default=False, help=f"{help}; may be repeated"
    )


@files_matching.default
@flags(SearchOptions, without=("context", "before_context", "after_context", "passthru", "replace", "sort", "sortr"))
def run_files_matching(
    *paths: str,
    all_of: Annotated[tuple[str, ...], _patterns("Pattern that must match in a file")] = (),
    any_of: Annotated[tuple[str, ...], _patterns("Patterns of which one must match")] = (),
    none_of: Annotated[tuple[str, ...], _patterns("Pattern that must not match")] = (),
    null: Null = False,
    place: PlaceFlags = FILES,
    run: RunOptions = HERE,
    **options: Unpack[SearchOptions],
) -> int:
    """List the files that match several patterns, on any lines.

    Parameters
    ----------
    paths
        Files and directories to search [default: all]
    """
    found = partial(
        sync.files_matching, all_of=all_of, any_of=any_of, none_of=none_of, paths=paths, **place.options(), **options
    )
    return print_results(found, PathPrinter(LineFlags(null=null, color="never")).path, run)

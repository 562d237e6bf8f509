"""Command `ripwrap files-matching`: list the files that match several patterns."""

from functools import partial
from typing import Annotated, Unpack

from ripwrap import sync
from ripwrap.cli.command import GROUPS, Command, Option, Texts
from ripwrap.cli.flags import HERE, AllPaths, RunOptions
from ripwrap.cli.lines import PathPrinter
from ripwrap.cli.output import print_results
from ripwrap.cli.places import FILES, PlaceFlags
from ripwrap.cli.search_options import LineFlags, Null
from ripwrap.options import SearchOptions


def run_files_matching(
    *paths: AllPaths,
    all_of: Annotated[
        Texts, Option("Pattern that must match in a file; may be repeated", GROUPS["pattern"], "PATTERN")
    ] = (),
    any_of: Annotated[
        Texts, Option("Patterns of which one must match; may be repeated", GROUPS["pattern"], "PATTERN")
    ] = (),
    none_of: Annotated[
        Texts, Option("Pattern that must not match; may be repeated", GROUPS["pattern"], "PATTERN")
    ] = (),
    null: Null = False,
    place: PlaceFlags = FILES,
    run: RunOptions = HERE,
    **options: Unpack[SearchOptions],
) -> int:
    """List the files that match several patterns, on any lines."""
    found = partial(
        sync.files_matching, all_of=all_of, any_of=any_of, none_of=none_of, paths=paths, **place.options(), **options
    )
    return print_results(found, PathPrinter(LineFlags(null=null, color="never")).path, run)


files_matching: Command = Command(
    run_files_matching,
    "[PATH]...",
    examples=(
        "ripwrap files-matching --all-of TODO --all-of 'def ' src",
        "ripwrap files-matching --any-of import --none-of __future__ -t py",
    ),
    without=("context", "before_context", "after_context", "passthru", "replace", "sort", "sortr"),
)

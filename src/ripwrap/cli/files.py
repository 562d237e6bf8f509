"""Commands that list: `files`, `tree`, `types`, `files-matching` and `why`."""

import os
from dataclasses import replace
from typing import Annotated, Any, Unpack

from ripwrap import sync
from ripwrap._text import shown
from ripwrap.cli.command import GROUPS, SETUP_EXIT_CODES, Command, Option, Texts
from ripwrap.cli.flags import (
    AllPaths,
    Color,
    Json,
    Limit,
    LineFlags,
    Null,
    PlaceFlags,
    Quiet,
    RgPath,
    RunOptions,
    StreamOptions,
)
from ripwrap.cli.lines import PathPrinter
from ripwrap.cli.output import print_entry, print_json, print_nothing, print_reason, print_results, print_types
from ripwrap.cli.terminal import FOUND, NOTHING, glob_hint
from ripwrap.options import FileOptions, SearchOptions

Exclude = Annotated[Texts, Option("Leave out files and directories of this name", GROUPS["files"], "NAME")]


@Command(
    "[PATH]...",
    examples=("ripwrap files -t py src", "ripwrap files --no-hidden --max-filesize 1M --sort modified"),
)
def files(
    *paths: Annotated[str, Option("Files and directories to list [default: all]")],
    limit: Limit = None,
    null: Null = False,
    color: Color = "auto",
    quiet: Quiet = False,
    place: PlaceFlags,
    run: StreamOptions,
    **options: Unpack[FileOptions],
) -> int:
    """List the files that a search would read."""
    printer, limit = PathPrinter(LineFlags(null=null, color=color)), 1 if quiet else limit
    return print_results(
        lambda: sync.files(cwd=run.cwd, paths=paths, limit=limit, rg=run.rg, **place.options(), **options),
        print_nothing if quiet else printer.path,
        replace(run, json=run.json and not quiet),
    )


@Command(
    "[PATH]",
    examples=(
        "ripwrap tree",
        "ripwrap tree src -d 1",
        "ripwrap tree src --limit 200 --max-depth 3",
        "ripwrap tree --rev v1.2",
        "ripwrap tree --inside zip",
    ),
)
def tree(
    path: Annotated[str, Option("Directory to show [default: --cwd]")] = "",
    /,
    *,
    limit: Limit = 50,
    exclude: Exclude = (".opencode",),
    place: PlaceFlags,
    run: RunOptions,
    **options: Unpack[FileOptions],
) -> int:
    """Show files as a tree, shortened to --limit entries."""
    root = os.path.join(run.cwd, path) if path else run.cwd
    given: Any = place.options()
    if path and place.on is None and not os.path.isdir(root):
        if place.rev is None:
            raise _no_directory(path)
        from ripwrap.places.where import Items  # late: few trees need it

        below = os.path.relpath(os.path.join(run.cwd, path), run.cwd)
        above = f"{below.replace(os.sep, '/')}/"
        names = list(sync.files(cwd=run.cwd, paths=path, rg=run.rg, **place.options()))
        if not all(name.startswith(above) for name in names):
            raise _no_directory(path)
        root, given = run.cwd, {"where": Items([(name.removeprefix(above), b"") for name in names])}
    return print_results(
        lambda: sync.tree(cwd=root, limit=limit, exclude=exclude, rg=run.rg, **given, **options), print_entry, run
    )


def _no_directory(path: str) -> ValueError:
    advice = "; name its directory" if os.path.isfile(path) else "; check PATH or --cwd"
    return ValueError(f"PATH must be a directory, got {shown(path)}{glob_hint(path) or advice}")


@Command(examples=("ripwrap types", "ripwrap types --json"), exit_codes=SETUP_EXIT_CODES)
def types(*, json: Json = False, rg: RgPath = None) -> int:
    """List the file types that --type accepts, with their globs."""
    print_types(sync.file_types(rg=rg), as_json=json)
    return FOUND


EXIT_CODES = """\
Exit codes:
  0  a search reads the file
  1  a search does not read the file; the reason is printed
  2  an error; stderr says which"""


@Command(
    "FILE [PATH]...",
    examples=("ripwrap why build/out.py", "ripwrap why src/till.py -t md --no-hidden  # with the options of a search"),
    exit_codes=EXIT_CODES,
)
def why(
    file: Annotated[str, Option("File or directory to explain")],
    /,
    *paths: Annotated[str, Option("Files and directories of the search [default: all]")],
    run: RunOptions,
    **options: Unpack[SearchOptions],
) -> int:
    """Show why a search reads a file, or does not."""
    reason = sync.why(file, cwd=run.cwd, paths=paths, rg=run.rg, **options)
    print_json(reason) if run.json else print_reason(reason)
    return FOUND if reason else NOTHING


@Command(
    "[PATH]...",
    examples=(
        "ripwrap files-matching --all-of TODO --all-of 'def ' src",
        "ripwrap files-matching --any-of import --none-of __future__ -t py",
    ),
    without=("context", "before_context", "after_context", "passthru", "replace", "sort", "sortr"),
)
def files_matching(
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
    place: PlaceFlags,
    run: RunOptions,
    **options: Unpack[SearchOptions],
) -> int:
    """List the files that match several patterns, on any lines."""
    return print_results(
        lambda: sync.files_matching(
            all_of=all_of,
            any_of=any_of,
            none_of=none_of,
            cwd=run.cwd,
            paths=paths,
            rg=run.rg,
            **place.options(),
            **options,
        ),
        PathPrinter(LineFlags(null=null, color="never")).path,
        run,
    )

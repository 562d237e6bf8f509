"""Command `ripwrap watch`: search again each time files change, and print the matches that came and went."""

import contextlib
import sys
from collections.abc import Sequence
from typing import Unpack

from ripwrap import sync
from ripwrap.cli.command import Command
from ripwrap.cli.flags import AllPaths, LineFlags, Pattern, RunOptions
from ripwrap.cli.lines import LinePrinter, write
from ripwrap.cli.output import print_json, printed_warnings
from ripwrap.cli.terminal import FOUND
from ripwrap.models import Match
from ripwrap.options import SearchOptions


@Command(
    "PATTERN [PATH]...",
    examples=("ripwrap watch TODO src", "ripwrap watch TODO --jsonl"),
    without=("context", "before_context", "after_context", "passthru"),
)
def watch(
    pattern: Pattern, /, *paths: AllPaths, lines: LineFlags, run: RunOptions, **options: Unpack[SearchOptions]
) -> int:
    """Search again each time files change, until Ctrl-C.

    Lines with + are matches that were added, lines with - were removed.
    """
    given = lines.options(options)
    show = LinePrinter(lines, given, run.cwd)
    changes = sync.watch(pattern, cwd=run.cwd, paths=paths, rg=run.rg, **given)
    with printed_warnings(), contextlib.closing(changes):
        for change in changes:
            if run.json:
                print_json(change)
            else:
                _print_matches(b"-", change.removed, show)
                _print_matches(b"+", change.added, show)
            sys.stdout.flush()
    return FOUND


def _print_matches(mark: bytes, matches: Sequence[Match], show: LinePrinter) -> None:
    for match in matches:
        write(mark)
        show(match)

"""Commands `ripwrap read` and `ripwrap expand`: read lines of a file, or the code around a line."""

import errno
import os
from collections import deque
from typing import Annotated

from cyclopts import App, Parameter

from ripwrap import sync
from ripwrap._operations.expand import EXPAND_LINES, ExpandTo
from ripwrap._text import shown
from ripwrap.cli.errors import FOUND
from ripwrap.cli.flags import Cwd, Json, RgPath, check_limit
from ripwrap.cli.help import SETUP_EXIT_CODES, epilogue
from ripwrap.cli.lines import print_line
from ripwrap.cli.output import print_json
from ripwrap.errors import HintedText

read: App = App(
    name="read",
    usage="ripwrap read [OPTIONS] FILE",
    help_epilogue=epilogue(
        "ripwrap read src/shop/cart.py --lines 10-40,80-95",
        "ripwrap read README.md --head 20 --tail 5",
        after=SETUP_EXIT_CODES,
    ),
)


@read.default
def run_read(
    file: str,
    /,
    *,
    lines: Annotated[str, Parameter(metavar="RANGES", show_default=False)] = "",
    head: Annotated[int, Parameter(metavar="NUM", show_default=False, validator=check_limit)] = 0,
    tail: Annotated[int, Parameter(metavar="NUM", show_default=False, validator=check_limit)] = 0,
    json: Json = False,
    cwd: Cwd = ".",
) -> int:
    """Read lines of a file, with their numbers; of a long file, its outline.

    Parameters
    ----------
    file
        File to read
    lines
        Only these lines, e.g. 10-40,80-95
    head
        Only the first NUM lines
    tail
        Only the last NUM lines
    """
    path = os.path.join(cwd, file)
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, HintedText("no such file; check FILE or --cwd"), file)
    inside = os.path.realpath(path).startswith(os.path.join(os.path.realpath(cwd), ""))
    root, name = (cwd, file) if inside else os.path.split(os.path.abspath(path))
    with sync.Workspace(root, deny=(), redact=False) as workspace:
        found = workspace.read_file_result(name, ranges=lines, head=head, tail=tail)
        if json:
            print_json(found)
        else:
            for row in workspace.text(found).split("\n"):
                print_line(row)
    return FOUND


expand: App = App(
    name="expand",
    usage="ripwrap expand [OPTIONS] FILE:LINE",
    help_epilogue=epilogue(
        "ripwrap expand src/shop/cart.py:12", "ripwrap expand src/shop/cart.py:12 --to block", after=SETUP_EXIT_CODES
    ),
)


@expand.default
def run_expand(
    place: Annotated[str, Parameter(name="FILE:LINE")],
    /,
    *,
    to: Annotated[ExpandTo | None, Parameter(metavar="KIND", show_choices=False)] = None,
    lines: Annotated[int | None, Parameter(metavar="NUM", validator=check_limit)] = None,
    max_lines: Annotated[int, Parameter(metavar="NUM", validator=check_limit)] = EXPAND_LINES,
    json: Json = False,
    cwd: Cwd = ".",
    rg: RgPath = None,
) -> int:
    """Print the definition, block or paragraph around a line.

    Parameters
    ----------
    place
        File and number of a line, as a search prints them
    to
        Print the definition or the block [default: definition]
    lines
        Print NUM lines before and after the line, instead
    max_lines
        Maximum number of lines
    """
    file, _, digits = place.rpartition(":")
    if not file or not digits.isdecimal() or not int(digits):
        raise ValueError(f"FILE:LINE must be a file and the number of a line, as in a.py:12, got {shown(place)}")
    number = int(digits)
    last = deque(sync.search("", cwd=cwd, paths=[file], limit=number, rg=rg), maxlen=1)
    if not last or last[0].line_number != number:
        raise ValueError(f"{shown(file)} has no line {number}")
    found = sync.expand(last[0], to=to, lines=lines, max_lines=max_lines, cwd=cwd)
    if json:
        print_json(found)
    else:
        for row in str(found).split("\n"):
            print_line(row)
    return FOUND

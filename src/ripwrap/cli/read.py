"""Commands `ripwrap read` and `ripwrap expand`: read lines of a file, or the code around a line."""

import errno
import os
from collections import deque
from typing import Annotated

from ripwrap import sync
from ripwrap._operations.expand import EXPAND_LINES, ExpandTo
from ripwrap._text import shown
from ripwrap.cli.command import SETUP_EXIT_CODES, Command, Option
from ripwrap.cli.errors import FOUND
from ripwrap.cli.flags import Cwd, Json, RgPath
from ripwrap.cli.lines import print_line
from ripwrap.cli.output import print_json
from ripwrap.errors import HintedText


def run_read(
    file: Annotated[str, Option("File to read")],
    /,
    *,
    lines: Annotated[str, Option("Only these lines, e.g. 10-40,80-95", value="RANGES")] = "",
    head: Annotated[int, Option("Only the first NUM lines", value="NUM")] = 0,
    tail: Annotated[int, Option("Only the last NUM lines", value="NUM")] = 0,
    json: Json = False,
    cwd: Cwd = ".",
) -> int:
    """Read lines of a file, with their numbers; of a long file, its outline."""
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


def run_expand(
    place: Annotated[str, Option("File and number of a line, as a search prints them", names=("FILE:LINE",))],
    /,
    *,
    to: Annotated[
        ExpandTo | None, Option("Print the definition or the block [default: definition]", value="KIND")
    ] = None,
    lines: Annotated[int | None, Option("Print NUM lines before and after the line, instead", value="NUM")] = None,
    max_lines: Annotated[int, Option("Maximum number of lines", value="NUM")] = EXPAND_LINES,
    json: Json = False,
    cwd: Cwd = ".",
    rg: RgPath = None,
) -> int:
    """Print the definition, block or paragraph around a line."""
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


read: Command = Command(
    run_read,
    "FILE",
    examples=("ripwrap read src/shop/cart.py --lines 10-40,80-95", "ripwrap read README.md --head 20 --tail 5"),
    exit_codes=SETUP_EXIT_CODES,
)


expand: Command = Command(
    run_expand,
    "FILE:LINE",
    examples=("ripwrap expand src/shop/cart.py:12", "ripwrap expand src/shop/cart.py:12 --to block"),
    exit_codes=SETUP_EXIT_CODES,
)

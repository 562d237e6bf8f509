"""Commands about code: `read`, `expand`, `outline`, `refs`, `rank` and `code`."""

import errno
import os
from collections import deque
from typing import Annotated, Unpack

from ripwrap import sync
from ripwrap._code.outline import outline_rows
from ripwrap._operations.expand import EXPAND_LINES, ExpandTo
from ripwrap._text import shown
from ripwrap.cli.command import GROUPS, SETUP_EXIT_CODES, Command, Option
from ripwrap.cli.flags import AllPaths, Cwd, Json, Limit, LineFlags, PlaceFlags, ResultLimit, RgPath, RunOptions
from ripwrap.cli.lines import LinePrinter, print_line
from ripwrap.cli.output import print_all, print_chunk, print_json, print_reference, print_results
from ripwrap.cli.replace import SHOW, WriteOptions, show_or_write
from ripwrap.cli.terminal import FAILED, FOUND, NOTHING, complain
from ripwrap.errors import HintedText
from ripwrap.options import VISIBLE_FILES, FileOptions


@Command(
    "FILE",
    examples=("ripwrap read src/shop/cart.py --lines 10-40,80-95", "ripwrap read README.md --head 20 --tail 5"),
    exit_codes=SETUP_EXIT_CODES,
)
def read(
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


@Command(
    "FILE:LINE",
    examples=("ripwrap expand src/shop/cart.py:12", "ripwrap expand src/shop/cart.py:12 --to block"),
    exit_codes=SETUP_EXIT_CODES,
)
def expand(
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


@Command(
    "FILE",
    examples=("ripwrap outline src/shop/cart.py", "ripwrap outline README.md --json"),
)
def outline(file: Annotated[str, Option("File to read")], /, *, json: Json = False, cwd: Cwd = ".") -> int:
    """List the definitions or headings of a file, with their lines."""
    sections = sync.outline(file, cwd=cwd)
    if json:
        return print_all(sections, print_json)
    for row in outline_rows(sections):
        print_line(row)
    return FOUND if sections else NOTHING


@Command(
    "QUERY [PATH]...",
    examples=("ripwrap rank 'how are cookies stored'", "ripwrap rank CookieJar src --limit 3"),
    defaults=VISIBLE_FILES,
)
def rank(
    query: Annotated[str, Option("Words or a name, e.g. 'how are cookies stored', CookieJar")],
    /,
    *paths: AllPaths,
    limit: ResultLimit = 10,
    run: RunOptions,
    **options: Unpack[FileOptions],
) -> int:
    """Find code by words or a name, best first."""
    return print_results(
        lambda: sync.rank(query, cwd=run.cwd, paths=paths, limit=limit, rg=run.rg, **options), print_chunk, run
    )


@Command(
    "NAME [PATH]...",
    examples=("ripwrap refs total", "ripwrap refs Cart.total src -t py", "ripwrap refs total --rev v1.2"),
    defaults=VISIBLE_FILES,
)
def refs(
    name: Annotated[str, Option("Name, e.g. total, or with its class or module, Cart.total")],
    /,
    *paths: AllPaths,
    depth: Annotated[int, Option("Also find callers of callers, up to this depth, 1 to 5", value="N")] = 1,
    limit: Limit = 1000,
    place: PlaceFlags,
    run: RunOptions,
    **options: Unpack[FileOptions],
) -> int:
    """Find the definitions, imports, calls and mentions of a name."""
    found = sync.references(
        name, cwd=run.cwd, paths=paths, depth=depth, limit=limit, timeout=None, rg=run.rg, **place.options(), **options
    )
    for one in (*found.definitions, *found.uses, *found.callers):
        print_json(one) if run.json else print_reference(one)
    failed = [error for error in found.errors if not error.harmless]
    if failed or found.truncated:
        complain(found.message)
    if failed:
        return FAILED
    return FOUND if found.definitions or found.uses else NOTHING


@Command(
    "PATTERN [PATH]...",
    examples=(
        "ripwrap code --lang python 'print($$$ARGS)' src",
        "ripwrap code --lang python 'print($A)' --fix 'log($A)'",
        "ripwrap code --lang python 'print($A)' --fix 'log($A)' --apply",
    ),
    defaults=VISIBLE_FILES,
    without=("type", "type_not", "type_add", "type_clear"),
)
def code(
    pattern: Annotated[str, Option("Code, with $NAME for a node and $$$NAME for several")],
    /,
    *paths: AllPaths,
    lang: Annotated[str, Option("Language, e.g. python, rust or tsx", GROUPS["pattern"], "NAME")],
    fix: Annotated[
        str | None, Option("Show a diff with this code in place of each match", GROUPS["pattern"], "CODE")
    ] = None,
    limit: Limit = None,
    write: WriteOptions = SHOW,
    lines: LineFlags,
    run: RunOptions,
    **options: Unpack[FileOptions],
) -> int:
    """Search code by its syntax, with a pattern of ast-grep, or replace it."""
    write.check()
    if fix is not None:
        plan = sync.replace_code(pattern, fix, lang=lang, cwd=run.cwd, paths=paths, rg=run.rg, **options)
        return show_or_write(plan, write, lines.color, as_json=run.json)
    if write != SHOW:
        raise ValueError("--apply, --interactive, --dry-run and --break-hard-links need --fix; add --fix")
    show = LinePrinter(lines, {"multiline": True}, run.cwd)
    return print_results(
        lambda: sync.search_code(pattern, lang=lang, cwd=run.cwd, paths=paths, limit=limit, rg=run.rg, **options),
        show.alone,
        run,
    )

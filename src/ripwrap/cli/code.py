"""Command `ripwrap code`: search code by its syntax, and replace it."""

from functools import partial
from typing import Annotated, Unpack

from ripwrap import sync
from ripwrap.cli.command import GROUPS, Command, Option
from ripwrap.cli.flags import HERE, AllPaths, Limit, RunOptions
from ripwrap.cli.lines import LinePrinter
from ripwrap.cli.output import print_results
from ripwrap.cli.replace import SHOW, WriteOptions, show_or_write
from ripwrap.cli.search_options import PLAIN, LineFlags
from ripwrap.options import VISIBLE_FILES, FileOptions


def run_code(
    pattern: Annotated[str, Option("Code, with $NAME for a node and $$$NAME for several")],
    /,
    *paths: AllPaths,
    lang: Annotated[str, Option("Language, e.g. python, rust or tsx", GROUPS["pattern"], "NAME")],
    fix: Annotated[
        str | None, Option("Show a diff with this code in place of each match", GROUPS["pattern"], "CODE")
    ] = None,
    limit: Limit = None,
    write: WriteOptions = SHOW,
    lines: LineFlags = PLAIN,
    run: RunOptions = HERE,
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
    search = partial(sync.search_code, pattern, lang=lang, paths=paths, limit=limit, **options)
    return print_results(search, show.alone, run)


code: Command = Command(
    run_code,
    "PATTERN [PATH]...",
    examples=(
        "ripwrap code --lang python 'print($$$ARGS)' src",
        "ripwrap code --lang python 'print($A)' --fix 'log($A)'",
        "ripwrap code --lang python 'print($A)' --fix 'log($A)' --apply",
    ),
    defaults=VISIBLE_FILES,
    without=("type", "type_not", "type_add", "type_clear"),
)

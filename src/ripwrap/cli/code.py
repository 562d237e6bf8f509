"""Command `ripwrap code`: search code by its syntax, and replace it."""

from functools import partial
from typing import Annotated, Unpack

from cyclopts import App

from ripwrap import sync
from ripwrap.cli.declarations import Parameter
from ripwrap.cli.flags import GROUPS, HERE, Limit, RunOptions, flags
from ripwrap.cli.help import epilogue
from ripwrap.cli.lines import LinePrinter
from ripwrap.cli.output import print_results
from ripwrap.cli.replace import SHOW, WriteOptions, show_or_write
from ripwrap.cli.search_options import PLAIN, LineFlags
from ripwrap.options import VISIBLE_FILES, FileOptions

code: App = App(
    name="code",
    usage="ripwrap code [OPTIONS] PATTERN [PATH]...",
    help_epilogue=epilogue(
        "ripwrap code --lang python 'print($$$ARGS)' src",
        "ripwrap code --lang python 'print($A)' --fix 'log($A)'",
        "ripwrap code --lang python 'print($A)' --fix 'log($A)' --apply",
    ),
)


def _pattern_flag(help: str, metavar: str) -> Parameter:  # noqa: A002 - cyclopts' name
    return Parameter(group=GROUPS["pattern"], metavar=metavar, help=help)


@code.default
@flags(FileOptions, VISIBLE_FILES, without=("type", "type_not", "type_add", "type_clear"))
def run_code(
    pattern: str,
    /,
    *paths: str,
    lang: Annotated[str, _pattern_flag("Language, e.g. python, rust or tsx", "NAME")],
    fix: Annotated[str | None, _pattern_flag("Show a diff with this code in place of each match", "CODE")] = None,
    limit: Limit = None,
    write: WriteOptions = SHOW,
    lines: LineFlags = PLAIN,
    run: RunOptions = HERE,
    **options: Unpack[FileOptions],
) -> int:
    """Search code by its syntax, with a pattern of ast-grep, or replace it.

    Parameters
    ----------
    pattern
        Code, with $NAME for a node and $$$NAME for several
    paths
        Files and directories to search [default: all]
    """
    write.check()
    if fix is not None:
        plan = sync.replace_code(pattern, fix, lang=lang, cwd=run.cwd, paths=paths, rg=run.rg, **options)
        return show_or_write(plan, write, lines.color, as_json=run.json)
    if write != SHOW:
        raise ValueError("--apply, --interactive, --dry-run and --break-hard-links need --fix; add --fix")
    show = LinePrinter(lines, {"multiline": True}, run.cwd)
    search = partial(sync.search_code, pattern, lang=lang, paths=paths, limit=limit, **options)
    return print_results(search, show.alone, run)

"""Command `ripwrap why`: show why a search reads a file, or does not."""

from typing import Annotated, Unpack

from ripwrap import sync
from ripwrap.cli.command import Command, Option
from ripwrap.cli.errors import FOUND, NOTHING
from ripwrap.cli.flags import HERE, RunOptions
from ripwrap.cli.output import print_json, print_reason
from ripwrap.options import SearchOptions

EXIT_CODES = """\
Exit codes:
  0  a search reads the file
  1  a search does not read the file; the reason is printed
  2  an error; stderr says which"""


def run_why(
    file: Annotated[str, Option("File or directory to explain")],
    /,
    *paths: Annotated[str, Option("Files and directories of the search [default: all]")],
    run: RunOptions = HERE,
    **options: Unpack[SearchOptions],
) -> int:
    """Show why a search reads a file, or does not."""
    reason = sync.why(file, cwd=run.cwd, paths=paths, rg=run.rg, **options)
    print_json(reason) if run.json else print_reason(reason)
    return FOUND if reason else NOTHING


why: Command = Command(
    run_why,
    "FILE [PATH]...",
    examples=("ripwrap why build/out.py", "ripwrap why src/till.py -t md --no-hidden  # with the options of a search"),
    exit_codes=EXIT_CODES,
)

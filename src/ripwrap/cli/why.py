"""Command `ripwrap why`: show why a search reads a file, or does not."""

from typing import Unpack

from cyclopts import App

from ripwrap import sync
from ripwrap.cli.errors import FOUND, NOTHING
from ripwrap.cli.flags import HERE, RunOptions, flags
from ripwrap.cli.help import epilogue
from ripwrap.cli.output import print_json, print_reason
from ripwrap.options import SearchOptions

EXIT_CODES = """\
Exit codes:
  0  a search reads the file
  1  a search does not read the file; the reason is printed
  2  an error; stderr says which"""

why: App = App(
    name="why",
    usage="ripwrap why [OPTIONS] FILE [PATH]...",
    help_epilogue=epilogue(
        "ripwrap why build/out.py",
        "ripwrap why src/till.py -t md --no-hidden  # with the options of a search",
        after=EXIT_CODES,
    ),
)


@why.default
@flags(SearchOptions)
def run_why(file: str, /, *paths: str, run: RunOptions = HERE, **options: Unpack[SearchOptions]) -> int:
    """Show why a search reads a file, or does not.

    Parameters
    ----------
    file
        File or directory to explain
    paths
        Files and directories of the search [default: all]
    """
    reason = sync.why(file, cwd=run.cwd, paths=paths, rg=run.rg, **options)
    print_json(reason) if run.json else print_reason(reason)
    return FOUND if reason else NOTHING

"""Command `ripwrap outline`: list the definitions of a file."""

from cyclopts import App

from ripwrap import sync
from ripwrap.cli.flags import Cwd, Json
from ripwrap.cli.help import epilogue

outline: App = App(
    name="outline",
    usage="ripwrap outline [OPTIONS] FILE",
    help_epilogue=epilogue("ripwrap outline src/shop/cart.py", "ripwrap outline README.md --json"),
)


@outline.default
def run_outline(file: str, /, *, json: Json = False, cwd: Cwd = ".") -> int:
    """List the definitions or headings of a file, with their lines.

    Parameters
    ----------
    file
        File to read
    """
    from ripwrap.cli.output import print_all, print_json, print_sections  # late: it imports Pydantic

    sections = sync.outline(file, cwd=cwd)
    return print_all(sections, print_json) if json else print_sections(sections)

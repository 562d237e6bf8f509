"""Command `ripwrap outline`: list the definitions of a file."""

from typing import Annotated

from ripwrap import sync
from ripwrap.cli.command import Command, Option
from ripwrap.cli.flags import Cwd, Json


def run_outline(file: Annotated[str, Option("File to read")], /, *, json: Json = False, cwd: Cwd = ".") -> int:
    """List the definitions or headings of a file, with their lines."""
    from ripwrap.cli.output import print_all, print_json, print_sections  # late: it imports Pydantic

    sections = sync.outline(file, cwd=cwd)
    return print_all(sections, print_json) if json else print_sections(sections)


outline: Command = Command(
    run_outline, "FILE", examples=("ripwrap outline src/shop/cart.py", "ripwrap outline README.md --json")
)

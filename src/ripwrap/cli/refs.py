"""Command `ripwrap refs`: find the definitions and uses of a name."""

from typing import Annotated, Unpack

from ripwrap import sync
from ripwrap.cli.command import Command, Option
from ripwrap.cli.errors import FAILED, FOUND, NOTHING, complain
from ripwrap.cli.flags import HERE, AllPaths, Limit, RunOptions
from ripwrap.cli.places import FILES, PlaceFlags
from ripwrap.options import VISIBLE_FILES, FileOptions


def run_refs(
    name: Annotated[str, Option("Name, e.g. total, or with its class or module, Cart.total")],
    /,
    *paths: AllPaths,
    limit: Limit = 1000,
    place: PlaceFlags = FILES,
    run: RunOptions = HERE,
    **options: Unpack[FileOptions],
) -> int:
    """Find the definitions, imports, calls and mentions of a name."""
    from ripwrap.cli.output import print_json, print_reference  # late: it imports Pydantic

    found = sync.references(
        name, cwd=run.cwd, paths=paths, limit=limit, timeout=None, rg=run.rg, **place.options(), **options
    )
    for one in (*found.definitions, *found.uses):
        print_json(one) if run.json else print_reference(one)
    failed = [error for error in found.errors if not error.harmless]
    if failed or found.truncated:
        complain(found.message)
    if failed:
        return FAILED
    return FOUND if found.definitions or found.uses else NOTHING


refs: Command = Command(
    run_refs,
    "NAME [PATH]...",
    examples=("ripwrap refs total", "ripwrap refs Cart.total src -t py", "ripwrap refs total --rev v1.2"),
    defaults=VISIBLE_FILES,
)

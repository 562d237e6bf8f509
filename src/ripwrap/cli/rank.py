"""Command `ripwrap rank`: find code by words or a name."""

from functools import partial
from typing import Annotated, Unpack

from ripwrap import sync
from ripwrap.cli.command import Command, Option
from ripwrap.cli.flags import HERE, AllPaths, ResultLimit, RunOptions
from ripwrap.options import VISIBLE_FILES, FileOptions


def run_rank(
    query: Annotated[str, Option("Words or a name, e.g. 'how are cookies stored', CookieJar")],
    /,
    *paths: AllPaths,
    limit: ResultLimit = 10,
    run: RunOptions = HERE,
    **options: Unpack[FileOptions],
) -> int:
    """Find code by words or a name, best first."""
    from ripwrap.cli.output import print_chunk, print_results  # late: it imports Pydantic

    ranked = partial(sync.rank, query, paths=paths, limit=limit, **options)
    return print_results(ranked, print_chunk, run)


rank: Command = Command(
    run_rank,
    "QUERY [PATH]...",
    examples=("ripwrap rank 'how are cookies stored'", "ripwrap rank CookieJar src --limit 3"),
    defaults=VISIBLE_FILES,
)

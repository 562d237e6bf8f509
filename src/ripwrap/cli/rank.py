"""Command `ripwrap rank`: find code by words or a name."""

from functools import partial
from typing import Unpack

from cyclopts import App

from ripwrap import sync
from ripwrap.cli.flags import HERE, ResultLimit, RunOptions, flags
from ripwrap.cli.help import epilogue
from ripwrap.options import VISIBLE_FILES, FileOptions

rank: App = App(
    name="rank",
    usage="ripwrap rank [OPTIONS] QUERY [PATH]...",
    help_epilogue=epilogue("ripwrap rank 'how are cookies stored'", "ripwrap rank CookieJar src --limit 3"),
)


@rank.default
@flags(FileOptions, VISIBLE_FILES)
def run_rank(
    query: str,
    /,
    *paths: str,
    limit: ResultLimit = 10,
    run: RunOptions = HERE,
    **options: Unpack[FileOptions],
) -> int:
    """Find code by words or a name, best first.

    Parameters
    ----------
    query
        Words or a name, e.g. 'how are cookies stored', CookieJar
    paths
        Files and directories to search [default: all]
    """
    from ripwrap.cli.output import print_chunk, print_results  # late: it imports Pydantic

    ranked = partial(sync.rank, query, paths=paths, limit=limit, **options)
    return print_results(ranked, print_chunk, run)

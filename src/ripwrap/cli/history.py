"""Search all versions of files, for `ripwrap search --history`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ripwrap import sync
from ripwrap.cli.lines import LinePrinter
from ripwrap.cli.output import print_all, print_json
from ripwrap.cli.search_options import TerminalSearch
from ripwrap.models import HistoryMatch


def search_history(search: TerminalSearch, where: Mapping[str, Any]) -> int:
    """Print the matches in the history `where`, each with the commit that introduced it, and return the exit code."""
    run = search.run

    def found() -> Iterator[HistoryMatch]:
        options: dict[str, Any] = {**search.options, **where}
        matches = sync.search_history(
            search.pattern, cwd=run.cwd, paths=search.paths, limit=search.limit, rg=run.rg, **options
        )
        for match in matches:
            named = f"{match.first.id[:12]}:{match.path}"
            yield match if run.json else match.model_copy(update={"path": named})

    show = LinePrinter(replace(search.lines, heading=False, no_heading=True), search.options, run.cwd)
    return print_all(found(), print_json if run.json else show, streams=run)

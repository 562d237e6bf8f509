"""Search content that is not in files on the disk: standard input, a revision of git, or the history of git."""

import sys
from collections.abc import Callable, Iterator
from typing import Any, cast

from ripwrap import sync
from ripwrap._operations.search import messages_request
from ripwrap._operations.streaming import run_stream_blocking
from ripwrap._operations.streams import messages_in_request
from ripwrap._text import plural
from ripwrap.cli.output import Plain, match_printer, print_all, print_json
from ripwrap.cli.search_options import GitOptions, TerminalSearch
from ripwrap.models import HistoryMatch
from ripwrap.places.where import PlacedSearchOptions

MAX_STDIN_BYTES = 1 << 30
"""Maximum number of bytes of standard input, which is read into memory."""


def search_source(search: TerminalSearch, git: GitOptions) -> int:
    """Search standard input, a revision or a history, print the matches, and return the exit code."""
    pattern, paths, run = search.pattern, search.paths, search.run

    def found() -> Iterator[object]:
        if git.rev is not None:
            placed = cast("PlacedSearchOptions", {**search.options, "rev": git.rev, "repositories": git.repository})
            request = messages_request(pattern, run.cwd, paths, search.limit, placed)
        else:
            request = messages_in_request(pattern, [("<stdin>", _read_stdin())], search.limit, search.options)
        yield from run_stream_blocking(request, run.rg, None)

    def in_history() -> Iterator[HistoryMatch]:
        matches = sync.search_history(
            pattern,
            cwd=run.cwd,
            paths=paths,
            rev="HEAD" if git.rev is None else git.rev,
            since=git.since,
            repositories=git.repository,
            limit=search.limit,
            rg=run.rg,
            **search.options,
        )
        for match in matches:
            named = f"{match.first.id[:12]}:{match.path}"
            yield match if run.json else match.model_copy(update={"path": named})

    show: Callable[[Any], None]
    if run.json:
        show = print_json
    elif git.history:
        show = Plain(colored=search.color == "always", max_columns=search.max_columns)
    else:
        show = match_printer(search.color, search.max_columns)
    return print_all(in_history() if git.history else found(), show)


def _read_stdin() -> bytes:
    """Return the content of standard input.

    Raises:
        ValueError: Standard input has more than `MAX_STDIN_BYTES` bytes.
    """
    content = bytearray()
    while chunk := sys.stdin.buffer.read(1 << 20):
        content += chunk
        if len(content) > MAX_STDIN_BYTES:
            raise ValueError(
                f"standard input has more than {plural(MAX_STDIN_BYTES, 'byte')}; save it in a file, and search that"
            )
    return bytes(content)

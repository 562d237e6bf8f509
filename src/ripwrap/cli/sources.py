"""Search content that is not in files on the disk: standard input, a revision of git, or the history of git."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from ripwrap import sync
from ripwrap._operations.search import messages_request
from ripwrap._operations.streaming import run_stream_blocking
from ripwrap._operations.streams import messages_in_request
from ripwrap._text import plural
from ripwrap.cli.flags import Color
from ripwrap.cli.output import Plain, match_printer, print_all, print_json
from ripwrap.cli.search import GitOptions
from ripwrap.models import HistoryMatch, Match
from ripwrap.options import SearchOptions
from ripwrap.places.where import PlacedSearchOptions

MAX_STDIN_BYTES = 1 << 30
"""Maximum number of bytes of standard input, which is read into memory."""


def search_source(
    pattern: str,
    paths: Sequence[str],
    git: GitOptions,
    cwd: str,
    rg: str | None,
    *,
    as_json: bool,
    color: Color,
    max_columns: int,
    limit: int | None,
    options: SearchOptions,
) -> int:
    """Search standard input, a revision or a history, print the matches, and return the exit code."""
    show: Callable[[Any], None] = print_json if as_json else match_printer(color, max_columns)

    def found() -> Iterator[object]:
        if git.rev is not None:
            placed = cast("PlacedSearchOptions", {**options, "rev": git.rev, "repositories": git.repository})
            request = messages_request(pattern, cwd, paths, limit, placed)
        else:
            request = messages_in_request(pattern, [("<stdin>", _read_stdin())], limit, options)
        yield from run_stream_blocking(request, rg, None)

    def in_history() -> Iterator[HistoryMatch]:
        rev = "HEAD" if git.rev is None else git.rev
        matches = sync.search_history(
            pattern,
            cwd=cwd,
            paths=paths,
            rev=rev,
            since=git.since,
            repositories=git.repository,
            limit=limit,
            rg=rg,
            **options,
        )
        for match in matches:
            named = f"{match.first.id[:12]}:{match.path}"
            yield match if as_json else match.model_copy(update={"path": named})

    if git.history:
        plain = Plain(colored=color == "always", max_columns=max_columns)
        return print_all(in_history(), print_json if as_json else plain, Match)
    return print_all(found(), show, Match)


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

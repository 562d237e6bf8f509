"""List files with or without a match, count the matches of each file, and list the file types of rg."""

import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

from ripwrap._operations.files import listing_answer
from ripwrap._operations.places import place_command
from ripwrap._operations.streaming import StreamRequest, run_stream
from ripwrap._ripgrep.command import types_command
from ripwrap._ripgrep.decoder import CountDecoder, FileTypes, decode_types, listing_decoder
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.host import RgHost
from ripwrap._ripgrep.query import Mode
from ripwrap._ripgrep.runner import AsyncRunner, Runner, Step
from ripwrap.binary.resolver import Rg
from ripwrap.models import FileCount
from ripwrap.options import SearchOptions, StrPath, check_timeout


def files_with_matches(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    on: RgHost | None = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[str]:
    """Yield the path of each file with a match (`rg --files-with-matches`); rg stops in a file at its first match.

    Options for context have no effect. Unreadable paths are logged as warnings. With `invert_match` or `multiline`, rg
    buffers its output, so the first paths come late (rg-facts 51).

    The arguments and errors are the same as in `search()`, without `inside`, `captures` and `on_progress`. `limit` is
    the maximum number of files.
    """
    return run_stream(paths_request(pattern, cwd, paths, limit, options, on, matching=True), rg)


def files_without_match(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    on: RgHost | None = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[str]:
    """Yield the path of each file without a match (`rg --files-without-match`).

    The arguments and errors are the same as in `search()`, without `inside`, `captures` and `on_progress`. `limit` is
    the maximum number of files.
    """
    return run_stream(paths_request(pattern, cwd, paths, limit, options, on, matching=False), rg)


def count(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    limit: int | None = None,
    include_zero: bool = False,
    rg: Rg = None,
    on: RgHost | None = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[FileCount]:
    """Yield the number of matching lines of each file with a match (`rg --count`).

    With `multiline`, and a pattern that can span lines, rg counts matches instead of lines.

    The arguments and errors are the same as in `search()`, without `inside`, `captures` and `on_progress`. `limit` is
    the maximum number of files. With `include_zero`, files without a match are yielded, too, with the number 0.
    """
    return run_stream(counts_request(pattern, cwd, paths, limit, options, "count", on, include_zero=include_zero), rg)


def count_matches(
    pattern: str | Sequence[str],
    *,
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    limit: int | None = None,
    include_zero: bool = False,
    rg: Rg = None,
    on: RgHost | None = None,
    **options: Unpack[SearchOptions],
) -> AsyncGenerator[FileCount]:
    """Yield the number of matches of each file with a match (`rg --count-matches`); a line may have several.

    The arguments and errors are the same as in `search()`, without `inside`, `captures` and `on_progress`. `limit` is
    the maximum number of files. With `include_zero`, files without a match are yielded, too, with the number 0.
    """
    return run_stream(
        counts_request(pattern, cwd, paths, limit, options, "count-matches", on, include_zero=include_zero), rg
    )


async def file_types(*, rg: Rg = None) -> dict[str, tuple[str, ...]]:
    """Return the file types that `type=` and `type_not=` accept, each with its globs (`rg --type-list`).

    The types depend on the version of rg (rg-facts 44); `type_add=` adds further types.

    Args:
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.

    Raises:
        BinaryNotFoundError: There is no rg.
        SearchError: rg fails.
    """
    return await run_file_types(AsyncRunner(rg), timeout=None)


async def run_file_types(run: Runner, *, timeout: float | None) -> FileTypes:  # noqa: ASYNC109 - a limit for rg
    """Run `rg --type-list`, and return the globs of each file type."""
    seconds = check_timeout(timeout)
    command = replace(types_command(), cwd=_any_directory())
    collector = await run.collect(Step(command, lambda: TypesCollector(seconds), seconds))
    return decode_types(b"".join(collector.chunks))


def _any_directory() -> str:
    """Return the current directory; if this directory has been removed, return `/`."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.path.abspath(os.sep)


class TypesCollector:
    """Collector of rg's list of file types.

    Attributes:
        chunks: Output of rg so far.
        ended: Always False. Other collectors set `ended` after rg's last message, but this output has no messages.
    """

    def __init__(self, timeout: float | None) -> None:
        self.chunks: list[bytes] = []
        self.ended = False
        self._timeout = timeout

    def feed(self, chunk: bytes) -> None:
        """Store a chunk of rg's output."""
        self.chunks.append(chunk)

    def end_run(self, end: Exit) -> None:
        """Raise `SearchError` if rg failed."""
        if end.returncode:
            raise end.failure()

    def finish(self, end: Exit, *, timed_out: bool) -> None:  # noqa: ARG002 - see `end_run()`
        """Raise an error if rg was stopped early.

        Raises:
            TimeoutError: rg was stopped before it had listed all types.
        """
        if timed_out:
            raise TimeoutError(
                f"rg was stopped after timeout={self._timeout} seconds, before it had listed all types; allow more time"
            )


def paths_request(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    limit: int | None,
    options: SearchOptions,
    on: RgHost | None = None,
    *,
    matching: bool,
) -> StreamRequest[str]:
    """Check the arguments, and return the request of `files_with_matches()` or `files_without_match()`."""
    mode: Mode = "files-with-matches" if matching else "files-without-match"
    command = place_command(pattern, cwd, paths, options, mode, on=on)
    decoder = partial(listing_decoder, counts=command.counts, matching=matching)
    return StreamRequest(command, listing_answer(decoder, limit))


def counts_request(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    limit: int | None,
    options: SearchOptions,
    mode: Mode,
    on: RgHost | None = None,
    *,
    include_zero: bool,
) -> StreamRequest[FileCount]:
    """Check the arguments, and return the request of `count()` or `count_matches()`, depending on `mode`."""
    command = place_command(pattern, cwd, paths, options, mode, include_zero=include_zero, on=on)
    return StreamRequest(command, listing_answer(CountDecoder, limit))

"""List the files that a search would read."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Generic, TypeVar, Unpack

from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.page_collector import Decoder
from ripwrap._ripgrep.progress import OnProgress
from ripwrap._ripgrep.stream import StreamRequest, metered, run_stream
from ripwrap.binary.resolver import Rg
from ripwrap.errors import named_paths
from ripwrap.options import StrPath, check_limit
from ripwrap.places.where import PlacedFileOptions, placed_files

Item = TypeVar("Item")


@named_paths
def files(
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = None,
    on_progress: OnProgress | None = None,
    rg: Rg = None,
    **options: Unpack[PlacedFileOptions],
) -> AsyncGenerator[str]:
    """List files and yield each path as rg finds it, relative to `cwd` and without a leading `./`.

    Files below an absolute path in `paths` have absolute paths. A path that is not UTF-8 is decoded as by
    `os.fsdecode`. Directories are not listed, not even empty ones. Unreadable paths are logged as warnings. To stop
    early, wrap the generator in `contextlib.aclosing`, or pass a `limit`.

    ```python
    import asyncio

    import ripwrap


    async def main():
        return [path async for path in ripwrap.files(cwd="demo", glob="*.py", sort="path")]


    print(asyncio.run(main()))
    ```

    ```text
    ['shop/cart.py', 'shop/till.py']
    ```

    Args:
        cwd: The directory to list; globs and `paths` are relative to it.
        paths: Files or directories to list, any number of them, as in `search()`; empty is all of `cwd`.
        limit: Maximum number of paths. At this number, rg is stopped.
        on_progress: Function that is called with a `Progress` while rg writes its output, at most ten times a second,
            and once at the end. The function runs in the task or thread of the caller, and an exception in the
            function ends the call.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags, and where to list files, such as `rev="main"`, `on=host` or `where=place`; see
            `FileOptions` and `ripwrap.places.PlaceOptions`.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: `limit` is negative, two arguments exclude each other, a path or option has a NUL, or `rev` names no
            revision.
        TypeError: `limit` is not an int.
        FileNotFoundError, PermissionError: `cwd`, one of `paths`, or an `ignore_file` does not exist or cannot be read.
        NotADirectoryError: `cwd` is not a directory.
        AccessDeniedError: The repository leads out of `repositories`.
        BinaryNotFoundError: There is no rg.
        RemoteError: The host cannot be reached, or does not run rg.
        GlobError, UnknownTypeError, SearchError: rg rejects a glob or file type, or rg or git fails.

    The call itself raises the errors about arguments. The first iteration raises the other errors, and the error about
    a `rev` that names no revision.
    """
    request = StreamRequest(placed_files("files()", cwd, paths, options), ListingAnswer(PathDecoder(), limit))
    return run_stream(metered(request, on_progress, limit), rg)


class ListingAnswer(Generic[Item]):
    """Converter of rg's output to items, of which rg prints one for each file, such as a path; stops at a limit."""

    def __init__(self, decoder: Decoder[Item], limit: int | None) -> None:
        self._left = check_limit(limit)
        self.full = limit == 0
        self.ended = False  # rg's output does not tell which path is the last one
        self.pending = 0  # not counted, because a path is short
        self._decoder = decoder

    def feed(self, chunk: bytes) -> Iterator[Item]:
        items = self._decoder.feed(chunk)
        if self._left is not None:
            items = items[: self._left]
            self._left -= len(items)
            self.full = not self._left
        return iter(items)

    def end_run(self, end: Exit) -> Iterator[Item]:
        end.check_listing()
        self._decoder.close()
        return iter(())

    def finish(self, end: Exit) -> Iterator[Item]:
        end.warn()
        return iter(())

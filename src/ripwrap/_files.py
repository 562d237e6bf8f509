"""Listing: the files that a search would look into."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Generic, TypeVar, Unpack

from ripwrap._rg.argv import files_command
from ripwrap._rg.decoder import PathDecoder
from ripwrap._rg.exit import Exit
from ripwrap._rg.gather import Decoder
from ripwrap._rg.stream import stream
from ripwrap.binary.resolver import Rg
from ripwrap.options import FileOptions, StrPath, check_limit

Item = TypeVar("Item")


def files(
    *,
    cwd: StrPath = ".",
    paths: StrPath | Sequence[StrPath] = (),
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[FileOptions],
) -> AsyncGenerator[str]:
    """List files and yield each path as rg finds it, relative to `cwd` and without a leading `./`.

    A path that is not UTF-8 comes as `os.fsdecode` gives it. Directories are not listed, so empty ones do not show.
    What could not be read is logged as a warning. To leave early, wrap the generator in `contextlib.aclosing`, or
    give a `limit`.

    ```python
    import asyncio

    import ripwrap


    async def main():
        return [path async for path in ripwrap.files(cwd="docs/demo", glob="*.py", sort="path")]


    print(asyncio.run(main()))
    ```

    ```text
    ['shop/cart.py', 'shop/till.py']
    ```

    Args:
        cwd: The directory to list; globs and `paths` start from there.
        paths: Files or directories to list; empty is all of `cwd`.
        limit: How many paths to yield at most; rg is ended with the last ones.
        rg: Which rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags; see `FileOptions`.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: `limit` is negative, or a NUL is in a path or option.
        FileNotFoundError: `cwd` does not exist.
        NotADirectoryError: `cwd` is not a directory.
        BinaryNotFoundError: There is no rg.
        GlobError, UnknownTypeError, SearchError: rg cannot do this.

    The first two are raised by the call, the others by the first iteration.
    """
    return stream(files_command(cwd, paths, options), Listing(PathDecoder(), limit), rg)


class Listing(Generic[Item]):
    """The answer of a mode that prints one item for each file."""

    def __init__(self, decoder: Decoder[Item], limit: int | None) -> None:
        self._left = check_limit(limit)
        self.full = limit == 0
        self.ended = False  # nothing tells the last path
        self._decoder = decoder
        self._any = False

    def feed(self, chunk: bytes) -> Iterator[Item]:
        items = self._decoder.feed(chunk)
        self._any = self._any or bool(items)
        if self._left is not None:
            items = items[: self._left]
            self._left -= len(items)
            self.full = not self._left
        return iter(items)

    def finish(self, end: Exit) -> Iterator[Item]:
        end.check_listing(listed=self._any)
        self._decoder.close()
        end.warn()
        return iter(())

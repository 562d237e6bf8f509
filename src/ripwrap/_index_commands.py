"""`ripwrap index`: making an index, asking it, and looking after it."""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import anyio
from cyclopts import App, Parameter

from ripwrap._flags import Json, Places, RgPath, flags, in_flags
from ripwrap._terminal import (
    FAILED,
    FOUND,
    NOTHING,
    IndexBar,
    print_about,
    print_all,
    print_json,
    print_place,
    print_refreshed,
)
from ripwrap._text import shown
from ripwrap.options import FileOptions
from ripwrap.results import RankedChunk

if TYPE_CHECKING:
    from ripwrap.index import Index, Refreshed

Root = Annotated[str, Parameter(help="The folder.")]

index: App = App(name="index", help="Keep an index of a folder, and search with it.")


@Parameter(name="*")
@dataclass(frozen=True)
class Kept:
    """Where an index is, and what cuts its files."""

    location: Annotated[
        str | None,
        Parameter(help="Where the index is: a folder, or `project` for .ripwrap in ROOT; else the user's cache."),
    ] = None
    chunker: Annotated[
        Literal["auto", "syntax", "windows"],
        Parameter(help="What cuts files: `syntax` at definitions, `windows` into lines, `auto` what is installed."),
    ] = "auto"

    def of(self, root: str, options: FileOptions) -> "Index":
        """The index of a folder."""
        from ripwrap.index import Index

        return Index(root, **self._given(), **options)

    def existing(self, root: str, options: FileOptions) -> "Index":
        """The index of a folder that is there.

        Raises:
            ValueError: There is none.
        """
        if not os.path.isdir(root):
            what = "is no folder" if os.path.lexists(root) else "does not exist"
            raise ValueError(
                f"ROOT should be a folder; {shown(os.path.abspath(root)) if root else 'an empty path'} {what}"
            )
        return self.of(root, options)

    def _given(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


@Parameter(name="*")
@dataclass(frozen=True)
class Made(Kept):
    """What an index is made by, too."""

    embedder: Annotated[
        str | None,
        Parameter(
            help="What makes embeddings, e.g. `wordllama` or `openai:text-embedding-3-small`; else nothing. With one,"
            " hidden files and links are left out, unless --hidden and --follow are given."
        ),
    ] = None
    hybrid_weight: Annotated[
        float | None, Parameter(help="What embeddings say of what words and they say, from 0 to 1; else .3 or .2.")
    ] = None
    rg: RgPath = None


@index.command
@flags(FileOptions)
def build(
    root: Root = ".",
    /,
    *,
    made: Made = Made(),
    anew: Annotated[bool, Parameter(help="Throw away first what there is, which mends a damaged index.")] = False,
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Make the index, or bring it up to date; exit code 2 if texts could not be embedded."""
    found = made.existing(root, options)
    failed = False

    def built() -> "Iterator[Refreshed]":
        nonlocal failed
        with IndexBar() as progress:
            done = anyio.run(partial(found.refresh, progress, anew=anew))
        failed = bool(done.failed)
        yield done

    code = print_all(built(), print_json if json else print_refreshed, object, lenient=True)
    return FAILED if failed else code


@index.command
@flags(FileOptions)
def status(
    root: Root = ".",
    /,
    *,
    made: Made = Made(),
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Show what the index has; exit code 1 if it is not built."""
    told = anyio.run(made.of(root, options).status)
    print_json(told) if json else print_about(told)
    return FOUND if told.built else NOTHING


@index.command
def health(root: Root = ".", /, *, kept: Kept = Kept(), json: Json = False) -> int:
    """Check whether the index is sound; exit code 2 if it is not."""
    told = anyio.run(kept.of(root, {}).health)
    if json:
        print_json(told)
    else:
        print_about(told.model_copy(update={"messages": tuple(map(in_flags, told.messages))}))
    return FOUND if told.ok else FAILED


@index.command
def gc(root: Root = ".", /, *, kept: Kept = Kept(), json: Json = False) -> int:
    """Remove what belongs to branches and worktrees that are no more."""
    done = anyio.run(kept.of(root, {}).gc)
    print_json(done) if json else print_about(done)
    return FOUND


@index.command
@flags(FileOptions)
def search(
    query: str,
    root: Root = ".",
    /,
    *,
    limit: Places = 10,
    refresh: Annotated[bool, Parameter(help="Bring the index up to date first.")] = True,
    made: Made = Made(),
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Find places as `rank` does, with the index.

    Parameters
    ----------
    query
        Words, e.g. "how are cookies stored", or a name, e.g. CookieJar.
    """
    ask = partial(made.existing(root, options).search, query, limit=limit, refresh=refresh)

    def places() -> Iterator[RankedChunk]:
        yield from anyio.run(ask)

    return print_all(places(), print_json if json else print_place, RankedChunk, lenient=True)


@index.command
@flags(FileOptions)
def watch(
    root: Root = ".",
    /,
    *,
    made: Made = Made(),
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Keep the index up to date until Ctrl-C; a line for each refresh that found a difference."""
    found = made.existing(root, options)

    async def keep() -> None:
        async with contextlib.aclosing(found.watch()) as refreshes:
            async for done in refreshes:
                print_json(done) if json else print_refreshed(done)
                sys.stdout.flush()

    anyio.run(keep)
    return FOUND

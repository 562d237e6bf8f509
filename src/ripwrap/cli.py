"""The command line: searching, listing, ranking, indexing, finding rg, serving MCP; with rg's flags and exit codes.

A terminal gets groups and colours, a pipe plain lines with the files' own bytes, `--json` the models, one a line.
"""

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Unpack, get_type_hints

import anyio
from cyclopts import App, Parameter
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text
from typing_extensions import TypedDict

from ripwrap import binary, sync
from ripwrap._terminal import (
    FAILED,
    FOUND,
    NOTHING,
    DownloadBar,
    Grouped,
    IndexBar,
    Plain,
    complain,
    print_about,
    print_all,
    print_entry,
    print_json,
    print_path,
    print_place,
)
from ripwrap._text import shown
from ripwrap.binary.probe import dotted
from ripwrap.binary.resolver import how_to_install
from ripwrap.errors import RipwrapError, SearchError
from ripwrap.models import Match, TreeEntry
from ripwrap.options import FileOptions, Paths, SearchOptions, Strings, flag_of
from ripwrap.results import RankedChunk

if TYPE_CHECKING:
    from ripwrap.index import Index

Function = TypeVar("Function", bound=Callable[..., Any])
Json = Annotated[bool, Parameter(help="Print JSON, one value a line.", negative=())]
Cwd = Annotated[str, Parameter(help="The directory to start from.")]
Limit = Annotated[int | None, Parameter(help="How many results at most, over all files.")]
Several = Annotated[list[str] | None, Parameter(negative=())]
RgPath = Annotated[str | None, Parameter(help="Which rg to run.")]

Root = Annotated[str, Parameter(help="The folder.")]
Location = Annotated[
    str | None,
    Parameter(help="Where the index is: a folder, or `project` for .ripwrap in ROOT; else the user's cache."),
]
EmbedderName = Annotated[
    str | None,
    Parameter(help="What makes embeddings, e.g. `wordllama` or `openai:text-embedding-3-small`; else nothing."),
]

_OPTION = re.compile(rf"\b({'|'.join(get_type_hints(SearchOptions))})=(?:True\b)?")

app: App = App(name="ripwrap", help="ripgrep, typed: search and list files.")
index: App = App(name="index", help="Keep an index of a folder, and search with it.")
app.command(index)


def run(arguments: list[str] | None = None) -> int:
    """Run a command; its exit code is rg's: 0 found, 1 nothing, 2 an error; 130 if interrupted."""
    for stream in (sys.stdout, sys.stderr):  # A console of few letters shows a question mark for the others.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if sys.stderr is None:  # closed; `print` would write complaints into stdout
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        complain("stdout is closed: there is nowhere to print to")
        return FAILED
    try:
        code: int | None = app(arguments, result_action="return_value")
        sys.stdout.flush()
    except BrokenPipeError:  # Who reads has seen enough; what is still buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FOUND
    except ValidationError as error:
        for problem in error.errors():
            complain(f"--{str(problem['loc'][0]).replace('_', '-')}: {problem['msg']}")
        return FAILED
    except (RipwrapError, ValueError, OSError) as error:
        hint = error.hint if isinstance(error, SearchError) else ""
        text = str(error).removesuffix(hint) + _in_flags(hint)
        complain("\n".join((text, *getattr(error, "__notes__", ()))))
        return FAILED
    return code or FOUND


def _in_flags(text: str) -> str:
    """A hint that names options, in flags: `fixed_strings=True` as `--fixed-strings`."""
    return _OPTION.sub(lambda option: "--" + option[1].replace("_", "-"), text)


def _flags(options: type[FileOptions]) -> Callable[[Function], Function]:
    """Give a command's `**options` the flags of a TypedDict: rg's names, letters, negations and our help."""

    def decorate(function: Function) -> Function:
        hints = get_type_hints(options, include_extras=True)
        named = {key: _parameter(key, hint) for key, hint in hints.items()}
        # Made at run time, so no checker can see its keys; they see `Unpack[SearchOptions]` in the signature.
        flags: Any = TypedDict("flags", named, total=False)  # type: ignore[misc]  # pyright: ignore[reportArgumentType]
        function.__annotations__["options"] = Unpack[flags]
        return function

    return decorate


def _parameter(key: str, hint: Any) -> Any:
    flag = flag_of(hint)
    name = "--" + key.replace("_", "-")
    negative = name.replace("--no-", "--", 1) if name.startswith("--no-") else name.replace("--", "--no-", 1)
    names = [name, f"-{flag.short}"] if flag.short else [name]
    kind = list[str] if hint.__origin__ in (Strings, Paths) else hint.__origin__
    text = flag.help + " (On by default.)" if flag.default else flag.help
    return Annotated[kind, Parameter(name=names, help=text, negative=negative if kind is bool else ())]


@app.command
@_flags(SearchOptions)
def search(
    pattern: str,
    /,
    *paths: str,
    cwd: Cwd = ".",
    limit: Limit = None,
    rg: RgPath = None,
    json: Json = False,
    **options: Unpack[SearchOptions],
) -> int:
    """Search files for a regular expression.

    Parameters
    ----------
    pattern
        A regular expression; write `--` before one that begins with a dash.
    paths
        Files and directories to search instead of all of the directory.
    """
    messages = sync.search_messages(pattern, cwd=cwd, paths=paths, limit=limit, rg=rg, **options)
    if json:
        return print_all(messages, print_json, Match)
    return print_all(messages, Grouped() if sys.stdout.isatty() else Plain(), Match)


@app.command
@_flags(FileOptions)
def files(
    *paths: str,
    cwd: Cwd = ".",
    limit: Limit = None,
    rg: RgPath = None,
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """List the files that a search would look into.

    Parameters
    ----------
    paths
        Files and directories to list instead of all of the directory.
    """
    listing = sync.files(cwd=cwd, paths=paths, limit=limit, rg=rg, **options)
    return print_all(listing, print_json if json else print_path, str)


@app.command
@_flags(FileOptions)
def tree(
    *,
    cwd: Cwd = ".",
    limit: Limit = 50,
    exclude: tuple[str, ...] = (".opencode",),
    rg: RgPath = None,
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Show files as a tree, with a little of every directory.

    Parameters
    ----------
    exclude
        Names of files and directories to leave out.
    """
    entries = sync.tree(cwd=cwd, limit=limit, exclude=exclude, rg=rg, **options)
    return print_all(entries, print_json if json else print_entry, TreeEntry)


@app.command
@_flags(FileOptions)
def rank(
    query: str,
    /,
    *paths: str,
    cwd: Cwd = ".",
    limit: Annotated[int | None, Parameter(help="How many places at most.")] = 10,
    rg: RgPath = None,
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Find the places that answer a question in words, or define a name, the best first.

    Parameters
    ----------
    query
        Words, e.g. "how are cookies stored", or a name, e.g. CookieJar.
    paths
        Files and directories to search instead of all of the directory.
    """
    places = sync.rank(query, cwd=cwd, paths=paths, limit=limit, rg=rg, **options)
    return print_all(places, print_json if json else print_place, RankedChunk)


def _index(root: str, location: str | None, embedder: str | None, rg: str | None, options: FileOptions) -> "Index":
    from ripwrap.index import Index

    further: dict[str, Any] = {"embedder": embedder}
    given = {name: value for name, value in further.items() if value is not None}
    return Index(root, location=location, rg=rg, **options, **given)


@index.command
@_flags(FileOptions)
def build(
    root: Root = ".",
    /,
    *,
    location: Location = None,
    embedder: EmbedderName = None,
    anew: Annotated[bool, Parameter(help="Throw away first what there is, which mends a damaged index.")] = False,
    rg: RgPath = None,
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Make the index, or bring it up to date."""
    found = _index(root, location, embedder, rg, options)

    def built() -> Iterator[Any]:
        with IndexBar() as progress:
            yield anyio.run(partial(found.refresh, progress, anew=anew))

    return print_all(built(), print_json if json else print_about, object)


@index.command
@_flags(FileOptions)
def status(
    root: Root = ".",
    /,
    *,
    location: Location = None,
    embedder: EmbedderName = None,
    rg: RgPath = None,
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Show what the index has; exit code 1 if it is not built."""
    told = anyio.run(_index(root, location, embedder, rg, options).status)
    print_json(told) if json else print_about(told)
    return FOUND if told.built else NOTHING


@index.command
def health(root: Root = ".", /, *, location: Location = None, json: Json = False) -> int:
    """Check whether the index is sound; exit code 2 if it is not."""
    told = anyio.run(_index(root, location, None, None, {}).health)
    print_json(told) if json else print_about(told)
    return FOUND if told.ok else FAILED


@index.command
def gc(root: Root = ".", /, *, location: Location = None, json: Json = False) -> int:
    """Remove what belongs to branches and worktrees that are no more."""
    done = anyio.run(_index(root, location, None, None, {}).gc)
    print_json(done) if json else print_about(done)
    return FOUND


@index.command(name="search")
@_flags(FileOptions)
def index_search(
    query: str,
    root: Root = ".",
    /,
    *,
    limit: Annotated[int | None, Parameter(help="How many places at most.")] = 10,
    refresh: Annotated[bool, Parameter(help="Bring the index up to date first.")] = True,
    location: Location = None,
    embedder: EmbedderName = None,
    rg: RgPath = None,
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Find places as `rank` does, with the index.

    Parameters
    ----------
    query
        Words, e.g. "how are cookies stored", or a name, e.g. CookieJar.
    """
    ask = partial(_index(root, location, embedder, rg, options).search, query, limit=limit, refresh=refresh)

    def places() -> Iterator[RankedChunk]:
        yield from anyio.run(ask)

    return print_all(places(), print_json if json else print_place, RankedChunk)


@index.command
@_flags(FileOptions)
def watch(
    root: Root = ".",
    /,
    *,
    location: Location = None,
    embedder: EmbedderName = None,
    rg: RgPath = None,
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Keep the index up to date until Ctrl-C; a line for each refresh that found a difference."""
    found = _index(root, location, embedder, rg, options)

    async def keep() -> None:
        async with contextlib.aclosing(found.watch()) as refreshes:
            async for done in refreshes:
                print_json(done) if json else print_about(done)
                sys.stdout.flush()

    anyio.run(keep)
    return FOUND


@app.command
def doctor(*, rg: RgPath = None) -> int:
    """Show which rg is used, what it can do, and every place that was looked at."""
    console = Console(highlight=False, soft_wrap=True)
    places = binary.explain(rg)
    for place in places:
        mark = Text("✓ " if place.usable else "✗ ", "green" if place.usable else "dim")
        console.print(Text.assemble(mark, (place.source, "bold"), " ", shown(place.path), ": ", place.reason))
    if places[-1].source == "download" and not any(place.usable for place in places):
        # Nothing is downloaded only to be looked at.
        complain(
            f"there is no rg yet; `ripwrap install` downloads one, or install it, for instance:\n{how_to_install()}"
        )
        return FAILED
    found = sync.resolve(rg)
    features = ", ".join(sorted(found.features)) or "none"
    console.print(
        Text.assemble(
            ("rg ", "bold"), (dotted(found.version), "bold green"), f", features: {features}\n{shown(found.path)}"
        )
    )
    return FOUND


@app.command
def install(
    version: str | None = None,
    /,
    *,
    dest: str | None = None,
    mirror: list[str] | None = None,
    sha256: str | None = None,
    allow_unpinned: bool = False,
    timeout: float = 120.0,
) -> int:
    """Download a verified rg into the cache, or into a folder.

    Parameters
    ----------
    version
        The release, e.g. 15.2.0.
    dest
        A folder to put the program into, e.g. of a container image; else it is the cache.
    mirror
        Base addresses in place of GitHub's, each with {version}/{asset} below it.
    sha256
        The hash of an archive of the mirror's own.
    allow_unpinned
        Check a version without a pin against the .sha256 file that is published beside it.
    timeout
        Seconds for all of it.
    """
    with DownloadBar() as progress:
        found = sync.install(
            version,
            dest=dest,
            mirrors=mirror,
            sha256=sha256,
            allow_unpinned=allow_unpinned,
            timeout=timeout,
            progress=progress,
        )
    state = "installed" if found.source == "download" else "is there already"
    print(f"rg {dotted(found.version)} {state}: {shown(found.path)}")
    return FOUND


@app.command
def mcp(
    *,
    root: Several = None,
    http: bool = False,
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_host: Several = None,
    index: bool = False,
    index_location: str | None = None,
    rg: RgPath = None,
) -> int:
    """Serve the tools of an agent (grep_content, find_files, codebase_search, …) over the Model Context Protocol.

    Parameters
    ----------
    root
        A directory that the tools may use; may be given several times. Without one they are the client's roots.
    http
        Speak streamable HTTP at http://HOST:PORT/mcp instead of stdio.
    host
        The address to listen at.
    port
        The port to listen at.
    allowed_host
        A further name under which clients reach it over HTTP; may be given several times.
    index
        Offer the tools of an index, too, which is kept in the user's cache: index_codebase and two more.
    index_location
        Keep it in this folder instead, or, with `project`, in .ripwrap in each directory.
    """
    try:
        from ripwrap import mcp as server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("ripwrap"):
            raise
        complain(f'the MCP server needs {error.name}: pip install "ripwrap[mcp]"')
        return FAILED
    names = allowed_host or ()
    server.serve(
        root or (),
        transport="http" if http else "stdio",
        host=host,
        port=port,
        allowed_hosts=names,
        rg=rg,
        index=index_location or index,
    )
    return FOUND

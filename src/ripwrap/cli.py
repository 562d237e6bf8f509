"""The command line: searching, listing, ranking, indexing, finding rg, serving MCP; with rg's flags and exit codes.

A terminal gets groups and colours, a pipe plain lines with the files' own bytes, `--json` the models, one a line.
"""

import io
import os
import sys
from collections.abc import Iterator
from typing import Annotated, Unpack

from cyclopts import App, Parameter
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from ripwrap import binary, sync
from ripwrap._flags import Cwd, Json, Limit, Places, RgPath, flags, in_flags
from ripwrap._index_commands import index
from ripwrap._terminal import (
    FAILED,
    FOUND,
    DownloadBar,
    Grouped,
    Plain,
    complain,
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
from ripwrap.options import FileOptions, SearchOptions
from ripwrap.results import RankedChunk

Several = Annotated[list[str] | None, Parameter(negative=())]

app: App = App(name="ripwrap", help="ripgrep, typed: search and list files.")
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
        complain("\n".join((_said(error), *getattr(error, "__notes__", ()))))
        return FAILED
    return code or FOUND


def _said(error: Exception) -> str:
    """What an error says, with flags for arguments, but for what it quotes of rg's."""
    if not isinstance(error, SearchError):
        return in_flags(str(error))
    return str(error).removesuffix(error.hint) + in_flags(error.hint)


@app.command
@flags(SearchOptions)
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
@flags(FileOptions)
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
@flags(FileOptions)
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
@flags(FileOptions)
def rank(
    query: str,
    /,
    *paths: str,
    cwd: Cwd = ".",
    limit: Places = 10,
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

    def places() -> Iterator[RankedChunk]:  # so that what it logs is heard
        yield from sync.rank(query, cwd=cwd, paths=paths, limit=limit, rg=rg, **options)

    return print_all(places(), print_json if json else print_place, RankedChunk)


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

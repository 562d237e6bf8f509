"""Command `ripwrap index`: make an index, search with it, and maintain it."""

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from json import loads
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Unpack, cast

import anyio

from ripwrap import sync
from ripwrap._ripgrep.command import spell_file_flags
from ripwrap._text import plural, shown
from ripwrap.cli.command import Command, CommandGroup, Option
from ripwrap.cli.flags import EmbedderName, HybridWeight, Json, Limit, LineFlags, Pattern, ResultLimit, RgPath
from ripwrap.cli.grep import print_grep
from ripwrap.cli.lines import LinePrinter
from ripwrap.cli.output import print_all, print_chunk, print_fields, print_json, print_refreshed, printed_warnings
from ripwrap.cli.terminal import FAILED, FOUND, NOTHING, IndexBar, complain
from ripwrap.options import VISIBLE_FILES, FileOptions, SearchOptions
from ripwrap.results import GrepResult, RankedChunk

if TYPE_CHECKING:
    from ripwrap.index import CheckResult, Index, IndexStatus, RefreshResult

T = TypeVar("T")

_FEW_FILES = 50_000
"""Number of files below which `ripwrap search` is faster, if the files are in the cache of the system.

`grep` takes .4 s more to start, and as long to list and compare files as rg to search in them: with 30,000 files of
560 MB, 1.06 s of CPU time, and `ripwrap search` .65 s (two cores, Python 3.11).
"""

Root = Annotated[str, Option("Directory of the files", default=".")]

Refresh = Annotated[bool, Option("Bring the index up to date first", off=("--no-refresh",))]


@dataclass(frozen=True)
class IndexOptions:
    """Options of all index commands: location and chunker."""

    location: Annotated[
        str | None, Option("Directory of the index; `project` means ROOT/.ripwrap", value="DIR", default="user's cache")
    ] = None
    chunker: Annotated[
        Literal["auto", "syntax", "windows"], Option("How files are split: at definitions, or by lines")
    ] = "auto"

    def existing(self, root: str, options: FileOptions) -> "Index":
        """Return the async index of the directory `root`, with the file options of the command."""
        from ripwrap.index import Index  # late: `--help` does not need it

        return self.make(Index, root, options)

    def make(self, kind: Callable[..., T], root: str, options: FileOptions) -> T:
        """Return the async or the blocking index of the directory `root`."""
        if not os.path.isdir(root):
            what = "is not a directory" if os.path.lexists(root) else "does not exist"
            raise ValueError(
                f"ROOT must be a directory; {shown(os.path.abspath(root)) if root else 'an empty path'} {what}"
            )
        arguments = {name: value for name, value in vars(self).items() if value is not None}
        with printed_warnings():  # warnings about the choice of an embedder, if it is 'auto'
            return kind(root, **arguments, **options)


@dataclass(frozen=True)
class BuildOptions(IndexOptions):
    """Options of `build`, `status`, `search` and `watch`: location, chunker, embedder, weight of embeddings, and rg."""

    embedder: EmbedderName = None
    hybrid_weight: HybridWeight = None
    rg: RgPath = None


def build(
    root: Root = ".",
    /,
    *,
    settings: BuildOptions = BuildOptions(),
    rebuild: Annotated[bool, Option("Delete the index first, e.g. if it is damaged", off=("--no-rebuild",))] = False,
    anew: Annotated[bool, Option("Deprecated name of --rebuild", hidden=True)] = False,
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Make the index, or bring it up to date.

    The exit code is 2 if texts could not be embedded.
    """
    if anew:
        complain("--anew is deprecated; use --rebuild")
    found = settings.existing(root, options)
    failed = False

    def built() -> "Iterator[RefreshResult]":
        nonlocal failed
        with IndexBar() as progress:
            done = anyio.run(lambda: found.refresh(progress, rebuild=rebuild or anew))
        failed = bool(done.failed)
        yield done

    code = print_all(built(), print_json if json else print_refreshed, lenient=True)
    return FAILED if failed else code


def status(
    root: Root = ".", /, *, settings: BuildOptions = BuildOptions(), json: Json = False, **options: Unpack[FileOptions]
) -> int:
    """Show what is in the index: branches and embedding models.

    The exit code is 1 if there is no index, and 2 if the index cannot be used.
    """
    result = anyio.run(settings.existing(root, options).status)
    print_json(result) if json else print_fields(_with_flags(result))
    return FOUND if result.views else FAILED if result.outdated else NOTHING


def check(root: Root = ".", /, *, settings: IndexOptions = IndexOptions(), json: Json = False) -> int:
    """Check the index for damage.

    The exit code is 2 if there is damage, and 0 if there is no index yet.
    """
    result = anyio.run(settings.existing(root, {}).check)
    print_json(result) if json else print_fields(_with_flags(result))
    return FOUND if result.ok else FAILED


def _with_flags(result: "CheckResult | IndexStatus") -> "CheckResult | IndexStatus":
    """Rewrite the file options of each view (the indexed files of a branch) as flags; return the changed result."""
    views = tuple(
        view.model_copy(update={"options": shlex.join(spell_file_flags(loads(view.options)))}) for view in result.views
    )
    return result.model_copy(update={"views": views})


def prune(root: Root = ".", /, *, settings: IndexOptions = IndexOptions(), json: Json = False) -> int:
    """Remove deleted branches and worktrees from the index."""
    done = anyio.run(settings.existing(root, {}).prune)
    print_json(done) if json else print_fields(done)
    return FOUND


def search(
    query: Annotated[str, Option("Words, or a name, e.g. CookieJar")],
    root: Root = ".",
    /,
    *,
    limit: ResultLimit = 10,
    refresh: Refresh = True,
    settings: BuildOptions = BuildOptions(),
    json: Json = False,
    **options: Unpack[FileOptions],
) -> int:
    """Find code by words or a name, with the help of the index."""
    found = settings.existing(root, options)

    def results() -> Iterator[RankedChunk]:
        yield from anyio.run(lambda: found.search(query, limit=limit, refresh=refresh))

    return print_all(results(), print_json if json else print_chunk, lenient=True)


@dataclass(frozen=True)
class GrepOptions(IndexOptions):
    """Options of `ripwrap index grep`: location, chunker and rg."""

    rg: RgPath = None


def grep(
    pattern: Pattern,
    root: Root = ".",
    /,
    *,
    limit: Limit = None,
    lines: LineFlags,
    refresh: Refresh = True,
    settings: GrepOptions = GrepOptions(),
    json: Json = False,
    **options: Unpack[SearchOptions],
) -> int:
    """Search for a regular expression, with the help of the index.

    The index keeps a separate list of files for each choice of file options.
    """
    options = lines.options(options)
    chosen = {name: value for name, value in options.items() if name in FileOptions.__annotations__}
    others = {"context": 0, **{name: value for name, value in options.items() if name not in chosen}}
    found = settings.existing(root, cast("FileOptions", chosen))

    async def ask() -> GrepResult:
        result = await found.grep(pattern, limit=limit, timeout=None, refresh=refresh, **cast("SearchOptions", others))
        if advice := _why_slow(result):
            complain(f"{advice}; `ripwrap search` is faster")
        return result

    # A refresh logs the errors itself.
    show = LinePrinter(lines, others, root)
    return print_grep(lambda: anyio.run(ask), show, as_json=json, errors=not refresh)


def _why_slow(result: GrepResult) -> str:
    """Return the reason why a search without the index would have been faster; empty if there is none."""
    searched, total = result.candidates or 0, result.files_total or 0
    if total < _FEW_FILES:
        return f"the index has only {plural(total, 'file')}"
    return f"{searched} of {total} files may match, so the index saved little" if searched * 2 > total else ""


def watch(
    root: Root = ".", /, *, settings: BuildOptions = BuildOptions(), json: Json = False, **options: Unpack[FileOptions]
) -> int:
    """Keep the index up to date until Ctrl-C.

    A line is printed for each refresh that found a change.
    """
    # The blocking index is used, because asyncio may notice a Ctrl-C late: if the signal arrives just before the loop
    # waits, asyncio notices it at the next event.
    with contextlib.closing(settings.make(sync.Index, root, options).watch()) as refreshes:
        for done in refreshes:
            print_json(done) if json else print_refreshed(done)
            sys.stdout.flush()
    return FOUND


def _renamed(old: str, new: Callable[..., int]) -> Command:
    """Return a command under its name from before 0.2. The help omits this name; its use prints a warning."""

    @wraps(new)
    def command(*arguments: Any, **options: Any) -> int:
        complain(f"`ripwrap index {old}` is deprecated; use `ripwrap index {new.__name__}`")
        return new(*arguments, **options)

    return Command("[ROOT]", hidden=True)(command)


_EXAMPLES = (
    "ripwrap index build",
    "ripwrap index search 'how are cookies stored'",
    "ripwrap index grep 'class \\w+Jar'",
)

index: CommandGroup = CommandGroup(
    "Keep an index of a directory, and search with it.",
    {
        "build": Command("[ROOT]", examples=_EXAMPLES, defaults=VISIBLE_FILES)(build),
        "status": Command("[ROOT]", examples=_EXAMPLES, defaults=VISIBLE_FILES)(status),
        "check": Command("[ROOT]", examples=_EXAMPLES)(check),
        "prune": Command("[ROOT]", examples=_EXAMPLES)(prune),
        "search": Command("QUERY [ROOT]", examples=_EXAMPLES, defaults=VISIBLE_FILES)(search),
        "grep": Command("PATTERN [ROOT]", examples=_EXAMPLES, defaults=VISIBLE_FILES)(grep),
        "watch": Command("[ROOT]", examples=_EXAMPLES, defaults=VISIBLE_FILES)(watch),
        "health": _renamed("health", check),
        "gc": _renamed("gc", prune),
    },
    examples=_EXAMPLES,
)

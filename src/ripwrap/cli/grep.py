"""Print results of `grep()` and of the search of a history, for `ripwrap search` and `ripwrap index grep`."""

import glob
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ripwrap import sync
from ripwrap._operations.near import NEAR_LINES
from ripwrap._ripgrep.command import normalise_path
from ripwrap.cli.flags import ManyRoots, NearOptions, TerminalSearch
from ripwrap.cli.lines import LinePrinter, printer_of, warn_of_binary
from ripwrap.cli.output import print_all, print_coverage, print_json
from ripwrap.cli.terminal import FAILED, RootsBar, complain
from ripwrap.errors import Hint, HintedText, MissingPackageError, RipwrapError
from ripwrap.models import Begin, Context, FileCount, HistoryMatch, Match
from ripwrap.places.where import PlacedSearchOptions
from ripwrap.repositories import Root, RootCount, RootError, RootMatch
from ripwrap.results import GrepResult

if TYPE_CHECKING:
    from ripwrap.options import SearchOptions


def print_grep(ask: Callable[[], GrepResult], show: LinePrinter, *, as_json: bool, errors: bool = True) -> int:
    """Call `ask`, print the lines of its result or the result as JSON, and return the exit code."""
    failed = False

    def results() -> Iterator[GrepResult | Begin | Match | Context]:
        nonlocal failed
        result = ask()
        real = [error for error in result.errors if not error.harmless]
        failed = bool(real)
        for error in real if errors else ():
            complain(str(error))
        if as_json:
            yield from (result,) if result else ()
            return
        for file in result:
            yield Begin.model_validate({"path": file.path})
            yield from file.lines()
            warn_of_binary(file.path, file.binary_offset)
        if result.coverage is not None:
            print_coverage(result.coverage, as_json=False)

    code = print_all(results(), print_json if as_json else show)
    return FAILED if failed else code


def search_near(search: TerminalSearch, where: NearOptions, *, coverage: bool) -> int:
    """Print the matches that are near a match of each pattern of `--near`, and return the exit code."""
    run = search.run
    options: PlacedSearchOptions = {"context": 0, **search.options}

    def ask() -> GrepResult:
        return sync.grep(
            search.pattern,
            near=where.near,
            within=NEAR_LINES if where.within is None else where.within,
            cwd=run.cwd,
            paths=search.paths,
            limit=search.limit,
            timeout=None,
            coverage=coverage,
            rg=run.rg,
            **options,
        )

    return print_grep(ask, printer_of(search), as_json=run.json, errors=not run.no_messages)


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


_CONNECT_SECONDS = 10


def search_repositories(search: TerminalSearch, many: ManyRoots, *, count: bool) -> int:
    """Print the matches of many roots, one root after another, and return the exit code."""
    for name in ("context", "before_context", "after_context", "passthru"):
        if search.options.get(name):
            raise ValueError(f"--repositories prints no context; leave out --{name.replace('_', '-')}")
    here = os.path.abspath(search.run.cwd)
    globs = [os.path.join(glob.escape(here), os.path.expanduser(one)) for one in many.repositories]
    with ExitStack() as stack:
        executor = None if many.dask is None else stack.enter_context(_dask(many.dask))
        roots = sync.Repositories(
            *globs, only=many.only_root, exclude=many.exclude_root, executor=executor, rg=search.run.rg
        )
        show = print_json if search.run.json else _printer(roots.roots, here, search)
        bar = stack.enter_context(RootsBar())
        found: Generator[RootMatch | RootCount | RootError]
        options = cast("SearchOptions", search.options)
        if count:
            found = roots.count(search.pattern, order="root", on_progress=bar, **options)
        else:
            found = roots.search(
                search.pattern, per_root=many.per_root, limit=search.limit, order="root", on_progress=bar, **options
            )
        stack.callback(found.close)

        def results() -> Iterator[RootMatch | RootCount | RootError]:
            for one in found:
                bar.hide()
                if one.type != "count" or one.count:
                    yield one

        return print_all(results(), show, streams=search.run)


def _printer(roots: Sequence[Root], here: str, search: TerminalSearch) -> Callable[[RootMatch | RootCount], None]:
    """Return a function that prints a result; a path below the directory `here` is printed relative to `here`."""
    places = {root.name: _place(root.path, here) for root in roots}
    show_lines = printer_of(search)

    def show(one: RootMatch | RootCount) -> None:
        if one.type == "count":
            show_lines.count(FileCount(path=places[one.root], count=one.count))
            return
        path = normalise_path(os.path.join(places[one.root], one.path))
        show_lines.alone(one.model_copy(update={"path": path}))

    return show


def _place(path: str, here: str) -> str:
    """Return the path of a root relative to `here`; return a path that is not below `here` unchanged."""
    try:
        relative = os.path.relpath(path, here)
    except ValueError:  # on another drive of Windows
        return path
    return path if relative.startswith(os.pardir) else relative


@contextmanager
def _dask(address: str) -> Generator[Executor]:
    """Connect to the scheduler of a Dask cluster, and yield an executor that runs calls on the cluster."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise MissingPackageError(
            HintedText("--dask needs the package distributed: ", Hint(kind="install", target="ripwrap[cluster]"))
        ) from error
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise RipwrapError(f"no Dask scheduler answers at {address}: {error}; check the address") from error
    try:
        yield client.get_executor(retries=3)
    finally:
        client.close()

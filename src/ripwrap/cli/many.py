"""Search in many roots (directories) for `ripwrap search --repositories`, on this machine or on a Dask cluster."""

import glob
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ripwrap import sync
from ripwrap._ripgrep.command import normalise_path
from ripwrap.cli.bars import RootsBar
from ripwrap.cli.lines import printer_of
from ripwrap.cli.output import print_all, print_json
from ripwrap.cli.search_options import ManyRoots, TerminalSearch
from ripwrap.errors import Hint, HintedText, MissingPackageError, RipwrapError
from ripwrap.repositories import Root, RootCount, RootError, RootMatch

if TYPE_CHECKING:
    from ripwrap.options import SearchOptions

_CONNECT_SECONDS = 10


def search_repositories(search: TerminalSearch, many: ManyRoots, *, count: bool) -> int:
    """Print the matches of many roots, one root after another, and return the exit code.

    With `count`, print the number of matching lines of each root that has such lines.
    """
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
            show_lines.count(places[one.root], one.count)
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

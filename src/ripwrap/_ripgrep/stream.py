"""Run rg and yield its answer: one async and one blocking loop, which pass rg's output to an `Answer`.

An `Answer` converts the output to the items that an operation yields; each operation has its own class. A loop takes
1 µs per record. With only one loop, a bridge between async and blocking code would take 43 µs per record.
"""

import functools
import itertools
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

import anyio

from ripwrap._concurrency import in_thread
from ripwrap._ripgrep.command import Command
from ripwrap._ripgrep.decoder import LARGE_RECORD, FileTypes, decode_types
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.host import INSTALL_THERE
from ripwrap._ripgrep.place import Part, plan
from ripwrap._ripgrep.process import AsyncChild, BlockingChild, check_cwd, parse_stderr, split
from ripwrap.binary.probe import RgBinary, format_version
from ripwrap.binary.resolver import Rg, find, resolve
from ripwrap.errors import BinaryError, CapabilityError, Hint, HintedText, SearchError, UnknownTypeError

_LOGGER = logging.getLogger("ripwrap")
SUGGESTION_SECONDS = 2.0
"""Time limit in seconds for listing the file types, for the suggestions in an error about an unknown type."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Answer(Protocol[T_co]):
    """Converter of rg's output to items, used by both loops of this module.

    Attributes:
        full: True if the limit of items is reached.
        ended: True if the last message of rg was read.
        pending: Number of bytes received of an incomplete last record; 0 if the last record is complete.
    """

    @property
    def pending(self) -> int:
        """Number of bytes received of an incomplete last record; 0 if the last record is complete."""
        ...

    @property
    def full(self) -> bool:
        """True if the limit of items is reached."""
        ...

    @property
    def ended(self) -> bool:
        """True if the last message of rg was read."""
        ...

    def feed(self, chunk: bytes) -> Iterator[T_co]:
        """Yield the items that `chunk` completes."""
        ...

    def end_run(self, end: Exit) -> Iterator[T_co]:
        """Yield the items that are complete only at the end of a run; raise an error if rg failed.

        Another run may follow.
        """
        ...

    def finish(self, end: Exit) -> Iterator[T_co]:
        """Yield the items that are complete only at the end of the last run; `end` joins the exits of all runs."""
        ...


class Runs:
    """Successive runs of rg for one search: one run, or several if the paths need more than one command line.

    Attributes:
        pending: Parts that are still to run.
    """

    def __init__(self, parts: Sequence[Part], *, ordered: bool = False) -> None:
        """Split each command whose paths are too long for one command line.

        Args:
            parts: Parts of the search.
            ordered: True if the files must come in the order that `sort` asks for.

        Raises:
            SearchError: `ordered` is True, the paths need several runs, and `sort` applies to the files of all paths.
        """
        self._parts = [Part(command, part.change) for part in parts for command in split(part.command)]
        if ordered and len(self._parts) > 1 and parts[0].command.sorts_all:
            raise _order_error(parts[0].command, len(self._parts))
        self.pending = deque(self._parts)
        self._ends: list[Exit] = []  # at most one: exits are joined, because each may have a MiB of stderr
        self._single_threaded = False

    @property
    def end(self) -> Exit:
        """Joined exit of all runs that have ended; at least one run must have ended."""
        return self._ends[0]

    def add(self, end: Exit) -> None:
        """Remove the first command from `pending`, because its run has ended, and join its exit to earlier exits."""
        self.pending.popleft()
        self._ends = [functools.reduce(Exit.followed_by, (*self._ends, end))]

    def retry(self, end: Exit, *, everything: bool = False) -> bool:
        """Return True if rg must run again with one thread, because it could not start another thread (rg-facts 8).

        If so, change the commands in `pending` to use one thread.

        Args:
            end: Exit of the last run.
            everything: True to run all commands again, False to run only the pending commands.
        """
        if self._single_threaded or not end.out_of_threads:
            return False
        _LOGGER.info("rg could not start a thread; trying again with one thread")
        if everything:
            self.pending, self._ends = deque(self._parts), []
            for part in self._parts:
                if part.change is not None:
                    part.change.restart()
        self.pending = deque(Part(part.command.single_threaded(), part.change) for part in self.pending)
        self._single_threaded = True
        return True

    def next(self) -> Part:
        """Return the part to run now; tell its change whether it is the last run with this change."""
        part, *others = self.pending
        if part.change is not None:
            part.change.last = all(other.change is not part.change for other in others)
        return part


async def stream(command: Command, answer: Answer[T], rg: Rg) -> AsyncGenerator[T]:
    """Run rg and yield the items into which `answer` converts its output; other tasks run between chunks of output.

    Raises:
        FileNotFoundError, NotADirectoryError, PermissionError: `cwd` is not a directory that rg can enter, or no path
            of the command exists.
        BinaryError: rg cannot be found or started.
        CapabilityError: This rg does not have an option of the command.
        SearchError: rg failed, or the paths need several command lines, so that their files cannot be sorted together.
        DecodeError: rg's output is malformed.
    """
    if answer.full:
        return
    binary = await find_usable_rg(command, rg)
    runs = Runs(await _parts(command, binary), ordered=True)
    while runs.pending:
        part = runs.next()
        async with AsyncChild(binary, part.command, part.change) as child:
            while not answer.full and (chunk := await child.read(whole=answer.ended)):
                for item in await _feed(answer, chunk):
                    if answer.full:
                        child.kill()
                    yield item
            if answer.full:
                return
            end = await child.wait()
        if not end.wrote and runs.retry(end):
            continue
        runs.add(end)
        await parse_stderr(runs.end)
        try:
            for item in _last_items(answer, end, runs):
                yield item
        except UnknownTypeError:
            raise await with_suggestions(end, binary) from None


async def _feed(answer: Answer[T], chunk: bytes) -> Iterator[T]:
    """Return the items that `chunk` completes; decode a large record in a worker thread."""
    is_large = answer.pending > LARGE_RECORD
    items = answer.feed(chunk)
    if not is_large:
        return items
    first = await in_thread(lambda: list(itertools.islice(items, 1)))
    return itertools.chain(first, items)


def stream_blocking(command: Command, answer: Answer[T], rg: Rg, timeout: float | None) -> Generator[T]:
    """Run rg and yield the items into which `answer` converts its output, blocking; see `stream()`.

    Raises:
        TimeoutError: The call took more than `timeout` seconds, including the installation of rg. The items that
            were found in time were yielded.
    """
    if answer.full:
        return
    begun = time.monotonic()
    binary = find_usable_rg_blocking(command, rg, timeout)
    runs = Runs(_parts_blocking(command, binary, timeout), ordered=True)
    while runs.pending:
        part = runs.next()
        with BlockingChild(binary, part.command, timeout, begun, part.change) as child:
            while not answer.full and (chunk := child.read(whole=answer.ended)):
                for item in answer.feed(chunk):
                    if answer.full:
                        child.kill()
                    yield item
            if answer.full:
                return
            end = child.wait()
        if not end.wrote and runs.retry(end):
            continue
        runs.add(end)
        try:
            yield from _last_items(answer, end, runs)
        except UnknownTypeError:
            raise with_suggestions_blocking(end, binary) from None


async def _parts(command: Command, binary: RgBinary) -> Sequence[Part]:
    if command.is_plain:
        return (Part(command),)
    from ripwrap._ripgrep.runner import AsyncRunner  # late: it imports this module

    return (await plan(command, AsyncRunner(binary), None)).parts


def _parts_blocking(command: Command, binary: RgBinary, timeout: float | None) -> Sequence[Part]:
    if command.is_plain:
        return (Part(command),)
    from ripwrap._ripgrep.runner import BlockingRunner, run_blocking

    made = run_blocking(plan(command, BlockingRunner(binary), timeout))
    if made.end is not None or made.late:
        raise TimeoutError(f"rg was stopped after timeout={timeout} seconds; allow more time")
    return made.parts


def _order_error(command: Command, lines: int) -> SearchError:
    return SearchError(
        HintedText(
            f"rg cannot sort the files of all {len(command.paths)} paths together, because this system needs {lines} "
            "command lines for so many paths; pass fewer paths, leave out ",
            Hint("sort", kind="omit"),
            " and ",
            Hint("sortr", kind="omit"),
            ", or pass ",
            Hint("sort", "path"),
        )
    )


def _last_items(answer: Answer[T], end: Exit, runs: Runs) -> Iterator[T]:
    """Yield the items that are complete only at the end of a run; raise an error if rg failed."""
    yield from answer.end_run(end)
    if not runs.pending:
        runs.end.check_paths()
        yield from answer.finish(runs.end)


async def find_usable_rg(command: Command, rg: Rg) -> RgBinary:
    """Return an rg that can run the command; raise what `stream()` raises."""
    if command.on is not None:
        binary = await in_thread(functools.partial(command.on.find, rg))
    else:
        check_cwd(command.cwd)
        binary = await resolve(rg)
    if command.needs:
        await in_thread(functools.partial(_check_needs, command, binary))
    return binary


def find_usable_rg_blocking(command: Command, rg: Rg, timeout: float | None) -> RgBinary:
    """Return an rg that can run the command, blocking; raise `TimeoutError` if installing rg takes too long."""
    if command.on is not None:
        binary = command.on.find(rg, timeout=timeout)
    else:
        check_cwd(command.cwd)
        binary = _find_blocking(rg, timeout)
    _check_needs(command, binary)
    return binary


def _find_blocking(rg: Rg, timeout: float | None) -> RgBinary:
    begun = time.monotonic()
    try:
        return find(rg, timeout=timeout)
    except BinaryError as error:
        if timeout is not None and time.monotonic() - begun >= timeout:
            raise TimeoutError(
                f"rg was not installed within timeout={timeout} seconds; allow more time, or install rg first"
            ) from error
        raise


async def with_suggestions(end: Exit, binary: RgBinary) -> SearchError:
    """Return the error for an unknown type, with similar types if rg lists its types within `SUGGESTION_SECONDS`."""
    types: FileTypes = {}
    with suppress(SearchError), anyio.move_on_after(SUGGESTION_SECONDS):
        types = await known_types(end.command.types(), binary)
    return end.failure(types)


def with_suggestions_blocking(end: Exit, binary: RgBinary) -> SearchError:
    """Return the error for an unknown type, blocking; see `with_suggestions()`."""
    types: FileTypes = {}
    with suppress(SearchError, TimeoutError):
        types = known_types_blocking(end.command.types(), binary, SUGGESTION_SECONDS)
    return end.failure(types)


async def known_types(command: Command, rg: Rg) -> FileTypes:
    """Return the file types that rg knows; `command` is the command that lists them."""
    async with AsyncChild(await resolve(rg), command) as child:
        chunks: list[bytes] = []
        while chunk := await child.read():
            chunks.append(chunk)
        return _types(chunks, await child.wait())


def known_types_blocking(command: Command, rg: Rg, timeout: float | None = None) -> FileTypes:
    """Return the file types that rg knows, blocking; raise `TimeoutError` after `timeout` seconds."""
    begun = time.monotonic()
    with BlockingChild(find(rg, timeout=timeout), command, timeout, begun) as child:
        return _types(list(iter(child.read, b"")), child.wait())


def _types(chunks: list[bytes], end: Exit) -> FileTypes:
    if end.returncode:
        raise end.failure()
    return decode_types(b"".join(chunks))


def _check_needs(command: Command, binary: RgBinary) -> None:
    place = "" if command.on is None else f"on {command.on}, "
    for option, since in command.needs:
        if binary.version < since:
            function = option.removesuffix("()") if option.endswith("()") else None
            leave_out = ("Leave ", Hint(option, kind="omit"), " out, or use a newer rg: ")
            raise CapabilityError(
                HintedText(
                    Hint(option, kind="correct") if function is None else Hint(kind="call", target=function),
                    f" needs rg {format_version(since)} or later: {place}{binary.path} is "
                    f"{format_version(binary.version)}",
                ),
                hint=HintedText(
                    *(leave_out if function is None else ("Use a newer rg: ",)),
                    Hint(kind="install", target="ripwrap[bin]") if command.on is None else INSTALL_THERE,
                    ".",
                ),
            )

"""Run rg and yield its answer: one async and one blocking loop, which feed the child's bytes to an `Answer`.

Operations differ in their answers. Only this module, `runner` and `process` have separate code for async and blocking.
There are two loops because a bridge between async and blocking takes 43 µs a record, and a loop 1 µs.
"""

import functools
import logging
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import suppress
from typing import Protocol, TypeVar

import anyio

from ripwrap._concurrency import in_thread
from ripwrap._ripgrep.command import Command
from ripwrap._ripgrep.decoder import FileTypes, decode_types
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.process import AsyncChild, BlockingChild, check_cwd
from ripwrap.binary.probe import RgBinary, format_version
from ripwrap.binary.resolver import Rg, find, resolve
from ripwrap.errors import BinaryError, CapabilityError, Hint, HintedText, SearchError, UnknownTypeError

_LOGGER = logging.getLogger("ripwrap")
SUGGESTION_SECONDS = 2.0
"""Seconds for listing the file types that the text of an error suggests."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Answer(Protocol[T_co]):
    """Converter of rg's bytes to items, for both loops below.

    Attributes:
        full: True if no more items are wanted.
        ended: True if rg is known to have written its last message.
    """

    full: bool

    @property
    def ended(self) -> bool:
        """True if rg is known to have written its last message."""
        ...

    def feed(self, chunk: bytes) -> Iterator[T_co]:
        """Yield the items that `chunk` completes."""
        ...

    def finish(self, end: Exit) -> Iterator[T_co]:
        """Yield the items that are known only at the end; raise if rg failed."""
        ...


async def stream(command: Command, answer: Answer[T], rg: Rg) -> AsyncGenerator[T]:
    """Run rg and yield its answer; other tasks run between chunks.

    Raises:
        FileNotFoundError, NotADirectoryError, PermissionError: `cwd` is not a directory that rg can enter.
        BinaryError: rg cannot be found or started.
        CapabilityError: This rg lacks an option of the command.
        SearchError, DecodeError: `answer` raises it.
    """
    if answer.full:
        return
    binary = await find_usable_rg(command, rg)
    attempt = command
    while True:
        async with AsyncChild(binary, attempt) as child:
            silent = True
            while not answer.full and (chunk := await child.read(whole=answer.ended)):
                silent = False
                for item in answer.feed(chunk):
                    if answer.full:
                        child.kill()
                    yield item
            if answer.full:
                return
            end = await child.wait()
        if attempt is not command or not (silent and end.out_of_threads):
            break
        attempt = single_threaded(command)
    try:
        for item in answer.finish(end):
            yield item
    except UnknownTypeError:
        raise await with_suggestions(end, binary) from None


def stream_blocking(command: Command, answer: Answer[T], rg: Rg, timeout: float | None) -> Generator[T]:
    """Do what `stream()` does, blocking.

    Raises:
        TimeoutError: rg ran for longer than `timeout` seconds; the items until then were yielded.
    """
    if answer.full:
        return
    begun = time.monotonic()
    binary = find_usable_rg_blocking(command, rg, timeout)
    attempt = command
    while True:
        with BlockingChild(binary, attempt, timeout, begun) as child:
            silent = True
            while not answer.full and (chunk := child.read(whole=answer.ended)):
                silent = False
                for item in answer.feed(chunk):
                    if answer.full:
                        child.kill()
                    yield item
            if answer.full:
                return
            end = child.wait()
        if attempt is not command or not (silent and end.out_of_threads):
            break
        attempt = single_threaded(command)
    try:
        yield from answer.finish(end)
    except UnknownTypeError:
        raise with_suggestions_blocking(end, binary) from None


async def find_usable_rg(command: Command, rg: Rg) -> RgBinary:
    """Return an rg that can run the command; raises as `stream()` does."""
    check_cwd(command.cwd)
    binary = await resolve(rg)
    if command.needs:
        await in_thread(functools.partial(_check_needs, command, binary))
    return binary


def find_usable_rg_blocking(command: Command, rg: Rg, timeout: float | None) -> RgBinary:
    """Do what `find_usable_rg()` does, blocking; raise `TimeoutError` if installing rg takes over `timeout` seconds."""
    check_cwd(command.cwd)
    begun = time.monotonic()
    try:
        binary = find(rg, timeout=timeout)
    except BinaryError as error:
        if timeout is not None and time.monotonic() - begun >= timeout:
            raise TimeoutError(
                f"rg was not installed within timeout={timeout} seconds; allow more time, or install rg first"
            ) from error
        raise
    _check_needs(command, binary)
    return binary


def single_threaded(command: Command) -> Command:
    """Return the command for another try on a system that does not let rg start more threads (rg-facts 8)."""
    _LOGGER.info("rg could not start a thread; trying again with one thread")
    return command.single_threaded()


async def with_suggestions(end: Exit, binary: RgBinary) -> SearchError:
    """Return the error for an unknown type, with similar types if rg lists them within `SUGGESTION_SECONDS`."""
    types: FileTypes = {}
    with suppress(SearchError), anyio.move_on_after(SUGGESTION_SECONDS):
        types = await known_types(end.command.types(), binary)
    return end.failure(types)


def with_suggestions_blocking(end: Exit, binary: RgBinary) -> SearchError:
    """Do what `with_suggestions()` does, blocking."""
    types: FileTypes = {}
    with suppress(SearchError, TimeoutError):
        types = known_types_blocking(end.command.types(), binary, SUGGESTION_SECONDS)
    return end.failure(types)


async def known_types(command: Command, rg: Rg) -> FileTypes:
    """Return the file types that rg knows; `command` lists them."""
    async with AsyncChild(await resolve(rg), command) as child:
        chunks: list[bytes] = []
        while chunk := await child.read():
            chunks.append(chunk)
        return _types(chunks, await child.wait())


def known_types_blocking(command: Command, rg: Rg, timeout: float | None = None) -> FileTypes:
    """Do what `known_types()` does, blocking; raises `TimeoutError` after `timeout` seconds."""
    begun = time.monotonic()
    with BlockingChild(find(rg, timeout=timeout), command, timeout, begun) as child:
        return _types(list(iter(child.read, b"")), child.wait())


def _types(chunks: list[bytes], end: Exit) -> FileTypes:
    if end.returncode:
        raise end.failure()
    return decode_types(b"".join(chunks))


def _check_needs(command: Command, binary: RgBinary) -> None:
    for option, since in command.needs:
        if binary.version < since:
            raise CapabilityError(
                HintedText(
                    Hint(option, kind="correct"),
                    f" needs rg {format_version(since)} or later: {binary.path} is {format_version(binary.version)}",
                ),
                hint=HintedText(
                    "Leave ",
                    Hint(option, kind="omit"),
                    " out, or use a newer rg: ",
                    Hint(kind="install", target="ripwrap[bin]"),
                    ".",
                ),
            )

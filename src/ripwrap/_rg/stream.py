"""The two loops, asynchronous and blocking, that take rg's bytes from a child to an answer and yield what it makes.

All that differs between operations is in the answer; all that differs between the two colours is here, in `collect`
and in `process`.
"""

import functools
import logging
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import suppress
from typing import Protocol, TypeVar

import anyio

from ripwrap._rg.argv import Command
from ripwrap._rg.decoder import FileTypes, decode_types
from ripwrap._rg.exit import Exit
from ripwrap._rg.process import AsyncChild, BlockingChild, check_cwd
from ripwrap.binary.probe import RgBinary, dotted
from ripwrap.binary.resolver import Rg, find, in_thread, resolve
from ripwrap.errors import BinaryError, CapabilityError, SearchError, UnknownTypeError

_LOGGER = logging.getLogger("ripwrap")
_SUGGEST = 2.0  # Seconds that listing the types may take, for the sake of an error's text.

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Answer(Protocol[T_co]):
    """What turns rg's bytes into what the caller wants; both loops below drive it.

    Attributes:
        full: Whether nothing more is wanted.
        ended: Whether rg has said all that it had to say, as far as that can be told.
    """

    full: bool

    @property
    def ended(self) -> bool:
        """See above."""
        ...

    def feed(self, chunk: bytes) -> Iterator[T_co]:
        """What `chunk` completes."""
        ...

    def finish(self, end: Exit) -> Iterator[T_co]:
        """What is known only at the end; raises if rg failed."""
        ...


async def stream(command: Command, answer: Answer[T], rg: Rg) -> AsyncGenerator[T]:
    """Run rg and yield its answer; other tasks run between chunks.

    Raises:
        FileNotFoundError, NotADirectoryError, PermissionError: `cwd` is not a directory that can be entered.
        BinaryError: rg cannot be found or started.
        CapabilityError: This rg lacks something that was asked for.
        SearchError, DecodeError: As `answer` finds.
    """
    if answer.full:
        return
    binary = await able(command, rg)
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
    """As `stream()`, blocking.

    Raises:
        TimeoutError: rg ran for longer than `timeout` seconds; what it had written by then was yielded.
    """
    if answer.full:
        return
    begun = time.monotonic()
    binary = able_blocking(command, rg, timeout)
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


async def able(command: Command, rg: Rg) -> RgBinary:
    """An rg that can run the command; raises as `stream()` says."""
    check_cwd(command.cwd)
    binary = await resolve(rg)
    if command.needs:
        await in_thread(functools.partial(_check_needs, command, binary))
    return binary


def able_blocking(command: Command, rg: Rg, timeout: float | None) -> RgBinary:
    """As `able()`, blocking; raises `TimeoutError` if rg is still being installed after `timeout` seconds."""
    check_cwd(command.cwd)
    begun = time.monotonic()
    try:
        binary = find(rg, timeout=timeout)
    except BinaryError as error:
        if timeout is not None and time.monotonic() - begun >= timeout:
            raise TimeoutError(f"rg could not be installed within timeout={timeout} seconds") from error
        raise
    _check_needs(command, binary)
    return binary


def single_threaded(command: Command) -> Command:
    """The command to try once more on a system that lets rg start no more threads (rg-facts 8)."""
    _LOGGER.info("rg could start no thread; trying again with one")
    return command.single_threaded()


async def with_suggestions(end: Exit, binary: RgBinary) -> SearchError:
    """The error for an unknown type, with those that are like it, if rg tells them soon."""
    types: FileTypes = {}
    with suppress(SearchError), anyio.move_on_after(_SUGGEST):
        types = await known_types(end.command.types(), binary)
    return end.failure(types)


def with_suggestions_blocking(end: Exit, binary: RgBinary) -> SearchError:
    """As `with_suggestions()`, blocking."""
    types: FileTypes = {}
    with suppress(SearchError, TimeoutError):
        types = known_types_blocking(end.command.types(), binary, _SUGGEST)
    return end.failure(types)


async def known_types(command: Command, rg: Rg) -> FileTypes:
    """The file types that rg knows; `command` is one that lists them."""
    async with AsyncChild(await resolve(rg), command) as child:
        chunks: list[bytes] = []
        while chunk := await child.read():
            chunks.append(chunk)
        return _types(chunks, await child.wait())


def known_types_blocking(command: Command, rg: Rg, timeout: float | None = None) -> FileTypes:
    """As `known_types()`, blocking; raises `TimeoutError` after `timeout` seconds."""
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
                f"{option} needs rg {dotted(since)} or later: {binary.path} is {dotted(binary.version)}",
                hint=f'Leave {option} out, or use a newer rg: pip install "ripwrap[bin]".',
            )

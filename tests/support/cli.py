"""Functions that run the command line in this process, into a pipe or on a terminal."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from copy import copy
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cyclopts import App, ArgumentCollection

from ripwrap import cli

RIPWRAP = [sys.executable, "-m", "ripwrap"]
"""Start of the command line of a real program, which takes an interpreter and is slow."""


def run(*arguments: str, cwd: Path, code: int = 0, encoding: str = "utf-8") -> "subprocess.CompletedProcess[bytes]":
    """Run a command with its output in pipes of this encoding, and check its exit code."""
    printed, complained = io.BytesIO(), io.BytesIO()
    stdout, stderr = (io.TextIOWrapper(each, encoding=encoding, newline="\n") for each in (printed, complained))
    with chdir(cwd), redirect_stdout(stdout), redirect_stderr(stderr):
        returned = cli.run([*arguments])
    stdout.flush()  # as the interpreter does when it ends
    stderr.flush()
    done = subprocess.CompletedProcess(arguments, returned, printed.getvalue(), complained.getvalue())
    assert returned == code, done.stderr.decode()
    return done


def output(*arguments: str, cwd: Path, code: int = 0) -> str:
    """Run a command, check its exit code, and return what it printed to stdout."""
    return run(*arguments, cwd=cwd, code=code).stdout.decode()


def on_terminal(*arguments: str, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command on a pseudo-terminal of 40 columns and return its output; POSIX only."""
    import pty

    leader, follower = pty.openpty()
    with ThreadPoolExecutor(1) as reader:
        sent = reader.submit(read_terminal, leader)
        try:
            with open(follower, "w", encoding="utf-8") as terminal, patch.dict(os.environ):
                os.environ.pop("NO_COLOR", None)
                os.environ.update({"TERM": "xterm-256color", "COLUMNS": "40", **(environment or {})})
                with chdir(cwd), redirect_stdout(terminal), redirect_stderr(terminal):
                    returned = cli.run([*arguments])
        finally:
            shown = sent.result().decode().replace("\r\n", "\n")
            os.close(leader)
    assert returned == 0, shown
    return shown


def read_terminal(leader: int) -> bytes:
    """Return the bytes that a program writes to a pseudo-terminal, until it is closed.

    Linux hands them over in the background, so a single read may return the first of them only.
    """
    written = b""
    with suppress(OSError):  # Linux raises EIO once the other side is closed
        while chunk := os.read(leader, 65536):
            written += chunk
    return written


@contextmanager
def arguments_assembled_once() -> Iterator[None]:
    """Assemble the arguments of each command once, and give copies to later runs in this process.

    cyclopts assembles them in each run, which is most of the time of a run: `search` has eighty. A process of the real
    command line runs one command, so it gains nothing from this.
    """
    assemble = App.assemble_argument_collection
    known: dict[tuple[int, bool], tuple[App, ArgumentCollection]] = {}

    def assemble_once(app: App, *, parse_docstring: bool = False, **others: Any) -> ArgumentCollection:
        key = id(app), parse_docstring
        if key not in known:
            assert not others
            known[key] = app, assemble(app, parse_docstring=parse_docstring)
        return unparsed(known[key][1])

    with patch.object(App, "assemble_argument_collection", assemble_once):
        yield


def unparsed(arguments: ArgumentCollection) -> ArgumentCollection:
    """Return copies of arguments that no command line has been parsed into."""
    copies = {id(one): copy(one) for one in arguments}
    for one in copies.values():
        assert not one.tokens
        one.tokens = []
        one.children = ArgumentCollection(copies[id(child)] for child in one.children)  # type: ignore[no-untyped-call]
    return ArgumentCollection(copies.values())  # type: ignore[no-untyped-call]

"""Functions that run the command line in this process, into a pipe or on a terminal."""

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from unittest.mock import patch

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

"""A fake rg that misbehaves: each function is a behavior, and `write()` makes a program that runs some of them.

The program has the functions of `ripwrap.testing.behaviors`, too. The output is rg's JSON; every match has the line
`x`. Tests start the program a thousand times, so imports are in the functions that need them.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # `typing` takes long to import; type checkers know this name
if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn

if TYPE_CHECKING or "behaviors" not in sys.modules:
    from ripwrap.testing.behaviors import BEGIN, FOR_EVER, MATCH, SUMMARY, pour, say
else:  # in the program of `write()`, which would start half as fast if it imported ripwrap
    from behaviors import BEGIN, FOR_EVER, MATCH, SUMMARY, pour, say


def write(path: Path, body: str, says: str | None = "ripgrep 15.2.0") -> Path:
    """Write a program that runs `body`; with `--version` it prints `says`, unless that is None."""
    import textwrap

    from ripwrap import testing

    about = f"if '--version' in sys.argv: sys.exit(print({says!r}))" if says is not None else ""
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [tests, os.path.dirname(os.path.abspath(testing.__file__))]
    ours = f"sys.path[:0] = {folders!r}; from behaviors import *; from support.fake_rg import *"
    path.write_text(f"#!{sys.executable} -ES\nimport os, sys, time\n{about}\n{ours}\n{textwrap.dedent(body)}")
    path.chmod(0o755)
    return path


def real(rg: str) -> int:
    """Run an rg, and return its exit code."""
    import subprocess

    return subprocess.run([rg, *sys.argv[1:]], check=False).returncode


def pauses(rg: str, folder: str) -> NoReturn:
    """Run an rg, create the file `listed` in a folder, and exit when the folder has a file `go`."""
    code = real(rg)
    with open(os.path.join(folder, "listed"), "a") as file:
        file.write("x")
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.005)
    sys.exit(code)


def a_byte_at_a_time() -> None:
    """Write single bytes, so that nearly every read ends within a record."""
    for byte in f"{BEGIN}\n{MATCH}\n{MATCH}\n{SUMMARY}\n".encode():
        os.write(1, bytes([byte]))


def a_record_too_long() -> None:
    """Write a record of 25 MB between two others."""
    say(BEGIN, MATCH)
    pour(b'{"type":"match","data":{"lines":{"text":"' + b"x" * 1_000_000, 25)
    say("", MATCH, SUMMARY)


def an_endless_record() -> None:
    """Write a record that never ends."""
    say(BEGIN, MATCH)
    pour(b"x" * 65_536, sys.maxsize)


def no_newline_at_the_end() -> None:
    """End without a newline after the last record."""
    say(BEGIN, MATCH, SUMMARY, end="")


def mute() -> None:
    """Write nothing and wait without end."""
    time.sleep(FOR_EVER)


def lingers(*lines: str) -> None:
    """Close stdout and do not exit."""
    say(*lines)
    os.close(1)
    time.sleep(FOR_EVER)


def stopped() -> None:
    """Write a match and stop, as after Ctrl-Z."""
    import signal

    say(BEGIN, MATCH)
    os.kill(os.getpid(), signal.SIGSTOP)


def with_a_grandchild(*lines: str) -> None:
    """Exit at once; a child keeps the pipe open, writes `lines` after a while, and does not exit."""
    say(BEGIN, MATCH, SUMMARY)
    if not os.fork():
        _sign()
        for line in lines:
            time.sleep(0.1)
            say(line)
        time.sleep(FOR_EVER)
    _await_signature()


def list_files(number: int) -> None:
    """List a path this number of times."""
    os.write(1, b"a\0" * number)


def goes_on_as_another(seconds: float) -> None:
    """Exit at once; a child lists one more path after a while, like rg as the child of a launcher."""
    if not os.fork():
        time.sleep(seconds)
        list_files(1)


def with_a_daemon() -> None:
    """Write a complete answer, but leave a process that keeps the pipe open."""
    say(BEGIN, MATCH, SUMMARY)
    holds_the_pipe()


def holds_the_pipe() -> None:
    """Exit with 0; a child in another session keeps the pipe open."""
    if not os.fork():
        os.setsid()
        _sign()
        time.sleep(FOR_EVER)
    _await_signature()


def leaves_a_grandchild_behind() -> None:
    """Exit with 0; a child closes all pipes and does not exit."""
    say(BEGIN, MATCH, SUMMARY)
    if not os.fork():
        os.closerange(0, 3)
        _sign()
        time.sleep(FOR_EVER)
    _await_signature()


def _sign() -> None:
    with open("signing", "w") as file:
        file.write(str(os.getpid()))
    os.rename("signing", "grandchild")


def _await_signature() -> None:
    while not os.path.exists("grandchild"):
        time.sleep(0.001)

"""A fake rg that misbehaves: each function is a behaviour, and `write()` makes a program that runs some of them.

The output is rg's JSON; every match has the line `x`. Tests start the program a thousand times, so imports are in the
functions that need them.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # `typing` takes long to import; type checkers know this name
if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn

MATCH = (
    '{"type":"match","data":{"path":{"text":"f"},"lines":{"text":"x\\n"},"line_number":1,"absolute_offset":0,'
    '"submatches":[]}}'
)
ELAPSED = '{"human":"0s","nanos":1,"secs":0}'
SUMMARY = (
    f'{{"data":{{"elapsed_total":{ELAPSED},"stats":{{"bytes_printed":1,"bytes_searched":1,"elapsed":{ELAPSED},'
    '"matched_lines":1,"matches":1,"searches":1,"searches_with_match":1}},"type":"summary"}'
)
BEGIN = '{"type":"begin","data":{"path":{"text":"f"}}}'
PERMISSION_DENIED = b"rg: ./d: Permission denied (os error 13)\n"

FOR_EVER = 3600  # seconds, much longer than the timeout of a test


def write(path: Path, body: str, says: str | None = "ripgrep 15.2.0") -> Path:
    """Write a program that runs `body`; with `--version` it prints `says`, unless that is None."""
    import textwrap

    about = f"if '--version' in sys.argv: sys.exit(print({says!r}))" if says is not None else ""
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    ours = f"sys.path.insert(0, {tests!r}); from support.fake_rg import *"
    path.write_text(f"#!{sys.executable} -ES\nimport os, sys, time\n{about}\n{ours}\n{textwrap.dedent(body)}")
    path.chmod(0o755)
    return path


def say(*lines: str, end: str = "\n") -> None:
    """Write lines to stdout at once."""
    os.write(1, ("\n".join(lines) + end).encode())


def pour(chunk: bytes, times: int, descriptor: int = 1) -> None:
    """Write a chunk many times."""
    with open(descriptor, "wb", closefd=False) as stream:
        stream.writelines(chunk for _ in range(times))


def begin() -> None:
    """Write the record that begins a file."""
    say(BEGIN)


def end() -> None:
    """Write the last record, the summary."""
    say(SUMMARY)


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


def slow(matches: int = 5) -> None:
    """Write matches slowly."""
    begin()
    for _ in range(matches):
        time.sleep(0.02)
        say(MATCH)
    end()


def a_byte_at_a_time() -> None:
    """Write single bytes, so that nearly every read ends within a record."""
    for byte in f"{BEGIN}\n{MATCH}\n{MATCH}\n{SUMMARY}\n".encode():
        os.write(1, bytes([byte]))


def noisy() -> None:
    """Write 100 MB to stderr before a match."""
    times = 100_000_000 // len(PERMISSION_DENIED) // 1000
    pour(PERMISSION_DENIED * 1000, times, descriptor=2)
    say(BEGIN, MATCH, SUMMARY)
    sys.exit(2)


def killed(by: int = 11) -> None:
    """Kill itself in the middle of a record, by default with SIGSEGV."""
    say(BEGIN, MATCH, MATCH[:40], end="")
    os.kill(os.getpid(), by)


def exits_halfway(code: int) -> NoReturn:
    """Exit without a summary."""
    say(BEGIN, MATCH)
    sys.exit(code)


def half_a_record() -> None:
    """Exit with 0 in the middle of a record."""
    say(BEGIN, MATCH, MATCH[:40], end="")


def a_record_too_long() -> None:
    """Write a record of 25 MB between two others."""
    say(BEGIN, MATCH)
    pour(b'{"type":"match","data":{"lines":{"text":"' + b"x" * 1_000_000, 25)
    say("", MATCH, SUMMARY)


def an_endless_record() -> None:
    """Write a record that never ends."""
    say(BEGIN, MATCH)
    pour(b"x" * 65_536, sys.maxsize)


def endless() -> None:
    """Write matches without end."""
    begin()
    pour(f"{MATCH}\n".encode() * 1000, sys.maxsize)


def junk(what: bytes) -> None:
    """Write a line that rg never writes."""
    say(BEGIN, MATCH)
    os.write(1, what + b"\n")
    end()


def no_newline_at_the_end() -> None:
    """End without a newline after the last record."""
    say(BEGIN, MATCH, SUMMARY, end="")


def silent() -> None:
    """Write one match and then wait without end."""
    say(BEGIN, MATCH)
    time.sleep(FOR_EVER)


def mute() -> None:
    """Write nothing and wait without end."""
    time.sleep(FOR_EVER)


def lingers(*lines: str) -> None:
    """Close stdout and do not exit."""
    say(*lines)
    os.close(1)
    time.sleep(FOR_EVER)


def ignores_signals() -> None:
    """Ignore every signal that can be ignored."""
    import signal

    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if number < signal.SIGRTMIN:
            signal.signal(number, signal.SIG_IGN)
    silent()


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

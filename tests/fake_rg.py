"""An rg that misbehaves: each function is what one does when it runs, and `write()` makes it a program.

What they print is rg's: a match has the line `x`, and there is one for each time that `match()` is called.
"""

import json
import os
import signal
import sys
import textwrap
import time
from pathlib import Path
from typing import NoReturn

DATA = {"path": {"text": "f"}, "lines": {"text": "x\n"}, "line_number": 1, "absolute_offset": 0, "submatches": []}
MATCH = json.dumps({"type": "match", "data": DATA}, separators=(",", ":"))
STATS = {
    "bytes_printed": 1,
    "bytes_searched": 1,
    "elapsed": {"human": "0s", "nanos": 1, "secs": 0},
    "matched_lines": 1,
    "matches": 1,
    "searches": 1,
    "searches_with_match": 1,
}
SUMMARY = json.dumps(
    {"data": {"elapsed_total": {"human": "0s", "nanos": 1, "secs": 0}, "stats": STATS}, "type": "summary"}
)
BEGIN = '{"type":"begin","data":{"path":{"text":"f"}}}'
PERMISSION_DENIED = b"rg: ./d: Permission denied (os error 13)\n"

FOR_EVER = 3600  # Seconds; whoever waits so long has failed.


def write(path: Path, body: str, says: str | None = "ripgrep 15.2.0") -> Path:
    """Make a program that does what `body` says; asked for its version, it says what is given, if anything is."""
    about = f"if '--version' in sys.argv: sys.exit(print({says!r}))" if says is not None else ""
    ours = f"sys.path.insert(0, {str(Path(__file__).parent)!r}); from fake_rg import *"
    path.write_text(f"#!{sys.executable} -ES\nimport json, os, sys, time\n{about}\n{ours}\n{textwrap.dedent(body)}")
    path.chmod(0o755)
    return path


def say(*lines: str, end: str = "\n") -> None:
    """Write lines to stdout at once."""
    os.write(1, ("\n".join(lines) + end).encode())


def pour(chunk: bytes, times: int, descriptor: int = 1) -> None:
    """Write much."""
    with open(descriptor, "wb", closefd=False) as stream:
        stream.writelines(chunk for _ in range(times))


def begin() -> None:
    """Come to a file."""
    say(BEGIN)


def end() -> None:
    """End as rg does."""
    say(SUMMARY)


def slow(matches: int = 5) -> None:
    """Takes its time."""
    begin()
    for _ in range(matches):
        time.sleep(0.02)
        say(MATCH)
    end()


def a_byte_at_a_time() -> None:
    """Writes so that nearly every read ends within a record."""
    for byte in f"{BEGIN}\n{MATCH}\n{MATCH}\n{SUMMARY}\n".encode():
        os.write(1, bytes([byte]))


def noisy() -> None:
    """Writes 100 MB to stderr before it writes a match."""
    times = 100_000_000 // len(PERMISSION_DENIED) // 1000
    pour(PERMISSION_DENIED * 1000, times, descriptor=2)
    say(BEGIN, MATCH, SUMMARY)
    sys.exit(2)


def killed(by: int = signal.SIGSEGV) -> None:
    """Dies of a signal in the middle of a record."""
    say(BEGIN, MATCH, MATCH[:40], end="")
    os.kill(os.getpid(), by)


def exits_halfway(code: int) -> NoReturn:
    """Ends without a summary."""
    say(BEGIN, MATCH)
    sys.exit(code)


def half_a_record() -> None:
    """Ends within a record as if nothing were wrong."""
    say(BEGIN, MATCH, MATCH[:40], end="")


def a_record_too_long() -> None:
    """Writes a record of 25 MB between two others."""
    say(BEGIN, MATCH)
    pour(b'{"type":"match","data":{"lines":{"text":"' + b"x" * 1_000_000, 25)
    say("", MATCH, SUMMARY)


def an_endless_record() -> None:
    """Never comes to a newline."""
    say(BEGIN, MATCH)
    pour(b"x" * 65_536, sys.maxsize)


def endless() -> None:
    """Never stops finding something."""
    begin()
    pour(f"{MATCH}\n".encode() * 1000, sys.maxsize)


def junk(what: bytes) -> None:
    """Writes what rg never writes."""
    say(BEGIN, MATCH)
    os.write(1, what + b"\n")
    end()


def no_newline_at_the_end() -> None:
    """Ends its last record by ending."""
    say(BEGIN, MATCH, SUMMARY, end="")


def silent() -> None:
    """Finds something, and then nothing, for ever."""
    say(BEGIN, MATCH)
    time.sleep(FOR_EVER)


def mute() -> None:
    """Says nothing, for ever."""
    time.sleep(FOR_EVER)


def lingers(*lines: str) -> None:
    """Closes its stdout and does not exit."""
    say(*lines)
    os.close(1)
    time.sleep(FOR_EVER)


def ignores_signals() -> None:
    """Ignores every signal that can be ignored."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if number < signal.SIGRTMIN:
            signal.signal(number, signal.SIG_IGN)
    silent()


def stopped() -> None:
    """Is stopped, as by Ctrl-Z."""
    say(BEGIN, MATCH)
    os.kill(os.getpid(), signal.SIGSTOP)


def with_a_grandchild(*lines: str) -> None:
    """Ends at once; a process that it has started holds the pipe, writes `lines` a while later, and does not exit."""
    say(BEGIN, MATCH, SUMMARY)
    if not os.fork():
        _sign()
        for line in lines:
            time.sleep(0.1)
            say(line)
        time.sleep(FOR_EVER)
    _await_signature()


def list_files(number: int) -> None:
    """Lists so many."""
    os.write(1, b"a\0" * number)


def goes_on_as_another(seconds: float) -> None:
    """Ends at once; a process that it has started lists one more after a while, as one that some launcher leaves."""
    if not os.fork():
        time.sleep(seconds)
        list_files(1)


def with_a_daemon() -> None:
    """As rg does, but for what `holds_the_pipe()`."""
    say(BEGIN, MATCH, SUMMARY)
    holds_the_pipe()


def holds_the_pipe() -> None:
    """Ends well; a process that it has started, in a session of its own, holds the pipe."""
    if not os.fork():
        os.setsid()
        _sign()
        time.sleep(FOR_EVER)
    _await_signature()


def leaves_a_grandchild_behind() -> None:
    """Ends well; a process that it has started has closed all pipes and does not exit."""
    say(BEGIN, MATCH, SUMMARY)
    if not os.fork():
        os.closerange(0, 3)
        _sign()
        time.sleep(FOR_EVER)
    _await_signature()


def _sign() -> None:
    Path("signing").write_text(str(os.getpid()))
    Path("signing").rename("grandchild")


def _await_signature() -> None:
    while not Path("grandchild").exists():
        time.sleep(0.001)

"""Program that `ripwrap.testing.misbehaving()` runs in place of rg. Its first argument names the function to run.

The output is rg's JSON; every match has the line `x`. Tests start the program often, so it imports little, and nothing
of ripwrap.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False  # importing it from `typing` takes long; type checkers take this name for True
if TYPE_CHECKING:
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


def say(*lines: str, end: str = "\n") -> None:
    """Write lines to stdout, with one system call and without a buffer."""
    os.write(1, ("\n".join(lines) + end).encode())


def pour(chunk: bytes, times: int, descriptor: int = 1) -> None:
    """Write a chunk many times."""
    with open(descriptor, "wb", closefd=False) as stream:
        stream.writelines(chunk for _ in range(times))


def silent() -> None:
    """Write one match and then wait without end."""
    say(BEGIN, MATCH)
    time.sleep(FOR_EVER)


def slow(matches: int = 5) -> None:
    """Write matches, with a pause of 0.02 seconds before each."""
    say(BEGIN)
    for _ in range(matches):
        time.sleep(0.02)
        say(MATCH)
    say(SUMMARY)


def endless() -> None:
    """Write matches without end."""
    say(BEGIN)
    pour(f"{MATCH}\n".encode() * 1000, sys.maxsize)


def fails(code: int = 2, error: str = "rg: an error of the misbehaving rg\n") -> NoReturn:
    """Write a match to stdout and an error to stderr, and exit with `code`, without rg's summary."""
    say(BEGIN, MATCH)
    os.write(2, error.encode())
    sys.exit(code)


def killed(by: int = 11) -> None:
    """Write a match and the beginning of another line, and kill this process, by default with SIGSEGV."""
    say(BEGIN, MATCH, MATCH[:40], end="")
    os.kill(os.getpid(), by)


def truncated() -> None:
    """Write a match and the beginning of another line, and exit with 0."""
    say(BEGIN, MATCH, MATCH[:40], end="")


def garbage(line: bytes = b"this is no JSON") -> None:
    """Write a match, a line that rg never writes, and a summary."""
    say(BEGIN, MATCH)
    os.write(1, line + b"\n")
    say(SUMMARY)


def noisy() -> None:
    """Write 100 MB to stderr, then a match, and exit with 2."""
    times = 100_000_000 // len(PERMISSION_DENIED) // 1000
    pour(PERMISSION_DENIED * 1000, times, descriptor=2)
    say(BEGIN, MATCH, SUMMARY)
    sys.exit(2)


def ignores_signals() -> None:
    """Ignore the signals that can be ignored, except real-time signals; then write one match and wait without end."""
    if sys.platform != "win32":
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if number < signal.SIGRTMIN:
                signal.signal(number, signal.SIG_IGN)
    silent()


if __name__ == "__main__":
    globals()[sys.argv[1]]()

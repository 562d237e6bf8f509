"""Processes of an index that parse or split files."""

import gc
import sys
from contextlib import suppress

import psutil

from ripwrap._code.treesitter.worker import shared_reader
from ripwrap._system.subprocess.worker import MAX_ADDRESS_BYTES, MAX_MEMORY_BYTES

FATAL = "/*\n" * 10_000
"""Text on which the Python grammar takes all memory and crashes."""


def parsers() -> list[psutil.Process]:
    """Return the running parsers of indexes: not of those without a reference, nor the one that calls share."""
    gc.collect()
    shared_reader().close()
    return running("treesitter.worker")


def with_little_memory(parser: psutil.Process) -> None:
    """Check the limit of a parser, and lower it from 2 GiB to 256 MiB: it crashes ten times as fast at `FATAL`."""
    if sys.platform == "linux":
        assert parser.rlimit(psutil.RLIMIT_DATA)[0] == MAX_MEMORY_BYTES
        assert parser.rlimit(psutil.RLIMIT_AS)[0] == MAX_ADDRESS_BYTES
        parser.rlimit(psutil.RLIMIT_AS, (MAX_ADDRESS_BYTES // 8, MAX_ADDRESS_BYTES // 8))


def running(module: str) -> list[psutil.Process]:
    """Return the running children of this process that serve with a module."""
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # it may have just ended
            if module in " ".join(child.cmdline()):
                found.append(child)
    return found

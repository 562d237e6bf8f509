"""The processes that parse source for an index."""

import gc
from contextlib import suppress

import psutil


def parsers() -> list[psutil.Process]:
    """Return those of this process that run, without those of indexes that nothing refers to any more."""
    gc.collect()
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # it may have just been reaped
            if "treesitter.worker" in " ".join(child.cmdline()):
                found.append(child)
    return found

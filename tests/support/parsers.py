"""Processes that parse source for an index."""

import gc
from contextlib import suppress

import psutil


def parsers() -> list[psutil.Process]:
    """Return the running parsers of this process, after those of unreferenced indexes have been collected."""
    gc.collect()
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # it may have just ended
            if "treesitter.worker" in " ".join(child.cmdline()):
                found.append(child)
    return found

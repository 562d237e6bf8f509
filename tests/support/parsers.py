"""Processes of an index that parse or split files."""

import gc
from contextlib import suppress

import psutil


def parsers() -> list[psutil.Process]:
    """Return the running parsers of this process, after those of unreferenced indexes have been collected."""
    gc.collect()
    return running("treesitter.worker")


def running(module: str) -> list[psutil.Process]:
    """Return the running children of this process that serve with a module."""
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # it may have just ended
            if module in " ".join(child.cmdline()):
                found.append(child)
    return found

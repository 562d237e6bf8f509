"""The processes that parse source for an index."""

from contextlib import suppress

import psutil


def parsers() -> list[psutil.Process]:
    """Return those of this process that run."""
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # it may have just been reaped
            if "treesitter.worker" in " ".join(child.cmdline()):
                found.append(child)
    return found

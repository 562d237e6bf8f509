"""Counters: how often rg lists files, and the inotify watches that make listings unnecessary."""

import os
from pathlib import Path

from ripwrap.binary import RgBinary


class CountingRg:
    """Rg that logs each listing of files.

    Attributes:
        path: Path of the program.
    """

    def __init__(self, folder: Path, rg: RgBinary) -> None:
        self.path = folder / "counting-rg"
        self._log = folder / "listings"
        note = f'case " $* " in *" --files "*) echo . >> "{self._log}";; esac'
        self.path.write_text(f'#!/bin/sh\n{note}\nexec "{rg.path}" "$@"\n')
        self.path.chmod(0o755)

    @property
    def listings(self) -> int:
        """Number of listings so far."""
        return len(self._log.read_text().splitlines()) if self._log.exists() else 0


def inotify_instances() -> int:
    """Return the number of inotify instances of this process (Linux)."""
    links = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sum(os.readlink(link) == "anon_inode:inotify" for link in links if link.is_symlink())

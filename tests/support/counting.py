"""Counters: executed lines, and listings of rg."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from ripwrap.binary import RgBinary


class CountingRg:
    """rg that logs each listing of files.

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


def executed_lines(work: Callable[[], object]) -> int:
    """Return the number of lines of Python that a function executes; a loop counts each time its line begins again."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count

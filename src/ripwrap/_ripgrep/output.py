"""Collect the whole output of a run of rg, for runs whose output is short."""

from collections.abc import Callable

from ripwrap._ripgrep.exit_status import Exit


class WholeOutput:
    """Collector of the whole output of rg."""

    ended = False

    def __init__(self, check: Callable[[Exit], object]) -> None:
        """Set the function that raises an error if rg failed."""
        self.chunks: list[bytes] = []
        self.timed_out = False
        self._check = check

    def feed(self, chunk: bytes) -> None:
        """Store a chunk of rg's output."""
        self.chunks.append(chunk)

    def end_run(self, end: Exit) -> None:
        """Raise an error if rg failed."""
        self._check(end)

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Store the exit of rg, and whether rg was stopped at its time limit."""
        self.end, self.timed_out = end, timed_out


def refuse_failure(end: Exit) -> None:
    """Raise `SearchError` if rg did not exit with 0."""
    if end.returncode:
        raise end.failure()

"""Progress bars on stderr."""

import math
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from ripwrap.cli.errors import complain
from ripwrap.cli.terminal import styled_console

if TYPE_CHECKING:
    from ripwrap.index import Progress as Done

_REDRAW_SECONDS = 0.1
"""Minimum number of seconds between two updates of a `RootsBar`."""


class _Bar:
    """Base class of progress bars on stderr. A bar is drawn only if stderr is a terminal."""

    def __init__(self, *columns: ProgressColumn, **options: Any) -> None:
        described = TextColumn("{task.description}"), BarColumn()
        self._bar = Progress(*described, *columns, console=styled_console(stderr=True), **options)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        if self._bar.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar.console.is_terminal:
            cut = kind is not None and issubclass(kind, KeyboardInterrupt)
            self._bar.live.transient = self._bar.live.transient or cut
            self._bar.stop()
            if cut:
                complain("interrupted")

    def _show(self, what: str, done: int, total: int | None, **fields: Any) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, total=total, **fields)
        self._bar.update(self._tasks[what], completed=done, total=total)


class DownloadBar(_Bar):
    """Progress bar of a download. If stderr is not a terminal, one line is printed at the start instead."""

    def __init__(self) -> None:
        super().__init__(DownloadColumn(), TransferSpeedColumn())

    def __call__(self, done: int, total: int | None) -> None:
        """Show how many bytes have arrived."""
        if not self._tasks and not self._bar.console.is_terminal:
            print(f"downloading rg ({f'{total} bytes' if total else 'of unknown size'})", file=sys.stderr)
        self._show("downloading rg", done, total)


class RootsBar(_Bar):
    """Progress bar of a search in many roots (directories). If stderr is not a terminal, nothing is shown.

    During the search, matches are printed to stdout. A thread that refreshes the bar could write between two matches.
    So this bar has no thread: it is drawn only when it is called, and `hide()` removes it before a match is printed.
    """

    def __init__(self) -> None:
        columns = MofNCompleteColumn(), TextColumn("roots"), TimeRemainingColumn()
        super().__init__(*columns, transient=True, auto_refresh=False, redirect_stdout=False)
        self._drawn_at = -math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.hide()
        if kind is not None and issubclass(kind, KeyboardInterrupt) and self._tasks:
            complain("interrupted")

    def __call__(self, done: int, total: int) -> None:
        """Show how many roots were searched; redraw the bar at most ten times per second, and after the last root."""
        now = time.monotonic()
        if self._bar.console.is_interactive and (done == total or now - self._drawn_at >= _REDRAW_SECONDS):
            self._drawn_at = now
            self._bar.start()
            self._show("searching", done, total)
            self._bar.refresh()

    def hide(self) -> None:
        """Remove the bar from the terminal until the next call."""
        if self._bar.live.is_started:
            self._bar.stop()


class IndexBar(_Bar):
    """Progress bar of the refresh of an index. It is called from a worker thread.

    If stderr is not a terminal, nothing is shown.
    """

    def __init__(self) -> None:
        unit = TextColumn("{task.fields[unit]}")
        super().__init__(MofNCompleteColumn(), unit, TimeRemainingColumn(), transient=True)

    def __call__(self, done: "Done") -> None:
        """Show how many files were read and how many texts were embedded."""
        self._show("indexing", done.files, done.total, unit="file" if done.total == 1 else "files")
        if done.to_embed:
            self._show("embedding", done.embedded, done.to_embed, unit="text" if done.to_embed == 1 else "texts")

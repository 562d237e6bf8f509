"""What is said to people: exit codes, messages on stderr and how errors are phrased, colors, and progress bars."""

import errno
import io
import math
import os
import shlex
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, Self

from ripwrap._text import shown
from ripwrap.cli.command import allowed_values, flag_name
from ripwrap.options import option_hints

if TYPE_CHECKING:
    from pydantic import ValidationError
    from rich.progress import Progress, ProgressColumn, TaskID

    from ripwrap.index import Progress as Done


FOUND, NOTHING, FAILED = 0, 1, 2
"""Exit codes, the same as rg's: something was found, nothing was found, an error."""


def complain(text: str) -> None:
    """Flush stdout, then print an error or another message to stderr, with `ripwrap: ` before it.

    A stderr that is full, closed, or a pipe without a reader changes neither results nor the exit code.
    """
    if sys.stdout is not None:
        sys.stdout.flush()
    say(f"ripwrap: {shown(text, lines=True)}")


def say(text: str) -> None:
    """Print a line to stderr, if it can be written."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        sys.stderr = io.StringIO()  # the interpreter would write what is left in the old one, and exit with 120


def file_error(error: OSError) -> str:
    """Return an error message about a file that the user named, which says what to do."""
    advice = {errno.ENOENT: "check the path", errno.EISDIR: "name a file", errno.ENOTDIR: "check the path"}
    return f"{shown(str(error.filename))}: {error.strerror}; {advice.get(error.errno or 0, 'check its permissions')}"


def glob_hint(path: object) -> str:
    """Return the end of an error about a missing path that looks like a glob, which no shell has expanded."""
    is_glob = isinstance(path, str) and any(one in path for one in "*?[")
    return f"; did you mean -g {shlex.quote(shown(str(path)))}?" if is_glob else ""


def invalid_options(error: "ValidationError") -> Iterator[str]:
    """Yield an error message for each option with a wrong value."""
    hints = option_hints()
    given = {str(problem["loc"][0]): problem for problem in reversed(error.errors())}
    for name, problem in reversed(given.items()):
        allowed = allowed_values(hints[name].__origin__) if name in hints else ""
        if problem["type"] == "less_than_equal":
            allowed = f"{problem.get('ctx', {})['le']} or less"
        yield (
            f"{flag_name(name)} must be {allowed}, got {problem['input']}"
            if allowed
            else (f"{flag_name(name)}: {problem['msg']}")
        )


When = Literal["auto", "always", "never", "ansi"]

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "magenta": "35", "cyan": "36", "bold green": "1;32"}
"""Codes of the styles (ECMA-48)."""


def shows_color(color: When) -> bool:
    """Return True if texts are printed to stdout in color.

    For `auto`, stdout must be a terminal with colors, or FORCE_COLOR or TTY_COMPATIBLE must ask for colors. NO_COLOR
    (https://no-color.org), and the terminals `dumb` and `unknown`, have none.
    """
    if color != "auto":
        return color != "never"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE") == "1":
        return True
    return sys.stdout.isatty() and os.environ.get("TTY_COMPATIBLE") != "0" and _reads_escapes()


def _reads_escapes() -> bool:
    """Return True if the terminal reads escape sequences, which old consoles of Windows do not."""
    if sys.platform != "win32":
        return True
    import nt  # late: only Windows has it

    asks = getattr(nt, "_supports_virtual_terminal", None)  # Python 3.13 and newer
    return bool(asks()) if asks is not None else "WT_SESSION" in os.environ


def styled(text: str, style: str, *, colored: bool) -> str:
    """Return a text with the escape sequences of a style, if it is `colored`."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if colored and style else text


def colored_diff(diff: str, *, colored: bool) -> str:
    """Return the unified diff of one file as a terminal shows it, with the colors of git if it is `colored`."""
    styles = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}
    lines = shown(diff, lines=True).removesuffix("\n").split("\n")
    return "".join(
        f"{styled(line, 'bold' if number < 2 else styles.get(line[:1], ''), colored=colored)}\n"
        for number, line in enumerate(lines)
    )


_REDRAW_SECONDS = 0.1
"""Minimum number of seconds between two updates of a `RootsBar`."""


class _Bar:
    """Base class of progress bars on stderr. Without a terminal or without rich, nothing is drawn."""

    def __init__(self, *columns: str, **options: Any) -> None:
        """Make a bar that shows these columns: texts of tasks, or classes of `rich.progress`."""
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        if not sys.stderr.isatty():
            return
        try:
            from rich import progress
            from rich.console import Console
        except ModuleNotFoundError:
            return
        made: list[ProgressColumn] = [
            getattr(progress, one)() if one.isidentifier() else progress.TextColumn(one)
            for one in ("{task.description}", "BarColumn", *columns)
        ]
        console = Console(highlight=False, soft_wrap=True, stderr=True)
        if console.is_terminal:
            self._bar = progress.Progress(*made, console=console, **options)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar:
            cut = kind is not None and issubclass(kind, KeyboardInterrupt)
            self._bar.live.transient = self._bar.live.transient or cut
            self._bar.stop()
            if cut:
                complain("interrupted")

    def _show(self, what: str, done: int, total: int | None, **fields: Any) -> None:
        if not self._bar:
            return
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, total=total, **fields)
        self._bar.update(self._tasks[what], completed=done, total=total)


class DownloadBar(_Bar):
    """Progress bar of a download. If none is drawn, one line is printed at the start instead."""

    def __init__(self) -> None:
        super().__init__("DownloadColumn", "TransferSpeedColumn")
        self._said = False

    def __call__(self, done: int, total: int | None) -> None:
        """Show how many bytes have arrived."""
        if not self._bar and not self._said:
            say(f"downloading rg ({f'{total} bytes' if total else 'of unknown size'})")
            self._said = True
        self._show("downloading rg", done, total)


class RootsBar(_Bar):
    """Progress bar of a search in many roots. It has no thread, which could write between two matches on stdout."""

    def __init__(self) -> None:
        columns = "MofNCompleteColumn", "{task.fields[unit]}", "TimeRemainingColumn"
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
        bar = self._bar
        if bar and bar.console.is_interactive and (done == total or now - self._drawn_at >= _REDRAW_SECONDS):
            self._drawn_at = now
            bar.start()
            self._show("searching", done, total, unit="roots")
            bar.refresh()

    def hide(self) -> None:
        """Remove the bar from the terminal until the next call."""
        if self._bar and self._bar.live.is_started:
            self._bar.stop()


class IndexBar(_Bar):
    """Progress bar of the refresh of an index. It is called from a worker thread."""

    def __init__(self) -> None:
        super().__init__("MofNCompleteColumn", "{task.fields[unit]}", "TimeRemainingColumn", transient=True)

    def __call__(self, done: "Done") -> None:
        """Show how many files were read and how many texts were embedded."""
        self._show("indexing", done.files, done.total, unit="file" if done.total == 1 else "files")
        if done.to_embed:
            self._show("embedding", done.embedded, done.to_embed, unit="text" if done.to_embed == 1 else "texts")

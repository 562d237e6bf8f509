"""`python -m ripwrap` and the `ripwrap` command."""

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import NoReturn

_INTERRUPTED = 130
_MOMENT = 1.0  # Seconds.
_CURSOR = b"\x1b[?25h"
"""Shows it again, where a bar has hidden it."""


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        try:
            from ripwrap.cli import run

            sys.exit(run())
        except ModuleNotFoundError as error:
            if error.name not in ("cyclopts", "rich"):
                raise
            print(f'ripwrap: the command line needs {error.name}: pip install "ripwrap[cli]"', file=sys.stderr)
            sys.exit(2)
    except KeyboardInterrupt:  # while modules were loaded, or once more while it was ending
        _end()
    except SystemExit as end:
        if end.code != _INTERRUPTED:
            raise
        _end()


def _end() -> NoReturn:
    """End after Ctrl-C: threads have a moment, and those that nobody has told, which may wait for ever, no more."""
    signal.signal(signal.SIGINT, _give_up)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(_MOMENT)
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - an rg that nobody has ended by now
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(_INTERRUPTED)


def _give_up(_number: int, _frame: FrameType | None) -> None:
    if os.isatty(2):
        os.write(2, _CURSOR)
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()

"""Entry point of `python -m ripwrap` and of the command `ripwrap`."""

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import NoReturn

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C, as a shell reports it: 128 plus the number of SIGINT."""

THREAD_GRACE = 1.0
"""Maximum number of seconds to wait for each thread to end after Ctrl-C."""

SHOW_CURSOR = b"\x1b[?25h"
"""Escape sequence that shows the cursor again after a progress bar has hidden it."""


def main() -> None:
    """Run the command line, and exit with its code."""
    try:
        try:
            _run()
        except KeyboardInterrupt:  # Ctrl-C during imports, or a second Ctrl-C while the command ends
            _end()
        except SystemExit as end:
            if end.code != EXIT_INTERRUPTED:
                raise
            _end()
    except KeyboardInterrupt:  # another Ctrl-C before `_end()` has set its handler
        _end()


def _run() -> NoReturn:
    if sys.argv[1:2] != ["mcp"]:  # a program that runs for long may be traced by a plugin
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # Pydantic would look for one in each package
    from ripwrap.cli import run  # late: Ctrl-C may come during the import

    sys.exit(run())


def _end() -> NoReturn:
    """End the process with `EXIT_INTERRUPTED` after Ctrl-C.

    The interpreter waits for all threads except daemon threads before it ends, and a thread may never end. So this
    function waits at most `THREAD_GRACE` seconds for each of these threads, and calls the functions registered with
    `atexit`. Then it ends the process without the rest of the interpreter's cleanup.
    """
    signal.signal(signal.SIGINT, _give_up)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(THREAD_GRACE)
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - these functions kill every running rg
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(EXIT_INTERRUPTED)


def _give_up(_number: int, _frame: FrameType | None) -> None:
    """End the process at once after another Ctrl-C. If stderr is a terminal, show the cursor again before the end."""
    if os.isatty(2):
        os.write(2, SHOW_CURSOR)
    os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()

"""Apply or undo a plan in a process that kills itself before an event of Python's audit hooks, such as a rename.

Arguments: `apply` or `undo`, a file with the plan, the directory of journals, the number of the event, and a file that
gets the number of events if the process comes to its end.
"""

import os
import signal
import sys
from pathlib import Path

from ripwrap import sync

EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.utime", "os.chmod", "os.chown", "os.listdir"}


def main() -> None:
    """Do it."""
    action, plan, journals, number, ended = sys.argv[1:]
    made = sync.ReplacePlan.model_validate_json(Path(plan).read_bytes())
    seen = 0

    def count(event: str, _: object) -> None:
        nonlocal seen
        if event in EVENTS:
            seen += 1
            if seen == int(number):
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    made.apply(journals=journals) if action == "apply" else made.undo(journals=journals)
    Path(ended).write_text(str(seen), "ascii")


if __name__ == "__main__":
    main()

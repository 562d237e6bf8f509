"""Number of times that a test kills a program at a random moment; `nox -s stress` sets a larger one."""

import os

KILLS = int(os.environ.get("RIPWRAP_KILLS", "8"))

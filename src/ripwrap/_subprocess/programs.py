"""Find programs in PATH."""

import os

from ripwrap._windows import IS_WINDOWS, path_entries


def find_program(name: str, *, windows: bool = IS_WINDOWS) -> str | None:
    """Return the path of a program in an absolute directory of PATH; `None` if no such directory has it.

    If `subprocess` gets only a name, it may start a program in the current directory, which may be an untrusted
    checkout. CreateProcess looks there first, and then in PATH
    (https://learn.microsoft.com/windows/win32/api/processthreadsapi).
    On POSIX, a relative entry of PATH such as `.` has the same effect.
    """
    path = os.environ.get("PATH", os.defpath)
    entries = path_entries(path) if windows else path.split(os.pathsep)
    file = f"{name}.exe" if windows else name
    for program in (os.path.join(entry, file) for entry in entries if os.path.isabs(entry)):
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None

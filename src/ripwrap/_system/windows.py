"""Rules of Windows for paths, command lines and exit codes; no I/O, so that tests can run them on every system."""

import ntpath
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import PureWindowsPath

IS_WINDOWS = os.name == "nt"
"""True on Windows. Functions take it as the default of a parameter, so that tests can run them as on Windows."""

# These names, also with an extension, are devices and not files. Spaces before the extension are ignored:
# https://learn.microsoft.com/windows/win32/fileio/naming-a-file
_DEVICE_NAME = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3]) *(?:\..*)?",
    re.IGNORECASE,
)
_DEVICE_PATH = re.compile(r"[\\/]{2}[.?](?:[\\/]|$)|[\\/]\?\?(?:[\\/]|$)")
"""Beginning of a path that names a device, or to which Windows does not apply its rules for names:
https://learn.microsoft.com/dotnet/standard/io/file-path-formats
"""

COMMAND_TOO_LONG = 206
"""Error code of CreateProcess if the command line is too long (ERROR_FILENAME_EXCED_RANGE). Python raises
`FileNotFoundError` for it.
"""

NAME_SURROGATE_TAG = 0x20000000
"""Bit of a reparse tag that marks a link to another file or directory (`IsReparseTagNameSurrogate`)."""

_EXIT_REASONS = {
    0xC0000135: (
        "a DLL that it needs is missing, most likely VCRUNTIME140.dll: install the Microsoft Visual C++ "
        "Redistributable, or use the rg of `ripwrap install`, which needs no DLL"
    ),
    0xC000007B: "the program, or a DLL that it needs, is for another processor",
}
"""Reasons for the exit codes (NTSTATUS) of a program that Windows could not load."""


def is_batch_file(path: str) -> bool:
    r"""Return True if Windows would run a program with `cmd.exe`, which may run parts of arguments as commands.

    CreateProcess does so for the extensions `.bat` and `.cmd`, in upper or lower case, and with dots and spaces after
    them (https://nvd.nist.gov/vuln/detail/CVE-2024-43402).
    """
    return path.rstrip(". ").lower().endswith((".bat", ".cmd"))


def path_entries(path: str) -> list[str]:
    """Return the directories in a PATH of Windows, which has quotes around a directory name with a semicolon."""
    return [entry.replace('"', "") for entry in re.findall(r'(?:[^;"]|"[^"]*(?:"|$))+', path)]


def command_length(arguments: Sequence[str]) -> int:
    """Return the length of a command line in UTF-16 code units, the unit of the limit of CreateProcess."""
    return len(subprocess.list2cmdline(arguments).encode("utf-16-le", "surrogatepass")) // 2


def explain_exit(returncode: int) -> str:
    """Return the reason why Windows could not load a program that ended with this exit code; empty for other codes."""
    return _EXIT_REASONS.get(returncode, "")


def is_foreign_path(path: str, roots: Sequence[str] = ()) -> bool:
    r"""Return True if a path names a device, makes Windows skip its path rules, or is on another computer.

    If a path on another computer is below one of `roots`, return False.

    The function reads only the text of the path, and does not touch the file system.
    When any function opens or checks `\\host\share`, Windows sends the user's credentials to that host. So call this
    function before any function uses the path.
    """
    if _DEVICE_PATH.match(path):
        return True
    if not re.match(r"[\\/]{2}", path):
        return False
    named = PureWindowsPath(ntpath.normpath(path))
    return not any(named.is_relative_to(root) for root in roots)


def why_misleading(path: str, roots: Sequence[str] = ()) -> str | None:
    """Return the reason why Windows would resolve a path to an unexpected file; `None` without this problem."""
    if _DEVICE_PATH.match(path):
        return "is a device path, or skips the path rules of Windows"
    if is_foreign_path(path, roots):
        return "is on another computer"
    drive = re.match(r"[A-Za-z]:(?=([\\/])?)", path)
    if drive and not drive[1]:
        return "is relative to the current directory of a drive"
    for part in re.split(r"[\\/]", path[2:] if drive else path):
        if ":" in part:
            return "names a stream of a file, because it has a colon"
        if _DEVICE_NAME.fullmatch(part):
            return "names a device"
        if part.strip(".") and part != part.rstrip(". "):
            return "ends in a dot or space, which Windows drops"
    return None

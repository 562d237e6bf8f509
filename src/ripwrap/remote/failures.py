"""Create errors for wrong arguments, and for a local program (such as ssh) that ended without results of rg; no I/O."""

import errno
import os
from collections.abc import Mapping

from ripwrap.errors import BinaryNotFoundError, Hint, HintedText, RemoteError
from ripwrap.remote import watchdog
from ripwrap.remote.installing import INSTALL_ERRORS
from ripwrap.remote.watchdog import CWD_DENIED, CWD_MISSING, CWD_NO_DIRECTORY

MAX_SHOWN = 2000
"""Maximum number of characters of stderr in the message of an error."""

NOT_STARTED = (126, 127)
"""Exit codes of a shell that cannot run or find a program."""

_CWD = Hint("cwd", kind="correct")
_CWD_ERRORS: Mapping[int, tuple[type[OSError], int, str]] = {
    CWD_MISSING: (FileNotFoundError, errno.ENOENT, "does not exist"),
    CWD_NO_DIRECTORY: (NotADirectoryError, errno.ENOTDIR, "is not a directory"),
    CWD_DENIED: (PermissionError, errno.EACCES, "cannot be entered; change its permissions"),
}


def failure(host: str, argv: tuple[str, ...], cwd: str, code: int, stderr: str, advice: str) -> Exception:
    """Return the error for a local program (ssh, docker or podman) that ended without a result of rg."""
    if code in _CWD_ERRORS:
        kind, number, wrong = _CWD_ERRORS[code]
        return kind(number, HintedText(_CWD, f" {wrong} on {host}"), cwd)
    shown = _end_of(stderr)
    if watchdog.returncode(code) in NOT_STARTED:
        return BinaryNotFoundError(
            f"rg cannot be run on {host} any more: {shown}. Search again, to look for another rg on that host"
        )
    if code in INSTALL_ERRORS:
        text, step = INSTALL_ERRORS[code]
        message = f"{text.format(host)}: {shown}".removesuffix(": ")
        return RemoteError(message, argv=argv, returncode=code, stderr=stderr, hint=step)
    ended = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    text = f"{host}: {os.path.basename(argv[0])} {ended}, without a result from rg"
    message = f"{text}: {shown}" if shown else text
    return RemoteError(message, argv=argv, returncode=code, stderr=stderr, hint=advice)


def _end_of(stderr: str) -> str:
    text = stderr.strip()
    return text if len(text) <= MAX_SHOWN else f"…{text[-MAX_SHOWN:]}"


def check_directory(path: str) -> str:
    """Check the path of a directory on a host, and return the path; `.` if the path is empty."""
    if "\0" in path:
        raise ValueError("a NUL character cannot be part of a path; remove it")
    if path.startswith("~"):
        raise ValueError(
            HintedText(
                _CWD,
                f" {path!r} begins with ~, which is not expanded; pass an absolute path, or, if the name itself begins "
                "with ~, write './' before it",
            )
        )
    return path or os.curdir


def check_name(rg: str) -> str:
    """Check the path or name of an rg on a host, and return it."""
    if not rg or rg.startswith("-") or "\0" in rg:
        text = f" must be a path or a name on the host, and not begin with a dash; got {rg!r}"
        raise ValueError(HintedText(Hint("rg", kind="correct"), text))
    return rg

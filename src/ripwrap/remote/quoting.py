r"""Quote arguments for the shell of another machine; no I/O. All text for a shell is quoted in this module.

ssh joins its arguments with spaces, and the login shell of the other machine parses the result (ssh(1), RFC 4254
section 6.5). `quote()` is like `shlex.quote()`, but quotes bytes. It also respects shells other than sh:

- It quotes `=word` and `~`, which zsh expands, and `%`, which fish before version 3 expands.
- It puts a backslash outside of single quotes, because fish reads `\\` and `\'` in single quotes as escapes.

So sh, dash, bash, ksh, zsh, busybox and fish read the same words. csh and tcsh are not supported: they end a word at a
newline, and replace `!`.
"""

import os
import re
from collections.abc import Iterable

_PLAIN = re.compile(rb"[A-Za-z0-9_./:,@+-]+")
_PIECES = re.compile(rb"['\\]|[^'\\]+")


def quote(argument: bytes) -> bytes:
    """Return an argument as one word of a POSIX shell."""
    if b"\0" in argument:
        raise ValueError("a NUL character cannot be part of an argument; remove it")
    if _PLAIN.fullmatch(argument):
        return argument
    quoted = (b"\\" + piece if piece in (b"'", b"\\") else b"'" + piece + b"'" for piece in _PIECES.findall(argument))
    return b"".join(quoted) or b"''"


def join(arguments: Iterable[str]) -> str:
    """Quote arguments and join them to a command line of a shell; the strings are converted as by `os.fsencode()`."""
    return os.fsdecode(b" ".join(quote(os.fsencode(argument)) for argument in arguments))

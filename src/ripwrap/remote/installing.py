"""Install an rg on a host: the shell script that stores the rg on the host, and the program file that it receives."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Self

from ripwrap.errors import BinaryError, Hint, HintedText
from ripwrap.remote.finding import CACHE, RemoteRg
from ripwrap.remote.watchdog import ENDED, SAY_STARTED

NO_HOME, NOT_STORED, CUT_OFF, WRONG_HASH, DOES_NOT_RUN, NOT_RG = 50, 51, 52, 53, 54, 55
_AGAIN = "Install it again."
INSTALL_ERRORS: Mapping[int, tuple[str, str]] = {
    NO_HOME: (
        "rg was not installed on {}, because the user has no home directory there",
        "Set HOME or XDG_CACHE_HOME on the host to an absolute path.",
    ),
    NOT_STORED: (
        "rg could not be stored on {}",
        "On the host, free some space, make the cache writable, or set XDG_CACHE_HOME to another directory.",
    ),
    CUT_OFF: ("rg was not installed on {}, because the connection ended too early", _AGAIN),
    WRONG_HASH: ("rg was not installed on {}, because it arrived with another SHA-256", _AGAIN),
    DOES_NOT_RUN: (
        "rg was not installed on {}, because it does not run there",
        HintedText(
            "Install rg with the package manager of the host",
            (", or pass the path of an rg that runs there as ", Hint("source")),
            ".",
        ),
    ),
    NOT_RG: (
        "the program was not installed on {}, because its --version does not name ripgrep",
        HintedText(("Pass the path of an rg as ", Hint("source"), ".")),
    ),
}
"""Meaning of each exit code of the script, and the next step; in the meaning, `{}` stands for the host."""

# The script reads the program from stdin into a temporary file, checks its size and hash, runs it, and renames it.
INSTALL = f"""
{SAY_STARTED}
umask 077
{CACHE}
[ -n "$cache" ] || exit {NO_HOME}
mkdir -p -- "$cache" || exit {NOT_STORED}
sum_of() {{
  if command -v sha256sum >/dev/null; then sha256sum
  elif command -v shasum >/dev/null; then shasum -a 256
  else echo none
  fi
}}
answer() {{ printf '%s\\000' "$1" "$cache/rg" "$about"; exit {ENDED}; }}
if [ -x "$cache/rg" ]; then
  there=$(sum_of <"$cache/rg")
  [ "${{there%% *}}" = "$1" ] && about=$("$cache/rg" --no-config --version </dev/null) && answer cache
fi
new=$cache/.rg.$$
trap 'rm -f -- "$new"' EXIT
trap 'exit {CUT_OFF}' HUP INT TERM
cat >"$new" || exit {NOT_STORED}
[ "$(($(wc -c <"$new")))" -eq "$2" ] || exit {CUT_OFF}
sent=$(sum_of <"$new")
case ${{sent%% *}} in "$1" | none) ;; *) exit {WRONG_HASH} ;; esac
chmod 700 "$new" || exit {NOT_STORED}
about=$("$new" --no-config --version </dev/null) || exit {DOES_NOT_RUN}
case $about in "ripgrep "*) ;; *) exit {NOT_RG} ;; esac
mv -f -- "$new" "$cache/rg" || exit {NOT_STORED}
answer download
"""


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """Program file on this machine that is sent to a host."""

    path: str
    size: int
    sha256: str

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the `ProgramFile` of a program file, with its size and hash.

        Raises:
            BinaryError: The file cannot be read.
        """
        try:
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                return cls(os.fspath(path), file.tell(), digest)
        except OSError as error:
            raise BinaryError(
                f"source {os.fspath(path)} cannot be read: {error.strerror}; pass the path of a program file"
            ) from error

    def open(self) -> IO[bytes]:
        """Open the file for the stdin of a child process."""
        return open(self.path, "rb", buffering=0)


def parse_installed(fields: Sequence[str]) -> RemoteRg:
    """Return the rg that is now installed on the host, from the texts that the script `INSTALL` prints."""
    step, path, about = fields
    return RemoteRg(path, "download" if step == "download" else "cache", about)

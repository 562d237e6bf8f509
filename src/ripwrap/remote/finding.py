r"""Shell scripts that find, install, run and kill an rg on a host, and what their answers mean; no I/O.

Each command of ssh and docker starts `sh` with one of the scripts of this package, and passes paths and patterns as
arguments. So no script contains a string that a caller passed.

The exit code of rg is mapped to a range that no other program uses: not a shell, not ssh (255), not docker (1, 125,
126, 127), and not a killed process (129 to 159). So an exit code in this range comes from this script, and says how rg
ended, or that the shell could not run it.

All text for a shell is quoted in this module. ssh joins its arguments with spaces, and the login shell of the other
machine parses the result (ssh(1), RFC 4254 section 6.5). `quote()` is like `shlex.quote()`, but quotes bytes. It also
respects shells other than sh:

- It quotes `=word` and `~`, which zsh expands, and `%`, which fish before version 3 expands.
- It puts a backslash outside of single quotes, because fish reads `\\` and `\'` in single quotes as escapes.

So sh, dash, bash, ksh, zsh, busybox and fish read the same words. csh and tcsh are not supported: they end a word at a
newline, and replace `!`.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Self, cast

from ripwrap._ripgrep.host import INSTALL_THERE, STARTED
from ripwrap.binary.platforms import Platform
from ripwrap.binary.probe import OLDEST, RgBinary, Source, format_version, parse_version
from ripwrap.errors import BinaryError, BinaryNotFoundError, Hint, HintedText

SHELL = ("sh", "-c")

NAME = "ripwrap"
"""Name of the scripts in messages of the shell (`$0`)."""

CWD_MISSING, CWD_NO_DIRECTORY, CWD_DENIED = 40, 41, 42
"""Exit codes of the script if the directory is missing, is not a directory, or cannot be entered."""

ENDED = 160
"""Exit code of the script if rg exited with 0; the next numbers are for the exit codes 1 to 30 of rg."""

MAX_CODE = 30
"""Highest exit code of rg that the script maps by adding it to `ENDED`."""

SIGNALLED = 72
"""Number that the script adds to the shell's exit code (129 and more) if a signal killed rg."""

MAX_SIGNALLED = 180
"""Highest exit code of the shell to which `SIGNALLED` is added."""

OTHERS = {101: 198, 126: 196, 127: 197}
"""Exit codes of the script if rg panicked (101), if the shell cannot run rg (126), or if it cannot find rg (127)."""

UNKNOWN = 199
"""Exit code of the script for any other exit code of rg."""

_CASES = " ".join(f"{code}) exit {other} ;;" for code, other in OTHERS.items())

SAY_STARTED = "printf '{0}'; printf '{0}' >&2".format(STARTED.decode().replace("\0", "\\000").replace("\n", "\\n"))

# 1. `cd -P` follows links as chdir(2) does. `Host.command_line()` puts `./` before a relative path, so that `cd` does
#    not interpret `-` and does not use CDPATH.
# 2. The watchdog is the subshell with `read`. No process writes to stdin, so `read` ends when stdin is closed: because
#    ripwrap closed it, the connection ended, or the process that held the pipe was killed.
# 3. The script closes its own stdout and stderr. Then both end when rg ends, and messages of the shell about killed
#    processes are not mistaken for messages of rg.
# 4. ksh93 adds 256 to the number of a signal, other shells 128.
WATCHDOG = f"""
unset RIPGREP_CONFIG_PATH RIPGREP_INDEX_PATH
cd -P -- "$1" >/dev/null 2>&1 || {{
  [ -d "$1" ] && exit {CWD_DENIED}
  [ -e "$1" ] && exit {CWD_NO_DIRECTORY}
  exit {CWD_MISSING}
}}
shift
exec 3<&0 </dev/null
{SAY_STARTED}
"$@" 3<&- &
rg=$!
exec >/dev/null 2>&1
{{ read -r line; kill -9 "$rg"; }} <&3 3<&- &
watchdog=$!
exec 3<&-
wait "$rg"
code=$?
kill -9 "$watchdog"
[ "$code" -gt 256 ] && code=$((code - 128))
[ "$code" -le {MAX_CODE} ] && exit "$((code + {ENDED}))"
[ "$code" -gt 128 ] && [ "$code" -le {MAX_SIGNALLED} ] && exit "$((code + {SIGNALLED}))"
case $code in {_CASES} esac
exit {UNKNOWN}
"""


def returncode(code: int) -> int | None:
    """Return rg's exit code, or the negative number of the signal that ended rg.

    Return 126 or 127 if the shell could not run rg, `UNKNOWN` if rg ended with a code that the script does not map, and
    `None` for any other exit code, such as 255 of ssh.
    """
    if ENDED <= code <= ENDED + MAX_CODE:
        return code - ENDED
    if 128 + SIGNALLED < code <= MAX_SIGNALLED + SIGNALLED:
        return 128 + SIGNALLED - code
    others = {other: code for code, other in OTHERS.items()}
    return others.get(code, UNKNOWN if code == UNKNOWN else None)


SLOT = "remote-$(uname -s)-$(uname -m)"
"""Name of the directory of an installed rg, in the user's cache on the host. The name has the platform, because
machines of different platforms may share a home directory.
"""

CACHE = f"""
cache=
[ -n "$XDG_CACHE_HOME$HOME" ] && cache=${{XDG_CACHE_HOME:-$HOME/.cache}}/ripwrap/{SLOT}
case $cache in /*) ;; *) cache= ;; esac
"""
"""Lines of a script that set `cache` to the path of the directory `SLOT` in the user's cache.

`cache` is empty if neither `$XDG_CACHE_HOME` nor `$HOME` is set, or if the path is relative.
"""

# For a relative entry of PATH, `command -v` prints a relative path. Such an rg is not used.
FIND = f"""
{SAY_STARTED}
libc=glibc
for one in /lib/ld-musl-*; do [ -e "$one" ] && libc=musl; done
bits=$(getconf LONG_BIT 2>/dev/null) || bits=64
printf '%s\\000' "$(uname -s)" "$(uname -m)" "$libc" "$bits"
try() {{
  [ -f "$2" ] && [ -x "$2" ] || return 0
  printf '%s\\000' "$1" "$2" "$("$2" --no-config --version </dev/null 2>&1)"
}}
unset RIPGREP_CONFIG_PATH RIPGREP_INDEX_PATH
source=PATH
if [ $# -gt 0 ]; then
  source=argument
else
  set -- rg
  {CACHE}
  [ -n "$cache" ] && try cache "$cache/rg"
fi
case $1 in
/*) path=$1 ;;
*/*) path=$(pwd)/$1 ;;
*) path=$(command -v "$1") ;;
esac
case $path in /*) try "$source" "$path" ;; esac
exit {ENDED}
"""


@dataclass(frozen=True, slots=True)
class RemoteRg(RgBinary):
    """An rg on a host.

    Attributes:
        about: Output of `rg --version` on the host.
    """

    about: str = ""

    @property
    def version(self) -> tuple[int, int, int]:
        """Version, e.g. `(15, 2, 0)`; `(0, 0, 0)` if `about` is not the output of rg."""
        return parse_version(self.about) or (0, 0, 0)

    @property
    def features(self) -> frozenset[str]:
        """Features that rg was compiled with, e.g. `{"pcre2"}`; empty for rg 13, which does not name its features."""
        named = re.search(r"^features:(\S*)", self.about, re.MULTILINE)
        return frozenset(one[1:] for one in named[1].split(",") if one.startswith("+")) if named else frozenset()


def parse_answer(fields: Sequence[str]) -> tuple[Platform, list[RemoteRg]]:
    """Return the platform of a host, and its programs that may be an rg, from what the script `FIND` prints."""
    system, machine, libc, bits, *texts = fields
    platform = Platform(system, machine, libc if system == "Linux" else "", 32 if bits == "32" else 64)
    rest = iter(texts)
    programs = zip(rest, rest, rest, strict=True)
    return platform, [RemoteRg(path, cast("Source", source), about) for source, path, about in programs]


def choose(candidates: Sequence[RemoteRg], named: str | None, host: str) -> RemoteRg:
    """Return the first usable rg of a host."""
    reasons: list[str] = []
    for candidate in candidates:
        version = parse_version(candidate.about)
        if version is not None and version >= OLDEST:
            return candidate
        wrong = "not ripgrep"
        if version is not None:
            wrong = f"rg {format_version(version)} is too old: 13 or later is needed"
        reasons.append(f"  {candidate.path}: {wrong}")
    if named is not None:
        seen = "\n".join(reasons) or f"  {named}: no such program"
        raise BinaryError(
            f"the given rg cannot be used on {host}:\n{seen}\nPass another rg, or leave it out, so that ripwrap looks "
            "for an rg on the host."
        )
    seen = "\n".join(reasons) or "  no rg in its PATH, and none that ripwrap has installed"
    said = ", or with the package manager of the host, or pass the path of an rg on the host: "
    raise BinaryNotFoundError(
        HintedText(f"rg (ripgrep) was not found on {host}:\n{seen}\nInstall it with ", INSTALL_THERE, said, Hint("rg"))
    )


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
        """Return the `ProgramFile` of a program file, with its size and hash."""
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

"""Shell script that runs rg on a host and kills it when stdin is closed; and the exit codes of this script.

Each command of ssh and docker starts `sh` with one of the scripts of this package, and passes paths and patterns as
arguments. So no script contains a string that a caller passed.

The exit code of rg is mapped to a range that no other program uses: not a shell, not ssh (255), not docker (1, 125,
126, 127), and not a killed process (129 to 159). So an exit code in this range comes from this script, and says how rg
ended, or that the shell could not run it. For example, docker exits with 1 if a container is not running; this cannot
be confused with 'no matches'.
"""

from ripwrap._ripgrep.host import STARTED

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

    Args:
        code: Exit code of the script.
    """
    if ENDED <= code <= ENDED + MAX_CODE:
        return code - ENDED
    if 128 + SIGNALLED < code <= MAX_SIGNALLED + SIGNALLED:
        return 128 + SIGNALLED - code
    others = {other: code for code, other in OTHERS.items()}
    return others.get(code, UNKNOWN if code == UNKNOWN else None)

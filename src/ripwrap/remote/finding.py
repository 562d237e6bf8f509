"""Script that says what platform a host is, and which rgs it has; and the parser of its answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from ripwrap.binary.platforms import Platform
from ripwrap.binary.probe import Source
from ripwrap.remote.watchdog import ENDED, SAY_STARTED

SLOT = "remote-$(uname -s)-$(uname -m)"
"""Folder of an installed rg in the cache; a home directory may be shared by machines of different platforms."""

CACHE = f"""
cache=
[ -n "$XDG_CACHE_HOME$HOME" ] && cache=${{XDG_CACHE_HOME:-$HOME/.cache}}/ripwrap/{SLOT}
case $cache in /*) ;; *) cache= ;; esac
"""
"""Lines that set `cache` to that folder, or to nothing for a user without a home directory."""

# `command -v` may print a relative path, for a relative entry of PATH, which is never used.
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
class RemoteCandidate:
    """An rg on a host, which may be too old, or another program.

    Attributes:
        source: Step that found it.
        path: Absolute path on the host.
        about: Output of `--version`.
    """

    source: Source
    path: str
    about: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host says about itself.

    Attributes:
        platform: Its platform.
        candidates: Its rgs, best first.
    """

    platform: Platform
    candidates: tuple[RemoteCandidate, ...]


def parse_answer(fields: Sequence[str]) -> Answer:
    """Return the answer in the texts that the script prints.

    Raises:
        ValueError: They are not of this script.
    """
    system, machine, libc, bits, *rest = fields
    platform = Platform(system, machine, libc if system == "Linux" else "", 32 if bits == "32" else 64)
    return Answer(platform, tuple(_candidates(rest)))


def _candidates(fields: Sequence[str]) -> Iterator[RemoteCandidate]:
    rest = iter(fields)
    for source, path, about in zip(rest, rest, rest, strict=True):
        yield RemoteCandidate(cast("Source", source), path, about)

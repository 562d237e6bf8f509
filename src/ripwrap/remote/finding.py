"""Find an rg on a host: a script prints the host's platform and rgs, and functions parse this text and choose an rg."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from ripwrap._ripgrep.host import INSTALL_THERE
from ripwrap.binary.platforms import Platform
from ripwrap.binary.probe import OLDEST, RgBinary, Source, format_version, parse_version
from ripwrap.errors import BinaryError, BinaryNotFoundError, Hint, HintedText
from ripwrap.remote.watchdog import ENDED, SAY_STARTED

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


@dataclass(frozen=True, slots=True)
class RemoteCandidate:
    """A program that was found on a host: a usable rg, an rg that is too old, or another program."""

    source: Source
    path: str
    about: str


@dataclass(frozen=True, slots=True)
class HostReport:
    """Platform of a host, and the programs on the host that may be an rg."""

    platform: Platform
    candidates: tuple[RemoteCandidate, ...]


def parse_answer(fields: Sequence[str]) -> HostReport:
    """Return the platform of a host, and its programs that may be an rg, from what the script `FIND` prints."""
    system, machine, libc, bits, *rest = fields
    platform = Platform(system, machine, libc if system == "Linux" else "", 32 if bits == "32" else 64)
    return HostReport(platform, tuple(_candidates(rest)))


def _candidates(fields: Sequence[str]) -> Iterator[RemoteCandidate]:
    rest = iter(fields)
    for source, path, about in zip(rest, rest, rest, strict=True):
        yield RemoteCandidate(cast("Source", source), path, about)


def choose(answer: HostReport, named: str | None, host: str) -> RemoteRg:
    """Return the first usable rg of a host.

    Raises:
        BinaryNotFoundError: There is no usable rg on the host.
        BinaryError: The rg that the caller named cannot be used.
    """
    reasons: list[str] = []
    for candidate in answer.candidates:
        version = parse_version(candidate.about)
        if version is not None and version >= OLDEST:
            return RemoteRg(candidate.path, candidate.source, candidate.about)
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
    raise BinaryNotFoundError(
        HintedText(
            f"rg (ripgrep) was not found on {host}:\n{seen}\nInstall it with ",
            INSTALL_THERE,
            ", or with the package manager of the host, or pass the path of an rg on the host: ",
            Hint("rg"),
        )
    )

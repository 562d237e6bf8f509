"""Choose the builds of rg (targets) to try on a platform, the best first; only `current()` does I/O.

Facts about the releases:

- The build for Linux on x86_64 uses musl and is statically linked, so it runs with any libc.
- For Linux on arm64, there is a static build (musl) from 15.2.0 on; earlier builds need glibc.
- For Windows on arm64, there are builds from 15.0.0 on.
- The asset of 14.1.1 for macOS on arm64 does not start without Homebrew's libpcre2 (ripgrep#3155), so it is tried
  after the one for x86_64, which needs Rosetta.
"""

import os
import platform
import re
import struct
import sys
from dataclasses import dataclass

from ripwrap.errors import UnsupportedPlatformError

SUPPORTED = (
    "Linux on x86_64, arm64 (glibc; any libc from rg 15.2.0 on), armv7, i686 (glibc) and s390x (glibc); "
    "macOS on x86_64 and arm64; Windows on x86, x86_64 and arm64"
)

_MACHINES = {
    "amd64": "x86_64",
    "x64": "x86_64",
    "arm64": "aarch64",
    "armv8l": "armv7",
    "armv7l": "armv7",
    "i386": "i686",
    "i586": "i686",
    "x86": "i686",
}


_ALL = "all tests were run there"
_SUITE = "the tests of tests/windows were run there, under Wine"
_QUICK = "the quick tests were run there"
_SMOKE = "a smoke test was run there"

_RUNS: dict[tuple[str, str, str, int, str, bool], dict[tuple[int, ...], str]] = {
    ("Linux", "x86_64", "glibc", 64, "cpython", False): {
        **dict.fromkeys(((3, 11), (3, 12), (3, 13)), _ALL),
        **dict.fromkeys(((3, 14), (3, 15)), _QUICK),
    },
    ("Linux", "x86_64", "glibc", 64, "pypy", False): {(3, 11): _SMOKE},
    ("Linux", "aarch64", "glibc", 64, "cpython", False): {(3, 11): _SMOKE},
    ("Windows", "x86_64", "", 64, "cpython", False): {(3, 11): _SUITE},
}
"""Table of the tests that were run, by platform, Python implementation and free threading, then by Python version."""


@dataclass(frozen=True, slots=True)
class Platform:
    """Properties of a machine that decide which rg runs there."""

    system: str
    machine: str
    libc: str = ""
    bits: int = 64


def current() -> Platform:
    """Return the platform that this Python runs on."""
    android = hasattr(sys, "getandroidapilevel") or "ANDROID_ROOT" in os.environ
    system = "Android" if android else platform.system()
    libc = ""
    if system == "Linux":
        libc = "glibc" if platform.libc_ver()[0] == "glibc" else "musl"
    return Platform(system, platform.machine(), libc, struct.calcsize("P") * 8)


def describe(here: Platform, implementation: str, python: tuple[int, ...], *, free_threaded: bool = False) -> str:
    """Return one line with the name of a platform and Python, and with the tests that were run there, if any.

    The tests are described in docs/reference/platforms.md.

    Args:
        here: The platform.
        implementation: Value of `sys.implementation.name`.
        python: Version of Python.
        free_threaded: True for a free-threaded Python.
    """
    machine = _MACHINES.get(here.machine.lower(), here.machine.lower())
    libc = f" ({here.libc})" if here.libc else ""
    system = {"Darwin": "macOS"}.get(here.system, here.system)
    kind = {"cpython": "CPython", "pypy": "PyPy"}.get(implementation, implementation)
    ran = _RUNS.get((here.system, machine, here.libc, here.bits, implementation, free_threaded), {}).get(python[:2])
    threads = ", free-threaded" if free_threaded else ""
    version = ".".join(map(str, python[:2]))
    return f"{system} on {machine}{libc}, {kind} {version}{threads}: {ran or 'ripwrap was never run there'}"


def targets(here: Platform, version: str) -> tuple[str, ...]:
    """Return the targets, such as `x86_64-unknown-linux-musl`, whose rg may run on a platform; the best comes first."""
    machine = _MACHINES.get(here.machine.lower(), here.machine.lower())
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    systems = {"Linux": _linux, "Darwin": _macos, "Windows": _windows}
    found = systems[here.system](machine, here, number) if here.system in systems else ()
    if not found:
        libc = f" {here.libc}" if here.libc else ""
        seen = f"{here.system or 'unknown'} on {here.machine or 'unknown'}, {here.bits}-bit{libc}"
        raise UnsupportedPlatformError(
            f"rg {version} was not released for this platform ({seen}). Releases exist for {SUPPORTED}.\n"
            "Install rg with your system's package manager or `cargo install ripgrep`. If it is then not in PATH, pass "
            "its path: rg=… or RIPWRAP_RG=…"
        )
    return found


def _linux(machine: str, here: Platform, version: tuple[int, ...]) -> tuple[str, ...]:
    armv7 = ("armv7-unknown-linux-musleabihf", "armv7-unknown-linux-gnueabihf")
    glibc = here.libc != "musl"
    if machine == "x86_64":
        return ("x86_64-unknown-linux-musl",)
    if machine == "aarch64":
        static = ("aarch64-unknown-linux-musl",) if version >= (15, 2) else ()
        if here.bits == 32:  # a 32-bit system on a 64-bit kernel has no 64-bit libraries
            return (*static, *armv7)
        return (*static, "aarch64-unknown-linux-gnu") if glibc else static
    if machine == "armv7":
        return armv7 if glibc else armv7[:1]
    return (
        {"i686": ("i686-unknown-linux-gnu",), "s390x": ("s390x-unknown-linux-gnu",)}.get(machine, ()) if glibc else ()
    )


def _macos(machine: str, _: Platform, version: tuple[int, ...]) -> tuple[str, ...]:
    intel, arm = ("x86_64-apple-darwin",), ("aarch64-apple-darwin",)
    if machine == "aarch64":  # the first target of an older release runs under Rosetta
        return arm if version >= (15,) else (*intel, *arm) if version >= (14, 1, 1) else intel
    return intel if machine == "x86_64" else ()


def _windows(machine: str, _: Platform, version: tuple[int, ...]) -> tuple[str, ...]:
    intel = ("x86_64-pc-windows-msvc",)
    if machine == "aarch64":  # the second target runs in emulation, but needs no VC++ runtime
        return ("aarch64-pc-windows-msvc", *intel) if version >= (15,) else intel
    return {"x86_64": intel, "i686": ("i686-pc-windows-msvc",)}.get(machine, ())

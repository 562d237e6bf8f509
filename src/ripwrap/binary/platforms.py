"""Choose the builds of rg (targets) to try on a platform, the best first, with their hashes.

Facts about the releases:

- The build for Linux on x86_64 uses musl and is statically linked, so it runs with any libc.
- For Linux on arm64, there is a static build (musl) from 15.2.0 on; earlier builds need glibc.
- For Windows on arm64, there are builds from 15.0.0 on.
- The asset of 14.1.1 for macOS on arm64 does not start without Homebrew's libpcre2 (ripgrep#3155), so it is tried
  after the one for x86_64, which needs Rosetta.

SHA-256 hashes of release assets. Each hash was confirmed by at least two independent sources.

An asset that is not in the table `PINS` has no pinned hash. `scripts/compare_pins.py` compares the table with other
sources.
"""

import os
import platform
import re
import struct
import sys
from dataclasses import dataclass
from types import MappingProxyType

from ripwrap.errors import UnsupportedPlatformError

SUPPORTED = (
    "Linux on x86_64, arm64 (glibc; any libc from rg 15.2.0 on), armv7, i686 (glibc) and s390x (glibc); "
    "macOS on x86_64 and arm64; Windows on x86, x86_64 and arm64"
)

_NAMES = {"x86_64": "amd64 x64", "aarch64": "arm64", "armv7": "armv8l armv7l", "i686": "i386 i586 x86"}
_MACHINES = {other: name for name, others in _NAMES.items() for other in others.split()}


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
    """Return one line with the name of a platform and Python, and with the tests that were run there, if any."""
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


DEFAULT_VERSION = "15.2.0"
"""Newest release whose hashes are in `PINS`."""

BASE_URL = "https://github.com/BurntSushi/ripgrep/releases/download"
"""Base address of rg's releases on GitHub. The base address of a mirror may take its place."""

MAX_ARCHIVE_BYTES = 32 * 1024 * 1024
"""Maximum size in bytes of an archive that is downloaded; releases have under 3 MB."""

MAX_BINARY_BYTES = 64 * 1024 * 1024
"""Maximum size in bytes of an rg that is extracted; releases have under 7 MB."""

PINS = MappingProxyType(
    {
        ("14.1.1", "x86_64-unknown-linux-musl"): "4cf9f2741e6c465ffdb7c26f38056a59e2a2544b51f7cc128ef28337eeae4d8e",
        ("14.1.1", "x86_64-apple-darwin"): "fc87e78f7cb3fea12d69072e7ef3b21509754717b746368fd40d88963630e2b3",
        ("14.1.1", "aarch64-apple-darwin"): "24ad76777745fbff131c8fbc466742b011f925bfa4fffa2ded6def23b5b937be",
        ("14.1.1", "aarch64-unknown-linux-gnu"): "c827481c4ff4ea10c9dc7a4022c8de5db34a5737cb74484d62eb94a95841ab2f",
        ("14.1.1", "x86_64-pc-windows-msvc"): "d0f534024c42afd6cb4d38907c25cd2b249b79bbe6cc1dbee8e3e37c2b6e25a1",
        ("14.1.1", "i686-pc-windows-msvc"): "1e5c99e4851c964152db07c79151982c7fa7a549b645b6b47daae07a9c185f8e",
        ("15.0.0", "x86_64-unknown-linux-musl"): "253ad0fd5fef0d64cba56c70dccdacc1916d4ed70ad057cc525fcdb0c3bbd2a7",
        ("15.0.0", "x86_64-apple-darwin"): "44128c733d127ddbda461e01225a68b5f9997cfe7635242a797f645ca674a71a",
        ("15.0.0", "aarch64-apple-darwin"): "98bb2e61e7277ba0ea72d2ae2592497fd8d2940934a16b122448d302a6637e3b",
        ("15.0.0", "aarch64-unknown-linux-gnu"): "15f8cc2fab12d88491c54d49f38589922a9d6a7353c29b0a0856727bcdf80754",
        ("15.0.0", "x86_64-pc-windows-msvc"): "21a98bf42c4da97ca543c010e764cc6dec8b9b7538d05f8d21874016385e0860",
        ("15.0.0", "i686-pc-windows-msvc"): "acb9918e9f3a88bd171143d663ffb12e8ab765b48bb449f8e7d8f1c7c1bd8311",
        ("15.0.0", "aarch64-pc-windows-msvc"): "572709c8770cb7f9385d725cb06d2bcd9537ec24d4dd17b1be1d65a876f8b591",
        ("15.1.0", "x86_64-unknown-linux-musl"): "1c9297be4a084eea7ecaedf93eb03d058d6faae29bbc57ecdaf5063921491599",
        ("15.1.0", "x86_64-apple-darwin"): "64811cb24e77cac3057d6c40b63ac9becf9082eedd54ca411b475b755d334882",
        ("15.1.0", "aarch64-apple-darwin"): "378e973289176ca0c6054054ee7f631a065874a352bf43f0fa60ef079b6ba715",
        ("15.1.0", "aarch64-unknown-linux-gnu"): "2b661c6ef508e902f388e9098d9c4c5aca72c87b55922d94abdba830b4dc885e",
        ("15.1.0", "x86_64-pc-windows-msvc"): "124510b94b6baa3380d051fdf4650eaa80a302c876d611e9dba0b2e18d87493a",
        ("15.1.0", "i686-pc-windows-msvc"): "725be85a1e8f92878a548f40ee4f6df64bc93b809586462b3c6d884e1de1e83a",
        ("15.1.0", "aarch64-pc-windows-msvc"): "00d931fb5237c9696ca49308818edb76d8eb6fc132761cb2a1bd616b2df02f8e",
        ("15.1.0", "x86_64-pc-windows-gnu"): "0bf217086ecb1392070020810b888bd405cb1dd5f088c16c45d9de1e5ea6b638",
        ("15.2.0", "x86_64-unknown-linux-musl"): "33e15bcf1624b25cdd2a55813a47a2f95dbe126268203e76aa6a585d1e7b149c",
        ("15.2.0", "x86_64-apple-darwin"): "af7825fcc69a2afc7a7aea55fc9af90e26421d8f20fe59df32e233c0b8a231c1",
        ("15.2.0", "aarch64-apple-darwin"): "3750b2e93f37e0c692657da574d7019a101c0084da05a790c83fd335bad973e4",
        ("15.2.0", "aarch64-unknown-linux-gnu"): "a740b91c82eaf9914cfedd353572f2791cbe0162c84101ee0951058f4dcbc90d",
        ("15.2.0", "aarch64-unknown-linux-musl"): "800b1e7206afe799dfb5a6901f23147cfaabe0e52210538100f61e86e1740915",
        ("15.2.0", "x86_64-pc-windows-msvc"): "71b2fef860abe467217a538ff31de02f5258807c0129f771846f87bd029aafc5",
        ("15.2.0", "i686-pc-windows-msvc"): "9bf73bdb3fda9ad4b0235e1295b02c717031c986afa4d7c05dd0af8b74010a95",
        ("15.2.0", "aarch64-pc-windows-msvc"): "e4abca10c3a64ebea742667dd7009449d49403db5460dd6873e389fa2945360f",
        ("15.2.0", "armv7-unknown-linux-gnueabihf"): "d859589734d9d802107ad9eff6a78cfd9b0080d2fecb0ad8772605b35e373199",
        (
            "15.2.0",
            "armv7-unknown-linux-musleabihf",
        ): "0332b481aa007969a54d5c19e793208e73405c48d38f226bdee56b9ed085cdde",
    }
)
"""SHA-256 of an archive, by its version and target (platform)."""


def asset_name(version: str, target: str) -> str:
    """Return the file name of an archive: the name of its only directory, and the extension of its format."""
    return f"{folder_name(version, target)}.{'zip' if '-windows-' in target else 'tar.gz'}"


def folder_name(version: str, target: str) -> str:
    """Return the name of the directory in an archive; the directory in the cache has the same name."""
    return f"ripgrep-{version}-{target}"


def parse_folder_name(name: str) -> tuple[str, str]:
    """Return the version and target in a name that `folder_name()` made; two empty texts for any other name."""
    found = re.fullmatch(r"ripgrep-(\d[\w.]*)-(.+)", name)
    return (found[1], found[2]) if found else ("", "")


def wrong_release(archive: str, actual: str, expected: str) -> str:
    """Return the text of an error about an archive that has another version of rg than expected."""
    return (
        f"{archive}: this is rg {actual}, expected {expected}; put the archive of rg {expected} into the "
        "mirror, or name another mirror: RIPWRAP_MIRROR=…"
    )

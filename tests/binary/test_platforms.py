"""Release targets of every platform, tested on any machine."""

import re

import pytest

from ripwrap import UnsupportedPlatformError
from ripwrap.binary import platforms
from ripwrap.binary.platforms import PINS, Platform, asset_name, describe, targets

ARM7 = ["armv7-unknown-linux-musleabihf", "armv7-unknown-linux-gnueabihf"]


@pytest.mark.parametrize(
    ("platform", "version", "expected"),
    [
        (Platform("Linux", "x86_64", "glibc"), "15.2.0", ["x86_64-unknown-linux-musl"]),
        (Platform("Linux", "x86_64", "musl"), "14.1.1", ["x86_64-unknown-linux-musl"]),
        (Platform("Linux", "amd64", "glibc"), "15.2.0", ["x86_64-unknown-linux-musl"]),
        # A 32-bit Python on a 64-bit kernel, which also runs the static 64-bit program.
        (Platform("Linux", "x86_64", "glibc", 32), "15.2.0", ["x86_64-unknown-linux-musl"]),
        (
            Platform("Linux", "aarch64", "glibc"),
            "15.2.0",
            ["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"],
        ),
        (Platform("Linux", "aarch64", "glibc"), "15.1.0", ["aarch64-unknown-linux-gnu"]),
        (Platform("Linux", "arm64", "glibc"), "14.1.1", ["aarch64-unknown-linux-gnu"]),
        # The gnu target needs glibc, so musl systems (Alpine) have the static target or none.
        (Platform("Linux", "aarch64", "musl"), "15.2.0", ["aarch64-unknown-linux-musl"]),
        (Platform("Linux", "aarch64", "glibc", 32), "15.2.0", ["aarch64-unknown-linux-musl", *ARM7]),
        (Platform("Linux", "aarch64", "glibc", 32), "15.1.0", ARM7),
        (Platform("Linux", "armv7l", "glibc", 32), "15.2.0", ARM7),
        (Platform("Linux", "armv8l", "glibc", 32), "15.2.0", ARM7),
        (Platform("Linux", "armv7l", "musl", 32), "15.2.0", ARM7[:1]),
        (Platform("Linux", "i686", "glibc", 32), "15.2.0", ["i686-unknown-linux-gnu"]),
        (Platform("Linux", "i386", "glibc", 32), "15.2.0", ["i686-unknown-linux-gnu"]),
        (Platform("Linux", "s390x", "glibc"), "15.2.0", ["s390x-unknown-linux-gnu"]),
        (Platform("Windows", "AMD64"), "15.2.0", ["x86_64-pc-windows-msvc"]),
        (Platform("Windows", "ARM64"), "15.0.0", ["aarch64-pc-windows-msvc", "x86_64-pc-windows-msvc"]),
        (Platform("Windows", "ARM64"), "14.1.1", ["x86_64-pc-windows-msvc"]),
        (Platform("Windows", "x86", "", 32), "15.2.0", ["i686-pc-windows-msvc"]),
        (Platform("Darwin", "arm64"), "15.2.0", ["aarch64-apple-darwin"]),
        # The arm64 program of 14.1.1 does not start without Homebrew's libpcre2, and the other one does
        # not start without Rosetta.
        (Platform("Darwin", "arm64"), "14.1.1", ["x86_64-apple-darwin", "aarch64-apple-darwin"]),
        (Platform("Darwin", "arm64"), "14.1.0", ["x86_64-apple-darwin"]),
        (Platform("Darwin", "arm64"), "15.0.0", ["aarch64-apple-darwin"]),
        (Platform("Darwin", "x86_64"), "15.2.0", ["x86_64-apple-darwin"]),
    ],
)
def test_platform_has_its_targets_best_first(platform: Platform, version: str, expected: list[str]) -> None:
    assert list(targets(platform, version)) == expected


@pytest.mark.parametrize(
    ("platform", "version"),
    [
        (Platform("Linux", "armv6l", "glibc", 32), "15.2.0"),
        (Platform("Linux", "riscv64", "glibc"), "15.2.0"),
        (Platform("Linux", "ppc64le", "glibc"), "15.2.0"),
        (Platform("Linux", "aarch64", "musl"), "15.1.0"),
        (Platform("Linux", "i686", "musl", 32), "15.2.0"),
        (Platform("Linux", "s390x", "musl"), "15.2.0"),
        (Platform("Darwin", "ppc"), "15.2.0"),
        (Platform("Windows", "ia64"), "15.2.0"),
        (Platform("FreeBSD", "amd64"), "15.2.0"),
        (Platform("Android", "aarch64"), "15.2.0"),
        (Platform("", ""), "15.2.0"),
    ],
)
def test_unknown_platform_error_lists_supported_ones_and_a_hint(platform: Platform, version: str) -> None:
    with pytest.raises(UnsupportedPlatformError) as caught:
        targets(platform, version)
    for words in (version, platform.system or "unknown", platform.machine or "unknown", "macOS on", "RIPWRAP_RG"):
        assert words in str(caught.value)
    assert f"{platform.bits}-bit{platform.libc and ' '}{platform.libc}). Releases" in str(caught.value)


def test_this_platform_is_known() -> None:
    assert targets(platforms.current(), "15.2.0")


def test_termux_is_android_and_not_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANDROID_ROOT", "/system")
    assert platforms.current().system == "Android"


def test_pins_are_distinct_hashes_of_four_releases() -> None:
    assert {version for version, _ in PINS} == {"14.1.1", "15.0.0", "15.1.0", "15.2.0"}
    assert all(re.fullmatch("[0-9a-f]{64}", pin) for pin in PINS.values())
    assert len(set(PINS.values())) == len(PINS)


def test_asset_names_match_upstream_releases() -> None:
    assert asset_name("15.2.0", "x86_64-apple-darwin") == "ripgrep-15.2.0-x86_64-apple-darwin.tar.gz"
    assert asset_name("15.2.0", "x86_64-pc-windows-msvc") == "ripgrep-15.2.0-x86_64-pc-windows-msvc.zip"


def test_common_platforms_have_a_pinned_first_target() -> None:
    common = [
        Platform("Linux", "x86_64", "glibc"),
        Platform("Linux", "aarch64", "glibc"),
        Platform("Darwin", "arm64"),
        Platform("Darwin", "x86_64"),
        Platform("Windows", "AMD64"),
    ]
    for version in ("14.1.1", "15.0.0", "15.1.0", "15.2.0"):
        for platform in common:
            assert (version, targets(platform, version)[0]) in PINS


@pytest.mark.parametrize(
    ("platform", "implementation", "python", "described"),
    [
        (
            Platform("Linux", "x86_64", "glibc"),
            "cpython",
            (3, 11, 7),
            "Linux on x86_64 (glibc), CPython 3.11: all tests were run there",
        ),
        (
            Platform("Windows", "AMD64"),
            "cpython",
            (3, 11),
            "Windows on x86_64, CPython 3.11: the tests of tests/windows were run there, under Wine",
        ),
        (
            Platform("Linux", "arm64", "glibc"),
            "cpython",
            (3, 11),
            "aarch64 (glibc), CPython 3.11: a smoke test was run",
        ),
        (Platform("Linux", "x86_64", "glibc"), "pypy", (3, 11), "PyPy 3.11: a smoke test was run there"),
        (Platform("Linux", "x86_64", "musl"), "cpython", (3, 11), "(musl), CPython 3.11: ripwrap was never run there"),
        (
            Platform("Darwin", "arm64"),
            "cpython",
            (3, 13),
            "macOS on aarch64, CPython 3.13: ripwrap was never run there",
        ),
        (Platform("Linux", "x86_64", "glibc"), "cpython", (3, 99), "CPython 3.99: ripwrap was never run there"),
    ],
)
def test_platform_description_says_what_was_tested_on_it(
    platform: Platform, implementation: str, python: tuple[int, ...], described: str
) -> None:
    assert described in describe(platform, implementation, python)


def test_free_threaded_python_is_another_platform() -> None:
    described = describe(Platform("Linux", "x86_64", "glibc"), "cpython", (3, 13), free_threaded=True)
    assert described.endswith("CPython 3.13, free-threaded: ripwrap was never run there")

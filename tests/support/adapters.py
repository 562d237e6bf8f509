"""Adapters for `inside=` that misbehave, and a distribution that registers adapters by entry points."""

import ctypes
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ripwrap import Location
from ripwrap.sources import base


def lines(content: bytes) -> Iterator[tuple[Location, str]]:
    """Yield each line as a part of its own."""
    for number, line in enumerate(content.decode().splitlines(), 1):
        yield Location(part=f"line {number}"), line


def counted(content: bytes) -> Iterator[tuple[Location, str]]:
    """Append a line to the file that the document names, so that a test sees how often it was read."""
    with open(content.decode().split("\n")[0], "a") as file:
        file.write("read\n")
    yield Location(page=1), content.decode()


def hang(content: bytes) -> Iterator[tuple[Location, str]]:
    while True:
        time.sleep(60)
    yield Location(), ""


def hoard(content: bytes) -> Iterator[tuple[Location, str]]:
    yield Location(page=1), "needle"
    yield Location(page=2), str(len(bytes(8 << 30)))


def crash(content: bytes) -> Iterator[tuple[Location, str]]:
    ctypes.string_at(0)
    yield Location(), ""


def leave(content: bytes) -> Iterator[tuple[Location, str]]:
    os._exit(3)
    yield Location(), ""


def fail(content: bytes) -> Iterator[tuple[Location, str | Exception]]:
    yield Location(page=1), "needle"
    yield Location(page=2), KeyError("no font")
    yield Location(page=3), "needle"
    raise RuntimeError("the rest\nis junk")


def recurse(content: bytes) -> Iterator[tuple[Location, str]]:
    yield from recurse(content)


def chatter(content: bytes) -> Iterator[tuple[Location, str]]:
    sys.stdout.write("needle on stdout")
    sys.stdout.flush()
    yield Location(page=1), "needle"


def confuse(content: bytes) -> Any:
    return ["needle"]


def none(content: bytes) -> Any:
    return None


def register(folder: Path, patch: pytest.MonkeyPatch, **formats: str) -> None:
    """Install a distribution that registers adapters: formats with the names of their functions."""
    about = folder / "ripwrap_test_adapters-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ripwrap-test-adapters\nVersion: 1.0\n")
    points = "".join(f"{name} = {target}\n" for name, target in formats.items())
    (about / "entry_points.txt").write_text(f"[{base.GROUP}]\n{points}")
    patch.syspath_prepend(str(folder))
    base._added.cache_clear()

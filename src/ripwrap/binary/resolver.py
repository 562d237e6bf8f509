"""Finding rg: argument → `RIPWRAP_RG` → the wheel of the `bin` extra → PATH → cache → download.

The first two are exact: given and unusable is an error, and nothing else is tried.
"""

import functools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from ripwrap.binary import platforms, settings
from ripwrap.binary.places import Candidate, candidates, download, trouble
from ripwrap.binary.probe import CANCELLED, RgBinary
from ripwrap.binary.releases import BASE_URL, PINS, asset_name
from ripwrap.errors import BinaryError, BinaryNotFoundError, DownloadFailedError, UnsupportedPlatformError
from ripwrap.options import check_timeout

TIMEOUT = 120.0
"""Seconds that installing may take in all: waiting for others, retries and further mirrors included."""

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the number of bytes that have come, and of those that will, if that is known."""

_INSTALL = {
    "darwin": ("brew install ripgrep",),
    "win32": ("winget install BurntSushi.ripgrep.MSVC", "choco install ripgrep"),
    "linux": ("apt install ripgrep", "dnf install ripgrep", "brew install ripgrep"),
}

Rg: TypeAlias = str | os.PathLike[str] | RgBinary | None
"""What every operation takes as `rg=`: a path, a bare name to find in PATH, a binary found earlier, or nothing."""

T = TypeVar("T")

_Key: TypeAlias = tuple[str | None, ...]
_found: dict[_Key, RgBinary] = {}
_REMEMBERED = 100

_THREADS = 4  # How many tasks of an event loop look for rg at a time.
_LIMITER: RunVar[anyio.CapacityLimiter] = RunVar("ripwrap_finding")


async def resolve(rg: Rg = None) -> RgBinary:
    """The rg to use, as `find()` finds it, in a worker thread where that takes longer than a look into memory.

    A cancelled call ends a download that has begun.
    """
    if found := _remembered(rg):
        return found
    return await in_thread(functools.partial(find, rg))


async def in_thread(call: Callable[[], T]) -> T:
    """Call it in a worker thread, which is told to end if the task is cancelled (`CANCELLED`).

    A few calls at a time: who has waited may learn from memory what the others have found out.
    """
    limiter = _LIMITER.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_THREADS)
        _LIMITER.set(limiter)
    cancelled = threading.Event()

    def told() -> T:
        CANCELLED.set(cancelled)  # in the thread's own context
        return call()

    async with limiter:
        try:
            return await anyio.to_thread.run_sync(told, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
        except BaseException:
            cancelled.set()
            raise


def find(rg: Rg = None, *, timeout: float | None = None) -> RgBinary:
    """The rg to use; installed if there is none, and remembered while nothing that decides it changes.

    Args:
        rg: A path, or a bare name to find in PATH; `None` looks everywhere.
        timeout: Seconds that installing it may take; `None` is two minutes.

    Raises:
        BinaryNotFoundError: There is none, and none may be downloaded; the message lists the places and the ways out.
        BinaryError: `rg` or `RIPWRAP_RG` names something that cannot be used, or installing it failed.
    """
    if found := _remembered(rg):
        return found
    seen: list[Candidate] = []
    for candidate in candidates(_named(rg)):
        if candidate.usable:
            binary = RgBinary(candidate.path, candidate.source)
            break
        seen.append(candidate)
    else:
        binary = _missing(seen, timeout)
    if len(_found) > _REMEMBERED:
        _found.clear()
    return _found.setdefault(_key(rg), binary)


def explain(rg: Rg = None) -> tuple[Candidate, ...]:
    """Every place that `find(rg)` may look at, in its order, and why each is taken or not; installs nothing."""
    if isinstance(rg, RgBinary):
        return (Candidate(rg.source, rg.path, True, "taken: found earlier"),)
    seen: list[Candidate] = []
    for candidate in candidates(_named(rg)):
        if candidate.usable:
            taken = any(earlier.usable for earlier in seen)
            seen.append(replace(candidate, reason="usable, but an earlier one is taken" if taken else "taken"))
        else:
            seen.append(candidate)
    if rg is None and not os.environ.get("RIPWRAP_RG"):
        seen.append(download())
    return tuple(seen)


def how_to_install(platform: str = sys.platform) -> str:
    """The ways to get rg on a platform (`sys.platform`), a line each."""
    system = _INSTALL.get(platform, ("your system's package manager, package ripgrep",))
    return "\n".join(f"  {way}" for way in ('pip install "ripwrap[bin]"', *system))


async def install(
    version: str | None = None,
    *,
    dest: str | os.PathLike[str] | None = None,
    mirrors: Sequence[str] | None = None,
    sha256: str | None = None,
    allow_unpinned: bool = False,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - the worker thread's
    progress: Progress | None = None,
) -> RgBinary:
    """Download a release of rg, verify it, and put it into the cache, or as a single file into a folder.

    What is in the cache already, and whole, is not downloaded again. It happens in a worker thread, where `progress` is
    called too, and which ends when the call is cancelled.

    Args:
        version: The release; `None` is `RIPWRAP_VERSION` or the newest that is pinned.
        dest: A folder, made if need be; `None` is the cache.
        mirrors: Base addresses (`https://`, `http://`, `file://`) in place of GitHub's, tried in order; each holds
            `{version}/{asset}`. `None` is `RIPWRAP_MIRROR` or GitHub.
        sha256: The hash that the archive must have in place of the pinned one: of an archive that a mirror's owner
            made.
        allow_unpinned: Whether a version or platform without a pin may be checked against upstream's `.sha256` file.
        timeout: Seconds for all of it.
        progress: Called with the number of bytes that have come, and of those that will, or `None`.

    Raises:
        UnsupportedPlatformError: This version was released for no platform like this one.
        DownloadFailedError: It did not come; or it has no pin, or the network is forbidden.
        ChecksumMismatchError: What came is not what was released.
        ExtractionFailedError: The archive is not what a release is.
        BinaryError: The folder cannot be used, or what was released does not run here.
    """
    call = functools.partial(
        _install,
        version,
        dest=dest,
        mirrors=mirrors,
        sha256=sha256,
        allow_unpinned=allow_unpinned,
        timeout=timeout,
        progress=progress,
    )
    return await in_thread(call)


def install_blocking(
    version: str | None = None,
    *,
    dest: str | os.PathLike[str] | None = None,
    mirrors: Sequence[str] | None = None,
    sha256: str | None = None,
    allow_unpinned: bool = False,
    timeout: float = TIMEOUT,
    progress: Progress | None = None,
) -> RgBinary:
    """As `install()`, blocking."""
    return _install(
        version,
        dest=dest,
        mirrors=mirrors,
        sha256=sha256,
        allow_unpinned=allow_unpinned,
        timeout=timeout,
        progress=progress,
    )


def _install(
    version: str | None,
    *,
    dest: str | os.PathLike[str] | None = None,
    mirrors: Sequence[str] | None = None,
    sha256: str | None = None,
    allow_unpinned: bool = False,
    timeout: float = TIMEOUT,
    progress: Progress | None = None,
) -> RgBinary:
    from ripwrap.binary import installer  # httpx and filelock, only now

    check_timeout(timeout)
    release = installer.Release(
        version or settings.version_to_install(), sha256 or settings.sha256(), allow_unpinned=allow_unpinned
    )
    path, fresh = installer.install(
        release,
        dest=Path(dest).absolute() if dest is not None else None,
        mirrors=_allowed(settings.mirrors() if mirrors is None else mirrors),
        timeout=timeout,
        progress=progress,
        cancelled=CANCELLED.get(),
    )
    return RgBinary(path, "download" if fresh else "cache")


def _allowed(mirrors: Sequence[str]) -> list[str]:
    """The mirrors that may be asked.

    Raises:
        DownloadFailedError: `RIPWRAP_OFFLINE` leaves none.
    """
    allowed = settings.reachable([mirrors] if isinstance(mirrors, str) else list(mirrors))
    if not allowed and settings.offline():
        raise DownloadFailedError(f"RIPWRAP_OFFLINE is set, so that nothing is downloaded;\n{_how_to_bring_it()}")
    return allowed


def _named(rg: Rg) -> str | None:
    if rg is None or isinstance(rg, RgBinary):
        return None
    named = os.fspath(rg)
    # rg runs in another directory than this process.
    return os.path.abspath(named) if os.path.dirname(named) else named


def _key(rg: Rg) -> _Key:
    """What decides which rg is found."""
    named = os.environ.get("RIPWRAP_RG") or ""
    beside = None
    if os.path.dirname(named) and not os.path.isabs(named):
        with suppress(FileNotFoundError):
            beside = os.getcwd()
    return (_named(rg), beside, os.environ.get("PATH"), *map(os.environ.get, settings.NAMES))


def _remembered(rg: Rg) -> RgBinary | None:
    if isinstance(rg, RgBinary):
        return rg
    found = _found.get(_key(rg))
    if found is not None and trouble(found.path):
        _found.clear()
        return None
    return found


def _missing(seen: Sequence[Candidate], timeout: float | None) -> RgBinary:
    """Install rg where nothing was found, or say why not."""
    places = "\n".join(f"  {place.source}: {place.path}: {place.reason}" for place in seen)
    if seen[0].source in ("argument", "RIPWRAP_RG"):
        raise BinaryError(f"the rg that was asked for cannot be used:\n{places}\nName another one, or none.")
    ways = f"Install it, for instance:\n{how_to_install()}\nor name one: rg=… or RIPWRAP_RG=…"
    looked = f"rg (ripgrep) was not found. ripwrap looked at:\n{places}\n"
    if settings.offline() and not settings.mirrors():
        raise BinaryNotFoundError(f"{looked}  download: RIPWRAP_OFFLINE is set\n{ways}\n{_how_to_bring_it()}")
    try:
        return _install(None, timeout=TIMEOUT if timeout is None else min(timeout, TIMEOUT))
    except BinaryError as error:
        error.add_note(f"{looked}{ways}")
        raise


def _how_to_bring_it() -> str:
    """How a release gets onto a machine without network."""
    version = settings.version_to_install()
    try:
        target = platforms.targets(platforms.current(), version)[0]
    except UnsupportedPlatformError as error:
        return str(error)
    asset = asset_name(version, target)
    return (
        f"or bring {BASE_URL}/{version}/{asset}\n(SHA-256 {PINS.get((version, target), 'unknown')}) from elsewhere, "
        f"put it at /DIR/{version}/{asset}\nand set RIPWRAP_MIRROR=file:///DIR"
    )

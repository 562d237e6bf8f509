"""Installing rg: download, verify, extract, try, publish; once, however many processes ask at the same time.

Everything happens in a folder of its own inside the cache, and becomes visible by one rename, after the new rg has
said which version it is. A process that is killed at any moment leaves at most such a folder, and the next installer
removes it.
"""

import errno
import logging
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import filelock

from ripwrap.binary import cache, platforms
from ripwrap.binary.archive import extract
from ripwrap.binary.download import Fetcher
from ripwrap.binary.probe import OLDEST, ask
from ripwrap.binary.releases import BASE_URL, DEFAULT_VERSION, PINS, asset_name, folder_name
from ripwrap.binary.settings import redacted
from ripwrap.errors import BinaryError, ChecksumMismatchError, DownloadFailedError

_LOGGER = logging.getLogger("ripwrap")
_STAGING = ".ripwrap-tmp-"
_LOCK_POLL = 0.2  # Seconds between looks at the clock while another process installs.
_BUSY_SECONDS = 1.0
_NOEXEC = ". If programs may not run from there, set RIPWRAP_CACHE_DIR to another folder, or RIPWRAP_RG to another rg"


@dataclass(frozen=True, slots=True)
class Release:
    """What to install.

    Attributes:
        version: The release of rg.
        sha256: The hash that a mirror's own archive has; `None` for the pinned one.
        allow_unpinned: Whether an archive without a pin may be checked against upstream's `.sha256` file instead.
    """

    version: str = DEFAULT_VERSION
    sha256: str | None = None
    allow_unpinned: bool = False

    def __post_init__(self) -> None:
        """Check the version, which becomes part of paths.

        Raises:
            BinaryError: It is not like `15.2.0`, or older than 13; or the hash is none.
        """
        if not re.fullmatch(r"\d+(\.\d+)*", self.version):
            raise BinaryError(f"{self.version!r} is no version of rg; name one like {DEFAULT_VERSION}")
        if tuple(map(int, self.version.split("."))) < OLDEST[:1]:
            raise BinaryError(f"rg {self.version} is too old: 13 or later is needed")
        if self.sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", self.sha256):
            raise BinaryError(f"{self.sha256!r} is no SHA-256, which has 64 hexadecimal digits (RIPWRAP_SHA256)")

    def hash_of(self, target: str, fetcher: Fetcher) -> str:
        """The hash that this release's archive must have.

        Raises:
            DownloadFailedError: It has no pin, and none but pinned ones are allowed; or its `.sha256` file did not
                come.
        """
        if pin := self.sha256 or PINS.get((self.version, target)):
            return pin
        path = f"{self.version}/{asset_name(self.version, target)}"
        if self.allow_unpinned:
            return fetcher.published_sha256(path)
        pinned = ", ".join(sorted({version for version, known in PINS if known == target})) or "none"
        raise DownloadFailedError(
            f"rg {self.version} for {target} has no pinned SHA-256 (pinned versions: {pinned}). Choose one of them, or "
            "pass allow_unpinned=True to trust the .sha256 file that is published beside it.",
            url=f"{BASE_URL}/{path}",
        )


def install(
    release: Release,
    *,
    dest: Path | None,
    mirrors: Sequence[str],
    timeout: float,
    progress: Callable[[int, int | None], None] | None,
    cancelled: threading.Event,
) -> tuple[str, bool]:
    """Put a release of rg into the cache, or as a single file into the folder `dest`; tells where, and if it is new.

    Args:
        release: What to install.
        dest: A folder, made if need be; `None` is the cache, where what is there already is kept.
        mirrors: Base addresses, tried in order.
        timeout: Seconds for all of it, waiting for other installers included.
        progress: Told how many bytes have come, and how many will if that is known.
        cancelled: Set by another thread when nobody wants it any more.

    Raises:
        UnsupportedPlatformError, DownloadFailedError, ChecksumMismatchError, ExtractionFailedError: As their names say.
        BinaryError: The folder cannot be used, or the rg that was released does not run here.
    """
    fetcher = Fetcher(mirrors, time.monotonic() + timeout, progress, cancelled)
    candidates = platforms.targets(platforms.current(), release.version)
    folder = dest or cache.folder()
    with _explaining(folder):
        if dest is not None:
            dest.mkdir(parents=True, exist_ok=True)
            return _install_any(release, candidates, fetcher, dest, _publish_file)
        if folder.is_absolute():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if reason := cache.distrust(folder):
            raise BinaryError(
                f"{folder} is not used as a cache: {reason}. Set RIPWRAP_CACHE_DIR to a folder of your own."
            )
        if there := _there(release, candidates, folder):
            return there, False
        with _locked(folder / "lock", fetcher):
            if there := _there(release, candidates, folder):  # by now
                return there, False
            for left_over in folder.glob(f"{_STAGING}*"):
                if os.name == "nt" or left_over.lstat().st_uid == os.geteuid():
                    shutil.rmtree(left_over, ignore_errors=True)
            return _install_any(release, candidates, fetcher, folder, _publish_folder)


def _there(release: Release, candidates: Sequence[str], folder: Path) -> str:
    """The path of a release that is in the cache and whole, or empty."""
    for target in candidates:
        rg = folder / folder_name(release.version, target) / cache.NAME
        if not cache.damage(rg):
            return str(rg)
    return ""


@contextmanager
def _locked(path: Path, fetcher: Fetcher) -> Generator[None]:
    """Hold a lock, waiting for it until the fetcher gives up."""
    lock = filelock.FileLock(path)
    while True:
        try:
            lock.acquire(timeout=_LOCK_POLL)
        except filelock.Timeout:
            fetcher.check(f"the rg that another process is installing into {path.parent}")
        else:
            break
    try:
        yield
    finally:
        lock.release()


def _install_any(
    release: Release, candidates: Sequence[str], fetcher: Fetcher, folder: Path, publish: Callable[[Path, Path], Path]
) -> tuple[str, bool]:
    """The first target that was released and runs here."""
    failure: BinaryError | None = None
    for target in candidates:
        try:
            return str(_install(release, target, fetcher, folder, publish)), True
        except _DoesNotRunError as error:
            failure = error
        except DownloadFailedError as error:
            if (
                target != candidates[-1]
                and error.status in (404, None)
                and not isinstance(error, ChecksumMismatchError)
            ):
                failure = failure or error
                continue
            raise
    raise failure or DownloadFailedError("there is nothing to download for this platform")


def _install(
    release: Release, target: str, fetcher: Fetcher, folder: Path, publish: Callable[[Path, Path], Path]
) -> Path:
    asset = asset_name(release.version, target)
    sha256 = release.hash_of(target, fetcher)
    _LOGGER.info("downloading %s from %s", asset, redacted(fetcher.mirrors[0]) if fetcher.mirrors else "nowhere")
    staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=folder))
    try:
        rg = staging / cache.NAME
        with tempfile.TemporaryFile(dir=staging) as archive:
            fetcher.fetch(f"{release.version}/{asset}", sha256, archive)
            with rg.open("xb") as program:
                extract(archive, asset, f"{folder_name(release.version, target)}/{cache.NAME}", program)
                program.flush()
                os.fsync(program.fileno())
        rg.chmod(0o755)
        _try(rg, release.version)
        cache.write_record(rg, sha256)
        published = publish(staging, folder / folder_name(release.version, target))
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    _LOGGER.info("installed rg %s as %s", release.version, published)
    return published


def _publish_folder(staging: Path, final: Path) -> Path:
    """Into the cache: the whole folder, by one rename; what is damaged there makes way first."""
    if os.path.lexists(final):
        _rename(final, staging.with_name(f"{staging.name}-old"))
        _remove(staging.with_name(f"{staging.name}-old"))
    staging.chmod(0o755)
    _rename(staging, final)
    return final / cache.NAME


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def _publish_file(staging: Path, final: Path) -> Path:
    """Into a folder of the caller's: the program alone, over what has its name."""
    rg = final.parent / cache.NAME
    _rename(staging / cache.NAME, rg)
    return rg


def _rename(source: Path, target: Path) -> None:
    """Rename; on Windows a virus scanner may hold a new file for a while."""
    for pause in (0.01 * 2**n for n in range(10)):
        try:
            source.replace(target)
        except PermissionError:
            if os.name != "nt":
                raise
            time.sleep(pause)
        else:
            return
    source.replace(target)


class _DoesNotRunError(BinaryError):
    """A verified rg does not run on this machine."""


def _try(rg: Path, version: str) -> None:
    """Run `rg --version` on a new rg.

    Raises:
        BinaryError: It does not run, or is another version.
    """
    give_up = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            returncode, printed, complained = ask(str(rg), "--version")
        except OSError as error:
            # Another thread may have forked while the file was open for writing.
            if error.errno == errno.ETXTBSY and time.monotonic() < give_up:
                time.sleep(0.01)
                continue
            raise _DoesNotRunError(f"the rg in {rg.parent} does not run here: {error}{_NOEXEC}") from error
        said = (printed or complained).strip()
        if returncode or not said.startswith(f"ripgrep {version}"):
            raise _DoesNotRunError(f"rg {version} does not run here: exit code {returncode}, {said[:200]!r}{_NOEXEC}")
        return


@contextmanager
def _explaining(folder: Path) -> Generator[None]:
    """Turn what the disk says into one error with a way out."""
    way_out = (
        "Set RIPWRAP_CACHE_DIR to a folder that you can write to, or install rg yourself and name it: RIPWRAP_RG=…"
    )
    try:
        yield
    except OSError as error:
        raise BinaryError(f"rg cannot be installed into {folder}: {error.strerror or error}. {way_out}") from error

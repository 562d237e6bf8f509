"""Install rg: download an archive, verify it, extract one program from it safely, and put it into the cache.

Sizes are limited, links are refused, and no file is created under a name from the archive: only the expected member is
copied, as a stream. An archive with an encrypted member, or with too many members, is refused, too.
"""

import errno
import gzip
import logging
import os
import re
import shutil
import stat
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from ripwrap._system.concurrency import ProcessLock, hold_lock, replace_file
from ripwrap._system.deflate64 import BROKEN, DEFLATE64, add_to_zipfile, inflated
from ripwrap._system.windows import explain_exit
from ripwrap.binary import cache, platforms
from ripwrap.binary.cache import redact
from ripwrap.binary.download import ALLOW_MORE_TIME, Fetcher
from ripwrap.binary.platforms import (
    BASE_URL,
    DEFAULT_VERSION,
    MAX_BINARY_BYTES,
    PINS,
    asset_name,
    folder_name,
    parse_folder_name,
    wrong_release,
)
from ripwrap.binary.probe import OLDEST, ask, format_version, parse_version
from ripwrap.errors import (
    BinaryError,
    ChecksumMismatchError,
    DownloadFailedError,
    ExtractionFailedError,
    Hint,
    HintedText,
)

Info = TypeVar("Info")

CHUNK_BYTES = 64 * 1024
MAX_HEADER_BYTES = 1024 * 1024
MAX_MEMBERS = 1000
"""Maximum number of members of an archive; releases have about 15."""

MAX_UNPACKED_BYTES = 2 * MAX_BINARY_BYTES
"""Maximum size of all members together, in bytes."""

_MAGIC = {"tar.gz": b"\x1f\x8b", "zip": b"PK\x03\x04"}


def extract(archive: IO[bytes], name: str, member: str, into: IO[bytes]) -> None:
    """Copy one member of an archive into an open file."""
    kind = "zip" if name.endswith(".zip") else "tar.gz"
    archive.seek(0)
    start = archive.read(16)
    archive.seek(0)
    if not start.startswith(_MAGIC[kind]):
        raise ExtractionFailedError(
            f"{name} is not a {kind} archive: it starts with {start!r}; check the file in the mirror"
        )
    try:
        chunks = _read_zip(archive, name, member) if kind == "zip" else _read_tar(archive, name, member)
        size = 0
        for chunk in chunks:
            size += len(chunk)  # counted, because the size that the archive states may be wrong
            if size > MAX_BINARY_BYTES:
                raise ExtractionFailedError(
                    f"the program in {name} is larger than {MAX_BINARY_BYTES} bytes, so this is not a release of rg; "
                    "download a release of rg"
                )
            into.write(chunk)
    except NotImplementedError as error:
        raise ExtractionFailedError(
            f"{name} is compressed in a way that Python cannot read: {error}; compress the archive with Deflate"
        ) from error
    except BROKEN as error:
        # EINVAL is an impossible offset in the archive; other error numbers come from the disk.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise ExtractionFailedError(f"{name} is broken: {error}; download it again") from error


def _read_tar(archive: IO[bytes], name: str, member: str) -> Iterator[bytes]:
    with _Gunzip(fileobj=archive, mode="rb") as unzipped, tarfile.open(fileobj=unzipped, mode="r:") as tar:
        members: list[tarfile.TarInfo] = []
        unpacked = 0
        for info in tar:
            unzipped.left = MAX_HEADER_BYTES
            unpacked += info.size
            if unpacked > MAX_UNPACKED_BYTES:
                raise ExtractionFailedError(_too_large(name))
            _check_member(
                name, info.name, safe=info.isdir() or (info.isreg() and not info.issparse()), count=len(members)
            )
            members.append(info)
        unzipped.left = MAX_UNPACKED_BYTES * 2  # for the rest of the archive, and then for one member
        while unzipped.read(CHUNK_BYTES):  # read to the end for gzip's checksum; `tarfile` does not read that far
            if unzipped.tell() > MAX_UNPACKED_BYTES:
                raise ExtractionFailedError(_too_large(name))
        files = [(info.name, info) for info in members if info.isreg()]
        opened = tar.extractfile(_get_only(files, name, member))
        while opened is not None and (chunk := opened.read(CHUNK_BYTES)):
            yield chunk


class _Gunzip(gzip.GzipFile):
    """Gzip file that refuses to read too many bytes, because `tarfile` would read a name of gigabytes into memory."""

    left = MAX_HEADER_BYTES

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes; raise `ReadError` if `size` is negative, `None` or more than `left`."""
        if size is None or not 0 <= size <= self.left:
            raise tarfile.ReadError(f"a header has more than {MAX_HEADER_BYTES} bytes")
        self.left -= size
        return super().read(size)


def _read_zip(archive: IO[bytes], name: str, member: str) -> Iterator[bytes]:
    with zipfile.ZipFile(archive) as unzipped:
        members = unzipped.infolist()
        if sum(info.file_size for info in members) > MAX_UNPACKED_BYTES:
            raise ExtractionFailedError(_too_large(name))
        for count, info in enumerate(members):
            mode = info.external_attr >> 16
            safe = stat.S_IFMT(mode) in (0, stat.S_IFREG, stat.S_IFDIR) and not info.flag_bits & 1
            _check_member(name, info.filename, safe=safe, count=count)
        found = _get_only([(info.filename, info) for info in members if not info.is_dir()], name, member)
        if found.compress_type == DEFLATE64:  # not in ripgrep's own archives, but perhaps in that of a mirror
            chunks = inflated(archive, found, found.CRC)
            if chunks is not None:
                yield from chunks
                return
            if not add_to_zipfile():
                raise ExtractionFailedError(
                    f"{name} is compressed with Deflate64, which needs another package: "
                    f"{Hint(kind='install', target='ripwrap[deflate64]')}"
                )
        with unzipped.open(found) as opened:
            while chunk := opened.read(CHUNK_BYTES):
                yield chunk


def _too_large(name: str) -> str:
    return (
        f"{name} unpacks to more than {MAX_UNPACKED_BYTES} bytes, so it is not a release of rg; download a release of "
        "rg"
    )


def _check_member(archive: str, member: str, *, safe: bool, count: int) -> None:
    parts = member.replace("\\", "/").split("/")
    if not safe or not member or member.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        raise ExtractionFailedError(
            f"{archive} is refused: {member!r} is not an ordinary file or directory, is encrypted, has no name, or "
            "leads out of the archive's directory; download a release of rg"
        )
    if count >= MAX_MEMBERS:
        raise ExtractionFailedError(
            f"{archive} is refused: it has more than {MAX_MEMBERS} members, so it is not a release of rg; download a "
            "release of rg"
        )


def _get_only(files: list[tuple[str, Info]], archive: str, member: str) -> Info:
    """Return the file with the name `member`; raise an error if no file, or more than one, has this name."""
    found = [info for name, info in files if name == member]
    if not found:
        names = [member, *(name for name, _ in files)]
        expected, *there = (parse_folder_name(name.partition("/")[0])[0] for name in names)
        for actual in there:
            if actual not in ("", expected):
                raise ExtractionFailedError(wrong_release(archive, actual, expected))
    if len(found) != 1:
        raise ExtractionFailedError(
            f"{archive} must have exactly one regular file {member!r}, found {len(found)}; use a release of rg"
        )
    return found[0]


_LOGGER = logging.getLogger("ripwrap")
_STAGING_PREFIX = ".ripwrap-tmp-"
BUSY_RETRY_SECONDS = 1.0
"""Maximum number of seconds to retry the start of the new rg, while another process has the file of rg open."""

_NOEXEC_HINT = (
    ". If the system lets no program run from the directory of the cache, set RIPWRAP_CACHE_DIR to another directory, "
    "or set RIPWRAP_RG to the path of an rg that runs"
)


@dataclass(frozen=True, slots=True)
class Release:
    """A release to install."""

    version: str = DEFAULT_VERSION
    sha256: str | None = None
    allow_unpinned: bool = False

    def __post_init__(self) -> None:
        """Check the hash, and the version, which becomes part of paths."""
        if not re.fullmatch(r"\d+(\.\d+)*", self.version):
            raise BinaryError(f"{self.version!r} is not a version of rg; pass a version such as {DEFAULT_VERSION}")
        if tuple(map(int, self.version.split("."))) < OLDEST[:1]:
            raise BinaryError(f"rg {self.version} is too old: 13 or later is needed")
        if self.sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", self.sha256):
            raise BinaryError(
                f"a SHA-256 must have 64 hexadecimal digits, got {self.sha256!r}; correct the hash that you passed, or "
                "the variable RIPWRAP_SHA256"
            )

    def hash_of(self, target: str, fetcher: Fetcher) -> str:
        """Return the hash that this release's archive must have."""
        if pin := self.sha256 or PINS.get((self.version, target)):
            return pin
        path = f"{self.version}/{asset_name(self.version, target)}"
        if self.allow_unpinned:
            return fetcher.published_sha256(path)
        pinned = ", ".join(sorted({version for version, known in PINS if known == target}))
        choose = (
            f" (pinned versions: {pinned}). Choose one of them, or pass "
            if pinned
            else ", and neither has any other version. Pass "
        )
        raise DownloadFailedError(
            HintedText(
                f"rg {self.version} for {target} has no pinned SHA-256{choose}",
                Hint("allow_unpinned", True),
                " to trust the .sha256 file that is published with the archive.",
            ),
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
    platform: platforms.Platform | None = None,
    advice: HintedText | None = None,
) -> tuple[str, bool]:
    """Install a release of rg into the cache, or as one file into `dest`.

    Return the path of rg, and True if it was installed now, or False if the cache had it.
    """
    fetcher = Fetcher(mirrors, time.monotonic() + timeout, progress, cancelled, advice=advice or ALLOW_MORE_TIME)
    candidates = platforms.targets(platform or platforms.current(), release.version)
    check = _check_runs if platform is None else None
    folder = dest or cache.folder()
    try:
        if dest is not None:
            dest.mkdir(parents=True, exist_ok=True)
            return _install_any(release, candidates, fetcher, dest, _publish_file, check)
        if folder.is_absolute():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if reason := cache.why_untrusted(folder):
            raise BinaryError(
                f"{folder} is not used as a cache: {reason}. Set RIPWRAP_CACHE_DIR to a directory of your own."
            )
        if there := _find_installed(release, candidates, folder):
            return there, False
        awaited = f"the rg that another process is installing into {folder}"
        with hold_lock(ProcessLock(folder / "lock"), lambda: fetcher.check(awaited)):
            if there := _find_installed(release, candidates, folder):  # another process has installed it meanwhile
                return there, False
            for left_over in folder.glob(f"{_STAGING_PREFIX}*"):
                if sys.platform == "win32" or left_over.lstat().st_uid == os.geteuid():
                    shutil.rmtree(left_over, ignore_errors=True)
            return _install_any(release, candidates, fetcher, folder, _publish_folder, check)
    except OSError as error:
        raise BinaryError(
            f"rg cannot be installed into {folder}: {error.strerror or error}. Set RIPWRAP_CACHE_DIR to a directory "
            "that you can write to, or install rg yourself and set RIPWRAP_RG to its path"
        ) from error


def _find_installed(release: Release, candidates: Sequence[str], folder: Path) -> str:
    """Return the path of a complete release in the cache; empty if there is none."""
    for target in candidates:
        rg = folder / folder_name(release.version, target) / cache.NAME
        if not cache.damage(rg):
            return str(rg)
    return ""


def _install_any(
    release: Release,
    candidates: Sequence[str],
    fetcher: Fetcher,
    folder: Path,
    publish: Callable[[Path, Path], Path],
    check: Callable[[Path, str, str], None] | None,
) -> tuple[str, bool]:
    """Try the targets in order, until an rg could be downloaded and passes `check`; return its path, and True."""
    failure: BinaryError | None = None
    for target in candidates:
        try:
            return str(_install(release, target, fetcher, folder, publish, check)), True
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
    raise failure or DownloadFailedError("no archive of rg is published for this platform")


def _install(
    release: Release,
    target: str,
    fetcher: Fetcher,
    folder: Path,
    publish: Callable[[Path, Path], Path],
    check: Callable[[Path, str, str], None] | None,
) -> Path:
    asset = asset_name(release.version, target)
    sha256 = release.hash_of(target, fetcher)
    if fetcher.mirrors:
        _LOGGER.info("downloading %s from %s", asset, redact(fetcher.mirrors[0]))
    else:
        _LOGGER.info("cannot download %s: the list of mirrors is empty", asset)
    staging = Path(tempfile.mkdtemp(prefix=_STAGING_PREFIX, dir=folder))
    try:
        rg = staging / cache.NAME
        with tempfile.TemporaryFile(dir=staging) as archive:
            source = fetcher.fetch(f"{release.version}/{asset}", sha256, archive)
            try:
                with rg.open("xb") as program:
                    extract(archive, asset, f"{folder_name(release.version, target)}/{cache.NAME}", program)
                    program.flush()
                    os.fsync(program.fileno())
                rg.chmod(0o755)
                if check is not None:  # an rg for another platform cannot run here
                    check(rg, release.version, asset)
            except BinaryError as error:
                error.add_note(f"downloaded from {source}")
                raise
        cache.write_record(rg, sha256)
        published = publish(staging, folder / folder_name(release.version, target))
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    _LOGGER.info("installed rg %s as %s", release.version, published)
    return published


def _publish_folder(staging: Path, final: Path) -> Path:
    """Rename the staging directory to its final name in the cache, and return the path of rg.

    A directory that already has this name is removed first: it must be damaged, because otherwise `install()` would
    have returned it.
    """
    if os.path.lexists(final):
        old = staging.with_name(f"{staging.name}-old")
        replace_file(final, old)
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink()
    staging.chmod(0o755)
    replace_file(staging, final)
    return final / cache.NAME


def _publish_file(staging: Path, final: Path) -> Path:
    """Move only the program into the caller's directory, replacing a file of that name; return where the program is."""
    rg = final.parent / cache.NAME
    replace_file(staging / cache.NAME, rg)
    return rg


class _DoesNotRunError(BinaryError):
    """Error for a verified rg that does not run on this machine."""


def _check_runs(rg: Path, version: str, archive: str) -> None:
    """Run a new rg from an archive with `--version`, and check that it has the expected version."""
    give_up = time.monotonic() + BUSY_RETRY_SECONDS
    while True:
        try:
            returncode, printed, complained = ask(str(rg), "--version")
        except OSError as error:
            # ETXTBSY: another thread forked while the file was open for writing, and its child still has that
            # descriptor (execve(2)).
            if error.errno == errno.ETXTBSY and time.monotonic() < give_up:
                time.sleep(0.01)
                continue
            raise _DoesNotRunError(f"the rg in {rg.parent} does not run here: {error}{_NOEXEC_HINT}") from error
        actual = parse_version(printed)
        if returncode or actual is None:
            said = explain_exit(returncode) or repr((printed or complained).strip()[:200])
            raise _DoesNotRunError(f"rg {version} does not run here: exit code {returncode}, {said}{_NOEXEC_HINT}")
        expected = tuple(map(int, version.split(".")))
        if actual[: len(expected)] != expected:
            raise BinaryError(wrong_release(archive, format_version(actual), version))
        return

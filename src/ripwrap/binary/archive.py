"""One program out of a tar.gz or zip, safely: names are compared and never joined, sizes bounded, links refused.

Nothing is extracted in the sense of `extractall`: the one member that is expected is copied, as a stream, into a file
that the caller opened. An archive that holds anything which rg's releases never hold is refused as a whole.
"""

import errno
import gzip
import importlib
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, TypeVar

from ripwrap.binary.releases import MAX_BINARY
from ripwrap.errors import ExtractionFailedError

Info = TypeVar("Info")

_CHUNK = 64 * 1024
_MAX_READ = 1024 * 1024
_MAX_MEMBERS = 1000  # Releases have about 15.
_MAX_UNPACKED = 2 * MAX_BINARY  # All members together, in bytes.
_MAGIC = {"tar.gz": b"\x1f\x8b", "zip": b"PK\x03\x04"}
_DEFLATE64 = 9
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    LookupError,  # of `tarfile`, where an archive ends inside of a sparse file's headers
    OSError,
    RuntimeError,
    ValueError,
)


def extract(archive: IO[bytes], name: str, member: str, into: IO[bytes]) -> None:
    """Copy one member of an archive into an open file.

    Args:
        archive: The archive, seekable, at any position.
        name: Its file name, whose ending says what it is.
        member: The member's whole name, e.g. `ripgrep-15.2.0-x86_64-apple-darwin/rg`.
        into: Where its bytes go.

    Raises:
        ExtractionFailedError: The archive is broken, is not what its name says, lacks the member or has it twice, holds
            links or names that lead elsewhere, is too large, or needs the extra `deflate64`.
    """
    kind = "zip" if name.endswith(".zip") else "tar.gz"
    archive.seek(0)
    start = archive.read(16)
    archive.seek(0)
    if not start.startswith(_MAGIC[kind]):
        raise ExtractionFailedError(f"{name} is not a {kind} archive: it starts with {start!r}")
    try:
        chunks = _from_zip(archive, name, member) if kind == "zip" else _from_tar(archive, name, member)
        _copy(chunks, name, into)
    except NotImplementedError as error:
        raise ExtractionFailedError(f"{name} is compressed in a way that Python cannot read: {error}") from error
    except _BROKEN as error:
        # An offset that no file can have is the archive's, all other numbers are the disk's.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise ExtractionFailedError(f"{name} is broken: {error}; download it again") from error


def _copy(chunks: Iterator[bytes], name: str, into: IO[bytes]) -> None:
    """Write what the archive really gives, whatever size it declares."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_BINARY:
            raise ExtractionFailedError(f"{name} holds a program of more than {MAX_BINARY} bytes")
        into.write(chunk)


def _from_tar(archive: IO[bytes], name: str, member: str) -> Iterator[bytes]:
    with _Gunzip(fileobj=archive, mode="rb") as unzipped, tarfile.open(fileobj=unzipped, mode="r:") as tar:
        members: list[tarfile.TarInfo] = []
        unpacked = 0
        for info in tar:
            unpacked += info.size
            if unpacked > _MAX_UNPACKED:
                raise ExtractionFailedError(f"{name} unpacks to more than {_MAX_UNPACKED} bytes")
            _check(name, info.name, safe=info.isdir() or (info.isreg() and not info.issparse()), count=len(members))
            members.append(info)
        while unzipped.read(_CHUNK):  # to its end, where the checksum is, which `tarfile` does not reach
            if unzipped.tell() > _MAX_UNPACKED:
                raise ExtractionFailedError(f"{name} unpacks to more than {_MAX_UNPACKED} bytes")
        found = [info for info in members if info.name == member and info.isreg()]
        opened = tar.extractfile(_only(found, name, member))
        while opened is not None and (chunk := opened.read(_CHUNK)):
            yield chunk


class _Gunzip(gzip.GzipFile):
    """Reads no more at once than any header needs: `tarfile` would take a name of gigabytes into memory."""

    def read(self, size: int | None = -1) -> bytes:
        """At most `_MAX_READ` bytes; more is an error."""
        if size is None or not 0 <= size <= _MAX_READ:
            raise tarfile.ReadError(f"it asks for {size} bytes at once")
        return super().read(size)


def _from_zip(archive: IO[bytes], name: str, member: str) -> Iterator[bytes]:
    with zipfile.ZipFile(archive) as unzipped:
        members = unzipped.infolist()
        if sum(info.file_size for info in members) > _MAX_UNPACKED:
            raise ExtractionFailedError(f"{name} unpacks to more than {_MAX_UNPACKED} bytes")
        for count, info in enumerate(members):
            mode = info.external_attr >> 16
            safe = stat.S_IFMT(mode) in (0, stat.S_IFREG, stat.S_IFDIR) and not info.flag_bits & 1
            _check(name, info.filename, safe=safe, count=count)
        found = _only([info for info in members if info.filename == member and not info.is_dir()], name, member)
        if found.compress_type == _DEFLATE64:
            yield from _deflate64(archive, unzipped, found, name)
            return
        with unzipped.open(found) as opened:
            while chunk := opened.read(_CHUNK):
                yield chunk


def _check(archive: str, member: str, *, safe: bool, count: int) -> None:
    parts = member.replace("\\", "/").split("/")
    if not safe or not member or member.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        raise ExtractionFailedError(
            f"{archive} is refused: {member!r} is a link, is encrypted, or leads out of its folder; releases never do"
        )
    if count >= _MAX_MEMBERS:
        raise ExtractionFailedError(f"{archive} is refused: it has more than {_MAX_MEMBERS} members")


def _only(found: list[Info], archive: str, member: str) -> Info:
    if len(found) != 1:
        raise ExtractionFailedError(
            f"{archive} should hold {member!r} once, as a regular file, and has it {len(found)} times"
        )
    return found[0]


def _deflate64(archive: IO[bytes], unzipped: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
    """A member that the standard library cannot read; no release has one, a mirror that packs anew may."""
    try:
        inflate64 = importlib.import_module("inflate64")
    except ModuleNotFoundError:
        yield from _patched(unzipped, info, name)
        return
    # The local header: 30 bytes, then a name and an extra field of their own lengths.
    archive.seek(info.header_offset)
    header = archive.read(30)
    archive.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    inflater, left, checksum = inflate64.Inflater(), info.compress_size, 0
    while left and (packed := archive.read(min(left, _CHUNK))):
        left -= len(packed)
        chunk: bytes = inflater.inflate(packed)
        checksum = zlib.crc32(chunk, checksum)
        yield chunk
    if checksum != info.CRC:
        raise zipfile.BadZipFile(f"bad CRC-32 for {info.filename!r}")


def _patched(unzipped: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
    try:
        importlib.import_module("zipfile_deflate64")  # teaches `zipfile` the method
    except ModuleNotFoundError:
        raise ExtractionFailedError(
            f'{name} is compressed with Deflate64, for which Python needs help: pip install "ripwrap[deflate64]"'
        ) from None
    with unzipped.open(info) as opened:
        while chunk := opened.read(_CHUNK):
            yield chunk

"""Extract one program from a tar.gz or zip safely.

Sizes are limited, links are refused, and no file is created under a name from the archive.

Only the expected member is copied, as a stream, into a file that the caller opened; `extractall` is never called. An
archive with an encrypted member, or with too many members, is refused, too.
"""

import errno
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, TypeVar

from ripwrap._system.deflate64 import DEFLATE64, add_to_zipfile, inflated
from ripwrap.binary.platforms import MAX_BINARY_BYTES, parse_folder_name, wrong_release
from ripwrap.errors import ExtractionFailedError, Hint

Info = TypeVar("Info")

CHUNK_BYTES = 64 * 1024
MAX_HEADER_BYTES = 1024 * 1024
MAX_MEMBERS = 1000
"""Maximum number of members of an archive; releases have about 15."""

MAX_UNPACKED_BYTES = 2 * MAX_BINARY_BYTES
"""Maximum size of all members together, in bytes."""

_MAGIC = {"tar.gz": b"\x1f\x8b", "zip": b"PK\x03\x04"}
_DAMAGE_ERRORS = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    LookupError,  # raised by `tarfile` if an archive ends inside of a sparse file's headers
    OSError,
    RuntimeError,
    ValueError,
)


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
        _copy(chunks, name, into)
    except NotImplementedError as error:
        raise ExtractionFailedError(
            f"{name} is compressed in a way that Python cannot read: {error}; compress the archive with Deflate"
        ) from error
    except _DAMAGE_ERRORS as error:
        # EINVAL is an impossible offset in the archive; other error numbers come from the disk.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise ExtractionFailedError(f"{name} is broken: {error}; download it again") from error


def _copy(chunks: Iterator[bytes], name: str, into: IO[bytes]) -> None:
    """Write chunks to a file; raise an error if the chunks together have more than `MAX_BINARY_BYTES`.

    The bytes are counted, because the size that the archive states may be wrong.
    """
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_BINARY_BYTES:
            raise ExtractionFailedError(
                f"the program in {name} is larger than {MAX_BINARY_BYTES} bytes, so this is not a release of rg; "
                "download a release of rg"
            )
        into.write(chunk)


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
        if found.compress_type == DEFLATE64:
            yield from _read_deflate64(archive, unzipped, found, name)
            return
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


def _read_deflate64(archive: IO[bytes], unzipped: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
    """Yield the bytes of a Deflate64 member, which `zipfile` cannot read.

    ripgrep's own archives do not use Deflate64, but the archive of a mirror may.
    """
    chunks = inflated(archive, info, info.CRC)
    if chunks is not None:
        yield from chunks
        return
    if not add_to_zipfile():
        raise ExtractionFailedError(
            f"{name} is compressed with Deflate64, which needs another package: "
            f"{Hint(kind='install', target='ripwrap[deflate64]')}"
        )
    with unzipped.open(info) as opened:
        while chunk := opened.read(CHUNK_BYTES):
            yield chunk

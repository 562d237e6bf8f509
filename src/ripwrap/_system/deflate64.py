"""Unpack Deflate64, which `zipfile` cannot read, with the package inflate64 (extra `deflate64`).

Also the errors that the standard library raises for archives.
"""

import importlib
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

DEFLATE64 = 9
"""Number of the method of compression (APPNOTE.TXT 4.4.5)."""

BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError),
    LookupError,  # raised by `tarfile` if an archive ends inside of a sparse file's headers
)
"""Errors that the standard library raises for archives that are broken, encrypted or in an unknown format."""

_PACKED_BYTES = 512
"""Number of bytes that are unpacked at a time; each byte may become 29,000 bytes."""


def inflated(archive: IO[bytes], info: zipfile.ZipInfo, checksum: int) -> Iterator[bytes] | None:
    """Return the content of a member of a zip in pieces; `None` if the package is not installed."""
    try:
        inflate64 = importlib.import_module("inflate64")
    except ModuleNotFoundError:
        return None
    return _inflated(inflate64.Inflater(), archive, info, checksum)


def add_to_zipfile() -> bool:
    """Let `zipfile` read Deflate64 with the package zipfile-deflate64; return False if that is not installed."""
    try:
        importlib.import_module("zipfile_deflate64")
    except ModuleNotFoundError:
        return False
    return True


def _inflated(inflater: Any, archive: IO[bytes], info: zipfile.ZipInfo, checksum: int) -> Iterator[bytes]:
    # The local header (APPNOTE.TXT 4.3.7) has 30 bytes, a name and an extra field. The last 4 of the 30 bytes are the
    # lengths of both.
    archive.seek(info.header_offset)
    header = archive.read(30)
    archive.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    left, found = info.compress_size, 0
    while left and (packed := archive.read(min(left, _PACKED_BYTES))):
        left -= len(packed)
        chunk: bytes = inflater.inflate(packed)
        found = zlib.crc32(chunk, found)
        yield chunk
    if found != checksum:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {info.filename!r}")

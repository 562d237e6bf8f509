"""Files that are unpacked: readers that limit what `zipfile`, `tarfile` and `lzma` read and keep before they return.

Other readers keep what can be read of a damaged file, and find out its compression and the names of its members.
"""

import io
import lzma
import re
import struct
import tarfile
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import IO, Any, cast

from ripwrap._text import plural

HEADER_BYTES = 1 << 20
"""Maximum size in bytes of the headers of one member of a tar; `tarfile` reads these headers into memory."""

_MAX_DIGITS = 100
"""Maximum number of digits in a row in a PAX header, for whose squares `tarfile` needs time."""

_MANY_DIGITS = re.compile(rb"(?<!\d)\d{%d}" % (_MAX_DIGITS + 1))
_LENGTH = re.compile(rb"(\d{1,10}) ")

_DIRECTORY_BYTES = 32 << 20
"""Maximum size in bytes of the directory of a zip, which `zipfile` reads into memory."""

DICTIONARY_BYTES = 128 << 20
"""Maximum size in bytes of the memory to unpack xz and LZMA. The preset `xz -9`, the largest, takes 65 MiB."""

_SALVAGED_BYTES = 4096
"""Number of bytes that are unpacked at a time. If they are damaged, so many bytes before the damage may be lost."""

_USTAR = slice(257, 262)
"""Place of the word `ustar` in the header of a tar, which all but the oldest programs write."""

_UTF8_FLAG = 0x800
"""Flag of a member of a zip whose name is in UTF-8 (APPNOTE.TXT 4.4.4, bit 11)."""

_UNICODE_PATH = 0x7075
"""Extra field of a member of a zip with its name in UTF-8 (APPNOTE.TXT 4.6.9)."""

_UNIX = 3
"""Number of the system that wrote a member of a zip (APPNOTE.TXT 4.4.2.2)."""

_COMPRESSIONS = {
    "gzip": rb"\x1f\x8b",
    "bzip2": rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)",
    "xz": rb"\xfd7zXZ\0",
    "zstd": rb"\x28\xb5\x2f\xfd",
    "lzip": rb"LZIP\x01",
    "compress": rb"\x1f\x9d",
    "lzop": rb"\x89LZO\0",
    "lz4": rb"\x04\x22\x4d\x18",
}
"""First bytes of compressed files, which do not begin a tar without compression. LZMA without xz has no such bytes."""

TOO_MUCH_MEMORY = "Memory usage limit exceeded"
"""Message of `lzma` for a dictionary that is too large."""


class LimitError(Exception):
    """Error for a limit that a file exceeds; the rest of the file is not read."""


class _Watched(io.RawIOBase):
    """File that calls a function before each read."""

    def __init__(self, file: Any, check: Callable[[], object]) -> None:
        self._file = file
        self._check = check

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, and return it."""
        return int(self._file.seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer."""
        self._check()
        return int(self._file.readinto(buffer))


class Input(io.BufferedReader):
    """File that is unpacked. Each read from the disk calls a function, and large reads are refused.

    Only the reader of the directory of a zip asks for so many bytes at a time. It asks for the size in the file, which
    may be false, and reads all of the directory at once.
    """

    _ENTRY = b"PK\1\2"

    def __init__(self, file: Any, check: Callable[[], object]) -> None:
        super().__init__(_Watched(file, check))
        self.max_entries: int | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes."""
        if size is not None and size > _DIRECTORY_BYTES:
            raise LimitError(f"its directory is larger than {plural(_DIRECTORY_BYTES, 'byte')}")
        found = super().read(size)
        if self.max_entries is not None and found.count(self._ENTRY) > self.max_entries:
            raise LimitError(too_many(self.max_entries))
        return found


class _ChunkReader(io.RawIOBase):
    """File that a subclass reads in `_next()`."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer."""
        chunk = self._next(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)

    @abstractmethod
    def _next(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end."""


class Unpacked(_ChunkReader):
    """Content of an xz or LZMA file. It is read like `lzma.LZMAFile`, which cannot limit its memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = self._new()
        self._ended = False

    @staticmethod
    def _new() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(memlimit=DICTIONARY_BYTES)

    def _next(self, size: int) -> bytes:
        """Return the next bytes."""
        while not self._ended:
            if self._decoder.eof:
                found = self._next_stream(size)
            else:
                packed = self._file.read(io.DEFAULT_BUFFER_SIZE) if self._decoder.needs_input else b""
                if not packed and self._decoder.needs_input:
                    raise EOFError("the compressed data end too early")
                found = self._decoder.decompress(packed, size)
            if found:
                return found
        return b""

    def _next_stream(self, size: int) -> bytes:
        """Begin the next stream of the file, if there is one, and return its first bytes."""
        packed = self._decoder.unused_data or self._file.read(io.DEFAULT_BUFFER_SIZE)
        self._decoder = self._new()
        try:
            if packed:
                return self._decoder.decompress(packed, size)
        except lzma.LZMAError as error:  # other data follow, which `LZMAFile` ignores, too
            if str(error) == TOO_MUCH_MEMORY:
                raise
        self._ended = True
        return b""


class Salvaged(_ChunkReader):
    """File that ends where its data are broken, as the programs that unpack them print all before that place."""

    def __init__(self, file: Any, errors: tuple[type[Exception], ...], checksum: int | None = None) -> None:
        self.error: Exception | None = None
        self._file = file
        self._errors = errors
        self._expected = checksum
        self._checksum = self._size = 0

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._file.close()

    def _next(self, size: int) -> bytes:
        if self.error:
            return b""
        try:
            chunk = bytes(self._file.read1(min(size, _SALVAGED_BYTES)))
        except (MemoryError, TimeoutError):
            raise
        except self._errors as error:
            if not self._size:
                raise
            self.error = error
            return b""
        self._size += len(chunk)
        if self._expected is not None:
            self._checksum = zlib.crc32(chunk, self._checksum)
            if not chunk and self._checksum != self._expected:
                self.error = zipfile.BadZipFile("Bad CRC-32")
        return chunk


class Pieces(_ChunkReader):
    """File whose content comes in pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def _next(self, size: int) -> bytes:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = piece
        chunk, self._rest = self._rest[:size], self._rest[size:]
        return chunk


class Counting(_ChunkReader):
    """File that counts the bytes that are read, and limits the size of headers."""

    _MAX_READS_AT_END = 100
    """Maximum number of reads at the end of the file. A false size in a header makes `tarfile` repeat such reads."""

    def __init__(self, file: IO[bytes], count: Callable[[int], None]) -> None:
        self.most: int = HEADER_BYTES
        self._file = file
        self._count = count
        self._read = 0
        self._reads_at_end = 0

    def _next(self, size: int) -> bytes:
        chunk = self._file.read(size)
        self._count(len(chunk))
        self._read += len(chunk)
        self._reads_at_end += not chunk
        if self._reads_at_end > self._MAX_READS_AT_END:
            raise tarfile.ReadError("unexpected end of data")
        if self._read > self.most:
            raise tarfile.ReadError(f"a header has more than {HEADER_BYTES} bytes")
        return chunk


class CheckedInfo(tarfile.TarInfo):
    """Header of a tar whose PAX records are checked before `tarfile` reads them.

    `tarfile` takes quadratic time for digits (CVE-2024-6232), and for records that overlap: 64 KiB take five seconds.
    """

    def _proc_pax(self, archive: Any) -> Any:
        stream = archive.fileobj
        size = -(-self.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        content: bytes = stream.read(size)
        if _MANY_DIGITS.search(content):
            raise tarfile.ReadError(f"a PAX header has more than {_MAX_DIGITS} digits in a row")
        start = 0
        while start < len(content) and content[start]:  # each record is `length key=value` and a newline (POSIX.1-2001)
            found = _LENGTH.match(content, start)
            end = start + int(found[1]) if found else 0
            if not found or not found.end() < content.find(b"=", found.end(), end) or content[end - 1 : end] != b"\n":
                raise tarfile.ReadError("a PAX header has a broken record")
            start = end

        def read(_: int) -> bytes:
            archive.fileobj = stream
            return content

        archive.fileobj = SimpleNamespace(read=read)  # `tarfile` reads the records once more
        return cast("Any", super())._proc_pax(archive)  # noqa: SLF001 - this method


def dictionary_size(file: Input, info: zipfile.ZipInfo) -> int:
    """Return the size of the memory to unpack an LZMA member of a zip (APPNOTE.TXT 4.4.7 and 5.8); 0 if it is cut."""
    file.seek(info.header_offset + 26)
    sizes = file.read(4)
    file.seek(sum(struct.unpack("<2H", sizes.ljust(4, b"\0"))), io.SEEK_CUR)
    properties = file.read(9)
    return int.from_bytes(properties[5:], "little")


def compression(file: Input) -> str:
    """Return the name of the compression that the first bytes of a file tell; empty if they tell none.

    It is `tar` for a tar without compression (POSIX.1-1988, 'ustar Interchange Format').
    """
    start = file.peek(_USTAR.stop)
    if start[_USTAR] == b"ustar":
        return "tar"
    return next((name for name, pattern in _COMPRESSIONS.items() if re.match(pattern, start, re.DOTALL)), "")


def member_name(info: zipfile.ZipInfo) -> str:
    """Return the name of a member of a zip, with `/` as separator.

    `zipfile` reads a name without the UTF-8 flag as cp437. But programs on Unix write it in UTF-8 or in the encoding of
    file names, and programs on Windows may write backslashes.
    """
    name = info.orig_filename
    if not info.flag_bits & _UTF8_FLAG:
        raw = name.encode("cp437")
        known = _unicode_path(info.extra, raw)
        try:
            name = (known or raw).decode()
        except UnicodeDecodeError:
            name = raw.decode("utf-8", "surrogateescape") if info.create_system == _UNIX else name
    name = name.partition("\0")[0]
    # On Unix, a backslash may be a character of a name, as in units of systemd.
    return name if info.create_system == _UNIX and "/" in name else name.replace("\\", "/")


def _unicode_path(extra: bytes, raw: bytes) -> bytes:
    """Return the name in an extra field; empty if there is none, or if it is of another name than `raw`."""
    while len(extra) > 4:
        kind, size = struct.unpack_from("<HH", extra)
        field, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == _UNICODE_PATH and field[1:5] == zlib.crc32(raw).to_bytes(4, "little"):
            return field[5:]
    return b""


def too_many(members: int) -> str:
    """Return the message of the error for too many members."""
    return f"more than {plural(members, 'member')}"

"""Files that are unpacked: readers that limit what `zipfile`, `tarfile` and `lzma` read and keep before they return."""

import io
import lzma
import struct
import tarfile
import zipfile
from collections.abc import Callable
from typing import IO, Any

from ripwrap._text import plural

HEADER_BYTES = 1 << 20
"""Maximum size in bytes of the headers of one member of a tar; `tarfile` reads these headers into memory."""

_DIRECTORY_BYTES = 32 << 20
"""Maximum size in bytes of the directory of a zip, which `zipfile` reads into memory."""

DICTIONARY_BYTES = 128 << 20
"""Maximum size in bytes of the memory to unpack xz and LZMA. The preset `xz -9`, the largest, takes 65 MiB."""

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

    Attributes:
        max_entries: Maximum number of entries of the directory; `None` after it was read.
    """

    _ENTRY = b"PK\1\2"

    def __init__(self, file: Any, check: Callable[[], object]) -> None:
        super().__init__(_Watched(file, check))
        self.max_entries: int | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes.

        Raises:
            LimitError: Too many bytes are asked for, or they have too many entries of a directory.
        """
        if size is not None and size > _DIRECTORY_BYTES:
            raise LimitError(f"its directory is larger than {plural(_DIRECTORY_BYTES, 'byte')}")
        found = super().read(size)
        if self.max_entries is not None and found.count(self._ENTRY) > self.max_entries:
            raise LimitError(too_many(self.max_entries))
        return found


class Unpacked(io.RawIOBase):
    """Content of an xz or LZMA file. It is read like `lzma.LZMAFile`, which cannot limit its memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = self._new()
        self._ended = False

    @staticmethod
    def _new() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(memlimit=DICTIONARY_BYTES)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer.

        Raises:
            EOFError: The file is cut.
            lzma.LZMAError: The file is broken, or would need too much memory.
        """
        while not self._ended:
            if self._decoder.eof:
                found = self._next_stream(len(buffer))
            else:
                packed = self._file.read(io.DEFAULT_BUFFER_SIZE) if self._decoder.needs_input else b""
                if not packed and self._decoder.needs_input:
                    raise EOFError("the compressed data end too early")
                found = self._decoder.decompress(packed, len(buffer))
            if found:
                buffer[: len(found)] = found
                return len(found)
        return 0

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


class Counting(io.RawIOBase):
    """File that counts the bytes that are read, and limits the size of headers.

    Attributes:
        left: Number of bytes that may be read until the next member begins.
    """

    _MAX_READS_AT_END = 100
    """Maximum number of reads at the end of the file. A false size in a header makes `tarfile` repeat such reads."""

    def __init__(self, file: IO[bytes], count: Callable[[int], None]) -> None:
        self.left: int = HEADER_BYTES
        self._file = file
        self._count = count
        self._reads_at_end = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer."""
        chunk = self._file.read(len(buffer))
        self._count(len(chunk))
        self.left -= len(chunk)
        self._reads_at_end += not chunk
        if self._reads_at_end > self._MAX_READS_AT_END:
            raise tarfile.ReadError("unexpected end of data")
        if self.left < 0:
            raise tarfile.ReadError(f"a header has more than {HEADER_BYTES} bytes")
        buffer[: len(chunk)] = chunk
        return len(chunk)


def dictionary_size(file: Input, info: zipfile.ZipInfo) -> int:
    """Return the size of the memory to unpack an LZMA member of a zip (APPNOTE.TXT 4.4.7 and 5.8); 0 if it is cut."""
    file.seek(info.header_offset + 26)
    sizes = file.read(4)
    file.seek(sum(struct.unpack("<2H", sizes.ljust(4, b"\0"))), io.SEEK_CUR)
    properties = file.read(9)
    return int.from_bytes(properties[5:], "little")


def too_many(members: int) -> str:
    """Return the message of the error for too many members."""
    return f"more than {plural(members, 'member')}"

"""Fuzz the extraction of rg from archives: it succeeds or raises `ExtractionFailedError`, within the size limit.

Compression and checksums would hide the structure of an archive from mutations, so most inputs are not archives. The
last byte of an input chooses how an archive is made of the rest: unchanged; as an uncompressed tar, which gets
checksums and compression; or as choices for the members and headers of a tar or zip, false headers among them.
"""

import io
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar

import atheris

from harness import fuzz

with atheris.instrument_imports(include=["ripwrap", "gzip", "tarfile", "zipfile"]):
    import gzip
    import tarfile
    import zipfile

    from ripwrap import ExtractionFailedError
    from ripwrap._system import deflate64 as _deflate64
    from ripwrap.binary import installer as archives

import inflate64

from support.mirror import targz, zipped

archives.MAX_BINARY_BYTES = 1 << 16  # type: ignore[attr-defined]  # a small limit, so that small inputs can exceed it
archives.MAX_UNPACKED_BYTES = 1 << 17

T = TypeVar("T")

_FOLDER = "ripgrep-15.2.0-x"
_MEMBER = f"{_FOLDER}/rg"
_BLOCK = tarfile.BLOCKSIZE
_FORMATS: tuple[Literal[0, 1, 2], ...] = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
_TYPES = (*tarfile.SUPPORTED_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, b"?")
_NAMES = (
    _MEMBER,
    _FOLDER,
    f"{_FOLDER}/README.md",
    f"{_FOLDER}/doc/rg.1",
    f"{_FOLDER}/../rg",
    "/rg",
    "C:/rg",
    "..\\rg",
    "",
)
_KEYWORDS = (
    *("path", "linkpath", "size", "mtime", "hdrcharset", "uid", "GNU.sparse.major", "GNU.sparse.minor"),
    *("GNU.sparse.map", "GNU.sparse.name", "GNU.sparse.size", "GNU.sparse.numblocks", "GNU.sparse.realsize"),
)
_VALUES = ("0", "1", "-1", "-512", "1e999", "nan", "BINARY", "0,512", "9" * 30, _MEMBER)
_SIZES = (0, 1, -1, 12, 511, 512, 513, 1 << 16, (1 << 16) + 1, (1 << 32) - 1, 1 << 63, (1 << 64) - 1, -(1 << 63))
_COMPRESSED = (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, _deflate64.DEFLATE64, 1)


def _pick(drawn: Any, values: Sequence[T]) -> T:
    at: int = drawn.ConsumeIntInRange(0, len(values) - 1)
    return values[at]


def _seldom(drawn: Any, usual: T, values: Sequence[T]) -> T:
    """Return the usual value most of the time, because an archive with many errors is refused at its first one."""
    return _pick(drawn, values) if drawn.ConsumeIntInRange(0, 7) == 7 else usual


def _content(drawn: Any) -> bytes:
    some: bytes = drawn.ConsumeBytes(drawn.ConsumeIntInRange(0, 600))
    return some * _seldom(drawn, 1, (0, 100, 1000))


def _name(drawn: Any) -> str:
    name: str = _pick(drawn, (*_NAMES, drawn.ConsumeUnicode(8), "n" * 300))
    return name


def _tar(drawn: Any) -> bytes:
    blocks = list[bytes]()
    for _ in range(drawn.ConsumeIntInRange(1, 6)):
        kind = _seldom(drawn, tarfile.REGTYPE, _TYPES)
        content = (
            _pax(drawn) if kind in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE) else _content(drawn)
        )
        info = tarfile.TarInfo(_name(drawn))
        info.type, info.size = kind, len(content)
        try:
            header = bytearray(info.tobuf(_pick(drawn, _FORMATS), "utf-8", "surrogatepass"))
        except ValueError:  # a name that this format cannot hold
            continue
        size = _seldom(drawn, len(content), _SIZES)
        header[-_BLOCK + 124 : -_BLOCK + 136] = (
            _base256(size) if _pick(drawn, (False, True)) else b"%011o\0" % (size % (1 << 33))
        )
        if kind == tarfile.GNUTYPE_SPARSE:
            header[-_BLOCK + 386 : -_BLOCK + 495] = drawn.ConsumeBytes(109).ljust(109, b"0")
        blocks += bytes(header), content.ljust(-(-len(content) // _BLOCK) * _BLOCK, b"\0")
    return _checksummed(b"".join(blocks) + _seldom(drawn, b"\0" * 2 * _BLOCK, (b"", b"\0" * _BLOCK, b"x" * 700)))


def _base256(size: int) -> bytes:
    return (b"\xff" if size < 0 else b"\x80") + (size % (1 << 88)).to_bytes(11, "big")


def _pax(drawn: Any) -> bytes:
    records = bytearray()
    for _ in range(drawn.ConsumeIntInRange(0, 4)):
        said = f" {_pick(drawn, _KEYWORDS)}={_pick(drawn, (*_VALUES, drawn.ConsumeUnicode(8)))}\n"
        record = said.encode("utf-8", "surrogatepass")
        length = len(record) + len(str(len(record) + 2))
        records += str(_seldom(drawn, length, (0, 1, 3, length + 1, 10**9))).encode() + record
    return bytes(records)


def _checksummed(tar: bytes) -> bytes:
    """Return the tar with correct checksums in all headers."""
    fixed = bytearray(tar)
    for start in range(0, len(tar) - _BLOCK + 1, _BLOCK):
        if tar[start + 257 : start + 262] == b"ustar":
            fixed[start + 148 : start + 156] = b" " * 8
            fixed[start + 148 : start + 155] = b"%06o\0" % sum(fixed[start : start + _BLOCK])
    return bytes(fixed)


def _gzipped(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=1, mtime=0)


def _zip(drawn: Any) -> bytes:
    members, central = bytearray(_seldom(drawn, b"", (b"MZ", b"PK\x03\x04"))), bytearray()
    count = drawn.ConsumeIntInRange(1, 5)
    for _ in range(count):
        name, content = _name(drawn).encode("utf-8", "surrogatepass"), _content(drawn)
        method = _seldom(drawn, zipfile.ZIP_DEFLATED, _METHODS)
        packed = _damaged(drawn, _packed(method, content))
        flags = _seldom(drawn, 0, (0x1, 0x8, 0x20, 0x40, 0x800, 0xFFFF))
        checksum = _seldom(drawn, zlib.crc32(content), (0,))
        sizes = struct.pack("<III", checksum, _size(drawn, len(packed)), _size(drawn, len(content)))
        extra = _seldom(drawn, b"", (_zip64(drawn), drawn.ConsumeBytes(40)))
        common = struct.pack("<HHHHH", 20, flags, method, 0, 33) + sizes
        offset = _size(drawn, len(members))
        members += b"PK\x03\x04" + common + struct.pack("<HH", len(name), len(extra))
        members += _seldom(drawn, name, (b"other",)) + extra + packed
        mode = _seldom(drawn, 0o100755, (0, 0o120777, 0o040755, 0o010644))
        central += (
            b"PK\x01\x02"
            + struct.pack("<H", 20)
            + common
            + struct.pack("<HHHHHII", len(name), len(extra), 0, 0, 0, mode << 16, offset)
        )
        central += name + extra
    end = b"".join(
        (
            _seldom(drawn, b"", (_end64(drawn, count, len(central), len(members)),)),
            b"PK\x05\x06",
            struct.pack("<HHHH", 0, 0, count, count),
            struct.pack("<II", _size(drawn, len(central)), _size(drawn, len(members))),
            struct.pack("<H", 0),
        )
    )
    return bytes(members + central + end)


def _size(drawn: Any, right: int) -> int:
    return _seldom(drawn, right, _SIZES) % (1 << 32)


def _zip64(drawn: Any) -> bytes:
    """Return the zip64 extra field: sizes and offsets beyond 32 bits."""
    held = struct.pack("<QQQ", *(_pick(drawn, _SIZES) % (1 << 64) for _ in range(3)))[: _pick(drawn, (8, 16, 24))]
    return struct.pack("<HH", 1, len(held)) + held


def _end64(drawn: Any, count: int, size: int, offset: int) -> bytes:
    size, offset = (_seldom(drawn, right, _SIZES) % (1 << 64) for right in (size, offset))
    record = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, offset)
    return record + struct.pack("<4sIQI", b"PK\x06\x07", 0, _pick(drawn, _SIZES) % (1 << 64), 1)


def _packed(method: int, content: bytes) -> bytes:
    if method == _deflate64.DEFLATE64:
        deflater = inflate64.Deflater()
        return bytes(deflater.deflate(content) + deflater.flush())
    compressor = zipfile._get_compressor(method, 1) if method in _COMPRESSED else None  # type: ignore[attr-defined]
    return bytes(compressor.compress(content) + compressor.flush()) if compressor else content


def _damaged(drawn: Any, packed: bytes) -> bytes:
    at, instead = drawn.ConsumeIntInRange(0, 40), drawn.ConsumeBytes(_seldom(drawn, 0, (1, 4)))
    return packed[:at] + instead + packed[at + len(instead) :] if instead else packed


_MAKERS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("a.tar.gz", lambda data: _gzipped(_tar(atheris.FuzzedDataProvider(data)))),
    ("a.zip", lambda data: _zip(atheris.FuzzedDataProvider(data))),
    ("a.tar.gz", lambda data: _gzipped(_checksummed(data))),
    ("a.tar.gz", bytes),
    ("a.zip", bytes),
)
_archive = tempfile.TemporaryFile()  # noqa: SIM115 - seeking in a file raises other errors than in memory


def one(data: bytes) -> None:
    """Run one input."""
    if not data:
        return
    name, make = _MAKERS[data[-1] % len(_MAKERS)]
    _archive.seek(0)
    _archive.truncate()
    _archive.write(make(data[:-1]))
    into = io.BytesIO()
    try:
        archives.extract(_archive, name, _MEMBER, into)
    except ExtractionFailedError as error:
        str(error)
    assert len(into.getvalue()) <= archives.MAX_BINARY_BYTES  # type: ignore[attr-defined]


def _seeds() -> Iterator[bytes]:
    program = bytes(range(256)) * 3
    packed = targz(_FOLDER, program)
    raw = gzip.decompress(packed)
    links = io.BytesIO()
    with tarfile.open(fileobj=links, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for kind in (tarfile.SYMTYPE, tarfile.GNUTYPE_SPARSE, tarfile.DIRTYPE):
            info = tarfile.TarInfo(f"{_FOLDER}/{'n' * 120}é")
            info.type, info.linkname = kind, "l" * 120
            tar.addfile(info)
    for_windows = zipped(_FOLDER, program).replace(b"/rg.exe", b"/rg")
    sparse = tarfile.TarInfo(_MEMBER)
    sparse.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(sparse.tobuf(tarfile.GNU_FORMAT))
    header[482] = 1  # says that a header with more holes of the sparse file follows
    for number, seed in (
        (2, raw[:4096]),
        (2, links.getvalue()[:8000]),
        (2, bytes(header) + raw[:_BLOCK]),
        (3, packed),
        (4, for_windows),
    ):
        yield seed + bytes([number])
    for number, fill in ((number, fill) for number in (0, 1) for fill in (b"\0", b"\x01", b"\x07", b"U", b"\xff")):
        yield fill * 300 + bytes([number])
    rising = bytes(range(256))
    for number, step in ((number, step) for number in (0, 1) for step in (3, 5, 7, 11, 13)):
        yield bytes(rising[place * step % 256] for place in range(400)) + bytes([number])


_WORDS = (
    *(
        _MEMBER.encode(),
        b"ustar\x0000",
        b"ustar  \0",
        b"PK\x01\x02",
        b"PK\x03\x04",
        b"PK\x05\x06",
        b"PK\x06\x06",
        b"PK\x06\x07",
    ),
    *(keyword.encode() for keyword in _KEYWORDS),
    *(b"\x80" + b"\0" * 3 + b"\x7f", b"\xff" * 11 + b"\0", b"0" * 11, b"7" * 11),
)

if __name__ == "__main__":
    fuzz(one, _seeds(), _WORDS)

"""Read the members of archives and compressed files: zip, tar, gzip, bzip2, xz and zstd, also archives in archives.

Notebooks and documents, on the disk and in archives, are read by a `DocumentReader`.

No name of a member becomes a path on the disk. Each member is read into memory, or, if it is a large archive, into a
temporary file without a name, up to a maximum size; the sizes in headers are not trusted. If a member is encrypted,
broken, too large or compressed in an unknown way, an error is recorded, and the next member is read. The rest of a file
is not read after an error that concerns the whole file, such as too many members.

`zipfile` and `tarfile` keep data of all members in memory, and their loops may read much before they return a member.
So the limits also hold while they read a directory, and every read of a file checks whether the search has ended.
"""

import bz2
import gzip
import importlib
import io
import lzma
import os
import stat
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, cast

from ripwrap._system.deflate64 import BROKEN, DEFLATE64, add_to_zipfile, inflated
from ripwrap._system.safe_open import open_regular_file
from ripwrap._text import plural
from ripwrap.errors import Hint, HintedText, RipwrapError
from ripwrap.models import PathError
from ripwrap.sources.base import (
    SUFFIXES,
    Format,
    Item,
    LocatedName,
    Source,
    as_formats,
    check_installed,
    find_format,
    format_of,
    inner_name,
    installed_formats,
)
from ripwrap.sources.reading import DocumentError, DocumentReader
from ripwrap.sources.unpacking import (
    DICTIONARY_BYTES,
    HEADER_BYTES,
    TOO_MUCH_MEMORY,
    CheckedInfo,
    Counting,
    Input,
    LimitError,
    Pieces,
    Salvaged,
    Unpacked,
    compression,
    dictionary_size,
    member_name,
    too_many,
)

_DOCUMENTS = ("ipynb", "ipynb-outputs", "pdf", "docx", "xlsx")

_CHUNK_BYTES = 1 << 20
_DOCUMENT_BYTES = 128 << 20
"""Maximum size in bytes of a document, which is held in memory by this process and by the process that reads it."""

_HELD_BYTES = 16 << 20
"""Maximum size in bytes of an archive in an archive that is held in memory; a larger one is in a temporary file."""

_MAX_NAME_CHARS = 8192
"""Maximum length of the name of a member, with the path of its archive."""

_SHOWN_CHARS = 200
"""Number of characters of a name that is too long which are shown."""

_MAX_ERRORS = 1000
"""Maximum number of errors that are recorded for a file; the rest of them are counted."""

_GLOBAL_HEADERS = frozenset({*tarfile.PAX_FIELDS, "hdrcharset"})
"""Headers for all later members of a tar that `tarfile` applies; it keeps any other, too, and copies them."""

_RATIO_FROM_BYTES = 16 << 20
_COMPRESSED: dict[str, tuple[str, ...]] = {
    "gzip": (".gz", ".tgz", ".taz", ".crate"),
    "bzip2": (".bz2", ".bz", ".tbz", ".tbz2", ".tb2", ".tz2"),
    "xz": (".xz", ".txz", ".lzma", ".tlz"),
    "zstd": (".zst", ".tzst"),
}
"""File extensions of each compression, for a file whose first bytes do not tell it."""

_BROKEN = (MemoryError, *BROKEN)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits for reading one file, together with all archives in it."""

    member_bytes: int = 256 << 20
    total_bytes: int = 4 << 30
    members: int = 100_000
    ratio: int = 200
    depth: int = 3


class _ClosedError(Exception):
    """Error that stops the reading of archives because the search has ended."""


class ArchiveSource(Source):
    """Source of items in files on the disk: members of archives, contents of compressed files, parts of documents."""

    def __init__(
        self,
        cwd: str,
        paths: Iterable[str],
        inside: Sequence[str],
        bounds: Bounds = Bounds(),
        *,
        follow: bool,
        named: Collection[str] = (),
        reader: DocumentReader | None = None,
    ) -> None:
        """Choose the files; a file with a format that is not in `inside` is skipped.

        Links in the paths `named`, which are those of the caller, are followed. A document with such a path is read
        even if `selects()` returns False for it. The source closes the `reader` of documents.
        """
        super().__init__()
        self._cwd = cwd
        self._paths = paths
        self._inside = inside
        self._bounds = bounds
        self._follow = follow
        self._named = named
        self._closed = False
        self.reader: DocumentReader = reader or DocumentReader(None)

    def __iter__(self) -> Iterator[Item]:
        try:
            for path in self._paths:
                if self._closed:
                    return
                yield from self._file(path)
        finally:
            self.reader.close()

    def _file(self, path: str) -> Iterator[Item]:
        kind = format_of(path, self._inside)
        if kind is None or (find_format(kind) and path not in self._named and not self.selects(path)):
            return
        try:
            with open_regular_file(self._cwd, path, follow=self._follow, roots=tuple(self._named)) as file:
                yield from _Reader(self, file, self._inside, self._bounds).read_all(path, file)
        except TimeoutError:  # a subclass of `OSError`, but here it means the time limit of the search
            raise
        except OSError as error:
            self.errors.append(PathError(path=path, kind="other", message=error.strerror or str(error)))

    def members(self, name: str, file: IO[bytes]) -> Iterator[Item]:
        """Yield the members of an archive, compressed file or document that is open."""
        try:
            yield from _Reader(self, file, self._inside, self._bounds).read_all(name, file)
        except _ClosedError:
            return

    def close(self) -> None:
        """End the process that reads documents, and stop the reading of archives at the next chunk of a member."""
        self._closed = True
        self.reader.close()

    def check_open(self) -> None:
        """Raise `_ClosedError` if the search has ended, and `TimeoutError` if it has reached its time limit."""
        if self._closed:
            raise _ClosedError
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise TimeoutError("the time limit was reached before all archives were read; allow more time")


class _Reader:
    """Reader of one file, and of all archives in this file."""

    def __init__(self, source: ArchiveSource, file: IO[bytes], inside: Sequence[str], bounds: Bounds) -> None:
        self._source = source
        self._inside = inside
        self._bounds = bounds
        self._packed = file.seek(0, io.SEEK_END)
        file.seek(0)
        self._read = 0
        self._members = 0
        self._errors = 0

    def read_all(self, name: str, file: Any) -> Iterator[Item]:
        """Yield the members of a file on the disk or in memory; see `read()`."""
        yield from self.read(name, file, 1)
        if self._errors > _MAX_ERRORS:
            more = plural(self._errors - _MAX_ERRORS, "more member")
            self._source.errors.append(PathError(path=name, kind="other", message=f"{more} could not be read"))

    def read(self, name: str, file: Any, depth: int) -> Iterator[Item]:
        """Yield the members of a file."""
        kind = format_of(name, self._inside)
        document = find_format(kind or "")
        packed = Input(file, self._source.check_open)
        try:
            match kind:
                case "zip":
                    yield from self._zip(name, packed, depth)
                case "tar":
                    yield from self._tar(name, packed, depth)
                case _ if document is not None:
                    yield from self._document(name, document, file)
                case _:
                    base = name.replace(os.sep, "/").rpartition("/")[2]
                    inner = inner_name(name, base.rpartition(".")[0] or base[1:])  # of `.gz`, it is `gz`
                    yield from self._member(inner, lambda: _decompress(name, packed), depth)
        except LimitError as error:
            if depth > 1:  # the limits apply to the whole file on the disk
                raise
            advice = "" if document else ": extract it to search all of it"
            self._fail(name, f"{error}; the rest of the file was not searched{advice}")
        except TimeoutError:  # the time limit of the search
            raise
        except _BROKEN as error:
            self._source.check_open()  # see `_member()`
            self._fail(name, _broken(error))

    def _zip(self, name: str, file: Input, depth: int) -> Iterator[Item]:
        file.max_entries = self._bounds.members
        with zipfile.ZipFile(file) as archive:
            file.max_entries = None
            for info in archive.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)
                path = member_name(info)
                if path.endswith("/") or kind not in (0, stat.S_IFREG):
                    continue
                member = inner_name(name, path)
                if info.flag_bits & 1:
                    self._fail(member, "encrypted; extract it to search it")
                    continue
                if info.compress_type == zipfile.ZIP_LZMA and dictionary_size(file, info) > DICTIONARY_BYTES:
                    self._fail(member, _broken(lzma.LZMAError(TOO_MUCH_MEMORY)))
                    continue
                checksum = info.CRC
                del info.CRC  # so that `zipfile` returns a content with a wrong checksum
                yield from self._member(member, partial(_open, archive, file, info, checksum), depth, checksum=checksum)

    def _tar(self, name: str, file: Input, depth: int) -> Iterator[Item]:
        stream = Salvaged(_decompress(name, file), _BROKEN)
        try:
            counting = Counting(cast("IO[bytes]", stream), self._count)
            with tarfile.open(fileobj=io.BufferedReader(counting), mode="r|", tarinfo=CheckedInfo) as archive:
                kept: Any = archive
                while (info := archive.next()) is not None:
                    kept.members.clear()  # `tarfile` would keep the headers of all members
                    for key in kept.pax_headers.keys() - _GLOBAL_HEADERS:
                        del kept.pax_headers[key]
                    counting.most = kept.offset + HEADER_BYTES  # where the next header begins, whatever this one says
                    if not info.isreg():
                        self._count_member()
                    else:
                        member = inner_name(name, info.name)
                        read = partial(archive.extractfile, info)
                        # Most bytes of a sparse member are not in the archive; they are counted when they are read.
                        yield from self._member(member, read, depth, counted=not info.issparse())
        except tarfile.TarError:
            if stream.error is None:
                raise
        if stream.error is not None:  # also if the tar ends between two members
            raise stream.error

    def _member(
        self,
        name: str,
        open_member: Callable[[], IO[bytes] | None],
        depth: int,
        *,
        counted: bool = False,
        checksum: int | None = None,
    ) -> Iterator[Item]:
        """Yield a member; for a member that is an archive or document, yield its members or parts."""
        self._count_member()
        if not self._is_short(name):
            return
        kind = format_of(name, self._inside)
        is_document = kind is not None and find_format(kind) is not None
        is_archive = kind is not None and not is_document
        if not is_archive and not self._source.selects(name):
            return
        if is_archive and depth >= self._bounds.depth:
            depth_text = plural(self._bounds.depth, "level")
            self._fail(name, f"not opened: archives are nested more than {depth_text} deep; extract it to search it")
            return
        with cast("Any", tempfile.SpooledTemporaryFile(_HELD_BYTES)) if is_archive else io.BytesIO() as content:
            try:
                with Salvaged(open_member(), _BROKEN, checksum) as opened:
                    fits = self._copy(name, opened, content, counted=counted, is_document=is_document)
            except _BROKEN as error:
                self._source.check_open()  # `zipfile` hides a `TimeoutError`, which is an `OSError`
                self._fail(name, _broken(error))
                return
            if opened.error is not None:
                in_part = not is_document and kind != "zip"
                self._fail(name, _broken(opened.error) + ("; only the text before that was searched" * in_part))
                fits &= in_part
            if fits and (is_document or is_archive):
                yield from self.read(name, content, depth + 1)
            elif fits:
                yield name, content.getvalue()

    def _document(self, name: str, document: Format, file: Any) -> Iterator[Item]:
        """Yield the parts of a document; record an error for each unreadable part."""
        if not isinstance(file, io.BytesIO):  # a file on the disk
            content = io.BytesIO()
            if not self._copy(name, file, content, counted=False, is_document=True, is_member=False):
                return
            file = content
        self._source.check_open()
        try:
            found = self._source.reader.read(document, file.getvalue())
        except DocumentError as error:
            self._fail(name, str(error))
            return
        for part, said in found.errors:
            self._fail(name if part is None else LocatedName.of(name, part), said)
        for location, text in found.parts:
            self._count_member()
            self._count(len(text))
            part_name = LocatedName.of(name, location)
            if self._is_short(part_name):
                yield part_name, text

    def _is_short(self, name: str) -> bool:
        """Return True if a name has an allowed length; otherwise record an error. Batches of items keep the names."""
        if len(name) > _MAX_NAME_CHARS:
            self._fail(f"{name[:_SHOWN_CHARS]}…", f"not searched: its name has more than {_MAX_NAME_CHARS} characters")
            return False
        return True

    def _count_member(self) -> None:
        self._members += 1
        if self._members > self._bounds.members:
            raise LimitError(too_many(self._bounds.members))

    def _copy(
        self,
        name: str,
        opened: IO[bytes] | Salvaged,
        content: IO[bytes],
        *,
        counted: bool,
        is_document: bool = False,
        is_member: bool = True,
    ) -> bool:
        """Copy a member, or a file on the disk, to `content`, and return True."""
        most = min(self._bounds.member_bytes, _DOCUMENT_BYTES) if is_document else self._bounds.member_bytes
        size = 0
        while chunk := opened.read(_CHUNK_BYTES):
            size += len(chunk)
            self._source.check_open()
            self._count(0 if counted else len(chunk))
            if size > most:
                advice = "; extract it to search it" if is_member else ""
                self._fail(name, f"not searched: larger than {plural(most, 'byte')}{advice}")
                return False
            content.write(chunk)
        content.seek(0)
        return True

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > self._bounds.total_bytes:
            raise LimitError(f"unpacks to more than {plural(self._bounds.total_bytes, 'byte')}")
        if self._read > max(_RATIO_FROM_BYTES, self._packed * self._bounds.ratio):
            raise LimitError(f"unpacks to more than {self._bounds.ratio} times its size (a decompression bomb?)")

    def _fail(self, name: str, text: str) -> None:
        self._errors += 1
        if self._errors <= _MAX_ERRORS:
            self._source.errors.append(PathError(path=name, kind="other", message=text))


def _broken(error: Exception) -> str:
    if isinstance(error, MemoryError) or str(error) == TOO_MUCH_MEMORY:
        return "not searched: unpacking it needs too much memory; extract it to search it"
    if isinstance(error, NotImplementedError):
        return f"compressed in a way that Python cannot read: {error}; extract it to search it"
    return f"broken: {error or type(error).__name__}"


def _open(archive: zipfile.ZipFile, file: Input, info: zipfile.ZipInfo, checksum: int) -> IO[bytes]:
    """Open a member of a zip."""
    if getattr(info, "_end_offset", None) == info.header_offset:  # newer zipfiles only warn
        raise zipfile.BadZipFile(f"overlapped entries: {info.orig_filename!r}")
    if info.compress_type == DEFLATE64:
        chunks = inflated(file, info, checksum)
        if chunks is not None:
            return cast("IO[bytes]", io.BufferedReader(Pieces(chunks)))
        if not add_to_zipfile():
            package = Hint(kind="install", target="ripwrap[deflate64]")
            raise NotImplementedError(HintedText("Deflate64 needs the package inflate64: ", package))
    return archive.open(info)


def known_formats() -> tuple[str, ...]:
    """Return the names of all formats, also of those whose packages are missing."""
    return *SUFFIXES, *_DOCUMENTS, *installed_formats()


def check_inside(inside: str | Iterable[str]) -> tuple[str, ...]:
    """Check formats and return them without duplicates, in the order in which they are tried for a file name."""
    names = as_formats(inside)
    for name in names or ("",):
        if not isinstance(name, str):
            raise TypeError(f"inside takes formats to search in, such as inside=['zip', 'tar', 'gz'], got {name!r}")
        document = find_format(name)
        if document is not None:
            check_installed(document)
        elif name not in SUFFIXES:
            *others, last = map(repr, known_formats())
            allowed = f"{', '.join(others)} or {last}"
            raise ValueError(HintedText(Hint("inside", kind="correct"), f" must be {allowed}, got {name!r}"))
    if "zst" in names:
        _zstd()
    # `.tar.gz` is tried as tar before gz, and `ipynb-outputs` before `ipynb`.
    return tuple(sorted(dict.fromkeys(names), key=lambda name: name not in ("tar", "ipynb-outputs")))


def _decompress(name: str, file: Input) -> IO[bytes]:
    """Return a file object that decompresses `file`, or `file` itself if it is not compressed."""
    lower = name.lower()
    by_name = (kind for kind, ends in _COMPRESSED.items() if lower.endswith(ends))
    match compression(file) or next(by_name, "tar"):
        case "gzip":
            return cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb"))
        case "bzip2":
            return bz2.BZ2File(file)
        case "xz":
            return cast("IO[bytes]", io.BufferedReader(Unpacked(file)))
        case "zstd":
            return cast("IO[bytes]", io.BufferedReader(Pieces(_zstd_pieces(file))))
        case "tar":
            return file
        case unknown:
            raise NotImplementedError(unknown)


def _zstd_pieces(file: IO[bytes]) -> Iterator[bytes]:
    try:
        zstd = _zstd()
    except RipwrapError as error:  # the file is a tar, and only then the package is not needed before
        raise NotImplementedError(str(error)) from None
    opened = zstd.ZstdFile(file)
    try:
        while chunk := opened.read1(_CHUNK_BYTES):
            yield chunk
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from None


def _zstd() -> Any:
    """Return the module `compression.zstd` of Python 3.14, or the package `backports.zstd`."""
    for module in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError:
            continue
    raise RipwrapError(
        HintedText("'zst' needs Python 3.14 or a package: ", Hint(kind="install", target="backports.zstd"))
    )

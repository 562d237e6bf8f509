"""Open, check, write and remove the directories of tantivy, and translate the errors of tantivy.

tantivy is the engine of full-text search, and of the index of trigrams (`trigrams.py`).

A directory has a random name, which is stored in the database of the index. So a directory from another source is never
opened. tantivy stores data in segments, whose files never change. Each file ends with a checksum of its content
(https://docs.rs/tantivy/latest/tantivy/directory/footer/), but tantivy reads damaged files without an error. So this
module compares the checksum when a process first opens a file, and again if the size or time of the file has changed.

The database decides which chunks exist: new documents are added before its transaction is committed, old ones deleted
after it, and a search drops an id that it does not have. Words are split in Python, because the tokenizers of tantivy
split at combining marks, such as vowels of Hindi.
"""

import errno
import json
import os
import re
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias, TypeVar

from ripwrap._system.concurrency import lacks_memory, opened, reached_limit
from ripwrap._text import shown
from ripwrap.errors import Hint, HintedText, RipwrapError
from ripwrap.index.storage.database import check, read_transaction

if TYPE_CHECKING or find_spec("tantivy"):
    try:
        import tantivy as tantivy
    except ImportError as _error:  # such as a limit of memory or of open files
        _cause = reached_limit(1 << 28)
        _limit = f"the limit of {_cause} is reached; raise the limit, or end programs, and try again" if _cause else ""
        raise RipwrapError(
            f"could not load tantivy, which an index needs: {_error}; {_limit or 'install it again'}"
        ) from _error
else:
    tantivy = None


_META = "meta.json"
_MANAGED = ".managed.json"
_SEGMENT_FILES = ("fast", "fieldnorm", "idx", "pos", "store", "term")
_OWN_NAMES = re.compile(
    rf"[0-9a-f]{{32}}\.(\w+|\d+\.del)|{re.escape(_META)}|{re.escape(_MANAGED)}|\.tantivy-\w+\.lock|\.tmp\w{{6}}"
)
"""Pattern of the names of tantivy's files. A killed process leaves files that are called `.tmp…`."""
_FOOTER_MAGIC = (1337).to_bytes(4, "little")
_MAX_FOOTER_BYTES = 4_096
_PIECE_BYTES = 1 << 20
_OS_ERROR = re.compile(r"code: (\d+)|os error (\d+)")
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_NO_ACCESS = {errno.EACCES, errno.EPERM, errno.EROFS}
_TRANSIENT = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN}

_DESCRIPTORS = "/proc/self/fd"
"""Directory of links to the open files of this process, on Linux (proc(5))."""

_HEAP_BYTES = 64_000_000
"""Number of bytes of memory that a thread of tantivy fills before it writes a segment. tantivy requires at least
15,000,000.
"""
_READ_BYTES, _WRITE_BYTES, _THREAD_BYTES = 128 << 20, 512 << 20, 192 << 20
"""Measured address space that tantivy takes to open a directory, and to write: in total, and for each thread. glibc
gives 64 MB to each of up to eight threads, which tantivy starts.
"""
_FILES_PER_THREAD = 500
_MAX_THREADS = 2
"""Maximum number of threads that tantivy uses to write. One indexes 31 MB/s, more than a thread of Python splits.
"""
_LOCK_PATIENCE = 30.0
"""Seconds to wait for tantivy's lock, which another process may hold for a moment after it released the lock of the
database.
"""

_Stamp: TypeAlias = tuple[int, int]
OTHER_LOCATION = HintedText("pass another ", Hint("location"))
"""Advice at the end of most errors about the files of an index."""


def limit_advice(limit: str) -> HintedText:
    """Return the advice at the end of an error for a limit of the system that this process has reached."""
    way = OTHER_LOCATION if "size" in limit else "end programs, and try again"
    return HintedText(f"the limit of {limit} is reached; raise the limit, or ", way)


def location_error(said: str) -> RipwrapError:
    """Return an error about the files of an index, with the advice to pass another `location` at its end."""
    return RipwrapError(HintedText(said, OTHER_LOCATION))


S = TypeVar("S")
R = TypeVar("R")


class EngineState(NamedTuple):
    """Row of the database that describes a directory of tantivy."""

    folder: str
    state: int
    documents: int


class RebuildError(Exception):
    """Error for a directory of tantivy that must be rebuilt; the message says why."""


def is_available() -> bool:
    """Return True if tantivy is installed."""
    return find_spec("tantivy") is not None


class EngineFolder:
    """Directory in which tantivy stores documents. One thread at a time may use the object."""

    def __init__(
        self, path: Path, schema: "Callable[[], tantivy.Schema]", analyzers: "dict[str, tantivy.TextAnalyzer]"
    ) -> None:
        """Set the path, the schema, and the analyzers of the text fields by name; nothing is opened yet."""
        self.path = path
        self._schema = schema()
        self._analyzers = analyzers
        self._verified: dict[str, _Stamp] = {}
        self._opened: tuple[bytes, tantivy.Searcher] | None = None

    def make(self) -> None:
        """Make the directory, without documents."""
        _check_memory(self.path, _READ_BYTES)
        try:
            with engine_errors(self.path, writing=True):
                self.path.mkdir(mode=0o700)
                with _utf8_path(self.path) as path:
                    tantivy.Index(self._schema, path=path)
        except RebuildError as error:  # a new directory is not damaged
            raise _unwritable_error(self.path, 0, str(error)) from error

    def searcher(self) -> "tantivy.Searcher":
        """Return tantivy's searcher for the documents of the last commit."""
        while True:  # try again if another process commits at the same time and removes files
            check()
            meta = _read_meta(self.path)
            try:
                fresh = self._verify(meta)
                if fresh or self._opened is None or self._opened[0] != meta:
                    self._opened = meta, self._open_searcher(meta)
            except RebuildError:
                if meta != _read_meta(self.path):
                    continue
                raise
            if meta == _read_meta(self.path):
                return self._opened[1]

    def _verify(self, meta: bytes) -> bool:
        """Verify the checksums of files that are new or have changed; return True if there are such files."""
        stamps: dict[str, _Stamp] = {}
        fresh = False
        for name in _files_of(meta):
            path = self.path / name
            try:
                state = path.stat()
                stamps[name] = state.st_size, state.st_mtime_ns
                if self._verified.get(name) == stamps[name]:
                    continue
                fresh = True
                with path.open("rb") as file:
                    sound = _has_right_checksum(file, state.st_size)
            except FileNotFoundError as error:
                raise RebuildError("a file of tantivy is missing") from error
            except OSError as error:
                raise _unreadable_error(path, error) from error
            if not sound:
                raise RebuildError("a file of tantivy is damaged")
        self._verified = stamps
        return fresh

    def _open_searcher(self, meta: bytes) -> "tantivy.Searcher":
        _check_memory(self.path, _READ_BYTES)
        with engine_errors(self.path, writing=False):
            try:
                index = self._open(self.path)
            except ValueError as error:
                if _errno_of(error) not in _NO_ACCESS:
                    raise
            else:
                return _searcher_of(index)
            # tantivy writes a lock file to open a directory, which a read-only directory does not allow. So open a
            # temporary directory of links. The files stay open when the links are removed.
            with tempfile.TemporaryDirectory(prefix="ripwrap-") as copy:
                Path(copy, _META).write_bytes(meta)
                for name in _files_of(meta):
                    try:
                        Path(copy, name).symlink_to((self.path / name).absolute())
                    except OSError:  # Windows, without the right to make links
                        shutil.copyfile(self.path / name, Path(copy, name))
                return _searcher_of(self._open(Path(copy)))

    def _open(self, path: Path) -> "tantivy.Index":
        with _utf8_path(path) as name:
            index = tantivy.Index.open(name)
        if index.schema != self._schema:
            raise RebuildError("tantivy's files have another schema")
        for name, analyzer in self._analyzers.items():
            index.register_tokenizer(name, analyzer)
        index.config_reader("manual")
        return index

    def writer(self, files: int) -> "tantivy.IndexWriter":
        """Return a writer. The caller must hold the lock of the database, so that no other process writes."""
        threads = max(1, min(files // _FILES_PER_THREAD, _MAX_THREADS))
        if lacks_memory(_WRITE_BYTES + threads * _THREAD_BYTES):
            threads = 1
            _check_memory(self.path, _WRITE_BYTES + _THREAD_BYTES)
        with engine_errors(self.path, writing=True):
            index = self._open(self.path)
            deadline = time.monotonic() + _LOCK_PATIENCE
            while True:
                check()
                try:
                    writer = index.writer(_HEAP_BYTES * threads, threads)
                    break
                except ValueError as error:
                    if "LockBusy" not in str(error) or time.monotonic() > deadline:
                        raise
                time.sleep(0.01)
            writer.garbage_collect_files()  # a killed process may have left a file with a name that this writer needs
            return writer

    @contextmanager
    def writing(self, files: int) -> "Generator[tantivy.IndexWriter]":
        """Yield a writer; commit its documents at the end of the block, and discard them after an error."""
        writer = self.writer(files)
        try:
            yield writer
            with engine_errors(self.path, writing=True):
                writer.commit()
                writer.wait_merging_threads()
        except BaseException:
            self.abandon(writer)
            raise

    def abandon(self, writer: "tantivy.IndexWriter") -> None:
        """Discard all documents since the last commit, and close the writer, which releases tantivy's lock.

        Then remove the files that the writer has left: on a full disk, tantivy cannot remove them itself.
        """
        for call in (writer.rollback, writer.wait_merging_threads):
            # A writer that Ctrl-C interrupts after `wait_merging_threads()` is closed, and raises RuntimeError.
            with suppress(RebuildError, RipwrapError, RuntimeError), engine_errors(self.path, writing=True):
                call()
        with suppress(RebuildError, RipwrapError, OSError):
            keep = {*_files_of(_read_meta(self.path)), _META, _MANAGED}
            for file in files_in(self.path):
                if file.name not in keep and _OWN_NAMES.fullmatch(file.name) and not file.name.endswith(".lock"):
                    with suppress(OSError):  # on Windows, while another process reads it
                        os.unlink(file.path)


def _check_memory(folder: Path, size: int) -> None:
    if lacks_memory(size):
        raise _unwritable_error(folder, errno.ENOMEM, os.strerror(errno.ENOMEM), size)


@contextmanager
def reading_state(
    database: Connection, state_of: Callable[[Connection], S], open_searcher: Callable[[S], R]
) -> Generator[tuple[S, R]]:
    """Hold a transaction that reads, and yield the state that it sees, with a searcher for this state.

    Documents are added before the transaction that adds their contents, and deleted after the transaction that
    removes these contents. So if the state of the database is the same before and after a searcher is opened, the
    searcher has all documents of that state. Otherwise, another process has written, and this function tries again.
    """
    while True:
        check()
        before = state_of(database)
        try:
            searcher = open_searcher(before)
        except RebuildError:
            if state_of(database) == before:
                raise
            continue
        with read_transaction(database):
            if state_of(database) == before:
                yield before, searcher
                return


@contextmanager
def _utf8_path(path: Path) -> Generator[str]:
    """Yield a UTF-8 path to a directory, because tantivy accepts no other paths."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        if not os.path.isdir(_DESCRIPTORS):
            only = f"could not make an index in {shown(str(path))}, because tantivy accepts only UTF-8 paths; "
            raise location_error(only) from None
    else:
        yield str(path)
        return
    with opened(lambda: os.open(path, os.O_RDONLY)) as descriptor:
        yield f"{_DESCRIPTORS}/{descriptor}"


def _searcher_of(index: "tantivy.Index") -> "tantivy.Searcher":
    index.reload()
    return index.searcher()


def _read_meta(folder: Path) -> bytes:
    try:
        return (folder / _META).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RebuildError("tantivy's list of files is missing") from error
    except OSError as error:
        raise _unreadable_error(folder / _META, error) from error


def _files_of(meta: bytes) -> list[str]:
    """Return the names of the files of all segments, given the content of `meta.json`."""
    names: list[str] = []
    try:
        for segment in json.loads(meta)["segments"]:
            name = str(segment["segment_id"]).replace("-", "")
            names += [f"{name}.{kind}" for kind in _SEGMENT_FILES]
            if deletes := segment["deletes"]:
                names.append(f"{name}.{int(deletes['opstamp'])}.del")
    except (ValueError, KeyError, TypeError) as error:
        raise RebuildError("tantivy's list of files is damaged") from error
    if wrong := next((name for name in names if _OWN_NAMES.fullmatch(name) is None), None):
        raise RebuildError(f"tantivy's list of files has an invalid name, {shown(wrong)}")
    return names


def _has_right_checksum(file: BinaryIO, size: int) -> bool:
    """Return True if a file has the checksum (CRC-32) that its footer names.

    The footer has three parts: JSON, which contains the checksum; then the size of the JSON; then a magic number.
    """
    file.seek(max(0, size - _MAX_FOOTER_BYTES))
    end = file.read()
    length = int.from_bytes(end[-8:-4], "little")
    if end[-4:] != _FOOTER_MAGIC or length > len(end) - 8:
        return False
    try:
        expected = json.loads(end[-8 - length : -8])["crc"]
    except (ValueError, KeyError, TypeError):
        return False
    file.seek(0)
    checksum, left = 0, size - 8 - length
    while left > 0 and (piece := file.read(min(left, _PIECE_BYTES))):
        checksum = zlib.crc32(piece, checksum)
        left -= len(piece)
    return bool(checksum == expected)


def remove_folder(path: Path) -> None:
    """Remove a directory of tantivy, unless it is a symbolic link, or has files that are not tantivy's."""
    try:
        if not stat.S_ISDIR(path.lstat().st_mode):
            return
    except FileNotFoundError:
        return
    names = os.listdir(path)
    if all(map(_OWN_NAMES.fullmatch, names)):
        for name in sorted(names, key=lambda name: name != _META):  # without `meta.json`, tantivy reads no other file
            (path / name).unlink(missing_ok=True)
        path.rmdir()


def files_in(path: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files of a directory; yield nothing if it cannot be read."""
    with suppress(OSError), os.scandir(path) as found:
        yield from found


@contextmanager
def engine_errors(folder: Path, *, writing: bool) -> Generator[None]:
    """Translate errors and panics that tantivy raises in the `with` block into errors of an index."""
    try:
        yield
    except OSError as error:
        raise _unwritable_error(folder, error.errno, str(error.strerror)) from error
    except BaseException as error:  # most errors of tantivy are a ValueError
        is_panic = type(error).__name__ == "PanicException"
        if not is_panic and not isinstance(error, ValueError):
            raise
        number = _errno_of(error)
        if "LockBusy" in str(error):
            busy = f"another process is using the index {shown(str(folder))}; try again"
            raise RipwrapError(busy) from error
        if number in _FULL | _NO_ACCESS | _TRANSIENT:
            raise _unwritable_error(folder, number, os.strerror(number)) from error
        if is_panic:
            raise RebuildError(f"tantivy's files are damaged ({error})") from error
        gone = number == errno.ENOENT or not (folder / _META).exists()  # because another process rebuilds the index
        if "DoesNotExist" in str(error) or gone or not writing:
            raise RebuildError(f"tantivy cannot open its files ({error})") from error
        # tantivy does not report the cause of an error in one of its threads.
        limit = reached_limit(_WRITE_BYTES)
        why = "tantivy could not write" if limit else "tantivy could not write, usually because the disk is full"
        raise _unwritable_error(folder, errno.EAGAIN if limit else errno.ENOSPC, why) from error


def _errno_of(error: BaseException) -> int:
    """Return the errno of the system's error in a message of tantivy; 0 if there is none."""
    found = _OS_ERROR.search(str(error))
    return 0 if found is None else int(found[1] or found[2])


def _unreadable_error(path: Path, error: OSError) -> RipwrapError:
    advice = _advice(error.errno, "make it readable")
    return RipwrapError(HintedText(f"could not read the index {shown(str(path))}: {error.strerror}; ", advice))


def _unwritable_error(folder: Path, number: int | None, why: str, memory: int = _WRITE_BYTES) -> RipwrapError:
    advice = _advice(number, "make its directory writable", memory)
    return RipwrapError(HintedText(f"could not use the index {shown(str(folder))}: {why}; ", advice))


def _advice(number: int | None, allow: str, memory: int = _READ_BYTES) -> str:
    """Return advice about an error of the system, given its errno; `allow` is the advice if access is denied."""
    if number in _TRANSIENT or number == errno.EFBIG:
        limit = reached_limit(memory)
        if limit:
            return limit_advice(limit)
        if number in _TRANSIENT:
            return "close files or end programs, and try again"
    first = "free some space, or " if number in _FULL else f"{allow}, or " if number in _NO_ACCESS else ""
    return HintedText(first, OTHER_LOCATION)

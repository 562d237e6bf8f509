"""Archives, documents and stores of a hostile author: limits hold before memory is taken and time is spent."""

import io
import json
import lzma
import os
import sys
import tarfile
import threading
import time
import tracemalloc
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import dictionaries, lists, sampled_from, text, tuples

from ripwrap import sources, sync
from ripwrap._ripgrep import spool
from ripwrap._system.subprocess import worker
from ripwrap._system.subprocess.worker import WorkerProcess
from ripwrap.models import PathError
from ripwrap.sources import archives, filesystems, reading
from ripwrap.sources.archives import ArchiveSource, Bounds
from ripwrap.sources.base import find_format
from ripwrap.sources.reading import DocumentReader
from ripwrap.workspace.grep_items import _NotesKeys  # pyright: ignore[reportPrivateUsage]
from support import bombs
from support.effort import STRESS, times

MIB = 1 << 20
BOUNDS = Bounds()


def source_of(path: Path, bounds: Bounds = BOUNDS) -> ArchiveSource:
    return ArchiveSource(str(path.parent), [path.name], ("zip", "tar", "gz", "bz2", "xz"), bounds, follow=False)


def read(path: Path, bounds: Bounds = BOUNDS) -> tuple[list[str], list[PathError]]:
    source = source_of(path, bounds)
    return [name for name, _ in source], source.errors


def memory_of(source: ArchiveSource) -> int:
    """Return the peak of the memory while a source is read, in bytes."""
    list(source)
    source.errors.clear()
    tracemalloc.start()
    try:
        deque(source, maxlen=0)  # it holds no item
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class TestDirectories:
    def test_no_member_is_read_if_the_directory_of_a_zip_has_too_many(self, tmp_path: Path) -> None:
        names, errors = read(bombs.zip_directory(tmp_path / "a.zip", 50), Bounds(members=10))
        assert names == []
        assert [error.message for error in errors] == [
            "more than 10 members; the rest of the file was not searched: extract it to search all of it"
        ]

    def test_directory_as_large_as_the_limit_is_read(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            for number in range(10):
                archive.writestr(str(number), b"x")
        names, errors = read(tmp_path / "a.zip", Bounds(members=10))
        assert (len(names), errors) == (10, [])

    def test_false_size_of_a_directory_is_not_read(self, tmp_path: Path) -> None:
        path = bombs.zip_false_directory(tmp_path / "a.zip", 3 << 30)
        _, errors = read(path)
        assert "its directory is larger than 33554432 bytes" in errors[0].message

    def test_members_that_share_their_bytes_are_a_bomb(self, tmp_path: Path) -> None:
        names, errors = read(bombs.zip_overlapping(tmp_path / "a.zip", 100, 20 * MIB))
        assert len(names) <= 1
        assert errors

    def test_members_that_share_their_bytes_are_refused_where_zipfile_only_warns(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A newer `zipfile` gives each member the offset of its end, and opens one that ends where it begins."""

        class Ending(zipfile.ZipInfo):
            @property
            def _end_offset(self) -> int:
                return self.header_offset

            @_end_offset.setter
            def _end_offset(self, value: object) -> None: ...

        path = bombs.zip_overlapping(tmp_path / "a.zip", 3, 10)
        monkeypatch.setattr(zipfile, "ZipInfo", Ending)
        names, errors = read(path)
        assert names == []
        assert {error.message for error in errors} == {"broken: overlapped entries: 'x'"}

    def test_directories_in_a_tar_count_as_members(self, tmp_path: Path) -> None:
        _, errors = read(bombs.tar_folders(tmp_path / "a.tar.gz", 50), Bounds(members=10))
        assert "more than 10 members" in errors[0].message

    @pytest.mark.slow
    @pytest.mark.parametrize("everywhere", [False, True])
    def test_headers_of_earlier_members_of_a_tar_are_not_kept(self, tmp_path: Path, everywhere: bool) -> None:
        def peak(members: int) -> int:
            path = bombs.tar_pax(tmp_path / f"{members}.tar.gz", members, 200_000, everywhere=everywhere)
            return memory_of(source_of(path))

        assert peak(40) < peak(4) + 1_000_000  # the headers have 7 MB more


def header(name: str, kind: bytes, size: int, **fields: Any) -> bytes:
    """Return the header of an entry of a tar, with a size that need not be true."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    for key, value in fields.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % tarfile.BLOCKSIZE)


def pax(kind: bytes, **values: str) -> bytes:
    """Return a PAX header for the next entry (`x`) or for all later ones (`g`)."""
    data = b""
    for key, value in values.items():
        record = f" {key.replace('__', '.')}={value}\n".encode()
        size = len(record) + 1
        while len(record) + len(str(size)) != size:
            size += 1
        data += str(size).encode() + record
    return header("pax", kind, len(data)) + padded(data)


def old_sparse(size: int, data: bytes) -> bytes:
    """Return a sparse entry of GNU tar: it states the size of the whole file, and has only some of its bytes."""
    block = bytearray(header("sparse", tarfile.GNUTYPE_SPARSE, len(data)))
    block[386:410] = b"%011o\0%011o\0" % (0, len(data))
    block[483:495] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)  # type: ignore[attr-defined]
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + padded(data)


def sparse_1_0(size: int, data: bytes) -> bytes:
    """Return a sparse entry of version 1.0, whose map is at the beginning of its bytes."""
    content = padded(b"1\n0\n%d\n" % len(data)) + data
    head = pax(tarfile.XHDTYPE, GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__realsize=str(size))
    return head + header("sparse", tarfile.REGTYPE, len(content)) + padded(content)


WITHOUT_DATA = (tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)
STATED = (5, 513, 3 * MIB, 5 << 30, 1 << 60)

ENTRIES: dict[str, Callable[[int], bytes]] = {
    **{
        f"type {kind.decode()}": lambda size, kind=kind: header("entry", kind, size, linkname="x")  # type: ignore[misc]
        for kind in WITHOUT_DATA
    },
    **{
        f"type {kind.decode()} with a size from PAX": lambda size, kind=kind: (  # type: ignore[misc]
            pax(tarfile.XHDTYPE, size=str(size)) + header("entry", kind, 0)
        )
        for kind in WITHOUT_DATA
    },
    "sparse of GNU": lambda size: old_sparse(size, b"data\n"),
    "sparse 0.0": lambda size: pax(tarfile.XHDTYPE, GNU__sparse__size=str(size)) + header("s", tarfile.REGTYPE, 0),
    "sparse 0.1": lambda size: (
        pax(tarfile.XHDTYPE, GNU__sparse__map="0,5", GNU__sparse__size=str(size))
        + header("s", tarfile.REGTYPE, 5)
        + padded(b"data\n")
    ),
    "sparse 1.0": lambda size: sparse_1_0(size, b"data\n"),
    "file": lambda _: header("file", tarfile.REGTYPE, 700) + padded(b"a" * 700),
    "unknown type": lambda _: header("file", b"Z", 700) + padded(b"a" * 700),
    "long name": lambda _: (
        header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 301)
        + padded(b"n" * 300 + b"\0")
        + header("n", tarfile.REGTYPE, 2)
        + padded(b"b\n")
    ),
}
"""Entries that state a size; each has fewer bytes in the archive, or the same number."""

LARGE_HEADERS: dict[str, Callable[[int], bytes]] = {
    "PAX": lambda size: header("pax", tarfile.XHDTYPE, size),
    "PAX of Solaris": lambda size: header("pax", tarfile.SOLARIS_XHDTYPE, size),
    "PAX for all": lambda size: header("pax", tarfile.XGLTYPE, size),
    "long name": lambda size: header("././@LongLink", tarfile.GNUTYPE_LONGNAME, size),
    "long link": lambda size: header("././@LongLink", tarfile.GNUTYPE_LONGLINK, size),
}


BROKEN_RECORDS = {
    "digits": b"9" * 65_536,
    "one digit too many": b"114 comment=" + b"9" * 101 + b"\n",
    "many digits in a sound record": b"65550 comment=" + b"9" * 65_535 + b"\n",
    "digits in many records": b"113 comment=%b\n" % (b"9" * 100) + b"2" * 101,
    "records in one another": b"2 " * 30_000 + b"=\n",
    "a record that does not end": b"20 path=a\n",
    "a record that ends early": b"9 path=ab\n",
    "a record that ends late": b"11 path=ab\n\n",
    "a record without a newline": b"10 path=ab",
    "a length without a record": b"2 ",
    "a length of zero": b"0 path=a\n",
    "a length of four": b"4 =\n",
    "a record without a name": b"6 =ab\n",
    "a record without a value": b"8 pathx\n",
    "a value of the next record": b"8 pathx\n9 path=a\n",
    "no length": b"path=a\n",
    "a sign": b"+9 path=a\n",
    "a long length": b"00000000009 path=a\n",
    "text after records": b"9 path=a\nx",
}
"""PAX headers with a mistake."""


class Zeros(io.RawIOBase):
    """File with some bytes and then zeros, which counts how many bytes are read, and ends after 64 MiB of them."""

    def __init__(self, start: bytes, size: int) -> None:
        self._start, self._size, self._at, self.taken = start, size, 0, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._size - self._at, 64 * MIB - self.taken)
        part = self._start[self._at : self._at + size]
        buffer[:size] = part + bytes(size - len(part))
        self._at += size
        self.taken += size
        return size


class TestHeadersOfTar:
    @pytest.mark.parametrize("stated", STATED)
    @pytest.mark.parametrize("entry", [*ENTRIES])
    def test_header_after_any_entry_is_limited(self, entry: str, stated: int) -> None:
        start = header("first", tarfile.REGTYPE, 2) + padded(b"a\n") + ENTRIES[entry](stated)
        for kind, large in LARGE_HEADERS.items():
            file: Any = Zeros(start + large(1 << 30), 2 << 30)
            source = ArchiveSource("", [], ("tar",), Bounds(member_bytes=MIB), follow=False)
            tracemalloc.start()
            try:
                names = [name for name, _ in source.members("a.tar", file)]
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert names[0] == "a.tar!/first"
            assert source.errors[-1].message == "broken: a header has more than 1048576 bytes", kind
            assert file.taken < len(start) + 2 * MIB
            assert peak < 8 * MIB

    @settings(max_examples=times(60, 2000), deadline=None)
    @given(parts=lists(tuples(sampled_from([*ENTRIES]), sampled_from(STATED)), max_size=6))
    def test_entries_do_not_hide_what_follows(self, parts: list[tuple[str, int]]) -> None:
        """Names of PAX and GNU with nearly as many bytes as the limit are read, whatever stands before them."""
        name = "l" * 1_000_000
        long = header("././@LongLink", tarfile.GNUTYPE_LONGLINK, len(name) + 1) + padded(name.encode() + b"\0")
        last = header("last", tarfile.REGTYPE, 2) + padded(b"z\n")
        content = b"".join(ENTRIES[entry](stated) + long + last for entry, stated in parts) + last
        source = ArchiveSource("", [], ("tar",), Bounds(member_bytes=MIB), follow=False)
        found = [text for name, text in source.members("a.tar", io.BytesIO(content + bytes(1024))) if "last" in name]
        assert found == [b"z\n"] * (len(parts) + 1)
        # A sparse file of 3 MiB and more is larger than a member may be, and no other error comes.
        assert all("not searched: larger than" in error.message for error in source.errors)

    @pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE])
    @pytest.mark.parametrize("records", BROKEN_RECORDS)
    def test_broken_records_are_not_given_to_tarfile(
        self, records: str, kind: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """tarfile would take time that grows with the square of their number or of their digits."""
        given: list[bytes] = []
        parse: Any = tarfile.TarInfo._proc_pax  # type: ignore[attr-defined]

        def recorded(info: tarfile.TarInfo, archive: Any) -> Any:
            given.append(info.type)
            return parse(info, archive)

        monkeypatch.setattr(tarfile.TarInfo, "_proc_pax", recorded)
        content = BROKEN_RECORDS[records]
        first = pax(tarfile.XHDTYPE, comment="9" * 100) + header("first", tarfile.REGTYPE, 2) + padded(b"a\n")
        last = header("last", tarfile.REGTYPE, 2) + padded(b"b\n") + bytes(1024)
        file = io.BytesIO(first + header("pax", kind, len(content)) + padded(content) + last)
        source = ArchiveSource("", [], ("tar",), BOUNDS, follow=False)
        assert [str(name) for name, _ in source.members("a.tar", file)] == ["a.tar!/first"]
        assert given == [tarfile.XHDTYPE]
        assert [error.message.partition(" a PAX header has ")[0] for error in source.errors] == ["broken:"]

    @settings(max_examples=times(60, 2000), deadline=None)
    @given(
        records=dictionaries(
            text(sampled_from("ab.=\n 9é"), min_size=1, max_size=9).filter(lambda key: "=" not in key),
            text(sampled_from("ab= \n19é\0"), max_size=90),
            max_size=5,
        ),
        name=text(sampled_from("a/9 é=\n"), min_size=1, max_size=200).map(lambda name: f"n{name}n"),
    )
    def test_sound_records_are_read_as_by_tarfile(self, records: dict[str, str], name: str) -> None:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"g": "9" * 100}) as archive:
            for number in range(2):
                info = tarfile.TarInfo(f"{number}{name}")
                info.size, info.pax_headers = 2, dict(records)
                archive.addfile(info, io.BytesIO(b"a\n"))
        file.seek(0)
        with tarfile.open(fileobj=file) as archive:
            expected = [f"a.tar!/{one}" for one in archive.getnames()]
        source = ArchiveSource("", [], ("tar",), BOUNDS, follow=False)
        assert [str(one) for one, _ in source.members("a.tar", file)] == expected
        assert source.errors == []


class TestMembers:
    @pytest.mark.parametrize("kind", ["zip", "tar"])
    def test_member_with_a_very_long_name_is_an_error(self, tmp_path: Path, kind: str) -> None:
        if kind == "zip":
            path = bombs.zip_directory(tmp_path / "a.zip", 2, b"n" * 60_000)
        else:
            path = bombs.tar_pax(tmp_path / "a.tar.gz", 2, 60_000)
        names, errors = read(path)
        assert names == []
        assert [len(error.path or "") for error in errors] == [201, 201]
        assert errors[0].message == "not searched: its name has more than 8192 characters"

    def test_errors_beyond_a_thousand_are_counted(self, tmp_path: Path) -> None:
        names, errors = read(bombs.zip_directory(tmp_path / "a.zip", 1003, b"n" * 8_200))
        assert (names, len(errors)) == ([], 1001)
        assert errors[-1].message == "3 more members could not be read"

    def test_member_is_held_once(self, tmp_path: Path) -> None:
        path = bombs.zip_zeros(tmp_path / "a.zip", 15 * MIB)
        assert memory_of(source_of(path)) < 24 * MIB

    @pytest.mark.slow
    def test_archives_in_archives_are_not_held(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(archives, "_HELD_BYTES", 1 << 16)
        path = bombs.zip_zeros(tmp_path / "a.zip", 1, depth=3, beside=os.urandom(3 * MIB))
        names, errors = read(path)
        assert (max(names), errors) == ("a.zip!/inner.zip!/inner.zip!/zeros", [])
        assert memory_of(source_of(path)) < 8 * MIB  # the inner archives have 9 MiB

    def test_lack_of_memory_is_an_error_of_the_member(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "a.xz").write_bytes(lzma.compress(b"x"))
        monkeypatch.setattr(archives, "_CHUNK_BYTES", 1 << 62)  # more than there is
        _, errors = read(tmp_path / "a.xz")
        assert "unpacking it needs too much memory" in errors[0].message


class TestDictionaries:
    def test_large_dictionary_of_a_file_is_an_error(self, tmp_path: Path) -> None:
        _, errors = read(bombs.xz_dictionary(tmp_path / "a.lzma", 1000))
        assert "unpacking it needs too much memory" in errors[0].message

    def test_large_dictionary_of_a_later_stream_is_an_error(self, tmp_path: Path) -> None:
        bomb = bombs.xz_dictionary(tmp_path / "b", 1000).read_bytes()
        (tmp_path / "a.xz").write_bytes(lzma.compress(b"first") + bomb)
        _, errors = read(tmp_path / "a.xz")
        assert "unpacking it needs too much memory" in errors[0].message

    def test_large_dictionary_of_a_member_is_an_error(self, tmp_path: Path) -> None:
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr("bomb", "x" * 1000)
            archive.writestr("good", "x")
        content = bytearray(path.read_bytes())
        content[30 + 4 + 5 : 30 + 4 + 9] = (3 << 29).to_bytes(4, "little")
        path.write_bytes(content)
        names, errors = read(path)
        assert names == ["a.zip!/good"]
        assert [error.path for error in errors] == ["a.zip!/bomb"]
        assert "unpacking it needs too much memory" in errors[0].message

    @pytest.mark.parametrize("rest", [b"", lzma.compress(b"second"), b"junk"])
    def test_xz_is_read_as_python_reads_it(self, tmp_path: Path, rest: bytes) -> None:
        content = lzma.compress(os.urandom(100_000), preset=9) + rest
        (tmp_path / "a.xz").write_bytes(content)
        ((_, found),) = list(source_of(tmp_path / "a.xz"))
        with lzma.LZMAFile(io.BytesIO(content)) as expected:
            assert found == expected.read()
        (tmp_path / "a.xz").write_bytes(lzma.compress(b"x" * 1000)[:-10])
        assert "end" in read(tmp_path / "a.xz")[1][0].message


SLOW_BOMBS: dict[str, Callable[[Path], Path]] = {
    "empty members": lambda folder: bombs.gz_members(folder / "a.gz", 50_000),
    "name": lambda folder: bombs.gz_name(folder / "a.gz", MIB),
    "folders": lambda folder: bombs.tar_folders(folder / "a.tar.gz", 50_000),
    "directory": lambda folder: bombs.zip_directory(folder / "a.zip", 1000),
}
"""Archives that take time and yield nothing, or little."""


class TestDeadline:
    @pytest.mark.slow
    @pytest.mark.parametrize("bomb", [*SLOW_BOMBS])
    def test_time_limit_is_checked_while_nothing_is_found(self, tmp_path: Path, bomb: str) -> None:
        source = source_of(SLOW_BOMBS[bomb](tmp_path))
        checks = 0

        def check() -> None:
            nonlocal checks
            checks += 1

        source.check_open = check  # type: ignore[method-assign]
        for _ in source:
            pass
        assert checks >= 6
        source = source_of(next(tmp_path.iterdir()))
        source.deadline = time.monotonic()
        with pytest.raises(TimeoutError):
            list(source)
        source = source_of(next(tmp_path.iterdir()))
        source.close()
        assert list(source) == []

    def test_time_limit_of_a_member_is_no_error_of_the_member(self, tmp_path: Path) -> None:
        source = source_of(bombs.gz_zeros(tmp_path / "a.gz", 4 * MIB))
        left = 3

        def check() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                raise TimeoutError

        source.check_open = check  # type: ignore[method-assign]
        with pytest.raises(TimeoutError):
            list(source)
        assert source.errors == []

    def test_time_limit_holds_while_keys_are_looked_for(self, tmp_path: Path) -> None:
        source = source_of(bombs.gz_members(tmp_path / "a.gz", 1000))
        noting = _NotesKeys(source, {})
        noting.deadline = time.monotonic()
        with pytest.raises(TimeoutError):
            list(noting)


class TestDocuments:
    def test_parts_of_a_document_are_limited(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reading, "MAX_PARTS", 3)
        wanted = find_format("ipynb")
        assert wanted is not None
        cells = {"cells": [{"cell_type": "code", "source": "x"}] * 5}
        known = json.loads(reading.extract(wanted, json.dumps(cells).encode())[0])
        assert len(known["parts"]) == 3
        assert known["errors"] == [[None, "it has more than 3 parts; the rest was not searched"]]

    def test_locations_of_a_document_are_limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reading, "_MAX_HEAD_BYTES", 100)
        wanted = find_format("ipynb")
        assert wanted is not None
        cells = {"cells": [{"cell_type": "t" * 200, "source": "x"}]}
        head, texts = reading.extract(wanted, json.dumps(cells).encode())
        assert json.loads(head)["parts"] == []
        assert "the names of its parts are larger than 100 bytes" in head.decode()
        assert texts == b""

    def test_document_over_the_limit_is_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(archives, "_DOCUMENT_BYTES", 100)
        bombs.notebook(tmp_path / "a.ipynb", 1000)
        source = ArchiveSource(str(tmp_path), ["a.ipynb"], ("ipynb",), follow=False)
        assert list(source) == []
        assert [error.message for error in source.errors] == ["not searched: larger than 100 bytes"]


class TestWorkers:
    def worker(self, answer: str) -> WorkerProcess:
        serve = f"serve_requests(lambda _: [{answer}], 30.0, 60.0)"
        code = f"from ripwrap._system.subprocess.worker import serve_requests; {serve}"
        return WorkerProcess(code, 30.0, 60.0)

    @pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA limits all memory on Linux only")
    def test_memory_of_a_helper_process_is_limited(self) -> None:
        process = self.worker("b'%d' % len(bytearray(500 << 20))")
        assert process.request([b""]) is None
        process.close()

    def test_answer_of_a_helper_process_is_limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(worker, "MAX_ANSWER_BYTES", 1000)
        process = self.worker("bytes(2000)")
        assert process.request([b""]) is None
        process.close()


@pytest.mark.extra
def test_objects_of_unknown_size_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec: Any = pytest.importorskip("fsspec")
    monkeypatch.setattr(filesystems, "MAX_HELD_BYTES", MIB)
    monkeypatch.setattr(filesystems, "_CHUNK_BYTES", 1 << 16)
    over = threading.Event()
    opened = threading.Barrier(16)  # all objects are begun before any of them has a byte
    sent = 0

    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            self.left: int = 2 * MIB

        def read(self, size: int = -1) -> bytes:
            nonlocal sent
            size = min(size, self.left) if size >= 0 else self.left
            self.left = self.left - size
            sent += size
            if sent > 6 * MIB:
                over.set()
            return bytes(size)

    class Liar(fsspec.AbstractFileSystem):  # type: ignore[misc]
        protocol = "liar"
        cachable = False

        def glob(self, path: str, **_: Any) -> dict[str, dict[str, Any]]:
            return {f"{number:02}": {"type": "file", "size": None} for number in range(16)}

        def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
            opened.wait(30)
            return Endless()

    fsspec.register_implementation("liar", Liar, clobber=True)
    source = sources.fs("liar://*", workers=16)
    items: Iterator[Any] = iter(source)
    try:
        next(items)
        assert not over.wait(1.0)  # 16 objects have 32 MiB
        assert len(list(items)) == 15
    finally:
        source.close()


def test_end_of_a_search_does_not_wait_until_a_large_item_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_PIECE_BYTES", 1)
    with spool.Spool() as written:
        batch = written.begin()
        writer = threading.Thread(target=written.add, args=(batch, "large", bytes(MIB)))
        writer.start()
        while not os.listdir(batch.path):
            pass
    writer.join(60)
    assert batch.names == []  # without all of its bytes, it is no item
    assert not os.path.exists(written.path)


def test_time_limit_of_a_reader_of_documents_is_no_error_of_the_document(tmp_path: Path) -> None:
    bombs.notebook(tmp_path / "a.ipynb", 1000)
    source = ArchiveSource(
        str(tmp_path), ["a.ipynb"], ("ipynb",), follow=False, reader=DocumentReader(None, until=time.monotonic())
    )
    with pytest.raises(TimeoutError):
        list(source)
    assert source.errors == []


def test_lack_of_memory_is_a_text_for_the_model(tmp_path: Path) -> None:
    text = sync.Workspace(tmp_path).error_text(MemoryError())
    assert text == "Error: the call needed too much memory; narrow it, e.g. with path"


def test_bytes_of_a_large_file_are_refused_by_default(tmp_path: Path) -> None:
    bombs.sparse(tmp_path / "a", 3 << 30)
    bombs.sparse(tmp_path / "b", (32 << 20) + 1)
    workspace = sync.Workspace(tmp_path)
    with pytest.raises(ValueError, match=r"a has 3221225472 bytes, more than max_bytes=33554432; .* larger max_bytes"):
        workspace.read_bytes("a")
    with pytest.raises(ValueError, match="max_bytes"):
        workspace.read_bytes("b")
    assert len(workspace.read_bytes("b", max_bytes=None)) == (32 << 20) + 1


BOMBS: dict[str, tuple[str, str, Callable[[Path], Path]]] = {
    "directory": ("zip", "zip", lambda path: bombs.zip_directory(path, 4_000_000)),
    "false directory": ("zip", "zip", lambda path: bombs.zip_false_directory(path, 3 << 30)),
    "overlap": ("zip", "zip", lambda path: bombs.zip_overlapping(path, 60_000, 64 * MIB)),
    "names": ("zip", "zip", lambda path: bombs.zip_directory(path, 500, b"n" * 60_000)),
    "large member": ("zip", "zip", lambda path: bombs.zip_zeros(path, 250 * MIB, beside=os.urandom(2 * MIB))),
    "nested": ("zip", "zip", lambda path: bombs.zip_zeros(path, 250 * MIB, depth=3, beside=os.urandom(3 * MIB))),
    "empty members": ("gz", "gz", lambda path: bombs.gz_members(path, 5_000_000)),
    "name": ("gz", "gz", lambda path: bombs.gz_name(path, 400 * MIB)),
    "dictionary": ("lzma", "xz", lambda path: bombs.xz_dictionary(path, 250 * MIB)),
    "folders": ("tar.gz", "tar", lambda path: bombs.tar_folders(path, 2_000_000)),
    "headers": ("tar.gz", "tar", lambda path: bombs.tar_pax(path, 2000, 400_000)),
    "global headers": ("tar.gz", "tar", lambda path: bombs.tar_pax(path, 2000, 400_000, everywhere=True)),
    "cells": ("ipynb", "ipynb", lambda path: bombs.notebook(path, 4_000_000)),
    "lists": ("ipynb", "ipynb", lambda path: bombs.notebook_lists(path, 100 * MIB)),
    "laughs": ("docx", "docx", bombs.docx_laughs),
    "paragraphs": ("docx", "docx", lambda path: bombs.docx_paragraphs(path, 1_500_000)),
    "tables": ("docx", "docx", lambda path: bombs.docx_deep(path, 50_000)),
    "corners": ("xlsx", "xlsx", bombs.xlsx_corners),
    "strings": ("xlsx", "xlsx", lambda path: bombs.xlsx_strings(path, MIB, 100_000)),
}


@pytest.mark.stress
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the memory is read from /proc")
@pytest.mark.parametrize("mode", ["blocking", "async"])
@pytest.mark.parametrize("bomb", [*BOMBS] if STRESS else ["false directory"])
def test_bomb_takes_little_memory_and_ends_in_time(tmp_path: Path, bomb: str, mode: str) -> None:
    suffix, inside, make = BOMBS[bomb]
    make(tmp_path / f"a.{suffix}")
    call = f"Workspace({str(tmp_path)!r}, timeout=3).grep_content('needle', inside={inside!r})"
    code = (
        f"return ripwrap.sync.{call}" if mode == "blocking" else f"import asyncio\nreturn asyncio.run(ripwrap.{call})"
    )
    warm = "import ripwrap.workspace.grep_items, ripwrap.sources.reading"
    cost = bombs.peak(code, warm=warm, limit=times(2, 4) << 30)
    print(bomb, mode, cost)  # noqa: T201
    assert cost.own < 512
    assert cost.child < 512
    assert cost.seconds < 4
    assert (cost.threads, cost.children) == ([], [])
    assert cost.result.startswith("No matches found")

"""Extraction of the program from a release archive, and rejection of bad archives."""

import gzip
import importlib.util
import io
import os
import random
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

from ripwrap import ExtractionFailedError
from ripwrap.binary.installer import MAX_MEMBERS, MAX_UNPACKED_BYTES, extract
from ripwrap.binary.platforms import MAX_BINARY_BYTES
from support.deflate64 import deflated
from support.mirror import targz, zipped

STRICT = os.environ.get("RIPWRAP_SLOW") == "rest" and bool(os.environ.get("RIPWRAP_ALL_RGS"))
FOLDER = "ripgrep-15.2.0-x"
PROGRAM = random.Random(1).randbytes(300_000)  # bytes that do not compress


def unpacked(content: bytes, name: str, member: str = f"{FOLDER}/rg") -> bytes:
    into = io.BytesIO()
    extract(io.BytesIO(content), name, member, into)
    return into.getvalue()


def assert_refused(content: bytes, says: str, name: str = "a.tar.gz", member: str = f"{FOLDER}/rg") -> None:
    with pytest.raises(ExtractionFailedError, match=says) as caught:
        unpacked(content, name, member)
    assert name in str(caught.value)


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return made.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


GOOD = (entry(f"{FOLDER}/rg"), PROGRAM)


def test_program_is_extracted_whole() -> None:
    assert unpacked(targz(FOLDER, PROGRAM), "a.tar.gz") == PROGRAM
    assert unpacked(zipped(FOLDER, PROGRAM), "a.zip", f"{FOLDER}/rg.exe") == PROGRAM


@pytest.mark.parametrize(
    "bad",
    [
        entry(f"{FOLDER}/link", tarfile.SYMTYPE, "/etc/passwd"),
        entry(f"{FOLDER}/link", tarfile.LNKTYPE, f"{FOLDER}/rg"),
        entry("../evil"),
        entry(f"{FOLDER}/../../evil"),
        entry("/etc/evil"),
        entry("C:/evil"),
        entry("..\\evil"),
        entry(f"{FOLDER}/fifo", tarfile.FIFOTYPE),
        entry(f"{FOLDER}/device", tarfile.CHRTYPE),
    ],
)
def test_archive_with_links_or_unsafe_paths_is_rejected(bad: tarfile.TarInfo) -> None:
    assert_refused(tar_of(GOOD, (bad, b"")), "refused")
    assert_refused(tar_of((bad, b""), GOOD), "refused")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_program_that_is_a_link_is_rejected(kind: bytes) -> None:
    assert_refused(tar_of((entry(f"{FOLDER}/rg", kind, "/bin/sh"), b"")), "refused")


def test_archive_must_contain_the_program_exactly_once() -> None:
    assert_refused(tar_of((entry(f"{FOLDER}/README"), b"x")), "found 0")
    assert_refused(tar_of(GOOD, GOOD), "found 2")
    assert_refused(tar_of((entry("rg"), PROGRAM)), "found 0")
    assert_refused(tar_of((entry(f"{FOLDER}/rg", tarfile.DIRTYPE), b"")), "found 0")


@pytest.mark.slow
def test_decompression_bombs_are_rejected() -> None:
    large = bytes(MAX_BINARY_BYTES + 1)
    assert_refused(tar_of((entry(f"{FOLDER}/rg"), large)), f"larger than {MAX_BINARY_BYTES} bytes")
    assert_refused(zipped(FOLDER, large), f"larger than {MAX_BINARY_BYTES} bytes", "a.zip", f"{FOLDER}/rg.exe")
    declared = entry(f"{FOLDER}/other")
    declared.size = MAX_UNPACKED_BYTES + 1
    assert_refused(gzip.compress(declared.tobuf()), f"unpacks to more than {MAX_UNPACKED_BYTES} bytes")
    long_name = entry(f"{FOLDER}/{'n' * 2_000_000}")
    assert_refused(tar_of((long_name, b"")), "header has more than")
    many = [(entry(str(number)), b"") for number in range(MAX_MEMBERS + 1)]
    assert_refused(tar_of(*many), f"more than {MAX_MEMBERS} members")


@pytest.mark.parametrize("cut", [10, 1000, 100_000, -4, -20])
def test_truncated_archive_is_rejected(cut: int) -> None:
    assert_refused(targz(FOLDER, PROGRAM)[:cut], "broken")
    assert_refused(zipped(FOLDER, PROGRAM)[:cut], "broken", "a.zip", f"{FOLDER}/rg.exe")


@pytest.mark.parametrize("at", [50, 10_000, 200_000])
def test_damaged_archive_is_rejected(at: int) -> None:
    for content, name, member in (
        (targz(FOLDER, PROGRAM), "a.tar.gz", "rg"),
        (zipped(FOLDER, PROGRAM), "a.zip", "rg.exe"),
    ):
        damaged = bytearray(content)
        damaged[at : at + 40] = b"\xa5" * 40
        try:
            got = unpacked(bytes(damaged), name, f"{FOLDER}/{member}")
        except ExtractionFailedError:
            continue
        assert got == PROGRAM, "what is damaged beside the program does no harm"


def test_sparse_file_with_truncated_headers_is_rejected() -> None:
    """Build a header for which `tarfile` raises `IndexError`."""
    header = bytearray(entry(f"{FOLDER}/rg", tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    header[482] = 1  # says that a header with more holes of the sparse file follows
    header[148:156] = b" " * 8
    header[148:155] = b"%06o\0" % sum(header)
    assert_refused(gzip.compress(bytes(header)), "broken")


def test_impossible_zip_offset_is_reported_as_a_broken_archive(tmp_path: Path) -> None:
    """Read from a file on disk, where seeking raises the same `OSError` as a failing disk."""
    made = zipped(FOLDER, PROGRAM)
    end = made.rindex(b"PK\x05\x06")
    damaged = made[: end + 16] + b"\xff\xff\xff\x7f" + made[end + 20 :]
    (tmp_path / "a.zip").write_bytes(damaged)
    with (tmp_path / "a.zip").open("rb") as archive, pytest.raises(ExtractionFailedError, match="is broken"):
        extract(archive, "a.zip", f"{FOLDER}/rg.exe", io.BytesIO())


def test_mislabelled_archive_is_rejected() -> None:
    assert_refused(zipped(FOLDER, PROGRAM), "not a tar.gz archive: it starts with b'PK")
    assert_refused(targz(FOLDER, PROGRAM), "not a zip archive", "a.zip")
    assert_refused(b"<!DOCTYPE html>", "it starts with b'<!DOCTYPE")
    assert_refused(b"", "it starts with b''")


def test_zip_with_a_link_or_encryption_is_rejected() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        link = zipfile.ZipInfo(f"{FOLDER}/rg.exe")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/bin/sh")
    assert_refused(made.getvalue(), "refused", "a.zip", f"{FOLDER}/rg.exe")
    secret = bytearray(zipped(FOLDER, PROGRAM))
    at = secret.rindex(b"PK\x01\x02")
    secret[at + 8] |= 1
    assert_refused(bytes(secret), "refused", "a.zip", f"{FOLDER}/rg.exe")


def test_full_disk_is_not_reported_as_a_broken_archive() -> None:
    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        extract(io.BytesIO(targz(FOLDER, PROGRAM)), "a.tar.gz", f"{FOLDER}/rg", Full())


def deflate64(folder: str, content: bytes) -> bytes:
    """Return a zip as `7z -mm=Deflate64` makes it; the standard library cannot write or read one."""
    name = f"{folder}/rg.exe".encode()
    packed = deflated(content)
    sizes = struct.pack("<III", zlib.crc32(content), len(packed), len(content))
    common = struct.pack("<HHHHH", 21, 0, 9, 0, 33) + sizes + struct.pack("<HH", len(name), 0)
    local = b"PK\x03\x04" + common + name + packed
    central = b"PK\x01\x02" + struct.pack("<H", 21) + common + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)
    return local + central + end


def test_deflate64_is_read_with_the_extra_installed() -> None:
    made = deflate64(FOLDER, PROGRAM * 3)
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        (info,) = archive.infolist()
        assert info.compress_type == 9
    assert unpacked(made, "a.zip", f"{FOLDER}/rg.exe") == PROGRAM * 3


@pytest.mark.parametrize("at", [100, 100_000])
def test_damaged_deflate64_is_rejected(at: int) -> None:
    made = bytearray(deflate64(FOLDER, PROGRAM))
    made[at : at + 8] = b"\xa5" * 8
    assert_refused(bytes(made), "broken", "a.zip", f"{FOLDER}/rg.exe")


def test_deflate64_without_the_extra_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    made = deflate64(FOLDER, PROGRAM)
    monkeypatch.setitem(sys.modules, "inflate64", None)
    monkeypatch.setitem(sys.modules, "zipfile_deflate64", None)
    assert_refused(made, r'pip install "ripwrap\[deflate64\]"', "a.zip", f"{FOLDER}/rg.exe")


@pytest.mark.extra
@pytest.mark.slow
def test_deflate64_is_read_with_zipfile_deflate64(tmp_path: Path) -> None:
    """Run in a separate process, because importing it patches `zipfile` permanently."""
    if importlib.util.find_spec("zipfile_deflate64") is None:
        assert not STRICT, "zipfile-deflate64 is not installed"
        pytest.skip("zipfile-deflate64 is not installed: it has no wheels, and nox found no C compiler")
    (tmp_path / "a.zip").write_bytes(deflate64(FOLDER, PROGRAM))
    (tmp_path / "program").write_bytes(PROGRAM)
    code = f"""
import io, sys
sys.modules["inflate64"] = None
from ripwrap.binary.installer import extract
into = io.BytesIO()
extract(open("a.zip", "rb"), "a.zip", "{FOLDER}/rg.exe", into)
assert into.getvalue() == open("program", "rb").read()
assert "zipfile_deflate64" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)

"""Archives that other programs made, or that are damaged: no text is lost that their own programs print."""

import bz2
import gzip
import importlib
import io
import lzma
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from _operations.test_inside import tarred, zipped
from ripwrap import RipwrapError, sync
from ripwrap._system.deflate64 import inflated
from ripwrap.sources.archives import ArchiveSource, Bounds
from support.deflate64 import deflated

pytestmark = pytest.mark.usefixtures("temporary", "leaks_nothing")
TEXT = b"".join(
    b"line %d %s\n" % (number, zlib.crc32(b"%d" % number).to_bytes(4).hex().encode()) for number in range(9999)
)


def zstandard() -> Any:
    for module in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError:
            continue
    pytest.skip("zstd is not installed")


def read(name: str, content: bytes, *inside: str) -> tuple[dict[str, bytes], dict[str | None, str]]:
    """Return the contents of the members of an archive, and the errors, both by name."""
    source = ArchiveSource(".", [], inside or ("zip", "tar", "gz", "bz2", "xz", "zst"), Bounds(), follow=False)
    found = {
        member: bytes(text) for member, text in source.members(name, io.BytesIO(content)) if isinstance(text, bytes)
    }
    return found, {error.path: error.message for error in source.errors}


class TestSuffixes:
    @pytest.mark.parametrize("suffix", ["taz", "tgz", "tar.gz", "tar"])
    def test_tar_of_gzip_is_opened(self, suffix: str) -> None:
        """GNU tar's suffixes (its manual, 8.1.1 'Creating and Reading Compressed Archives')."""
        assert read(f"f.{suffix}", tarred({"a": b"needle"})) == ({f"f.{suffix}!/a": b"needle"}, {})

    @pytest.mark.parametrize("suffix", ["tbz", "tb2", "tbz2", "tz2", "tar.bz2", "tar.bz", "TBZ"])
    def test_tar_of_bzip2_is_opened(self, suffix: str) -> None:
        """Such a file was not opened, and there was no error."""
        assert read(f"f.{suffix}", tarred({"a": b"needle"}, "w:bz2")) == ({f"f.{suffix}!/a": b"needle"}, {})

    @pytest.mark.parametrize("suffix", ["tlz", "tar.lzma", "tar.xz", "txz"])
    def test_tar_of_lzma_is_opened(self, suffix: str) -> None:
        """`.tlz` and `.tar.lzma`."""
        packed = lzma.compress(tarred({"a": b"needle"}, "w:"), format=lzma.FORMAT_ALONE)
        assert read(f"f.{suffix}", packed) == ({f"f.{suffix}!/a": b"needle"}, {})

    @pytest.mark.parametrize("suffix", ["tar", "tgz", "tar.gz", "tar.zst"])
    def test_first_bytes_tell_the_compression_and_not_the_suffix(self, suffix: str) -> None:
        """`tar xf` reads a `.tar` that is compressed, and a `.tgz` that is not or is in another way."""
        for mode in ("w:", "w:gz", "w:bz2", "w:xz"):
            if (suffix, mode) != ("tar.zst", "w:"):
                assert read(f"f.{suffix}", tarred({"a": b"needle"}, mode)) == ({f"f.{suffix}!/a": b"needle"}, {})

    @pytest.mark.parametrize(
        ("suffix", "start", "text"),
        [
            ("tar.Z", b"\x1f\x9d\x90", "compress"),
            ("tar.lz", b"LZIP\x01", "lzip"),
            ("tlz", b"LZIP\x01", "lzip"),
            ("tar.lzo", b"\x89LZO\0", "lzop"),
            ("tar.lz4", b"\x04\x22\x4d\x18", "lz4"),
            ("gz", b"\x1f\x9d\x90", "compress"),
        ],
    )
    def test_compression_that_python_lacks_is_an_error(self, suffix: str, start: bytes, text: str) -> None:
        """No file that is left out is left out in silence."""
        found, errors = read(f"f.{suffix}", start + bytes(99))
        assert found == {}
        assert [text in message and "Python cannot read" in message for message in errors.values()] == [True]

    def test_zstd_in_a_tar_without_a_package_is_an_error_of_the_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It ended the search."""
        for module in ("compression.zstd", "backports.zstd"):
            monkeypatch.setitem(sys.modules, module, None)
        found, errors = read("f.tar.zst", b"\x28\xb5\x2f\xfd" + bytes(99), "tar")
        assert found == {}
        assert "backports.zstd" in errors["f.tar.zst"]


def cut(content: bytes) -> bytes:
    return content[: len(content) * 2 // 3]


def zstd_compress(content: bytes) -> bytes:
    return bytes(zstandard().compress(content))


class TestDamage:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "pack"),
        [
            ("log.gz", gzip.compress),
            ("log.bz2", lambda content: bz2.compress(content, 1)),
            ("log.xz", lzma.compress),
            ("log.lzma", lambda content: lzma.compress(content, format=lzma.FORMAT_ALONE)),
            ("log.zst", zstd_compress),
        ],
    )
    def test_text_before_a_cut_is_read(self, name: str, pack: Callable[[bytes], bytes]) -> None:
        """zcat, bzcat, xzcat and zstdcat print the text before the cut, and then an error."""
        text = b"".join(b"%d\n" % zlib.crc32(b"%d" % number) for number in range(60_000))  # bzip2 and zstd have blocks
        found, errors = read(name, cut(pack(text)))
        (content,) = found.values()
        assert text.startswith(content)
        assert len(content) > len(text) // 3
        assert [message.startswith("broken: ") for message in errors.values()] == [True]
        assert "the text before" in str(errors)

    @pytest.mark.parametrize(
        "change",
        [
            lambda packed: packed[:-8] + b"\1\2\3\4" + packed[-4:],  # the checksum
            lambda packed: packed[:-4] + b"\1\2\3\4",  # the length
            lambda packed: packed[:-8],
            lambda packed: packed[:-1],
            lambda packed: packed + b"garbage",
            lambda packed: packed + b"\x1f\x8b\x08",  # the beginning of another member
        ],
    )
    def test_text_of_a_gzip_with_a_wrong_end_is_read(self, change: Callable[[bytes], bytes]) -> None:
        """`zcat` prints the whole text."""
        for text in (b"needle\n", TEXT):
            found, errors = read("log.gz", change(gzip.compress(text)))
            assert found == {"log.gz!/log": text}
            assert len(errors) == 1

    def test_zeros_after_a_gzip_are_no_error(self) -> None:
        """A block device pads a file with zeros, which gzip ignores."""
        assert read("log.gz", gzip.compress(b"needle") + bytes(600)) == ({"log.gz!/log": b"needle"}, {})

    def test_text_before_a_damaged_place_is_read(self) -> None:
        """Damage in the middle loses at most 4 KiB before it."""
        packed = bytearray(gzip.compress(TEXT))
        packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
        found, errors = read("log.gz", bytes(packed))
        assert len(found["log.gz!/log"]) > len(TEXT) // 3
        assert len(errors) == 1

    def test_members_before_a_cut_of_a_tar_are_read(self) -> None:
        """`tar xf` extracts the members before the cut, and the beginning of the one with the cut."""
        files = {"a": b"needle", "b": TEXT, "c": b"later"}
        for name, mode in (("f.tgz", "w:gz"), ("f.tar", "w:"), ("f.txz", "w:xz")):
            found, errors = read(name, cut(tarred(files, mode)))
            assert found.keys() == {f"{name}!/a", f"{name}!/b"}
            assert found[f"{name}!/a"] == b"needle"
            assert TEXT.startswith(found[f"{name}!/b"])
            assert len(found[f"{name}!/b"]) > len(TEXT) // 3
            assert errors

    def test_cut_between_two_members_of_a_tar_is_an_error(self) -> None:
        """A compressed tar that ends too early is never complete."""
        whole = tarred({"a": b"needle"}, "w:")
        packed = gzip.compress(whole[:1024]) + gzip.compress(whole[1024:])[:9]
        found, errors = read("f.tgz", packed)
        assert found == {"f.tgz!/a": b"needle"}
        assert [*errors] == ["f.tgz"]

    @pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_member_of_a_zip_with_a_wrong_checksum_is_read(self, method: int) -> None:
        """`unzip -p` prints the text, and an error."""
        content = zipped({"bad": b"a needle", "good": b"needle"}, method)
        wrong = content.replace(struct.pack("<I", zlib.crc32(b"a needle")), b"\1\2\3\4")
        found, errors = read("f.zip", wrong)
        assert found == {"f.zip!/bad": b"a needle", "f.zip!/good": b"needle"}
        assert "Bad CRC-32" in errors["f.zip!/bad"]

    def test_document_with_a_damage_is_not_read(self) -> None:
        """A part of a document is no document."""
        notebook = b'{"cells": [{"source": "needle"}]}'
        found, errors = read("f.zip", cut(zipped({"n.ipynb": notebook})), "zip", "ipynb")
        assert found == {}
        wrong = zipped({"n.ipynb": notebook}).replace(struct.pack("<I", zlib.crc32(notebook)), b"\1\2\3\4")
        found, errors = read("f.zip", wrong, "zip", "ipynb")
        assert found == {}
        assert "Bad CRC-32" in errors["f.zip!/n.ipynb"]


def renamed(content: bytes, old: bytes, new: bytes, *, system: int = 3) -> bytes:
    """Return a zip in which a name without the UTF-8 flag has other bytes, from a system of APPNOTE.TXT 4.4.2.2."""
    changed = bytearray(content.replace(old, new))
    at = changed.index(b"PK\x01\x02")
    changed[at + 5] = system
    return bytes(changed)


class TestNames:
    @pytest.mark.parametrize("name", ["é.py", "日本.txt", "dir/Ω-🙂.md"])
    def test_utf8_without_the_flag_is_read_as_utf8(self, name: str) -> None:
        """Info-ZIP and old versions of macOS write UTF-8 without the flag (APPNOTE.TXT 4.4.4, bit 11)."""
        encoded = name.encode()
        content = renamed(zipped({"x" * len(encoded): b"needle"}), b"x" * len(encoded), encoded)
        assert read("f.zip", content) == ({f"f.zip!/{name}": b"needle"}, {})

    def test_names_of_dos_are_read_as_cp437(self) -> None:
        """APPNOTE.TXT appendix D.1."""
        content = renamed(zipped({"xx.txt": b"needle"}), b"xx", "éü".encode("cp437"), system=0)
        assert [*read("f.zip", content)[0]] == ["f.zip!/éü.txt"]

    def test_names_of_unix_in_another_encoding_keep_their_bytes(self) -> None:
        """As names in a tar and on the disk."""
        content = renamed(zipped({"xx.txt": b"needle"}), b"xx", b"\xe9a")
        assert [*read("f.zip", content)[0]] == ["f.zip!/\udce9a.txt"]

    def test_extra_field_with_the_name_in_utf8_counts(self) -> None:
        """Info-ZIP's Unicode Path (APPNOTE.TXT 4.6.9)."""
        raw, name = "é".encode("cp850"), "é.py".encode()
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            info = zipfile.ZipInfo("xxxx")
            about = b"\x01" + struct.pack("<I", zlib.crc32(raw + b".py")) + name
            info.extra = b"up" + struct.pack("<H", len(about)) + about
            archive.writestr(info, b"needle")
        content = renamed(out.getvalue(), b"xxxx", raw + b".py", system=0)
        assert [*read("f.zip", content)[0]] == ["f.zip!/é.py"]
        stale = content.replace(struct.pack("<I", zlib.crc32(raw + b".py")), b"\1\2\3\4")
        assert [*read("f.zip", stale)[0]] == ["f.zip!/é.py"]  # cp437, in which this sign is at the same place

    def test_backslashes_of_windows_separate_directories(self, plant: Callable[..., Path]) -> None:
        """.NET 4 wrote such names, which APPNOTE.TXT 4.4.17 forbids; no glob matched them."""
        folder = plant({"f.zip": zipped({"src\\deep\\a.py": b"needle", "src\\b.txt": b"needle", "c.py": b"needle"})})

        def found(glob: str) -> list[str | None]:
            return [match.path for match in sync.search("needle", cwd=folder, inside="zip", glob=glob)]

        assert found("*.py") == ["f.zip!/src/deep/a.py", "f.zip!/c.py"]
        assert found("src/*.txt") == ["f.zip!/src/b.txt"] or found("**/src/*.txt") == ["f.zip!/src/b.txt"]
        assert found("!deep") == ["f.zip!/src/b.txt", "f.zip!/c.py"]

    def test_backslash_of_unix_is_a_character_of_the_name(self) -> None:
        """Units of systemd have such names; a zip with `/` in the name is not from .NET."""
        names = [r"etc/dev-disk-by\x2duuid.swap", "a/b\\c"]
        assert [*read("f.zip", zipped(dict.fromkeys(names, b"x")))[0]] == [f"f.zip!/{name}" for name in names]
        assert [*read("f.tar", tarred({r"dev\x2d": b"x"}))[0]] == [r"f.tar!/dev\x2d"]

    def test_directory_with_a_backslash_is_no_member(self) -> None:
        """.NET ends the names of directories with a backslash."""
        assert read("f.zip", zipped({"dir\\": b"", "dir\\a": b"needle"})) == ({"f.zip!/dir/a": b"needle"}, {})


def deflate64(files: dict[str, bytes]) -> bytes:
    """Return a zip as `7z -mm=Deflate64` makes it."""
    packed = {name: deflated(content) for name, content in files.items()}
    out = bytearray(zipped(packed, zipfile.ZIP_STORED))
    for name, content in files.items():
        for sign, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            head = at + 4
            start = -1
            while (start := out.find(sign, start + 1)) >= 0:
                begin = start + (30 if sign[2:3] == b"\x03" else 46)
                if out[begin : begin + len(name)] == name.encode():
                    out[start + at : start + at + 2] = struct.pack("<H", 9)
                    out[start + head + 2 : start + head + 6] = struct.pack("<I", zlib.crc32(content))
                    out[start + head + 10 : start + head + 14] = struct.pack("<I", len(content))
    return bytes(out)


class TestDeflate64:
    def test_members_are_read_with_the_extra(self, plant: Callable[..., Path]) -> None:
        """`inside="zip"` needed another package than `ripwrap install`."""
        content = deflate64({"a.py": b"x\nneedle\n", "b.txt": TEXT * 20 + b"needle\n", "empty": b""})
        found, errors = read("f.zip", content)
        assert (found, errors) == (
            {"f.zip!/a.py": b"x\nneedle\n", "f.zip!/b.txt": TEXT * 20 + b"needle\n", "f.zip!/empty": b""},
            {},
        )
        folder = plant({"f.zip": content, "outer.zip": zipped({"in.zip": content})})
        assert [match.path for match in sync.search("needle", cwd=folder, inside="zip", type="py")] == [
            "f.zip!/a.py",
            "outer.zip!/in.zip!/a.py",
        ]

    def test_error_names_the_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The error said only that Python cannot read it."""
        content = deflate64({"a": b"needle", "b": b"x"})
        for module in ("inflate64", "zipfile_deflate64"):
            monkeypatch.setitem(sys.modules, module, None)
        found, errors = read("f.zip", content)
        assert found == {}
        assert [*errors] == ["f.zip!/a", "f.zip!/b"]
        assert 'pip install "ripwrap[deflate64]"' in errors["f.zip!/a"]

    def test_damage_is_an_error_beside_the_text_before_it(self) -> None:
        """Deflate64 has the limits and the errors of the other methods."""
        content = deflate64({"a": TEXT, "b": b"needle"})
        wrong = content.replace(struct.pack("<I", zlib.crc32(TEXT)), b"\1\2\3\4")
        found, errors = read("f.zip", wrong)
        assert found == {"f.zip!/a": TEXT, "f.zip!/b": b"needle"}
        assert "Bad CRC-32" in errors["f.zip!/a"]
        broken = bytearray(content)
        broken[60_000:60_040] = b"\xff" * 40
        found, errors = read("f.zip", bytes(broken))
        assert found["f.zip!/b"] == b"needle"
        assert "broken: " in errors["f.zip!/a"]

    @pytest.mark.slow
    def test_bomb_is_left_at_the_bound(self) -> None:
        """512 packed bytes may be 15 MB, so few bytes are unpacked at a time."""
        content = deflate64({"a": bytes(60 << 20)})
        found, errors = read("f.zip", content)
        assert found == {}
        assert "(a decompression bomb?)" in errors["f.zip"]
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            pieces = inflated(io.BytesIO(content), archive.infolist()[0], zlib.crc32(bytes(60 << 20)))
            assert max(map(len, pieces or ())) < 20 << 20


def test_missing_package_of_a_compressed_file_is_an_error_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The neighbor of a missing package is named when the search is called."""
    for module in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RipwrapError, match=r"backports\.zstd"):
        sync.search("x", inside="zst")


def test_damaged_tar_of_documents_is_searched_up_to_the_damage() -> None:
    """The members of an archive in an archive, too."""
    inner = cut(tarred({"a": b"needle", "b": TEXT}))
    found, errors = read("f.zip", zipped({"in.tgz": inner, "z": b"needle"}))
    assert {"f.zip!/in.tgz!/a", "f.zip!/in.tgz!/b", "f.zip!/z"} == found.keys()
    assert errors
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo("in.zip")
        content = zipped({"a": b"needle"})
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    assert read("f.tgz", out.getvalue()) == ({"f.tgz!/in.zip!/a": b"needle"}, {})

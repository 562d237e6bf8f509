"""`search(inside=…)`: members of archives, hostile ones included."""

import bz2
import gzip
import importlib
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import RipwrapError, sync
from ripwrap.models import PathError
from ripwrap.sources.archives import ArchiveSource, Bounds

pytestmark = pytest.mark.usefixtures("temporary", "leaks_nothing")

FILES = {"a.py": b"x = 1\nneedle\n", "dir/b.txt": b"needle two\n", ".hidden": b"needle\n", "empty": b""}


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def members(folder: Path, inside: Any, **options: Any) -> list[tuple[str | None, int | None, str]]:
    found = sync.search("needle", cwd=folder, inside=inside, **options)
    return [(match.path, match.line_number, match.text) for match in found]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("f.zip", zipped(FILES), "zip"),
        pytest.param("f.whl", zipped(FILES, zipfile.ZIP_LZMA), "zip", marks=pytest.mark.slow),
        pytest.param("f.tar", tarred(FILES, "w:"), "tar", marks=pytest.mark.slow),
        ("F.TGZ", tarred(FILES), "tar"),
        pytest.param("f.tar.bz2", tarred(FILES, "w:bz2"), "tar", marks=pytest.mark.slow),
        pytest.param("f.tar.xz", tarred(FILES, "w:xz"), "tar", marks=pytest.mark.slow),
    ],
)
def test_members_of_each_format_are_found_with_their_lines(
    plant: Callable[..., Path], name: str, content: bytes, kind: str
) -> None:
    folder = plant({f"sub/{name}": content, "plain.txt": "needle\n"})
    start = f"sub/{name}!/"
    assert members(folder, kind) == [
        ("plain.txt", 1, "needle"),
        (f"{start}a.py", 2, "needle"),
        (f"{start}dir/b.txt", 1, "needle two"),
        (f"{start}.hidden", 1, "needle"),
    ]
    assert members(folder, [kind], type="py") == [(f"{start}a.py", 2, "needle")]
    assert members(folder, [kind], glob="!dir", hidden=False)[1:] == [(f"{start}a.py", 2, "needle")]
    assert members(folder, [kind], paths="plain.txt") == [("plain.txt", 1, "needle")]
    assert members(folder, [kind], limit=2) == members(folder, kind)[:2]
    assert members(folder, "gz") == [("plain.txt", 1, "needle")] or kind == "tar"


@pytest.mark.parametrize(
    ("name", "pack"), [("log.gz", gzip.compress), ("log.bz2", bz2.compress), ("log.xz", lzma.compress)]
)
def test_compressed_file_has_one_member_without_the_suffix(
    plant: Callable[..., Path], name: str, pack: Callable[[bytes], bytes]
) -> None:
    folder = plant({name: pack(b"one\nneedle\n")})
    assert members(folder, name.partition(".")[2]) == [(f"{name}!/log", 2, "needle")]


def test_content_of_a_file_with_only_a_suffix_is_no_archive(plant: Callable[..., Path]) -> None:
    assert members(plant({".gz": gzip.compress(b"needle")}), "gz") == [(".gz!/gz", 1, "needle")]


@pytest.mark.slow
@pytest.mark.posix
def test_links_are_followed_as_by_rg(plant: Callable[..., Path]) -> None:
    folder = plant({"dir/f.zip": zipped({"a": b"needle"})})
    (folder / "link.zip").symlink_to("dir/f.zip")
    (folder / "to-dir").symlink_to("dir")
    for paths in (["link.zip"], ["to-dir"], ["./to-dir/f.zip"], [folder / "link.zip"]):
        assert len(members(folder, "zip", follow=False, paths=paths)) == 1
    assert len(members(folder, "zip", follow=False)) == 1
    assert len(members(folder, "zip")) == 3


def test_zstd_is_read_where_python_or_a_package_can(plant: Callable[..., Path]) -> None:
    for module in ("compression.zstd", "backports.zstd"):
        try:
            zstd = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        folder = plant({"log.zst": zstd.compress(b"needle\n"), "f.tar.zst": zstd.compress(tarred(FILES, "w:"))})
        assert [path for path, _, _ in members(folder, "zst", type="txt")] == []
        assert [path for path, _, _ in members(folder, ["zst", "tar"], type="txt")] == ["f.tar.zst!/dir/b.txt"]
        return
    with pytest.raises(RipwrapError, match=r"'zst' needs Python 3\.14 or a package: pip install"):
        sync.search("x", inside=["zip", "zst"])


@pytest.mark.slow
def test_archives_in_archives_are_opened_up_to_a_depth(
    plant: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    inner = zipped({"deep.py": b"needle\n"})
    for name in ("c.zip", "b.zip"):
        inner = tarred({name: inner, f"{name}.txt": b"needle\n"}) if name == "b.zip" else zipped({name: inner})
    folder = plant({"a.tgz": inner})
    assert [path for path, _, _ in members(folder, ["zip", "tar"])] == [
        "a.tgz!/b.zip!/c.zip!/deep.py",
        "a.tgz!/b.zip.txt",
    ]
    assert [path for path, _, _ in members(folder, "tar")] == ["a.tgz!/b.zip.txt"]
    caplog.clear()
    plant({"a.tgz": tarred({"x.zip": zipped({"b.zip": zipped({"c.zip": zipped({"d": b"needle"})})})})})
    assert members(folder, ["zip", "tar"]) == []
    assert "a.tgz!/x.zip!/b.zip!/c.zip: not opened: archives are nested more than 3 levels deep" in caplog.text


@pytest.mark.slow
@pytest.mark.anyio
async def test_async_search_looks_inside_archives(plant: Callable[..., Path]) -> None:
    folder = plant({"f.zip": zipped(FILES), ".gitignore": "ignored.zip\n", "ignored.zip": zipped(FILES)})
    found = [match.path async for match in ripwrap.search("needle", cwd=folder, inside="zip", type="py")]
    assert found == ["f.zip!/a.py"]
    async for match in ripwrap.search("needle", cwd=folder, inside="zip", limit=1):
        assert match.path == "f.zip!/a.py"


class TestHostileArchives:
    def encrypted(self) -> bytes:
        content = bytearray(zipped({"secret": b"needle", "open": b"needle"}, zipfile.ZIP_STORED))
        content[6] |= 1
        content[content.index(b"PK\x01\x02") + 8] |= 1
        return bytes(content)

    def broken(self) -> bytes:
        content = bytearray(zipped({"bad": b"needle " * 100, "good": b"needle"}))
        content[content.index(b"bad") + 6] ^= 0xFF
        return bytes(content)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "make", "found", "text"),
        [
            ("e.zip", encrypted, ["e.zip!/open"], "e.zip!/secret: encrypted"),
            ("b.zip", broken, ["b.zip!/good"], "b.zip!/bad: broken: "),
            ("cut.zip", lambda _: zipped(FILES)[:60], [], "cut.zip: broken: File is not a zip file"),
            ("cut.tgz", lambda _: tarred(FILES)[:-40], [], "cut.tgz"),
            ("not.tar", lambda _: b"junk" * 1000, [], "not.tar: broken: "),
            ("empty.gz", lambda _: b"x", [], "empty.gz!/empty: broken: "),
        ],
    )
    def test_what_cannot_be_read_is_a_warning_and_ends_nothing(
        self,
        plant: Callable[..., Path],
        caplog: pytest.LogCaptureFixture,
        name: str,
        make: Callable[[Any], bytes],
        found: list[str],
        text: str,
    ) -> None:
        folder = plant({name: make(self), "z.zip": zipped({"last": b"needle"})})
        paths = [path for path, _, _ in members(folder, ["zip", "tar", "gz"])]
        assert paths[-1] == "z.zip!/last"
        assert set(found) <= set(paths)
        assert text in caplog.text

    def test_names_and_links_of_members_lead_nowhere(self, plant: Callable[..., Path], tmp_path: Path) -> None:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for name in ("/etc/passwd", "../../up", "nul\udcff"):
                info = tarfile.TarInfo(name)
                info.size = 6
                archive.addfile(info, io.BytesIO(b"needle"))
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
        folder = plant({"f.tar": out.getvalue()})
        before = sorted(tmp_path.rglob("*"))
        assert [path for path, _, _ in members(folder, "tar")] == [
            "f.tar!//etc/passwd",
            "f.tar!/../../up",
            "f.tar!/nul\udcff",
        ]
        assert sorted(tmp_path.rglob("*")) == before

    def read(self, folder: Path, names: list[str], bounds: Bounds) -> tuple[list[str], list[PathError]]:
        source = ArchiveSource(str(folder), names, ("zip", "tar", "gz"), bounds, follow=False)
        return [name for name, _ in source], source.errors

    @pytest.mark.slow
    def test_bomb_is_left_at_its_bound(self, plant: Callable[..., Path]) -> None:
        bomb = zipped({f"{number}": bytes(8 << 20) for number in range(4)})
        nested = zipped({"inner.zip": bomb, "after": b"x"})
        folder = plant({"bomb.zip": bomb, "nested.zip": nested, "last.zip": zipped({"last": b"needle"})})
        for name in ("bomb.zip", "nested.zip"):
            names, errors = self.read(folder, [name, "last.zip"], Bounds())
            assert names[-1] == "last.zip!/last"
            assert len(names) <= 3
            assert [(error.path, "(a decompression bomb?)" in error.message) for error in errors] == [(name, True)]

    @pytest.mark.parametrize(
        ("bounds", "text"),
        [
            (Bounds(members=2), "more than 2 members"),
            (Bounds(total_bytes=20), "unpacks to more than 20 bytes"),
            (Bounds(member_bytes=12), "larger than 12 bytes"),
        ],
    )
    def test_limits_are_errors_beside_the_rest(self, plant: Callable[..., Path], bounds: Bounds, text: str) -> None:
        folder = plant({"f.zip": zipped(FILES)})
        names, errors = self.read(folder, ["f.zip"], bounds)
        assert len(names) < len(FILES)
        assert text in str(errors[0])

    def test_header_of_a_tar_is_bounded(self, plant: Callable[..., Path]) -> None:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            info = tarfile.TarInfo("f")
            info.pax_headers = {"comment": "x" * (3 << 20)}
            archive.addfile(info)
        _, errors = self.read(plant({"f.tar": out.getvalue()}), ["f.tar"], Bounds())
        assert "a header has more than" in str(errors[0])

    def test_size_of_a_member_beyond_the_end_of_a_tar_is_not_skipped(self, plant: Callable[..., Path]) -> None:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            info = tarfile.TarInfo("f")
            info.pax_headers = {"size": str(1 << 60)}  # in blocks of 10 KB this would take years
            archive.addfile(info)
        _, errors = self.read(plant({"f.tar": out.getvalue()}), ["f.tar"], Bounds())
        assert "unexpected end of data" in str(errors[-1])

    def test_bytes_of_sparse_members_count(self, plant: Callable[..., Path]) -> None:
        def sparse(name: str, size: int) -> bytes:
            """Return a member with one byte at its end, in the old form of GNU tar (its manual, 'Sparse Formats')."""
            info = tarfile.TarInfo(name)
            info.type, info.size = tarfile.GNUTYPE_SPARSE, 1
            header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
            header[386:410] = b"%011o\0%011o\0" % (size - 1, 1)
            header[483:495] = b"%011o\0" % size
            header[148:156] = b"%06o\0 " % (sum(header) - sum(header[148:156]) + 8 * 0x20)
            return bytes(header) + b"x".ljust(512, b"\0")

        folder = plant({"f.tar": b"".join(sparse(str(number), 10_000) for number in range(5)) + bytes(1024)})
        names, errors = self.read(folder, ["f.tar"], Bounds(total_bytes=30_000))  # the archive itself has 6144
        assert names == ["f.tar!/0", "f.tar!/1"]
        assert "unpacks to more than 30000 bytes" in str(errors[0])

    def test_member_without_a_name_does_not_end_a_zip(self, plant: Callable[..., Path]) -> None:
        content = zipped({"a": b"1", "xx": b"2", "b": b"3"}).replace(b"xx", b"\0x")  # zipfile cuts a name at its NUL
        assert self.read(plant({"f.zip": content}), ["f.zip"], Bounds()) == (["f.zip!/a", "f.zip!/", "f.zip!/b"], [])

    def test_file_that_is_gone_is_an_error(self, folder: Path) -> None:
        assert [error.path for error in self.read(folder, ["gone.zip"], Bounds())[1]] == ["gone.zip"]


@pytest.mark.parametrize("inside", ["rar", ["zip", "7z"], [""]])
def test_unknown_format_is_an_error(inside: Any) -> None:
    with pytest.raises(ValueError, match=r"inside must be 'zip', 'tar', .* or 'xlsx', got"):
        sync.search("x", inside=inside)


@pytest.mark.slow
def test_leaving_a_search_inside_archives_closes_them(plant: Callable[..., Path]) -> None:
    folder = plant({"f.zip": zipped({str(number): b"needle\n" * 1000 for number in range(500)})})
    found = sync.search("needle", cwd=folder, inside="zip")
    next(found)
    found.close()

"""Installation of rg.exe from a local mirror."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ripwrap import ChecksumMismatchError, sync
from ripwrap.binary import cache
from support import wheel
from support.mirror import ASSET, FOLDER, VERSION, Mirror, serving, sha256, write, zipped


@pytest.fixture
def program() -> bytes:
    """Bytes of the rg.exe in the wheel."""
    return Path(sync.resolve().path).read_bytes()


@pytest.fixture
def archive(program: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> bytes:
    """Release archive of `program` for Windows; hide the rg of the wheel and of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "store"))
    wheel.install(monkeypatch, tmp_path / "no-wheel")
    return zipped(FOLDER, program)


@pytest.fixture
def mirror(archive: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    with serving(Mirror()) as mirror:
        mirror.put(VERSION, ASSET, archive)
        monkeypatch.delenv("RIPWRAP_OFFLINE")
        monkeypatch.setenv("RIPWRAP_MIRROR", mirror.url)
        monkeypatch.setenv("RIPWRAP_SHA256", sha256(archive))
        yield mirror


def test_first_search_installs_rg_and_the_next_one_reuses_it(
    mirror: Mirror, shop: Path, program: bytes, tmp_path: Path
) -> None:
    assert ASSET.endswith("-pc-windows-msvc.zip")
    for _ in range(2):
        assert [match.path for match in sync.search("class Cart", cwd=shop)] == [r"src\cart.py"]
    assert mirror.asked == [f"/{VERSION}/{ASSET}"]
    installed = tmp_path / "store" / FOLDER / "rg.exe"
    assert (cache.NAME, installed.read_bytes()) == ("rg.exe", program)
    again = sync.install()
    assert (again.source, again.path) == ("cache", str(installed))


def test_changed_archive_is_refused(mirror: Mirror, archive: bytes, tmp_path: Path) -> None:
    mirror.put(VERSION, ASSET, archive + b"x")
    with pytest.raises(ChecksumMismatchError):
        sync.resolve()
    assert not (tmp_path / "store" / FOLDER).exists()


def test_install_over_a_running_rg_replaces_it_or_changes_nothing(mirror: Mirror, tmp_path: Path, shop: Path) -> None:
    """Windows does not let the file of a running program be overwritten."""
    found = sync.install(dest=tmp_path / "bin")
    matches = sync.search("e", cwd=shop, rg=found.path)
    next(matches)
    sync.install(dest=tmp_path / "bin")
    matches.close()
    assert sync.resolve(found.path).version == (15, 2, 0)
    assert os.listdir(tmp_path / "bin") == ["rg.exe"]


def test_file_mirror_works_offline(archive: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPWRAP_SHA256", write(tmp_path / "mirror", VERSION, ASSET, archive))
    monkeypatch.setenv("RIPWRAP_MIRROR", (tmp_path / "mirror").as_uri())
    assert sync.resolve().source == "download"

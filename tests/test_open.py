"""Files that are something else when they are opened than they were when rg listed them."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import _open, _rank, sync
from ripwrap._open import opened
from ripwrap.index import Index

Plant = Callable[..., Path]

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not _open._WALKS, reason="this system cannot open a file in a folder that is open"),
]


def text(folder: Path, path: str, *, follow: bool = False, named: tuple[str, ...] = (os.curdir,)) -> str:
    with open(opened(str(folder), path, follow=follow, named=named)) as file:
        return file.read()


def to_link(folder: Path, outside: Path) -> None:
    (outside / "secret.py").write_text("cookie = 'secret'\n")
    (folder / "a.py").unlink()
    (folder / "a.py").symlink_to(outside / "secret.py")


def to_linked_folder(folder: Path, outside: Path) -> None:
    (outside / "b.py").write_text("cookie = 'secret'\n")
    (folder / "sub").rename(outside / "was")
    (folder / "sub").symlink_to(outside)


def to_pipe(folder: Path, outside: Path) -> None:
    (folder / "a.py").unlink()
    os.mkfifo(folder / "a.py")


def to_socket(folder: Path, outside: Path) -> None:
    (folder / "a.py").unlink()
    here = os.getcwd()
    os.chdir(folder)  # the path of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("a.py")
    finally:
        os.chdir(here)


def to_folder(folder: Path, outside: Path) -> None:
    (folder / "a.py").unlink()
    (folder / "a.py").mkdir()


def to_file(folder: Path, outside: Path) -> None:
    (folder / "sub").rename(outside / "was")
    (folder / "sub").write_text("cookie")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    return tmp_path / "outside"


@pytest.fixture
def files(plant: Plant) -> Path:
    return plant({"a.py": "cookie = 1\n", "sub/b.py": "cookie = 2\n", "other.py": "cookie = 3\n"})


CHANGES = [
    (to_link, "a.py"),
    (to_linked_folder, "sub/b.py"),
    (to_pipe, "a.py"),
    (to_socket, "a.py"),
    (to_folder, "a.py"),
    (to_file, "sub/b.py"),
]
Change = Callable[[Path, Path], None]


@pytest.mark.parametrize(("change", "path"), CHANGES)
def test_what_is_no_file_any_more_is_not_opened(change: Change, path: str, files: Path, outside: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    change(files, outside)
    for follow in (False, change not in (to_link, to_linked_folder)):
        with pytest.raises(FileNotFoundError, match="it is no regular file any more"):
            opened(str(files), path, follow=follow)
    assert len(os.listdir("/dev/fd")) == before


def test_links_are_followed_where_rg_does_or_where_they_were_named(files: Path, outside: Path) -> None:
    to_linked_folder(files, outside)
    (files / "link.py").symlink_to("other.py")
    assert text(files, "sub/b.py", follow=True) == text(files, "sub/b.py", named=("sub",)) == "cookie = 'secret'\n"
    assert text(files, "sub/b.py", named=("x", "sub/")) == text(files, "sub//b.py", named=("sub//",))
    assert text(files, "link.py", named=("sub", "link.py")) == "cookie = 3\n"
    (files / "sub" / "deep").symlink_to(".")
    with pytest.raises(FileNotFoundError, match="no regular file any more"):
        text(files, "sub/deep/b.py", named=("sub",))
    absolute = str(files / "sub")
    assert text(Path("/"), f"{absolute}/b.py", named=(absolute,)) == "cookie = 'secret'\n"
    assert text(outside, "../folder/other.py", named=("..",)) == "cookie = 3\n"


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("change", "path"), CHANGES)
@pytest.mark.anyio
async def test_an_index_leaves_out_what_changed_before_it_was_read(
    late: bool, change: Change, path: str, files: Path, outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ripwrap.index import refresh

    stamps_of = refresh.__dict__["stamps_of"]

    def meanwhile(*arguments: Any, **options: Any) -> object:
        if not late:
            change(files, outside)
        found = stamps_of(*arguments, **options)
        if late:
            change(files, outside)
        return found

    async with Index(files, location=tmp_path / "home", follow=False, chunker="windows") as index:
        with monkeypatch.context() as patch:
            patch.setattr(refresh, "stamps_of", meanwhile)
            done = await index.refresh()
        assert (done.added, done.skipped) == (2, ())
        found = {place.path: place.text for place in await index.search("cookie", refresh=False)}
    assert path not in found and "other.py" in found
    assert not any("secret" in said for said in found.values())


@pytest.mark.parametrize(("change", "path"), CHANGES)
def test_ranking_leaves_out_what_changed_before_it_was_read(
    change: Change,
    path: str,
    files: Path,
    outside: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sizes = _rank._sizes

    def meanwhile(cwd: str, paths: Any) -> dict[str, int]:
        found = sizes(cwd, paths)
        change(files, outside)
        return found

    monkeypatch.setattr(_rank, "_sizes", meanwhile)
    found = {place.path: place.text for place in sync.rank("cookie", cwd=files, follow=False)}
    assert path not in found and "other.py" in found
    assert not any("secret" in said for said in found.values())
    assert f"{path} could not be read: it is no regular file any more" in caplog.text


def test_a_file_named_by_a_link_is_ranked_although_links_are_not_followed(files: Path, outside: Path) -> None:
    (outside / "b.py").write_text("cookie = 4\n")
    (files / "linked").symlink_to(outside)
    (files / "link.py").symlink_to("other.py")
    found = sync.rank("cookie", cwd=files, paths=["link.py", "linked"], follow=False)
    assert {place.path for place in found} == {"link.py", "linked/b.py"}
    assert {place.path for place in sync.rank("cookie", cwd=files, follow=False)} == {"a.py", "sub/b.py", "other.py"}

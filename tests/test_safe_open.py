"""Files that are replaced after rg has listed them and before they are opened."""

import os
import socket
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import ripwrap
from ripwrap import sync
from ripwrap._system import safe_open as _open
from ripwrap._system.safe_open import open_regular_file, without_replaced
from ripwrap.binary import RgBinary
from ripwrap.index import Index, RefreshResult
from support.opening import before_opening
from support.waiting import until

Plant = Callable[..., Path]
StandIn = Callable[..., Path]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _open._CAN_OPEN_BELOW, reason="this system cannot open a file in a folder that is open"),
]


def text(folder: Path, path: str, *, follow: bool = False, named: tuple[str, ...] = (os.curdir,)) -> str:
    with open_regular_file(str(folder), path, follow=follow, roots=named) as file:
        return file.read().decode()


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
    os.chdir(folder)  # paths of sockets have a low maximum length, so use a relative one
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
def test_replaced_file_is_not_opened(change: Change, path: str, files: Path, outside: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    change(files, outside)
    for follow in (False, change not in (to_link, to_linked_folder)):
        with pytest.raises(FileNotFoundError, match="it is not a regular file any more"):
            open_regular_file(str(files), path, follow=follow)
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize(("change", "path"), CHANGES)
def test_replaced_files_are_left_out_without_opening_files(
    change: Change, path: str, files: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory of paths that come together is opened once, and what cannot be looked at is kept."""
    before = len(os.listdir("/dev/fd"))
    (files / "sub" / "c.py").touch()
    paths = ["a.py", "gone.py", "none/b.py", "other.py", "sub/b.py", "sub/c.py"]
    assert list(without_replaced(str(files), paths, follow=False)) == ["a.py", "other.py", "sub/b.py", "sub/c.py"]
    change(files, outside)
    left = [one for one in paths if one not in (path, "gone.py", "none/b.py") and (files / one).exists()]
    left = left if change is not to_linked_folder else ["a.py", "other.py"]
    assert list(without_replaced(str(files), paths, follow=False)) == left
    with ripwrap.overlay({files / "other.py": None}):
        assert list(without_replaced(str(files), paths, follow=False)) == [one for one in left if one != "other.py"]
    opened, real = list[object](), os.open

    def counted(*given: Any, **named: Any) -> int:
        opened.append(given)
        return real(*given, **named)

    monkeypatch.setattr(os, "open", counted)
    assert list(without_replaced(str(files), ["other.py"] * 100, follow=False)) == ["other.py"] * 100
    assert len(opened) == 1 and len(os.listdir("/dev/fd")) == before


@pytest.mark.posix
def test_links_are_followed_as_rg_does_or_if_named(files: Path, outside: Path) -> None:
    to_linked_folder(files, outside)
    (files / "link.py").symlink_to("other.py")
    assert text(files, "sub/b.py", follow=True) == text(files, "sub/b.py", named=("sub",)) == "cookie = 'secret'\n"
    assert text(files, "sub/b.py", named=("x", "sub/")) == text(files, "sub//b.py", named=("sub//",))
    assert text(files, "link.py", named=("sub", "link.py")) == "cookie = 3\n"
    (files / "sub" / "deep").symlink_to(".")
    with pytest.raises(FileNotFoundError, match="not a regular file any more"):
        text(files, "sub/deep/b.py", named=("sub",))
    absolute = str(files / "sub")
    assert text(Path("/"), f"{absolute}/b.py", named=(absolute,)) == "cookie = 'secret'\n"
    assert text(outside, "../folder/other.py", named=("..",)) == "cookie = 3\n"


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("change", "path"), CHANGES)
@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_index_skips_files_that_were_replaced_before_reading(
    late: bool, change: Change, path: str, files: Path, outside: Path, tmp_path: Path, rg: RgBinary, stand_in: StandIn
) -> None:
    """Replace a file after rg has listed it, before its state is read or, with `late`, after that."""
    pausing = stand_in(f"pauses({rg.path!r}, {str(tmp_path)!r})")
    done: list[RefreshResult] = []
    async with Index(files, location=tmp_path / "home", follow=False, chunker="windows", rg=pausing) as index:

        async def refresh() -> None:
            done.append(await index.refresh())

        with before_opening(str(files), partial(change, files, outside)) if late else nullcontext():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(refresh)
                await until((tmp_path / "listed").exists)
                if not late:
                    change(files, outside)
                (tmp_path / "go").touch()
        assert [(one.added, one.skipped) for one in done] == [(2, ())]
        found = {result.path: result.text for result in await index.search("cookie", refresh=False)}
    assert path not in found and "other.py" in found
    assert not any("secret" in said for said in found.values())


@pytest.mark.parametrize(("change", "path"), CHANGES)
def test_rank_skips_files_that_were_replaced_before_reading(
    change: Change, path: str, files: Path, outside: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with before_opening(str(files), partial(change, files, outside)):
        found = {result.path: result.text for result in sync.rank("cookie", cwd=files, follow=False)}
    assert path not in found and "other.py" in found
    assert not any("secret" in said for said in found.values())
    assert f"{path} could not be read: it is not a regular file any more" in caplog.text


@pytest.mark.posix
def test_rank_reads_a_named_link_even_without_follow(files: Path, outside: Path) -> None:
    (outside / "b.py").write_text("cookie = 4\n")
    (files / "linked").symlink_to(outside)
    (files / "link.py").symlink_to("other.py")
    found = sync.rank("cookie", cwd=files, paths=["link.py", "linked"], follow=False)
    assert {result.path for result in found} == {"link.py", "linked/b.py"}
    assert {result.path for result in sync.rank("cookie", cwd=files, follow=False)} == {"a.py", "sub/b.py", "other.py"}

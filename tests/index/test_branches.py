"""The branch of a folder, which is read from `.git`; hostile files there cause no hang and no exception."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap.index.file_state import (
    DETACHED,
    NO_REPOSITORY,
    UNKNOWN,
    is_gone,
    key_of,
    repository_of,
    resolve_link,
    view_of,
)

pytestmark = pytest.mark.slow

Spoil = Callable[[Path], object]
LARGE = 65 << 10


def write(content: bytes) -> Spoil:
    return lambda path: path.write_bytes(content)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def sparse(path: Path) -> None:
    """Make a sparse file of one terabyte."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


def looped(path: Path) -> None:
    path.symlink_to(path)


def repository(root: Path, head: str = "ref: refs/heads/main\n") -> Path:
    git = root / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text(head)
    return git


HOSTILE = {
    "FIFO": pytest.param(fifo, marks=pytest.mark.posix),
    "/dev/zero": pytest.param(endless, marks=pytest.mark.posix),
    "a loop": pytest.param(looped, marks=pytest.mark.posix),
    "large": sparse,
    "a folder": Path.mkdir,
}


@pytest.mark.parametrize("spoil", HOSTILE.values(), ids=HOSTILE)
def test_unreadable_git_entry_is_not_a_repository(spoil: Spoil, tmp_path: Path) -> None:
    spoil(tmp_path / ".git")
    assert view_of(tmp_path) == NO_REPOSITORY
    assert key_of(tmp_path) == str(tmp_path)


@pytest.mark.parametrize(
    "said",
    [
        b"gitdir: a\0b\n",
        b"gitdir: " + b"a" * 10_000,
        b"gitdir: " + b"a/" * 10_000,
        b"gitdir: \xff\xfe\n",
        b"gitdir:\n\n/\n",
        b"gitdir: /" + b"\n" * LARGE,
        b"gitdir",
        b"",
    ],
)
def test_git_file_with_an_invalid_target_is_not_a_repository(said: bytes, tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(said)
    assert view_of(tmp_path) == NO_REPOSITORY
    assert key_of(tmp_path) == str(tmp_path)


@pytest.mark.parametrize("spoil", [*HOSTILE.values(), write(b"ref: refs/heads/main" + b"\n" * LARGE)])
def test_unreadable_head_is_an_unknown_branch(spoil: Spoil, tmp_path: Path) -> None:
    (repository(tmp_path) / "HEAD").unlink()
    spoil(tmp_path / ".git" / "HEAD")
    assert view_of(tmp_path) == UNKNOWN
    assert not is_gone(tmp_path, UNKNOWN)


@pytest.mark.parametrize(
    "name", ["a\0b", "a\nb", "a\x1b[2Jb", "detached HEAD", "a\x7f", "/etc", "a//b", "..", r"\\host\x", "c:"]
)
def test_invalid_branch_name_is_an_unknown_branch(name: str, tmp_path: Path) -> None:
    repository(tmp_path, f"ref: refs/heads/{name}\n")
    assert view_of(tmp_path) == UNKNOWN


@pytest.mark.parametrize("spoil", [*HOSTILE.values(), write(b"a\0b"), write(b"a" * 10_000), write(b"/" * LARGE)])
def test_unreadable_commondir_is_ignored(spoil: Spoil, tmp_path: Path) -> None:
    git = repository(tmp_path)
    spoil(git / "commondir")
    found = repository_of(tmp_path)
    assert found is not None
    assert view_of(tmp_path) == "main"
    key_of(tmp_path)
    assert not is_gone(tmp_path, "main")


@pytest.mark.parametrize("spoil", HOSTILE.values(), ids=HOSTILE)
def test_branch_counts_as_existing_if_packed_refs_are_unreadable(spoil: Spoil, tmp_path: Path) -> None:
    spoil(repository(tmp_path) / "packed-refs")
    assert not is_gone(tmp_path, "packed")


@pytest.mark.parametrize("name", ["gone", "a" * 10_000, "a\0b", "../../HEAD/x"])
def test_branch_without_a_ref_file_or_packed_ref_counts_as_deleted(name: str, tmp_path: Path) -> None:
    git = repository(tmp_path)
    assert is_gone(tmp_path, name)
    (git / "packed-refs").write_text("# pack-refs with: peeled\n" + f"{'0' * 40} refs/heads/packed\n" * 100_000)
    assert is_gone(tmp_path, name)
    assert not is_gone(tmp_path, "packed")


@pytest.mark.posix
def test_packed_refs_behind_a_link_are_read(tmp_path: Path) -> None:
    (tmp_path / "shared").write_text(f"{'0' * 40} refs/heads/packed\n")
    (repository(tmp_path) / "packed-refs").symlink_to(tmp_path / "shared")
    assert not is_gone(tmp_path, "packed")
    assert is_gone(tmp_path, "gone")


def test_packed_refs_with_carriage_returns_are_read(tmp_path: Path) -> None:
    (repository(tmp_path) / "packed-refs").write_bytes(b"# pack-refs\r\n%b refs/heads/packed\r\n" % (b"0" * 40))
    assert not is_gone(tmp_path, "packed")


def test_ordinary_repository_has_its_branch_and_key(tmp_path: Path) -> None:
    git = repository(tmp_path)
    assert (view_of(tmp_path), key_of(tmp_path)) == ("main", f"{git}\0.")
    (git / "HEAD").write_text("0" * 40 + "\n")
    assert view_of(tmp_path) == DETACHED


@pytest.mark.parametrize("text", [r"\\host\share\git", "//host/share/git", r"\\?\UNC\host\share", r"\\.\pipe\x"])
def test_repository_cannot_lead_to_another_computer_on_windows(text: str, tmp_path: Path) -> None:
    assert resolve_link(tmp_path, text, windows=True) is None
    assert resolve_link(tmp_path, "below", windows=True) == tmp_path / "below"

"""Differences on macOS (docs/reference/platforms.md), simulated on any POSIX system."""

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from ripwrap import AccessDeniedError, sync
from ripwrap._system import safe_open as _safe_open
from ripwrap._system.safe_open import open_regular_file
from ripwrap.binary import RgBinary
from ripwrap.index.file_state import key_of
from ripwrap.workspace.sandbox import Sandbox, same_below

Plant = Callable[..., Path]

COMPOSED = "caf\u00e9"
DECOMPOSED = "cafe\u0301"


def apfs(*paths: str) -> "Callable[[str | os.PathLike[str]], os.stat_result]":
    """Return a `stat()` that ignores case and the Unicode form of accents in these paths, as APFS does."""
    known = {fold(path): number for number, path in enumerate(paths, 1)}

    def stat(path: "str | os.PathLike[str]") -> os.stat_result:
        if (number := known.get(fold(os.fspath(path)))) is None:
            raise FileNotFoundError(path)
        return os.stat_result((0o40755, number, 1, 1, 0, 0, 0, 0, 0, 0))

    return stat


def fold(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("/Users/me/proj/src/a.py", "src/a.py"),
        ("/Users/ME/PROJ/src/a.py", "src/a.py"),
        ("/users/me/Proj/Src", "Src"),
        ("/USERS/ME/PROJ", "."),
        ("/Users/me/project/a.py", None),
        ("/Users/me", None),
    ],
)
def test_root_spelled_in_another_case_contains_the_same_paths(path: str, relative: str | None) -> None:
    stat = apfs("/", "/Users", "/Users/me", "/Users/me/proj", "/Users/me/project")
    assert same_below(PurePosixPath(path), "/Users/me/proj", stat) == relative


@pytest.mark.parametrize(("root", "named"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_root_with_an_accent_is_found_in_both_unicode_forms(root: str, named: str) -> None:
    stat = apfs("/", "/Users", f"/Users/{root}")
    assert same_below(PurePosixPath(f"/Users/{named}/a.py"), f"/Users/{root}", stat) == "a.py"


def test_glob_with_another_unicode_form_does_not_match(rg: RgBinary, plant: Plant) -> None:
    """Check the listing by rg, and the walk without rg."""
    root = plant({f"{DECOMPOSED}/a.py": "", f"{DECOMPOSED}.py": ""})
    workspace = sync.Workspace(root, rg=rg)
    for entry_type in ("file", "any"):
        assert workspace.find_files_result(f"{COMPOSED}*", entry_type=entry_type).total_files == 0
        assert workspace.find_files_result(f"{DECOMPOSED}*", entry_type=entry_type).total_files
    assert list(sync.files(cwd=root, glob=f"{COMPOSED}*", rg=rg)) == []
    assert list(sync.files(cwd=root, glob=f"{DECOMPOSED}.py", rg=rg)) == [f"{DECOMPOSED}.py"]


def test_decomposed_name_is_returned_unchanged(rg: RgBinary, plant: Plant) -> None:
    root = plant({f"{DECOMPOSED}.py": "needle\n"})
    (match,) = sync.search("needle", cwd=root, rg=rg)
    assert match.path == f"{DECOMPOSED}.py"
    (found,) = sync.Workspace(root, rg=rg).grep_content_result("needle").matches
    assert found.file == match.path


@pytest.fixture
def tmp(needs_posix: None, tmp_path: Path) -> Path:
    """Folder behind a link, as `/tmp` is a link to `/private/tmp`."""
    (tmp_path / "private" / "tmp" / "proj").mkdir(parents=True)
    (tmp_path / "private" / "tmp" / "proj" / "a.py").write_text("needle\n")
    (tmp_path / "private" / "tmp" / "other").mkdir()
    (tmp_path / "tmp").symlink_to("private/tmp")
    return tmp_path / "tmp"


def test_root_below_a_link_is_accepted_in_both_spellings(tmp: Path) -> None:
    real = tmp.parent / "private" / "tmp" / "proj"
    for root in (tmp / "proj", real):
        sandbox = Sandbox([root])
        assert sandbox.roots == (str(real),)
        for path in ("a.py", tmp / "proj" / "a.py", real / "a.py"):
            assert sandbox.locate(str(path)).paths == ("a.py",)
        with pytest.raises(AccessDeniedError):
            sandbox.locate(str(tmp / "other"))


def test_folder_below_a_link_has_one_index(tmp: Path) -> None:
    with sync.Index(tmp / "proj") as one, sync.Index(tmp.parent / "private" / "tmp" / "proj") as other:
        assert one.root == other.root
        assert key_of(one.root) == key_of(other.root)
        assert one.location == other.location


@pytest.mark.posix
def test_links_are_not_followed_without_o_path(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    root = plant({"a/b/file": "needle"})
    (root / "link").symlink_to("a")
    (root / "a" / "b" / "linked").symlink_to("file")
    monkeypatch.setattr(_safe_open, "_FOLDER_FLAGS", os.O_DIRECTORY | os.O_CLOEXEC)
    with open_regular_file(str(root), "a/b/file", follow=False) as file:
        assert file.read() == b"needle"
    for path in ("link/b/file", "a/b/linked", "a/b", "a/b/file/x"):
        with pytest.raises(FileNotFoundError):
            open_regular_file(str(root), path, follow=False)

"""Which paths a sandbox lets through, on this file system and, as far as that is pure, on Windows."""

import os
from collections.abc import Callable
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap import AccessDeniedError
from ripwrap._sandbox import Sandbox, below, trap

Plant = Callable[..., Path]

PARTS = st.sampled_from(["a", "b", "..", ".", "...", "..a", "a..", "~", "link", "out", "", "A"])


@pytest.fixture
def yard(tmp_path: Path, folder: Path, plant: Plant) -> Path:
    """A root with links in and out, and a neighbour whose name begins with its own."""
    plant({"a/b/file": "", "..a/file": "", "a../file": "", ".../file": "", "~x/file": "", "file": ""})
    (tmp_path / "folder-secret").mkdir()
    (tmp_path / "folder-secret" / "file").write_text("secret")
    (folder / "out").symlink_to(tmp_path / "folder-secret")
    (folder / "link").symlink_to("a/b")
    (folder / "up").symlink_to("..")
    (folder / "deep").symlink_to("out/file")
    (folder / "gone").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        (".", "."),
        ("", "."),
        ("./", "."),
        ("a", "a"),
        ("a/b/", "a/b"),
        ("./a//b/../b/file", "a/b/file"),
        ("a/../file", "file"),
        ("..a", "..a"),
        ("a..", "a.."),
        ("...", "..."),
        ("~x", "~x"),
        ("link", "a/b"),
        ("link/file", "a/b/file"),
        ("out/../file", None),  # the parent of what the link leads to
        ("link/../../file", "file"),
        ("../folder/file", "file"),
    ],
)
def test_what_leads_into_the_root_is_found_by_its_real_path(yard: Path, path: str, relative: str | None) -> None:
    sandbox = Sandbox([yard])
    for spelled in (path, os.path.join(yard, path)):
        if relative is None:
            with pytest.raises(AccessDeniedError):
                sandbox.place(spelled)
        else:
            assert sandbox.place(spelled).paths == (relative,)


@pytest.mark.parametrize(
    "path",
    [
        *("..", "../", "../folder/..", "../folder-secret", "../folder-secret/file", "a/../../folder-secret"),
        *("up", "up/folder-secret", "out", "out/", "out/file", "deep", "/", "//", "/etc/passwd", "/etc/../etc/passwd"),
        *("../..", "../../../../../../../../etc/passwd", "link/../../../folder-secret/file"),
        *("loop/../out", "loop/../out/file", "loop/x/../../deep", "gone/../loop/../out"),
        *("~", "~/", "~/.ssh/id_rsa", "/proc/self/root", "/proc/self/cwd"),
        *("..//folder-secret", "./../folder-secret", "/dev/fd/0", "/tmp", "up/../etc"),
    ],
)  # fmt: skip
def test_what_leads_out_of_the_root_is_refused(yard: Path, path: str) -> None:
    with pytest.raises(AccessDeniedError) as caught:
        Sandbox([yard]).place(path)
    assert (caught.value.path, caught.value.roots) == (path, (str(yard),))
    assert str(yard) in str(caught.value)
    assert isinstance(caught.value, PermissionError)


@pytest.mark.parametrize("path", ["nope", "a/nope", "gone", "loop/x", "file/x", "~user/x"])
def test_what_is_not_there_is_said_to_be_missing(yard: Path, path: str) -> None:
    with pytest.raises(FileNotFoundError, match="ls shows what there is"):
        Sandbox([yard]).place(path)


def test_a_path_outside_is_refused_whether_or_not_there_is_something(yard: Path) -> None:
    messages = set()
    for path in ("../folder-secret/file", "../folder-secret/none"):
        with pytest.raises(AccessDeniedError) as caught:
            Sandbox([yard]).place(path)
        messages.add(str(caught.value).replace(path, ""))
    assert len(messages) == 1


@given(st.lists(PARTS, max_size=8).map("/".join))
def test_nothing_gets_out_whatever_the_path(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    root = tmp_path_factory.getbasetemp() / "maze" / "root"
    if not root.exists():
        (root / "a" / "b").mkdir(parents=True)
        (root.parent / "a").mkdir()
        (root / "out").symlink_to("../a")
        (root / "a" / "link").symlink_to("../out")
    try:
        place = Sandbox([root]).place(path)
    except (AccessDeniedError, FileNotFoundError):
        return
    assert Path(place.cwd, place.paths[0]).resolve().is_relative_to(root.resolve())


def test_home_is_understood_and_the_list_of_users_is_not_read(yard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(yard))
    sandbox = Sandbox([yard])
    assert sandbox.place("~/a/b").paths == ("a/b",)
    assert sandbox.place("~").paths == (".",)
    with pytest.raises(FileNotFoundError):
        sandbox.place("~root/.ssh")
    (yard / "~").mkdir()
    assert sandbox.place("~").paths == ("~",)


def test_with_several_roots_a_path_is_looked_for_in_each_and_shown_whole(yard: Path, tmp_path: Path) -> None:
    other = tmp_path / "folder-secret"
    sandbox = Sandbox([yard, other])
    place = sandbox.place("a/b")
    assert (place.cwd, place.paths, place.shown("a/b/file")) == (str(yard), ("a/b",), str(yard / "a/b/file"))
    assert sandbox.place(str(other / "file")).shown("file") == str(other / "file")
    assert sandbox.place("out/file").cwd == str(other)
    everything = sandbox.place(".")
    assert everything.several
    assert [Path(everything.cwd, path) for path in everything.paths] == [yard, other]
    with pytest.raises(AccessDeniedError):
        sandbox.place(str(tmp_path))


def test_a_root_within_another_adds_nothing(yard: Path) -> None:
    assert Sandbox([yard / "a", yard, yard / "a" / "b"]).roots == (str(yard),)


def test_a_root_may_be_named_by_a_link_and_then_is_what_it_leads_to(yard: Path) -> None:
    sandbox = Sandbox([yard / "link"])
    assert sandbox.roots == (str(yard / "a" / "b"),)
    with pytest.raises(AccessDeniedError):
        sandbox.place("..")


@pytest.mark.parametrize("how", ["gone", "file", "link"])
def test_a_root_that_is_no_longer_what_it_was_is_said(yard: Path, tmp_path: Path, how: str) -> None:
    sandbox = Sandbox([yard])
    yard.rename(tmp_path / "moved")
    if how == "file":
        yard.write_text("")
    elif how == "link":
        yard.symlink_to(tmp_path / "folder-secret")
    with pytest.raises(FileNotFoundError, match="is gone"):
        sandbox.place("file")


def test_roots_that_cannot_be_are_refused_at_once(yard: Path) -> None:
    with pytest.raises(ValueError, match="a root is empty"):
        Sandbox([""])
    with pytest.raises(ValueError, match="no root given"):
        Sandbox([])
    with pytest.raises(FileNotFoundError, match="nope does not exist"):
        Sandbox([yard / "nope"])
    with pytest.raises(NotADirectoryError, match="file is not a directory"):
        Sandbox([yard / "file"])


def test_a_nul_in_a_path_is_said(yard: Path) -> None:
    with pytest.raises(ValueError, match="NUL"):
        Sandbox([yard]).place("a\0b")


def test_a_hard_look_at_the_file_system_finds_a_root_under_another_name(
    yard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a file system that ignores case does: another spelling, the same directory.
    real = os.stat
    other = str(yard.parent / "FOLDER")

    def stat(path: object, *rest: object, **options: object) -> os.stat_result:
        named = str(path)
        spelled = str(yard) + named[len(other) :] if named == other or named.startswith(f"{other}/") else named
        return real(spelled, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os.path, "realpath", lambda path: str(PurePath(path)))
    monkeypatch.setattr(os.path, "lexists", lambda path: True)
    place = Sandbox([yard]).place(f"{other}/a/b")
    assert (place.cwd, place.paths) == (str(yard), ("a/b",))


@pytest.mark.parametrize(
    ("path", "root", "relative"),
    [
        (PureWindowsPath(r"C:\Work\Src\a.py"), PureWindowsPath(r"c:\work"), r"Src\a.py"),
        (PureWindowsPath(r"C:\work"), PureWindowsPath(r"C:\work"), "."),
        (PureWindowsPath(r"C:\workshop\a"), PureWindowsPath(r"C:\work"), None),
        (PureWindowsPath(r"D:\work\a"), PureWindowsPath(r"C:\work"), None),
        (PureWindowsPath(r"\\server\share\a"), PureWindowsPath(r"\\SERVER\share"), "a"),
        (PureWindowsPath(r"\\server\other\a"), PureWindowsPath(r"\\server\share"), None),
        (PureWindowsPath(r"C:/work/a/b"), PureWindowsPath(r"C:\work\a"), "b"),
        (PurePosixPath("/work/A"), PurePosixPath("/work/a"), None),
        (PurePosixPath("/workshop"), PurePosixPath("/work"), None),
        (PurePosixPath("/work/..a"), PurePosixPath("/work"), "..a"),
        (PurePosixPath("/a"), PurePosixPath("/"), "a"),
    ],
)
def test_containment_goes_by_the_parts_of_a_path_and_the_rules_of_its_kind(
    path: PurePath, root: PurePath, relative: str | None
) -> None:
    assert below(path, root) == relative


@pytest.mark.parametrize(
    "path",
    [
        *(r"C:secret", "c:..\\x", r"\\?\C:\x", r"\\.\PhysicalDrive0", "//?/C:/x", "//./COM1"),
        *("NUL", "a/con", r"a\LPT1.txt"),
        *("com1", "CONIN$", "a.txt:stream", r"dir::$INDEX_ALLOCATION", "a.", "a ", r"dir. \x", "aux.c"),
    ],
)  # fmt: skip
def test_what_windows_takes_for_something_else_is_a_trap(path: str) -> None:
    assert trap(path)


@pytest.mark.parametrize(
    "path", [r"C:\work\a.py", "C:/work", r"src\console.py", "..", r"..\x", "nul_.txt", "comma", ".", "a..b", "lpt"]
)
def test_what_windows_takes_as_it_is_is_none(path: str) -> None:
    assert trap(path) is None

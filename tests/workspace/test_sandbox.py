"""Paths that a sandbox accepts, on this file system and, for the pure functions, on Windows."""

import os
from collections.abc import Callable
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap import AccessDeniedError
from ripwrap.workspace.sandbox import Sandbox, below

Plant = Callable[..., Path]

PARTS = st.sampled_from(["a", "b", "..", ".", "...", "..a", "a..", "~", "link", "out", "", "A"])


@pytest.fixture
def yard(needs_posix: None, tmp_path: Path, folder: Path, plant: Plant) -> Path:
    """A root with links in and out, and a neighbour folder whose name begins with the root's name."""
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
        ("out/../file", None),  # the parent of the link's target
        ("link/../../file", "file"),
        ("../folder/file", "file"),
    ],
)
def test_path_into_the_root_is_located_by_its_real_path(yard: Path, path: str, relative: str | None) -> None:
    sandbox = Sandbox([yard])
    for spelled in (path, os.path.join(yard, path)):
        if relative is None:
            with pytest.raises(AccessDeniedError):
                sandbox.locate(spelled)
        else:
            assert sandbox.locate(spelled).paths == (relative,)


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
def test_path_out_of_the_root_is_refused(yard: Path, path: str) -> None:
    with pytest.raises(AccessDeniedError) as caught:
        Sandbox([yard]).locate(path)
    assert (caught.value.path, caught.value.roots) == (path, (str(yard),))
    assert str(yard) in str(caught.value)
    assert isinstance(caught.value, PermissionError)


@pytest.mark.parametrize("path", ["nope", "a/nope", "gone", "loop/x", "file/x", "~user/x"])
def test_missing_path_raises_file_not_found(yard: Path, path: str) -> None:
    with pytest.raises(FileNotFoundError, match="ls lists the files"):
        Sandbox([yard]).locate(path)


def test_outside_path_is_refused_alike_whether_or_not_it_exists(yard: Path) -> None:
    messages = set()
    for path in ("../folder-secret/file", "../folder-secret/none"):
        with pytest.raises(AccessDeniedError) as caught:
            Sandbox([yard]).locate(path)
        messages.add(str(caught.value).replace(path, ""))
    assert len(messages) == 1


@pytest.mark.posix
@given(st.lists(PARTS, max_size=8).map("/".join))
def test_no_path_leads_out_of_the_root(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    root = tmp_path_factory.getbasetemp() / "maze" / "root"
    if not root.exists():
        (root / "a" / "b").mkdir(parents=True)
        (root.parent / "a").mkdir()
        (root / "out").symlink_to("../a")
        (root / "a" / "link").symlink_to("../out")
    try:
        location = Sandbox([root]).locate(path)
    except (AccessDeniedError, FileNotFoundError):
        return
    assert Path(location.cwd, location.paths[0]).resolve().is_relative_to(root.resolve())


def test_home_expands_and_other_users_homes_do_not(yard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(yard))
    sandbox = Sandbox([yard])
    assert sandbox.locate("~/a/b").paths == ("a/b",)
    assert sandbox.locate("~").paths == (".",)
    with pytest.raises(FileNotFoundError):
        sandbox.locate("~root/.ssh")
    (yard / "~").mkdir()
    assert sandbox.locate("~").paths == ("~",)


def test_path_is_located_in_each_of_several_roots_and_shown_absolute(yard: Path, tmp_path: Path) -> None:
    other = tmp_path / "folder-secret"
    sandbox = Sandbox([yard, other])
    location = sandbox.locate("a/b")
    assert (location.cwd, location.paths, location.shown("a/b/file")) == (str(yard), ("a/b",), str(yard / "a/b/file"))
    assert sandbox.locate(str(other / "file")).shown("file") == str(other / "file")
    assert sandbox.locate("out/file").cwd == str(other)
    everything = sandbox.locate(".")
    assert everything.several
    assert [Path(everything.cwd, path) for path in everything.paths] == [yard, other]
    with pytest.raises(AccessDeniedError):
        sandbox.locate(str(tmp_path))


def test_root_within_another_root_is_dropped(yard: Path) -> None:
    assert Sandbox([yard / "a", yard, yard / "a" / "b"]).roots == (str(yard),)


def test_root_that_is_a_link_is_resolved(yard: Path) -> None:
    sandbox = Sandbox([yard / "link"])
    assert sandbox.roots == (str(yard / "a" / "b"),)
    with pytest.raises(AccessDeniedError):
        sandbox.locate("..")


@pytest.mark.posix
@pytest.mark.parametrize("how", ["gone", "file", "link"])
def test_replaced_root_raises_file_not_found(yard: Path, tmp_path: Path, how: str) -> None:
    sandbox = Sandbox([yard])
    yard.rename(tmp_path / "moved")
    if how == "file":
        yard.write_text("")
    elif how == "link":
        yard.symlink_to(tmp_path / "folder-secret")
    with pytest.raises(FileNotFoundError, match="does not exist any more"):
        sandbox.locate("file")


def test_invalid_root_is_refused_at_once(yard: Path) -> None:
    with pytest.raises(ValueError, match="a root is an empty string"):
        Sandbox([""])
    with pytest.raises(ValueError, match="no root given"):
        Sandbox([])
    with pytest.raises(FileNotFoundError, match="nope does not exist"):
        Sandbox([yard / "nope"])
    with pytest.raises(NotADirectoryError, match="file is not a directory"):
        Sandbox([yard / "file"])


def test_nul_in_a_path_raises(yard: Path) -> None:
    with pytest.raises(ValueError, match="NUL"):
        Sandbox([yard]).locate("a\0b")


def test_root_spelled_otherwise_is_found_by_its_inode(yard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Imitates a file system that ignores case: another spelling, the same directory.
    real = os.stat
    other = str(yard.parent / "FOLDER")

    def stat(path: object, *rest: object, **options: object) -> os.stat_result:
        named = str(path)
        spelled = str(yard) + named[len(other) :] if named == other or named.startswith(f"{other}/") else named
        return real(spelled, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os.path, "realpath", lambda path: str(PurePath(path)))
    monkeypatch.setattr(os.path, "lexists", lambda path: True)
    location = Sandbox([yard]).locate(f"{other}/a/b")
    assert (location.cwd, location.paths) == (str(yard), ("a/b",))


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
def test_containment_compares_path_components_by_platform_rules(
    path: PurePath, root: PurePath, relative: str | None
) -> None:
    assert below(path, root) == relative


FOREIGN = [
    *(r"\\host\share\x", "//host/share/x", r"/\host\share", r"\/host/share", r"\\host\share\..\..\x", "//host", "//"),
    *(r"\\?\UNC\host\share", r"\\?\C:\x", r"\\.\pipe\x", "//?/UNC/host/share", r"\??\UNC\host\share", "/??/C:/x"),
]


@pytest.mark.parametrize("path", FOREIGN)
def test_path_to_another_computer_or_device_is_refused_before_it_is_looked_at(
    yard: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox([yard], windows=True)
    looked_at: list[str] = []

    def spy(call: Callable[..., object]) -> Callable[..., object]:
        def recorded(path: object, *rest: object, **options: object) -> object:
            looked_at.append(str(path))
            return call(path, *rest, **options)

        return recorded

    for name in ("lstat", "stat", "readlink", "open", "scandir"):
        monkeypatch.setattr(os, name, spy(getattr(os, name)))
    with pytest.raises(AccessDeniedError, match=r"another computer|device path") as caught:
        sandbox.locate(path)
    monkeypatch.undo()
    assert caught.value.path == path
    assert looked_at == []


def test_windows_rules_leave_ordinary_paths_alone(yard: Path) -> None:
    assert Sandbox([yard], windows=True).locate("a/b").paths == ("a/b",)
    with pytest.raises(AccessDeniedError, match="names a device"):
        Sandbox([yard], windows=True).locate("a/NUL")

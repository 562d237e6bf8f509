"""Files of version control are never written, however their path is spelled and whoever asks."""

import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ripwrap import FileEdits, sync
from ripwrap._edits.journal import JournalFolder, Journals, apply_edits
from ripwrap._system.safe_write import Disk, is_protected_name, why_protected
from support.git import require_git
from support.tools import APIS, Asked

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(
    "name",
    [
        *(".git", ".jj", ".hg", ".svn", ".ripwrap"),
        *(".GIT", ".Git", ".RipWrap", ".\u017fvn"),
        *(".git.", ".git ", ".git . ..", ".git:", ".git::$INDEX_ALLOCATION", ".git :x", ".hg::$DATA"),
        *("git~1", "GIT~1", "Git~22", "HG~1", "SVN~3", "JJ~1", "RIPWRA~1", "GIT~1.", "git~1::$DATA"),
        *(".g\u200cit", ".gi\u200dt\ufeff", "\u202e.git", ".g\u00adit", ".g\u2064it", ".gi\ufe0ft", ".h\U000e0001g"),
    ],
)
def test_every_spelling_of_a_protected_name_is_recognised(name: str) -> None:
    assert is_protected_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *(".gitignore", ".gitattributes", ".gitmodules", ".github", ".gitlab-ci.yml", ".hgignore", "git", "x.git"),
        *("git~", "agit~1", "git~1a", ".git-blame", "..git", ".svnignore", "", ".", "..", "jj", ".g", "foo.git:x"),
    ],
)
def test_other_names_are_not_protected(name: str) -> None:
    assert not is_protected_name(name)


@pytest.mark.posix
@pytest.mark.parametrize(
    ("path", "protected"),
    [
        *((one, True) for one in ("r/.git/hooks/a", "r/.git", "r/.Git/x/y", "r\\.git\\hooks\\a", "r/a/../.git/b")),
        *((one, True) for one in ("bare/config", "bare/hooks/a/b", "linked/config.worktree", "bare/tree/.git")),
        *((one, True) for one in ("bare/hooks/pre-commit", "bare/Info/x/attributes")),
        *((one, False) for one in ("r/a", "r/.gitmodules", "bare/tree/a", "bare/tree/b/c", "half/config")),
    ],
)
def test_paths_below_protected_directories_are_protected(path: str, protected: bool, plant: Plant) -> None:
    folder = plant(
        {
            **dict.fromkeys(("bare/HEAD", "bare/objects/a", "bare/refs/a", "bare/tree/.git", "bare/tree/b/c"), "x"),
            **dict.fromkeys(("bare/hooks/.git", "bare/Info/x/.git"), "x"),
            **dict.fromkeys(("linked/HEAD", "linked/commondir", "half/HEAD", "half/objects/a"), "x"),
        }
    )
    assert bool(why_protected(f"{folder}/{path}")) == protected


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".git", "bare/hooks/pre-commit"])
@pytest.mark.parametrize("write", ["write_beside", "replace", "remove_beside"])
def test_disk_refuses_every_write(write: str, name: str, plant: Plant) -> None:
    folder = plant({name: "foo\n", "bare/HEAD": "", "bare/objects/a": "", "bare/refs/a": ""})
    path = str(folder / name)
    _, known = Disk().read(path)
    before = sorted(folder.rglob("*"))
    arguments = {"write_beside": (b"x", known), "replace": (known,), "remove_beside": ()}[write]
    with pytest.raises(PermissionError, match="nothing is written to"):
        getattr(Disk(), write)(path, ".ripwrap-0.tmp", *arguments)
    assert (sorted(folder.rglob("*")), (folder / name).read_text()) == (before, "foo\n")


LAYOUTS = [
    ".git/hooks/pre-commit",
    ".git",
    ".GIT/config",
    "a/.jj/b",
    ".hg/hgrc",
    ".svn/x/y",
    ".ripwrap/z",
    "GIT~1/config",
]


@pytest.mark.parametrize("name", LAYOUTS)
def test_plan_names_the_files_that_it_leaves_out(name: str, plant: Plant) -> None:
    folder = plant({name: "foo\n", "ok": "foo\n"})
    for paths in ((), (name, "ok"), (str(folder),)):
        plan = sync.replace("foo", "bar", cwd=folder, paths=paths, hidden=True, no_ignore=True, include_git=True)
        assert [Path(one.path).name for one in plan] == ["ok"]
        (error,) = plan.errors
        assert str(error.path).endswith(name)
        assert error.message.startswith("left out: nothing is written to or below ")


@pytest.mark.posix
@pytest.mark.parametrize("link", ["file", "folder"])
def test_link_into_a_protected_directory_is_left_out(link: str, plant: Plant) -> None:
    folder = plant({".git/config": "foo\n", "ok": "foo\n"})
    (folder / link).symlink_to(".git/config" if link == "file" else ".git")
    plan = sync.replace("foo", "bar", cwd=folder, follow=True)
    assert ([one.path for one in plan], len(plan.errors)) == (["ok"], 1)


def moved(files: Iterable[FileEdits], path: str) -> list[FileEdits]:
    """Return edits that somebody has changed: they are for another file."""
    return [file.model_copy(update={"path": path}) for file in files]


@pytest.mark.parametrize("name", LAYOUTS)
def test_tampered_plan_is_refused(name: str, plant: Plant) -> None:
    folder = plant({name: "foo\n", "ok": "foo\n"})
    plan = sync.replace("foo", "bar", cwd=folder, paths="ok")
    for path in (name, str(folder / name), f"x/../{name}"):
        with pytest.raises(PermissionError, match="nothing is written to or below"):
            apply_edits(plan.root, moved(plan.files, path), folder.parent / "journals")
    assert (folder / name).read_text() == "foo\n"
    assert not [*folder.rglob("*.tmp")]


@pytest.mark.posix
def test_directory_that_becomes_a_link_to_a_protected_one_is_refused(plant: Plant) -> None:
    folder = plant({"a/config": "foo\n", ".git/config": "foo\n"})
    plan = sync.replace("foo", "bar", cwd=folder)
    (folder / "a").rename(folder / "b")
    (folder / "a").symlink_to(".git")
    with pytest.raises(PermissionError, match=r"nothing is written to or below \.git"):
        plan.apply()
    assert (folder / ".git/config").read_text() == "foo\n"


def test_undo_does_not_write_below_a_protected_directory(plant: Plant) -> None:
    folder = plant({"git/config": "foo\n"})
    plan = sync.replace("foo", "bar", cwd=folder)
    applied = plan.apply()
    (folder / "git").rename(folder / ".git")
    known = JournalFolder(Path(applied.journal)).load()
    (file,) = known.files
    made = known.model_copy(update={"files": (file.model_copy(update={"path": str(folder / ".git/config")}),)})
    Journals().folder(made.id).save(made, "applied")
    with pytest.raises(PermissionError, match=r"nothing is written to or below \.git"):
        sync.undo(Journals().folder(made.id).path)
    assert (folder / ".git/config").read_text() == "bar\n"


@pytest.mark.parametrize("api", APIS)
def test_tool_writes_no_hook_whatever_the_caller_allows(api: str, plant: Plant) -> None:
    folder = plant(
        {".git/hooks/pre-commit": "foo\n", "sub/.git": "gitdir: foo\n", ".ripwrap/a": "foo\n", "ok": "foo\n"}
    )
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "ok"}
    asked = Asked(api, folder, write=True, follow=True)
    wide = {"pattern": "foo", "replacement": "bar", "apply": True, "include_hidden": True, "include_ignored": True}
    said = asked.call("replace_content", wide)
    assert "Written: 1 replacement in 1 file." in said
    assert "1 file left out, e.g. .ripwrap/a: left out: nothing is written to or below .ripwrap" in said
    for path in (".git", ".git/hooks/pre-commit", "sub/../.git/hooks", "sub/.git", ".ripwrap"):
        assert "Nothing to replace; no file was changed." in asked.call("replace_content", {**wide, "path": path})
    assert "Nothing to replace" in Asked(api, folder / ".git", write=True).call("replace_content", wide)
    assert {path: path.read_bytes() for path in before} == before
    assert "foo" in asked.call("read_file", {"path": ".git/hooks/pre-commit"})  # reading stays as it is


def test_bare_repository_is_left_out_but_not_its_worktrees(plant: Plant) -> None:
    require_git()
    folder = plant({"seed/a": "foo\n"})
    for command in (
        "-C seed init -q",
        "-C seed add .",
        "-C seed -c user.name=me -c user.email=me@here commit -q -m foo",
        "clone -q --bare seed x.git",
        "-C x.git worktree add -q tree",
    ):
        subprocess.run(["git", *command.split()], cwd=folder, check=True, capture_output=True, timeout=60)
    (folder / "x.git/hooks/post-checkout").write_text("foo\n")
    plan = sync.replace("foo", "bar", cwd=folder)
    assert [Path(one.path).as_posix() for one in plan] == ["seed/a", "x.git/tree/a"]
    assert "x.git/hooks/post-checkout" in {Path(str(error.path)).as_posix() for error in plan.errors}

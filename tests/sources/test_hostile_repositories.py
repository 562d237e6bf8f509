"""Hostile repositories: they lead to other directories, name programs, or expand to more than memory and time allow."""

import os
import shutil
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha1
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING

import anyio
import pytest

import ripwrap
from ripwrap import AccessDeniedError, SearchError, sync
from ripwrap._edits import replace as replacing
from ripwrap._system.concurrency import poll_intervals
from ripwrap.sources import git as git_sources
from ripwrap.sources import repository
from ripwrap.sources.git_process import Git
from support.effort import times
from support.git import require_git
from support.waiting import until

if TYPE_CHECKING:
    from _typeshed import TraceFunction

pytestmark = [pytest.mark.slow, pytest.mark.posix, pytest.mark.usefixtures("temporary", "leaks_nothing")]

SECRET = "needle of another repository"
ENV = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_{field}": "me@here" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str, text: bytes | None = None) -> str:
    require_git()
    argv = ["git", "-C", str(folder), *arguments]
    return subprocess.run(argv, env=ENV, check=True, capture_output=True, input=text).stdout.decode().strip()


def make(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text(f"{text}\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", text)
    return folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the directory of temporary files, and check that a test leaves none."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield
    for _ in poll_intervals(5):  # a thread that was left at the deadline still ends
        if not list(folder.iterdir()):
            break
        time.sleep(0.05)
    assert list(folder.iterdir()) == []


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Return a repository of the user that is outside of the root."""
    return make(tmp_path / "private", SECRET)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "root", "needle of this one")


def redirect(path: Path, target: Path) -> None:
    """Replace a file or directory by a link."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.symlink_to(target)


def gitfile(root: Path, private: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").write_text(f"gitdir: {private}/.git\n")


def relative_gitfile(root: Path, private: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").write_text(f"gitdir: ../{private.name}/.git\n")


def commondir(root: Path, private: Path) -> None:
    (root / ".git/commondir").write_text(f"{private}/.git\n")


def alternates(root: Path, private: Path) -> None:
    (root / ".git/objects/info/alternates").write_text(f"{private}/.git/objects\n")
    (root / ".git/refs/heads/main").write_text(git(private, "rev-parse", "HEAD"))


def alternates_of_alternates(root: Path, private: Path) -> None:
    other = root / "other/info"
    other.mkdir(parents=True)
    (root / ".git/objects/info/alternates").write_text("# a comment\n../../other\n")
    (other / "alternates").write_text(f"{private}/.git/objects\n")
    (root / ".git/refs/heads/main").write_text(git(private, "rev-parse", "HEAD"))


def alternates_through_a_link(root: Path, private: Path) -> None:
    (root / "x/y/z/u/v/w").mkdir(parents=True)
    (root / ".git/objects/d").symlink_to("../../x/y/z/u/v/w")
    text = f"d/../../../../{private.name}/.git/objects\n"  # git removes `..` before it follows the link
    (root / ".git/objects/info/alternates").write_text(text)
    (root / ".git/refs/heads/main").write_text(git(private, "rev-parse", "HEAD"))


def quoted_alternates(root: Path, private: Path) -> None:
    (root / ".git/objects/info/alternates").write_text(f'"{private}/.git/\\157bjects"\n')
    (root / ".git/refs/heads/main").write_text(git(private, "rev-parse", "HEAD"))


def tables_of_references(root: Path, private: Path) -> None:
    (root / ".git/reftable").mkdir()
    (root / ".git/reftable/tables.list").write_text(f"0x1-0x1-a.ref\n../../../{private.name}/.git/reftable/b.ref\n")


def multi_pack_index(root: Path, private: Path) -> None:
    git(private, "repack", "-adq")
    git(private, "multi-pack-index", "write")
    folder = private / ".git/objects/pack"
    (index,) = folder.glob("*.idx")
    target = root / ".git/objects/pack/multi-pack-index"
    target.parent.mkdir(exist_ok=True)
    name = f"../../../../{private.name}/.git/objects/pack/p.idx".encode()
    old = index.name.encode()
    target.write_bytes((folder / "multi-pack-index").read_bytes().replace(old, name.ljust(len(old), b"\0")))
    for path in folder.glob("pack-*"):
        path.rename(folder / f"p{path.suffix}")
    (root / ".git/refs/heads/main").write_text(git(private, "rev-parse", "HEAD"))


def linked(name: str) -> Callable[[Path, Path], None]:
    def attack(root: Path, private: Path) -> None:
        if name.startswith("objects") and name != "objects":
            oid = git(private, "rev-parse", "HEAD")
            for path in (private / ".git/objects").glob("??/*"):
                target = root / ".git/objects" / path.parent.name / path.name
                target.parent.mkdir(exist_ok=True)
                target.unlink(missing_ok=True)
                target.symlink_to(path)
            (root / ".git/refs/heads/main").write_text(oid)
            return
        redirect(root / ".git" / name if name else root / ".git", private / ".git" / name)

    attack.__name__ = f"link:{name or '.git'}"
    return attack


LEADS_OUT = [
    gitfile,
    relative_gitfile,
    commondir,
    alternates,
    alternates_of_alternates,
    alternates_through_a_link,
    quoted_alternates,
    tables_of_references,
    *map(linked, ("", "objects", "objects/each", "refs", "refs/heads", "refs/heads/main", "HEAD", "logs", "config")),
]


class TestLeadingOut:
    @pytest.mark.parametrize("attack", LEADS_OUT, ids=lambda attack: attack.__name__)
    def test_repository_that_leads_out_of_the_roots_is_refused(
        self, root: Path, private: Path, attack: Callable[[Path, Path], None]
    ) -> None:
        (root / ".git/packed-refs").write_text("")
        attack(root, private)
        answer = sync.Workspace(root).grep_content("needle", rev="main")
        assert answer.startswith("Error: the git repository of ")
        assert "repositories" in answer
        assert str(private) not in answer
        for call in (sync.grep, sync.search_history):
            with pytest.raises(AccessDeniedError, match="repositories"):
                list(call("needle", cwd=root, rev="main", repositories=[root]))
        with pytest.raises(AccessDeniedError, match="repositories"):
            list(sync.files(cwd=root, rev="main", repositories=root))

    def test_many_alternates_are_refused_before_they_are_followed(self, root: Path) -> None:
        (root / ".git/objects/info/alternates").write_text("../none\n" * times(100_000, 3_000_000))
        assert "more than 100 directories of objects" in sync.Workspace(root).grep_content("needle", rev="main")
        (root / ".git/objects/info/alternates").write_text("../none\n" * 50)
        assert "needle of this one" in sync.Workspace(root).grep_content("needle", rev="main")

    def test_multi_pack_index_leads_to_no_other_repository(self, root: Path, private: Path) -> None:
        multi_pack_index(root, private)
        assert git(root, "cat-file", "-p", "main:a.txt") == SECRET  # git itself follows the path in the index
        assert SECRET not in sync.Workspace(root).grep_content("needle", rev="main")
        with pytest.raises(ValueError, match="rev is not a revision"):
            sync.grep("needle", cwd=root, rev="main", repositories=root)

    def test_config_that_includes_a_file_reads_nothing_of_it(self, root: Path, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("[core]\n\tbare = hunter2\n[extensions]\n\tx = hunter2\nhunter2 hunter2\n")
        for text in (f"[include]\n\tpath = {secret}\n", f'[includeIf "gitdir:**"]\n\tpath = {secret}\n'):
            with (root / ".git/config").open("a") as config:
                config.write(text)
            answer = sync.Workspace(root).grep_content("needle", rev="main")
            assert "needle of this one" in answer
            assert "hunter2" not in answer

    def test_error_is_the_same_whether_the_directory_exists(self, root: Path, private: Path) -> None:
        shutil.rmtree(root / ".git")
        answers = set[str]()
        for target in (private / ".git", private / "no", Path("/nonexistent")):
            (root / ".git").write_text(f"gitdir: {target}\n")
            answers.add(sync.Workspace(root).grep_content("needle", rev="main"))
        assert len(answers) == 1

    def test_special_file_in_the_repository_does_not_block(self, root: Path) -> None:
        os.mkfifo(root / ".git/refs/heads/pipe")
        assert "not allowed" in sync.Workspace(root).grep_content("needle", rev="pipe")

    def test_environment_leads_nowhere(self, root: Path, private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        oid = git(private, "rev-parse", "HEAD")
        for name in ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"):
            monkeypatch.setenv(name, str(private / ".git/objects"))
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", "include.path")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(private / "a.txt"))
        monkeypatch.setenv("GIT_TRACE", str(root / "trace"))
        answer = sync.Workspace(root).grep_content("needle", rev=oid)
        assert answer.startswith("Error: ")
        assert SECRET not in answer
        assert "needle of this one" in sync.Workspace(root).grep_content("needle", rev="main")
        assert not (root / "trace").exists()

    def test_only_formats_and_upstreams_are_kept_of_a_configuration(self) -> None:
        dropped = {"include.path": "x", "extensions.partialclone": "o", "extensions.refstorage": "files:///x"}
        dropped |= {"remote.o.url": "x", "remote.o.promisor": "true", "core.sshcommand": "x", "core.worktree": "x"}
        kept = {"extensions.objectformat": "sha256", 'branch.a"b.merge': "refs/heads/m", "remote.o.fetch": "+x:y"}
        listed = "".join(f"{key}\n{value}\0" for key, value in {**dropped, **kept}.items())
        assert repository._settings(listed.encode()).decode() == (
            '[extensions]\n\tobjectformat = "sha256"\n[branch "a\\"b"]\n\tmerge = "refs/heads/m"\n'
            '[remote "o"]\n\tfetch = "+x:y"\n'
        )


class TestAllowed:
    def test_worktree_and_subdirectory_need_the_repository(self, private: Path, tmp_path: Path) -> None:
        tree = tmp_path / "tree"
        git(private, "worktree", "add", "-q", str(tree), "-b", "side")
        (private / "sub").mkdir()
        for folder in (tree, private / "sub"):
            assert "not allowed" in sync.Workspace(folder).grep_content("needle", rev="HEAD")
        for allowed in ([private], [private / ".git"], str(private / ".git")):
            workspace = sync.Workspace(tree, repositories=allowed)
            assert SECRET in workspace.grep_content("needle", rev="HEAD")
            assert SECRET in workspace.grep_content("needle", rev="side@{0}")
        (match,) = sync.search_history("needle", cwd=tree, repositories=[tree, private / ".git"])
        assert match.text == SECRET

    def test_submodule_and_bare_repository_inside_of_the_root_are_read(self, private: Path, root: Path) -> None:
        argv = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(private), "vendor"]
        git(root, *argv)
        git(root, "clone", "-q", "--bare", str(private), "bare.git")
        for path in ("vendor", "bare.git"):
            assert SECRET in sync.Workspace(root / path, repositories=root).grep_content("needle", rev="HEAD")

    def test_upstream_of_a_branch_is_known(self, private: Path, tmp_path: Path) -> None:
        clone = tmp_path / "clone"
        git(tmp_path, "clone", "-q", str(private), str(clone))
        assert SECRET in sync.Workspace(clone).grep_content("needle", rev="@{upstream}")

    def test_empty_directory_is_refused(self, root: Path) -> None:
        with pytest.raises(ValueError, match="repositories has an empty path"):
            sync.Workspace(root, repositories=[""])


PROMISOR = '[remote "o"]\n\tpromisor = true\n'
ALLOWED = "[protocol]\n\tallow = always\n"
CONFIGS = [
    f"{PROMISOR}\turl = ssh://h/x\n[core]\n\tsshCommand = PAYLOAD\n",
    f"{PROMISOR}\turl = /nonexistent\n\tuploadpack = PAYLOAD\n",
    f"{PROMISOR}\turl = ext::PAYLOAD\n{ALLOWED}",
    f"{PROMISOR}\turl = PAYLOAD\n\tvcs = ext\n{ALLOWED}",
    f'{PROMISOR}\turl = https://x\n{ALLOWED}[url "ext::PAYLOAD"]\n\tinsteadOf = https://x\n',
    f"{PROMISOR}\turl = git://127.0.0.1:1/x\n[core]\n\tgitProxy = PAYLOAD\n",
    (
        "[core]\n\trepositoryformatversion = 1\n\tsshCommand = PAYLOAD\n"
        '[extensions]\n\tpartialClone = o\n[remote "o"]\n\turl = ssh://h/x\n'
    ),
    f"{PROMISOR}\turl = https://127.0.0.1:1/x\n[credential]\n\thelper = !PAYLOAD\n",
    f"{PROMISOR}\turl = h:x\n\tpartialclonefilter = blob:none\n[core]\n\tsshCommand = PAYLOAD\n",
    f"{PROMISOR}\turl = file:///tmp\n\tuploadpack = PAYLOAD\n",
    (
        "[core]\n\tfsmonitor = PAYLOAD\n\tpager = PAYLOAD\n\thooksPath = hooks\n\talternateRefsCommand = PAYLOAD\n"
        "[pager]\n\tlog = PAYLOAD\n[log]\n\tshowSignature = true\n[gpg]\n\tprogram = PAYLOAD\n"
    ),
    (
        "[alias]\n\tls-tree = !PAYLOAD\n\tlog = !PAYLOAD\n"
        '[diff "x"]\n\ttextconv = PAYLOAD\n\tcommand = PAYLOAD\n[filter "x"]\n\tprocess = PAYLOAD\n'
    ),
]


class TestPrograms:
    @pytest.fixture(autouse=True)
    def stand_in(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Run a git that ignores `GIT_NO_LAZY_FETCH`, as versions before 2.44 do."""
        require_git()
        program = tmp_path / "bin/git"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec {shutil.which("git")} "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    @pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
    def test_configuration_of_a_repository_starts_nothing(self, root: Path, tmp_path: Path, config: str) -> None:
        payload = tmp_path / "payload"
        payload.write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
        payload.chmod(0o755)
        (root / ".gitattributes").write_text("* diff=x filter=x\n")
        (root / "b.txt").write_text("needle b\n")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "b")
        oid = git(root, "rev-parse", "HEAD:a.txt")
        (root / f".git/objects/{oid[:2]}/{oid[2:]}").unlink()
        with (root / ".git/config").open("a") as file:
            file.write(config.replace("PAYLOAD", str(payload)))
        result = sync.grep("needle", cwd=root, rev="HEAD", timeout=60)
        assert [error.kind for error in result.errors] == ["missing"]
        assert [file.path for file in result] == ["b.txt"]
        assert [match.path for match in sync.search_history("needle", cwd=root)] == ["b.txt"]
        assert "b.txt" in sync.Workspace(root).grep_content("needle", rev="HEAD")
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize("is_own", [False, True])
    @pytest.mark.parametrize("config", CONFIGS[:10], ids=range(10))
    def test_missing_trees_and_commits_are_not_fetched(
        self, root: Path, tmp_path: Path, config: str, monkeypatch: pytest.MonkeyPatch, *, is_own: bool
    ) -> None:
        """Nothing is fetched even if the user's own configuration has the promisor remote (`is_own`)."""
        payload, settings = tmp_path / "payload", tmp_path / "settings"
        payload.write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
        payload.chmod(0o755)
        (root / "sub").mkdir()
        (root / "sub/b.txt").write_text("needle b\n")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "b")
        text = config.replace("PAYLOAD", str(payload))
        objects = [git(root, "rev-parse", name) for name in ("HEAD:sub", "HEAD^{tree}", "HEAD")]
        if is_own:
            settings.write_text(text)
            monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
        else:
            with (root / ".git/config").open("a") as file:
                file.write(text)
        for oid in objects:
            (root / f".git/objects/{oid[:2]}/{oid[2:]}").unlink()
            for call in (sync.grep, sync.search_history):
                with pytest.raises((SearchError, ValueError)):
                    list(call("needle", cwd=root, rev="main"))
            assert sync.Workspace(root).grep_content("needle", rev="main").startswith("Error: ")
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize("text", ["git version 2.24.9", "git version 1.8.3.1", "something else"])
    def test_old_git_is_refused(self, root: Path, tmp_path: Path, text: str) -> None:
        (tmp_path / "bin/git").write_text(f"#!/bin/sh\necho '{text}'\n")
        with pytest.raises(SearchError, match=r"git 2\.25 or newer is needed"):
            sync.grep("needle", cwd=root, rev="HEAD")

    def test_git_that_ends_at_an_object_is_started_again_for_the_next(self, root: Path, tmp_path: Path) -> None:
        for number in range(6):
            (root / f"{number}.txt").write_text(f"needle {number}\n")
        git(root, "rm", "-qf", "a.txt")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "several")
        real = shutil.which("git", path=os.defpath) or "/usr/bin/git"
        one = f'read oid; echo "$oid" | {real} cat-file --batch; echo "no memory" >&2; exit 128'
        script = f'#!/bin/sh\ncase "$*" in *"--batch --buffer"*) {one};; esac\nexec {real} "$@"\n'
        (tmp_path / "bin/git").write_text(script)
        result = sync.grep("needle", cwd=root, rev="HEAD")
        assert [file.path for file in result] == ["0.txt", "2.txt", "4.txt"]
        assert [error.path for error in result.errors] == ["1.txt", "3.txt", "5.txt"]
        assert "no memory" in result.errors[0].message

    @pytest.mark.parametrize("blocking", [False, True])
    @pytest.mark.anyio
    async def test_git_that_hangs_is_ended_at_the_deadline(self, root: Path, tmp_path: Path, *, blocking: bool) -> None:
        real = shutil.which("git", path=os.defpath) or "/usr/bin/git"
        script = f'#!/bin/sh\ncase "$*" in *ls-tree*) echo $$ >{tmp_path}/pid; exec sleep 60;; esac\nexec {real} "$@"\n'
        (tmp_path / "bin/git").write_text(script)
        begun = time.monotonic()
        if blocking:
            answer = sync.Workspace(root, timeout=1).grep_content("needle", rev="HEAD")
        else:
            answer = await ripwrap.Workspace(root, timeout=1).grep_content("needle", rev="HEAD")
        assert time.monotonic() - begun < 20
        assert "1" in answer
        assert has_ended(int((tmp_path / "pid").read_text()))


def has_ended(pid: int) -> bool:
    """Wait at most five seconds for the end of a process."""
    import psutil

    for pause in poll_intervals(5):
        if not psutil.pid_exists(pid):
            return True
        time.sleep(pause)
    return False


def tree_bomb(root: Path, depth: int) -> str:
    """Commit a tree of ten entries, each of which is the same tree of ten entries, and so on; return its id."""
    blob = git(root, "hash-object", "-w", "--stdin", text=b"needle\n")
    tree = git(root, "mktree", text="".join(f"100644 blob {blob}\tf{n}\n" for n in range(10)).encode())
    for _ in range(depth):
        tree = git(root, "mktree", text="".join(f"040000 tree {tree}\td{n}\n" for n in range(10)).encode())
    oid = git(root, "commit-tree", "-m", "bomb", tree)
    git(root, "update-ref", "refs/heads/bomb", oid)
    return oid


def loose_blob(root: Path, size: int) -> str:
    """Write a blob of long lines without holding it in memory, commit it, and return the id of the commit."""
    head, block = f"blob {size}\0".encode(), b"needle\n".rjust(1 << 20)
    digest, packer = sha1(head, usedforsecurity=False), zlib.compressobj(1)
    path = root / "blob"
    with path.open("wb") as file:
        file.write(packer.compress(head))
        for _ in range(size >> 20):
            digest.update(block)
            file.write(packer.compress(block))
        file.write(packer.flush())
    oid = digest.hexdigest()
    target = root / f".git/objects/{oid[:2]}/{oid[2:]}"
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    small = git(root, "rev-parse", "main:a.txt")
    tree = git(root, "mktree", text=f"100644 blob {oid}\tbig\n100644 blob {small}\tsmall\n".encode())
    commit = git(root, "commit-tree", "-m", "big", tree)
    git(root, "update-ref", "refs/heads/big", commit)
    return commit


class TestBombs:
    def test_too_many_files_are_an_error(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(git_sources, "MAX_ENTRIES", 500)
        tree_bomb(root, 2)
        with pytest.raises(SearchError, match=r"more than 500 files.*select fewer with paths"):
            sync.grep("needle", cwd=root, rev="bomb")
        with pytest.raises(SearchError, match="more than 500 files"):
            list(sync.files(cwd=root, rev="bomb", glob="none"))
        assert "more than 500 files" in sync.Workspace(root).grep_content("needle", rev="bomb")
        assert sync.grep("needle", cwd=root, rev="bomb", paths="d1/d2").files_matched == 10

    @pytest.mark.parametrize("blocking", [False, True])
    @pytest.mark.anyio
    async def test_tree_bomb_ends_at_the_deadline(self, root: Path, *, blocking: bool) -> None:
        tree_bomb(root, times(7, 9))
        begun = time.monotonic()
        if blocking:
            answer = sync.Workspace(root, timeout=1).grep_content("needle", rev="bomb")
        else:
            answer = await ripwrap.Workspace(root, timeout=1).grep_content("needle", rev="bomb")
        assert time.monotonic() - begun < 10
        assert "1 second" in answer

    def test_large_blob_is_one_error_and_is_not_read(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(git_sources, "MAX_BLOB_BYTES", 4 << 20)
        loose_blob(root, times(8, 2560) << 20)
        result = sync.grep("needle", cwd=root, rev="big")
        assert [(error.path, error.kind) for error in result.errors] == [("big", "other")]
        assert "larger than 4194304 bytes; pass a larger max_filesize" in result.errors[0].message
        assert [file.path for file in result] == ["small"]
        assert "larger than" in sync.Workspace(root).grep_content("needle", rev="big")

    def test_max_filesize_lifts_or_lowers_the_limit(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(git_sources, "MAX_BLOB_BYTES", 4 << 20)
        loose_blob(root, 8 << 20)
        lifted = sync.grep("needle", cwd=root, rev="big", max_filesize="16M")
        lowered = sync.grep("needle", cwd=root, rev="big", max_filesize=1)
        assert lifted.errors == lowered.errors == ()
        assert (lifted.files_matched, lowered.files_matched) == (2, 0)

    @pytest.mark.parametrize("history", [False, True])
    def test_large_blob_is_searched_without_holding_it(self, root: Path, *, history: bool) -> None:
        """A blob of 1.2 GB took 1,235 MB of memory."""
        import tracemalloc

        loose_blob(root, times(64, 200) << 20)
        tracemalloc.start()
        try:
            if history:
                (match,) = sync.search_history("of this one", cwd=root, rev="big")
                assert match.path == "small"
            else:
                assert sync.grep("of this one", cwd=root, rev="big").files_matched == 1
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 24 << 20

    def test_large_blob_of_a_history_is_a_warning(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The limit of a member of an archive also holds for a version of a file."""
        monkeypatch.setattr(git_sources, "MAX_BLOB_BYTES", 4 << 20)
        loose_blob(root, 8 << 20)
        assert [match.path for match in sync.search_history("needle", cwd=root, rev="big")] == ["small"]
        assert "big: not searched: larger than 4194304 bytes; pass a larger max_filesize" in caplog.text
        found = sync.search_history("needle", cwd=root, rev="big", max_filesize="16M")
        assert {match.path for match in found} == {"big", "small"}

    def test_broken_object_is_one_error(self, root: Path) -> None:
        for number in range(5):
            (root / f"{number}.txt").write_text(f"needle {number}\n" * 50)
        git(root, "add", "-A")
        git(root, "commit", "-qm", "several")
        oid = git(root, "rev-parse", "HEAD:2.txt")
        path = root / f".git/objects/{oid[:2]}/{oid[2:]}"
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:-12] + b"x" * 12)
        result = sync.grep("needle", cwd=root, rev="HEAD")
        assert [error.path for error in result.errors] == ["2.txt"]
        assert result.files_matched == 5

    def test_long_subjects_are_cut_and_history_has_a_limit(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tree = git(root, "rev-parse", "main^{tree}")
        long = git(root, "commit-tree", tree, text=b"x" * (times(4, 100) << 20))
        (match,) = sync.search_history("needle", cwd=root, rev=long)
        assert len(match.first.subject) == 64 << 10
        monkeypatch.setattr(git_sources, "MAX_ENTRIES", 1)
        with pytest.raises(SearchError, match="select fewer with paths or since"):
            list(sync.search_history("needle", cwd=root))


OPENING = (Git.open, repository.prepare, repository._link, repository._settings)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("late", [False, True])
def test_search_that_ends_while_the_repository_is_prepared_leaves_nothing(tmp_path: Path, late: bool) -> None:
    """The search ends at each line in turn that prepares the directory for git, and also right before it is used."""
    root = make(tmp_path / "root", "needle")
    codes = {function.__code__ for function in OPENING}

    def end_at(number: int) -> int:
        """End the search at the `number`-th line, and return how many lines there were."""
        seen, known = 0, Git(str(root), None, 1 << 20)
        ending = threading.Thread(target=known.close)

        def trace(frame: FrameType, event: str, _: object) -> "TraceFunction | None":
            nonlocal seen
            seen += event == "line"
            if event == "line" and seen == number:
                ending.start()
                ending.join(0.05)  # it may wait for a lock of this thread
            return trace if frame.f_code in codes else None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            known.open()
            known.read("rev-parse", "HEAD")
        except InterruptedError:
            assert number
        finally:
            sys.settrace(before)
            if ending.ident:
                ending.join()
            if late or not number:
                known.close()
        assert os.listdir(tmp_path / "temporary") == [], f"line {number}"
        return seen

    lines = end_at(0)
    assert lines > 20
    for number in range(1, lines + 1):
        end_at(number)


def test_replacement_that_is_cancelled_leaves_no_probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that rg is asked about are written by a thread, for which a cancelled task does not wait."""
    (tmp_path / "a.txt").write_text("a")
    begun, ended = threading.Event(), threading.Event()

    def waiting(path: str, mode: str) -> IO[bytes]:
        begun.set()
        ended.wait(20)
        return open(path, mode)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(ripwrap.replace, "(a)", "$1$1", cwd=tmp_path))
            await until(begun.is_set)
            group.cancel_scope.cancel()
        ended.set()

    monkeypatch.setattr(replacing, "open", waiting, raising=False)
    anyio.run(main)


def test_git_refuses_to_hold_a_huge_object(root: Path) -> None:
    """A commit may have a message of any size, which takes little space in the repository."""
    head = git(root, "cat-file", "commit", "HEAD").encode()
    huge = git(root, "hash-object", "-t", "commit", "-w", "--stdin", text=head + b"\n" + b"m" * (40 << 20))
    known = Git(str(root), None, 1 << 20)
    known.open()
    try:
        with pytest.raises(SearchError, match="attempting to allocate"):
            known.read("log", "-1", "--format=%s", huge)
    finally:
        known.close()

"""`grep(rev=…)`, `files(rev=…)` and `search_history()`: files of git, without a checkout."""

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import SearchError, remote, sync
from support.git import require_git

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("temporary", "leaks_nothing")]

ENV = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_{field}": "me@here" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str, days: int = 0) -> str:
    require_git()
    dates = {f"GIT_{role}_DATE": f"2024-01-{days + 1:02}T12:00:00+01:00" for role in ("AUTHOR", "COMMITTER")}
    argv = ["git", "-c", "protocol.file.allow=always", "-C", str(folder), *arguments]
    done = subprocess.run(argv, env={**ENV, **dates}, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def commit(folder: Path) -> Callable[..., str]:
    """Return a function that commits files, given their contents, or `None` for one to delete; returns the id."""
    days = iter(range(28))
    git(folder, "init", "-q", "-b", "main")

    def make(files: dict[str, str | bytes | None], message: str = "a change") -> str:
        for name, content in files.items():
            path = folder / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        git(folder, "add", "-A", "--force")
        git(folder, "commit", "-qm", message, "--allow-empty", days=next(days))
        return git(folder, "rev-parse", "HEAD")

    return make


TREE: dict[str, str | bytes | None] = {
    "a.py": "needle\nother\n",
    "sub/b.py": "x\nneedle\n",
    "sub/deep/c.txt": "needle",
    "sub.txt": "needle\n",
    ".hidden": "needle\n",
    ".github/w.yml": "needle\n",
    ".gitignore": "ignored\n",
    "ignored": "needle\n",
    "é\n.txt": "needle\n",
    "nul.bin": b"\0needle\n",
    "empty": "",
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"type": "py"}, marks=pytest.mark.slow),
        pytest.param({"glob": ["!sub", "*"], "context": 0}, marks=pytest.mark.slow),
        pytest.param({"hidden": False}, marks=pytest.mark.slow),
        {"paths": ["sub"], "max_depth": 1},
        pytest.param({"paths": [".github", "ignored"], "hidden": False, "glob": "*.yml"}, marks=pytest.mark.slow),
        pytest.param({"limit": 2, "offset": 1, "max_files": 1}, marks=pytest.mark.slow),
        pytest.param({"cwd": "sub"}, marks=pytest.mark.slow),
        pytest.param({"text": True, "invert_match": True}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_answer_about_a_revision_equals_that_about_its_checkout(
    folder: Path, commit: Callable[..., str], options: dict[str, Any]
) -> None:
    rev = commit(TREE)
    options = {"no_ignore": True, **options, "cwd": folder / options.get("cwd", "")}
    expected = sync.grep("needle", **options)
    files = {name: value for name, value in options.items() if name in ("cwd", "paths", "glob", "type", "hidden")}
    listed = sorted(sync.files(**files, no_ignore=True))
    git(folder, "tag", "v1")
    commit({"a.py": "gone", "sub/b.py": None, "new": "needle"})
    for name in (rev, "v1", "main~1"):
        assert sync.grep("needle", rev=name, **options) == expected
        assert sorted(sync.files(rev=name, **files)) == listed


@pytest.mark.anyio
async def test_async_functions_take_a_revision(folder: Path, commit: Callable[..., str]) -> None:
    commit(TREE)
    (folder / "a.py").write_text("changed")
    result = await ripwrap.grep("needle", cwd=folder, rev="HEAD", type="py")
    assert [file.path for file in result] == ["a.py", "sub/b.py"]
    assert [path async for path in ripwrap.files(cwd=folder, rev="HEAD", type="py")] == ["a.py", "sub/b.py"]
    assert len([path async for path in ripwrap.files(cwd=folder, rev="HEAD", limit=3)]) == 3


def test_revision_may_be_a_message_or_a_directory(folder: Path, commit: Callable[..., str]) -> None:
    commit(TREE, "the first")
    commit({"a.py": None}, "the second")
    assert {*sync.files(cwd=folder, rev=":/the first")} - {*sync.files(cwd=folder, rev="main")} == {"a.py"}
    assert [*sync.files(cwd=folder, rev="main:sub")] == ["b.py", "deep/c.txt"]
    assert len(list(sync.search_history("needle", cwd=folder, rev=":/the first", paths="a.py"))) == 1
    with pytest.raises(ValueError, match="rev is not a revision"):
        list(sync.search_history("needle", cwd=folder, rev="main:sub"))
    for rev in ("main:sub", "main^{tree}"):  # only a commit, so that each file has its own path
        assert "rev is not a revision" in sync.Workspace(folder, deny=["sub/"]).grep_content("needle", rev=rev)


@pytest.mark.slow
def test_submodules_are_named_and_links_left_out(folder: Path, commit: Callable[..., str], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-qm", "x", "--allow-empty")
    commit(TREE)
    (folder / "link").symlink_to("needle")
    git(folder, "submodule", "--quiet", "add", str(other), "vendor/other")
    commit({})
    result = sync.grep("needle", cwd=folder, rev="HEAD")
    assert [(error.path, error.kind) for error in result.errors] == [("vendor/other", "other")]
    assert "a submodule at commit" in result.message
    assert "link" not in [file.path for file in result]


class TestBadInput:
    @pytest.mark.parametrize("rev", ["", "-x", "--output=/tmp/x", "a\0b", " main", "^main"])
    def test_revision_that_could_be_an_option_is_refused(self, folder: Path, rev: str) -> None:
        for call in (sync.grep, sync.search_history):
            with pytest.raises(ValueError, match="rev must be a revision of git"):
                call("x", cwd=folder, rev=rev)
        with pytest.raises(ValueError, match="rev must be a revision of git"):
            sync.files(cwd=folder, rev=rev)

    def test_revision_that_does_not_exist_is_an_error(self, folder: Path, commit: Callable[..., str]) -> None:
        commit(TREE)
        for rev in ("nope", "HEAD~99", "main:a.py", "0" * 40):
            with pytest.raises(ValueError, match="rev is not a revision of the repository"):
                sync.grep("x", cwd=folder, rev=rev)
            with pytest.raises(ValueError, match="rev is not a revision of the repository"):
                list(sync.search_history("x", cwd=folder, rev=rev))

    def test_directory_without_a_repository_is_an_error(self, folder: Path) -> None:
        require_git()
        with pytest.raises(ValueError, match="rev needs a git repository"):
            list(sync.files(cwd=folder, rev="HEAD"))
        with pytest.raises(FileNotFoundError):
            sync.grep("x", cwd=folder / "nope", rev="HEAD")

    def test_missing_git_is_an_error(self, folder: Path, monkeypatch: pytest.MonkeyPatch, rg: Any) -> None:
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(SearchError, match=r"could not start git: .*install git"):
            sync.grep("x", cwd=folder, rev="HEAD", rg=rg)

    @pytest.mark.posix
    @pytest.mark.parametrize("path", ["", ".", "bin:.", ":/nowhere"])
    def test_git_of_a_checkout_is_not_run(
        self, folder: Path, path: str, monkeypatch: pytest.MonkeyPatch, rg: Any
    ) -> None:
        (folder / "bin").mkdir()
        for program in (folder / "git", folder / "bin" / "git"):
            program.write_text("#!/bin/sh\n: >ran\n")
            program.chmod(0o755)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PATH", path)
        with pytest.raises(SearchError, match="could not start git"):
            sync.grep("x", cwd=folder, rev="HEAD", rg=rg)
        assert not (folder / "ran").exists()

    def test_paths_are_those_of_the_revision(self, folder: Path, commit: Callable[..., str]) -> None:
        commit(TREE)
        with pytest.raises(FileNotFoundError, match="no such path in HEAD"):
            sync.grep("x", cwd=folder, paths=["nope"], rev="HEAD")
        with pytest.raises(ValueError, match="is outside of"):
            sync.grep("x", cwd=folder / "sub", paths=["../a.py"], rev="HEAD")

    @pytest.mark.parametrize(
        "call",
        [
            partial(sync.search, "needle"),
            sync.files,
            partial(sync.count, "needle"),
            partial(sync.search_history, "needle"),
        ],
    )
    def test_each_missing_path_is_named(self, folder: Path, commit: Callable[..., str], call: Any) -> None:
        """Only if all were missing there was an error; rg does not start."""
        commit(TREE)
        rev = {} if "history" in repr(call) else {"rev": "main"}
        with pytest.raises(FileNotFoundError, match=r"no such path in (main|HEAD); check paths: 'nope, sub/nope'"):
            next(call(cwd=folder, paths=["nope", "a.py", "sub", "sub/deep", "sub/nope"], **rev))
        assert list(call(cwd=folder, paths=["a.py", "sub", "sub/b.py"], **rev))

    def test_answer_with_errors_keeps_missing_paths(self, folder: Path, commit: Callable[..., str]) -> None:
        """Also a link that is named, which a revision does not follow."""
        (folder / "link").symlink_to("a.py")
        commit(TREE)
        page = sync.grep("needle", cwd=folder, rev="main", paths=["nope", "a.py", "link"])
        assert [file.path for file in page] == ["a.py"]
        assert [(error.path, error.kind) for error in page.errors] == [("link", "other"), ("nope", "missing")]
        *_, summary = sync.search_messages("needle", cwd=folder, rev="main", paths=["nope", "a.py"])
        assert [error.path for error in summary.errors] == ["nope"]  # type: ignore[union-attr]

    def test_directory_that_the_revision_lacks_is_an_error(self, folder: Path, commit: Callable[..., str]) -> None:
        """It was an answer without results; also a directory that git ignores, and a tree as revision."""
        commit(TREE)
        commit({"new/a.py": "needle\n", "file": "needle\n"})
        (folder / "untracked").mkdir()
        (folder / "file").unlink()
        (folder / "file").mkdir()
        for cwd, rev in [("new", "HEAD~1"), ("untracked", "HEAD"), ("sub", "HEAD:sub"), ("file", "HEAD")]:
            for call in (sync.grep, sync.search, sync.count):
                with pytest.raises(FileNotFoundError, match=f"no such directory in {rev}; check cwd: .*{cwd}"):
                    list(call("needle", cwd=folder / cwd, rev=rev))
            with pytest.raises(FileNotFoundError, match=f"no such directory in {rev}; check cwd: .*{cwd}"):
                list(sync.files(cwd=folder / cwd, rev=rev, paths=["a.py"]))
        with pytest.raises(FileNotFoundError, match="no such directory in HEAD; check cwd"):
            list(sync.search_history("needle", cwd=folder / "untracked"))
        assert "untracked does not exist in HEAD; it is on the disk" in sync.Workspace(folder).grep_content(
            "needle", path="untracked", rev="HEAD"
        )
        assert list(sync.files(cwd=folder / "sub", rev="HEAD", glob="*.none")) == []
        assert list(sync.files(cwd=folder / "sub" / "deep", rev="HEAD:")) == ["c.txt"]

    def test_coverage_and_hosts_are_refused(self, folder: Path) -> None:
        with pytest.raises(ValueError, match="coverage cannot be combined with rev=: it reads files from the disk"):
            sync.grep("x", cwd=str(folder), rev="HEAD", coverage=True)
        for call in (lambda **given: sync.grep("x", **given), sync.files):
            with pytest.raises(ValueError, match="rev cannot be combined with on"):
                call(cwd=str(folder), rev="HEAD", on=remote.ssh("host"))


@pytest.mark.slow
def test_environment_of_a_hook_does_not_choose_the_repository(
    folder: Path, commit: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(TREE)
    git(folder, "config", "log.showSignature", "true")
    git(folder, "config", "gpg.program", "/nowhere")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))
    assert sync.grep("needle", cwd=folder, rev="HEAD", type="py").files_matched == 2
    assert len(list(sync.search_history("needle", cwd=folder, type="py"))) == 2


@pytest.mark.parametrize(
    "name",
    ["GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_COMMON_DIR"],
)
def test_variables_of_a_hook_break_no_search_of_another_repository(
    folder: Path, commit: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Git sets these variables for hooks, also for those that search another repository."""
    commit(TREE)
    monkeypatch.setenv(name, str(tmp_path / "other"))
    monkeypatch.setenv("GIT_PREFIX", "sub/")
    monkeypatch.setenv("GIT_QUARANTINE_PATH", str(tmp_path / "incoming"))
    assert sync.grep("needle", cwd=folder, rev="HEAD", type="py").files_matched == 2
    assert len(list(sync.search_history("needle", cwd=folder, type="py"))) == 2


def test_contents_are_those_that_git_stores(folder: Path, commit: Callable[..., str]) -> None:
    """A checkout converts ends of lines, `$Id$` and contents with filters (gitattributes(5))."""
    git(folder, "config", "filter.shout.smudge", "tr a-z A-Z")
    git(folder, "config", "filter.shout.clean", "tr A-Z a-z")
    attributes = "crlf.txt text eol=crlf\nident.txt ident\nfiltered.txt filter=shout\n"
    stored = {"crlf.txt": "needle\n", "ident.txt": "needle $Id$\n", "filtered.txt": "needle 2\n"}
    commit({".gitattributes": attributes, **stored})
    for name in stored:
        (folder / name).unlink()
    git(folder, "checkout", "--", ".")
    converted = {"crlf.txt": r"needle\r$", "ident.txt": r"\$Id: [0-9a-f]{40}", "filtered.txt": "NEEDLE"}
    for name, pattern in converted.items():
        assert [match.path for match in sync.search(pattern, cwd=folder)] == [name]
        assert sync.grep(pattern, cwd=folder, rev="HEAD").files_matched == 0
    assert [file.path for file in sync.grep("needle", cwd=folder, rev="HEAD")] == sorted(stored)
    assert {match.path for match in sync.search_history("needle", cwd=folder)} == {*stored}


def test_pathspec_settings_of_the_environment_do_not_count(
    folder: Path, commit: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit({"[a].py": "needle 1\n", "a.py": "needle 2\n"})
    for name in ("GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_NOGLOB_PATHSPECS"):
        monkeypatch.setenv(name, "1")
    assert [match.text for match in sync.search_history("needle", cwd=folder, paths="[a].py")] == ["needle 1"]


@pytest.mark.parametrize(
    ("when", "year"),
    [("1700000000 +5130", 2023), ("-5 +0000", 1970), ("99999999999999 +0000", 1970), ("nonsense", 1970)],
)
def test_commit_with_an_impossible_date_is_read(folder: Path, when: str, year: int) -> None:
    git(folder, "init", "-q")
    (folder / "a").write_text("needle\n")
    git(folder, "add", "a")
    tree = git(folder, "write-tree")
    raw = f"tree {tree}\nauthor me <> {when}\ncommitter me <> {when}\n\nodd\n"
    argv = ["git", "-C", str(folder), "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    done = subprocess.run(argv, input=raw, env=ENV, check=True, capture_output=True, text=True)
    (match,) = sync.search_history("needle", cwd=folder, rev=done.stdout.strip())
    assert match.first.date.year == year


def test_settings_of_the_user_change_nothing(folder: Path, commit: Callable[..., str]) -> None:
    commit({"old": "needle\n"}, "café")
    git(folder, "mv", "old", "new")
    commit({})
    git(folder, "checkout", "-qb", "side")
    commit({"other": "x"})
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "--no-ff", "--no-commit", "side")
    commit({"merged": "needle 2\n"})

    def found() -> list[Any]:
        return [*sync.search_history("needle", cwd=folder), *sync.search_history("needle", cwd=folder, paths="new")]

    expected = found()
    assert {match.path for match in expected} == {"new", "merged"}
    git(folder, "config", "log.diffMerges", "off")
    git(folder, "config", "log.follow", "true")
    git(folder, "config", "i18n.logOutputEncoding", "ISO-8859-1")
    assert found() == expected


@pytest.mark.slow
def test_objects_that_a_partial_clone_lacks_are_errors_beside_the_answer(
    folder: Path, commit: Callable[..., str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commit({"big": "needle\n" * 1000, "small": "needle\n"})
    git(folder, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:limit=100", folder.as_uri(), str(clone))
    folder.rename(tmp_path / "moved")  # a fetch would fail
    result = sync.grep("needle", cwd=clone, rev="HEAD")
    assert [file.path for file in result] == ["small"]
    assert [(error.path, error.kind) for error in result.errors] == [("big", "missing")]
    assert [match.path for match in sync.search_history("needle", cwd=clone)] == ["small"]
    assert "big: the repository does not have the object" in caplog.text


class TestHistory:
    def test_each_content_is_searched_once_with_its_commits_and_paths(
        self, folder: Path, commit: Callable[..., str]
    ) -> None:
        one = commit({"a.py": "needle one\n", "same.py": "needle same\n"}, "first")
        two = commit({"a.py": "needle two\n", "copy.py": "needle same\n"}, "second")
        three = commit({"a.py": None, "same.py": None}, "third")
        four = commit({"new/a.py": "needle one\n"}, "fourth")
        found = {match.text: match for match in sync.search_history("needle", cwd=folder)}
        said = {text: (match.paths, match.first.id, match.last and match.last.id) for text, match in found.items()}
        assert said == {
            "needle one": (("new/a.py", "a.py"), one, four),
            "needle two": (("a.py",), two, two),
            "needle same": (("copy.py", "same.py"), one, four),
        }
        assert list(found) == ["needle one", "needle two", "needle same"]
        first = found["needle one"].first
        assert (first.subject, first.author, first.date.isoformat()) == (
            "first",
            "me@here",
            "2024-01-01T12:00:00+01:00",
        )
        assert found["needle one"].blob == git(folder, "rev-parse", "HEAD:new/a.py")
        assert three not in [match.last and match.last.id for match in found.values()]

    def test_paths_types_dates_and_revisions_choose(self, folder: Path, commit: Callable[..., str]) -> None:
        commit({"a.py": "needle 1\n", "sub/b.c": "needle 2\n"})
        commit({"a.py": "needle 3\n"})
        commit({"sub/b.c": None})

        def texts(**options: Any) -> list[str]:
            return [match.text for match in sync.search_history("needle", **{"cwd": folder, **options})]

        assert texts(type="c") == ["needle 2"]
        assert texts(paths="sub") == ["needle 2"]
        assert texts(since="2024-01-02") == ["needle 3"]
        assert texts(rev="HEAD~2") == ["needle 1", "needle 2"]
        assert texts(limit=1) == ["needle 3"]
        assert texts(glob="nothing") == []

    def test_content_of_a_merge_and_of_a_deleted_branch_tip_is_found(
        self, folder: Path, commit: Callable[..., str]
    ) -> None:
        commit({"f": "needle base\n"})
        git(folder, "checkout", "-qb", "side")
        commit({"f": "needle side\n"})
        git(folder, "checkout", "-q", "main")
        commit({"f": "needle main\n"})
        subprocess.run(["git", "-C", str(folder), "merge", "-q", "side"], env=ENV, check=False, capture_output=True)
        commit({"f": "needle merged\n"}, "merge")
        texts = {match.text for match in sync.search_history("needle", cwd=folder)}
        assert texts == {"needle base", "needle side", "needle main", "needle merged"}

    @pytest.mark.slow
    @pytest.mark.anyio
    async def test_leaving_early_ends_git(self, folder: Path, commit: Callable[..., str]) -> None:
        commit({f"{number}": f"needle {number}\n" * 1000 for number in range(300)})
        found = ripwrap.search_history("needle", cwd=folder)
        await anext(found)
        await found.aclose()
        blocking = sync.search_history("needle", cwd=folder)
        next(blocking)
        blocking.close()
        assert len(list(sync.search_history("needle", cwd=folder, limit=5))) == 5

    @pytest.mark.parametrize("since", ["", "a\0b", "2024-02-30"])
    def test_bad_date_is_an_error(self, since: str) -> None:
        with pytest.raises(ValueError, match="since must be a date"):
            sync.search_history("x", since=since)

    def test_date_that_git_cannot_read_is_an_error(self, folder: Path, commit: Callable[..., str]) -> None:
        commit({"a": "x"})
        with pytest.raises(ValueError, match="since must be a date such as '2024-01-31', got 'soon'"):
            list(sync.search_history("x", cwd=folder, since="soon"))
        assert len(list(sync.search_history("x", cwd=folder, since="10 years ago"))) == 1

    def test_path_that_never_was_is_an_error(self, folder: Path, commit: Callable[..., str]) -> None:
        commit({"a": "x"})
        with pytest.raises(FileNotFoundError, match="no such path in HEAD; check paths"):
            list(sync.search_history("x", cwd=folder, paths=["gone", "lost"]))
        with pytest.raises(ValueError, match="a path is empty"):
            list(sync.files(cwd=folder, rev="HEAD", paths=""))

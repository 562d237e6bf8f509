"""Tool `history`: git is the reference; deny, masks and limits hold, and no program is started that a tree names."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import AccessDeniedError, Workspace, sync
from ripwrap.workspace import history as history_tool
from support.git import require_git

pytestmark = [pytest.mark.slow, pytest.mark.posix]

KEY = "ghp_" + "a1B2" * 9
ENV = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str, text: bytes | None = None, when: int = 1_700_000_000) -> str:
    require_git()
    who = {f"GIT_{role}_{field}": "Ann" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}
    dates = {f"GIT_{role}_DATE": f"{when} +0100" for role in ("AUTHOR", "COMMITTER")}
    argv = ["git", "-C", str(folder), "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(argv, env={**ENV, **who, **dates}, check=True, capture_output=True, input=text)
    return done.stdout.decode("utf-8", "surrogateescape").strip()


class Repository:
    """Repository of which each commit is a day later."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.when = 1_700_000_000
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        self.when += 86_400
        return git(self.folder, *arguments, when=self.when)

    def commit(self, message: str, files: dict[str, str | bytes | None]) -> str:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.git("add", "-A", "--force")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD")


LINES = "".join(f"line {number}\n" for number in range(30))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Return a repository with merges, renames, a deleted file, CRLF, and names and contents that are not UTF-8."""
    repo = Repository(tmp_path_factory.mktemp("history") / "root")
    odd = os.fsdecode(b'b\xff\n"d.txt')
    repo.commit("first", {"src/a.py": LINES, "crlf.txt": "one\r\ntwo\r\n", odd: b"\xff\nx\n", "gone.py": "total = 1\n"})
    repo.commit("total in a", {"src/a.py": LINES.replace("line 3\n", "total = x + 12\n")})
    repo.git("checkout", "-qb", "side")
    repo.commit("side", {"src/side.py": "total = 3\n", "src/a.py": (repo.folder / "src/a.py").read_text() + "side\n"})
    repo.git("checkout", "-q", "main")
    repo.commit("main", {"crlf.txt": "one\r\nTOTAL\r\n", "gone.py": None})
    repo.git("merge", "-q", "--no-ff", "-m", "merge of side", "side")
    repo.git("mv", "src/a.py", "src/b.py")
    repo.commit(
        "rename", {"src/b.py": (repo.folder / "src/a.py.x" if False else repo.folder / "src/b.py").read_text() + "z\n"}
    )
    repo.commit("odd", {odd: b"\xff\ny\xfe\n", "bin.dat": b"\0\1"})
    repo.commit(
        "binary\n\nwith a body", {"bin.dat": b"\0\2", "-dash.txt": "dash\n", "src/b.py": "new first line\n" + LINES}
    )
    return repo


def listed(result: history_tool.HistoryResult) -> list[str]:
    return [commit.id for commit in result.commits]


PATHS = [".", "src", "src/b.py", "src/side.py", "crlf.txt", "gone.py", "bin.dat", "-dash.txt"]


@pytest.mark.parametrize("path", [*PATHS, os.fsdecode(b'b\xff\n"d.txt')])
@pytest.mark.parametrize("rev", ["", "HEAD~3", "HEAD~4..HEAD", "HEAD~4...side", "side"])
def test_commits_of_a_path_are_those_of_git_log(repository: Repository, path: str, rev: str) -> None:
    is_file = path not in (".", "src")
    options = [rev or "HEAD", *(["--follow"] if is_file else []), "--", *([path] if path != "." else [])]
    expected = repository.git("log", "--format=%H", *options).split()
    workspace = sync.Workspace(repository.folder)
    assert listed(workspace.history_result(path, rev=rev, limit=100)) == expected
    pages = [workspace.history_result(path, rev=rev, limit=2, offset=offset) for offset in range(0, len(expected), 2)]
    assert [one for page in pages for one in listed(page)] == expected
    assert [page.next_offset for page in pages[-1:]] == [None] * bool(pages)


@pytest.mark.parametrize("path", [".", "src", "src/b.py"])
@pytest.mark.parametrize(
    ("pattern", "posix", "arguments"),
    [
        ("total", "-Gtotal", {}),
        ("TOTAL", "-GTOTAL", {}),
        ("TOTAL", "-GTOTAL", {"case_insensitive": True}),
        (r"x \+ \d\d", r"-Gx \+ [0-9][0-9]", {}),
        (r"(?:total|line) = [\dx]", "-G(total|line) = [0-9x]", {}),
        ("x + 1", "-Sx + 1", {"fixed_strings": True}),
        ("-total", "-G-total", {}),
        ("nothing at all", "-Gnothing at all", {}),
    ],
)
def test_commits_of_a_pattern_are_those_of_the_pickaxe(
    repository: Repository, path: str, pattern: str, posix: str, arguments: dict[str, Any]
) -> None:
    options = [*(["-i"] if arguments.get("case_insensitive") else []), *(["--follow"] if path == "src/b.py" else [])]
    expected = repository.git("log", "--format=%H", posix, *options, "--", path).split()
    result = sync.Workspace(repository.folder).history_result(path, pattern=pattern, limit=100, **arguments)
    assert listed(result) == expected


@pytest.mark.parametrize("path", ["src/b.py", "crlf.txt", "-dash.txt", "bin.dat"])
@pytest.mark.parametrize(("first", "last"), [(1, 0), (2, 2), (1, 1000)])
def test_origins_of_lines_are_those_of_git_blame(repository: Repository, path: str, first: int, last: int) -> None:
    has = (repository.folder / path).read_bytes().count(b"\n") or 1
    workspace = sync.Workspace(repository.folder)
    if first > has:
        assert f"has {has} line" in workspace.history(path, lines=f"{first}-")
        return
    blamed = repository.git("blame", "-s", "-l", "--root", "-L", f"{first},{last or ''}", "HEAD", "--", path)
    expected = [(line.split()[0][:12], number) for number, line in enumerate(blamed.split("\n"), first)]
    result = workspace.history_result(path, lines=f"{first}-{last or ''}")
    found = [re.match(r"([0-9a-f]{12}) (\d+):", line) for line in result.lines]
    assert [(one[1], int(one[2])) for one in found if one] == expected
    assert {commit.id[:12] for commit in result.commits} == {oid for oid, _ in expected}
    pages = [
        workspace.history_result(path, lines=f"{first}-{last or ''}", limit=7, offset=at)
        for at in range(0, len(expected), 7)
    ]
    assert [line for page in pages for line in page.lines] == list(result.lines)


@pytest.mark.parametrize(
    "commit", ["HEAD", "HEAD~1", "HEAD~2", "HEAD~3", "HEAD~6", "side", "HEAD~5..HEAD", "HEAD~3...side"]
)
@pytest.mark.parametrize("path", [".", "src"])
def test_changes_of_a_commit_are_those_of_git(repository: Repository, commit: str, path: str) -> None:
    git_ = repository.git
    if ".." in commit:
        pair = commit.split("...") if "..." in commit else commit.split("..")
        old, new = (git_("merge-base", *pair) if "..." in commit else pair[0]), pair[1]
    else:
        parents = git_("rev-list", "--parents", "-1", commit).split()[1:]
        old, new = parents[0] if parents else git_("hash-object", "-t", "tree", "/dev/null"), commit
    patch = git_("diff", "-M", "--no-color", old, new, "--", path)
    expected = [line.rstrip("\r") for line in patch.split("\n") if re.match(r"[-+](?![-+]{2} )", line)]
    result = sync.Workspace(repository.folder).history_result(path, commit=commit)
    changed = [line for line in result.lines if line[:1] in ("+", "-")]
    surrogates = {line: line.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for line in expected}
    assert sorted(changed) == sorted(surrogates.values())
    names = [name for name in git_("diff", "-M", "--name-only", "-z", old, new, "--", path).split("\0") if name]
    assert len([line for line in result.lines if re.match(r"(added|deleted|modified|renamed): ", line)]) == len(names)
    workspace = sync.Workspace(repository.folder)
    pages = [workspace.history_result(path, commit=commit, limit=5, offset=at) for at in range(0, len(result.lines), 5)]
    assert [line for page in pages for line in page.lines] == list(result.lines)


def test_answer_says_how_to_go_on(repository: Repository) -> None:
    workspace = sync.Workspace(repository.folder)
    answer = workspace.history("src/b.py", limit=1)
    (oid,) = re.findall(r"^([0-9a-f]{12}) 2023-\d\d-\d\d Ann: binary$", answer, re.MULTILINE)
    assert f'offset=1 gives older ones. commit="{oid}" shows its changes, read_file with rev="{oid}"' in answer
    assert "with a body" in workspace.history(commit=oid)
    assert workspace.read_file("src/b.py", rev=oid).startswith("File: src/b.py\n")
    assert workspace.history("src/b.py:2").endswith("(Lines 2 to 2 in HEAD.)")
    assert "was src/a.py" in workspace.history(commit="HEAD~2")
    assert "The commit is a merge" in workspace.history(commit="HEAD~3")


@pytest.fixture
def secrets(tmp_path: Path) -> Repository:
    """Return a repository with files that are denied, renames from and to them, and secrets in lines and messages."""
    repo = Repository(tmp_path / "root")
    body = "".join(f"V{number}=needle\n" for number in range(9))
    repo.commit("first", {".env": body, "open.txt": "open\n", "x": "file x\n"})
    repo.commit("only denied", {".env": f"{body}SECRET=1\n"})
    repo.git("mv", ".env", "config.txt")
    repo.commit("from denied", {"config.txt": body})
    repo.commit("key", {"open.txt": f"open\n{KEY}\n", "config.txt": f"{body}SECRET=2\n"})
    repo.git("mv", "config.txt", "k.pem")
    repo.commit(f"to denied {KEY}", {})
    repo.commit("file to directory", {"x": None, "x/k.pem": "file x\n"})
    return repo


def test_denied_files_are_in_no_log_and_in_no_difference(secrets: Repository) -> None:
    workspace = sync.Workspace(secrets.folder, deny=[".env", "*.pem"], redact=True)
    everything = workspace.history()
    assert "only denied" not in everything
    assert all(name not in everything for name in (".env", ".pem"))
    assert "only denied" not in workspace.history(pattern="SECRET=1")
    assert "No commit of HEAD" in workspace.history(pattern="SECRET=1", rev="HEAD~3")
    for pattern in ("SECRET=1", "V0", "nothing"):  # what matches in the denied file changes no answer
        assert "Before, the file had a name that is denied" in workspace.history(
            "config.txt", pattern=pattern, rev="HEAD~2"
        )
        assert "only denied" not in workspace.history("config.txt", pattern=pattern, rev="HEAD~2")
    for path in (".", "config.txt"):  # the commit that gave the file its name removed a line, too
        known, other = (workspace.history(path, pattern=one, rev="HEAD~3") for one in ("SECRET=1", "SECRET=8"))
        assert known == other and known.startswith("No commit of HEAD~3")
    for path in (".env", "k.pem", "x/k.pem"):
        for arguments in ({}, {"commit": "HEAD"}, {"lines": "1-"}, {"pattern": "x"}):
            with pytest.raises(AccessDeniedError):
                workspace.history_result(path, **arguments)  # type: ignore[arg-type]
    commits = secrets.git("log", "--format=%H").split()
    for commit in (*commits, f"{commits[-1]}..{commits[0]}", f"{commits[-2]}..{commits[2]}"):
        answer = workspace.history(commit=commit)
        assert all(text not in answer for text in (".env", ".pem", KEY, "only denied", "SECRET=1\n-")), answer
    followed = workspace.history("config.txt")
    assert "Before, the file had a name that is denied" in followed
    assert "first" not in followed
    assert "deleted: config.txt" in workspace.history(commit="HEAD~1")
    assert "added: config.txt" in workspace.history(commit="HEAD~3")
    origins = workspace.history("config.txt", lines="1-", rev="HEAD~2")
    assert "------------ 1: V0=needle" in origins
    assert "are denied" in origins


def test_secrets_are_masked_in_messages_lines_and_differences(secrets: Repository) -> None:
    for redact in (True, False):
        workspace = sync.Workspace(secrets.folder, redact=redact)
        answers = (
            workspace.history(),
            workspace.history(commit="HEAD~2"),
            workspace.history(commit="HEAD~1"),
            workspace.history("open.txt", lines="1-"),
        )
        for answer in answers:
            assert (KEY in answer) is not redact
            assert ("[redacted: github-token]" in answer) is redact
        assert KEY not in str(workspace.structured(workspace.history_result())) or not redact


PROGRAMS = """
[diff]
    external = touch {mark}
[diff "evil"]
    textconv = touch {mark} && cat
    command = touch {mark}
[filter "evil"]
    smudge = touch {mark} && cat
    clean = touch {mark} && cat
    process = touch {mark}
[core]
    pager = touch {mark}
    fsmonitor = touch {mark}
    hooksPath = {hooks}
    askPass = touch {mark}
[pager]
    log = touch {mark}
    blame = touch {mark}
    diff = touch {mark}
[log]
    showSignature = true
    mailmap = true
[gpg]
    program = {hooks}/gpg
[alias]
    log = !touch {mark}
    blame = !touch {mark}
[diff]
    submodule = log
    noprefix = true
    relative = true
[color]
    ui = always
[blame]
    ignoreRevsFile = revs
"""


@pytest.mark.parametrize("where", ["user", "repository"])
def test_nothing_is_started_that_a_tree_or_configuration_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A tree chooses the drivers by its attributes; the user's configuration may have them for other trees."""
    repo = Repository(tmp_path / "root")
    attributes = "* diff=evil filter=evil\n"
    repo.commit("first", {"a.txt": "one\n", ".gitattributes": attributes, ".mailmap": "Eve <e> Ann <Ann>\n"})
    repo.commit("second", {"a.txt": "one\nneedle\n", "revs": ""})
    oid = repo.git("rev-parse", "HEAD")
    signed = repo.git("cat-file", "commit", "HEAD").replace("\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n\n", 1)
    made = git(repo.folder, "hash-object", "-t", "commit", "-w", "--stdin", "--literally", text=f"{signed}\n".encode())
    repo.git("update-ref", "HEAD", made)
    repo.git("pack-refs", "--all")
    hooks, mark = tmp_path / "hooks", tmp_path / "mark"
    hooks.mkdir()
    for name in ("gpg", "post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / name).chmod(0o755)
    config = PROGRAMS.format(mark=mark, hooks=hooks)
    if where == "user":
        (tmp_path / "gitconfig").write_text(config)
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    else:
        (repo.folder / ".git/config").write_text((repo.folder / ".git/config").read_text() + config)
    workspace = sync.Workspace(repo.folder)
    assert "Ann: second" in workspace.history("a.txt")
    assert "second" in workspace.history(pattern="needle")
    assert "second" in workspace.history(pattern="needle", fixed_strings=True)
    assert f"{made[:12]} 2: needle" in workspace.history("a.txt", lines="1-")
    assert "+needle" in workspace.history(commit="HEAD")
    assert "+needle" in workspace.history(commit=f"{oid}~1..HEAD")
    assert "Eve" not in workspace.history()
    assert not mark.exists()


def test_partial_clone_asks_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repository(tmp_path / "served")
    repo.commit("first", {"a.txt": "one\n"})
    repo.commit("second", {"a.txt": "two\n"})
    repo.git("config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--bare", "--filter=blob:none", f"file://{repo.folder}", str(tmp_path / "partial"))
    monkeypatch.setattr(history_tool, "MAX_LINES", 50)
    workspace = sync.Workspace(tmp_path / "partial")
    assert "second" in workspace.history()
    assert workspace.history(commit="HEAD").startswith("Error: ")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo.folder}", str(shallow))
    assert "The clone is shallow: older commits are missing." in sync.Workspace(shallow).history()


def test_empty_repositories_detached_heads_worktrees_and_submodules(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "root/main")
    assert sync.Workspace(repo.folder).history().startswith("Error: rev is not a revision of the repository")
    repo.commit("first", {"a.txt": "one\n", "sub/b.txt": "b\n"})
    repo.git("submodule", "add", "-q", str(repo.folder), "inner")
    repo.commit("second", {"a.txt": "two\n"})
    repo.git("checkout", "-q", "--detach", "HEAD~1")
    repo.git("worktree", "add", "-q", str(tmp_path / "root/tree"), "main")
    workspace = sync.Workspace(tmp_path / "root")
    assert workspace.history("main").count("Ann: ") == 1
    assert "main/a.txt, main/inner" in workspace.history("tree").replace("tree/", "main/")
    assert "inner is a submodule in HEAD" in workspace.history("tree/inner")
    assert "modified: tree/a.txt" in workspace.history("tree", commit="HEAD")
    above = sync.Workspace(repo.folder / "sub", repositories=[repo.folder / ".git", repo.folder])
    assert above.history_result().commits[0].files == ("b.txt",)
    assert "a.txt" not in above.history(commit="main")
    assert above.history("../a.txt").startswith("Error: ")
    assert sync.Workspace(tmp_path / "root", repo.folder.parent).history().startswith("Error: ")


def test_commits_are_counted_up_to_a_limit_and_the_time_limit_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repository(tmp_path / "root")
    stream = b"".join(
        b"commit refs/heads/main\ncommitter A <a> %d +0000\ndata 1\nx\nM 644 inline f\ndata %d\n%d\n"
        % (at, len(str(at)), at)
        for at in range(1, 10_051)
    )
    git(repo.folder, "fast-import", "--quiet", text=stream)
    workspace = sync.Workspace(repo.folder, timeout=60)
    last = workspace.history_result("f", offset=9_990, limit=20)
    assert (len(last.commits), last.exact, last.next_offset) == (10, False, None)
    assert "Only 10,000 commits were looked at" in str(last)
    assert len(workspace.history()) <= 20_000
    assert workspace.history_result(limit=10_000).next_offset is not None
    late = sync.Workspace(repo.folder, timeout=0.000_001).history("f")
    assert late.startswith("Error: ")
    slow = tmp_path / "bin/git"
    slow.parent.mkdir()
    real = shutil.which("git")
    slow.write_text(
        f'#!/bin/sh\ncase " $* " in *" log -z "*) {real} "$@"; exec sleep 60;; *) exec {real} "$@";; esac\n'
    )
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    stopped = sync.Workspace(repo.folder, timeout=4).history_result("f", rev="HEAD~10000", limit=100)
    assert len(stopped.commits) in (49, 50)  # the last one may have further files
    assert not stopped.exact
    assert stopped.truncated
    assert "stopped after 4 seconds" in str(stopped)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"pattern": "x", "commit": "HEAD"}, "pattern and commit do not go together"),
        ({"commit": "HEAD", "rev": "HEAD"}, "commit and rev do not go together"),
        ({"path": "src/b.py", "lines": "1-", "rev": "HEAD~1..HEAD"}, "lines and rev do not go together"),
        ({"path": "src", "lines": "1-"}, "src is a directory; only a file has lines"),
        ({"path": "src/b.py", "lines": 99}, "src/b.py has 31 lines in HEAD, so there is no line 99"),
        ({"path": "a\nb", "lines": "1-"}, "a\\x0ab does not exist in HEAD; find_files with this rev lists the files"),
        ({"pattern": "(?i)x"}, "git has no (? in regular expressions"),
        ({"pattern": "a+?"}, "git has no +? in regular expressions"),
        ({"pattern": "("}, "invalid regex"),
        ({"path": "src/b.py", "lines": "3-2"}, "lines must be a range such as 10-20 or 10-, got '3-2'"),
        ({"path": "src/b.py", "lines": "0"}, "lines must be a range"),
        ({"pattern": "a\ud800"}, "cannot encode"),
        ({"rev": "--output=x"}, "rev must be a revision of git"),
        ({"commit": "-x..HEAD"}, "commit must be a revision of git"),
        ({"commit": "nope"}, "is not a revision of the repository"),
        ({"rev": "nope..HEAD"}, "is not a revision of the repository"),
        ({"path": ".."}, "is outside of the allowed directories"),
        ({"pattern": "a\0b"}, "NUL"),
    ],
    ids=str,
)
def test_bad_questions_are_one_error(repository: Repository, arguments: dict[str, Any], text: str) -> None:
    answer = sync.Workspace(repository.folder).call("history", arguments)
    assert answer.startswith("Error: ")
    assert text in answer
    assert "\n" not in answer


@pytest.mark.anyio
async def test_async_tool_answers_as_the_blocking_one(repository: Repository) -> None:
    blocking = sync.Workspace(repository.folder)
    assert await Workspace(repository.folder).history("src/b.py") == blocking.history("src/b.py")


@pytest.mark.parametrize(
    "given", [{}, {"path": "a.py"}, {"path": "a.py:1"}, {"path": "gone.py"}, {"pattern": "x"}, {"rev": "a..b"}]
)
def test_history_outside_of_a_repository_speaks_of_history(plant: Callable[..., Path], given: dict[str, str]) -> None:
    """The error was about `rev`, which the caller had not passed."""
    root = plant({"a.py": "x\n"})
    assert sync.Workspace(root).call("history", given) == (
        f"Error: history needs a git repository, and {root} has none at {given.get('path', '.')}; "
        "read_file shows files as they are now"
    )

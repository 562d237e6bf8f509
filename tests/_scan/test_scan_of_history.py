"""Scans of a git history, against scans of each version of a file that git shows."""

import csv
import io
import json
import os
import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import ripwrap
from _operations.test_inside import zipped
from _operations.test_revisions import git
from ripwrap import Baseline, HistoryMatch, HistoryScanMatch, Rule, ScanMatch, sarif, sync
from ripwrap.places import Detected, History, Inside, Overlay
from sources.test_history import generated, imported
from support.cli import output, run
from support.effort import times
from support.git import require_git

pytestmark = [pytest.mark.usefixtures("temporary", "leaks_nothing")]

RULES = [
    Rule(id="even", pattern="needle ([0246])"),
    Rule(id="word", pattern="needle"),
    Rule(id="lines", pattern=r"needle 5\n", multiline=True),
    Rule(id="keyed", pattern="[a-z]+ [135]", keywords=("needle 3", "needle 1")),
    Rule(id="name", path=r"(^|/)a$"),
]
Found = tuple[str, str, str, str, str, str, frozenset[str]]
"""Rule, text, first commit, its author, last commit, blob and paths of a finding."""


def found(hits: Iterable[ScanMatch]) -> list[Found]:
    result: list[Found] = []
    for hit in hits:
        assert isinstance(hit, HistoryScanMatch)
        assert hit.last is not None
        commits = (hit.first.id, hit.first.author, hit.last.id)
        result.append((hit.rule, hit.submatches[0].match, *commits, hit.blob, frozenset(hit.paths)))
        assert hit.path == hit.paths[0]
    return sorted(result, key=repr)


def shown_by_git(folder: Path, tip: str) -> list[Found]:
    """Return what the rules find in each blob that `git rev-list`, `ls-tree` and `show` name: by brute force."""
    holders: dict[str, list[str]] = {}
    paths: dict[str, set[str]] = {}
    for commit in git(folder, "rev-list", "--date-order", tip).split():
        for entry in filter(None, git(folder, "ls-tree", "-rz", commit).split("\0")):
            about, _, path = entry.partition("\t")
            mode, _, blob = about.split()
            if mode.startswith("100"):
                holders.setdefault(blob, []).append(commit)
                paths.setdefault(blob, set()).add(path)
    result: list[Found] = []
    for blob, commits in holders.items():
        text, first, last = git(folder, "show", blob) + "\n", commits[-1], commits[0]
        author = git(folder, "log", "-1", "--format=%an", first)
        texts = [(rule.id, hit[0]) for rule in RULES if rule.pattern for hit in re.finditer(rule.pattern, text)]
        texts = [one for one in texts if one[0] != "keyed" or re.search("needle [13]", text)]
        # The newest path of a version is unknown here; all paths of a version match the path of the rule, or none does.
        texts += [("name", "")] if any(re.search(r"(^|/)a$", path) for path in paths[blob]) else []
        result += [(*one, first, author, last, blob, frozenset(paths[blob])) for one in texts]
    return sorted(result, key=repr)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(times(2, 100)))
def test_scan_of_a_history_finds_what_git_shows(tmp_path: Path, seed: int) -> None:
    """Each text of each version, with the commit that introduced the version and its author."""
    require_git()
    chance = random.Random(seed)
    git(tmp_path, "init", "-q")
    for number in range(times(3, 10)):
        history = generated(chance)
        for tree in history.trees:  # so that all paths of a version, or none, have the name of the rule
            for name in [name for name in tree if name.endswith("a")]:
                tree[name] = tree[name][0], tree[name][1] % 2 + 10
        tip = imported(tmp_path, history, f"refs/heads/h{number}")[-1]
        expected = shown_by_git(tmp_path, tip)
        assert found(sync.scan(RULES, cwd=tmp_path, where=History(tip), overlaps=True)) == expected
        assert {hit.blob for hit in sync.search_history("needle", cwd=tmp_path, rev=tip)} == {
            one[5] for one in expected
        }


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Repository with a token in two versions of a file, in an archive, and in a file that was removed."""
    git(tmp_path, "init", "-q")
    for day, files in enumerate((
        {"a.py": b"tok_aaaa\n", "k.pem": b""},
        {"a.py": b"# moved\ntok_aaaa\n", "f.zip": zipped({"in.py": b"tok_zzzz\n"})},
        {"a.py": b"tok_bbbb\ntok_aaaa\n"},
        {"a.py": b"nothing\n"},
    )):  # fmt: skip
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", f"change {day}", days=day)
    return tmp_path


TOKEN = [Rule(id="token", pattern="tok_[a-z]+"), Rule(id="pem", path=r"\.pem$")]


def named(hits: Iterable[ScanMatch]) -> list[tuple[str | None, str, str]]:
    return [(hit.path, hit.submatches[0].match, hit.first.subject) for hit in hits if isinstance(hit, HistoryScanMatch)]


@pytest.mark.slow
@pytest.mark.anyio
async def test_findings_in_a_history_have_their_commits(repository: Path) -> None:
    """Versions of one file are different files, and an empty file is found by its name."""
    expected = [
        ("a.py", "tok_bbbb", "change 2"), ("a.py", "tok_aaaa", "change 2"), ("a.py", "tok_aaaa", "change 1"),
        ("a.py", "tok_aaaa", "change 0"), ("k.pem", "", "change 0"),
    ]  # fmt: skip
    hits = [hit async for hit in ripwrap.scan(TOKEN, cwd=repository, where=History())]
    assert named(hits) == expected == named(sync.scan(TOKEN, cwd=repository, where=Detected(History())))
    assert all(isinstance(hit, HistoryMatch) for hit in hits)
    assert HistoryScanMatch.model_validate_json(hits[0].model_dump_json()) == hits[0]
    since = History(since="2024-01-02T00:00:00")
    assert named(sync.scan(TOKEN, cwd=repository, where=since)) == expected[:3]
    assert named(sync.scan(TOKEN, cwd=repository, where=History("HEAD~3"))) == expected[3:]
    assert named(sync.scan(TOKEN, cwd=repository, where=History(), paths="k.pem")) == expected[4:]
    assert named(sync.scan(TOKEN, cwd=repository, where=History(), limit=2)) == expected[:2]


def test_findings_inside_of_files_of_a_history_have_their_commits(repository: Path) -> None:
    """Members of archives have the commits of the archive."""
    hits = list(sync.scan(TOKEN, cwd=repository, where=Inside(History(), "zip"), glob="*.py"))
    assert ("f.zip!/in.py", "tok_zzzz", "change 1") in named(hits)
    assert len(named(hits)) == len(hits)


def test_operations_take_a_history_as_a_place(repository: Path) -> None:
    """A history is a place for other operations, too; texts cannot replace all versions of a file."""
    found = sync.grep("tok_aaaa", cwd=repository, where=History(), context=0)
    assert ([match.path for match in found.matches], found.files_matched) == (["a.py"] * 3, 3)
    assert [one.count for one in sync.count("tok", cwd=repository, where=History())] == [2, 1, 1]
    assert sync.grep("tok_aaaa", near="moved", cwd=repository, where=History()).total_matches == 1
    with pytest.raises(ValueError, match="would replace all versions of a file"):
        sync.search("tok", cwd=repository, where=Overlay(History(), {"a.py": "tok"}))
    with pytest.raises(ValueError, match="only files on the disk can be changed"):
        sync.replace("tok", "x", cwd=repository, where=History())  # type: ignore[call-arg]


def cli(*arguments: str, cwd: Path, code: int = 1) -> str:
    rules = '[[rules]]\nid = "token"\npattern = "tok_[a-z]+"\n[[rules]]\nid = "pem"\npath = "[.]pem$"\n'
    (cwd / "rules.toml").write_text(rules)
    return output("scan", "--rules=rules.toml", *arguments, cwd=cwd, code=code)


@pytest.mark.slow
def test_command_scans_a_history(repository: Path) -> None:
    """`ripwrap scan --history`, with commit and author in text, JSON, SARIF, and so in CSV."""
    ids = git(repository, "rev-list", "HEAD").split()
    lines = cli("--history", "--redact", cwd=repository).splitlines()
    assert lines == [
        f"{ids[1][:12]}:a.py:1:1: token (me@here, 2024-01-03)",
        f"{ids[1][:12]}:a.py:2:1: token (me@here, 2024-01-03)",
        f"{ids[2][:12]}:a.py:2:1: token (me@here, 2024-01-02)",
        f"{ids[3][:12]}:a.py:1:1: token (me@here, 2024-01-01)",
        f"{ids[3][:12]}:k.pem: pem (me@here, 2024-01-01)",
    ]
    assert cli("--history", "--since=2024-01-03", cwd=repository).count("\n") == 2
    assert cli("--history", "--rev=HEAD~3", "a.py", cwd=repository).count("\n") == 1
    assert "f.zip!/in.py:1:1: token: tok_zzzz" in cli("--history", "--inside=zip", cwd=repository)
    hits = [
        HistoryScanMatch.model_validate_json(one) for one in cli("--history", "--json", cwd=repository).splitlines()
    ]
    table = io.StringIO()
    csv.writer(table).writerows([hit.first.id, hit.first.author, hit.path, hit.line_number, hit.rule] for hit in hits)
    assert table.getvalue().splitlines()[0] == f"{ids[1]},me@here,a.py,1,token"


def test_sarif_has_commit_and_author(repository: Path) -> None:
    """The properties of a result name the commit that introduced the version."""
    log = json.loads(cli("--history", "--sarif", cwd=repository))
    schema = json.loads((Path(__file__).parents[1] / "data" / "sarif-2.1.0.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(log)
    first = log["runs"][0]["results"][0]["properties"]
    commit = git(repository, "rev-parse", "HEAD~1")
    assert (first["commit"], first["author"], first["subject"]) == (commit, "me@here", "change 2")
    assert (first["date"], first["blob"]) == ("2024-01-03T12:00:00+01:00", git(repository, "rev-parse", "HEAD~1:a.py"))
    assert "tok_" not in json.dumps(log)
    plain = sarif(sync.scan(TOKEN, cwd=repository, where=History("HEAD~3")), TOKEN)
    assert plain["runs"][0]["results"][0]["properties"]["subject"] == "change 0"


def test_known_text_in_a_new_version_is_known(repository: Path) -> None:
    """A baseline of a history counts the texts of each version, so that each change of a file adds none."""
    baseline = Baseline.of(sync.scan(TOKEN, cwd=repository, where=History("HEAD~2")))
    new = named(baseline.new(sync.scan(TOKEN, cwd=repository, where=History())))
    assert new == [("a.py", "tok_bbbb", "change 2")]
    (repository / "a.py").write_text("tok_aaaa tok_aaaa\n")
    assert len(list(baseline.new(sync.scan(TOKEN, cwd=repository, glob="*.py")))) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--since=2024-01-01",), "--since needs --history"),
        (("--history", "--on=ssh:box"), "--on cannot be combined with --history"),
        (("--history", "-"), "standard input (-) cannot be combined with --history"),
        (("--history", "--rev=nope"), "--rev is not a revision of the repository"),
        (("--history", "--since=nonsense"), "nonsense"),
        (("--history", "--repository=/nowhere"), "not allowed"),
    ],
)
def test_errors_of_a_history_name_flags(arguments: tuple[str, ...], says: str, repository: Path) -> None:
    done = run("scan", *arguments, cwd=repository, code=2)
    assert says in done.stderr.decode()


def test_command_scans_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ripwrap scan -` reads standard input, as `search -` does."""
    given: Any = io.TextIOWrapper(io.BytesIO(b"one\ntok_abcd\n"))
    monkeypatch.setattr("sys.stdin", given)
    assert cli("-", cwd=tmp_path) == "<stdin>:2:1: token: tok_abcd\n"
    done = run("scan", "-", "src", cwd=tmp_path, code=2)
    assert f"a file with the name - is .{os.sep}-" in done.stderr.decode()

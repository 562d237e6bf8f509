"""`ripwrap scan`: output, reports, baseline and exit codes, in process."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import ripwrap
from _operations.test_inside import zipped
from _operations.test_revisions import git
from ripwrap import Baseline, Rule, ScanMatch, sarif, sync
from ripwrap._scan.scan import REFUSED
from ripwrap.options import SearchOptions
from support.cli import output, run

Plant = Callable[..., Path]

RULES = r"""
[[rules]]
id = "token"
description = "A token"
pattern = '''tok_[a-z]{4}'''
tags = ["secret"]

[[rules]]
id = "lines"
pattern = '''begin[\s\S]+?end'''
multiline = true
"""


@pytest.fixture
def planted(plant: Plant) -> Path:
    return plant({"rules.toml": RULES, "src/a é.py": "\n# é tok_abcd\n", "src/b.py": "begin\n  end\n"})


def scan(*arguments: str, cwd: Path, code: int = 1) -> str:
    return output("scan", "--rules", "rules.toml", "--sort=path", *arguments, "src", cwd=cwd, code=code)


@pytest.mark.slow
def test_places_rules_and_texts_are_printed(planted: Path) -> None:
    assert scan(cwd=planted) == "src/a é.py:2:5: token: tok_abcd\nsrc/b.py:1:1: lines: begin\\n  end\n"
    assert scan("--redact", cwd=planted) == "src/a é.py:2:5: token\nsrc/b.py:1:1: lines\n"
    assert scan("--limit=1", cwd=planted) == "src/a é.py:2:5: token: tok_abcd\n"


def test_the_hook_of_pre_commit_is_a_command(planted: Path) -> None:
    hooks = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text("utf-8")
    (entry,) = re.findall(r"(?m)^  entry: ripwrap (.+)$", hooks)
    files = ("src/b.py", "src/a é.py")
    found = output(*entry.split(), "rules.toml", *files, cwd=planted, code=1)
    assert sorted(found.splitlines()) == ["src/a é.py:2:5: token", "src/b.py:1:1: lines"]


@pytest.mark.slow
def test_built_in_rules_are_the_default(plant: Plant) -> None:
    """`ripwrap scan` needed --rules."""
    token = "ghp_" + "aB3" * 12  # not in one piece, so that no scanner takes this file for one with secrets
    folder = plant(
        {
            "a.py": f'x = "{token}"\ny = "${{TOKEN}}"\npassword = "hunter2"  # gitleaks:allow\n',
            "b.sh": "export DB_PASSWORD=hunter2\nexport DB_PASSWORD=${PASS}\n",
            "c.yaml": "password: hunter2hunter\npassword: hunterhunter\n",
            "d.txt": "nothing\n",
        }
    )
    said = output("scan", "--sort=path", cwd=folder, code=1)
    assert said.splitlines() == [
        f"a.py:1:6: github-token: {token}",
        "b.sh:1:7: password/env:  DB_PASSWORD=hunter2",
        "c.yaml:1:1: password/config: password: hunter2hunter",
    ]
    assert output("scan", "d.txt", cwd=folder, code=0) == ""
    hits = list(sync.scan(cwd=folder, sort="path"))
    assert [hit.rule for hit in hits] == ["github-token", "password/env", "password/config"]
    assert [next(filter(None, hit.groups)) for hit in hits] == [token, "hunter2", "hunter2hunter"]
    log = json.loads(output("scan", "--sarif", cwd=folder, code=1))
    assert len(log["runs"][0]["tool"]["driver"]["rules"]) == len(ripwrap.SECRET_RULES)


def test_help_lists_only_flags_that_a_scan_takes(planted: Path) -> None:
    """The help had --replace, --context, --multiline and others, which were refused or had no effect."""
    help_text = output("scan", "--help", cwd=planted)
    known = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", help_text.partition("Examples:")[0]))
    refused = {"--context", "--passthru", "--replace", "--max-count", "--pcre2", "--smart-case", "--multiline-dotall"}
    assert not known & refused
    assert {"--rules", "--redact", "--encoding", "--glob", "--ignore-case", "--limit"} <= known
    others = {
        "--sarif",
        "--redact",
        "--json",
        "--jsonl",
        "--unrestricted",
        "--baseline",
        "--write-baseline",
        "--rules",
        "--help",
        "--rg",
        "--cwd",
    }
    others |= {"--rev", "--repository", "--inside", "--search-zip", "--on", "--history", "--since"}
    for flag in known - others - {"--overlaps", "--limit", "--no-line-number"}:
        name = flag.removeprefix("--").replace("-", "_")
        assert {name, name.removeprefix("no_"), f"no_{name}"} & set(SearchOptions.__annotations__) - set(REFUSED), flag


@pytest.mark.parametrize("name", ["context", "before_context", "after_context", "passthru", "max_count"])
def test_scan_refuses_options_without_effect(name: str) -> None:
    options: dict[str, Any] = {name: 1 if name != "passthru" else True}
    with pytest.raises(ValueError, match=f"{name} does not apply to a scan"):
        sync.scan(**options)


def test_nothing_found_exits_with_0(planted: Path) -> None:
    assert scan("-g", "!*.py", cwd=planted, code=0) == ""


def test_json_is_that_of_the_models(planted: Path) -> None:
    hits = [ScanMatch.model_validate_json(line) for line in scan("--json", cwd=planted).splitlines()]
    assert [(hit.rule, hit.line_number) for hit in hits] == [("token", 2), ("lines", 1)]


def test_sarif_has_rules_places_and_fingerprints_but_no_texts(planted: Path) -> None:
    text = scan("--sarif", cwd=planted)
    log = json.loads(text)
    assert (log["version"], log["$schema"].rpartition("/")[2]) == ("2.1.0", "sarif-schema-2.1.0.json")
    (run_log,) = log["runs"]
    driver = run_log["tool"]["driver"]
    assert driver["rules"] == [
        {"id": "token", "shortDescription": {"text": "A token"}, "properties": {"tags": ["secret"]}},
        {"id": "lines", "shortDescription": {"text": "lines"}},
    ]
    first, second = run_log["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/a%20%C3%A9.py"}
    assert place["region"] == {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 13}
    assert (first["ruleId"], first["ruleIndex"], first["message"]) == ("token", 0, {"text": "A token"})
    assert second["locations"][0]["physicalLocation"]["region"]["endLine"] == 2
    assert len(first["partialFingerprints"]["ripwrap/v1"]) == 64
    assert "tok_abcd" not in text


def test_sarif_follows_its_schema(planted: Path) -> None:
    # The schema of SARIF 2.1.0 without its descriptions, from npm's @microsoft/sarif-multitool-linux 5.7.0 (MIT).
    schema = json.loads((Path(__file__).parents[1] / "data" / "sarif-2.1.0.json").read_text("utf-8"))
    checker = jsonschema.Draft202012Validator(schema)
    for log in (json.loads(scan("--sarif", cwd=planted)), sarif([], [Rule(id="a", pattern="b")])):
        checker.validate(log)
        assert not checker.is_valid({**log, "runs": [{**log["runs"][0], "tool": {}}]})


def test_a_baseline_leaves_out_what_is_known(planted: Path) -> None:
    scan("--write-baseline=known.json", cwd=planted, code=0)
    assert "tok" not in (planted / "known.json").read_text("utf-8")
    (planted / "src/a é.py").write_text("# moved: tok_abcd\n", "utf-8")
    assert scan("--baseline=known.json", cwd=planted, code=0) == ""
    (planted / "src/a é.py").write_text("tok_abcd tok_abcd tok_efgh\n", "utf-8")
    found = scan("--baseline=known.json", cwd=planted)
    assert found == "src/a é.py:1:10: token: tok_abcd\nsrc/a é.py:1:19: token: tok_efgh\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--baseline=rules.toml",), "rules.toml is not a baseline of ripwrap"),
        (("--baseline=missing",), "missing"),
        (("--sarif", "--json"), "--json cannot be combined with --sarif"),
        (("--sarif", "--redact"), "--redact cannot be combined with --sarif; leave one of them out"),
        (("-F",), "unknown option -F"),
        (("--rules=src/b.py",), "is not valid TOML"),
    ],
)
def test_errors_exit_with_2(arguments: tuple[str, ...], says: str, planted: Path) -> None:
    done = run("scan", "--rules", "rules.toml", *arguments, cwd=planted, code=2)
    assert says in done.stderr.decode()


def test_a_rule_that_does_not_compile_is_named(planted: Path) -> None:
    for pattern in ("a(b", r"\p{Foo}", "a(?=b)"):
        (planted / "rules.toml").write_text(f"[[rules]]\nid = 'bad'\npattern = '{pattern}'\n", "utf-8")
        done = run("scan", "--rules", "rules.toml", cwd=planted, code=2)
        assert "rule 'bad': regex parse error" in done.stderr.decode()
        assert "^" in done.stderr.decode()


def test_file_of_gitleaks_is_an_error_that_says_what_to_do(planted: Path) -> None:
    (planted / "rules.toml").write_text("title = 'x'\n[[rules]]\nid = 'a'\nregex = 'b'\n", "utf-8")
    done = run("scan", "--rules", "rules.toml", cwd=planted, code=2)
    assert "rules.toml is a file of gitleaks" in done.stderr.decode()
    assert "or run gitleaks" in done.stderr.decode()


def test_a_baseline_is_what_was_written(tmp_path: Path, plant: Plant) -> None:
    rules = [Rule(id="a", pattern="a+")]
    hits = list(sync.scan(rules, cwd=plant({"x": "a aa a\n"})))
    baseline = Baseline.of(hits)
    baseline.write(tmp_path / "known.json")
    assert Baseline.read(tmp_path / "known.json") == baseline
    assert str(baseline) == "3 known texts"
    assert list(baseline.new([*hits, hits[0]])) == [hits[0]]
    assert len(sarif(hits, rules)["runs"][0]["results"]) == 3


def test_revisions_and_archives_are_scanned(plant: Plant) -> None:
    """Rules over revisions."""
    folder = plant({"rules.toml": RULES, "a.py": "tok_abcd\n", "f.zip": zipped({"b.py": b"tok_efgh\n"})})
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        git(folder, *words)
    (folder / "a.py").write_text("gone\n")
    given = ("scan", "--rules", "rules.toml", "--redact", "--glob=*.py")
    assert output(*given, "--rev=HEAD", cwd=folder, code=1) == "a.py:1:1: token\n"
    assert output(*given, "--inside=zip", cwd=folder, code=1) == "f.zip!/b.py:1:1: token\n"
    both = output(*given, "--rev=HEAD", "--inside=zip", cwd=folder, code=1)
    assert sorted(both.splitlines()) == ["a.py:1:1: token", "f.zip!/b.py:1:1: token"]

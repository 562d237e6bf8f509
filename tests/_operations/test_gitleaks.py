"""Reading rules from files in gitleaks' format."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap import Allowlist, Rule, load_rules, sync
from ripwrap._operations.gitleaks import to_python, to_rust

Plant = Callable[..., Path]

WHOLE = r"""
title = "ours"
minVersion = "v8.25.0"

[[allowlists]]
description = "everywhere"
paths = ['''(^|/)vendor/''']
stopwords = ["example"]

[[allowlists]]
targetRules = ["token"]
condition = "AND"
regexTarget = "line"
regexes = ['''(?i)fixture$''']
paths = ['''_test\.py$''']

[[rules]]
id = "token"
description = "A token"
regex = '''\btok_([\w-]{8,})\b'''
keywords = ["tok_"]
entropy = 2
secretGroup = 1
tags = ["token"]

[[rules]]
id = "key"
regex = '''-----BEGIN KEY-----[\s\S]{8,}?-----END KEY-----'''
path = '''\.pem$'''

[[rules.allowlists]]
regexTarget = "match"
regexes = ['''AAAA''']
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "rules.toml"
    path.write_text(text, "utf-8")
    return path


def test_rules_have_what_the_file_says(tmp_path: Path) -> None:
    everywhere = Allowlist(paths=("(^|/)vendor/",), stopwords=("example",))
    tests = Allowlist(paths=(r"_test\.py$",), regexes=("(?i)fixture$",), target="line", condition="all")
    assert load_rules(write(tmp_path, WHOLE)) == (
        Rule(
            id="token",
            pattern=r"(?-u:\b)tok_([0-9A-Za-z_-]{8,})(?-u:\b)",
            description="A token",
            keywords=("tok_",),
            entropy=2,
            secret_group=1,
            tags=("token",),
            allowlists=(everywhere, tests),
        ),
        Rule(
            id="key",
            pattern=r"-----BEGIN KEY-----[\t\n\f\r [^\t\n\f\r ]]{8,}?-----END KEY-----",
            path=r"\.pem$",
            multiline=True,
            allowlists=(Allowlist(regexes=("AAAA",), target="match"), everywhere),
        ),
    )


@pytest.mark.parametrize(
    ("regex", "lines"),
    [
        ("^key", [1, 2, 3]),
        ("(?m)^key", [1, 2, 3]),
        (r"\Akey[\s\S]", [1]),
        ("end$", [1, 2, 3]),
        ("(?m)end$", [1, 2, 3]),
        (r"end\z", [1, 2, 3]),
        (r"end(?:\s|$)", [1, 2, 3]),  # as many rules of gitleaks end
        (r"1 end[\s\S]^key", [1]),
        (r"[\s\S]end\z", [3]),
    ],
)
def test_ends_of_lines_match_as_the_page_on_scan_says(
    tmp_path: Path, plant: Plant, regex: str, lines: list[int]
) -> None:
    r"""In gitleaks, which uses Go's regexp, `^`, `$` and `\z` match only at the ends of the whole text."""
    folder = plant({"a": "key 1 end\nkey 2 end\nkey 3 end"})
    rules = load_rules(write(tmp_path, f"[[rules]]\nid = 'a'\nregex = '''{regex}'''"))
    assert [hit.line_number for hit in sync.scan(rules, cwd=folder)] == lines


def test_rules_of_a_file_find_secrets(tmp_path: Path, plant: Plant) -> None:
    folder = plant(
        {
            "a.py": "x = 'tok_a1b2c3d4'\ny = 'tok_aaaaaaaaa'\nz = 'tok_example1'\n",
            "a_test.py": "x = 'tok_a1b2c3d4'  # Fixture\ny = 'tok_a1b2c3d4'\n",
            "vendor/a.py": "x = 'tok_a1b2c3d4'\n",
            "a.pem": "-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----\n",
            "b.pem": "-----BEGIN KEY-----\nAAAAAAAA\n-----END KEY-----\n",
            "c.txt": "-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----\n",
        }
    )
    hits = sync.scan(load_rules(write(tmp_path, WHOLE)), cwd=folder, sort="path")
    assert sorted((hit.rule, hit.path, hit.line_number) for hit in hits) == [
        ("key", "a.pem", 1),
        ("token", "a.py", 1),
        ("token", "a_test.py", 2),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[rules", "is not valid TOML"),
        ("title = 'x'", r"has no \[\[rules\]\]"),
        ("[extend]\nuseDefault = true", "does not support 'extend'"),
        ("[[rules]]\nregex = 'a'", "rule 1 has no id"),
        ("[[rules]]\nid = 'a'\npath = 'b'", r"rule 1 \(a\) has no regex"),
        ("[[rules]]\nid = 'a'\nregex = 'b'\nrequired = []", r"rule 1 \(a\): ripwrap does not support 'required'"),
        ("[[rules]]\nid = 'a'\nregex = 'b'\nkeywords = 'c'", "keywords must be a list of strings, got 'c'"),
        ("[[rules]]\nid = 'a'\nregex = 'b'\nentropy = 'c'", r"rule 1 \(a\)[\s\S]*entropy"),
        ("[[rules]]\nid = 'a'\nregex = 'b'\npath = '['", r"rule 1 \(a\)[\s\S]*path[\s\S]*'\['"),
        ("[[rules]]\nid = 'a'\nregex = 'b'\npath = 'c(?i)d|e'", r"rule 1 \(a\): .* flags before"),
        ("[[rules]]\nid = 'a'\nregex = 'b'\n[rules.allowlist]\npaths = ['[[:x:]]']", r"allowlist 1: .* \[:x:\]"),
        ("[[rules]]\nid = 'a'\nregex = 'b'\n[[rules.allowlists]]\ncommits = ['c']", "not support 'commits'"),
        (
            "[[rules]]\nid = 'a'\nregex = 'b'\n[[rules.allowlist]]\npaths = ['c']",
            r"rule 1 \(a\): allowlist must be a table, got .*; for a list of tables, use \[\[rules\.allowlists\]\]",
        ),
        ("[[rules]]\nid = 'a'\nregex = 'b'\n[[allowlist]]\npaths = ['c']", r"use \[\[allowlists\]\]"),
        ("[[rules]]\nid = 'a'\nregex = 'b'\n[[rules.allowlists]]\ndescription = 'c'", "allowlist 1 has no paths"),
        ("[[rules]]\nid = 'a'\nregex = 'b'\n[rules.allowlist]\npaths = ['c']\ncondition = 'NOT'", "OR or AND"),
        ("[[rules]]\nid = 'a'\nregex = 'b'\n[rules.allowlist]\nregexes = ['c']\nregexTarget = 'd'", "target"),
        (
            "[[rules]]\nid = 'a'\nregex = 'b'\n[[allowlists]]\npaths = ['c']\ntargetRules = ['d']",
            "'d', but no rule has this id",
        ),
    ],
)
def test_what_a_file_cannot_say_is_an_error_with_its_key(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=says):
        load_rules(write(tmp_path, text))


@pytest.mark.parametrize(
    ("go", "rust", "python"),
    [
        (r"\w\D[\w.-][^\W]", r"[0-9A-Za-z_][^0-9][0-9A-Za-z_.-][^[^0-9A-Za-z_]]", None),
        (r"a{2,3}b{c}\{", r"a{2,3}b\{c\}\{", r"a{2,3}b\{c\}\{"),
        (r"[[a&&b~~]c", r"[\[a\&\&b\~\~]c", r"[\[a\&\&b\~\~]c"),
        (r"[]a](?<n>b)\z", r"[\]a](?P<n>b)\z", r"[\]a](?P<n>b)\Z"),
        (r"a(b(?i)c)(?i)[d(]", r"a(b(?i)c)(?i)[d(]", r"a(b(?i:c))(?i:[d(])"),
        (r"(?i)a|b", r"(?i)a|b", r"(?i)a|b"),
        (r"[[:alpha:]_]\Qa.b\E\x60\_\<", r"[[:alpha:]_]a\.b\x60_<", r"[A-Za-z_]a\.b\x60_<"),
    ],
)
def test_patterns_of_go_are_translated(go: str, rust: str, python: str | None, plant: Plant) -> None:
    assert to_rust(go) == rust
    list(sync.search(rust, cwd=plant({"a": ""})))
    if python is not None:
        assert to_python(go) == python
        re.compile(python)

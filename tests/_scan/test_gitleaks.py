"""Reading rules from files in gitleaks' format."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import Allowlist, Rule, load_rules, sarif, scan, sync
from ripwrap._scan.gitleaks import to_python, to_rust

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
        ("[[rules]]\nid = 'a'\nkeywords = ['b']", r"rule 1 \(a\) has no regex and no path"),
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


DEFAULT = r"""
title = "gitleaks config"

[allowlist]
description = "global allow lists"
paths = [
    '''(?i)\.(?:bmp|gif|jpe?g|png|svg|tiff?)$''',
    '''(?:^|/)node_modules(?:/.*)?$''',
]
regexes = ['''(?i)^true|false|null$''', '''^\$(?:\d+|{\d+})$''', '''^\{\{[ \t]*[\w ().|]+[ \t]*}}$''']
stopwords = ["abcdefghijklmnopqrstuvwxyz"]

[[rules]]
id = "widget-api-key"
description = "A key of Widget."
regex = '''(?i)[\w.-]{0,50}?(?:widget)(?:[ \t\w.-]{0,20})=[\x60'"\s=]{0,5}([a-z0-9]{12})(?:[\x60'"\s;]|\\[nr]|$)'''
entropy = 2
secretGroup = 1
keywords = ["widget"]
[[rules.allowlists]]
condition = "AND"
regexTarget = "line"
paths = ['''_test\.py$''']
regexes = ['''# fixture''']
[[rules.allowlists]]
regexTarget = "match"
stopwords = ["sample"]
regexes = ['''widget_none''']

[[rules]]
id = "pkcs12-file"
description = "Found a PKCS #12 file, which commonly contain bundled private keys."
path = '''(?i)(?:^|\/)[^\/]+\.p(?:12|fx)$'''
"""
"""Rules with all features of the default rules of gitleaks 8.28."""


def planted(plant: Plant) -> Path:
    return plant(
        {
            "a.py": "widget_key = 'a1b2c3d4e5f6'\nwidget_key = 'sample1b2c3d'\nwidget_none = 'a1b2c3d4e5f6'\n",
            "a_test.py": "widget_key = 'a1b2c3d4e5f6'  # fixture\n",
            "keys/one.p12": "\0\1binary",
            "TWO.PFX": "widget_key = 'z9y8x7w6v5u4'\n",
            "p12": "",
            "a.p12.txt": "",
            "node_modules/three.p12": "",
            ".four.p12": "",
            "ignored.p12": "",
            ".ignore": "ignored.p12",
        }
    )


@pytest.mark.parametrize("options", [{}, {"overlaps": True}, {"sort": "path"}])
def test_rules_like_the_default_of_gitleaks_find_texts_and_names(
    options: dict[str, Any], tmp_path: Path, plant: Plant
) -> None:
    folder = planted(plant)
    hits = list(sync.scan(load_rules(write(tmp_path, DEFAULT)), cwd=folder, **options))
    assert sorted((hit.rule, (hit.path or "").replace(os.sep, "/"), hit.line_number) for hit in hits) == [
        ("pkcs12-file", ".four.p12", None),
        ("pkcs12-file", "TWO.PFX", None),
        ("pkcs12-file", "keys/one.p12", None),
        ("widget-api-key", "TWO.PFX", 1),
        ("widget-api-key", "a.py", 1),
    ]
    assert [hit.lines for hit in hits if hit.rule == "pkcs12-file"] == ["", "", ""]
    assert len({hit.fingerprint for hit in hits}) == 5


def test_rule_with_only_a_path_obeys_paths_globs_and_limits(tmp_path: Path, plant: Plant) -> None:
    folder, rules = planted(plant), load_rules(write(tmp_path, DEFAULT))
    names = rules[1:]
    assert [hit.path for hit in sync.scan(names, cwd=folder, paths="keys")] == [os.path.join("keys", "one.p12")]
    assert {hit.path for hit in sync.scan(names, cwd=folder, hidden=False, glob="*.pfx")} == set()
    assert {hit.path for hit in sync.scan(names, cwd=folder, hidden=False)} == {
        os.path.join("keys", "one.p12"),
        "TWO.PFX",
    }
    assert len(list(sync.scan(names, cwd=folder, limit=1))) == 1
    assert len(list(sync.scan(rules, cwd=folder, limit=3))) == 3
    log = sarif(sync.scan(names, cwd=folder, paths="keys"), names)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "keys/one.p12"}}


@pytest.mark.anyio
async def test_rule_with_only_a_path_finds_names_in_an_async_scan(
    tmp_path: Path, plant: Plant, anyio_backend: str
) -> None:
    folder, rules = planted(plant), load_rules(write(tmp_path, DEFAULT))
    assert len([hit async for hit in scan(rules, cwd=folder)]) == 5
    assert len([hit async for hit in scan(rules, cwd=folder, limit=3)]) == 3


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

"""Reading rules from files, and what such rules find."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import Allowlist, Rule, load_rules, sarif, scan, sync
from ripwrap._scan.rules import allow_comment

Plant = Callable[..., Path]

WHOLE = r"""
[[rules]]
id = "token"
description = "A token"
pattern = '''\btok_([\w-]{8,})\b'''
keywords = ["tok_"]
entropy = 2
secret_group = 1
tags = ["token"]

[[rules.allowlists]]
paths = ['''(^|/)vendor/''']
stopwords = ["example"]

[[rules.allowlists]]
condition = "all"
target = "line"
regexes = ['''(?i)fixture$''']
paths = ['''_test\.py$''']

[[rules]]
id = "key"
pattern = '''-----BEGIN KEY-----[\s\S]{8,}?-----END KEY-----'''
path = '''\.pem$'''
multiline = true

[[rules.allowlists]]
target = "match"
regexes = ['''AAAA''']
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "rules.toml"
    path.write_text(text, "utf-8")
    return path


def test_rules_have_what_the_file_says(tmp_path: Path) -> None:
    vendor = Allowlist(paths=("(^|/)vendor/",), stopwords=("example",))
    tests = Allowlist(paths=(r"_test\.py$",), regexes=("(?i)fixture$",), target="line", condition="all")
    assert load_rules(write(tmp_path, WHOLE)) == (
        Rule(
            id="token",
            pattern=r"\btok_([\w-]{8,})\b",
            description="A token",
            keywords=("tok_",),
            entropy=2,
            secret_group=1,
            tags=("token",),
            allowlists=(vendor, tests, allow_comment()),
        ),
        Rule(
            id="key",
            pattern=r"-----BEGIN KEY-----[\s\S]{8,}?-----END KEY-----",
            path=r"\.pem$",
            multiline=True,
            allowlists=(Allowlist(regexes=("AAAA",), target="match"), allow_comment()),
        ),
    )


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


RULE = "[[rules]]\nid = 'a'\npattern = 'b'\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[rules", "is not valid TOML"),
        ("", "rules: Field required"),
        ("rules = []", "rules: .*at least 1 item"),
        ("rules = 'a'", "rules: .*got 'a'"),
        ("rules = ['a']", r"rules\.0: .*got 'a'"),
        (f"title = 'x'\n{RULE}", "title: .*not permitted, got 'x'"),
        ("[[rules]]\npattern = 'a'", "rule 1: id: Field required"),
        ("[[rules]]\nid = 'a'\nkeywords = ['b']", "rule a has no pattern and no path; add one of them"),
        (f"{RULE}required = []", r"rule 1 \(a\): required: .*not permitted"),
        (f"{RULE}keywords = 'c'", r"rule 1 \(a\): keywords: .*got 'c'"),
        (f"{RULE}entropy = 'c'", r"rule 1 \(a\): entropy: .*got 'c'"),
        (f"{RULE}path = '['", r"rule 1 \(a\): path: .*Python's re cannot compile '\['"),
        (f"{RULE}[[rules.allowlists]]\ntarget = 'd'", r"rule 1 \(a\): allowlists\.0\.target: .*got 'd'"),
        (f"{RULE}{RULE}", "2 rules are called 'a'; rename all but one"),
    ],
)
def test_what_a_file_cannot_say_is_an_error_with_its_key(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"rules\.toml.*{says}"):
        load_rules(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("title = 'x'\n[[rules]]\nid = 'a'\nregex = '(?i)b'\n", "regex"),
        ("[extend]\nuseDefault = true\n", "extend"),
        (f"{RULE}secretGroup = 1\n", "secretGroup"),
        (f"{RULE}[[rules.allowlists]]\nregexTarget = 'line'\n", "regexTarget"),
        (f"{RULE}[[allowlists]]\ntargetRules = ['a']\n", "allowlists"),
        (f"{RULE}[allowlist]\npaths = ['b']\n", "allowlist"),
    ],
)
def test_file_of_gitleaks_is_refused_with_what_to_do_instead(text: str, key: str, tmp_path: Path) -> None:
    says = rf"rules\.toml is a file of gitleaks, as its key '{key}' shows; .*pattern in the syntax of rg .*run gitleaks"
    with pytest.raises(ValueError, match=says):
        load_rules(write(tmp_path, text))


DEFAULT = r"""
[[rules]]
id = "widget-api-key"
description = "A key of Widget."
pattern = '''(?i)[\w.-]{0,50}?(?:widget)(?:[ \t\w.-]{0,20})=[\x60'"\s=]{0,5}([a-z0-9]{12})(?:[\x60'"\s;]|\\[nr]|$)'''
entropy = 2
secret_group = 1
keywords = ["widget"]
[[rules.allowlists]]
condition = "all"
target = "line"
paths = ['''_test\.py$''']
regexes = ['''# fixture''']
[[rules.allowlists]]
target = "match"
stopwords = ["sample"]
regexes = ['''widget_none''']

[[rules]]
id = "pkcs12-file"
description = "Found a PKCS #12 file, which commonly contain bundled private keys."
path = '''(?i)(?:^|\/)[^\/]+\.p(?:12|fx)$'''
[[rules.allowlists]]
paths = ['''(?:^|/)node_modules(?:/.*)?$''']
"""
"""Rules with all attributes."""


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


def test_matches_in_lines_with_gitleaks_allow_are_left_out(tmp_path: Path, plant: Plant) -> None:
    """The comment had no effect."""
    texts = {
        "a.py": "a = 'tok_a1b2c3d4'  # gitleaks:allow\nb = 'tok_a1b2c3d4'\nc = 'tok_e5f6a7b8'  #gitleaks:allow",
        "a.pem": "-----BEGIN KEY-----\nabcdefgh gitleaks:allow\n-----END KEY-----\n",
        "b.pem": "# gitleaks:allow\n-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----\n# gitleaks:allow\n",
        # rg reports matches that touch the same line as one, with the lines of all.
        "c.pem": "-----BEGIN KEY-----\na\n234567-----END KEY----- -----BEGIN KEY-----\ngitleaks:allow-----END KEY-----",
    }
    hits = list(sync.scan(load_rules(write(tmp_path, WHOLE)), cwd=plant(texts), sort="path"))
    assert sorted((hit.path, hit.line_number) for hit in hits) == [("a.py", 2), ("b.pem", 2), ("c.pem", 1)]


@pytest.mark.parametrize("options", [{}, {"overlaps": True}, {"sort": "path"}])
def test_rules_with_all_attributes_find_texts_and_names(options: dict[str, Any], tmp_path: Path, plant: Plant) -> None:
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

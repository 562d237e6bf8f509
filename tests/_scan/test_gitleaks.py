"""Reading rules from files in gitleaks' format."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import Allowlist, Rule, load_rules, sarif, scan, sync
from ripwrap._scan.allow_comment import ALLOW_COMMENT
from ripwrap._scan.nodes import written
from ripwrap._scan.syntax import parse_go

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
    everywhere = Allowlist(paths=(r"(\A|/)vendor/",), stopwords=("example",))
    fixture = r"[Ff][Ii][Xx][Tt][Uu][Rr][Ee]\Z"
    tests = Allowlist(paths=(r"_test\.py\Z",), regexes=(fixture,), target="line", condition="all")
    assert load_rules(write(tmp_path, WHOLE)) == (
        Rule(
            id="token",
            pattern=r"(?-u:\b)tok_([0-9A-Z_a-z-]{8,})(?-u:\b)",
            description="A token",
            keywords=("tok_",),
            entropy=2,
            secret_group=1,
            tags=("token",),
            allowlists=(everywhere, tests, ALLOW_COMMENT),
        ),
        Rule(
            id="key",
            pattern=r"-----BEGIN KEY-----[\t\n\f\r [^\t\n\f\r ]]{8,}?-----END KEY-----",
            path=r"\.pem\Z",
            multiline=True,
            allowlists=(Allowlist(regexes=("AAAA",), target="match"), everywhere, ALLOW_COMMENT),
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
        ("[[rules]]\nid = 'a'\nregex = 'b'\npath = '['", r"rule 1 \(a\): a missing \] in the pattern '\['"),
        ("[[rules]]\nid = 'a'\nregex = 'b'\npath = 3", r"rule 1 \(a\): a regular expression must be a string, got 3"),
        (
            "[[rules]]\nid = 'a'\nregex = 'b'\n[rules.allowlist]\npaths = ['[[:x:]]']",
            r"allowlist 1: an unknown class \[:x:\]",
        ),
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
        (r"\w\D[\w.-][^\W]", r"[0-9A-Z_a-z][^0-9][0-9A-Z_a-z.-][^[^0-9A-Z_a-z]]", None),
        (r"a{2,3}b{c}\{", r"a{2,3}b\{c\}\{", r"a{2,3}b\{c\}\{"),
        (r"[[a&&b~~]c", r"[\[a\&\&b\~\~]c", r"[\x26\x5ba-b\x7e]c"),
        (r"[]a](?<n>b)\z", r"[\]a](?P<n>b)\z", r"[\x5da](b)\Z"),
        (r"a(b(?i)c)(?i)[d(]", r"a(b(?i)c)(?i)[d(]", r"a(b[Cc])[\x28Dd]"),
        (r"(?i)a|b", r"(?i)a|b", r"[Aa]|[Bb]"),
        (r"[[:alpha:]_]\Qa.b\E\x60\_\<", r"[[:alpha:]_]a\.b\x60_<", r"[A-Z_a-z]a\.b`_<"),
    ],
)
def test_patterns_of_go_are_translated(go: str, rust: str, python: str | None, plant: Plant) -> None:
    assert parse_go(go).rust == rust
    list(sync.search(rust, cwd=plant({"a": ""})))
    if python is not None:
        assert written(parse_go(go).tree).text == python


LINES = (
    *"AkKs\u017f\u212a\u0131\u0130\u03a9\u03c9\u00e9\u00df\u1e9e\U0001f600_-7\u0664 \xa0\v\a\x1c{]^",
    *("ab", "\u00e9b", "a b", "a.b"),
)
OTHERS = tuple("_-7\u0664 \xa0\v\a\x1c{]^\U0001f600")
"""Characters of `LINES` that are no letters."""

MATCHES: dict[str, tuple[str, ...]] = {
    r"^\p{Greek}$": ("\u03a9", "\u03c9"),
    r"^\P{^Greek}$": ("\u03a9", "\u03c9"),
    r"^[\p{Greek}_]$": ("\u03a9", "\u03c9", "_"),
    r"^\x{1F600}$": ("\U0001f600",),
    r"^[\x{1F600}\x41]$": ("A", "\U0001f600"),
    r"^\101$": ("A",),
    r"^[\101-\103\07]$": ("A", "\a"),
    r"^\pN$": ("7", "\u0664"),
    r"^\p{^L}$": OTHERS,
    r"^[[:^alpha:]]$": tuple(line for line in LINES if len(line) == 1 and line not in "AkKs"),
    r"^[^[:^alpha:]]$": ("A", "k", "K", "s"),
    r"^[^\D]$": ("7",),
    r"^[\W\d]$": tuple(line for line in LINES if len(line) == 1 and line not in "AkKs_"),
    r"^\s$": (" ",),
    "^(?i)k$": ("k", "K", "\u212a"),
    r"^(?i:[^\W_])$": ("A", "k", "K", "s", "\u017f", "\u212a", "7"),
    "^(?i)i$": (),
    r"^(?i)\x{1E9E}$": ("\u00df", "\u1e9e"),
    r"^(?i:\p{Lu})$": tuple("AkKs\u017f\u212a\u0130\u03a9\u03c9\u00e9\u00df\u1e9e"),
    r"\bb": ("\u00e9b", "a b", "a.b"),
    r"\Bb": ("ab",),
    "a(?i)X|B$": ("ab", "\u00e9b", "a b", "a.b"),
    r"a\Q.\Eb": ("a.b",),
    "^[^]^{]$": tuple(line for line in LINES if len(line) == 1 and line not in "]^{"),
    "^[ --]$": ("-", " "),
    "^(?U)a.*?b$": ("ab", "a b", "a.b"),
}
"""Patterns of Go, and the lines that they match, as in RE2 (google-re2 1.1.20251105), whose syntax is that of Go."""


@pytest.mark.slow
@pytest.mark.parametrize("go", MATCHES)
def test_patterns_of_go_match_what_re2_matches(go: str, plant: Plant) -> None:
    r"""`\p{Greek}` and `\x{1F600}` were escaped, and `\101`, `\pL` and `[[:^alpha:]]` were errors."""
    folder = plant({"a": "".join(f"{line}\n" for line in LINES)})
    rule = Rule(id="a", pattern=parse_go(go).rust)
    found = [hit.lines.removesuffix("\n") for hit in sync.scan([rule], cwd=folder, text=True)]
    assert found == [line for line in LINES if line in MATCHES[go]]
    if "Greek" in go:  # Python has no table of scripts
        with pytest.raises(ValueError, match=r"does not support \\p\{Greek\} here"):
            written(parse_go(go).tree)
    else:
        expression = re.compile(written(parse_go(go).tree).text)
        assert [line for line in LINES if expression.search(line)] == found


@pytest.mark.parametrize("key", ["paths", "regexes"])
@pytest.mark.parametrize(
    ("go", "allowed"),
    [
        (r"\bé$", set[str]()),
        (r"é\b", set[str]()),
        (r"a\bé", {"aéé"}),
        (r"é\B", {"é", "aéé"}),
        (r"^[^\D]+$", {"1"}),
        (r"^[\W\d]+[\w]$", {"\u0664a"}),
        (r"^(?i)[^\w]$", {"é", "\u0664"}),
    ],
)
def test_allowlists_and_paths_of_go_are_ascii(
    key: str, go: str, allowed: set[str], tmp_path: Path, plant: Plant
) -> None:
    r"""`\b`, `\B`, `[^\D]` and `[\W\d]` matched all of Unicode in allowlists and paths, as Python does."""
    texts = ["aéé", "é", "\u0664", "\u0664a", "1", "\u017f"]
    folder = plant({text: f"{text}\n" for text in texts})
    rules = load_rules(write(tmp_path, f"[[rules]]\nid = 'a'\nregex = '.+'\n[rules.allowlist]\n{key} = ['''{go}''']\n"))
    assert {hit.path for hit in sync.scan(rules, cwd=folder)} == set(texts) - allowed


@pytest.mark.parametrize(
    ("go", "says"),
    [
        ("a(?=b)", "does not support"),
        (r"\1", r"the escape \\1"),
        (r"\8", r"the escape \\8"),
        ("(a", r"a missing \)"),
        ("a)", r"unexpected \)"),
        ("[a", r"a missing \]"),
        ("[b-a]", "a wrong range"),
        (r"[a-\d]", "a wrong range"),
        ("[[:foo:]]", r"an unknown class \[:foo:\]"),
        ("a**", "two repetitions"),
        ("*a", r"nothing before \*"),
        ("{2}", r"nothing before \{"),
        ("a{2,1}", r"a wrong count \{2,1\}"),
        (r"\C", r"the escape \\C"),
        (r"\p", r"an incomplete \\p"),
        (r"\x{110000}", "a number of no character"),
        ("(?x)a", "the flag 'x'"),
        ("a\\", "the escape"),
        ("(" * 2_000, "groups in groups"),
    ],
)
def test_pattern_that_is_none_of_go_is_refused_with_its_place(go: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"rule 1 \(a\): .*{says}.* in the pattern .*, at character \d+"):
        load_rules(write(tmp_path, f"[[rules]]\nid = 'a'\nregex = '''{go}'''"))

"""Scanning for many rules, on asyncio, on trio and blocking."""

import gzip
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import ripwrap
from ripwrap import Allowlist, CapabilityError, CapturedMatch, PatternError, Rule, ScanMatch, sync
from ripwrap.binary import RgBinary
from support.effort import times

Plant = Callable[..., Path]
Hit = tuple[str, str, int, str, tuple[str | None, ...]]
RULES = {"aws": r"AKIA[0-9A-Z]{16}", "todo": r"TODO\((?P<who>\w+)?\)"}
KEY = "AKIA" + "Q" * 16
LONG_LINE = f"TODO(){' ' * 300_000}\n"
"""Line of which 28 are a batch, so that few matches need several batches."""


def told(hits: Iterable[ScanMatch]) -> list[Hit]:
    return sorted(
        (one.rule, one.path or "", one.absolute_offset + one.submatches[0].start, one.submatches[0].match, one.groups)
        for one in hits
    )


def scanned(rules: "Mapping[str, str] | Iterable[Rule]", folder: Path, **options: Any) -> list[Hit]:
    return told(sync.scan(rules, cwd=folder, **options))


def searched(rules: Mapping[str, str], folder: Path, **options: Any) -> list[Hit]:
    """Return what one search for each rule finds."""
    found: list[ScanMatch] = []
    for rule, pattern in rules.items():
        for match in sync.search(pattern, cwd=folder, captures=True, **options):
            assert isinstance(match, CapturedMatch)
            for submatch, captures in zip(match.submatches, match.captures, strict=True):
                known = {**dict(match), "submatches": (submatch,), "captures": (captures,), "rule": rule}
                found.append(ScanMatch(**known))
    return told(found)


@pytest.mark.anyio
@pytest.mark.rg_ends
@pytest.mark.usefixtures("leaks_nothing", "temporary")
async def test_texts_have_their_rules_and_groups_from_rg_15_on(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a.py": f"# TODO(ada) {KEY}\n# TODO()\n", "b.py": "nothing\n"})
    scan = ripwrap.scan(RULES, cwd=folder, rg=rg)
    if rg.version < (15,):
        with pytest.raises(CapabilityError, match=r"^scan\(\) needs rg 15.*\nUse a newer rg: pip"):
            await anext(scan)
        return
    hits = [hit async for hit in scan]
    assert [(hit.rule, hit.line_number, hit.spans(), hit.groups, hit.named) for hit in hits] == [
        ("todo", 1, ((2, 11),), ("ada",), {"who": "ada"}),
        ("aws", 1, ((12, 32),), (), {}),
        ("todo", 2, ((2, 8),), (None,), {"who": None}),
    ]
    assert hits[0].lines == f"# TODO(ada) {KEY}\n"
    assert ScanMatch.model_validate_json(hits[0].model_dump_json()) == hits[0]


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.usefixtures("leaks_nothing", "temporary")
async def test_a_scan_can_be_left_early(plant: Plant) -> None:
    folder = plant({str(number): LONG_LINE * 20 for number in range(3)})
    scan = ripwrap.scan(RULES, cwd=folder)
    assert (await anext(scan)).rule == "todo"
    await scan.aclose()
    hits = [hit async for hit in ripwrap.scan(RULES, cwd=folder, limit=3)]
    assert len(hits) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("temporary")
def test_every_batch_of_lines_is_searched(plant: Plant) -> None:
    folder = plant({"a": "".join(f"TODO(u{number}){LONG_LINE[6:]}" for number in range(60))})
    hits = list(sync.scan(RULES, cwd=folder))
    assert [hit.named["who"] for hit in hits] == [f"u{number}" for number in range(60)]
    assert [hit.line_number for hit in hits] == list(range(1, 61))


@pytest.mark.slow
def test_of_overlapping_texts_the_leftmost_of_the_first_rule_is_told(plant: Plant) -> None:
    folder = plant({"a": "abcd\nbcd\n"})
    rules = {"second": "bc", "first": "ab", "third": "cd", "long": "bcd"}
    assert [hit[:4:3] for hit in scanned(rules, folder)] == [("first", "ab"), ("second", "bc"), ("third", "cd")]
    assert scanned(rules, folder, overlaps=True) == searched(rules, folder)
    assert len(scanned(rules, folder, overlaps=True)) == 7


def test_rules_that_are_searched_alone_overlap_the_others(plant: Plant) -> None:
    folder = plant({"a": "one\ntwo\n", "b": "two\n"})
    rules = [Rule(id="lines", pattern=r"one\s+two", multiline=True), Rule(id="two", pattern="two")]
    assert [hit[:2] for hit in scanned(rules, folder)] == [("lines", "a"), ("two", "b")]
    assert [hit[:2] for hit in scanned(rules, folder, overlaps=True)] == [("lines", "a"), ("two", "a"), ("two", "b")]


@pytest.mark.parametrize("multiline", [False, True])
@pytest.mark.parametrize("null_data", [False, True])
def test_rule_that_is_searched_alone_has_its_groups(plant: Plant, multiline: bool, null_data: bool) -> None:
    """Between groups that may have a newline, rg writes a random text, which must be known where they are read."""
    folder = plant({"a": "one\ntwo\n"})
    rule = Rule(id="lines", pattern=r"(o)(n)(?P<last>e)", multiline=multiline)
    (hit,) = sync.scan([rule], cwd=folder, null_data=null_data)
    assert (hit.captures[0].groups, hit.captures[0].named) == (("o", "n", "e"), {"last": "e"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "options"),
    [
        ({"start": r"\Ab", "space": "(?x) b # c\n", "back": r"(b)c"}, {}),
        ({"start": "(?-m:^)b", "end": "b(?-m:$)", "back": r"(b)c"}, {}),
        ({"end": r"(b|c)\z", "either": r"b(\z|b)", "all": r"c?(?:b?c)"}, {}),
        ({"end": r"b\z", "other": "c"}, {"crlf": True}),
        ({"group": "(b)?c", "twice": "(?:b?x){0,3}c", "part": "(?:x?b){2}"}, {}),
        ({"back": r"(b)\1", "look": "(?<=b)b", "name": "(?P<x>b)", "other": "(?P<x>c)"}, {"pcre2": True}),
        ({"same": "(?P<x>b)", "name": "(?P<x>c)", "empty": "$", "none": "x*"}, {}),
        ({"case": "B", "flag": "(?-i)B", "group": "(?i:C)"}, {"ignore_case": True}),
        ({"byte": r"(?-u:[\xe0-\xff])+", "any": "(?-u:.)b"}, {}),
        ({"word": "b+", "part": "bb"}, {"word_regexp": True}),
        ({"line": "b.*", "part": "b"}, {"line_regexp": True}),
        ({"end": "b$", "any": "b"}, {"crlf": True}),
        ({"end": "b", "over": r"c(?s:.)d"}, {"null_data": True}),
        ({"one": "bb", "two": "B(c)"}, {"encoding": "utf-16le"}),
        ({"letter": r"\w+", "ascii": r"(?-u:\w)+"}, {"no_unicode": True}),
        ({"long s": "(?iu)keys"}, {"no_unicode": True}),
    ],
)
def test_the_answer_is_that_of_single_searches(rules: dict[str, str], options: dict[str, Any], plant: Plant) -> None:
    texts = {
        "a": "bbc\nb\nxcb\r\n",
        "b.bin": b"b\0b\n" + b"c\n" * 9,
        "utf16": "\ufeffbb\nBc\u00e9\n".encode("utf-16-le"),
        "bom": b"\xef\xbb\xbfbc",
        "bytes": b"\xffbb \xfe\n\xe9b\nc\nd b\xc3\xa9\n",
        "fold": "key\u017f\n",
    }
    folder = plant(texts)
    expected = searched(rules, folder, **options)
    assert scanned(rules, folder, overlaps=True, **options) == expected
    assert expected


@pytest.mark.fact(60)
def test_the_end_of_the_file_is_that_of_each_line(plant: Plant) -> None:
    folder = plant({"a": "b\nbx\nb"})
    for paths in ((), "a"):
        found = {match.line_number: match.spans() for match in sync.search(r"b\z", cwd=folder, paths=paths)}
        assert found == {1: ((0, 1),), 3: ((0, 1),)}
    found = {match.line_number: match.spans() for match in sync.search(r"\Ab", cwd=folder)}
    assert found == dict.fromkeys((1, 2, 3), ((0, 1),))
    found = {match.line_number: match.spans() for match in sync.search(r"\Ab", cwd=folder, paths="a")}
    assert found == {1: ((0, 1),), 2: (), 3: ()}


@pytest.mark.fact(62)
@pytest.mark.rg_ends
@pytest.mark.parametrize("also", [(), ("never",)])
def test_a_match_may_begin_too_late(also: tuple[str, ...], rg: RgBinary, plant: Plant) -> None:
    (match,) = sync.search([r"(?:\.a+)*a", *also], cwd=plant({"a": "x.aax\n"}), rg=rg)
    assert match.spans() == (((1, 4),) if also or rg.version < (14,) else ((2, 3), (3, 4)))


PATTERNS = st.sampled_from(
    ["a", "ab", "(a)b?", "b+", "a|b", "[ab]c", "(?i)A", r"\bc", "c$", "^a", "(?P<n>a+)(b)?", "é", "b*"]
)


@pytest.mark.slow
@given(patterns=st.lists(PATTERNS, min_size=1, max_size=5), texts=st.lists(st.text("abcé \n", max_size=30), max_size=3))
def test_any_rules_find_what_single_searches_find(
    patterns: list[str], texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("scan")
    for number, text in enumerate(texts):
        (folder / str(number)).write_text(text, "utf-8")
    rules = {f"r{number}": pattern for number, pattern in enumerate(patterns)}
    expected = searched(rules, folder)
    assert scanned(rules, folder, overlaps=True) == expected
    chosen = scanned(rules, folder)
    assert set(chosen) <= set(expected)
    taken = sorted(map(place, chosen))
    assert all(one[0] != two[0] or one[2] <= two[1] for one, two in pairwise(taken))
    for path, start, end in map(place, expected):  # a text that was left out overlaps one that was chosen
        same = [(first, last) for one, first, last in taken if one == path]
        assert any(start == first or (start < last and first < end) for first, last in same)


MANY = {
    **{f"rare {number}": f"(?i)word{number}\\b(x)?" for number in range(12)},
    "parts": r"abc(?:d|e)?f(?P<rest>\w*)",
    "end": r"(words?)\z",
    "wide": r"(?i)[a-z_]{0,20}?(?:word|key)_?(=)(\d*)",
    "short": r"(k)?e",
    "digits": r"\d+(?P<unit>x|y)?",
    "test": "test(ed)?",
    "space": "(?x) abc  d",
    "none": "z*",
}
"""Rules for two runs, of which some have rare literals and others have none, and for runs of their own."""

PIECES = ["word1", "Word11x", "word", "_", "key=12", "abcdf", "abcef", "tested", "abc", "WORD3 ", *"\u017f \n\né"]


@pytest.mark.slow
@settings(max_examples=times(4, 300))
@given(texts=st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), min_size=1, max_size=3))
def test_many_rules_find_what_single_searches_find(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("scan")
    for number, text in enumerate(texts):
        (folder / str(number)).write_text(text, "utf-8")
    expected = searched(MANY, folder)
    assert scanned(MANY, folder, overlaps=True) == expected
    assert scanned(MANY, folder, overlaps=True, sort="path") == expected
    assert scanned(dict(list(MANY.items())[-8:]), folder, overlaps=True) == [
        hit for hit in expected if hit[0] in list(MANY)[-8:]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"sort": "path"}])
def test_many_rules_yield_texts_file_by_file_in_order(options: dict[str, Any], plant: Plant) -> None:
    rules = {**{f"rare {number}": f"word{number}\\b" for number in range(16)}, "digits": r"\d+x", "over": "rd1 2"}
    texts = {"a": "word1 2x word2\n3x\nnone\nword3\n", "b": "word4\n", "c": "4x\n", "d": "5x\nword5 6x\n"}
    folder = plant(texts)
    every = list(sync.scan(rules, cwd=folder, overlaps=True, **options))
    assert told(every) == searched(rules, folder)
    hits = list(sync.scan(rules, cwd=folder, **options))
    assert {hit.rule for hit in every} - {hit.rule for hit in hits} == {"over"}
    for found in (every, hits):
        files = [list(group) for _, group in groupby(found, key=lambda hit: hit.path)]
        assert len(files) == len(texts)
        places = [[hit.absolute_offset + hit.submatches[0].start for hit in group] for group in files]
        assert places == [sorted(group) for group in places]
    assert [hit.path for hit in hits] == sorted(hit.path or "" for hit in hits) or not options
    assert len(list(sync.scan(rules, cwd=folder, limit=3, **options))) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("temporary")
def test_texts_of_two_runs_are_in_order_in_a_file_of_several_batches(plant: Plant) -> None:
    rules = {**{f"rare {number}": f"word{number}\\b" for number in range(16)}, "digits": r"\d+x"}
    end = f"{' ' * 30_000}\n"  # 280 such lines are a batch
    folder = plant({"a": f"1x{end}" * 200 + f"word1\n2x{end}" * 200 + "word2\n", "b": "word2\n3x\n"})
    hits = list(sync.scan(rules, cwd=folder))
    lines = {path: [hit.line_number for hit in group] for path, group in groupby(hits, key=lambda hit: hit.path)}
    assert lines == {"a": [*range(1, 602)], "b": [1, 2]}


def place(hit: Hit) -> tuple[str, int, int]:
    """Return the path of a text, and its start and end in bytes."""
    _, path, start, text, _ = hit
    return path, start, start + len(text.encode())


@pytest.mark.slow
@pytest.mark.usefixtures("temporary")
def test_a_thousand_rules_are_searched_at_once(plant: Plant) -> None:
    rules = {
        f"rule-{number}": rf"(?i)key{number}\b['\"= ]{{1,5}}(?P<value>[a-z0-9]{{16,32}})" for number in range(1000)
    }
    folder = plant({"a": f"KEY7 = '{'a' * 20}'\nkey999={'b' * 16}\nkey1000={'c' * 16}\n"})
    hits = list(sync.scan(rules, cwd=folder))
    assert [(hit.rule, hit.named) for hit in hits] == [
        ("rule-7", {"value": "a" * 20}),
        ("rule-999", {"value": "b" * 16}),
    ]


@pytest.mark.slow
def test_rules_of_too_large_a_regex_are_split(plant: Plant) -> None:
    folder = plant({"a": "a1 b2 c3\n"})
    rules = {letter: rf"{letter}([0-9]{{1,200}})" for letter in "abc"}
    assert scanned(rules, folder, regex_size_limit="50K") == searched(rules, folder)
    with pytest.raises(PatternError, match="rule 'a': compiled regex exceeds size limit"):
        scanned(rules, folder, regex_size_limit="1K")


@pytest.mark.parametrize(
    ("pattern", "offset", "says"),
    [
        ("ab(c", 2, "unclosed group"),
        (r"x\p{Foo}", 1, "Unicode property"),
        ("[z-a]", 1, "invalid character class range"),
        (r"(a)\1", 3, "Pass pcre2=True"),
    ],
)
def test_a_rule_that_does_not_compile_is_named(pattern: str, offset: int, says: str, folder: Path) -> None:
    with pytest.raises(PatternError, match=f"rule 'bad': [\\s\\S]*{says}") as raised:
        scanned({"good": "a(b)", "bad": pattern, "also": "c"}, folder)
    assert (raised.value.rule, raised.value.pattern, raised.value.offset) == ("bad", pattern, offset)


@pytest.mark.parametrize(
    ("rules", "says"),
    [({}, "no rules given"), ([Rule(id="a", pattern="b")] * 2, "2 rules are called 'a'")],
)
def test_rules_that_cannot_be_told_apart_are_refused(rules: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ripwrap.scan(rules)


@pytest.mark.parametrize("rules", ["abc", 1, {"a": 1}, ["a"], {1: "a"}])
def test_rules_of_other_types_are_refused(rules: Any) -> None:
    with pytest.raises(TypeError, match="rule"):
        ripwrap.scan(rules)


@pytest.mark.parametrize("name", ["fixed_strings", "invert_match", "smart_case", "multiline"])
def test_options_that_a_scan_cannot_follow_are_refused(name: str) -> None:
    options: dict[str, Any] = {name: True}
    with pytest.raises(ValueError, match=f"{name} does not apply to a scan"):
        ripwrap.scan(RULES, **options)


def test_unknown_options_are_refused() -> None:
    options: dict[str, Any] = {"ignorecase": True}
    with pytest.raises(ValidationError, match="ignore_case"):
        ripwrap.scan(RULES, **options)


def test_a_scan_ends_at_its_timeout(plant: Plant) -> None:
    with pytest.raises(TimeoutError):
        list(sync.scan(RULES, cwd=plant({"a": "TODO()\n"}), timeout=0))


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"path": r"\.py$"}, ["a.py", "c.py"]),
        ({"keywords": ("SECRET",)}, ["b.txt"]),
        ({"keywords": ("key",)}, ["a.py", "b.txt", "c.py"]),
        ({"entropy": 1.0}, ["b.txt", "c.py"]),
        ({"entropy": 2.0}, ["b.txt"]),
        ({"allowlists": (Allowlist(stopwords=("AAAA",)),)}, ["b.txt", "c.py"]),
        ({"allowlists": (Allowlist(regexes=("^key",)),)}, ["a.py", "b.txt", "c.py"]),
        ({"allowlists": (Allowlist(regexes=("^key",), target="match"),)}, []),
        ({"allowlists": (Allowlist(regexes=("# test",), target="line"),)}, ["a.py", "b.txt"]),
        ({"allowlists": (Allowlist(paths=("c",), stopwords=("aaaa",)),)}, ["b.txt"]),
        ({"allowlists": (Allowlist(paths=("c",), stopwords=("aaaa",), condition="all"),)}, ["a.py", "b.txt", "c.py"]),
        ({"secret_group": 2, "entropy": 0.1}, []),
    ],
)
def test_a_rule_leaves_out_matches(rule: dict[str, Any], found: list[str], plant: Plant) -> None:
    folder = plant({"a.py": "key=aaaaaaaa\n", "b.txt": "key=a1b2c3d4\nmore\nsecret\n", "c.py": "key=abcabcab # test\n"})
    known = Rule(id="key", pattern=r"key=([a-z0-9]{8})(x)?", **rule)
    assert sorted(hit.path or "" for hit in sync.scan([known], cwd=folder)) == found


KEYWORDS = ("Пароль", "geheimnis\u017ftraße", "\u212aey.*", "ΟΔΟΣ")


@pytest.mark.slow
@pytest.mark.parametrize("between", [" ", "\n"])
@pytest.mark.parametrize(
    ("word", "encodings"),
    [
        ("Пароль", ("utf-8", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-16", "cp1251", "koi8-r")),
        ("ПАРОЛЬ", ("utf-8", "utf-16-le", "utf-16", "cp1251")),
        ("пароль", ("utf-8", "utf-16-be", "cp1251")),
        ("GEHEIMNISSTRA\u1e9eE", ("utf-8", "utf-16-le")),
        ("key.*", ("utf-8", "utf-16-le", "cp1251")),
        ("οδος", ("utf-8", "utf-16", "iso8859-7")),
        ("οδοσα", ("utf-8",)),
        ("keyx*", ()),
        ("", ()),
    ],
)
def test_keywords_and_files_are_folded_and_decoded_in_the_same_way(
    word: str, encodings: tuple[str, ...], between: str, plant: Plant
) -> None:
    """Words with other letters than ASCII, and words in UTF-16 without a mark, dropped all secrets."""
    rules = [Rule(id="k", pattern=r"secret=(\S+)", keywords=KEYWORDS), Rule(id="other", pattern="nothing")]
    labels = {"utf-16-le": "utf-16le", "utf-16-be": "utf-16be", "cp1251": "cp1251", "koi8-r": "koi8-r"}
    labels["iso8859-7"] = "iso-8859-7"
    for encoding in encodings or ("utf-8",):
        folder = plant({f"{encoding}.txt": f"{word}{between}secret=abc\n".encode(encoding)})
        options: dict[str, Any] = {"encoding": labels[encoding]} if encoding in labels else {}
        hits = list(sync.scan(rules, cwd=folder, paths=f"{encoding}.txt", **options))
        assert [hit.groups for hit in hits] == [("abc",)] * bool(encodings)


def test_keywords_are_looked_for_after_a_nul_and_in_files_with_any_name(plant: Plant) -> None:
    folder = plant({"-e": b"secret=abc\n\0 word\n", "ä b.txt": "secret=abc\nWORD", ".hidden": "word\nsecret=abc"})
    rule = Rule(id="k", pattern=r"secret=(\S+)", keywords=("word",))
    everything: dict[str, Any] = {"hidden": True, "text": True}
    assert sorted(hit.path or "" for hit in sync.scan([rule], cwd=folder, **everything)) == ["-e", ".hidden", "ä b.txt"]
    lines = Rule(id="l", pattern=r"secret=a(?s:.)", keywords=("word",), multiline=True)
    found = sync.scan([rule, lines], cwd=folder, overlaps=True, **everything)
    assert sorted((hit.path, hit.rule) for hit in found)[:2] == [("-e", "k"), ("-e", "l")]


def test_keywords_are_looked_for_in_the_place_of_the_scan(plant: Plant) -> None:
    """A keyword was looked for in a file of the directory, whatever the scan had read."""
    rule = Rule(id="k", pattern=r"secret=(\S+)", keywords=("word",))
    without = {"a.txt": "secret=abc\n", "c.txt": "secret=abc\nnothing\n"}
    folder = plant({**without, "b.gz": gzip.compress(b"WORD\nsecret=abc\n"), "c.gz": gzip.compress(b"secret=abc\n")})
    assert [hit.path for hit in sync.scan([rule], cwd=folder, inside="gz")] == ["b.gz!/b"]
    with ripwrap.overlay({"a.txt": "word\nsecret=abc\n", "new.txt": "secret=abc\n\nWord"}, cwd=folder):
        assert {hit.path for hit in sync.scan([rule], cwd=folder)} == {"a.txt", "new.txt"}


@pytest.mark.slow
def test_fingerprints_stay_when_lines_move(plant: Plant) -> None:
    folder = plant({"a": f"{KEY}\n"})
    (before,) = sync.scan(RULES, cwd=folder)
    (folder / "a").write_text(f"\n\n  x = '{KEY}'\n", "utf-8")
    (after,) = sync.scan(RULES, cwd=folder)
    assert before.fingerprint == after.fingerprint
    (folder / "a").rename(folder / "b")
    (moved,) = sync.scan(RULES, cwd=folder)
    assert moved.fingerprint != after.fingerprint

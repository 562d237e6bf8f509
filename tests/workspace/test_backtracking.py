"""Patterns that Python's `re` reads as rg does, against rg."""

import random
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from ripwrap import SECRET_RULES, Rule, sync
from ripwrap.workspace.backtracking import MAX_WAYS, bounded
from support.effort import times

Plant = Callable[..., Path]

PIECES = (
    *("a", "b", "é", r"\.", ".", r"\d", r"\w", r"\S", "[ab]", "[^a]", r"[\w.-]", "[]a]", r"[\x{61}-\u0063]", "]", "}"),
    *(r"\x41", r"\{", "a*", "a+?", "b{2}", "[ab]{1,3}", r"\w{2,}", "(a)", "(?:ab)+", "(?<n>b|ab)?", "(?P<m>a)", "x|b"),
    *("(?i:A)", "(?-u:a)", r"\b", r"(?-u:\b)", r"\B", "^", "$", "(?:a|b)*", r"(?:\.a+)*", "(?i:(?-i:a)B)"),
    *(r"\x{1F600}", "[^\U0001f600]"),
)


@pytest.mark.slow
def test_pattern_finds_what_rg_finds(plant: Plant) -> None:
    drawn = random.Random(51)
    letters = 'abcxABé.-1 ]"\U0001f600'
    lines = ["".join(drawn.choices(letters, k=drawn.randint(1, 12))) for _ in range(60)]
    folder = plant({"a": "".join(f"{line}\n" for line in lines)})
    found = 0
    for _ in range(times(60, 2_000)):
        pattern = drawn.choice(["", "(?i)"]) + "".join(drawn.choices(PIECES, k=drawn.randint(1, 5)))
        try:
            read = bounded(pattern)
        except ValueError as error:
            if "redefinition of group" not in str(error):  # which rg refuses, too
                raise
            continue
        expected = {
            (match.line_number, submatch.match)
            # Beside another pattern, rg begins a match where it should (rg-facts 62).
            for match in sync.search([pattern, "never"], cwd=folder)
            for submatch in match.submatches
            if submatch.match
        }
        here = re.compile(read.text)
        assert expected == {
            (number, one[0]) for number, line in enumerate(lines, 1) for one in here.finditer(line) if one[0]
        }, pattern
        found += len(expected)
    assert found > 100


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a*+a", "aa"),
        ("a?+a", "a"),
        ("a{1,2}+a", "aa"),
        ("[[:digit:]]x", "1x"),
        (r"[\w&&[^b]]", "a"),
        ("[^a-c--b]x", "bx"),
        (r"\<a", "a"),
        (r"a\>", "a"),
        (r"\b{start}a", "a"),
        (r"\b{end-half}", "a"),
        ("a{ 2 }", "aa"),
    ],
)
def test_pattern_that_means_something_else_in_python_is_refused(pattern: str, text: str, plant: Plant) -> None:
    """Python compiles these patterns, and misses what rg finds."""
    assert list(sync.search(pattern, cwd=plant({"a": f"{text}\n"})))
    with pytest.warns() if "[[" in pattern or "&&" in pattern or "--" in pattern else nullcontext():
        assert not re.search(pattern, text)
    with pytest.raises(ValueError, match="is not read in the same way by rg and by Python's re"):
        bounded(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *("a(?i)b", "(?x)a", "(?U)a+", "a(?=b)", r"\p{Greek}", r"[\p{L}]", r"\1", r"\_", "a**", "a{2}{3}", "*a"),
        *("(*a)", "(a", "a)", "[a", "[b-a]", "a{2,1}", "{2}", "a{", "a{b}", r"\x{110000}", "a\\", "(?P<1>a)"),
        *(f"{'(' * 2_000}{')' * 2_000}", r"[\x{110000}]"),
    ],
)
def test_pattern_that_one_of_the_two_refuses_is_an_error(pattern: str) -> None:
    with pytest.raises(ValueError, match="Python's re"):
        bounded(pattern)


@pytest.mark.parametrize("rule", SECRET_RULES, ids=lambda rule: rule.id)
def test_built_in_rules_are_read_by_rg_and_by_python(rule: Rule, plant: Plant) -> None:
    assert list(sync.search(rule.pattern, cwd=plant({"a": ""}))) == []
    assert re.compile(rule.pattern.replace("(?-u:", "(?a:")).groups == re.compile(bounded(rule.pattern).text).groups


@pytest.mark.parametrize(
    ("pattern", "ways"),
    [
        ("[a-z]{1,9}=", 1),
        ("[a-z]{1,9}k", 9),
        ("(?i)[a-j]{1,9}K", 1),
        ("(?i)[a-j]{1,9}J", 9),
        ("[^a]{1,9}A", 9),
        ("(?i)[^a]{1,9}A", 1),
        (r"(?-u:\w){1,9}é", 1),
        (r"\w{1,9}é", 9),
        (r"[\x{1F600}-\x{1F64F}]{1,9}\U0001f601", 9),
        (r"\x{1F600}{1,9}a", 1),
        ("[a-z]{0,9}", 1),
        ("[a-z]{0,9}(?:x|y)", 10),
        ("(?:x|y)a", 1),
        ("(?:x|xy)a", 2),
        (r'"(?:[^"\\]|\\.)*"', 1),
        ("a.*b", 301),
        (r"\w{1,2}\b", 2),
    ],
)
def test_ways_are_counted(pattern: str, ways: int) -> None:
    assert bounded(pattern).ways == ways


def test_ways_of_nested_repetitions_are_many() -> None:
    assert bounded("(a+)+b").ways > MAX_WAYS

"""Searching for the groups of a pattern, on asyncio, on trio and blocking."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripwrap
from ripwrap import CapabilityError, CapturedMatch, PatternError, SearchError, sync
from ripwrap.binary import RgBinary

Plant = Callable[..., Path]


def captures(pattern: str, folder: Path, **options: Any) -> list[tuple[tuple[str | None, ...], dict[str, str | None]]]:
    matches = sync.search(pattern, cwd=folder, captures=True, sort="path", **options)
    return [(one.groups, one.named) for match in matches if isinstance(match, CapturedMatch) for one in match.captures]


@pytest.mark.anyio
@pytest.mark.rg_ends
async def test_a_match_has_its_groups_from_rg_15_on(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a.py": "# TODO(ada): one, TODO(): two\n"})
    search = ripwrap.search(r"TODO\((?P<who>\w+)?\)(:)", cwd=folder, rg=rg, captures=True)
    if rg.version < (15,):
        with pytest.raises(CapabilityError, match="captures needs rg 15"):
            await anext(search)
        return
    (match,) = [match async for match in search]
    assert match.groups == ("ada", ":")
    assert match.named == {"who": "ada"}
    assert isinstance(match, CapturedMatch)
    assert [one.groups for one in match.captures] == [("ada", ":"), (None, ":")]
    assert match.replaced() == match.lines
    assert CapturedMatch.model_validate_json(match.model_dump_json()) == match


def test_groups_keep_bytes_that_are_not_utf8(plant: Plant) -> None:
    folder = plant({"a": b"key=\xff\xfe;\n"})
    (match,) = sync.search(r"key=(?-u:(.*));", cwd=folder, captures=True)
    assert isinstance(match, CapturedMatch)
    assert '"groups":[{"bytes":"//4="}]' in match.model_dump_json()
    assert CapturedMatch.model_validate_json(match.model_dump_json()) == match


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "options", "groups"),
    [
        (r"(K)EY=(\w*)", {"ignore_case": True}, ("k", "a")),
        (r"key=(a)\n(b)", {"multiline": True}, ("a", "b")),
        (r"key=(a\nb)", {"multiline": True}, ("a\nb",)),
        (r"(?<=(k)ey=)(.)", {"pcre2": True}, ("k", "a")),
        (r"(e)y=(.)", {"word_regexp": True}, None),
        (r"(key)=(a)", {"line_regexp": True}, ("key", "a")),
        (r"key=(a", {"fixed_strings": True}, None),
        (r"key=a", {"fixed_strings": True}, ()),
        (r"(key)=(a)(x)?()", {"null_data": True}, ("key", "a", None, "")),
        (r"(?x) (key) = # (no)" + "\n(a)", {}, ("key", "a")),
    ],
)
def test_groups_with_options(pattern: str, options: dict[str, Any], groups: object, plant: Plant) -> None:
    folder = plant({"a": "key=a\nb\n"})
    assert [one for one, _ in captures(pattern, folder, **options)] == ([] if groups is None else [groups])


def test_several_patterns_are_refused() -> None:
    with pytest.raises(ValueError, match=r"captures needs a single pattern, got 2; use scan\(\)"):
        sync.search(["a", "b"], captures=True)


@pytest.mark.parametrize("options", [{"replace": "x"}, {"invert_match": True}])
def test_options_that_have_no_groups_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=f"{name} cannot be combined with captures=True; leave one of them out"):
        sync.search("a", captures=True, **options)


def test_a_pattern_that_does_not_compile_has_its_caret(folder: Path) -> None:
    with pytest.raises(PatternError) as raised:
        list(sync.search("ab(c", cwd=folder, captures=True))
    assert (raised.value.pattern, raised.value.offset) == ("ab(c", 2)


def test_groups_in_unknown_syntax_are_an_error(plant: Plant) -> None:
    folder = plant({"a": "aa\n"})
    with pytest.raises(SearchError, match="cannot find the groups of the pattern"):
        list(sync.search(r"(?|(a)|(b))", cwd=folder, captures=True, pcre2=True))


@pytest.mark.fact(57)
def test_rg_writes_the_same_for_unset_and_empty_groups(plant: Plant) -> None:
    folder = plant({"a": "ab\n"})
    (match,) = sync.search("a(x)?(y*)b", cwd=folder, replace="[$1][$2]")
    assert match.submatches[0].replacement == "[][]"
    assert captures("a(x)?(y*)b", folder) == [((None, ""), {})]


# Python's `re` tells unset groups from empty ones. It differs from rg in loops over empty text, which are left out.
PIECES = st.sampled_from(["(a)", "(b*)", "(?:c|(a))", "(a|b)?", "(?:=(b*))?", "(?:x(a*)|(b))", "(?:(a)|b)+", "(a+)?"])


@given(pieces=st.lists(PIECES, min_size=1, max_size=4))
def test_groups_are_those_of_python(pieces: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    pattern = "".join(pieces) + "$"
    folder = tmp_path_factory.mktemp("groups")
    texts = ["a", "ab=b", "=", "cab", "bb", "=bac", "aabb", "c", "xb", "xaa", "abx", "b=xa"]
    (folder / "a").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    found = {match.text: match.groups for match in sync.search(pattern, cwd=folder, captures=True)}
    expected = ((text, re.search(pattern, text)) for text in texts)
    assert found == {text: match.groups() for text, match in expected if match}

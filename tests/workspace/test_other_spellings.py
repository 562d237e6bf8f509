"""A pattern that was not found is searched once more: as a name in other spellings, or without escapes of grep."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap import sync
from ripwrap.binary import RgBinary
from ripwrap.workspace import content_call
from ripwrap.workspace.content_call import other_pattern
from support import fake_rg

Plant = Callable[..., Path]
FOUND = re.compile(r'pattern="(?P<pattern>.+)" has (?P<much>.+)\.')

words = st.lists(st.sampled_from(["get", "user", "name", "http", "entry", "box", "item"]), min_size=2, max_size=5)


def spelled(names: list[str], style: str) -> str:
    camel = "".join(name.title() for name in names)
    return {
        "snake": "_".join(names),
        "kebab": "-".join(names),
        "constant": "_".join(names).upper(),
        "pascal": camel,
        "camel": names[0] + camel[len(names[0]) :],
    }[style]


styles = st.sampled_from(["snake", "kebab", "constant", "pascal", "camel"])


@given(words, styles, styles, st.booleans())
def test_name_matches_in_every_spelling(names: list[str], asked: str, written: str, boundary: bool) -> None:
    """A zero answer goes on with naming variants."""
    pattern = spelled(names, asked)
    other = other_pattern(rf"\b{pattern}\b" if boundary else pattern, fixed_strings=False)
    assert other is not None and re.fullmatch(other, spelled(names, written))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("entries", "entry"), ("entry", "Entries"), ("items", "item"), ("user", "users"),
        ("HTTPServers", "http_server"), ("classes", "classes"), (r"a\|b", "b"),
        (r"\(x\)\+y", "xxy"), ("IPAddress", "ip-address"),
    ],
)  # fmt: skip
def test_other_pattern_matches(pattern: str, text: str) -> None:
    assert re.fullmatch(other_pattern(pattern, fixed_strings=False) or "", text)


@pytest.mark.parametrize(
    "pattern", ["ab", "foo.*bar", "a b", "x2", "", r"foo\.bar", "f(", "_", "-" * 9, "aB" * 9, "aBcd" * 9, "a" * 65]
)
def test_pattern_that_is_clear_has_no_other(pattern: str) -> None:
    assert other_pattern(pattern, fixed_strings=False) is None


def test_escapes_of_plain_text_stay() -> None:
    assert other_pattern(r"a\|b", fixed_strings=True) is None


@pytest.mark.parametrize("output_mode", ["content", "count", "files_with_matches"])
def test_zero_answer_names_a_pattern_that_has_matches(plant: Plant, output_mode: str) -> None:
    tools = sync.Workspace(
        plant({"a.py": "get_user_name\nGETUSERNAMES\n", "b.py": "get-user-name\n", "no.py": "get_user_name\n"}),
        deny=["no.py"],
    )
    text = tools.call("grep_content", {"pattern": "getUserName", "output_mode": output_mode, "context_lines": 0})
    found = FOUND.search(text)
    assert text.startswith("No matches found") and found is not None
    assert found["much"] == "3 matches in 2 files"
    assert tools.grep_content_result(found["pattern"]).total_matches == 3
    assert not FOUND.search(tools.grep_content("getUserName", file_pattern="*.c"))
    assert not FOUND.search(tools.grep_content("setUserName"))


@pytest.mark.posix
@pytest.mark.timeout(20)
def test_further_search_ends_in_its_time(
    plant: Plant, rg: RgBinary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search without a limit of its own would wait for the 300 seconds of the workspace."""
    hangs = f"if any('user[-_]' in one for one in sys.argv): mute()\nsys.exit(real({rg.path!r}))"
    slow = fake_rg.write(tmp_path / "rg", hangs)
    tools = sync.Workspace(plant({"a.py": "get_user_name\n"}), rg=slow, timeout=300)
    monkeypatch.setattr(content_call, "SECONDS", 0.1)
    text = tools.grep_content("getUserName")
    assert text.startswith("No matches found.") and not FOUND.search(text)


def test_zero_answer_names_the_pattern_without_escapes_of_grep(plant: Plant) -> None:
    tools = sync.Workspace(plant({"a": "one\ntwo\n"}))
    text = tools.grep_content(r"one\|two")
    assert "needs no backslash as an operator" in text
    assert 'pattern="one|two" has 2 matches in 1 file.' in text
    assert not FOUND.search(tools.grep_content(r"one\|(two"))  # it does not parse

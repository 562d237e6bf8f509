"""`grep_content(expand="definition")`, and whole definitions in the answers of `codebase_search`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripwrap import sync
from ripwrap.workspace import GrepContentResult
from support.opening import before_opening, on_open
from support.tools import APIS, Asked

Plant = Callable[..., Path]

SHOP = '''\
PRICE = 3  # TODO


class Shop:
    """A shop."""

    @counted
    def pay(self, amount):
        """Pay."""
        if amount:
            take(amount)  # TODO
        log(amount)
        return amount  # TODO

    def close(self): ...
'''


def rows(found: GrepContentResult) -> list[tuple[int, str]]:
    return [(number, text) for match in found.matches for number, _, text in match.lines()]


@pytest.mark.parametrize("api", APIS)
def test_matches_are_shown_in_their_definition(api: str, plant: Plant) -> None:
    asked = Asked(api, plant({"shop.py": SHOP}))
    assert asked.grep_content("TODO", context_lines=0, expand="definition").splitlines() == [
        "File: shop.py",
        "  1: PRICE = 3  # TODO",
        "  --",
        "  in Shop.pay, lines 8-13:",
        "  7-     @counted",
        "  8-     def pay(self, amount):",
        '  9-         """Pay."""',
        "  10-         if amount:",
        "  11:             take(amount)  # TODO",
        "  12-         log(amount)",
        "  13:         return amount  # TODO",
        "",
        "(3 matches in 1 file.)",
    ]


def test_match_outside_of_definitions_keeps_the_requested_context(plant: Plant) -> None:
    asked = sync.Workspace(plant({"shop.py": SHOP}))
    found = asked.grep_content_result("PRICE", context_lines=1, expand="definition")
    assert rows(found) == [(1, "PRICE = 3  # TODO"), (2, "")]
    assert found.matches[0].section is None


@pytest.mark.slow
def test_long_definition_is_cut_to_the_budget(plant: Plant) -> None:
    body = "".join(f"    line_{number} = {number}\n" for number in range(2, 2001)).replace("1000\n", "1000  # TODO\n")
    root = plant({"a.py": f"def long():\n{body}"})
    sizes: list[int] = []
    for max_chars in (1_000, 4_000, 20_000, 200_000):
        text = sync.Workspace(root, max_chars=max_chars).grep_content("TODO", expand="definition")
        assert len(text) <= max_chars
        sizes.append(text.count("\n  "))
        heading = "  in lines 1-2000: def long():"
        assert text.splitlines()[1] == heading
        assert "  1000:     line_1000 = 1000  # TODO" in text
    assert sizes == sorted(set(sizes))
    assert sizes[0] >= 6
    assert sizes[-1] == 802


@pytest.mark.slow
def test_matches_are_not_displaced_by_their_definitions(plant: Plant) -> None:
    root = plant(
        {f"m{number:03}.py": f"def f{number}():\n" + "    x = 1\n" * 80 + "    TODO\n" for number in range(60)}
    )
    plain = sync.Workspace(root).grep_content_result("TODO", context_lines=0, sections=True)
    grown = sync.Workspace(root).grep_content_result("TODO", context_lines=0, expand="definition")
    assert [match.file for match in grown.matches] == [match.file for match in plain.matches]
    assert len(str(grown)) > len(str(plain))
    assert (grown.next_offset, grown.total_matches) == (plain.next_offset, plain.total_matches)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_file_in_any_encoding_that_rg_knows_is_expanded(plant: Plant, encoding: str, newline: str) -> None:
    text = newline.join(["def käse():", "    a = 1", "    return 'ä'  # TODO", ""])
    found = sync.Workspace(plant({"a.py": text.encode(encoding)})).grep_content_result(
        "TODO", context_lines=0, expand="definition"
    )
    assert [number for number, _ in rows(found)] == [1, 2, 3]


def test_file_that_changed_during_the_search_keeps_its_context(plant: Plant) -> None:
    root = plant({"shop.py": SHOP})

    def change() -> None:
        (root / "shop.py").write_text("import os\n" + SHOP)

    with before_opening("shop.py", change):
        found = sync.Workspace(root).grep_content_result("take", context_lines=1, expand="definition")
    assert rows(found) == [
        (10, "        if amount:"),
        (11, "            take(amount)  # TODO"),
        (12, "        log(amount)"),
    ]


@pytest.mark.posix
def test_file_that_became_a_link_is_not_read(plant: Plant, tmp_path: Path) -> None:
    root = plant({"shop.py": SHOP})
    secret = tmp_path / "secret.py"
    secret.write_text(SHOP.replace("return amount", "return secret"))

    def swap() -> None:
        (root / "shop.py").unlink()
        (root / "shop.py").symlink_to(secret)

    with before_opening("shop.py", swap):
        text = sync.Workspace(root).grep_content("take", expand="definition")
    assert "secret" not in text and "take(amount)" in text


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    lines=st.lists(
        st.sampled_from(["x = 1", "    TODO", "def a():", "    def b():", "        TODO", "", "    y", "class C:"]),
        max_size=40,
    ),
    context=st.integers(0, 3),
)
def test_no_line_is_shown_twice_and_each_has_its_text(plant: Plant, lines: list[str], context: int) -> None:
    lines = [*lines, "TODO"]
    root = plant({"a.py": "\n".join(lines)})
    found = sync.Workspace(root).grep_content_result("TODO", context_lines=context, expand="definition")
    shown = rows(found)
    assert [number for number, _ in shown] == sorted({number for number, _ in shown})
    assert all(lines[number - 1] == text for number, text in shown)
    plain = sync.Workspace(root).grep_content_result("TODO", context_lines=0, sections=True)
    assert [match.line for match in found.matches] == [match.line for match in plain.matches]
    assert [match.section for match in found.matches] == [match.section for match in plain.matches]
    for match in found.matches:
        if match.section is not None:
            wanted = range(match.section.line, match.section.end_line + 1)
            assert set(wanted) <= {number for number, _ in shown}


def test_wrong_value_is_one_error(plant: Plant) -> None:
    asked = sync.Workspace(plant({"shop.py": SHOP}))
    arguments: dict[str, Any] = {"expand": "file"}
    said = asked.grep_content("TODO", **arguments)
    assert said == "Error: expand must be 'none' or 'definition', got 'file'"


LONG = "".join(f"    tea_{number} = brew({number}, 'a long line of words about kettles')\n" for number in range(2, 40))
CODE = f"def brew_tea():\n{LONG}    return kettle\n\n\ndef wash():\n    return soap\n"


@pytest.mark.slow
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_codebase_search_shows_whole_definitions(api: str, index: bool, plant: Plant, home: Path) -> None:
    root = plant({"tea.py": CODE, "notes.txt": "tea\n"})
    asked = Asked(api, root, index=home if index else False)
    if index:
        asked.index_codebase()
    found = asked.codebase_search_result("where is brew_tea defined")
    first = found.places[0]
    assert (first.file, first.start_line, first.symbol) == ("tea.py", 1, "brew_tea")
    assert first.end_line >= 40
    assert first.snippet.split("\n") == CODE.split("\n")[: len(first.snippet.split("\n"))]
    lines = [(place.file, line) for place in found.places for line in range(place.start_line, place.end_line + 1)]
    assert len(lines) == len(set(lines))
    assert "more line" not in str(found)


@pytest.mark.slow
def test_whole_definitions_leave_room_for_all_results(plant: Plant) -> None:
    root = plant({f"m{number}.py": CODE.replace("brew_tea", f"brew_tea_{number}") for number in range(10)})
    sizes = (2_000, 9_000, 12_000, 60_000)
    found = {size: sync.Workspace(root, max_chars=size).codebase_search_result("brew tea kettles") for size in sizes}
    whole = {size: sum(place.end_line > place.start_line + 38 for place in one.places) for size, one in found.items()}
    for size, one in found.items():
        assert len(str(one)) <= size
        assert len({place.file for place in one.places}) == 10 or size == 2_000
    assert whole[2_000] == 0 < whole[12_000] < whole[60_000] == 10


@pytest.mark.slow
def test_long_definition_or_changed_file_keeps_the_original_context(plant: Plant) -> None:
    root = plant({"long.py": f"def brew_tea():\n{LONG * 6}", "tea.py": "x = 1\n" * 5 + CODE})
    ranked = {chunk.path: chunk for chunk in sync.rank("brew tea kettles", cwd=root)[::-1]}

    def change() -> None:
        (root / "tea.py").write_text(CODE)

    opened: list[str] = []

    def second_time(path: str) -> None:
        if os.path.basename(path) == "tea.py":
            opened.append(path)
            if len(opened) == 2:
                change()

    with on_open(second_time):
        found = sync.Workspace(root).codebase_search_result("brew tea kettles")
    assert len(opened) == 2
    for path in ("long.py", "tea.py"):
        chunk = ranked[path]
        (place,) = (one for one in found.places if (one.file, one.start_line) == (path, chunk.start_line))
        assert (place.end_line, place.snippet) == (chunk.end_line, chunk.text.removesuffix("\n"))


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.slow
def test_lines_of_definitions_have_their_secrets_masked(index: bool, plant: Plant, home: Path) -> None:
    begin = "-----BEGIN"  # see test_redact.py
    key = f"{begin} PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKB\n" * 3
    body = f'{LONG}    token = "hunter-2-secret"\n    key = """{key}-----END PRIVATE KEY-----"""\n    return kettle\n'
    root = plant({"tea.py": f"def brew_tea():\n{body}", ".env": "tea = 1\n"})
    asked = sync.Workspace(root, redact=True, deny=[".env"], index=home if index else False)
    if index:
        asked.index_codebase()
    for text in (
        asked.grep_content("return kettle", expand="definition"),
        asked.codebase_search("where is brew_tea defined"),
    ):
        assert "[redacted: private-key]" in text and "[redacted: password]" in text
        assert "MIIE" not in text and "hunter" not in text
        assert "def brew_tea" in text and "return kettle" in text

"""Outline in the answers of `read_file`: asked for, or because the file is too long."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap import AccessDeniedError, Section, sync
from ripwrap.workspace import ReadFileResult, read_file
from ripwrap.workspace.read_file import outermost
from support.tools import APIS, Asked

Plant = Callable[..., Path]

SHOP = "PRICE = 3\n\nclass Shop:\n    def pay(self): ...\n\ndef close(): ...\n"
OUTLINE = "File: shop.py\n  3-4: class Shop:\n  4-4:   def pay(self): ...\n  6-6: def close(): ...\n"
LONG = "".join(f"class C{one}:\n    def method(self):\n        return {one}\n\n" for one in range(600))


@pytest.mark.parametrize("api", APIS)
def test_outline_replaces_the_lines(api: str, plant: Plant) -> None:
    asked = Asked(api, plant({"shop.py": SHOP}))
    said = "(The outline has 3 definitions. start_line and end_line give lines of the 6.)"
    assert asked.read_file("shop.py", outline=True) == f"{OUTLINE}\n{said}"


def test_outline_stands_beside_the_lines_that_are_asked_for(plant: Plant) -> None:
    ws = sync.Workspace(plant({"shop.py": SHOP}))
    text = ws.read_file("shop.py", outline=True, head=1)
    assert text == f"{OUTLINE}  --\n  1: PRICE = 3\n\n(The outline has 3 definitions. Line 1 of 6.)"
    found = ws.read_file_result("shop.py", 3, 4, outline=True)
    assert [one.name for one in found.outline] == ["Shop", "Shop.pay", "close"]
    assert ReadFileResult.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("max_chars", [1_000, 3_000, 20_000])
def test_file_that_does_not_fit_has_its_outline_and_first_lines(plant: Plant, max_chars: int) -> None:
    ws = sync.Workspace(plant({"a.py": LONG}), max_chars=max_chars)
    found = ws.read_file_result("a.py")
    assert found.outline and found.blocks[0].start_line == 1
    assert len(str(found)) <= max_chars
    assert found.truncated and found.next_offset == len(found.blocks[0].lines) + 1
    assert f"start_line={found.next_offset} gives them" in str(found)
    assert f"The outline shows {len(found.outline)} of 1200 definitions." in str(found)
    assert ws.read_file_result("a.py", found.next_offset).outline == ()
    assert len(str(ws.structured(found))) <= max_chars * 1.2


def test_outline_of_many_definitions_is_cut(plant: Plant) -> None:
    ws = sync.Workspace(plant({"a.py": LONG * 10}))
    found = ws.read_file_result("a.py", outline=True)
    assert {one.name.count(".") for one in found.outline} == {0}
    assert found.truncated and len(str(found)) <= 20_000 < len(str(found)) + 500
    assert "of 12000 definitions." in found.message


def test_inner_definitions_are_left_out_first() -> None:
    sections = [
        Section(name="A", line=1, text="class A:", end_line=9),
        Section(name="A.f", line=2, text="def f(self):", end_line=3),
        Section(name="B", line=10, text="class B:", end_line=10),
    ]
    sizes = {1_000: ["A", "A.f", "B"], 40: ["A", "B"], 20: ["A"], 5: []}
    assert {size: [one.name for one in outermost(sections, size)] for size in sizes} == sizes


@pytest.mark.parametrize("name", ["a.txt", "a.json"])
def test_long_file_without_definitions_is_cut_as_before(plant: Plant, name: str) -> None:
    ws = sync.Workspace(plant({name: LONG}), max_chars=1_000)
    found = ws.read_file_result(name)
    assert found.outline == () and found.message.startswith("Lines 1 to ")
    asked = ws.read_file(name, outline=True)
    assert asked == "There is no outline: no definition was found. Read or search its lines."


def test_file_with_a_million_lines_has_no_outline(plant: Plant) -> None:
    ws = sync.Workspace(plant({"a.py": "f()\n" * 1_000_000}), max_chars=1_000)
    assert ws.read_file_result("a.py").outline == ()
    assert "There is no outline: it has more than 2,000,000 bytes." in ws.read_file("a.py", outline=True)


def test_file_of_many_lines_has_an_outline_only_if_it_is_asked_for(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = sync.Workspace(plant({"a.py": "def f():\n" + "    x = 1\n" * 200}), max_chars=1_000)
    assert len(ws.read_file_result("a.py").outline) == 1
    monkeypatch.setattr(read_file, "MAX_LINES", 200)
    assert ws.read_file_result("a.py").outline == ()
    assert len(ws.read_file_result("a.py", outline=True).outline) == 1


def test_outline_of_denied_missing_and_binary_files_is_refused(plant: Plant) -> None:
    root = plant({"secret/a.py": SHOP, "b.py": b"def f(): ...\n\0", "src/c.py": SHOP})
    ws = sync.Workspace(root, deny=["secret/"])
    with pytest.raises(AccessDeniedError):
        ws.read_file_result("secret/a.py", outline=True)
    with pytest.raises(AccessDeniedError):
        ws.read_file_result("../a.py", outline=True)
    with pytest.raises(FileNotFoundError):
        ws.read_file_result("gone.py", outline=True)
    with pytest.raises(IsADirectoryError):
        ws.read_file_result("src", outline=True)
    with pytest.raises(ValueError, match="is binary"):
        ws.read_file_result("b.py", outline=True)


def test_secrets_in_an_outline_are_masked(plant: Plant) -> None:
    secret = "ghp_" + "a1B2" * 9
    text = f"def f(token='{secret}'): ...\n\n\ndef {secret}(): ...\n"
    root = plant({"a.py": text})
    assert secret in str(sync.Workspace(root).read_file_result("a.py", outline=True))
    found = sync.Workspace(root, redact=True).read_file_result("a.py", outline=True)
    assert len(found.outline) == 2
    assert secret not in found.model_dump_json()
    assert "[redacted: github-token]" in str(found)


def test_long_line_of_a_definition_is_cut(plant: Plant) -> None:
    ws = sync.Workspace(plant({"a.py": f"def f({'x, ' * 500}): ...\n"}), max_line=50)
    (one,) = ws.read_file_result("a.py", outline=True).outline
    assert len(one.text) <= 52 and one.text.endswith("…")

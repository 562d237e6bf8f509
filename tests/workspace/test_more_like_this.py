"""`codebase_search(like=…)`: code like given lines, without these lines, denied files and secrets."""

import io
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap._ranking.word_query import MAX_QUERY_CHARS
from ripwrap.workspace import CodebaseSearchResult
from ripwrap.workspace.more_like_this import query_of
from support.paths import slashed
from support.tools import APIS, Asked

Plant = Callable[..., Path]

HEADER = "import os\n\nLIMIT = 3\n\n\n"
WRITE = (
    "def write_invoice(invoice, folder):\n    lines = invoice.lines\n    if not lines:\n        return None\n"
    "    target = folder / invoice.number\n    target.write_text(render(lines))\n    return target\n"
)
TWIN = WRITE.replace("invoice", "receipt")
OTHER = "def parse_color(text):\n    red, green, blue = text.split()\n    return int(red), int(green), int(blue)\n"
JS = (
    "export function makeCart(user, items) {\n  const total = items.reduce(sum);\n  return { user, items, total };\n}\n"
)
FILES = {
    "bill/invoice.py": HEADER + WRITE + "\n\n" + TWIN.replace("receipt", "order"),
    "bill/receipt.py": HEADER + OTHER + "\n\n" + TWIN,
    "web/cart.js": JS,
    "web/basket.js": JS.replace("makeCart", "makeBasket"),
    "docs/color.py": OTHER,
}
PLACES = {
    "bill/invoice.py:6-12": "bill/invoice.py:6-12",
    "bill/invoice.py#L6-L12": "bill/invoice.py:6-12",
    "bill/invoice.py:7": "bill/invoice.py:6-12",
    "bill/invoice.py:7:5": "bill/invoice.py:6-12",
    "{root}/bill/invoice.py:6-12": "bill/invoice.py:6-12",
    "file://{root}/bill/invoice.py#L7": "bill/invoice.py:6-12",
}


def lines_of(found: CodebaseSearchResult, path: str) -> set[int]:
    return {
        line
        for one in found.places
        for line in range(one.start_line, one.end_line + 1)
        if slashed(one.file) == path and one.snippet
    }


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("given", "place"), PLACES.items())
def test_code_like_a_place_is_found_without_the_place_itself(api: str, plant: Plant, given: str, place: str) -> None:
    root = plant(FILES)
    found = Asked(api, root).codebase_search_result(like=given.format(root=root.as_posix()))
    first, last = map(int, place.rpartition(":")[2].split("-"))
    assert slashed(found.like) == place and f"best results like {place}, ranked" in slashed(found.message)
    assert {slashed(one.file) for one in found.places[:2]} == {"bill/invoice.py", "bill/receipt.py"}
    assert not lines_of(found, "bill/invoice.py") & set(range(first, last + 1))
    assert lines_of(found, "bill/invoice.py") >= set(range(15, 22))
    symbols = {one.symbol for one in found.places if slashed(one.file).startswith("bill/")}
    assert {"write_receipt", "write_order"} <= symbols and "write_invoice" not in symbols


@pytest.mark.parametrize("path", ["web/cart.js", "web/cart.js:1-4", "web/cart.js:2", "docs/color.py"])
def test_the_most_alike_code_is_first(plant: Plant, path: str) -> None:
    found = sync.Workspace(plant(FILES)).codebase_search_result(like=path, limit=1)
    twin = {"w": ("web/basket.js", "makeBasket"), "d": ("bill/receipt.py", "parse_color")}[path[0]]
    assert [(slashed(one.file), one.symbol) for one in found.places] == [twin]
    assert found.places[0].why[0].startswith("has ")


def test_a_class_around_the_lines_is_not_shown_as_a_whole(plant: Plant) -> None:
    method = "    " + WRITE.strip().replace("\n", "\n    ") + "\n"
    root = plant({"store.py": f"class Store:\n    invoice = lines = number = target = folder = None\n\n{method}"})
    found = sync.Workspace(root).codebase_search_result(like="store.py:4-10")
    assert lines_of(found, "store.py") == {1, 2, 3}


def test_a_member_of_an_archive_is_compared_with_files(plant: Plant) -> None:
    root = plant(FILES)
    with tarfile.open(root / "old.tgz", "w:gz") as archive:
        content = WRITE.replace("invoice", "draft").encode()
        entry = tarfile.TarInfo("a/draft.py")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    text = sync.Workspace(root).codebase_search(like="old.tgz!/a/draft.py:2", limit=3)
    assert "in write_invoice\n" in text and "The 3 best results like old.tgz!/a/draft.py:1-7," in text


def test_denied_files_are_neither_compared_nor_found(plant: Plant) -> None:
    ws = sync.Workspace(plant(FILES), deny="receipt.*")
    assert ws.codebase_search(like="bill/receipt.py:12") == (
        'Error: bill/receipt.py:12 is denied by "receipt.*"; pass another path'
    )
    found = ws.codebase_search_result(like="bill/invoice.py:6-12")
    assert found.places and "receipt" not in str(found)


def test_secrets_of_the_lines_are_not_compared(plant: Plant) -> None:
    """A file that has only the secret in common would tell where it is used, too."""
    token = "ghp_" + "Qx7TrB9pLm2ZkV4nWs8Jc6Yd1Hf3Ga5Re0Tu"
    root = plant(
        {"a.py": f'token = "{token}"\nload_settings(token)\n', "b.py": f"{token}\n", "c.py": "load_settings\n"}
    )
    found = sync.Workspace(root, redact=True).codebase_search_result(like="a.py:1-2")
    assert [one.file for one in found.places] == ["c.py"] and token not in str(found)
    (root / "guess.py").write_text(f"x = {token[4:]}\nload_settings(token)\n")  # no mask, so all of its words are known
    places = sync.Workspace(root, redact=True).codebase_search_result(like="guess.py:1-2").places
    assert "a.py" in {one.file for one in places} and not any("b9p" in why for one in places for why in one.why)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "pass either query, with words or a name, or like, with a place such as 'src/a.py:10-30'"),
        ({"query": "x", "like": "web/cart.js"}, "pass either query, with words or a name, or like"),
        ({"like": "bill"}, "bill is a directory; ls lists its files"),
        ({"like": "web/cart.jsx:2"}, "does not exist in "),
        ({"like": "web/cart.js:90-95"}, "web/cart.js has 4 lines, so there is no line 90"),
        ({"like": "marks.txt"}, "marks.txt:1-2 has no word that other code may have; name other lines"),
        ({"like": "empty.txt"}, "empty.txt has no lines"),
        ({"like": "../a.py:3"}, "is outside of the allowed directories"),
        (
            {"like": "web/cart.js", "rev": "HEAD"},
            "unknown argument 'rev'; only files on the disk are ranked for query;",
        ),
    ],
)
def test_what_cannot_be_compared_is_said(plant: Plant, given: dict[str, str], said: str) -> None:
    ws = sync.Workspace(plant({**FILES, "marks.txt": "--- !\n!!\n", "empty.txt": ""}))
    text = ws.call("codebase_search", given)
    assert text.startswith("Error: ") and said in slashed(text) and "\n" not in text


def test_the_text_that_is_compared_is_bounded(plant: Plant) -> None:
    root = plant({"long.py": "alpha_beta " * MAX_QUERY_CHARS, "b.py": "alpha_beta\n"})
    found = sync.Workspace(root).codebase_search(like="long.py:1")
    assert found.startswith("b.py:1-1\n") and len(found) < 1_000
    assert re.fullmatch(r"\w+( \w+){0,11}", query_of(" ".join(f"word{number}x" for number in range(99_999))))


def test_an_index_gives_the_code_to_compare(plant: Plant, home: Path) -> None:
    ws = sync.Workspace(plant({"a.py": WRITE, "b.py": OTHER, "c.py": TWIN}), index=home)
    ws.index_codebase()
    found = ws.codebase_search_result(like="a.py:1-7")
    assert (found.ranking, found.places[0].file) == ("index", "c.py") and "a.py" not in {
        one.file for one in found.places
    }


def test_pages_continue(plant: Plant) -> None:
    root = plant({f"f{number}.py": f"def write_{number}(invoice):\n    save(invoice)\n" for number in range(9)})
    ws = sync.Workspace(root)
    pages = [ws.codebase_search_result(like="f0.py:1", limit=4, offset=offset) for offset in (0, 4, 8)]
    files = [one.file for page in pages for one in page.places]
    assert sorted(files) == [f"f{number}.py" for number in range(1, 9)] and pages[0].next_offset == 4
    assert pages[2].message == "No result from offset=8 on. No other code has the words of f0.py:1-2."

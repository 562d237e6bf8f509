"""Equal chunks are one result, which says how many there are; blank lines are no result; messages count well."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap.binary import RgBinary
from support.paths import slashed

Plant = Callable[..., Path]

VENDORED = "def open_jar(cookie):\n    return cookie.jar\n"
LICENCE = "# Use the cookie jar as you like, and keep this notice in it.\n" * 14
TREE = {
    **{f"vendor/{number:03}/jar.py": VENDORED for number in range(100)},
    "src/lid.py": "def close_jar(cookie):\n    cookie.jar.close()\n",
    "src/tin.py": "def tin(cookie):\n    # like a jar\n    return cookie\n",
    "src/a.py": LICENCE + "\n\ndef cookie_a(jar): ...\n",
    "src/b.py": LICENCE + "\n\ndef cookie_b(jar): ...\n",
}
COPIES = "the first of {} equal chunks; {} left out"


def _ways(
    folder: Path, home: Path, rg: RgBinary
) -> dict[str, Callable[[str], Sequence[tuple[str, str, tuple[str, ...]]]]]:
    """Return functions that answer a query with (path, text, reasons)."""

    def places(tools: sync.Workspace, query: str) -> list[tuple[str, str, tuple[str, ...]]]:
        found = tools.codebase_search_result(query).places
        return [(one.file, one.snippet, one.why) for one in found]

    index = sync.Index(folder, location=home, rg=rg.path, chunker="windows")
    made = sync.Workspace(folder, index=home.with_name("tools"), rg=rg.path)
    made.index_codebase()
    bare = sync.Workspace(folder, index=False, rg=rg.path)
    return {
        "rank": lambda query: [
            (slashed(one.path), one.text, one.reasons) for one in sync.rank(query, cwd=folder, rg=rg.path)
        ],
        "index": lambda query: [(slashed(one.path), one.text, one.reasons) for one in index.search(query)],
        "repositories": lambda query: [
            (slashed(one.path), one.text, one.reasons) for one in sync.Repositories(folder, rg=rg.path).rank(query)
        ],
        "tool": lambda query: places(bare, query),
        "tool with index": lambda query: places(made, query),
    }


@pytest.mark.slow
def test_equal_chunks_are_one_result_with_their_number(plant: Plant, rg: RgBinary, tmp_path: Path) -> None:
    folder = plant(TREE)
    for name, ask in _ways(folder, tmp_path / "index", rg).items():
        found = ask("open cookie jar")
        texts = [text.strip() for _, text, _ in found]
        assert len(set(texts)) == len(texts), name
        assert {"src/lid.py", "src/tin.py", "src/a.py", "src/b.py"} <= {path for path, _, _ in found}, name
        (of_copies,) = [(path, why) for path, text, why in found if text.strip() == VENDORED.strip()]
        assert of_copies[0] == "vendor/000/jar.py"
        assert COPIES.format(100, 99) in of_copies[1], name
        assert sum(COPIES.format(2, 1) in why for _, _, why in found) >= 1, name


@pytest.mark.slow
def test_more_copies_than_are_ranked_hide_no_other_file(plant: Plant, rg: RgBinary, tmp_path: Path) -> None:
    folder = plant({f"vendor/{number}/jar.py": VENDORED for number in range(700)} | {"src/lid.py": TREE["src/lid.py"]})
    for name, ask in _ways(folder, tmp_path / "index", rg).items():
        assert {path for path, _, _ in ask("open jar")} >= {"vendor/0/jar.py", "src/lid.py"}, name


def test_copy_in_the_asked_directory_is_found(plant: Plant, rg: RgBinary, tmp_path: Path) -> None:
    """The first of all copies is in another directory."""
    folder = plant({"a/jar.py": VENDORED, "b/jar.py": VENDORED, "b/c/jar.py": VENDORED})
    with sync.Workspace(folder, index=tmp_path / "index", rg=rg.path) as tools:
        tools.index_codebase()
        (place,) = tools.codebase_search_result("open jar", "b").places
        assert tools.codebase_search_result("open jar", "b").ranking == "index"
        assert place.file == "b/jar.py" and COPIES.format(2, 1) in place.why


@pytest.mark.parametrize("blank", ["\n" * 3_000, " \t\n" * 1_000, "\u00a0\u3000\n" * 500, "\r\n" * 1_500])
def test_blank_lines_are_no_result(plant: Plant, rg: RgBinary, tmp_path: Path, blank: str) -> None:
    folder = plant({"jar.py": f"x = 1\n{blank}y = 2\n", "blank_jar.txt": blank, "cookie.py": "a = 'jar'\n"})
    for name, ask in _ways(folder, tmp_path / "index", rg).items():
        found = ask("jar of cookies")
        assert all(text.strip() for _, text, _ in found), name
        assert "cookie.py" in {path for path, _, _ in found}, name
    with sync.Index(folder, location=tmp_path / "index", chunker="windows") as index:
        index.refresh()
        assert index.status().files == 3


def test_health_of_an_index_with_notes_is_not_called_perfect(plant: Plant, tmp_path: Path) -> None:
    folder = plant({"a.py": VENDORED, ".git/HEAD": "ref: refs/heads/old\n", ".git/refs/heads/old": "0" * 40 + "\n"})
    with sync.Workspace(folder, index=tmp_path / "index") as tools:
        tools.index_codebase()
        assert "Nothing is wrong." in tools.index_health_check()
    (folder / ".git/HEAD").write_text("ref: refs/heads/new\n")
    (folder / ".git/refs/heads/new").write_text("0" * 40 + "\n")
    (folder / ".git/refs/heads/old").unlink()
    with sync.Index(folder, location=tmp_path / "index") as index:
        index.refresh()
    with sync.Workspace(folder, index=tmp_path / "index") as tools:
        told = tools.index_health_check()
        assert "old in " in told and "Nothing is wrong" not in told
        assert "Nothing is damaged. The messages say what can be improved." in told
        assert re.search(r"sound, 1 chunk$", told, re.MULTILINE)

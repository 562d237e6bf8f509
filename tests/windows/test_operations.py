"""Searches, listings, trees, ranking and tools with the real rg: on asyncio, on trio, and blocking."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import ripwrap
from ripwrap import AccessDeniedError, PatternError, sync
from ripwrap.workspace.sandbox import Sandbox
from support.tools import APIS, Asked

Plant = Callable[[dict[str, str]], Path]


class Api:
    """Functions of `ripwrap`, run in an event loop, or of `ripwrap.sync`; generators become lists."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, function: str) -> Any:
        return partial(self._call, function)

    def _call(self, function: str, *given: Any, **options: Any) -> Any:
        if self.name == "blocking":
            found = getattr(sync, function)(*given, **options)
            return list(found) if hasattr(found, "__next__") else found

        async def wait() -> Any:
            found = getattr(ripwrap, function)(*given, **options)
            return [item async for item in found] if hasattr(found, "__anext__") else await found

        return anyio.run(wait, backend=self.name)


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    return Api(request.param)


def test_search_finds_lines(api: Api, shop: Path) -> None:
    found = api.search("cookie", cwd=shop, sort="path")
    assert [(match.path, match.line_number) for match in found] == [
        ("README.md", 3),
        (r"src\cookies.py", 1),
        (r"src\cookies.py", 2),
    ]
    assert [match.path for match in api.search("cookie", cwd=shop, paths="src", max_count=1)] == [r"src\cookies.py"]


def test_names_and_patterns_beyond_ascii_are_searched_unchanged(api: Api, plant: Plant) -> None:
    root = plant({"größe/日本 😀.txt": "straße\r\n"})
    (match,) = api.search("straße", cwd=root)
    assert (match.path, match.text.rstrip("\r\n")) == (r"größe\日本 😀.txt", "straße")
    assert api.files(cwd=root) == [r"größe\日本 😀.txt"]
    assert (root / match.path).exists()


def test_invalid_pattern_raises(api: Api, shop: Path) -> None:
    with pytest.raises(PatternError, match="unclosed group"):
        api.search("(", cwd=shop)


def test_missing_path_raises(api: Api, shop: Path) -> None:
    with pytest.raises(FileNotFoundError):
        api.search("x", cwd=shop, paths="nowhere")
    with pytest.raises(FileNotFoundError):
        api.search("x", cwd=shop / "nowhere")


def test_listings_and_counts_have_the_expected_results(api: Api, shop: Path) -> None:
    assert sorted(api.files(cwd=shop)) == ["README.md", r"src\cart.py", r"src\cookies.py"]
    assert sorted(api.files(cwd=shop, glob="*.py")) == [r"src\cart.py", r"src\cookies.py"]
    assert api.files_with_matches("Cart", cwd=shop) == [r"src\cart.py"]
    assert [(found.path, found.count) for found in api.count_matches("item", cwd=shop)] == [(r"src\cart.py", 4)]


def test_grep_returns_a_page_and_explains_an_empty_one(api: Api, shop: Path) -> None:
    page = api.grep("self", cwd=shop, limit=1)
    assert (page.total_matches, len(page)) == (2, 1)
    assert "ignore_case=True" in api.grep("STORE_COOKIE", cwd=shop, explain=True).message


def test_tree_and_rank_have_the_expected_results(api: Api, shop: Path) -> None:
    assert "cookies.py" in str(api.tree_text(cwd=shop))
    assert api.rank("store cookies", cwd=shop)[0].path == r"src\cookies.py"


@pytest.fixture(params=APIS)
def tools(request: pytest.FixtureRequest, shop: Path) -> Asked:
    return Asked(request.param, shop)


def test_every_tool_finds_files(tools: Asked) -> None:
    assert "cookies.py" in tools.grep_content("store_cookie")
    assert "cart.py" in tools.find_files("*.py")
    assert "README.md" in tools.ls()
    assert "cookies.py" in tools.tree()
    assert "cookies.py" in tools.call("grep_content", {"pattern": "store_cookie", "path": "SRC"})


@pytest.mark.parametrize(
    "path",
    ["..", r"..\..", r"C:\windows", r"\windows", "/windows", "src/../../x", "src:stream", "NUL", "C:src"],
)
def test_tools_stay_in_their_root(tools: Asked, path: str) -> None:
    with pytest.raises(AccessDeniedError):
        Sandbox(tools.workspace.roots).locate(path)
    answer = tools.call("grep_content", {"pattern": "x", "path": path})
    assert answer.startswith("Error"), answer


@pytest.mark.parametrize("path", ["src", "SRC", r"src\cart.py", "src/cart.py", r".\src\..\src\cart.py"])
def test_tools_accept_absolute_paths_in_their_root(tools: Asked, path: str) -> None:
    assert Sandbox(tools.workspace.roots).locate(path)
    assert "class Cart" in tools.call("grep_content", {"pattern": "class Cart", "path": path})


def test_paths_over_260_characters_are_found(api: Api, tmp_path: Path) -> None:
    folder = Path(rf"\\?\{tmp_path}", *["d" * 100] * 3)
    folder.mkdir(parents=True)
    (folder / "file").write_text("needle\n")
    (match,) = api.search("needle", cwd=tmp_path)
    assert len(os.path.join(tmp_path, match.path)) > 300

"""`codebase_search`, with an index and without, and the tools that maintain the index."""

import gc
import inspect
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import ripwrap
from ripwrap import RipwrapError, Workspace, sync
from ripwrap._system.concurrency import CANCELLED
from ripwrap.index.storage.files import NAME
from support.opening import on_open
from support.parsers import parsers
from support.shop import held
from support.tools import APIS, Asked
from support.waiting import TIMEOUTS, until, until_blocking

pytestmark = pytest.mark.slow

Plant = Callable[..., Path]

SHOP = {
    "src/cookies.py": "def store_cookie(jar, cookie):\n    jar.cookies.append(cookie)\n",
    "src/till.py": "def pay(amount, cookie):\n    return amount\n",
    "docs/cookies.md": "# Cookies\n\nHow cookies are stored.\n",
    ".hidden.py": "def hidden_cookie(): ...\n",
    ".gitignore": "ignored.py\n",
    "ignored.py": "def ignored_cookie(): ...\n",
}


@pytest.fixture
def shop(plant: Plant) -> Path:
    return plant(SHOP)


@pytest.mark.parametrize("api", APIS)
def test_codebase_search_without_an_index_ranks_current_files(api: str, shop: Path) -> None:
    text: str = Asked(api, shop).codebase_search("where is store_cookie defined", limit=1)
    assert text.startswith("src/cookies.py:1-2 in store_cookie\n  score ")
    assert "\n  1: def store_cookie(jar, cookie):\n  2:     jar.cookies.append(cookie)\n\n" in text
    assert text.endswith(
        "(The 1 best result, ranked without an index. A larger limit gives more; offset=1 gives the next ones.)"
    )
    found = Asked(api, shop).codebase_search_result("cookie", "src")
    assert [result.file for result in found.places] == ["src/cookies.py", "src/till.py"]
    assert (found.ranking, found.path, found.truncated) == ("files", "src", False)
    assert str(found) == Asked(api, shop).codebase_search("cookie", "src")


@pytest.mark.parametrize("api", APIS)
def test_codebase_search_names_what_could_not_be_read(api: str, shop: Path, plant: Plant, unprivileged: Path) -> None:
    """The answer was only that there is no result, or fewer results."""
    plant({"secret/cookies.py": "cookie\n", "src/shut.py": "cookie\n"})
    denied = "could not be read, the first: {}: Permission denied (os error 13)."
    asked = Asked(api, shop, rg=unprivileged)
    closed = [shop / "secret", shop / "src/shut.py"]
    for path in closed:
        path.chmod(0)
    try:
        found, nothing = asked.codebase_search("cookie"), asked.codebase_search("no such words", "secret")
    finally:
        for path in closed:
            path.chmod(0o700)
    assert found.endswith(f"(The 3 best results, ranked without an index. 2 paths {denied.format('secret')})")
    assert nothing.startswith("No result found. Ask with other words")
    assert nothing.endswith(f" 1 path {denied.format('secret')}")


@pytest.mark.parametrize("api", APIS)
def test_codebase_search_uses_a_built_index_and_refreshes_it(api: str, shop: Path, home: Path) -> None:
    asked = Asked(api, shop, index=home)
    assert asked.codebase_search_result("cookie").ranking == "files"
    assert not (home / NAME).exists()
    assert "not built" in asked.index_status()
    assert asked.index_codebase().startswith(f"{shop}: 3 new, 0 changed, 0 removed, 0 unchanged, 0 left out; ")
    found = asked.codebase_search_result("cookie")
    assert found.ranking == "index"
    plain = Asked(api, shop).codebase_search_result("cookie")
    assert {result.file for result in found.places} == {result.file for result in plain.places}
    assert not any("hidden" in result.file or "ignored" in result.file for result in found.places)
    (shop / "src" / "biscuits.py").write_text("def bake_biscuit():\n    pass\n")
    assert asked.codebase_search_result("bake biscuit").places[0].file == "src/biscuits.py"
    status = asked.index_status_result().roots[0]
    assert (status.built, status.files, status.sent) == (True, 4, ())
    health = asked.index_health_check_result().roots[0]
    assert health.ok and health.chunks == health.indexed
    assert asked.index_health_check().endswith("(Nothing is wrong.)")


@pytest.mark.parametrize("index", [False, True])
def test_codebase_search_finds_only_files_below_the_path(index: bool, shop: Path, home: Path) -> None:
    workspace = sync.Workspace(shop, index=home if index else False)
    if index:
        workspace.index_codebase_result()
    found = workspace.codebase_search_result("cookie", "docs")
    assert [result.file for result in found.places] == ["docs/cookies.md"]
    assert found.ranking == ("index" if index else "files")
    found = workspace.codebase_search_result("cookie", "src/till.py")
    assert [result.file for result in found.places] == ["src/till.py"]
    assert workspace.codebase_search("cookie", "..").startswith("Error: .. is outside of the allowed directories")


def test_path_with_few_index_results_is_ranked_without_the_index(plant: Plant, home: Path) -> None:
    crowd: dict[str, str] = {f"crowd/cookie{number}.py": f"def cookie_{number}(): cookie\n" for number in range(300)}
    root = plant({**crowd, "aside/notes.txt": "Long ago, in another country, somebody mentioned a cookie.\n"})
    workspace = sync.Workspace(root, index=home)
    workspace.index_codebase_result()
    found = workspace.codebase_search_result("cookie", "aside")
    assert [result.file for result in found.places] == ["aside/notes.txt"]
    assert found.ranking == "files"


@pytest.mark.parametrize("index", [False, True])
def test_several_roots_are_searched_together_with_absolute_paths(index: bool, shop: Path, home: Path) -> None:
    workspace = sync.Workspace(shop / "src", shop / "docs", index=home if index else False)
    if index:
        made = workspace.index_codebase_result()
        assert [root.added for root in made.roots] == [2, 1]
    found = workspace.codebase_search_result("cookies")
    assert {result.file for result in found.places} == {
        f"{shop}/src/cookies.py",
        f"{shop}/src/till.py",
        f"{shop}/docs/cookies.md",
    }
    assert found.ranking == ("index" if index else "files")
    one = workspace.codebase_search_result("cookies", str(shop / "docs"))
    assert [result.file for result in one.places] == [f"{shop}/docs/cookies.md"]


@pytest.mark.posix
def test_links_out_of_the_roots_are_not_indexed_or_shown(shop: Path, home: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "cookie.py").write_text("def secret_cookie(): ...\n")
    (shop / "link").symlink_to(secret)
    for index in (False, home):
        workspace = sync.Workspace(shop, follow=True, index=index)
        if index:
            assert workspace.index_codebase_result().roots[0].added == 3
        text = workspace.codebase_search("secret cookie")
        assert "link" not in text and "secret_cookie" not in text.split("(")[0]


@pytest.mark.posix
def test_linked_files_outside_the_roots_are_not_read_or_ranked(shop: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    for number in range(60):
        (secret / f"cookie{number}.py").write_text("cookie\n" * 50)
    (shop / "link").symlink_to(secret)
    opened: list[str] = []
    with on_open(opened.append):
        found = sync.Workspace(shop, follow=True).codebase_search_result("cookie")
    read = {os.path.relpath(path, shop) for path in opened if path.startswith(f"{shop}/")}
    assert {result.file for result in found.places} == {"src/cookies.py", "src/till.py", "docs/cookies.md"} == read


@pytest.mark.parametrize("path", [".hidden.py", "ignored.py", ".github", ".github/cookie.yml"])
def test_path_that_the_index_lacks_is_ranked_without_the_index(path: str, shop: Path, home: Path) -> None:
    (shop / ".github").mkdir()
    (shop / ".github" / "cookie.yml").write_text("cookie: yes\n")
    workspace = sync.Workspace(shop, index=home)
    workspace.index_codebase_result()
    found = workspace.codebase_search_result("cookie", path)
    assert found.ranking == "files"
    assert [result.file for result in found.places] == [path if "." in path[1:] else ".github/cookie.yml"]


def test_path_below_a_guarded_root_is_ranked_without_the_index(
    plant: Plant, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = "a/b/c/d/e/f/g/cookie.py"
    root = plant({deep: "def cookie(): ...\n", "a/cookie.py": "def cookie(jar): ...\n"})
    monkeypatch.setenv("HOME", str(root))
    monkeypatch.setenv("USERPROFILE", str(root))  # Windows
    workspace = sync.Workspace(root, index=home)
    workspace.index_codebase_result()
    whole = workspace.codebase_search_result("cookie")
    assert (whole.ranking, [result.file for result in whole.places]) == ("index", ["a/cookie.py"])
    found = workspace.codebase_search_result("cookie", "a")
    assert (found.ranking, {result.file for result in found.places}) == ("files", {"a/cookie.py", deep})


class FullDatabase(sqlite3.Connection):
    """A connection to a file that cannot grow."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        if name != ":memory:":
            self.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size


@pytest.mark.parametrize("api", APIS)
def test_failed_refresh_is_noted_and_files_are_ranked(
    api: str, shop: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync.Workspace(shop, index=home).index_codebase_result()
    (shop / "src" / "long.py").write_text("".join(f"biscuit_{number} = {number}\n" for number in range(10_000)))
    asked = Asked(api, shop, index=home)
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=FullDatabase))
    found = asked.codebase_search_result("where is store_cookie defined")
    assert (found.ranking, found.places[0].file) == ("files", "src/cookies.py")
    (note,) = found.notes
    assert note.startswith("The index could not be used: ") and "free some space" in note
    with pytest.raises(RipwrapError, match="free some space"):
        asked.index_codebase_result()


@pytest.mark.parametrize("api", APIS)
def test_slow_refresh_is_noted_and_files_are_ranked(api: str, shop: Path, home: Path) -> None:
    Asked(api, shop, index=home).index_codebase_result()
    (shop / "src" / "biscuits.py").write_text("def bake_biscuit(): ...\n")
    for timeout in TIMEOUTS:
        asked = Asked(api, shop, index=home, timeout=timeout)
        with held(home):
            found = asked.codebase_search_result("bake biscuit")
        if found.places:
            break
    assert (found.ranking, found.places[0].file) == ("files", "src/biscuits.py")
    (note,) = found.notes
    assert note.startswith(f"The index could not be refreshed within {timeout / 2:g} seconds, so it was not used; ")
    assert note.endswith("; index_codebase refreshes it without a time limit.")
    assert asked.index_codebase_result().roots[0].added == 1


@pytest.mark.anyio
async def test_searches_that_wait_for_the_index_block_no_threads(shop: Path, home: Path, anyio_backend: str) -> None:
    workspace = Workspace(shop, index=home, timeout=60)
    await workspace.index_codebase_result()
    (shop / "src" / "biscuits.py").write_text("def bake_biscuit(): ...\n")
    lock = workspace._tools.required_indexes("codebase_search")._of(str(shop))._lock()
    rankings: list[str] = []

    async def search() -> None:
        rankings.append((await workspace.codebase_search_result("bake biscuit")).ranking)

    with anyio.fail_after(50):
        async with anyio.create_task_group() as group:
            with held(home):
                for _ in range(12):
                    group.start_soon(search)
                await until(lambda: lock.statistics().tasks_waiting == 11)
                assert "biscuits.py" in await workspace.find_files("*", sort="newest")  # `find_files` takes a thread
                assert rankings == []
    assert rankings == ["index"] * 12


@pytest.mark.extra
@pytest.mark.usefixtures("leaks_nothing")
def test_one_parser_process_serves_searches_after_edits_and_ends_with_the_workspace(shop: Path, home: Path) -> None:
    """A search after an edit starts no process."""
    pytest.importorskip("tree_sitter")
    workspace = sync.Workspace(shop, index=home)
    workspace.index_codebase_result()
    first = parsers()
    for name in ("biscuit", "cake"):
        (shop / "src" / f"{name}.py").write_text(f"def bake_{name}(): ...\n")
        found = workspace.codebase_search_result(f"bake {name}")
        assert (found.ranking, found.places[0].symbol) == ("index", f"bake_{name}")
        assert len(first) == 1 and parsers() == first
    del workspace
    gc.collect()
    assert parsers() == []


def test_codebase_search_text_fits_the_budget(plant: Plant) -> None:
    lines = "".join(f"    cookie = {number}  # {'x' * 30}\n" for number in range(20))
    root = plant({f"cookies/cookie{number}.py": f"def cookie{number}():\n{lines}" for number in range(12)})
    sizes = (1000, 2300, 5000, 20_000)
    texts = [sync.Workspace(root, max_chars=size).codebase_search("cookie") for size in sizes]
    for size, text in zip(sizes, texts, strict=True):
        assert len(text) <= size
    assert [text.count("\n  score ") for text in texts[1:]] == [10, 10, 12]  # more than ten only with their text
    assert "more lines]" in texts[1]
    assert texts[1].index("  1: def cookie") < texts[1].index("more lines]")
    long = sync.Workspace(plant({"long.txt": f"cookie {'y' * 5000}\n"}), max_line=40).codebase_search(
        "cookie yyy", "long.txt"
    )
    assert all(len(line) < 60 for line in long.splitlines() if line.startswith("  1:"))


@pytest.mark.parametrize("size", [6000, 20_000, 60_000])
@pytest.mark.parametrize("rows", [3, 12, 30])
def test_answer_has_no_room_for_the_first_lines_of_another_result(plant: Plant, size: int, rows: int) -> None:
    """It ended after two thirds of the budget, and said that there was no room."""
    lines = "".join(f"    cookie = {number}  # {'x' * 30}\n" for number in range(rows))
    root = plant({f"cookies/cookie{number}.py": f"def cookie{number}():\n{lines}" for number in range(60)})
    tools = sync.Workspace(root, max_chars=size)
    text, found = tools.codebase_search("cookie", limit=60), tools.codebase_search_result("cookie", limit=60)
    assert len(text) <= size
    if found.truncated and all(place.snippet for place in found.places):
        longest = max(len("\n".join(place.lines())) for place in found.places)
        assert len(text) > size - min(longest, 600)
    assert ("There was no room for more results; offset=" in text) == found.truncated


@pytest.mark.parametrize("given", [{}, {"file_pattern": "*.py"}, {"file_type": "py"}, {"file_pattern": "!*.md"}])
def test_pages_have_each_result_of_the_chosen_files_once(plant: Plant, given: dict[str, Any]) -> None:
    names = [f"jar{number}.{suffix}" for number in range(9) for suffix in ("py", "md")]
    tools = sync.Workspace(plant({name: f"cookie of {name}\n" for name in names}))
    pages: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = tools.codebase_search_result("cookie", limit=4, offset=offset, **given)
        assert page.message.startswith("The 4 best results" if not offset else f"Results {offset + 1} to ")
        pages += [place.file for place in page.places]
        offset = page.next_offset
    wanted = [name for name in names if not given or name.endswith(".py")]
    assert sorted(pages) == sorted(wanted)
    assert pages == [place.file for place in tools.codebase_search_result("cookie", **given).places]
    assert "No result from offset=99 on." in tools.codebase_search("cookie", offset=99)


@pytest.mark.parametrize(("size", "places", "whole"), [(1000, 8, 0), (3000, 10, 3), (8000, 11, 10)])
def test_small_budget_shows_the_best_results_whole_and_names_others(
    size: int, places: int, whole: int, plant: Plant
) -> None:
    lines = "".join(f"    cookie = {number}  # {'x' * 10}\n" for number in range(20))
    root = plant({f"{number}.py": f"def cookie{number}():\n{lines}" for number in range(12)})
    found = sync.Workspace(root, max_chars=size).codebase_search_result("cookie")
    shown = [place.snippet.count("\n") for place in found.places]
    assert (len(shown), sum(count >= 20 for count in shown)) == (places, whole)
    assert shown == sorted(shown, reverse=True)
    assert len(str(found)) <= size


def test_blank_lines_that_are_left_out_are_not_announced(plant: Plant) -> None:
    """`[2 more lines]` stands for lines that are all blank."""
    root = plant({"jar.py": "def cookie():\n    return 1\n\n\n", "x.py": "cookie = 1\n" + "x\n" * 110})
    asked = sync.Workspace(root)
    assert asked.codebase_search("cookie", path="jar.py").splitlines()[:-2] == [
        *(
            "jar.py:1-4 in cookie",
            '  score 3.15: defines "cookie"; BM25 0.8',
            "  1: def cookie():",
            "  2:     return 1",
        ),
    ]
    (result,) = asked.codebase_search_result("cookie", path="jar.py").places
    assert result.snippet == "def cookie():\n    return 1\n\n"
    assert "\n  100: x\n  [11 more lines]\n" in asked.codebase_search("cookie", path="x.py")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"query": "  ?! "}, "there is no word in the query"),
        ({}, "pass either query, with words or a name, or like"),
        ({"query": "x", "like": "a.py"}, "pass either query, with words or a name, or like"),
        ({"query": "x", "limit": -1}, "limit must be 0 or more"),
        ({"query": "x", "path": "nowhere"}, "nowhere does not exist"),
        ({"query": "x", "path": "/etc"}, "/etc is outside of the allowed directories"),
        ({"query": "x", "depth": 3}, "unknown argument 'depth'"),
    ],
)
def test_invalid_arguments_give_an_error_text(arguments: dict[str, Any], says: str, shop: Path) -> None:
    text = sync.Workspace(shop).call("codebase_search", arguments)
    assert text.startswith("Error: ") and says in text


def test_index_tools_accept_aliases(shop: Path, home: Path) -> None:
    workspace = sync.Workspace(shop, index=home)
    plain = workspace.codebase_search("cookie", "src", limit=1)
    assert workspace.call("semantic_search", {"question": "cookie", "dir": "src", "max_results": "1"}) == plain
    assert workspace.call("mcp__ripwrap__codebaseSearch", '{"query": "cookie", "path": "src", "limit": 1}') == plain
    assert workspace.call("indexCodebase").startswith(f"{shop}: 3 new")


def test_message_without_results_says_what_to_do(shop: Path) -> None:
    text = sync.Workspace(shop).codebase_search("zebra")
    assert text == "No result found. Ask with other words, or use grep_content."


def test_index_tools_exist_only_with_index(shop: Path, home: Path) -> None:
    for made in (Workspace, sync.Workspace):
        without = [tool.__name__ for tool in made(shop).tools]
        assert without == [
            "grep_content",
            "find_files",
            "ls",
            "tree",
            "codebase_search",
            "find_references",
            "read_file",
            "history",
        ]
        names = [tool.__name__ for tool in made(shop, index=home).tools]
        assert names == [*without, "index_codebase", "index_status", "index_health_check"]
    for name in ("index_codebase", "index_status", "index_health_check"):
        assert sync.Workspace(shop).call(name) == (
            f"Error: {name} needs an index, but this workspace has none; make the workspace with index=True"
        )
        assert getattr(sync.Workspace, name).__doc__ == getattr(Workspace, name).__doc__
        assert list(inspect.signature(getattr(sync.Workspace, name)).parameters) == ["self"]
    assert "index_codebase" in ripwrap.workspace.schemas(index=True)
    assert "index_codebase" not in ripwrap.workspace.schemas()


def test_project_index_is_in_the_project_and_not_listed(shop: Path) -> None:
    workspace = sync.Workspace(shop, index="project")
    assert workspace.index_codebase_result().roots[0].added == 3
    assert (shop / ".ripwrap" / NAME).is_file()
    assert workspace.index_codebase_result().roots[0].unchanged == 3
    assert ".ripwrap" not in workspace.ls(include_hidden=True)


@pytest.mark.parametrize("api", APIS)
def test_index_codebase_rebuilds_an_unsound_index(api: str, shop: Path, home: Path) -> None:
    asked = Asked(api, shop, index=home)
    asked.index_codebase()
    database = sqlite3.connect(home / NAME)

    def old_enough() -> bool:  # a refresh reads files again that have just been written
        asked.index_codebase()
        return bool(database.execute("SELECT min(size) >= 0 FROM tree").fetchone()[0])

    until_blocking(old_enough)
    database.execute("PRAGMA ignore_check_constraints = ON")
    with database:
        database.execute("UPDATE chunk SET line = 'x'")  # a refresh without differences does not read it
    database.close()
    assert asked.index_codebase_result().roots[0].added == 0
    assert asked.index_health_check().endswith("(index_codebase rebuilds damaged indexes.)")
    assert asked.index_codebase_result().roots[0].added == 3
    assert asked.index_health_check_result().roots[0].ok
    assert asked.index_codebase_result().roots[0].added == 0


@pytest.mark.parametrize("api", APIS)
def test_health_check_of_an_unreadable_index_advises_no_rebuild(api: str, shop: Path, home: Path) -> None:
    asked = Asked(api, shop, index=home)
    asked.index_codebase()
    (meta,) = home.glob("postings-*/meta.json")
    meta.unlink()
    meta.mkdir()  # cannot be read as a file
    assert asked.index_health_check().endswith("(The messages say what to do.)")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("chunker", ["other-1", None])
def test_embeddings_survive_what_a_refresh_or_gc_repairs(api: str, chunker: str | None, shop: Path, home: Path) -> None:
    asked = Asked(api, shop, index=home)
    asked.index_codebase()
    database = sqlite3.connect(home / NAME, isolation_level=None)
    database.execute("INSERT INTO model VALUES ('model', 1, 0)")
    database.execute("INSERT INTO vec SELECT DISTINCT digest, 'model', x'0000' FROM chunk")
    vectors = database.execute("SELECT count(*) FROM vec").fetchone()
    if chunker is None:
        database.execute("UPDATE vec SET v = x'00'")
    else:
        database.execute("UPDATE meta SET value = ? WHERE key = 'chunker'", (chunker,))
    found = asked.index_health_check_result()
    assert found.roots[0].ok is (chunker is not None)
    assert found.message == (
        "The messages say what to do."
        if chunker is None
        else "Nothing is damaged. The messages say what can be improved."
    )
    assert found.roots[0].messages
    assert asked.index_codebase_result().roots[0].added == (0 if chunker is None else 3)
    assert vectors > (0,) and database.execute("SELECT count(*) FROM vec").fetchone() == vectors
    database.close()


def checkout(root: Path, name: str) -> None:
    (root / ".git/refs/heads").mkdir(parents=True, exist_ok=True)
    (root / ".git/HEAD").write_text(f"ref: refs/heads/{name}\n")
    (root / ".git/refs/heads" / name).write_text("0" * 40 + "\n")


def test_index_codebase_removes_branches_that_are_gone_and_keeps_vectors(shop: Path, home: Path) -> None:
    """Views of deleted branches stayed, and the check did not name them."""
    workspace = sync.Workspace(shop, index=home)
    checkout(shop, "feature")
    (shop / "cakes.py").write_text("def bake_cakes(): ...\n")
    workspace.index_codebase()
    with sqlite3.connect(home / NAME) as database:
        database.execute("INSERT INTO model VALUES ('model', 1, 0)")
        database.execute("INSERT INTO vec SELECT DISTINCT digest, 'model', x'0000' FROM chunk")
    (shop / "cakes.py").unlink()
    checkout(shop, "main")
    workspace.index_codebase()
    (shop / ".git/refs/heads/feature").unlink()
    health = workspace.index_health_check_result()
    expected = f"Branches or directories are gone: feature in {shop}; index_codebase removes their content."
    assert health.roots[0].ok and health.roots[0].messages == (expected,)
    made = workspace.index_codebase_result()
    assert made.roots[0].pruned == ("feature",)
    assert "; removed branches that are gone: feature\n" in str(made)
    assert workspace.index_codebase_result().roots[0].pruned == ()
    assert workspace.index_health_check_result().roots[0].messages == ()
    assert workspace.index_status_result().roots[0].branches == ("main",)
    paths = {path for (path,) in database.execute("SELECT path FROM blob")}
    assert "src/till.py" in paths and "cakes.py" not in paths
    assert database.execute("SELECT count(*) FROM vec").fetchone() == (4,)
    database.close()


def test_errors_of_the_index_name_tools_and_arguments_of_the_workspace(shop: Path, home: Path) -> None:
    """A model read `refresh()` and `location=`."""
    home.mkdir()
    (home / NAME).write_text("a file of another program")
    text = sync.Workspace(shop, index=home).index_codebase()
    assert text.endswith("It is left untouched; remove it, or pass another index=")
    (home / NAME).unlink()
    assert "There is no index yet; index_codebase makes it." in sync.Workspace(shop, index=home).index_health_check()


def test_index_status_tells_of_an_index_of_another_version(shop: Path, home: Path) -> None:
    """The tool said 'not built', without a reason."""
    workspace = sync.Workspace(shop, index=home)
    workspace.index_codebase()
    assert workspace.index_status().endswith("\n(codebase_search refreshes the index before it searches.)")
    with sqlite3.connect(home / NAME) as database:
        database.execute("UPDATE meta SET value = 'other 1' WHERE key = 'chunker'")
    database.close()
    text = workspace.index_status()
    assert ": 3 files, " in text and "\n  The index was made with the chunker 'other 1', and " in text
    assert "; the next index_codebase rebuilds it.\n" in text
    assert text.endswith("\n(index_codebase builds the indexes that are not built or are outdated.)")
    assert workspace.codebase_search_result("cookie").ranking == "files"


def test_damaged_index_is_rebuilt_and_a_foreign_file_is_left_alone(shop: Path, home: Path) -> None:
    workspace = sync.Workspace(shop, index=home)
    workspace.index_codebase_result()
    del workspace
    with (home / NAME).open("r+b") as file:
        file.seek(4096)
        file.write(b"garbage" * 10_000)
    workspace = sync.Workspace(shop, index=home)
    status = workspace.index_status()
    assert ": not built\n  The index is damaged (" in status and "; rebuild the index with index_codebase, " in status
    health = workspace.index_health_check()
    assert "NOT sound" in health
    assert "rebuild the index with index_codebase" in health and "refresh(" not in health  # a tool, not a method
    assert workspace.codebase_search_result("cookie").ranking == "files"
    assert workspace.index_codebase_result().roots[0].added == 3
    assert workspace.codebase_search_result("cookie").ranking == "index"
    del workspace
    (home / NAME).unlink()
    other = sqlite3.connect(home / NAME)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    workspace = sync.Workspace(shop, index=home)
    assert workspace.codebase_search_result("cookie").places
    assert "is not a file of a ripwrap index" in workspace.index_codebase()
    with pytest.raises(RipwrapError):
        workspace.index_codebase_result()


def test_progress_counts_files_over_all_roots(shop: Path, home: Path) -> None:
    seen: list[int] = []
    sync.Workspace(shop / "src", shop / "docs", index=home).call_result("index_codebase", progress=seen.append)
    assert seen == sorted(seen) and seen[-1] == 3


@pytest.mark.anyio
async def test_cancelled_index_codebase_leaves_the_index_unchanged(
    shop: Path, home: Path, children: Callable[[], Any], anyio_backend: str
) -> None:
    workspace = Workspace(shop, index=home)

    def cancel(_: int) -> None:
        anyio.from_thread.run_sync(scope.cancel)
        assert CANCELLED.get().wait(20)

    with anyio.CancelScope() as scope:
        await workspace.call_result("index_codebase", progress=cancel)
    assert scope.cancelled_caught
    assert children() == []
    assert not (await workspace.index_status_result()).roots[0].built
    assert (await workspace.index_codebase_result()).roots[0].added == 3


def test_workspace_does_not_import_sqlite_or_the_index() -> None:
    code = (
        "import sys; from ripwrap import Workspace, sync; Workspace('.').tools; sync.Workspace('.').tools;"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sqlite3", "ripwrap.index", "numpy", "httpx"} & set(done.stdout.split())

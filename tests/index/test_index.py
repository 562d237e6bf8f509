"""The index: refreshes, searches without stale results, and views of branches."""

import logging
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

import ripwrap
from ripwrap import RipwrapError
from ripwrap._code.treesitter.merge import WINDOW_VERSION, window_chunks
from ripwrap._ranking.document import MAX_FILE_BYTES
from ripwrap.index import Index, Progress, RefreshResult
from ripwrap.index.refresh import refresh
from ripwrap.index.splitting import Chunker, Splitter
from ripwrap.index.storage.files import NAME
from ripwrap.index.storage.store import Store
from ripwrap.index.storage.tables import View, generation_of
from support.effort import times
from support.opening import refused
from support.shop import SHOP, held

Plant = Callable[..., Path]

pytestmark = [pytest.mark.slow, pytest.mark.loops("asyncio")]  # about SQLite and files, not Pythons or loops


@pytest.fixture
async def index(plant: Plant, home: Path, anyio_backend: str) -> AsyncIterator[Index]:
    async with Index(plant(SHOP), location=home) as index:
        yield index


def counts(done: RefreshResult) -> tuple[int, int, int, int]:
    return done.added, done.changed, done.removed, done.unchanged


async def paths(index: Index, query: str, *, refresh: bool = True) -> list[str]:
    return [place.path for place in await index.search(query, refresh=refresh)]


async def everything(index: Index, query: str) -> list[str]:
    return [place.model_dump_json() for place in await index.search(query, limit=None)]


async def all_answers(index: Index) -> list[list[str]]:
    return [await everything(index, query) for query in ("cookies", "Basket", "shop")]


async def rebuilt_answers(root: Path, home: Path) -> list[list[str]]:
    """Return the results of a newly built index."""
    async with Index(root, location=home / "new") as index:
        answers = await all_answers(index)
    shutil.rmtree(home / "new")
    return answers


@pytest.mark.anyio
async def test_first_search_builds_the_index_and_returns_chunk_and_reasons(index: Index) -> None:
    first = (await index.search("where are cookies stored"))[0]
    assert (first.path, first.start_line, first.end_line, first.symbol) == ("src/cookies.py", 1, 2, "store_cookie")
    assert first.text == SHOP["src/cookies.py"]
    assert first.score > 0 and first.reasons


@pytest.mark.anyio
async def test_index_with_window_chunks_ranks_as_rank_does(plant: Plant, home: Path) -> None:
    async with Index(plant(SHOP), location=home, chunker="windows") as index:
        for query in ("cookies", "Cart", "add item to the cart"):
            with_index = await index.search(query)
            without = await ripwrap.rank(query, cwd=index.root)
            # Without a parser, headings are no symbols.
            assert [(one.path, one.start_line, one.path.endswith(".py") and one.symbol) for one in with_index] == [
                (one.path, one.start_line, one.path.endswith(".py") and one.symbol) for one in without
            ]


SESSION = """\
class Session:
    def login(self, password):
        return check(password)

    def logout(self): ...
"""


@pytest.mark.anyio
@pytest.mark.parametrize(("query", "name"), [("session login", "Session.login"), ("logout", "Session.logout")])
async def test_symbol_of_a_result_is_its_most_relevant_method(
    index: Index, plant: Plant, query: str, name: str
) -> None:
    """The chunk of several small methods had the symbol of their class."""
    plant({"session.py": SESSION})
    for found in (await index.search(query), await ripwrap.rank(query, cwd=index.root)):
        assert (found[0].path, found[0].symbol) == ("session.py", name)


@pytest.mark.anyio
async def test_search_after_any_change_equals_a_rebuilt_index(index: Index, plant: Plant, home: Path) -> None:
    await index.refresh()
    changes: list[Callable[[], object]] = [
        lambda: plant({"src/cart.py": "class Basket:\n    '''Of cookies.'''\n"}),
        lambda: plant({"src/more/deep.py": "def cookies(): ...\n" * 200}),
        partial(os.rename, index.root / "src/cookies.py", index.root / "src/biscuits.py"),
        lambda: (index.root / "src/more").rename(index.root / "moved"),
        lambda: plant({"README.md": ""}),
        lambda: plant({"README.md": "# Shop of cookies\n"}),
        partial(os.unlink, index.root / "src/cart.py"),
        partial(shutil.rmtree, index.root / "moved"),
        lambda: plant({"src/cart.py": SHOP["src/cart.py"]}),
        lambda: plant({".gitignore": "cart.py\n"}),
    ]
    for change in changes:
        change()
        assert await all_answers(index) == await rebuilt_answers(index.root, home)
    assert (await index.check()).ok


async def settle(index: Index) -> None:
    """Refresh until nothing is written. New files are read again, since they may change without a new timestamp."""
    await index.refresh()
    before = None
    with anyio.fail_after(20):
        while (changed_at := (await index.status()).changed_at) != before:
            before = changed_at
            await index.refresh()


@pytest.mark.anyio
async def test_each_kind_of_change_after_an_unchanged_refresh_is_seen(index: Index, plant: Plant) -> None:
    plant({"a.txt": "alpha\n", "b.txt": "bravo\n"})
    root = index.root

    def swap() -> None:
        (root / "a.txt").rename(root / "c")
        (root / "b.txt").rename(root / "a.txt")
        (root / "c").rename(root / "b.txt")

    changes: list[tuple[Callable[[], object], tuple[int, int, int, int]]] = [
        (lambda: plant({"a.txt": "other\n"}), (0, 1, 0, 4)),
        (swap, (0, 2, 0, 3)),
        (lambda: plant({"new.txt": "new\n"}), (1, 0, 0, 5)),
        (partial(os.rename, root / "new.txt", root / "newer.txt"), (1, 0, 1, 5)),
        (partial(os.unlink, root / "newer.txt"), (0, 0, 1, 5)),
        (lambda: plant({"a.txt": "bin\0ary"}), (0, 0, 1, 4)),
        (lambda: plant({".gitignore": "b.txt\n"}), (0, 0, 1, 3)),
    ]
    for change, expected in changes:
        await settle(index)
        change()
        assert counts(await index.refresh()) == expected
    await settle(index)
    done = await index.refresh()
    assert counts(done) == (0, 0, 0, 3)
    assert [(one.reason, one.files, one.example) for one in done.skipped] == [("binary", 1, "a.txt")]


@pytest.mark.anyio
async def test_unchanged_refresh_reads_no_row_of_a_file(index: Index) -> None:
    await settle(index)
    await index.refresh()  # compares the checksum of the rows, once in a process
    statements: list[str] = []
    index._store.run(lambda database: database.set_trace_callback(statements.append))
    assert counts(await index.refresh()) == (0, 0, 0, 3)
    assert statements
    assert [one for one in statements if "FROM tree" in one and "note IS NOT NULL" not in one] == []


@pytest.mark.anyio
async def test_file_with_a_time_in_a_far_century_is_indexed(index: Index, plant: Plant) -> None:
    far = [("late.py", 12 * 10**18), ("early.py", -2 * 10**18)]
    for name, time in far:
        os.utime(plant({name: f"biscuit of {name}\n"}) / name, ns=(time, time))
    assert set(await paths(index, "biscuit")) == {name for name, _ in far}
    await settle(index)
    plant({"late.py": "cracker\n"})
    os.utime(index.root / "late.py", ns=(12 * 10**18 + 1, 12 * 10**18 + 1))
    assert await paths(index, "cracker") == ["late.py"]


@pytest.mark.anyio
async def test_changed_content_with_the_same_size_and_time_is_seen(index: Index, plant: Plant) -> None:
    file = plant({"a.py": "alpha = 1\n"}) / "a.py"
    os.utime(file, ns=(10**18, 10**18))
    assert await paths(index, "alpha") == ["a.py"]
    file.write_text("bravo = 1\n")
    os.utime(file, ns=(10**18, 10**18))
    assert await paths(index, "bravo") == ["a.py"]
    assert await paths(index, "alpha") == []


@pytest.mark.anyio
async def test_rapid_rewrites_are_always_seen(index: Index, plant: Plant) -> None:
    for number in range(100, 100 + times(12, 40)):
        plant({"a.py": f"word{number} = 1\n"})
        assert await paths(index, f"word{number}") == ["a.py"]
        assert await paths(index, f"word{number - 1}") == []


@pytest.mark.anyio
async def test_touched_file_is_not_chunked_again(index: Index) -> None:
    await index.refresh()
    os.utime(index.root / "README.md", ns=(1, 1))
    done = await index.refresh()
    assert (counts(done), done.chunks) == ((0, 0, 0, 3), 0)


@pytest.mark.anyio
async def test_hidden_and_ignored_files_are_not_indexed(index: Index, plant: Plant, home: Path) -> None:
    """`.env` was the first result, and the index stored its text."""
    plant({".gitignore": "secret\n", "secret": "cookies\n", ".env": "cookies\n", ".git/config": "cookies\n"})
    assert set(await paths(index, "cookies")) == {"README.md", "src/cookies.py"}
    async with Index(index.root, location=home, hidden=True) as hidden:
        assert set(await paths(hidden, "cookies")) == {".env", "README.md", "src/cookies.py"}


@pytest.mark.posix
@pytest.mark.anyio
async def test_links_are_followed_only_if_asked_for(index: Index, home: Path, tmp_path: Path) -> None:
    """Files behind a link to /etc were indexed, and a linked package was indexed twice."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_text("cookies\n")
    (index.root / "etc").symlink_to(tmp_path / "etc")
    (index.root / "linked").symlink_to("src")
    assert set(await paths(index, "cookies")) == {"README.md", "src/cookies.py"}
    async with Index(index.root, location=home, follow=True) as following:
        found = {place.path: place.reasons for place in await following.search("cookies")}
    assert found.keys() == {"README.md", "linked/cookies.py", "etc/passwd"}
    assert "the first of 2 equal chunks; 1 left out" in found["linked/cookies.py"]  # the other is in src/cookies.py


@pytest.mark.anyio
async def test_hidden_files_in_an_index_of_an_older_version_are_removed(index: Index, plant: Plant, home: Path) -> None:
    """Neither an answer nor the database has text of these files afterwards."""
    plant({".swordfish": "COOKIES='chocolate'\n"})  # the database stores the path
    async with Index(index.root, location=home, hidden=True, follow=True) as old:
        assert ".swordfish" in await paths(old, "cookies")
    database = sqlite3.connect(home / NAME)
    with database:
        database.execute("DELETE FROM meta WHERE key = 'files'")
    database.close()
    assert b"swordfish" in (home / NAME).read_bytes()
    assert set(await paths(index, "cookies")) == {"README.md", "src/cookies.py"}
    assert await paths(index, "swordfish") == []
    assert len((await index.status()).views) == 1
    await index.aclose()
    files = [Path(folder, name) for folder, _, names in os.walk(home) for name in names]
    assert len(files) > 5 and not any(b"swordfish" in file.read_bytes() for file in files)


@pytest.mark.anyio
async def test_sort_and_threads_options_share_one_view(plant: Plant, home: Path) -> None:
    root = plant(SHOP)
    async with Index(root, location=home) as index, Index(root, location=home, sort="path", threads=1) as ordered:
        await index.refresh()
        assert (await ordered.refresh()).added == 0
        assert len((await ordered.status()).views) == 1


@pytest.mark.anyio
async def test_file_options_select_the_indexed_files(plant: Plant, home: Path) -> None:
    root = plant(SHOP)
    async with Index(root, location=home, glob="*.md") as documents, Index(root, location=home) as everywhere:
        assert await paths(documents, "cookies") == ["README.md"]
        assert len(await paths(everywhere, "cookies")) == 2
        assert await paths(documents, "cookies") == ["README.md"]
        assert len((await documents.status()).views) == 2


@pytest.mark.anyio
async def test_binary_files_are_reported_as_skipped(index: Index, plant: Plant) -> None:
    plant({"a.bin": b"cookies\0cookies", "late.bin": b"cookies\n" * 20_000 + b"\0"})
    for _ in range(2):
        done = await index.refresh()
        assert [(one.reason, one.files, one.example) for one in done.skipped] == [("binary", 2, "a.bin")]
    plant({"a.bin": b"cookies in text now"})
    assert "a.bin" in await paths(index, "cookies")


@pytest.mark.anyio
async def test_only_the_first_million_bytes_of_a_large_file_are_indexed(index: Index, plant: Plant) -> None:
    plant({"generated.txt": "needle\n" + "filler words here\n" * (MAX_FILE_BYTES // 10) + "haystack\n"})
    done = await index.refresh()
    assert done.cut == 1
    assert await paths(index, "needle") == ["generated.txt"]
    assert await paths(index, "haystack") == []
    assert (await index.refresh()).cut == 1


@pytest.mark.anyio
async def test_unreadable_file_is_reported_and_retried_on_every_refresh(
    index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    with refused("README.md"):
        assert counts(await index.refresh()) == (2, 0, 0, 0)
        for _ in range(2):
            caplog.clear()
            done = await index.refresh()
            assert counts(done) == (0, 0, 0, 2)
            assert [(one.reason, one.files, one.example) for one in done.skipped] == [("unreadable", 1, "README.md")]
            assert caplog.text.count("could not read README.md: Permission denied") == 1
        status = await index.status()
        assert (status.files, status.views[0].files, (await index.check()).ok) == (2, 3, True)
    assert await paths(index, "shop") == ["README.md"]
    with refused("README.md"):
        (index.root / "README.md").chmod(0o200)
        done = await index.refresh()
        assert (counts(done), len(done.skipped)) == ((0, 0, 1, 2), 1)
        assert await paths(index, "shop") == []
    (index.root / "README.md").chmod(0o644)  # the mode refuses other users than root
    done = await index.refresh()
    assert (counts(done), done.skipped) == ((1, 0, 0, 2), ())
    assert (await index.check()).ok
    with refused("README.md"):
        (index.root / "README.md").touch()  # on a slow machine, the file is no longer so new that it is read again
        assert counts(await index.refresh()) == (0, 0, 1, 2)
        (index.root / "README.md").unlink()
        done = await index.refresh()
    assert (counts(done), done.skipped) == ((0, 0, 0, 2), ())


@pytest.mark.anyio
async def test_file_that_stays_unreadable_causes_no_write(index: Index) -> None:
    async def changes() -> bool:
        before = (await index.status()).changed_at
        await index.refresh()
        return (await index.status()).changed_at != before

    with refused("README.md"), anyio.fail_after(20):
        while await changes():  # at first, because new files are read again
            pass
        with held(index.location):
            assert await paths(index, "cookies") == ["src/cookies.py"]


def nest(root: Path) -> None:
    """Nest folders deeper than the longest path, with one file half-way and one at the end."""
    here = os.getcwd()
    try:
        os.chdir(root)
        for number in range(1_500):
            os.mkdir("deep")
            os.chdir("deep")
            if number in (500, 1_499):
                Path("a.py").write_text(f"deep biscuit {number}\n")
    finally:
        os.chdir(here)


@pytest.mark.anyio
async def test_longest_names_and_deepest_folders_that_rg_lists_are_indexed(
    index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    (index.root / ("x" * 255)).write_text("biscuit\n")
    nest(index.root)
    done = await index.refresh()
    assert (counts(done), done.skipped) == ((5, 0, 0, 0), ())
    assert set(await paths(index, "biscuit")) == {"x" * 255, "deep/" * 501 + "a.py"}
    assert "rg could not read some paths: deep/deep/" in caplog.text
    os.rename(index.root / "deep", index.root.parent / "deep")
    assert subprocess.run(["rm", "-r", index.root.parent / "deep"], check=False).returncode == 0


@pytest.mark.anyio
async def test_file_whose_stat_fails_is_reported_as_unreadable(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.lstat

    def refuse(path: Any, **options: Any) -> os.stat_result:
        if path == str(index.root / "README.md"):
            raise PermissionError(13, "Permission denied")
        return real(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", refuse)
        done = await index.refresh()
    assert [(one.reason, one.files, one.example) for one in done.skipped] == [("unreadable", 1, "README.md")]
    assert counts(done) == (2, 0, 0, 0)


@pytest.mark.posix
@pytest.mark.anyio
async def test_pipes_are_not_read(index: Index) -> None:
    os.mkfifo(index.root / "pipe")
    assert counts(await index.refresh()) == (3, 0, 0, 0)


@pytest.mark.anyio
async def test_paths_and_texts_that_are_not_utf8_are_found(index: Index, plant: Plant) -> None:
    plant({b"caf\xe9.txt": b"na\xefve cookies\n", "wide.txt": "\ufeffcookies für alle\n".encode("utf-16-le")})
    found = {place.path: place for place in await index.search("cookies")}
    latin = found[os.fsdecode(b"caf\xe9.txt")]
    assert latin.text == "na\ufffdve cookies\n"
    assert latin.model_dump(mode="json")["text"] == {"bytes": "bmHvdmUgY29va2llcwo="}
    assert found["wide.txt"].text == "cookies für alle\n"
    (index.root / os.fsdecode(b"caf\xe9.txt")).unlink()
    assert len(await paths(index, "cookies")) == 3
    assert (await index.check()).ok


@pytest.mark.anyio
async def test_invalid_query_or_limit_raises_and_limit_0_does_no_work(index: Index) -> None:
    for query in ("", "  ", "?!"):
        with pytest.raises(ValueError, match="there is no word in the query"):
            await index.search(query)
    with pytest.raises(ValueError, match="limit must be 0 or more"):
        await index.search("cookies", limit=-1)
    with pytest.raises(TypeError, match="a query must be a str, got int"):
        await index.search(1)  # type: ignore[arg-type]
    assert await index.search("cookies", limit=0) == []
    assert not index.location.exists()


@pytest.mark.anyio
async def test_empty_folder_has_an_index_that_finds_nothing(folder: Path, home: Path) -> None:
    async with Index(folder, location=home) as index:
        assert await index.search("anything") == []
        assert (await index.status()).built
        assert counts(await index.refresh()) == (0, 0, 0, 0)


@pytest.mark.anyio
async def test_missing_root_raises(tmp_path: Path, home: Path) -> None:
    async with Index(tmp_path / "nowhere", location=home) as index:
        with pytest.raises(FileNotFoundError):
            await index.refresh()
    (tmp_path / "file").write_text("")
    async with Index(tmp_path / "file", location=home) as index:
        with pytest.raises(NotADirectoryError):
            await index.search("anything")


@pytest.mark.anyio
async def test_search_without_refresh_uses_the_last_refresh(index: Index, plant: Plant) -> None:
    with pytest.raises(RipwrapError, match=r"there is no index of .* yet.*; refresh\(\) makes it"):
        await index.search("cookies", refresh=False)
    await index.refresh()
    plant({"src/cookies.py": "nothing\n", "new.py": "cookies\n"})
    assert await paths(index, "cookies", refresh=False) == ["README.md"]  # src/cookies.py has changed
    assert set(await paths(index, "cookies")) == {"new.py", "src/cookies.py", "README.md"}


@pytest.mark.anyio
async def test_progress_is_reported_in_order_and_can_end_the_refresh(index: Index, plant: Plant) -> None:
    plant({f"many/{number}.txt": "word\n" for number in range(200)})
    told: list[Progress] = []
    await index.refresh(told.append)
    assert [one.files for one in told] == sorted(one.files for one in told)
    assert (told[0].files, told[-1].files, {one.total for one in told}) == (0, 203, {203})
    assert told[-1].chunks == 203
    told.clear()
    await index.refresh(told.append)
    assert told == [] or told[-1].chunks == 0  # a new file may be read again

    plant({"late.txt": "word\n"})

    def enough(progress: Progress) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        await index.refresh(enough)
    assert "late.txt" not in await paths(index, "late", refresh=False)
    assert counts(await index.refresh()) == (1, 0, 0, 203)


@pytest.mark.anyio
async def test_index_in_the_project_is_not_listed_or_indexed(plant: Plant, session_cache: Path) -> None:
    root, marks = plant(SHOP), session_cache / "index" / "marks"
    os.makedirs(marks, 0o700, exist_ok=True)
    before = os.listdir(marks)
    async with Index(root, location="project", no_ignore=True) as index:
        assert counts(await index.refresh()) == (3, 0, 0, 0)
        assert counts(await index.refresh()) == (0, 0, 0, 3)
    assert (root / ".ripwrap/.gitignore").read_text() == "*\n"
    assert len(os.listdir(marks)) == len(before) + 1  # an index in the user's cache gets no mark
    assert not [path async for path in ripwrap.files(cwd=root) if path.startswith(".ripwrap")]


@pytest.mark.posix
@pytest.mark.anyio
async def test_index_is_in_the_users_cache_by_default(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "cache"))
    root, link = plant(SHOP), tmp_path / "link"
    async with Index(root) as index:
        await index.refresh()
        assert index.location.parent == tmp_path / "cache" / "index"
        assert (index.location / NAME).exists()
        os.symlink(root, link)
        assert Index(link).location == index.location
        assert Index(root / "src").location != index.location


@pytest.mark.anyio
async def test_status_describes_the_index(index: Index, home: Path) -> None:
    status = await index.status()
    assert (status.built, status.files, status.views, status.changed_at) == (False, 0, (), None)
    assert status.bytes == 0
    await index.refresh()
    status = await index.status()
    assert (status.built, status.files, status.chunks) == (True, 3, 3)
    assert (status.view, status.location, status.model, status.sent) == ("no repository", str(home), None, ())
    assert status.bytes > 0 and status.changed_at is not None
    assert [(view.name, view.files, view.current) for view in status.views] == [("no repository", 3, True)]


def on(root: Path, head: str) -> None:
    (root / ".git").mkdir(exist_ok=True)
    (root / ".git/HEAD").write_text(head)


def branch(root: Path, name: str) -> None:
    on(root, f"ref: refs/heads/{name}\n")
    ref = root / ".git/refs/heads" / name
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_text("0" * 40 + "\n")


@pytest.mark.anyio
async def test_branches_have_views_and_share_chunks_of_equal_content(index: Index, plant: Plant) -> None:
    branch(index.root, "main")
    assert (await index.refresh()).chunks == 3
    branch(index.root, "feature/cakes")
    plant({"src/cakes.py": "def bake_cakes(): ...\n", "README.md": "# Cakes\n"})
    done = await index.refresh()
    assert (counts(done), done.chunks) == ((1, 1, 0, 2), 2)
    assert await paths(index, "cakes") == ["src/cakes.py", "README.md"]
    branch(index.root, "main")
    (index.root / "src/cakes.py").unlink()
    plant({"README.md": SHOP["README.md"]})
    done = await index.refresh()
    assert (counts(done), done.chunks) == ((0, 0, 0, 3), 0)
    assert await paths(index, "cakes") == []
    assert set(await paths(index, "cookies")) == {"src/cookies.py", "README.md"}
    branch(index.root, "feature/cakes")
    plant({"src/cakes.py": "def bake_cakes(): ...\n", "README.md": "# Cakes\n"})
    assert (await index.refresh()).chunks == 0
    status = await index.status()
    assert (status.view, {view.name for view in status.views}) == ("feature/cakes", {"main", "feature/cakes"})


@pytest.mark.anyio
async def test_results_of_other_branches_do_not_reduce_those_of_the_current_branch(index: Index, plant: Plant) -> None:
    branch(index.root, "main")
    plant({"only.py": "word\n"})
    await index.refresh()
    (index.root / "only.py").unlink()
    branch(index.root, "other")
    plant({f"many/{number}.py": "word " * (number % 7 + 1) for number in range(700)})
    await index.refresh()
    shutil.rmtree(index.root / "many")
    plant({"only.py": "word\n"})
    branch(index.root, "main")
    assert await paths(index, "word") == ["only.py"]


@pytest.mark.posix
@pytest.mark.anyio
async def test_every_kind_of_head_has_a_view(index: Index) -> None:
    heads = {
        "1234567890123456789012345678901234567890\n": "detached HEAD",
        "ref: refs/heads/a/b\n": "a/b",
        "ref: refs/heads/.invalid\n": "unknown branch",
        "": "unknown branch",
    }
    for head, name in heads.items():
        on(index.root, head)
        await index.refresh()
        assert (await index.status()).view == name
    (index.root / ".git/HEAD").unlink()
    (index.root / ".git/HEAD").symlink_to("refs/heads/old")
    assert (await index.status()).view == "old"


@pytest.mark.anyio
async def test_prune_removes_views_and_content_of_deleted_branches(index: Index, plant: Plant) -> None:
    for name in ("gone", "packed", "main"):
        branch(index.root, name)
        plant({f"{name}.py": f"{name} = 'cookies'\n"})
        await index.refresh()
        (index.root / f"{name}.py").unlink()
    (index.root / ".git/refs/heads/gone").unlink()
    (index.root / ".git/refs/heads/packed").unlink()
    (index.root / ".git/packed-refs").write_text("# pack-refs with: peeled\n" + "0" * 40 + " refs/heads/packed\n")
    assert [(view.name, view.gone) for view in (await index.status()).views] == [
        ("gone", True),
        ("main", False),
        ("packed", False),
    ]
    health = await index.check()
    message = f"Branches or directories are gone: gone in {index.root}; prune() removes their content."
    assert (health.ok, health.messages) == (True, (message,))
    collected = await index.prune()
    assert (collected.views, collected.blobs, collected.chunks) == (("gone",), 1, 1)
    assert {view.name for view in (await index.status()).views} == {"main", "packed"}
    assert (await index.check()).messages == ()
    shutil.rmtree(index.root / ".git")
    await index.refresh()
    assert set((await index.prune()).views) == {"main", "packed"}
    assert set(await paths(index, "cookies")) == {"src/cookies.py", "README.md"}


@pytest.mark.anyio
async def test_prune_frees_disk_space(index: Index, plant: Plant) -> None:
    plant({f"many/{number}.txt": f"word{number} = 1\n" * 2_000 for number in range(40)})
    await index.refresh()
    shutil.rmtree(index.root / "many")
    await index.refresh()
    assert (await index.prune()).bytes > 150_000
    assert set(await paths(index, "cookies")) == {"src/cookies.py", "README.md"}


@pytest.mark.anyio
async def test_sizes_include_graphs_of_embeddings(index: Index, home: Path) -> None:
    await index.refresh()
    before = (await index.status()).bytes
    (home / "vectors-99-00112233445566aa.usearch").write_bytes(bytes(1_000_000))
    assert (await index.status()).bytes == before + 1_000_000
    assert (await index.prune()).bytes >= 900_000
    assert (await index.status()).bytes < before + 100_000


@pytest.mark.anyio
async def test_worktrees_share_an_index_and_have_separate_views(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "cache"))
    root = plant(SHOP)
    branch(root, "main")
    tree = tmp_path / "worktree"
    shutil.copytree(root, tree, ignore=shutil.ignore_patterns(".git"))
    own = root / ".git/worktrees/worktree"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/fix\n")
    (own / "commondir").write_text("../..\n")
    (root / ".git/refs/heads/fix").write_text("0" * 40)
    (tree / ".git").write_text(f"gitdir: {own}\n")
    (tree / "fixed.py").write_text("cookies = 'fixed'\n")
    async with Index(root) as main, Index(tree) as fix:
        assert main.location == fix.location
        await main.refresh()
        done = await fix.refresh()
        assert (done.added, done.chunks) == (4, 1)
        assert "fixed.py" in await paths(fix, "cookies")
        assert "fixed.py" not in await paths(main, "cookies")
        assert Index(tree / "src").location == Index(root / "src").location
        assert {view.name for view in (await main.status()).views} == {"main", "fix"}
        shutil.rmtree(tree)
        assert (await main.prune()).views == ("fix",)


@pytest.mark.anyio
async def test_submodule_has_the_view_of_its_own_branch(plant: Plant, tmp_path: Path, home: Path) -> None:
    root = plant({"sub/a.py": "word\n", ".git/modules/sub/HEAD": "ref: refs/heads/topic\n"})
    (root / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    async with Index(root / "sub", location=home) as index:
        assert await paths(index, "word") == ["a.py"]
        assert (await index.status()).view == "topic"


@pytest.mark.loops("asyncio", "trio")
@pytest.mark.anyio
async def test_concurrent_tasks_get_the_same_results(index: Index) -> None:
    found: list[list[str]] = []

    async def ask() -> None:
        found.append(await paths(index, "cookies"))

    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(ask)
    assert len(found) == 12 and len({tuple(one) for one in found}) == 1


@pytest.mark.loops("asyncio", "trio")
def test_refresh_with_an_outdated_list_keeps_files_that_others_have_added(plant: Plant, home: Path) -> None:
    """The last attempt of a refresh writes although another process has refreshed since the files were listed."""
    root = plant({"a.py": "alpha\n", "new.py": "alpha\n", "gone.py": "alpha\n"})
    chunker = Chunker(WINDOW_VERSION, lambda _, text: window_chunks(text))
    view, store = View(str(root), "main", '["--"]'), Store(home, {"chunker": chunker.version})

    def write(paths: list[str], generation: int | None, *, insist: bool) -> RefreshResult | None:
        splitter = Splitter(chunker)
        return store.run(
            lambda database: refresh(database, store, view, paths, splitter, generation, None, insist=insist)
        )

    done = write(["a.py", "gone.py", "new.py"], None, insist=False)
    assert done is not None
    (root / "gone.py").unlink()
    assert write(["a.py"], None, insist=False) is None
    outdated = write(["a.py"], None, insist=True)
    assert outdated is not None
    assert (outdated.unchanged, outdated.removed) == (2, 1)
    current = write(["a.py"], store.run(lambda database: generation_of(database, view)), insist=False)
    assert current is not None
    assert (current.unchanged, current.removed) == (1, 1)
    store.close()


@pytest.mark.anyio
async def test_closed_index_is_reopened_on_use(index: Index) -> None:
    me = psutil.Process()
    await index.refresh()
    await index.aclose()
    before = me.num_fds()
    assert (await index.search("cookies"))[0].path == "src/cookies.py"
    assert me.num_fds() > before
    await index.aclose()
    assert me.num_fds() == before
    assert not (index.location / f"{NAME}-wal").exists()


def test_index_works_in_one_event_loop_after_another(plant: Plant, home: Path) -> None:
    index = Index(plant(SHOP), location=home)
    for backend in ("asyncio", "trio", "asyncio"):
        assert anyio.run(paths, index, "cart", backend=backend) == ["src/cart.py"]
    anyio.run(index.aclose)


@pytest.mark.anyio
async def test_another_chunker_rebuilds_the_index_and_keeps_vectors(
    index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ripwrap")
    await index.refresh()
    await index.aclose()
    database = sqlite3.connect(index.location / NAME)
    with database:
        database.execute("UPDATE meta SET value = 'other-1' WHERE key = 'chunker'")
        database.execute("INSERT INTO vec VALUES (x'00', 'model', x'0000')")
        database.execute("INSERT INTO model VALUES ('model', 1, 0)")
    database.close()
    health = await index.check()
    assert health.ok and "made with the chunker 'other-1'" in health.messages[0]
    status = await index.status()
    assert (status.built, status.outdated, status.files, status.chunker) == (True, True, 3, "other-1")
    assert status.messages == health.messages
    assert [(model.name, model.vectors) for model in status.models] == [("model", 1)]
    assert (status.views, status.models) == (health.views, health.models)
    assert counts(await index.refresh()) == (3, 0, 0, 0)
    assert "another chunker or version of ripwrap made it" in caplog.text
    assert (await index.check()).ok
    assert index._store.run(lambda database: database.execute("SELECT count(*) FROM vec").fetchone()) == (1,)
    assert (await index.prune()).vectors == 1


def test_locks_and_numpy_are_imported_on_first_use() -> None:
    code = "import sys, ripwrap.index; print('filelock' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["", "src", ".ripwrap"])
async def test_only_files_of_the_index_are_excluded_from_it(plant: Plant, where: str, anyio_backend: str) -> None:
    theirs = ["index.lock.txt", "index.sqlite3.md", "vectors-notes.md", "vectors-1-x.usearch.md", "vectors-2.usearch"]
    root = plant({os.path.join(where, name): f"cookies {number}\n" for number, name in enumerate(theirs)})
    async with Index(root, location=root / where, hidden=True) as index:
        expected = set() if where == ".ripwrap" else {os.path.join(where, name) for name in theirs}
        for _ in range(2):
            assert set(await paths(index, "cookies")) == expected
        await index.prune()
        assert (await index.status()).files == len(expected)
    async with Index(root / where, location=root / where, hidden=True) as index:
        assert set(await paths(index, "cookies")) == set(theirs)


def test_empty_location_is_rejected() -> None:
    with pytest.raises(ValueError, match="location must name a directory"):
        Index(location="")


@pytest.mark.anyio
async def test_deprecated_names_warn_with_their_replacement(index: Index) -> None:
    with pytest.warns(DeprecationWarning, match=r"use rebuild="):
        await index.refresh(anew=True)
    with pytest.warns(DeprecationWarning, match=r"use check\(\)"):
        assert (await index.health()).ok
    with pytest.warns(DeprecationWarning, match=r"use prune\(\)"):
        assert (await index.gc()).views == ()
    with pytest.warns(DeprecationWarning, match=r"use ripwrap\.index\.RefreshResult"):
        assert ripwrap.index.__getattr__("Refreshed") is RefreshResult


@pytest.mark.anyio
async def test_index_without_tantivy_names_the_extra(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tantivy", None)
    root = plant(SHOP)
    with pytest.raises(RipwrapError, match=r'an index needs tantivy: pip install "ripwrap\[index\]"'):
        Index(root)
    assert (await ripwrap.rank("cookies", cwd=root))[0].path == "src/cookies.py"


@pytest.mark.slow
def test_index_is_imported_without_tantivy(tmp_path: Path) -> None:
    code = """\
import sys
sys.modules["tantivy"] = None
import ripwrap
from ripwrap.index import Limits
try:
    ripwrap.sync.Index(sys.argv[1], location=sys.argv[2]).refresh()
except ripwrap.RipwrapError as error:
    print("an index needs tantivy" in str(error))
"""
    (tmp_path / "a.py").write_text("x = 1\n")
    argv = [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "index")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]

"""Text of results: it is read from the files during a search, and never belongs to other content."""

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap._ranking.document import MAX_FILE_BYTES
from ripwrap._system import safe_open as _safe_open
from ripwrap.index.embeddings.storage import texts_of
from ripwrap.index.models import Progress
from ripwrap.results import RankedChunk
from support.opening import before_opening, refused

pytestmark = pytest.mark.slow

Plant = Callable[..., Path]
Change = Callable[[Path], object]

OLD = "secret cookies of old\n"


def write_other(file: Path) -> None:
    file.write_text("the new cookies, which are more\n", newline="\n")


def write_same_size_and_time(file: Path) -> None:
    state = file.stat()
    file.write_text(OLD.replace("old", "new"), newline="\n")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


def shrink(file: Path) -> None:
    file.write_text("new cookies\n", newline="\n")


def make_link(file: Path) -> None:
    outside = file.parent.parent / "outside.py"
    outside.write_text(OLD, newline="\n")
    file.unlink()
    file.symlink_to(outside)


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


REWRITTEN: list[Change] = [write_other, write_same_size_and_time, shrink]
GONE: list[Change] = [Path.unlink, make_link, make_folder]


@pytest.fixture
def root(plant: Plant) -> Path:
    return plant({"a.py": OLD, "b.py": "cookies\n"})


@pytest.fixture
def index(root: Path, tmp_path: Path) -> Iterator[sync.Index]:
    with sync.Index(root, location=tmp_path / "home", chunker="windows") as index:
        yield index


@pytest.fixture
def opened(root: Path) -> str:
    """Path with which the index opens `a.py`."""
    return "a.py" if _safe_open._CAN_OPEN_BELOW else str(root / "a.py")


def refresh_until_stamps_are_known(index: sync.Index) -> None:
    """Refresh until no file is so new that it may change without a new stamp; such files are read again."""

    def sizes(database: sqlite3.Connection) -> int:
        return int(database.execute("SELECT min(size) FROM tree").fetchone()[0])

    for _ in range(10_000):
        index.refresh()
        if index._store.run(sizes) >= 0:
            return
    raise AssertionError("the clock stands still")


def texts(found: list[RankedChunk]) -> dict[str, str]:
    return {one.path: one.text for one in found}


@pytest.mark.parametrize("known", [True, False], ids=["known stamp", "racy stamp"])
@pytest.mark.parametrize("change", REWRITTEN + GONE)
def test_changed_file_is_left_out_without_a_refresh(index: sync.Index, root: Path, change: Change, known: bool) -> None:
    if known:
        refresh_until_stamps_are_known(index)
    else:
        index.refresh()
    change(root / "a.py")
    for limit in (1, 10, None):
        assert texts(index.search("cookies", refresh=False, limit=limit)) == {"b.py": "cookies\n"}


@pytest.mark.parametrize("change", REWRITTEN)
def test_file_that_changes_after_the_refresh_of_a_search_is_indexed_again(
    index: sync.Index, root: Path, opened: str, change: Change
) -> None:
    refresh_until_stamps_are_known(index)
    with before_opening(opened, partial(change, root / "a.py")):
        found = texts(index.search("cookies"))
    assert found == {"a.py": (root / "a.py").read_text(), "b.py": "cookies\n"}
    assert "new" in found["a.py"]


@pytest.mark.parametrize("change", GONE)
def test_file_that_is_deleted_after_the_refresh_of_a_search_is_left_out(
    index: sync.Index, root: Path, opened: str, change: Change
) -> None:
    refresh_until_stamps_are_known(index)
    with before_opening(opened, partial(change, root / "a.py")):
        assert texts(index.search("cookies")) == {"b.py": "cookies\n"}


@pytest.mark.parametrize("refresh", [True, False])
def test_file_that_became_unreadable_is_left_out(index: sync.Index, opened: str, refresh: bool) -> None:
    refresh_until_stamps_are_known(index)
    with refused(opened):
        assert texts(index.search("cookies", refresh=refresh)) == {"b.py": "cookies\n"}
    assert set(texts(index.search("cookies", refresh=refresh))) == {"a.py", "b.py"}


def test_file_with_new_times_and_the_same_content_is_still_found(index: sync.Index, root: Path) -> None:
    refresh_until_stamps_are_known(index)
    before = index.search("cookies", refresh=False)
    os.utime(root / "a.py", ns=(1, 1))
    assert index.search("cookies", refresh=False) == before and len(before) == 2


ENCODED = {
    "utf-8": "größe der cookies {0}: {0} €\n",
    "utf-8-sig": "größe der cookies {0}: {0} €\n",
    "utf-16": "größe der cookies {0}: 🍪\n",
    "latin-1": "größe der cookies {0}\n",
    "ascii": "size of the cookies {0}\r\n",
}


SIZES = [(3, "latin-1"), *itertools.product([9_000], ENCODED), (60_000, "utf-16")]


@pytest.mark.parametrize(("lines", "encoding"), SIZES)
def test_text_of_a_result_has_the_lines_of_the_file_in_any_encoding(
    index: sync.Index, plant: Plant, encoding: str, lines: int
) -> None:
    """Few lines are one chunk. More lines exceed a single read, and the most exceed the indexed part."""
    text = "".join(ENCODED[encoding].format(number) for number in range(lines))
    root = plant({"odd.py": text.encode(encoding)})
    assert index.refresh().cut == (len(text.encode(encoding)) > MAX_FILE_BYTES)
    expected = text.encode("utf-8") if encoding != "latin-1" else text.encode("latin-1")
    of_lines = expected.split(b"\n")
    for known in (False, True):
        if known:
            refresh_until_stamps_are_known(index)
        found = [one for one in index.search("cookies", limit=None, refresh=False) if one.path == "odd.py"]
        assert len(found) >= min(lines // 50, 50) + 1
        for one in found:
            raw = one.text.encode() if encoding != "latin-1" else one.text.raw  # type: ignore[attr-defined]
            assert raw == b"\n".join([*of_lines[one.start_line - 1 : one.end_line], b""])
    without = {
        (one.start_line, one.end_line, one.text) for one in sync.rank("cookies", cwd=root, paths="odd.py", limit=1)
    }
    assert without & {(one.start_line, one.end_line, one.text) for one in found}


def test_other_branch_has_its_own_text(index: sync.Index, plant: Plant, root: Path) -> None:
    plant({".git/HEAD": "ref: refs/heads/main\n"})
    index.refresh()
    plant({".git/HEAD": "ref: refs/heads/other\n", "a.py": "other cookies\n"})
    index.refresh()
    assert texts(index.search("cookies", refresh=False))["a.py"] == "other cookies\n"
    plant({".git/HEAD": "ref: refs/heads/main\n"})  # the branch has changed, but git has not written the file yet
    assert "a.py" not in texts(index.search("cookies", refresh=False))
    plant({"a.py": OLD})
    assert texts(index.search("cookies", refresh=False))["a.py"] == OLD
    assert texts(index.search("cookies"))["a.py"] == OLD


def test_another_folder_in_the_same_index_has_its_own_text(index: sync.Index, tmp_path: Path) -> None:
    other = tmp_path / "worktree"
    other.mkdir()
    (other / "a.py").write_text("the other folder's cookies\n", newline="\n")
    with sync.Index(other, location=index.location, chunker="windows") as second:
        index.refresh()
        second.refresh()
        for refresh in (False, True):
            assert texts(second.search("cookies", refresh=refresh)) == {"a.py": "the other folder's cookies\n"}
            assert texts(index.search("cookies", refresh=refresh))["a.py"] == OLD


def test_index_stores_no_text(index: sync.Index, root: Path) -> None:
    index.refresh()
    assert index.search("secret cookies")[0].text == OLD
    index.close()
    for file in index.location.rglob("*"):
        assert file.is_dir() or b"cookies of" not in file.read_bytes()


def test_text_of_a_changed_file_is_not_embedded(index: sync.Index, root: Path) -> None:
    refresh_until_stamps_are_known(index)

    def embedded(database: sqlite3.Connection) -> list[str]:
        chunks = [row for (row,) in database.execute("SELECT id FROM chunk ORDER BY id")]
        return [text for _, text in texts_of(database, index._current_view(), chunks)]

    assert index._store.run(embedded) == [OLD, "cookies\n"]
    write_same_size_and_time(root / "a.py")
    assert index._store.run(embedded) == ["cookies\n"]


def test_results_of_deleted_files_are_replaced_by_the_next_best(index: sync.Index, plant: Plant, root: Path) -> None:
    plant({f"more/{number:02}.py": f"cookies of shop {number}\n" for number in range(60)})
    refresh_until_stamps_are_known(index)
    best = [one.path for one in index.search("cookies", limit=20, refresh=False)]
    for path in best[::2]:
        (root / path).unlink()
    found = [one.path for one in index.search("cookies", limit=20, refresh=False)]
    assert len(found) == 20 and set(best[1::2]) < set(found)
    assert not set(best[::2]) & set(found)


def test_changes_during_a_refresh_are_found(index: sync.Index, root: Path) -> None:
    changes = iter(range(9))

    def change(_: Progress) -> None:
        (root / "a.py").write_text(f"the new cookies {next(changes)}\n", newline="\n")

    index.refresh(change)
    assert texts(index.search("cookies"))["a.py"] == (root / "a.py").read_text()

"""`Index.grep()`: the same answer as `grep()`, from a search of fewer files."""

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ripwrap import GrepResult, sync
from ripwrap.binary import RgBinary
from ripwrap.errors import PatternError, RipwrapError
from ripwrap.index import Index
from ripwrap.places import Directory
from support.grep import same
from support.replacing import replace_file

VISIBLE = {"hidden": False, "follow": False}


def plant_tree(folder: Path) -> Path:
    files: dict[str, bytes] = {
        "a.py": b"def needle():\n    return 1\n",
        "b.py": b"nothing of that kind\n",
        "sub/c.txt": "NEEDLE and \u212aelvin\n".encode(),
        "sub/d.txt": b"caf\xe9 needle\n",
        "utf16.txt": "a needle\n".encode("utf-16"),
        "bom.txt": "\ufeffa needle\n".encode(),
        "early.bin": b"needle\0needle\n",
        "late.bin": b"needle\n" * 10_000 + b"\0needle\n",
        "long.txt": (b"x" * 999 + b"\n") * 1_100 + b"needle\n",
        "-dash": b"needle\n",
        ".hidden": b"needle\n",
        "ignored.txt": b"needle\n",
        ".gitignore": b"ignored.txt\n",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def tree(folder: Path) -> Path:
    return plant_tree(folder)


@pytest.fixture
def index(tree: Path, tmp_path: Path, rg: RgBinary) -> Iterator[sync.Index]:
    with sync.Index(tree, location=tmp_path / "index", chunker="windows", rg=rg.path) as index:
        yield index


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory, rg: RgBinary) -> Iterator[sync.Index]:
    """Index of a tree that no test changes."""
    folder = tmp_path_factory.mktemp("unchanged")
    (folder / "tree").mkdir()
    tree = plant_tree(folder / "tree")
    with sync.Index(tree, location=folder / "index", chunker="windows", rg=rg.path) as index:
        yield index


def check(index: sync.Index, pattern: str | list[str], **options: Any) -> GrepResult:
    """Check that the answer equals that of `grep()`, and return it."""
    found = index.grep(pattern, **options)
    assert same(found, sync.grep(pattern, cwd=index.root, **{**VISIBLE, **options}))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "options", "candidates"),
    [
        ("nothing of that", {}, 4),
        ("needle", {}, 9),
        ("NEEDLE", {}, 9),
        ("needle", {"ignore_case": True}, 9),
        ("needle", {"smart_case": True, "word_regexp": True}, 9),
        ("kelvin", {"ignore_case": True}, 4),
        ("nothing|needle", {}, 10),
        (["nothing", "kind"], {}, 4),
        (r"def \w+\(\)", {}, 4),
        ("caf\u00e9", {}, 3),
        ("nothing.that", {"fixed_strings": True}, 3),
        (r"needle\(\):\n +return", {"multiline": True}, 4),
        ("needle", {"text": True, "max_count": 1}, 9),
        ("needle", {"limit": 2, "offset": 1, "context": 0}, 9),
        ("needle", {"max_files": 2}, 9),
        ("needle", {"sort": "path", "threads": 1}, 9),
        ("ne", {}, 10),
        (r"\w+", {}, 10),
        ("needle", {"invert_match": True}, 10),
        ("needle", {"encoding": "latin1"}, 10),
        ("needle", {"hidden": False}, 9),
    ],
)
def test_index_grep_has_the_same_answer_as_grep(
    unchanged: sync.Index, pattern: str | list[str], options: dict[str, Any], candidates: int
) -> None:
    found = check(unchanged, pattern, **options)
    assert (found.candidates, found.files_total) == (candidates, 10)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"glob": "*.py"}, {"hidden": True}, {"no_ignore": True}, {"type": "py"}])
def test_grep_with_file_options_that_the_index_lacks_has_no_candidates(
    unchanged: sync.Index, options: dict[str, Any]
) -> None:
    found = check(unchanged, "needle", **options)
    assert (found.candidates, found.files_total) == (None, None)


@pytest.mark.slow
def test_grep_searches_the_files_that_the_options_of_the_index_select(tree: Path, tmp_path: Path) -> None:
    with sync.Index(tree, location=tmp_path / "index", glob="*.py", hidden=True) as index:
        found = index.grep("needle")
        assert same(found, sync.grep("needle", cwd=tree, glob="*.py", hidden=True, follow=False))
    assert (found.candidates, found.files_total) == (1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["needle(", "needle(?=x)", r"needle\Q", "(?P<a>needle)(?P<a>x)", "none here("])
def test_pattern_that_rg_refuses_raises_with_and_without_candidates(unchanged: sync.Index, pattern: str) -> None:
    with pytest.raises(PatternError):
        unchanged.grep(pattern)


@pytest.mark.slow
def test_each_grep_finds_all_changes_since_the_last(index: sync.Index, tree: Path) -> None:
    check(index, "needle")
    (tree / "b.py").write_text("a needle now\n")
    (tree / "a.py").write_text("nothing any more\n")
    (tree / "new.py").write_text("one more needle\n")
    (tree / "-dash").unlink()
    found = check(index, "needle", limit=None, context=0)
    assert {"b.py", "new.py"} <= {file.path for file in found} and found.candidates == 9
    (tree / "b.py").write_bytes(b"needle\0")
    check(index, "needle")
    shutil.rmtree(tree / "sub")
    check(index, "needle")


@pytest.mark.slow
def test_file_with_a_utf8_bom_and_nul_is_searched_as_binary(index: sync.Index, tree: Path) -> None:
    (tree / "bom.bin").write_bytes("\ufeffneedle\0\nneedle\n".encode())
    check(index, "needle")
    (tree / "bom.bin").write_bytes("\ufeffneedle\n\n".encode() + b"x\n" * 50_000 + b"\0\nneedle\n")
    check(index, "needle", limit=None)


@pytest.mark.slow
def test_grep_without_refresh_searches_the_files_of_the_last_refresh(index: sync.Index, tree: Path) -> None:
    with pytest.raises(RipwrapError, match="there is no index"):
        index.grep("needle", refresh=False)
    index.refresh()
    (tree / "new.py").write_text("one more needle\n")
    (tree / "a.py").unlink()
    found = index.grep("needle", refresh=False)
    assert {"a.py", "new.py"}.isdisjoint(file.path for file in found)
    assert found.errors == () and found.exact and found.files_total == 10
    for name in os.listdir(tree):
        if name != ".gitignore":
            shutil.rmtree(tree / name) if (tree / name).is_dir() else (tree / name).unlink()
    assert not index.grep("needle", refresh=False)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed on Windows")
@pytest.mark.parametrize("how", [{"refresh": False}, {"max_age": 3600}], ids=["no refresh", "max_age"])
def test_files_that_became_links_or_pipes_are_not_searched_without_a_refresh(
    index: sync.Index, tree: Path, tmp_path: Path, how: dict[str, Any]
) -> None:
    index.grep("needle")
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("secret", "c.txt", "d.txt", "utf16.txt"):
        (outside / name).write_text("needle outside\n")
    for name in ("a.py", "bom.txt", "utf16.txt"):
        (tree / name).unlink()
    (tree / "a.py").symlink_to(outside / "secret")
    (tree / "utf16.txt").symlink_to(outside / "secret")
    os.mkfifo(tree / "bom.txt")  # rg would wait for a writer
    shutil.rmtree(tree / "sub")
    (tree / "sub").symlink_to(outside)
    found = index.grep("needle", limit=None, context=0, timeout=None, **how)
    assert {file.path for file in found} == {"-dash", "late.bin", "long.txt"}
    assert "outside" not in str(found) and found.errors == () and found.exact


@pytest.mark.slow
@pytest.mark.posix
def test_utf16_file_in_a_folder_that_became_a_link_is_not_searched(
    index: sync.Index, tree: Path, tmp_path: Path
) -> None:
    (tree / "sub" / "marked.txt").write_text("needle\n", "utf-16")
    index.grep("needle")
    shutil.copytree(tree / "sub", tmp_path / "outside")
    shutil.rmtree(tree / "sub")
    (tree / "sub").symlink_to(tmp_path / "outside")
    found = index.grep("needle", refresh=False)
    assert not any(file.path.startswith("sub") for file in found)


@pytest.mark.slow
def test_file_that_changed_after_the_refresh_is_a_candidate(index: sync.Index, tree: Path) -> None:
    index.refresh()
    (tree / "b.py").write_text("a needle that the index has not read\n")
    found = index.grep("needle", refresh=False)
    assert "b.py" in {file.path for file in found}


@pytest.mark.slow
def test_files_of_the_index_in_the_root_are_not_searched(tree: Path) -> None:
    with sync.Index(tree, location=tree / "data") as index:
        for pattern in ("SQLite", "S."):
            assert not index.grep(pattern, text=True)
            assert sync.grep(pattern, cwd=tree, text=True)


@pytest.mark.slow
def test_unreadable_files_cause_the_same_errors_as_in_grep(tree: Path, tmp_path: Path, unprivileged: Path) -> None:
    (tree / "denied.py").write_text("needle\n")
    (tree / "denied.py").chmod(0)
    (tree / "closed").mkdir(mode=0)
    with sync.Index(tree, location=tmp_path / "index", rg=unprivileged) as index:
        found = index.grep("needle")
        expected = sync.grep("needle", cwd=tree, rg=unprivileged, hidden=False, follow=False)
    (tree / "closed").chmod(0o700)
    assert len(found.errors) == 2 and found.total_matches == expected.total_matches
    assert sorted(map(str, found.errors)) == sorted(map(str, expected.errors))


@pytest.mark.slow
@pytest.mark.posix
def test_broken_links_cause_the_same_errors_as_in_grep(tree: Path, tmp_path: Path) -> None:
    (tree / "link.py").symlink_to("a.py")
    (tree / "broken").symlink_to("nowhere")
    (tree / "linked").symlink_to("sub")
    (tree / "sub" / "loop").symlink_to("..")
    with sync.Index(tree, location=tmp_path / "index", follow=True) as index:
        found, expected = index.grep("needle", limit=None), sync.grep("needle", cwd=tree, hidden=False, limit=None)
    assert found.files == expected.files
    assert {str(error) for error in expected.errors} == {str(error) for error in found.errors}


@pytest.mark.loops("asyncio")
@pytest.mark.slow
@pytest.mark.anyio
async def test_async_index_grep_has_the_same_answer_as_grep(tree: Path, tmp_path: Path) -> None:
    async with Index(tree, location=tmp_path / "index") as index:
        found = await index.grep("needle", limit=3)
    assert same(found, sync.grep("needle", cwd=tree, limit=3, hidden=False, follow=False))


@pytest.mark.parametrize("name", ["paths", "path", "cwd"])
def test_unknown_option_error_suggests_no_argument_that_index_grep_lacks(unchanged: sync.Index, name: str) -> None:
    options: dict[str, Any] = {name: "sub"}
    with pytest.raises(ValidationError, match=f"unknown option {name}; see ripwrap.SearchOptions"):
        unchanged.grep("needle", **options)


@pytest.mark.slow
def test_explain_adds_the_same_message_as_grep(unchanged: sync.Index) -> None:
    found = check(unchanged, "NOTHING of", explain=True)
    assert "ignore_case=True" in found.message


def _trigrams_of(index: sync.Index) -> Path:
    (folder,) = index.location.glob("trigrams-*")
    return folder


def _remove(folder: Path) -> None:
    shutil.rmtree(folder)


def _truncate(folder: Path) -> None:
    for file in folder.glob("*.term"):
        replace_file(file, file.read_bytes()[:-20])


def _forge_meta(folder: Path) -> None:
    (folder / "meta.json").write_text('{"segments": [], "schema": [], "opstamp": 0, "index_format_version": 99}')


def _flip(folder: Path) -> None:
    for file in folder.glob("*.idx"):
        content = bytearray(file.read_bytes())
        content[len(content) // 3] ^= 0xFF
        replace_file(file, bytes(content))


@pytest.mark.slow
@pytest.mark.parametrize("damage", [_remove, _truncate, _forge_meta, _flip])
def test_damaged_trigrams_are_rebuilt_with_one_log_line(
    index: sync.Index, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    check(index, "nothing")
    before = _trigrams_of(index)
    index.close()
    damage(before)
    with caplog.at_level(logging.WARNING, "ripwrap"):
        found = check(index, "nothing")
    assert len(caplog.records) == 1 and "are rebuilt" in caplog.text
    assert found.candidates == 4 and _trigrams_of(index) != before


@pytest.mark.slow
def test_older_copy_of_the_trigrams_is_not_used(index: sync.Index, tree: Path, tmp_path: Path) -> None:
    check(index, "nothing")
    folder = _trigrams_of(index)
    shutil.copytree(folder, tmp_path / "copy")
    (tree / "new.py").write_text("nothing new\n")
    check(index, "nothing")
    index.close()
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "copy", folder)
    assert "new.py" in {file.path for file in check(index, "nothing")}


@pytest.mark.slow
def test_trigrams_of_a_killed_process_change_no_answer(index: sync.Index, tree: Path) -> None:
    check(index, "nothing")
    index.close()
    with sqlite3.connect(index.location / "index.sqlite3") as database:  # the state after a kill before the transaction
        database.execute("UPDATE blob SET trigrams = NULL")
    database.close()
    assert check(index, "nothing").candidates == 4
    assert check(index, "needle").candidates == 9


@pytest.mark.slow
def test_prune_removes_the_trigrams_of_removed_content(index: sync.Index, tree: Path) -> None:
    check(index, "nothing of that")
    (tree / "b.py").unlink()
    index.refresh()
    index.prune()
    assert check(index, "nothing of that").candidates == 3
    with sqlite3.connect(index.location / "index.sqlite3") as database:
        stored, documents = database.execute(
            "SELECT (SELECT count(*) FROM blob WHERE trigrams > 0), documents FROM trigrams"
        ).fetchone()
    database.close()
    assert stored == documents


@pytest.mark.slow
@pytest.mark.posix
def test_rebuild_and_delete_remove_the_trigrams(index: sync.Index) -> None:
    """Remove files that are open, which Windows does not."""
    check(index, "nothing")
    before = _trigrams_of(index)
    index.refresh(rebuild=True)
    assert not before.exists()
    check(index, "nothing")
    assert index.status().bytes > sum(file.stat().st_size for file in _trigrams_of(index).iterdir())


@pytest.mark.slow
def test_two_views_share_trigrams(tree: Path, tmp_path: Path) -> None:
    with (
        sync.Index(tree, location=tmp_path / "i") as one,
        sync.Index(tree, location=tmp_path / "i", glob="*.py") as other,
    ):
        check(one, "nothing")
        found = other.grep("nothing")
    assert (found.candidates, found.files_total) == (1, 2)


@pytest.mark.slow
def test_read_only_index_can_grep(index: sync.Index, tree: Path, unprivileged: Path) -> None:
    check(index, "nothing")
    index.close()
    (tree / "b.py").write_text("changed\n")
    for path in (*index.location.rglob("*"), index.location):
        path.chmod(path.stat().st_mode & 0o555)
    try:
        assert index.grep("needle", refresh=False).total_matches
    finally:
        for path in (index.location, *index.location.rglob("*")):
            path.chmod(path.stat().st_mode | 0o700)


@pytest.mark.slow
def test_trigrams_cover_text_beyond_the_part_of_a_file_with_chunks(index: sync.Index, tree: Path) -> None:
    lines = (b"x" * 999 + b"\n") * 1_100
    (tree / "zeros.txt").write_bytes(lines + b"kind\n\0kind\n")
    (tree / "utf16.log").write_bytes(b"\xff\xfe" + lines)
    found = check(index, "kind")
    assert found.files_total == 12 and "long.txt" not in {file.path for file in found}
    (tree / "long.txt").write_bytes(lines + b"of another kind\n")
    assert "long.txt" in {file.path for file in check(index, "kind")}
    with (tree / "long.txt").open("r+b") as file:  # beyond the size limit of trigrams
        file.truncate(0)
        for _ in range(17):
            file.write((b"x" * 999 + b"\n") * 1_000)
        file.write(b"last of its kind\n")
    assert "long.txt" in {file.path for file in check(index, "kind")}
    assert check(index, "no such text").candidates == 6


@pytest.mark.slow
def test_grep_within_max_age_does_not_refresh(index: sync.Index, tree: Path) -> None:
    index.refresh()
    (tree / "new.py").write_text("a new needle\n")
    assert "new.py" not in {file.path for file in index.grep("new needle", max_age=3600)}
    assert "new.py" in {file.path for file in index.grep("new needle", max_age=0)}
    with pytest.raises(ValueError, match="max_age"):
        index.grep("new needle", max_age=-1)


@pytest.mark.parametrize(
    "option", [{"rev": "HEAD"}, {"inside": "zip"}, {"encoding": "detect"}, {"where": Directory()}], ids=str
)
def test_index_takes_no_other_place(unchanged: sync.Index, option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="an index cannot be combined with"):
        unchanged.grep("x", **option)

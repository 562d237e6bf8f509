"""Tools on large files and directories: the work is counted, and links that are not listed are named."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap._operations.tree import arrange, in_order
from ripwrap.binary import RgBinary
from ripwrap.workspace import content_call, read_file
from support.effort import times

Plant = Callable[..., Path]


def _counting(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[int]:
    calls, original = [0], getattr(module, name)

    def counted(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        return original(*args, **options)

    monkeypatch.setattr(module, name, counted)
    return calls


def test_entries_of_a_directory_are_not_resolved_one_by_one(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """`list_directory` resolved three real paths for each of 100,000 entries, in 41 seconds."""
    root = plant({f"{size}/f{number}.txt": "" for size in (10, 300) for number in range(size)})
    tools = sync.Workspace(root, deny=["*.pem"])
    resolved = _counting(monkeypatch, os.path, "realpath")
    used: list[int] = []
    for size in (10, 300):
        resolved[0] = 0
        assert len(tools.list_directory(str(size))) == size
        used.append(resolved[0])
    assert used[0] == used[1]


def test_entries_of_a_directory_are_still_checked(plant: Plant, tmp_path: Path) -> None:
    """Links, denied entries and names with escapes are treated as before."""
    root = plant({"d/a.txt": "abc", "d/k.pem": "", "d/sub/b": "", "d/secret/c": "", r"d/x\x1b": "1", "d/x\x1b": "22"})
    (root / "d/in").symlink_to("a.txt")
    (root / "d/out").symlink_to(tmp_path)
    (root / "d/broken").symlink_to("nothing")
    (root / "d/pem").symlink_to("k.pem")
    os.mkfifo(root / "d/pipe")
    found = sync.Workspace(root, deny=["*.pem", "d/secret/"]).list_directory("d")
    sizes = {entry.name: entry.size for entry in found}
    assert sizes == {"a.txt": 3, "broken": None, "in": 3, "sub": None, "x\x1b": 2, r"x\x1b": 1}
    assert [entry.name for entry in found if entry.is_dir] == ["sub"]


def test_tree_of_a_large_directory_reads_only_the_entries_that_it_shows() -> None:
    """The rest of 100,000 entries was read in each of twelve steps of `ls`."""
    read = 0

    def order(directory: Any) -> Any:
        nonlocal read
        for child in in_order(directory):
            read += 1
            yield child

    ordered: dict[int, Any] = {}
    tree: dict[str, Any] = {f"f{number}": None for number in range(1000)}
    entries = [*arrange(tree, 5, lambda one: ordered.setdefault(id(one), Lazy(order(one))))]
    assert (len(entries), entries[-1].truncated) == (6, 995)
    assert read <= 10


class Lazy:
    """List whose items are read when they are needed."""

    def __init__(self, items: Any) -> None:
        self._items = items
        self._read: list[Any] = []

    def __iter__(self) -> Any:
        for item in self._items:
            self._read.append(item)
            yield item

    def __getitem__(self, part: slice) -> list[Any]:
        return self._read[part]


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("line", [b"a", b"\xc3\xa9" * 30, b"", b"\xff\xc3 cut", b"x" * 70_000])
def test_lines_are_skipped_exactly(plant: Plant, start: bytes, line: bytes, end: bytes) -> None:
    """Lines are counted as bytes, with the same numbers as when they are decoded."""
    count = 40 if len(line) > 1000 else 2000
    lines = [b"%d %s" % (number, line) for number in range(1, count + 1)]
    tools = sync.Workspace(plant({"a.txt": start + b"\n".join(lines) + end}), max_line=40)
    for first in (1, 2, 3, count // 2, count - 1, count):
        found = tools.read_file_result("a.txt", first, first)
        assert (found.total_lines, found.blocks[0].lines[0].split()[0]) == (count, str(first))
    several = tools.read_file_result("a.txt", ranges=f"2-3,{count // 2},{count - 1}-")
    numbers = [(block.start_line, [text.split()[0] for text in block.lines]) for block in several.blocks]
    assert numbers == [(2, ["2", "3"]), (count // 2, [f"{count // 2}"]), (count - 1, [f"{count - 1}", f"{count}"])]
    with pytest.raises(ValueError, match=f"has {count} lines, so there is no line {count + 1}"):
        tools.read_file_result("a.txt", count + 1)


def test_skipped_lines_are_not_decoded(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """`read_file(start_line=40000001)` of 400 MB decoded each line, and failed after 10 seconds."""
    number = times(200_000, 40_000_000)
    root = plant({"a.txt": ""})
    with (root / "a.txt").open("wb") as file:
        for _ in range(number // 100_000):
            file.write(b"123456789\n" * 100_000)
        file.write(b"the last\n")
    calls = _counting(monkeypatch, read_file, "skip_line")
    found = sync.Workspace(root).read_file_result("a.txt", number + 1)
    assert (found.blocks[0].lines, found.total_lines) == (("the last",), number + 1)
    assert calls[0] <= 2


@pytest.mark.posix
@pytest.mark.parametrize("engine", ["rg", "python"])
def test_links_that_are_not_listed_are_named(rg: RgBinary, plant: Plant, tmp_path: Path, engine: str) -> None:
    """`ls` and `tree` left out links inside of the root (CLAUDE.md → AGENTS.md) without a note."""
    root = plant({"AGENTS.md": "", "sub/a.txt": "", ".gitignore": "ignored\n", "k.pem": "", "node_modules/a": ""})
    for name, target in {
        "CLAUDE.md": "AGENTS.md",
        "ignored": "AGENTS.md",
        ".hidden": "AGENTS.md",
        "out": str(tmp_path),
        "key": "k.pem",
        "sub/.x": "a.txt",
    }.items():
        (root / name).symlink_to(target)
    tools = sync.Workspace(root, rg=rg if engine == "rg" else "/no/rg", deny=["*.pem"])
    one = "Not listed: 1 symbolic link, which is not followed: CLAUDE.md."
    assert one in tools.ls()
    assert engine == "python" or one in tools.tree()
    (root / "sub/up").symlink_to("..")
    assert "Not listed: 2 symbolic links, which are not followed, e.g. CLAUDE.md." in tools.ls()
    assert one in tools.ls(max_depth=1)
    assert one in tools.ls(ignore=["up"])
    assert "Not listed: 1 symbolic link, which is not followed: sub/up." in tools.ls("sub")
    assert "Not listed: 4" in tools.ls(include_hidden=True)
    assert "Not listed" not in tools.ls("AGENTS.md")
    if engine == "rg":
        followed = sync.Workspace(root, rg=rg, follow=True).ls()
        assert "Not listed" not in followed


@pytest.mark.posix
def test_links_in_directories_that_are_not_listed_are_not_named(rg: RgBinary, plant: Plant) -> None:
    """The content of `node_modules` is not shown, so its links are not counted."""
    root = plant({"a.txt": "", "node_modules/b/c": "", "only/.keep": ""})
    (root / "node_modules/d").symlink_to("b")
    (root / "only/link").symlink_to("../a.txt")
    tools = sync.Workspace(root, rg=rg)
    assert "Not listed: 1 symbolic link, which is not followed: only/link." in tools.ls()
    assert "Not listed: 2 symbolic links" in tools.ls(include_ignored=True)


LONG = "x" * 9_000  # so that the output is much larger than a pipe
MANY = {f"d{number % 7}/f{number:03}.txt": f"needle {LONG}\nother\n" * (1 + number % 5) for number in range(60)}


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ({"max_matches": 5}, True),
        ({"max_matches": 12, "offset": 12}, True),
        ({"max_matches": 30, "max_files": 4}, True),
        ({"max_matches": 3, "context_lines": 0, "file_pattern": "d3/*,d5/*"}, True),
        ({"max_matches": 5, "case_insensitive": True, "include_hidden": True}, True),
        ({"max_matches": 60}, False),  # all files are on the page
        ({"max_matches": 7, "offset": 55}, False),
        ({"max_matches": 5, "multiline": True}, False),  # rg may join matches, so they are counted one by one
        ({"max_matches": 5, "output_mode": "count"}, False),
    ],
)
def test_page_of_very_many_matches_is_the_page_of_a_search_that_counts_all(
    rg: RgBinary, plant: Plant, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], ends: bool
) -> None:
    tools = sync.Workspace(plant(MANY), rg=rg.path)
    whole = tools.grep_content_result("needle", **options)
    monkeypatch.setattr(content_call, "MANY_MATCHES", 40)
    monkeypatch.setattr(content_call, "IN_ORDER_SECONDS", 60.0)
    page = tools.grep_content_result("needle", **options)
    assert whole.exact
    assert [page.matches, page.next_offset] == [whole.matches, whole.next_offset]
    assert page.files == whole.files
    if not ends:
        assert page == whole
        return
    assert not page.exact
    assert page.truncated
    assert page.total_matches == 40
    assert page.files_matched <= whole.files_matched
    assert "of at least 40 matches." in page.message
    assert "output_mode=count counts all matches." in page.notes[0]


def test_all_matches_are_counted_if_a_search_in_order_takes_long(
    newest: RgBinary, plant: Plant, stand_in: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = sync.Workspace(
        plant(MANY),
        rg=stand_in(f"""
            if "--sort=path" in sys.argv: time.sleep(60)
            os.execv({newest.path!r}, [{newest.path!r}, *sys.argv[1:]])
        """),
    )
    monkeypatch.setattr(content_call, "MANY_MATCHES", 40)
    monkeypatch.setattr(content_call, "IN_ORDER_SECONDS", 0.1)
    page = tools.grep_content_result("needle", max_matches=5)
    assert (page.exact, page.total_matches, page.files_matched) == (True, 180, 60)


def test_search_of_very_many_matches_is_ended(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the page was shown, but the lines of all files were read and counted."""
    line = f"needle {'x' * 200}\n"
    tools = sync.Workspace(plant({f"f{number:03}.txt": line * 200 for number in range(400)}))
    read = [0]
    feed = content_call.RoundRobinMatchCollector.feed

    def counted(collector: content_call.RoundRobinMatchCollector, chunk: bytes) -> None:
        read[0] += len(chunk)
        feed(collector, chunk)

    monkeypatch.setattr(content_call.RoundRobinMatchCollector, "feed", counted)
    bytes_of: dict[int, int] = {}
    for many in (2_000, 10_000_000):
        monkeypatch.setattr(content_call, "MANY_MATCHES", many)
        read[0] = 0
        answer = tools.grep_content_result("needle", max_matches=10)
        bytes_of[many] = read[0]
        assert answer.exact == (many > 80_000)
    assert bytes_of[2_000] * 4 < bytes_of[10_000_000]

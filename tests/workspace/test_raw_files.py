"""Bytes, directories and metadata of a workspace, for backends of frameworks."""

import asyncio
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ripwrap import AccessDeniedError, Workspace, sync
from ripwrap.workspace import FileInfo
from support.opening import before_opening
from support.paths import native

Plant = Callable[..., Path]


def names(entries: tuple[FileInfo, ...]) -> list[tuple[str, bool]]:
    return [(entry.path, entry.is_dir) for entry in entries]


def test_read_bytes_returns_the_bytes_of_the_file(plant: Plant) -> None:
    root = plant({"a.bin": b"\x00\xff\r\n"})
    assert sync.Workspace(root).read_bytes("a.bin") == b"\x00\xff\r\n"
    assert asyncio.run(Workspace(root).read_bytes(str(root / "a.bin"))) == b"\x00\xff\r\n"


def test_larger_file_than_max_bytes_is_refused(plant: Plant) -> None:
    ws = sync.Workspace(plant({"a": "12345"}))
    assert ws.read_bytes("a", max_bytes=5) == b"12345"
    with pytest.raises(ValueError, match=r"a has 5 bytes, more than max_bytes=4; read a part with read_file"):
        ws.read_bytes("a", max_bytes=4)
    with pytest.raises(ValueError, match="max_bytes must be 0 or more, got -1"):
        ws.read_bytes("a", max_bytes=-1)


def test_directory_lists_one_level_with_hidden_and_ignored_entries(plant: Plant) -> None:
    root = plant({".gitignore": "*.log\n", "a/b/c.py": "", "a.log": "x" * 7, ".env": ""})
    (root / "empty").mkdir()
    os.utime(root / "a.log", (86_400, 86_400))
    ws = sync.Workspace(root)
    entries = ws.list_directory()
    assert names(entries) == [(".env", False), (".gitignore", False), ("a", True), ("a.log", False), ("empty", True)]
    assert entries[3] == FileInfo(
        path="a.log",
        name="a.log",
        is_dir=False,
        size=7,
        modified_at=datetime(1970, 1, 2, tzinfo=UTC),
        mode=stat.filemode((root / "a.log").stat().st_mode),
    )
    assert entries[2].size is None
    assert names(ws.list_directory("a/b")) == [(native("a/b/c.py"), False)]
    assert names(asyncio.run(Workspace(root).list_directory("a"))) == [(native("a/b"), True)]
    assert ws.file_info("a.log") == entries[3]
    assert ws.file_info("a/b").is_dir


def test_directory_of_several_roots_is_the_roots(plant: Plant) -> None:
    root = plant({"one/a": "", "two/b": ""})
    ws = sync.Workspace(root / "one", root / "two")
    assert [(entry.path, entry.name) for entry in ws.list_directory()] == [
        (str(root / "one"), "one"),
        (str(root / "two"), "two"),
    ]
    assert names(ws.list_directory(str(root / "two"))) == [(str(root / "two" / "b"), False)]
    assert ws.file_info().is_dir


@pytest.mark.posix
def test_entry_with_the_letters_of_an_escape_is_not_another_entry(plant: Plant) -> None:
    r"""`a\x0ab` is a name of its own, and not the shown form of a name with a newline."""
    root = plant({"one/1": "x", "two/2": "xx", "roots/r\n/f": "", r"roots/r\x0a/f": ""})
    folder = plant({"links/f": ""}) / "links"
    (folder / "a\nb").symlink_to("../one/1")
    (folder / r"a\x0ab").symlink_to("../two/2")
    sizes = {entry.name: entry.size for entry in sync.Workspace(root).list_directory("links")}
    assert sizes == {"a\nb": 1, r"a\x0ab": 2, "f": 0}
    both = [str(root / "roots" / name) for name in ("r\n", r"r\x0a")]
    assert [entry.path for entry in sync.Workspace(*both).list_directory()] == both


@pytest.mark.posix
@pytest.mark.parametrize("method", ["read_bytes", "list_directory", "file_info"])
@pytest.mark.parametrize("path", ["..", "../secret", "/etc/passwd", "link-out", "no-such-file"])
def test_nothing_outside_of_the_roots_is_read(plant: Plant, method: str, path: str) -> None:
    root = plant({"root/a": "", "secret": "hidden words"})
    (root / "root" / "link-out").symlink_to(root / "secret")
    expected = FileNotFoundError if path == "no-such-file" else AccessDeniedError
    with pytest.raises(expected):
        getattr(sync.Workspace(root / "root"), method)(path)


@pytest.mark.parametrize(
    ("method", "path", "error", "message"),
    [
        ("read_bytes", "d", IsADirectoryError, r"d is a directory; list_directory\(\) lists its entries"),
        ("list_directory", "a", NotADirectoryError, "a is a file; pass the directory that contains it"),
    ],
)
def test_wrong_kind_of_path_says_what_to_do(
    plant: Plant, method: str, path: str, error: type[OSError], message: str
) -> None:
    with pytest.raises(error, match=message):
        getattr(sync.Workspace(plant({"a": "", "d/e": ""})), method)(path)


@pytest.mark.posix
def test_listing_follows_links_only_inside_of_the_roots(plant: Plant) -> None:
    root = plant({"root/d/a": "xyz", "outside/b": ""})
    links = {"out": "../outside", "in": "d", "file": "d/a", "broken": "nothing", "loop": "loop"}
    for name, target in links.items():
        (root / "root" / name).symlink_to(target)
    found = sync.Workspace(root / "root").list_directory()
    assert names(found) == [("broken", False), ("d", True), ("file", False), ("in", True), ("loop", False)]
    assert {entry.path: entry.size for entry in found} == {
        "broken": None,
        "d": None,
        "file": 3,
        "in": None,
        "loop": None,
    }


@pytest.mark.posix
def test_file_that_becomes_a_link_is_not_followed(plant: Plant) -> None:
    root = plant({"root/a": "own", "secret": "hidden words"})

    def swap() -> None:
        (root / "root" / "a").unlink()
        (root / "root" / "a").symlink_to(root / "secret")

    with before_opening("a", swap), pytest.raises(FileNotFoundError):
        sync.Workspace(root / "root").read_bytes("a")


@pytest.mark.posix
def test_pipe_is_neither_read_nor_listed(plant: Plant) -> None:
    root = plant({"a": ""})
    os.mkfifo(root / "pipe")
    ws = sync.Workspace(root)
    assert names(ws.list_directory()) == [("a", False)]
    with pytest.raises(ValueError, match="pipe is neither a file nor a directory"):
        ws.read_bytes("pipe")


@pytest.mark.posix
def test_names_that_are_not_utf8_are_listed_with_a_replacement(plant: Plant) -> None:
    root = plant({"a": ""})
    try:
        Path(os.fsdecode(os.fsencode(root) + b"/\xff.py")).write_text("")
    except OSError:
        pytest.skip("the file system takes only UTF-8")
    assert names(sync.Workspace(root).list_directory()) == [("a", False), ("\ufffd.py", False)]


@pytest.mark.posix
def test_denied_files_are_neither_read_nor_listed(plant: Plant) -> None:
    root = plant({".env": "hidden words", "a": "", "keys/b": ""})
    (root / "link").symlink_to(root / ".env")
    ws = sync.Workspace(root, deny=[".env", "keys/"])
    assert names(ws.list_directory()) == [("a", False)]
    for path in (".env", "link", ".ENV", "keys/b"):
        for call in (ws.read_bytes, ws.file_info):
            with pytest.raises((AccessDeniedError, FileNotFoundError)) as raised:
                call(path)
            assert isinstance(raised.value, AccessDeniedError) or not (root / path).exists()


TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_bytes_are_redacted_in_each_encoding(plant: Plant, encoding: str) -> None:
    root = plant({"a": f"né\r\ntoken {TOKEN}\n".encode(encoding)})
    assert TOKEN in sync.Workspace(root).read_bytes("a").decode(encoding)
    masked = sync.Workspace(root, redact=True).read_bytes("a").decode(encoding)
    assert masked == "né\r\ntoken [redacted: github-token]\n"


def test_redaction_keeps_bytes_that_are_no_text(plant: Plant) -> None:
    root = plant({"plain": b"\x00\xff\r\n", "key": b"\xff" + TOKEN.encode() + b"\n\xfe"})
    ws = sync.Workspace(root, redact=True)
    assert ws.read_bytes("plain") == b"\x00\xff\r\n"
    assert ws.read_bytes("key") == b"\xff[redacted: github-token]\n\xfe"


def test_directory_is_listed_within_the_time_limit(plant: Plant) -> None:
    root = plant({"a": "x", "b": "x"})
    with pytest.raises(TimeoutError, match=r"not all entries of the directory were listed within .* list it with ls"):
        sync.Workspace(root, timeout=0).list_directory()

"""deepagents: a backend over the files of a workspace; `tests/conformance/` has deepagents' own suite."""

import pytest

pytest.importorskip("deepagents")

import asyncio
import base64
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.backends.protocol import FileDownloadResponse, FileUploadResponse, GrepResult
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripwrap import sync
from ripwrap.frameworks.deepagents import MAX_BINARY_BYTES, MAX_PAGES, RipwrapBackend
from support.offers import check_question

pytestmark = [pytest.mark.extra, pytest.mark.slow]

Plant = Callable[..., Path]

NAMES = st.sampled_from(
    ["a.py", "b.py", ".hidden.py", "c.md", "ü.py", "a,b.py", "!x.py", "{y}.py", "sub", ".dot", "lib"]
)
TREES = st.lists(st.lists(NAMES, min_size=1, max_size=3).map(tuple), min_size=1, max_size=8, unique=True)
SEGMENTS = st.sampled_from(
    ["*", "**", "*.py", "?.py", "[ab].py", "[!a].py", "[^a].py", "*.{py,md}", "{sub,lib}", "sub", ".dot", ".*", "a.py"]
)
ODD_SEGMENTS = st.sampled_from(["a,b.py", "!x.py", "*{y}*", "", "*.p[xy]", r"a\,b.py"])
GLOBS = st.lists(SEGMENTS | ODD_SEGMENTS, min_size=1, max_size=3).map("/".join).filter(bool)


@pytest.fixture
def backend(shop: Path) -> RipwrapBackend:
    return RipwrapBackend(sync.Workspace(shop))


def make_tree(root: Path, tree: list[tuple[str, ...]]) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for parts in tree:
        path = root.joinpath(*parts)
        if not any(parent.is_file() for parent in path.parents) and not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("one TODO (here)\ntwo\nthree TODO (here)\n")


def paths(found: list[Any] | None) -> list[str]:
    assert found is not None
    return sorted(one["path"] for one in found)


@given(tree=TREES, glob=GLOBS, start=st.sampled_from(["/", "/sub", "/.dot"]))
@example(tree=[("ü.py",), ("b.py",)], glob="?.py", start="/")  # ripgrep's `?` and sets are of bytes
@example(tree=[("ü.py",), ("b.py",)], glob="[!a].py", start="/")
@example(tree=[("a,b.py",), ("b.py",)], glob="a,b.py", start="/")
@example(tree=[("!x.py",), ("b.py",)], glob="!x.py", start="/")
@example(tree=[("{y}.py",), ("y.py",)], glob=r"\{y\}.py", start="/")
@example(tree=[("a.py", "a.py"), ("b.py",)], glob="*//*", start="/")
@settings(max_examples=40)
def test_deepagents_glob_finds_what_deepagents_own_backend_finds(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[str, ...]], glob: str, start: str
) -> None:
    root = tmp_path_factory.getbasetemp() / "globs"
    make_tree(root, tree)
    ours, own = RipwrapBackend(sync.Workspace(root)), FilesystemBackend(root)
    if not (root / start[1:]).is_dir():
        start = "/"
    found = ours.glob(glob, start)
    assert (found.error, found.truncated) == (None, False)
    assert paths(found.matches) == paths(own.glob(glob, start).matches)


@given(tree=TREES, text=st.sampled_from(["TODO", "(here)", "two", "TODO (", ".", "nothing"]))
@settings(max_examples=20)
def test_deepagents_grep_finds_what_deepagents_own_backend_finds(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[str, ...]], text: str
) -> None:
    root = tmp_path_factory.getbasetemp() / "texts"
    make_tree(root, [parts for parts in tree if not any(part.startswith(".") for part in parts)] or [("a.py",)])
    ours, own = RipwrapBackend(sync.Workspace(root)), FilesystemBackend(root)

    def found(result: GrepResult) -> list[tuple[str, int, str]]:
        assert (result.error, result.truncated) == (None, False)
        return sorted((match["path"], match["line"], match["text"]) for match in result.matches or ())

    assert found(ours.grep(text)) == found(own.grep(text))
    if (root / "sub").is_dir():
        assert found(ours.grep(text, "/sub")) == found(own.grep(text, "/sub"))
    assert found(ours.grep(text, glob="*.{py,md}")) == found(own.grep(text, glob="*.{py,md}"))


@pytest.mark.parametrize("text", ["one\ntwo\nthree\n", "one\ntwo", "one\r\ntwo\r\n\r\nfour", "\n", "", "\n\nthree\n"])
@pytest.mark.parametrize(("offset", "limit"), [(0, 2000), (1, 1), (-3, 2), (0, 0), (2, 5), (99, 1)])
def test_deepagents_read_returns_the_window_of_deepagents_own_backend(
    plant: Plant, text: str, offset: int, limit: int
) -> None:
    root = plant({"a.txt": text.encode()})
    ours, own = RipwrapBackend(sync.Workspace(root)), FilesystemBackend(root)
    mine, theirs = ours.read("/a.txt", offset, limit), own.read("/a.txt", offset, limit)
    window = ("error", "total_lines", "start_line", "end_line", "next_offset", "no_lines_requested")
    assert {name: getattr(mine, name) for name in window} == {name: getattr(theirs, name) for name in window}
    if theirs.file_data is not None and text.strip():
        assert mine.file_data is not None
        # Their last line keeps its end, which `edit()` needs; the suite of the sandboxes wants it without.
        assert mine.file_data["content"] == theirs.file_data["content"].removesuffix("\n")


def test_deepagents_lines_have_the_numbers_of_a_search(plant: Plant) -> None:
    """Python's `splitlines()` ends lines at a form feed and at U+2028, ripgrep does not."""
    backend = RipwrapBackend(sync.Workspace(plant({"a.c": "one\x0c\n\u2028two\nTODO\n"})))
    matches = backend.grep("TODO").matches
    assert matches is not None
    read = backend.read("/a.c", matches[0]["line"] - 1, 1)
    assert read.file_data is not None
    assert read.file_data["content"] == "TODO"


def test_deepagents_grep_takes_texts_and_with_regex_regular_expressions(plant: Plant) -> None:
    backend = RipwrapBackend(sync.Workspace(plant({"a": "a.b\naxb\n"})))
    assert [match["text"] for match in backend.grep("a.b").matches or ()] == ["a.b"]
    assert [match["text"] for match in backend.grep("a.b", regex=True).matches or ()] == ["a.b", "axb"]
    broken = backend.grep("(", regex=True)
    assert broken.error is not None
    assert broken.error.startswith("Error: ")
    assert broken.matches is None


def test_deepagents_grep_says_when_there_are_more_matches(plant: Plant) -> None:
    root = plant({f"{name}.txt": "TODO\n" * 500 for name in "abc"})
    backend = RipwrapBackend(sync.Workspace(root, max_chars=1_000))
    three = backend.grep("TODO", max_count=3)
    assert (len(three.matches or ()), three.truncated) == (3, True)
    budget = backend.grep("TODO")
    assert budget.truncated
    assert len(budget.matches or ()) < 1_500
    exact = backend.grep("TODO", "/a.txt", max_count=500)
    assert exact.truncated is (len(exact.matches or ()) < 500)
    none = backend.grep("TODO", max_count=0)
    assert (none.matches, none.truncated) == ([], True)


def test_deepagents_glob_reads_many_pages_and_says_when_there_are_more(plant: Plant) -> None:
    few = [f"{number:03}-{'x' * 90}.py" for number in range(60)]
    backend = RipwrapBackend(sync.Workspace(plant(dict.fromkeys(few, "")), max_chars=1_000))
    found = backend.glob("*.py")
    assert (len(found.matches or ()), found.truncated) == (60, False)
    plant(dict.fromkeys((f"{number:03}-{'y' * 90}.py" for number in range(MAX_PAGES * 10)), ""))
    found = backend.glob("*.py")
    assert (found.truncated, found.truncation_reason) == (True, "budget")
    assert 60 < len(found.matches or ()) < 260


def test_deepagents_search_respects_ignore_files_and_reading_does_not(plant: Plant) -> None:
    root = plant({".ignore": "out/\n", "out/a.py": "TODO", "b.py": "TODO", ".ci/c.py": "TODO"})
    backend = RipwrapBackend(sync.Workspace(root))
    assert paths(backend.grep("TODO").matches) == ["/b.py"]
    assert paths(RipwrapBackend(sync.Workspace(root), hidden=True).grep("TODO").matches) == ["/.ci/c.py", "/b.py"]
    assert paths(backend.grep("TODO", glob=".ci/*").matches) == ["/.ci/c.py"]
    assert paths(backend.glob("*.py").matches) == ["/.ci/c.py", "/b.py"]
    assert paths(backend.ls("/").entries) == ["/.ci", "/.ignore", "/b.py", "/out"]
    assert backend.read("/out/a.py").error is None


def test_deepagents_listing_has_sizes_and_times(backend: RipwrapBackend) -> None:
    entries = backend.ls("/").entries
    assert entries is not None
    assert [(entry["path"], entry["is_dir"]) for entry in entries] == [
        ("/README.md", False),
        ("/cart.py", False),
        ("/till.py", False),
    ]
    assert entries[0]["size"] == 22
    assert entries[0]["modified_at"].startswith("2")


def test_deepagents_reads_binary_files_and_other_encodings(plant: Plant) -> None:
    root = plant(
        {"logo.png": bytes(range(256)), "big.png": bytes(MAX_BINARY_BYTES + 1), "wide.txt": "né".encode("utf-16")}
    )
    backend = RipwrapBackend(sync.Workspace(root))
    data = backend.read("/logo.png").file_data
    assert data is not None
    assert (data["encoding"], base64.b64decode(data["content"])) == ("base64", bytes(range(256)))
    assert backend.read("/big.png").error == "File '/big.png': Binary file exceeds maximum preview size of 512000 bytes"
    wide = backend.read("/wide.txt").file_data
    assert wide is not None
    assert wide["content"] == "né"
    assert backend.download_files(["/wide.txt"])[0].content == "né".encode("utf-16")


@pytest.mark.posix
@pytest.mark.parametrize("path", ["/../secret.txt", "/link", "/sub/../../secret.txt"])
def test_deepagents_backend_reads_nothing_outside_of_the_roots(shop: Path, path: str) -> None:
    (shop / "link").symlink_to(shop.parent / "secret.txt")
    (shop / "sub").mkdir()
    backend = RipwrapBackend(sync.Workspace(shop))
    results = [backend.read(path), backend.ls(path), backend.grep("TODO", path), backend.glob("*", path)]
    for result in results:
        assert result.error is not None
        assert result.error.endswith(f" '{path}': permission_denied")
        assert str(shop.parent) not in result.error
    assert backend.download_files([path]) == [FileDownloadResponse(path=path, error="permission_denied")]
    assert "/link" not in paths(backend.ls("/").entries)
    assert "/link" not in paths(backend.grep("outside").matches)


@pytest.mark.parametrize(
    ("call", "path", "error"),
    [
        ("read", "/no-such-file", "File '/no-such-file': file_not_found"),
        ("read", "/", "File '/': is_directory"),
        ("read", "cart.py", "File 'cart.py': invalid_path"),
        ("ls", "/cart.py", "Path '/cart.py': not_a_directory"),
        ("ls", "/no-such-folder", "Path '/no-such-folder': file_not_found"),
    ],
)
def test_deepagents_errors_have_the_words_of_the_protocol(
    backend: RipwrapBackend, call: str, path: str, error: str
) -> None:
    assert getattr(backend, call)(path).error == error


def test_deepagents_backend_denies_and_redacts_as_its_workspace(plant: Plant) -> None:
    token = "ghp_" + "a1B2" * 9
    root = plant({".env": "TODO hidden words", "a.py": f"TODO {token}\n"})
    backend = RipwrapBackend(sync.Workspace(root, deny=sync.Workspace.SECRETS, redact=True), hidden=True)
    assert paths(backend.ls("/").entries) == paths(backend.glob("*").matches) == ["/a.py"]
    assert backend.glob(".env").matches == []
    assert backend.read("/.env").error == "File '/.env': permission_denied"
    assert backend.download_files(["/.env"])[0].error == "permission_denied"
    matches = backend.grep("TODO").matches
    assert matches == [{"path": "/a.py", "line": 1, "text": "TODO [redacted: github-token]"}]
    data = backend.read("/a.py").file_data
    assert data is not None
    assert data["content"] == matches[0]["text"]
    assert backend.download_files(["/a.py"])[0].content == b"TODO [redacted: github-token]\n"


def test_deepagents_glob_that_leads_out_is_an_error(backend: RipwrapBackend) -> None:
    for result in (backend.glob("../*"), backend.grep("TODO", glob="../*")):
        assert result.error == "Error: Path traversal not allowed in glob pattern '../*'"
        assert result.matches is None


def test_deepagents_backend_refuses_to_write(shop: Path, backend: RipwrapBackend) -> None:
    before = (shop / "cart.py").read_bytes()
    refused = "permission_denied: '/cart.py' cannot be changed, since this backend only reads"
    assert backend.write("/cart.py", "x").error == refused
    assert backend.edit("/cart.py", "total", "sum").error == refused
    assert backend.upload_files([("/new", b"x")]) == [FileUploadResponse(path="/new", error="permission_denied")]
    with pytest.raises(NotImplementedError):  # deepagents then offers no tool that deletes
        backend.delete("/cart.py")
    assert (shop / "cart.py").read_bytes() == before
    assert not (shop / "new").exists()


def test_deepagents_backend_can_use_the_paths_of_the_system(plant: Plant) -> None:
    root = plant({"one/a.py": "TODO", "two/b.py": "TODO"})
    ws = sync.Workspace(root / "one", root / "two")
    with pytest.raises(
        ValueError, match="the workspace has 2 roots, but / can be the path of only one; pass virtual=False"
    ):
        RipwrapBackend(ws)
    backend = RipwrapBackend(ws, virtual=False)
    both = [str(root / "one" / "a.py"), str(root / "two" / "b.py")]
    assert paths(backend.grep("TODO").matches) == both
    assert paths(backend.glob("*.py").matches) == both
    assert paths(backend.ls("/").entries) == [str(root / "one"), str(root / "two")]
    assert backend.read(both[1]).error is None
    assert paths(RipwrapBackend(sync.Workspace(root / "one"), virtual=False).grep("TODO").matches) == both[:1]


def test_deepagents_async_methods_return_the_same(backend: RipwrapBackend) -> None:
    async def both() -> tuple[Any, ...]:
        found = await backend.agrep("TODO", max_count=1), await backend.aglob("*.py")
        return (*found, await backend.aread("/cart.py"), await backend.als("/"))

    expected = backend.grep("TODO", max_count=1), backend.glob("*.py"), backend.read("/cart.py"), backend.ls("/")
    assert asyncio.run(both()) == expected


def test_deepagents_example_answers_a_question(shop: Path) -> None:
    check_question("agents_deepagents.py", shop)

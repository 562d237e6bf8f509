"""`rev`: each reading tool answers about a commit as it answers about a checkout of this commit."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from _operations.test_revisions import git
from ripwrap import AccessDeniedError, Workspace, sync
from ripwrap.options import ShowDenied
from ripwrap.testing import write_tree

Plant = Callable[..., Path]
pytestmark = [pytest.mark.slow, pytest.mark.posix]

KEY = "ghp_" + "a1B2" * 9
PRIVATE_KEY = "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIEowIBAAKCAQEA\nxyzw\n-----END RSA PRIVATE KEY-----\n"
FILES: dict[str, str | bytes] = {
    "src/a.py": "class Cart:\n    def total(self):\n        return 1\n\n\nprint(Cart().total())\n",
    "src/gone.py": "from a import Cart\n\nCart().total()\n",
    "dir/sub/deep.txt": "total\r\nrest\r\n",
    "dir/b,c[x].txt": "total\n",
    "node_modules/m/i.js": "total()\n",
    "dir/\xfc\x01.txt": "total\n",
    "was_folder/x.py": "total\n",
    "becomes_folder": "total\n",
    ".github/w.yml": "total\n",
    ".env": "TOTAL=1\n",
    "secrets/k.txt": "total of secrets\n",
    "deep/secrets/k.txt": "total\n",
    "x/k.PEM": "total\n",
    "key.txt": f"total\n{KEY}\n{PRIVATE_KEY}",
    "utf16.txt": "total\n".encode("utf-16"),
    "binary.bin": b"total\0\n",
    "empty.txt": "",
}
LATER: dict[str, str | bytes] = {
    "only_on_disk.py": "total\n",
    "src/a.py": "gone\n",
    "was_folder": "a file now\n",
    "becomes_folder/x.py": "total\n",
    ".gitignore": "*.txt\n",
}
DENY = ["**/.env*", "*.pem", "secrets/"]


def made(root: Path, checkout: Path) -> tuple[Path, Path]:
    """Make a repository whose tag v1 has `FILES`, and a checkout of this tag; the disk has other files."""
    root.mkdir()
    write_tree(root, FILES)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A", "--force")
    git(root, "commit", "-qm", "first")
    git(root, "tag", "v1")
    git(root, "worktree", "add", "-q", str(checkout), "v1")
    (checkout / ".git").unlink()
    for name in FILES:
        (root / name).unlink()
    (root / "was_folder").rmdir()
    write_tree(root, LATER)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "second")
    return root, checkout


@pytest.fixture
def versions(tmp_path: Path) -> tuple[Path, Path]:
    return made(tmp_path / "root", tmp_path / "checkout")


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("versions")
    return made(folder / "root", folder / "checkout")


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "src/gone.py"}),
    ("read_file", {"path": "src/a.py", "start_line": 2, "end_line": 3}),
    ("read_file", {"path": "src/a.py", "outline": True}),
    ("read_file", {"path": "src/a.py", "tail": 2}),
    ("read_file", {"path": ["src/a.py", "dir/sub/deep.txt", "nope.py"]}),
    ("read_file", {"path": "dir/sub/deep.txt:2"}),
    ("find_files", {"path": ["src", "was_folder"]}),
    ("grep_content", {"pattern": ["total", "rest"], "path": ["dir", "src/gone.py", "src"]}),
    ("ls", {"path": ["src", "dir/sub"]}),
    ("read_file", {"path": "dir/\xfc\\x01.txt"}),
    ("read_file", {"path": "dir/b,c[x].txt"}),
    ("read_file", {"path": "was_folder/x.py"}),
    ("read_file", {"path": "becomes_folder"}),
    ("read_file", {"path": "was_folder"}),
    ("read_file", {"path": "key.txt"}),
    ("read_file", {"path": "utf16.txt"}),
    ("read_file", {"path": "binary.bin"}),
    ("read_file", {"path": "empty.txt"}),
    ("read_file", {"path": "secrets/k.txt"}),
    ("read_file", {"path": ".env"}),
    ("read_file", {"path": "../out.txt"}),
    ("find_files", {}),
    ("find_files", {"pattern": "*.py"}),
    ("find_files", {"pattern": "src/*.py"}),
    ("find_files", {"pattern": "src/*.py", "path": "src"}),
    ("find_files", {"pattern": "*.txt,!deep/**"}),
    ("find_files", {"pattern": "b,c[x].txt"}),
    ("find_files", {"pattern": "*", "include_hidden": True}),
    ("find_files", {"pattern": "s*", "entry_type": "directory"}),
    ("find_files", {"pattern": "*", "entry_type": "any", "limit": 3, "offset": 2}),
    ("find_files", {"path": "was_folder"}),
    ("find_files", {"path": "becomes_folder", "pattern": "*"}),
    ("find_files", {"path": "becomes_folder", "pattern": "*.js"}),
    ("find_files", {"pattern": "w.yml"}),
    ("find_files", {"pattern": "nothing.at.all"}),
    ("ls", {}),
    ("ls", {"path": "dir", "max_depth": 1}),
    ("ls", {"ignore": ["src/", "*.txt"]}),
    ("ls", {"path": "src/gone.py"}),
    ("ls", {"path": ".github"}),
    ("ls", {"limit": 2}),
    ("tree", {"limit": 5}),
    ("tree", {"path": "deep", "include_hidden": True}),
    ("grep_content", {"pattern": "total", "include_hidden": True}),
    ("grep_content", {"pattern": "total", "path": "src/gone.py"}),
    ("grep_content", {"pattern": "total", "file_pattern": "src/*.py"}),
    ("grep_content", {"pattern": "total", "path": "src", "file_pattern": "src/*.py"}),
    ("grep_content", {"pattern": "total", "output_mode": "count", "file_type": "py"}),
    ("grep_content", {"pattern": "total", "path": "was_folder", "output_mode": "files_with_matches"}),
    ("grep_content", {"pattern": "ghp_|MIIE", "context_lines": 3}),
    ("find_references", {"name": "total"}),
    ("find_references", {"name": "Cart.total", "path": "src/gone.py"}),
    ("find_references", {"name": "total", "file_pattern": "src/*.py", "limit": 2}),
    ("find_references", {"name": "xyzw"}),
]


LISTINGS = [(*call, shown) for call in CALLS if call[0] in ("find_files", "ls", "tree") for shown in ("name", "count")]


@pytest.mark.parametrize(
    ("tool", "arguments", "show_denied"), [*((*call, "hide") for call in CALLS), *LISTINGS], ids=str
)
def test_answer_is_that_of_a_checkout(
    unchanged: tuple[Path, Path], tool: str, arguments: dict[str, Any], show_denied: ShowDenied
) -> None:
    root, checkout = unchanged
    given: dict[str, Any] = {"deny": DENY, "redact": True, "show_denied": show_denied}
    shared = {"include_ignored": True} if tool in ("ls", "tree") else {}  # otherwise node_modules is not listed
    expected = sync.Workspace(checkout, **given).call(tool, arguments | shared)
    answer = sync.Workspace(root, **given).call(tool, arguments | {"rev": "v1"})
    assert plain(answer, root) == plain(expected, checkout)
    assert KEY not in answer
    assert "MIIE" not in answer.replace("MIIE|", "")


def plain(answer: str, root: Path) -> str:
    """Return an answer without what differs: the root, and hints about ignored files of the disk."""
    text = answer.replace(str(root), "ROOT").replace(" in v1;", " in ROOT;")
    text = text.replace("find_files with this rev lists the files", "ls lists the files")
    return text.replace(" or ignored", "")


def test_paths_of_the_disk_and_of_links_name_the_revision(versions: tuple[Path, Path]) -> None:
    root, _ = versions
    (root / "link").symlink_to("src/a.py")
    (root / "out").symlink_to("/etc")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "links")
    workspace = sync.Workspace(root, deny=DENY)
    for call in (workspace.read_file, workspace.ls, workspace.tree, partial(workspace.find_files, "*")):
        assert call("only_on_disk.py", rev="v1").startswith(
            "Error: only_on_disk.py does not exist in v1; it is on the disk"
        )
        assert call("link", rev="HEAD").startswith("Error: link is a link in HEAD")
        assert "src/a.py" in call("link", rev="HEAD")
        assert "does not exist in v1" in call("out/passwd", rev="v1")
        assert "does not exist in HEAD" in call("out/passwd", rev="HEAD")


def test_link_of_the_disk_is_a_directory_of_the_revision(versions: tuple[Path, Path]) -> None:
    """The paths were resolved on the disk, where `src` may lead anywhere."""
    root, _ = versions
    (root / "src/a.py").unlink()
    (root / "src").rename(root / "moved")
    (root / "src").symlink_to("secrets")
    (root / "secrets").mkdir(exist_ok=True)
    workspace = sync.Workspace(root)
    assert "src/gone.py" in workspace.find_files(path="src", rev="v1")
    assert workspace.read_file("src/gone.py", rev="v1").startswith("File: src/gone.py")
    assert "is denied" in sync.Workspace(root, deny=DENY).read_file("src/gone.py", rev="v1")


@pytest.mark.parametrize("tool", ["read_file", "find_files", "ls", "tree", "grep_content", "find_references"])
@pytest.mark.parametrize(
    ("rev", "text"),
    [
        ("--output=x", "Error: rev must be a revision of git"),
        ("^HEAD", "Error: rev must be a revision of git"),
        ("v1..main", "Error: rev must be one revision of git, such as 'v1.2' (the tool `history`"),
        ("v1...main", "Error: rev must be one revision of git, such as 'v1.2' (the tool `history`"),
        ("..", "Error: rev must be one revision"),
        ("nope", "Error: rev is not a revision of the repository in"),
        ("v1:src", "Error: rev is not a revision of the repository in"),
        ("v1^{tree}", "Error: rev is not a revision of the repository in"),
    ],
)
def test_each_tool_refuses_what_is_no_commit(unchanged: tuple[Path, Path], tool: str, rev: str, text: str) -> None:
    needed = {"grep_content": {"pattern": "x"}, "find_references": {"name": "x"}}.get(tool, {})
    answer = sync.Workspace(unchanged[0], deny=DENY).call(tool, {"path": "src", **needed, "rev": rev})
    assert answer.startswith(text)
    assert not (unchanged[0] / "x").is_file()


def test_denied_paths_are_denied_under_any_kind_they_have_in_the_revision(versions: tuple[Path, Path]) -> None:
    root, _ = versions
    (root / "secrets").rmdir()
    (root / "secrets").write_text("a file now")  # the glob is only for directories
    workspace = sync.Workspace(root, deny=DENY)
    for path in ("secrets", "secrets/k.txt", "SECRETS/k.txt", "./src/../secrets/k.txt", str(root / "secrets/k.txt")):
        with pytest.raises(AccessDeniedError):
            workspace.read_file_result(path, rev="v1")


def test_submodules_are_named_and_shallow_clones_are_read(versions: tuple[Path, Path], tmp_path: Path) -> None:
    root, _ = versions
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(root), "inner")
    git(root, "commit", "-qm", "submodule")
    commit = git(root, "rev-parse", "HEAD:inner")[:12]
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", str(shallow))
    workspace = sync.Workspace(shallow)
    assert f"inner is a submodule in HEAD, at commit {commit}" in workspace.ls("inner", rev="HEAD")
    assert f"a submodule at commit {commit}" in workspace.find_files(rev="HEAD")
    assert workspace.read_file("src/a.py", rev="HEAD") == workspace.read_file("src/a.py")
    assert "rev is not a revision" in workspace.read_file("src/a.py", rev="HEAD~1")
    (root / ".git/refs/heads/v1").write_text(git(root, "rev-parse", "HEAD"))  # a tag and a branch of one name
    assert sync.Workspace(root).read_file("src/gone.py", rev="v1").startswith("File: src/gone.py")


def test_large_files_pages_and_pointers_are_read(plant: Plant) -> None:
    lines = "".join(f"line {number}\n" for number in range(400_000))  # too large to be held in memory
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 12\n"
    root = plant({"big.txt": lines, "lfs.bin": pointer, "a/1": "", "a/2": "", "a/3": ""})
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    for name in ("big.txt", "lfs.bin", "a/1"):
        (root / name).unlink()
    workspace = sync.Workspace(root)
    assert "  399999: line 399998" in workspace.read_file("big.txt", 399_999, rev="HEAD")
    assert "oid sha256" in workspace.read_file("lfs.bin", rev="HEAD")
    page = workspace.find_files_result("*", "a", limit=2, rev="HEAD")
    assert (page.files, page.next_offset) == (("a/1", "a/2"), 2)
    assert workspace.find_files_result("*", "a", limit=2, offset=2, rev="HEAD").files == ("a/3",)
    assert workspace.find_files(sort="newest", rev="HEAD").startswith("Error: the files of a revision have no time")


@pytest.mark.anyio
async def test_async_tools_read_revisions_and_end_git_at_the_time_limit(versions: tuple[Path, Path]) -> None:
    workspace = Workspace(versions[0], timeout=30)
    assert "gone.py" in await workspace.ls(rev="v1")
    assert "All 3 lines" in await workspace.read_file("src/gone.py", rev="v1")
    late = await Workspace(versions[0], timeout=0.000_001).read_file("src/gone.py", rev="v1")
    assert late.startswith("Error: ")

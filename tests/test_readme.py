"""README: its two commands, its table of defaults, and its pictures."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fresh
from ripwrap import Rule, cli, sync

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
TEXT = "def needle():\n    pass\n\n\nneedle()\n"


def rows(title: str) -> dict[str, list[str]]:
    """Return the cells of a table in README by the cell in its first column; `title` is the first one of its head."""
    table = README.partition(f"\n| {title} |")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {first: others for first, *others in cells}


DEFAULTS = rows("what")
SEARCHED, LEFT_OUT, TOOLS, COMMANDS = DEFAULTS

OTHERWISE = {
    "coverage": "counts, names no paths",
    "grep_in": "searches no files",
    "search_in": "searches no files",
    "search_history": "searches what commits changed",
    "watch": "never ends; is `search()` again and again",
    "why": "is about one file",
}
FUNCTIONS: dict[str, Callable[[Path], Any]] = {
    "count": lambda folder: sync.count("needle", cwd=folder),
    "count_matches": lambda folder: sync.count_matches("needle", cwd=folder),
    "files": lambda folder: sync.files(cwd=folder),
    "files_matching": lambda folder: sync.files_matching(all_of="needle", cwd=folder),
    "files_with_matches": lambda folder: sync.files_with_matches("needle", cwd=folder),
    "files_without_match": lambda folder: sync.files_without_match("nothing", cwd=folder),
    "grep": lambda folder: sync.grep("needle", cwd=folder),
    "rank": lambda folder: sync.rank("needle", cwd=folder, limit=50),
    "references": lambda folder: sync.references("needle", cwd=folder).uses,
    "replace_code": lambda folder: sync.replace_code("needle()", "thread()", lang="python", cwd=folder).files,
    "replace": lambda folder: sync.replace("needle", "thread", cwd=folder).files,
    "scan": lambda folder: sync.scan([Rule(id="a", pattern="needle")], cwd=folder),
    "search": lambda folder: sync.search("needle", cwd=folder),
    "search_code": lambda folder: sync.search_code("needle()", lang="python", cwd=folder),
    "search_columns": lambda folder: (
        path for batch in sync.search_columns("needle", cwd=folder) for path in batch.path
    ),
    "search_messages": lambda folder: sync.search_messages("needle", cwd=folder),
    "tree": lambda folder: sync.tree(cwd=folder),
    "tree_text": lambda folder: [sync.tree_text(cwd=folder)],
}
REPOSITORIES: dict[str, Callable[[sync.Repositories], Any]] = {
    "files": lambda roots: roots.files(),
    "grep": lambda roots: roots.grep("needle", per_root=100),
    "rank": lambda roots: roots.rank("needle", limit=50).chunks,
    "search": lambda roots: roots.search("needle"),
}
WORKSPACE: dict[str, Callable[[sync.Workspace], str]] = {
    "codebase_search": lambda tools: tools.codebase_search("needle"),
    "find_files": lambda tools: tools.find_files("*"),
    "find_references": lambda tools: tools.find_references("needle"),
    "grep_content": lambda tools: tools.grep_content("needle"),
    "ls": lambda tools: tools.ls(),
    "tree": lambda tools: tools.tree(),
}


@pytest.fixture
def folder(plant: Callable[..., Path], tmp_path: Path) -> Path:
    """Directory with a hidden file, a link to a file, and a link to a directory."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "target.py").write_text(TEXT)
    folder = plant({"plain.py": TEXT, ".hidden.py": TEXT})
    (folder / "link.py").symlink_to(outside / "target.py")
    (folder / "linked").symlink_to(outside)
    return folder


def searched(results: Any) -> tuple[str, str]:
    """Return what README's table says of hidden files and of links, as the results show it."""
    text = results if isinstance(results, str) else "\n".join(map(str, results))
    assert "plain.py" in text
    links = {"link.py" in text, "target.py" in text}
    assert len(links) == 1
    return ("searched" if ".hidden.py" in text else "left out", "followed" if links == {True} else "not followed")


def defaults_of(function: str) -> tuple[str, str]:
    """Return README's defaults of a function: those of the row that names it, or of the first row."""
    row = LEFT_OUT if f"`{function}()`" in LEFT_OUT else SEARCHED
    return DEFAULTS[row][0], DEFAULTS[row][1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_has_the_defaults_that_readme_names(name: str, folder: Path) -> None:
    if name.endswith("_code"):
        pytest.importorskip("ast_grep_py")
    assert searched(FUNCTIONS[name](folder)) == defaults_of(name)


def test_every_function_with_options_is_compared_with_readme() -> None:
    functions = {name: getattr(sync, name) for name in sync.__all__}
    taking = {
        name
        for name, function in functions.items()
        if inspect.isfunction(function) and "glob" in inspect.signature(function).parameters
    }
    assert taking == {*FUNCTIONS, *OTHERWISE}
    named = {name.removesuffix("()") for name in re.findall(r"`([\w.]+\(?\)?)`", SEARCHED + LEFT_OUT)}
    assert named - {"Index"} <= {*FUNCTIONS, *(f"Repositories.{name}" for name in REPOSITORIES)}


@pytest.mark.parametrize("name", REPOSITORIES)
def test_repositories_have_the_defaults_that_readme_names(name: str, folder: Path) -> None:
    assert searched(REPOSITORIES[name](sync.Repositories(folder))) == defaults_of(f"Repositories.{name}")


@pytest.mark.extra
def test_index_has_the_defaults_that_readme_names(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("tantivy")
    with sync.Index(folder, location=tmp_path / "index") as index:
        assert searched(index.search("needle")) == (DEFAULTS[LEFT_OUT][0], DEFAULTS[LEFT_OUT][1])


@pytest.mark.parametrize("name", WORKSPACE)
def test_tool_has_the_defaults_that_readme_names(name: str, folder: Path) -> None:
    answer = WORKSPACE[name](sync.Workspace(folder)).partition("include_hidden")[0]  # a hint may name hidden files
    assert searched(answer.replace(".hidden.py (hidden)", "")) == (DEFAULTS[TOOLS][0], DEFAULTS[TOOLS][1])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search", ["needle"]),
        ("files", []),
        ("tree", []),
        ("files_with_matches", ["needle", "--files-with-matches"]),
        ("rank", ["needle"]),
        ("references", ["needle"]),
        ("replace", ["needle", "thread"]),
    ],
)
def test_command_has_the_defaults_that_readme_names(
    name: str, arguments: list[str], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = {"files_with_matches": "search", "references": "refs"}.get(name, name)
    cli.run([command, *arguments, "--cwd", str(folder)])
    assert DEFAULTS[COMMANDS][:2] == ["as the function", "not followed"]
    assert searched(capfd.readouterr().out) == (defaults_of(name)[0], "not followed")


def test_readme_names_what_closes_a_stream() -> None:
    assert re.search(r"rg is killed[^-]*`aclosing`", README)


def test_each_command_of_readme_makes_its_environment() -> None:
    """Fresh Debian has no `python`, and refuses to install packages outside of an environment."""
    commands = fresh.commands(README, whole=True)
    assert [command.split(" && ")[:2] for command in commands] == [
        ["python3 -m venv .venv", ". .venv/bin/activate"]
    ] * 2
    assert fresh.commands(README, whole=False)[1] == f"{commands[1]} -- -k '{fresh.PART}'"


def test_pages_install_ripwrap_from_the_clone() -> None:
    """Until there is a release, `.[` stands for `ripwrap[` in all commands."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = [line for page in pages for line in page.read_text("utf-8").splitlines() if "ripwrap[" in line]
    assert [line for line in named if "--find-links" not in line] == []


def test_missing_program_of_the_session_fresh_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="mmdebstrap or debootstrap is missing: apt install mmdebstrap"):
        fresh.make("trixie", tmp_path)

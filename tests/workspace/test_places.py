"""Places in files, as answers, editors and compilers write them, are accepted where a path is; also several paths."""

import gzip
import io
import json
import os
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from _operations.test_revisions import git
from ripwrap import sync
from ripwrap.binary import RgBinary
from ripwrap.sources import base
from ripwrap.workspace import revision
from ripwrap.workspace.sandbox import places_in
from support import bombs

Plant = Callable[..., Path]
LINES = "".join(f"needle_{number} = {number}\n" for number in range(1, 10))
HOSTILE = (
    *(
        "a.py",
        "a b.py",
        "a:3",
        "a.py:3:7",
        "a#L3.py",
        "x#L3",
        "-1",
        "a%20b.py",
        "a%3A4",
        "été.py",
        "[id].py",
        "{a,b}.py",
    ),
    *(
        "new\nline.py",
        "tab\t.py",
        "back\\slash.py",
        "!/x.py",
        "x:y:z/q.py",
        "a#b/c.py",
        "L3",
        "a:3/b.py",
        "*.py",
    ),
)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a.py:413", [("a.py", 413, 413)]),
        ("a.py:413:", [("a.py", 413, 413)]),
        ("a.py:4-7", [("a.py", 4, 7)]),
        ("a.py:7-4", [("a.py", 4, 7)]),
        ("a.py:3:7", [("a.py:3", 7, 7), ("a.py", 3, 3)]),
        ("a.py:3:7:", [("a.py:3", 7, 7), ("a.py", 3, 3)]),
        ("a.py#L4", [("a.py", 4, 4)]),
        ("a.py#L4-L7", [("a.py", 4, 7)]),
        ("a.py#L4-7", [("a.py", 4, 7)]),
        ("a.py#L4C2-L7C9", [("a.py", 4, 7)]),
        ("a.py#4", [("a.py", 4, 4)]),
        ("a\nb:4", [("a\nb", 4, 4)]),
        ("a.py:0", []),
        ("a.py:x", []),
        (":3", []),
        ("a.py#Lx", []),
        ("a.py:9999999999", []),
    ],
)
def test_text_is_read_as_a_place(text: str, read: list[tuple[str, int, int]]) -> None:
    assert list(places_in(text)) == read


@pytest.mark.posix
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_each_place_in_an_answer_reads_back_as_that_line(
    rg: RgBinary, plant: Plant, tmp_path: Path, name: str, several: bool
) -> None:
    root = plant({name: LINES, "other.py": "x = 1\n"})
    roots = [root, tmp_path / "second"] if several else [root]
    roots[-1].mkdir(exist_ok=True)
    tools = sync.Workspace(*roots, rg=rg)
    found = tools.grep_content("needle_4", context_lines=0)
    shown = re.findall(r"^File: (.+)$", found, re.MULTILINE)
    assert len(shown) == 1
    place = re.compile(rf"^ *({re.escape(shown[0])}:\d+(?:-\d+)?)(?=$|:| in )", re.MULTILINE)
    answers = [tools.find_references("needle_4"), tools.codebase_search("needle_4")]
    printed = [f"{shown[0]}:4", f"{shown[0]}#L4", f"{shown[0]}:4:1", f"{shown[0]}:4-4", f"{root / name}:4"]
    for answer in answers:
        printed += place.findall(answer)
    assert len(printed) > 5
    for text in printed:
        lines = tools.read_file(text)
        assert re.search(r"^  4: needle_4 = 4$", lines, re.MULTILINE), (text, lines)
    for text in (f"{(root / name).as_uri()}#L4", f"{(root / name).as_uri()}#L4-L4"):
        assert tools.read_file(text).splitlines()[1:2] == ["  4: needle_4 = 4"]
    for tool, given in (("grep_content", {"pattern": "needle_4"}), ("find_references", {"name": "needle_4"})):
        again = tools.call(tool, {**given, "path": f"{shown[0]}:4"})
        assert "needle_4 = 4" in again and "path names line 4; the whole file was searched." in again
    assert "1 file. path names line 4" in tools.ls(f"{shown[0]}:4")


@pytest.mark.posix
def test_name_of_a_file_takes_precedence_over_a_place(plant: Plant) -> None:
    tools = sync.Workspace(plant({"a.py": LINES, "a.py:4": "the file itself\n", "a.py#L4": "and this one\n"}))
    assert "the file itself" in tools.read_file("a.py:4")
    assert "and this one" in tools.read_file("a.py#L4")
    assert "  5: needle_5 = 5" in tools.read_file("a.py:5")
    assert "line 7" in tools.read_file("a.py:4:7")  # line 7 of the file `a.py:4`, which has one


def test_place_leads_neither_around_deny_nor_out_of_the_root(plant: Plant, tmp_path: Path) -> None:
    root = plant({"key.pem": LINES, "a.py": LINES})
    (tmp_path / "out.py").write_text(LINES)
    tools = sync.Workspace(root, deny=["*.pem"])
    for place in (":4", "#L4", ":4:1", ":4-5"):
        assert 'key.pem is denied by "*.pem"' in tools.read_file(f"key.pem{place}")
        assert "is outside of the allowed directories" in tools.read_file(f"../out.py{place}")
        assert "is outside of the allowed directories" in tools.read_file(f"{(tmp_path / 'out.py').as_uri()}{place}")


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        ({"path": "a.py:4-6"}, [4, 5, 6]),
        ({"path": "a.py:4", "start_line": 8}, [8, 9]),
        ({"path": "a.py:4", "ranges": "1-2"}, [1, 2]),
        ({"path": ["a.py:4", "b.py:2"]}, [4, 2]),
        ({"files": [{"path": "a.py", "lines": "3-4"}, {"file_path": "b.py", "offset": 2, "limit": 1}]}, [3, 4, 2]),
        ({"files": [{"path": "a.py", "start_line": 9}, "b.py:1"]}, [9, 1]),
        ({"files": [{"path": "a.py", "lines": "3"}, {"path": "a.py", "lines": [8, 9]}]}, [3, 8, 9]),
        ({"files": '[{"path": "a.py", "lines": "3"}]'}, [3]),
        ({"files": {"path": "b.py", "end_line": 2}}, [1, 2]),
    ],
)
def test_files_are_read_with_a_range_of_each(plant: Plant, given: dict[str, Any], numbers: list[int]) -> None:
    tools = sync.Workspace(plant({"a.py": LINES, "b.py": LINES}))
    text = tools.call("read_files", given)
    assert [int(one) for one in re.findall(r"^  (\d+): needle_\1 = \1$", text, re.MULTILINE)] == numbers


@pytest.mark.parametrize(
    "files",
    [
        [{"path": ["a.py", "b.py"]}],
        [{"path": [{"path": "a.py"}]}],
        [{"path": {"path": {"path": "a.py"}}}],
        [{"path": "a.py", "tail": 3}],
        [{"lines": "3"}],
        [{"path": "a.py", "frobnicate": 3}],
        [{"path": "a.py\0b.py"}],
    ],
)
def test_wrong_list_of_files_has_one_clear_error(plant: Plant, files: object) -> None:
    said = sync.Workspace(plant({"a.py": LINES, "b.py": LINES})).call("read_files", {"files": files})
    assert said.startswith("Error: ") and "\n" not in said and "validation error" not in said


def test_list_of_files_with_lines_has_no_other_ranges(plant: Plant) -> None:
    files = [{"path": "a.py", "lines": "3"}]
    said = sync.Workspace(plant({"a.py": LINES})).call("read_files", {"files": files, "ranges": "1-2"})
    assert said.startswith("Error: ranges cannot be combined with files that have lines of their own")


def test_replacement_in_a_place_is_refused(plant: Plant) -> None:
    root = plant({"a.py": LINES})
    said = sync.Workspace(root, write=True).replace_content("needle", "x", "a.py:4", apply=True)
    assert said.startswith("Error: path names lines of a.py, but all of it would be changed")
    assert (root / "a.py").read_text() == LINES


@pytest.fixture
def tree(plant: Plant) -> Path:
    root = plant({
        **dict.fromkeys(("src/pkg/a.py", "src/pkg/skip.py", "src/b.py", "lib/skip.py", "lib/deep/c.py"), LINES),
        "src/.gitignore": "/pkg/skip.py\n", "lib/.gitignore": "*.txt\n!keep.txt\n", ".gitignore": "*.log\n",
        "top.py": LINES,
        **dict.fromkeys(("lib/deep/x.txt", "lib/deep/keep.txt", "src/pkg/x.txt", "src/pkg/y.log", "[d] x/e.py"), LINES),
    })  # fmt: skip
    subprocess.run(("git", "init", "-q", str(root)), check=True)
    return root


PATHS = [
    ["src", "lib"],
    ["src/pkg", "lib/deep"],
    ["lib/deep", "src/pkg/a.py", "top.py"],
    ["src", "src/pkg", "src/b.py"],
    ["[d] x", "src/pkg"],
    [".", "lib"],
]


@pytest.mark.parametrize("paths", PATHS)
def test_several_paths_are_searched_as_each_of_them_is(rg: RgBinary, tree: Path, paths: list[str]) -> None:
    """An ignore file above one path must have no effect on another one."""
    tools = sync.Workspace(tree, rg=rg, write=True)

    def files(tool: str, given: dict[str, Any]) -> set[str]:
        result: Any = tools.call_result(tool, given)
        return {getattr(one, "path", one).replace(os.sep, "/") for one in result.files}

    for tool, given in (
        ("grep_content", {"pattern": "needle_4", "output_mode": "files_with_matches"}),
        ("grep_content", {"pattern": "needle_4", "output_mode": "count", "file_pattern": "*.py"}),
        ("find_files", {"pattern": "*"}),
        ("find_files", {"pattern": "*.py", "entry_type": "any"}),
        ("replace_content", {"pattern": "needle_4", "replacement": "x"}),
    ):
        alone = set[str]().union(*(files(tool, {**given, "path": path}) for path in paths))
        assert files(tool, {**given, "path": paths}) == alone == files(tool, {**given, "paths": paths})
    listed = tools.call("ls", {"path": paths})
    for path in paths:
        assert all(name.strip(" -/").rpartition("/")[2] in listed for name in tools.ls(path).splitlines()[:-2])
    both: Any = tools.call_result("find_references", {"name": "needle_4", "path": paths})
    assert {one.path for one in both.references} == {
        one.path for path in paths for one in tools.find_references_result("needle_4", path).references
    }


def test_paths_of_two_roots_are_refused(plant: Plant, tmp_path: Path) -> None:
    root, other = plant({"one/a.py": LINES}) / "one", tmp_path / "two"
    other.mkdir()
    tools = sync.Workspace(root, other)
    said = tools.call("grep_content", {"pattern": "x", "path": [str(root), str(other)]})
    assert said.startswith("Error: ") and "different roots; call the tool once for each root" in said
    assert "needle_4" in tools.call("grep_content", {"pattern": "needle_4", "path": [".", str(root)]})


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("mode", ["content", "count", "files_with_matches"])
def test_several_patterns_are_counted_each(rg: RgBinary, plant: Plant, fixed: bool, mode: str) -> None:
    root = plant({"a.py": "a.c\nabc\n(x|y)\n", "b.py": "abc\n"})
    tools = sync.Workspace(root, rg=rg)
    patterns = ["a.c", "(x|y)", "none here"]
    given = {"pattern": patterns, "fixed_strings": fixed, "output_mode": mode}
    text = tools.call("grep_content", given)
    for pattern in patterns:
        flags = ["-F"] if fixed else []
        out = subprocess.run(
            (rg.path, *flags, "-c", "-e", pattern, "."), cwd=root, capture_output=True, text=True, check=False
        )
        counts = [int(line.rpartition(":")[2]) for line in out.stdout.splitlines()]
        much = f"{sum(counts)} match{'es' * (sum(counts) != 1)} in {len(counts)} file{'s' * (len(counts) != 1)}"
        assert f'pattern="{pattern}" has {much if counts else "no match"}' in text
    each = ("-e", patterns[0], "-e", patterns[1], "-e", patterns[2])
    out = subprocess.run((rg.path, *flags, "-l", *each, "."), cwd=root, capture_output=True, text=True, check=False)
    found: Any = tools.call_result("grep_content", given)
    assert found.files_matched == len(out.stdout.splitlines())


def test_lists_are_python_arguments(plant: Plant) -> None:
    tools: Any = sync.Workspace(plant({"a.py": LINES, "b.py": LINES}))
    assert "needle_4" in tools.grep_content(["needle_4", "x"], ["a.py", "b.py"])


MEMBERS = ("dir/b.py", "c:3", "d#L2.py", ".hidden", "x y.py", "tab\tname", "new\nline", "e.py:3:1", "ü.py", "100%.py")


def packed(kind: str, name: str) -> bytes:
    """Return an archive with one member, and a member that is an archive."""
    out, inner = io.BytesIO(), io.BytesIO()
    if kind == "gz":
        return gzip.compress(LINES.encode())
    with tarfile.open(fileobj=inner, mode="w") as tar:
        about = tarfile.TarInfo(name)
        about.size = len(LINES)
        tar.addfile(about, io.BytesIO(LINES.encode()))
    if kind == "tar":
        return inner.getvalue()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("in.tar", inner.getvalue()) if kind == "nested" else archive.writestr(name, LINES)
    return out.getvalue()


@pytest.mark.posix
@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize(
    ("kind", "file", "inside"),
    [("zip", "a.zip", "zip"), ("tar", "a.tar", "tar"), ("nested", "n.zip", "zip,tar"), ("gz", "b.py.gz", "gz")],
)
def test_place_in_an_archive_reads_back(
    rg: RgBinary, plant: Plant, kind: str, file: str, inside: str, name: str
) -> None:
    root = plant({"other.py": "x = 1\n"})
    (root / file).write_bytes(packed(kind, name))
    tools = sync.Workspace(root, rg=rg, redact=True)
    found = tools.grep_content("needle_4", inside=inside, include_hidden=True, context_lines=0)
    (shown,) = re.findall(r"^File: (.+)$", found, re.MULTILINE)
    assert "!/" in shown
    for place in (f"{shown}:4", f"{shown}#L4", f"{shown}:4:1", f"{shown}:4-4"):
        assert tools.read_file(place).splitlines()[:2] == [f"File: {shown}", "  4: needle_4 = 4"], place
        assert tools.grep_content("needle_4", place, context_lines=0).splitlines()[1] == "  4: needle_4 = 4"
    assert tools.read_file(shown).splitlines()[1:10] == [f"  {n}: needle_{n} = {n}" for n in range(1, 10)]
    assert tools.read_file(f"{shown}x").startswith("Error: ")
    assert tools.ls(f"{shown}:4").startswith(f"- {shown}\n") and "does not exist" in tools.find_references("x", shown)


def test_member_of_an_archive_is_denied_and_bounded_as_in_a_search(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = plant({"a.py": "x\n"})
    for folder in (root, tmp_path):
        with zipfile.ZipFile(folder / "a.zip", "w") as archive:
            archive.writestr("dir/key.pem", LINES)
            archive.writestr("top/name.txt", LINES)
            archive.writestr("big.txt", "x" * 5_000)
    (root / "broken.zip").write_bytes(b"PK\x03\x04 no archive")
    tools = sync.Workspace(root, deny=["*.pem", "denied.zip", "/top/name.txt"])
    os.link(root / "a.zip", root / "denied.zip")
    monkeypatch.setattr(revision, "MAX_MEMBER_BYTES", 1_000)
    for tool, given in (("read_file", {}), ("grep_content", {"pattern": "needle"})):
        for place in ("", ":4", "#L4"):
            for member in (
                "dir/key.pem",
                "top/name.txt",
                "./top/name.txt",
            ):  # the last glob is one of the archive's top
                said = tools.call(tool, {**given, "path": f"a.zip!/{member}{place}"})
                assert re.match(r"Error: a\.zip!/\S+ is denied|Error: .+ is not in a\.zip", said)
            assert "is denied by" in tools.call(tool, {**given, "path": f"denied.zip!/big.txt{place}"})
            outside = f"{tmp_path}/a.zip!/big.txt{place}"
            assert "outside of the allowed directories" in tools.call(tool, {**given, "path": outside})
            assert "is not in a.zip" in tools.call(tool, {**given, "path": f"a.zip!/big.txt{place}"})
            assert tools.call(tool, {**given, "path": f"broken.zip!/x{place}"}).startswith("Error: ")
            assert "is not in an archive or document" in tools.call(tool, {**given, "path": f"a.py!/x{place}"})


CELLS: list[dict[str, object]] = [
    {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": "x = 1\nneedle = 4", "outputs": [
        {"output_type": "stream", "name": "stdout", "text": "needle out\nsecond\n"}
    ]},
    {"cell_type": "markdown", "metadata": {}, "source": "# needle\nlast"},
]  # fmt: skip
ROWS = "".join(f'<row r="{n}"><c r="A{n}" t="str"><v>needle {n}</v></c></row>' for n in (1, 2))
DOCUMENTS = {
    "a.ipynb": ["a.ipynb!/cell 1", "a.ipynb!/cell 1 output", "a.ipynb!/cell 2"],
    "a.docx": ["a.docx!/paragraph 1", "a.docx!/paragraph 2"],
    "a.xlsx": ["a.xlsx!/sheet s"],
    "z.zip": ["z.zip!/a.ipynb!/cell 1", "z.zip!/a.ipynb!/cell 1 output", "z.zip!/a.ipynb!/cell 2"],
}


@pytest.mark.extra
@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize("file", DOCUMENTS)
def test_part_of_a_document_in_an_answer_reads_back(plant: Plant, file: str, redact: bool) -> None:
    if package := {"a.docx": "docx", "a.xlsx": "python_calamine"}.get(file):
        pytest.importorskip(package)
    notebook = json.dumps({"cells": CELLS, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    root = plant({"a.ipynb": notebook, "other.py": "needle last\n"})
    bombs.docx(root / "a.docx", "".join(f"<w:p><w:r><w:t>needle {n}</w:t></w:r></w:p>" for n in (1, 2)))
    bombs.xlsx(root / "a.xlsx", f"<sheetData>{ROWS}</sheetData>")
    with zipfile.ZipFile(root / "z.zip", "w") as archive:
        archive.write(root / "a.ipynb", "a.ipynb")
    tools = sync.Workspace(root, redact=redact)
    inside = file.rpartition(".")[2] if file in ("a.docx", "a.xlsx") else "zip,ipynb-outputs"
    found = tools.grep_content_result("needle", file, inside=inside, context_lines=0)
    assert [one.path for one in found.files] == DOCUMENTS[file]
    for one in found.files:
        for match in (match for match in found.matches if match.file == one.path):
            for place in (f"{one.path}:{match.line}", f"{one.path}#L{match.line}"):
                row = f"  {match.line}: {match.match}".rstrip()
                assert tools.read_file(place).splitlines()[:2] == [f"File: {one.path}", row]
                again = tools.grep_content_result("needle", place, context_lines=0)
                assert [*again.matches] == [other for other in found.matches if other.file == one.path]
        assert tools.ls(one.path).startswith(f"- {one.path}\n")
        assert f" like {one.path}:1-" in tools.codebase_search(like=one.path)
    part = DOCUMENTS[file][0]
    missing = tools.read_file(f"{part.rpartition(' ')[0]} 99")
    assert missing.startswith("Error: ") and f" is not in {file}; grep_content names its members" in missing
    denied = sync.Workspace(root, deny=part.split("!/")[-2])
    for tool, given in (("read_file", {}), ("grep_content", {"pattern": "needle"}), ("ls", {})):
        assert "denied" in denied.call(tool, {**given, "path": f"{part}:1"})


def test_a_document_needs_its_package(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    root = plant({"a.docx": "", "b.py": ""})
    monkeypatch.setattr(base, "find_spec", dict[str, object]().get)
    said = sync.Workspace(root).read_file("a.docx!/paragraph 2")
    assert said.startswith("Error: 'docx' needs the package python-docx: ") and "ripwrap[documents]" in said


KINDS = {
    "a.py": (1, 9),
    "a.py:3": (3, 3),
    "a.py:3-5": (3, 5),
    "a.py#L3-L5": (3, 5),
    "{root}/a.py:3": (3, 3),
    "file://{root}/a.py#L3": (3, 3),
    "a.zip!/b.py": (1, 9),
    "a.zip!/b.py:3-5": (3, 5),
    "a.ipynb!/cell 1": (1, 9),
    "a.ipynb!/cell 1:3-5": (3, 5),
    "gone.py:3": (3, 3),  # of a revision
}


@pytest.mark.parametrize(("place", "lines"), KINDS.items())
def test_every_kind_of_place_is_taken_by_every_reading_tool(plant: Plant, place: str, lines: tuple[int, int]) -> None:
    """What one answer prints can be passed to the next tool, whichever it is."""
    cell = {"cell_type": "code", "metadata": {}, "source": LINES.strip(), "outputs": [], "execution_count": 1}
    notebook = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    root = plant({"a.py": LINES, "gone.py": LINES, "a.ipynb": notebook})
    with zipfile.ZipFile(root / "a.zip", "w") as archive:
        archive.writestr("b.py", LINES)
    rev = {"rev": "HEAD"} if place.startswith("gone") else {}
    if rev:
        git(root, "init", "-q")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "all")
        (root / "gone.py").unlink()
    tools, path = sync.Workspace(root), place.format(root=root.as_posix())
    read = tools.call("read_file", {"path": path, **rev})
    numbers = range(lines[0], lines[1] + 1)
    assert read.splitlines()[1:-2] == [f"  {n}: needle_{n} = {n}" for n in numbers]
    shown = read.splitlines()[0].removeprefix("File: ")
    assert tools.call("grep_content", {"pattern": "needle_3", "path": path, **rev}).startswith(f"File: {shown}\n")
    assert tools.call("ls", {"path": path, **rev}).startswith(f"- {shown}\n")
    if not rev:
        compared = (1, 9) if lines == (3, 3) else lines  # one line is the block around it
        assert f" like {shown}:{compared[0]}-{compared[1]}," in tools.codebase_search(like=path)

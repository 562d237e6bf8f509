"""`overlay()`: texts count in place of files, as if they were written."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import ripwrap
from _operations.test_against_rg import drawn, globs, patterns, types
from ripwrap import PatternError, SearchError, sync
from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.planning import plan
from ripwrap._ripgrep.protocols import Step
from ripwrap._ripgrep.runner import BlockingRunner, C, run_blocking
from ripwrap.binary import RgBinary
from support.effort import times
from support.outcomes import without_context

Texts = Mapping[str, str | bytes | None]

TREE: dict[str, bytes] = {
    "a.py": b"needle\nother\n",
    "[b] !{c}*.py": b"needle\n",
    "sub/a.c": b"one\nneedle\ntwo\nthree\nneedle\n",
    "sub/deep/\xc3\xa9.txt".encode("latin-1").decode(): b"needle\n",
    ".hidden/x.py": b"needle\n",
    ".gitignore": b"ignored*\n/sub/new.c\n",
    "ignored.py": b"needle\n",
    "sub/.ignore": b"*.tmp\n",
    "sub/x.tmp": b"needle\n",
    "empty": b"",
    "nul.bin": b"needle\0needle\n",
}
LINKS = {"link.py": "a.py", "sub/up": "../.hidden", "ignored-link": "sub"}
NEW = [
    "new.py",
    "sub/new.c",
    "sub/deep/new.txt",
    "fresh/dir/n.py",
    ".hidden/n.py",
    "sub/y.tmp",
    "ignored-2",
    "\udcff.py",
]
UTF_16 = "needle é\n".encode("utf-16")
TEXTS = [None, "needle\n", "one\nneedle here", "", "other\n", b"needle\0x\n", UTF_16, "é needle\n" * 30]

overlays = st.dictionaries(
    st.sampled_from([*(name for name in TREE if not name.endswith("ignore")), *NEW]), st.sampled_from(TEXTS), max_size=4
)
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "paths": st.sampled_from(
        [
            *(["sub"], ["sub", "a.py"], ["new.py"], ["link.py"]),
            *(["./a.py", "fresh"], [".hidden", "sub/up"], ["a.py"], ["gone", "sub"]),
        ]
    ),
    "glob": globs | st.lists(globs, max_size=3),
    "iglob": globs,
    "type": types,
    "type_not": types,
    "hidden": st.booleans(),
    "follow": st.booleans(),
    "no_ignore": st.booleans(),
    "max_depth": st.integers(0, 3),
    "max_filesize": st.sampled_from([0, 10, "1K"]),
    "sort": st.sampled_from(["path", "none"]),
}
LINE_OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.booleans() for name in ("ignore_case", "invert_match", "multiline", "text", "binary", "null_data")},
    "max_count": st.integers(0, 2),
    "context": st.integers(0, 2),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("tree")
    for name, content in TREE.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for name, target in LINKS.items():
        (top / name).symlink_to(target)
    return top


@contextmanager
def written(tree: Path, texts: Texts) -> Iterator[Path]:
    """Yield a copy of a tree in which the texts are written."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        copy = Path(folder, "tree")
        shutil.copytree(tree, copy, symlinks=True)
        for name, text in texts.items():
            path = copy / name
            if text is None:
                path.unlink(missing_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        yield copy


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call returns, in path order unless it is sorted, or `"error"`."""
    try:
        return call()
    except (SearchError, ValueError, OSError):
        return "error"  # of several invalid arguments, an overlay may name another one than rg 13 does


def answers(pattern: Any, cwd: Path, rg: RgBinary, options: dict[str, Any], lines: dict[str, Any]) -> list[Any]:
    both = {"cwd": cwd, "rg": rg, **options}
    in_order = list if options.get("sort") == "path" else sorted
    page: Any = outcome(lambda: sync.grep(pattern, timeout=None, limit=5, **both, **lines))
    if isinstance(page, ripwrap.GrepResult):
        errors = tuple(error for error in page.errors if not error.harmless)
        page = page.model_copy(update={"root": "", "errors": errors}).model_dump(exclude={"elapsed"})
    return [
        page,
        outcome(lambda: in_order(repr(match) for match in sync.search(pattern, **both, **without_context(lines)))),
        outcome(lambda: in_order(sync.files(**both))),
        outcome(lambda: in_order(map(repr, sync.count(pattern, **both, **lines)))),
        outcome(lambda: in_order(sync.files_without_match(pattern, **both, **lines))),
    ]


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.rg_ends
@pytest.mark.timeout(1500)
@settings(max_examples=times(6, 1000), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(patterns, overlays, drawn(OPTIONS), drawn(LINE_OPTIONS))
def test_answers_equal_those_about_a_tree_in_which_the_texts_were_written(
    rg: RgBinary, tree: Path, pattern: Any, texts: Texts, options: dict[str, Any], lines: dict[str, Any]
) -> None:
    # With `max_count=0` rg searches nothing. So rg 13 does not check the types, which a list of files does.
    assume(lines.get("max_count") != 0 or not {"type", "type_not"} & options.keys())
    with written(tree, texts) as copy:
        expected = answers(pattern, copy, rg, options, lines)
    with ripwrap.overlay(texts, cwd=tree):
        found = answers(pattern, tree, rg, options, lines)
    for one, other in zip(found, expected, strict=True):
        assert one == other


def paths(**options: Any) -> list[str | None]:
    return [match.path for match in sync.search("needle", sort="path", **options)]


@pytest.fixture
def here(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tree)
    return tree


@pytest.mark.posix
class TestOverlay:
    @pytest.mark.slow
    def test_paths_are_absolute_or_relative_to_the_directory(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        texts: Any
        for texts in ({here / "empty": "needle\n"}, {str(here / "sub/../empty"): "needle\n"}, {"empty": b"needle\n"}):
            with ripwrap.overlay(texts):
                assert "empty" in paths()
            assert "empty" not in paths()
        monkeypatch.chdir(here / "sub")
        with ripwrap.overlay({"../empty": "needle"}):
            assert paths(paths=["../empty"]) == ["../empty"]
            assert [(match.path, match.lines) for match in sync.search("needle", cwd="..", glob="empty")] == [
                ("empty", "needle")
            ]

    def test_text_counts_wherever_links_lead_to_its_file(self, here: Path) -> None:
        with ripwrap.overlay({"link.py": "x needle\n"}):
            found = {match.path: match.lines for match in sync.search("needle", glob="*.py", hidden=False)}
        assert found["a.py"] == found["link.py"] == "x needle\n"

    def test_inner_overlay_counts_and_ends_with_its_block(self, here: Path) -> None:
        with ripwrap.overlay({"empty": "needle\n", "a.py": None}):
            with ripwrap.overlay({"empty": "other\n"}):
                assert {"empty", "a.py", "link.py"}.isdisjoint(paths())
            assert "empty" in paths()
        assert "a.py" in paths()

    def test_new_directory_is_searched_by_the_same_rules(self, here: Path) -> None:
        texts = {"made/a.py": "needle", "made/b.c": "needle", "made/ignored.py": "needle", "made/x/.h.py": "needle"}
        with ripwrap.overlay(texts):
            assert paths(paths="made", type="py", hidden=False) == ["made/a.py"]
            assert paths(paths=["made", "made/b.c"], max_depth=1) == ["made/a.py", "made/b.c", "made/b.c"]

    @pytest.mark.parametrize("follow", [False, True])
    def test_new_directory_may_be_inside_of_another_new_one(self, here: Path, follow: bool) -> None:
        with ripwrap.overlay({"made/deep/a.py": "needle"}):
            assert paths(paths="made/deep", follow=follow) == ["made/deep/a.py"]

    def test_missing_path_is_an_error_beside_one_that_only_the_overlay_has(self, here: Path) -> None:
        with ripwrap.overlay({"new.py": "needle\n"}):
            assert [error.path for error in sync.grep("needle", paths=["new.py", "gone"]).errors] == ["gone"]
            with pytest.raises(FileNotFoundError, match="'gone'"):
                paths(paths=["gone", "new.py"])
            assert paths(paths=["new.py"]) == ["new.py"]
            with pytest.raises(FileNotFoundError, match="none of the 2 paths exists"):
                paths(paths=["gone", "lost"])

    def test_generator_keeps_the_overlay_of_its_call(self, here: Path) -> None:
        with ripwrap.overlay({"empty": "needle\n"}):
            found = sync.search("needle", glob="empty")
        assert [match.path for match in found] == ["empty"]

    @pytest.mark.anyio
    async def test_overlay_belongs_to_its_task(self, here: Path) -> None:
        counts: dict[str, int] = {}

        async def search(text: str) -> None:
            with ripwrap.overlay({"empty": text}):
                await anyio.lowlevel.checkpoint()
                counts[text] = (await ripwrap.grep("needle", glob="empty")).total_matches
                assert [path async for path in ripwrap.files(glob="empty*")] == ["empty"]

        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(search, "needle\n" * number)
        assert counts == {"": 0, "needle\n": 1, "needle\nneedle\n": 2}
        assert (await ripwrap.grep("needle", glob="empty")).total_matches == 0

    @pytest.mark.slow
    @pytest.mark.anyio
    async def test_limit_ends_a_search_and_leaves_nothing(self, here: Path, leaks_nothing: None) -> None:
        with ripwrap.overlay({f"n{number}": "needle\n" for number in range(50)}):
            assert len([match async for match in ripwrap.search("needle", limit=7)]) == 7
            assert len(list(sync.search("needle", limit=7))) == 7

    def test_messages_have_the_counts_of_the_texts(self, here: Path) -> None:
        with ripwrap.overlay({"a.py": "needle\n" * 9, "sub/a.c": None}):
            *_, summary = sync.search_messages("needle", follow=False)
        expected = sum(content.count(b"needle\n") for name, content in TREE.items() if name not in ("a.py", "sub/a.c"))
        ignored = 2
        assert isinstance(summary, ripwrap.Summary)
        assert summary.stats.matched_lines == expected + 9 - ignored - 1

    def test_expand_reads_the_text(self, here: Path) -> None:
        with ripwrap.overlay({"a.py": "def f():\n    needle = 1\n    return needle\n"}):
            match = next(sync.search("needle = 1", glob="a.py"))
            assert [line.text for line in sync.expand(match).lines][-1] == "    return needle"

    def test_every_command_of_a_step_searches_the_texts(self, tmp_path: Path) -> None:
        """`files_matching()` has one command for each pattern; a NUL on the disk made the second one skip the file."""
        (tmp_path / "a.txt").write_bytes(b"foo\0bar\n")
        (tmp_path / "b.txt").write_bytes(b"foo\nbar\n")
        with ripwrap.overlay({"a.txt": "foo\nbar\n", "b.txt": "foo\n", "c.txt": "bar\nfoo\n"}, cwd=tmp_path):
            assert list(sync.files_matching(all_of=["foo", "bar"], cwd=tmp_path)) == ["a.txt", "c.txt"]
            assert list(sync.files_matching(all_of=["foo"], none_of=["bar"], cwd=tmp_path)) == ["b.txt"]
            page = sync.grep("foo", cwd=tmp_path, near="bar", within=1)
            assert [file.path for file in page.files] == ["a.txt", "c.txt"]

    def test_progress_counts_the_texts_and_no_preparing_run(self, tmp_path: Path) -> None:
        (tmp_path / "old.py").write_text("# TODO\n")
        reports: list[ripwrap.Progress] = []
        with ripwrap.overlay({"new.py": "# TODO\n# TODO\n"}, cwd=tmp_path):
            page = sync.grep("TODO", cwd=tmp_path, on_progress=reports.append)
            found = list(sync.search("TODO", cwd=tmp_path, on_progress=reports.append))
        assert (page.total_matches, len(found)) == (3, 3)
        assert {(one.files, one.matches) for one in reports[-1:]} == {(2, 3)}

    def test_unreadable_file_with_a_text_is_no_error(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("x")
        with ripwrap.overlay({"b": "needle"}, cwd=tmp_path):
            result = sync.grep("needle", cwd=tmp_path, paths=["a", "b"])
        assert (result.total_matches, result.errors) == (1, ())

    def test_pattern_is_checked(self, here: Path) -> None:
        with ripwrap.overlay({"a.py": "x"}), pytest.raises(PatternError):
            sync.grep("(")

    def test_line_longer_than_a_chunk_is_whole(self, here: Path) -> None:
        long = "needle" + "y" * 300_000
        (here / "long").write_text(long)
        try:
            with ripwrap.overlay({"a.py": long}):
                found = {match.path: len(match.lines) for match in sync.search("needle", glob=["long", "a.py"])}
        finally:
            (here / "long").unlink()
        assert found == {"long": len(long), "a.py": len(long)}


@pytest.mark.posix
@pytest.mark.parametrize(("text", "found"), [("needle\n", ["a.py"]), ("needle\n" * 9, [])])
def test_size_limit_applies_to_the_text_and_not_to_the_file_on_disk(here: Path, text: str, found: list[str]) -> None:
    assert (here / "a.py").stat().st_size > 10
    with ripwrap.overlay({"a.py": text}):
        assert [match.path for match in sync.search("needle", glob="a.py", max_filesize=10)] == found
        assert [*sync.files(glob="a.py", max_filesize=10)] == found


@pytest.mark.posix
def test_ignore_file_of_the_temporary_directory_hides_no_text(
    here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    (temporary / ".ignore").write_text("*\n")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with ripwrap.overlay({"a.py": "changed needle\n"}, cwd=here):
        assert [match.text for match in sync.search("needle", glob="a.py")] == ["changed needle"]


@pytest.mark.posix
def test_runs_of_rg_for_an_overlay_share_one_time_limit(here: Path) -> None:
    limits: list[float] = []

    class Recording(BlockingRunner):
        async def collect(self, step: Step[C]) -> C:
            limits.append(step.timeout or 0)
            return await super().collect(step)

    with ripwrap.overlay({"a.py": "needle\n"}):
        command = search_query("needle", ".", (), {"type": "py"})
    run_blocking(plan(command, Recording(None), 9.0))
    assert len(limits) > 1
    assert 9 >= limits[0] > limits[-1] > 0


@pytest.mark.posix
class TestWorkspace:
    @pytest.mark.slow
    def test_tools_follow_the_overlay(self, here: Path) -> None:
        workspace = sync.Workspace(".")
        with ripwrap.overlay({"a.py": "changed needle\n", "made/n.py": "needle\n", "sub/a.c": None}):
            assert "changed needle" in workspace.grep_content("needle")
            assert "made/n.py" in workspace.grep_content("needle", path="made/n.py")
            assert "changed" in workspace.read_file("a.py")
            assert "needle" in workspace.read_file("made/n.py")
            assert workspace.read_file("sub/a.c").startswith("Error: ")
            for answer in (workspace.ls(), workspace.tree(), workspace.find_files("*.py")):
                assert "n.py" in answer
                assert "a.c" not in answer
            assert "overlay()" in workspace.codebase_search("needle")
            assert workspace.grep_content("nowhere").startswith("No ")
        assert "changed" not in workspace.read_file("a.py")


@pytest.mark.posix
class TestRefusals:
    @pytest.mark.parametrize(
        "call",
        [
            lambda: sync.rank("needle"),
            sync.coverage,
            lambda: sync.why("a.py"),
            lambda: sync.grep("needle", coverage=True),
            lambda: sync.replace("needle", "pin"),
            lambda: list(sync.search_code("needle", lang="python")),
            lambda: sync.Repositories(".").grep("needle"),
            lambda: list(sync.Repositories(".").files()),
            lambda: list(sync.search("needle", sort="modified")),
            lambda: list(sync.files(sortr="created")),
            lambda: sync.Workspace(".").file_info("a.py"),
            lambda: sync.Workspace(".").list_directory("."),
        ],
    )
    def test_operation_that_cannot_follow_an_overlay_says_so(self, here: Path, call: Callable[[], object]) -> None:
        with ripwrap.overlay({"a.py": "x"}), pytest.raises(ValueError, match=r"overlay\(\)"):
            call()

    def test_index_is_refused(self, here: Path, tmp_path: Path) -> None:
        with ripwrap.overlay({"a.py": "x"}):
            index = sync.Index(here, location=tmp_path / "index")
            for call in (lambda: index.search("needle"), lambda: index.grep("needle"), index.refresh):
                with pytest.raises(ValueError, match=r"overlay\(\)"):
                    call()

    def test_text_of_an_ignore_file_is_refused_unless_none_is_read(self, here: Path) -> None:
        texts: dict[str, str]
        options: Any
        rules = {"ignore_file": "rules"}
        for texts, options in (
            ({".gitignore": ""}, {}),
            ({"rules": "x"}, rules),
            ({"rules": "x"}, rules | {"no_ignore": True}),
        ):
            with (
                ripwrap.overlay(texts),
                pytest.raises(ValueError, match=r"cannot use the text of overlay\(\) for the ignore file"),
            ):
                list(sync.files(**options))
        with ripwrap.overlay({".gitignore": ""}):
            assert "ignored.py" in list(sync.files(no_ignore=True))
        with ripwrap.overlay({"rules": "x"}):
            assert "a.py" in list(sync.files(ignore_file="rules", no_ignore_files=True))

    @pytest.mark.parametrize(
        ("texts", "kind", "text"),
        [
            ({"a.py": "", "./a.py": ""}, ValueError, r"lead to the same file: a\.py and \./a\.py; leave one of"),
            ({"a.py": "", Path("a.py"): ""}, ValueError, r"lead to the same file: a\.py and a\.py"),
            ({"x": "", "x/y": ""}, ValueError, "is a file of the overlay, and .*x/y is below it"),
            ({"sub": ""}, IsADirectoryError, "a path of the overlay is a directory"),
            ({"a.py/x": ""}, NotADirectoryError, "a path of the overlay is below the file .*a.py"),
            ({"link.py": None}, ValueError, "an overlay cannot delete the link"),
            ({"a.py": 5}, TypeError, "an overlay maps a path to .*, got a key of type str and a value of type int"),
            ({"": "x"}, ValueError, "a path of the overlay must not be empty"),
            ([("a.py", "x")], TypeError, "an overlay is a mapping of paths to texts, got list"),
        ],
    )
    def test_wrong_texts_are_one_clear_error(self, here: Path, texts: Any, kind: type[Exception], text: str) -> None:
        with pytest.raises(kind, match=text), ripwrap.overlay(texts):
            pass
        assert os.path.exists("a.py")

"""Output forms of collected results: a diff that git applies, a notebook, a terminal, JSON."""

import copy
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from rich.console import Console

from ripwrap import CapabilityError, Coverage, GrepResult, Match, Message, Reason, Tree, sync
from ripwrap._display.diff import unified
from ripwrap._display.html import MAX_HTML
from ripwrap.binary import RgBinary
from ripwrap.models import FileCount, TreeEntry
from support import rgs
from support.git import require_git

Plant = Callable[..., Path]
SCHEMAS = Path(__file__).parent / "data" / "schemas.json"
rg15 = rgs.provide("15.2.0")


def apply_diff(folder: Path, diff: bytes) -> None:
    """Apply a diff with git, which is strict."""
    require_git()
    argv = ["git", "apply", "-p1", "-"]
    done = subprocess.run(argv, cwd=folder, input=diff, capture_output=True, check=False)
    assert done.returncode == 0, (done.stderr.decode(), diff)


class TestDiff:
    @pytest.mark.posix
    def test_git_applies_the_diff(self, rg: RgBinary, plant: Plant) -> None:
        before: dict[str | bytes, str | bytes] = {
            "a.py": "import os\n\n\ndef old_name():\n    return old_name\n\n\nx = 1\ny = 2\nz = 3\nold_name()\n",
            "crlf.txt": "old_name\r\nother\r\n",
            "no newline": "first\nold_name",
            'q"uo\\te\t.txt': "old_name\n",
            "sub dir/é.txt": "ol\nold_name é\n",
            b"\xff.bin": b"old_name \xff\xfe\n",
            "untouched": "nothing\n",
        }
        folder = plant(before)
        if rg.version < (15,):
            with pytest.raises(CapabilityError, match="replace needs rg 15 or later"):
                sync.grep("old_name", cwd=folder, rg=rg, replace="new_name")
            return
        result = sync.grep(r"old_(\w+)", cwd=folder, rg=rg, replace="${1}_new")
        for name, content in before.items():  # grep() changes no file
            raw = content.encode() if isinstance(content, str) else content
            assert (folder / os.fsdecode(name)).read_bytes() == raw
        apply_diff(folder, result.raw_diff())
        for name, content in before.items():
            raw = content.encode() if isinstance(content, str) else content
            assert (folder / os.fsdecode(name)).read_bytes() == raw.replace(b"old_name", b"name_new")

    def test_diff_has_a_header_hunks_and_context(self, plant: Plant) -> None:
        folder = plant({"f.txt": "1\n2\nx\n4\n5\n6\n7\n8\n9\nx x\n"})
        result = sync.grep("x", cwd=folder, rg=rg15, replace="a\nb", context=1)
        assert (
            result.diff()
            == result.files[0].diff()
            == (
                "--- a/f.txt\n+++ b/f.txt\n"
                "@@ -2,3 +2,4 @@\n 2\n-x\n+a\n+b\n 4\n"
                "@@ -9,2 +10,4 @@\n 9\n-x x\n+a\n+b a\n+b\n"
            )
        )

    def test_git_applies_the_diff_of_a_page(self, plant: Plant) -> None:
        """The last hunk must have context after its match: otherwise git expects the end of the file there."""
        folder = plant({"f.txt": "foo\n" * 10})
        page = sync.grep("foo", cwd=folder, rg=rg15, replace="X", limit=3, offset=3)
        apply_diff(folder, page.raw_diff())
        assert (folder / "f.txt").read_text() == "foo\n" * 3 + "X\n" * 3 + "foo\n" * 4

    def test_diff_has_prefixed_absolute_paths(self, plant: Plant) -> None:
        folder = plant({"f": "x\n"})
        diff = sync.grep("x", cwd=folder, rg=rg15, replace="y", paths=folder / "f").diff()
        name = (folder / "f").as_posix().removeprefix("/")
        assert diff.startswith(f"--- a/{name}\n+++ b/{name}\n")

    def test_names_in_a_diff_have_slashes_on_windows(self, plant: Plant) -> None:
        """Git writes names with `/` on every system, and a backslash as an escape."""
        lines = [*sync.grep("x", cwd=plant({"f": "x\n"}), rg=rg15, replace="y").files[0].lines()]
        for path, name in ((r"sub\deep\f", b"sub/deep/f"), (r"C:\sub\f", b"C:/sub/f")):
            assert unified(path, lines, sep="\\").startswith(b"--- a/%b\n+++ b/%b\n" % (name, name))
        assert unified(r"a\b", lines, sep="/").startswith(b'--- "a/a\\\\b"\n')

    def test_diff_of_nul_terminated_lines_raises(self, plant: Plant) -> None:
        result = sync.grep("x", cwd=plant({"f": b"a\nb\0x\0"}), rg=rg15, replace="y", null_data=True, text=True)
        with pytest.raises(ValueError, match="null_data"):
            result.diff()

    def test_diff_can_remove_and_join_lines(self, plant: Plant) -> None:
        folder = plant({"f.txt": "1\nx\n3\ny\n5\n"})
        result = sync.grep(["x\n", "y\n"], cwd=folder, rg=rg15, replace="", multiline=True, context=1)
        apply_diff(folder, result.files[0].raw_diff())
        assert (folder / "f.txt").read_text() == "1\n3\n5\n"
        joined = sync.grep("3\n", cwd=folder, rg=rg15, replace="3 and ", multiline=True, context=1)
        assert joined.diff() == "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,2 @@\n 1\n-3\n-5\n+3 and 5\n"
        apply_diff(folder, joined.files[0].raw_diff())
        assert (folder / "f.txt").read_text() == "1\n3 and 5\n"

    def test_diff_without_changes_is_empty(self, plant: Plant) -> None:
        folder = plant({"f": "x\n"})
        assert sync.grep("x", cwd=folder, rg=rg15).diff() == ""
        assert sync.grep("x", cwd=folder, rg=rg15, replace="x").diff() == ""
        assert sync.grep("y", cwd=folder, rg=rg15, invert_match=True, replace="z").diff() == ""

    def test_diff_needs_line_numbers(self, plant: Plant) -> None:
        result = sync.grep("x", cwd=plant({"f": "x\n"}), rg=rg15, replace="y", no_line_number=True)
        with pytest.raises(ValueError, match="no_line_number"):
            result.diff()

    @pytest.mark.slow
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(
        st.lists(st.sampled_from(["x", "xx x", "", "y", "y\r", "é x"]), max_size=12),
        st.booleans(),
        st.sampled_from(["", "z", "a\nb", "$0$0", "x"]),
        st.integers(2, 3),
        st.sampled_from(["x", "x$", "^y", "x\n", "y\r?\n", "(?s)x.y"]),
    )
    def test_applied_diff_equals_re_sub(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        lines: list[str],
        ends: bool,
        new: str,
        context: int,
        pattern: str,
    ) -> None:
        folder = tmp_path_factory.mktemp("diff")
        text = "\n".join(lines) + ("\n" if lines and ends else "")
        (folder / "f").write_bytes(text.encode())
        result = sync.grep(pattern, cwd=folder, rg=rg15, replace=new, multiline=True, context=context)
        if diff := b"".join(file.raw_diff() for file in result.files):
            apply_diff(folder, diff)
        expected = re.sub(pattern, new.replace("$0", r"\g<0>"), text, flags=re.MULTILINE)
        assert (folder / "f").read_bytes() == expected.encode()


class Text(HTMLParser):
    """The tags and the text of HTML; fails on a tag that is not closed."""

    EMPTY_TREE = '<pre style="line-height: 1.3"></pre>'

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.marked: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag != "br":  # has no end tag
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open[-1:] and self.open[-1] in ("mark", "ins", "del"):
            self.marked.append((self.open[-1], data))


HOSTILE = "<script>alert(1)</script>&amp;"


class TestNotebook:
    @pytest.mark.posix
    def test_html_marks_hits_and_escapes_text(self, plant: Plant) -> None:
        folder = plant({f"{HOSTILE.replace('/', '_')}.txt": f"{HOSTILE} é needle\nx\n", b"\xff": b"needle \xff\n"})
        result = sync.grep(["needle", "<script>"], cwd=folder, rg=rg15)
        shown = Text(result._repr_html_())
        assert shown.tags == {"div", "b", "pre", "span", "mark"}
        assert shown.marked == [("mark", "<script>"), ("mark", "needle"), ("mark", "needle")]
        assert f"1: {HOSTILE} é needle\n2- x\n" in shown.text
        assert shown.text.startswith("2 matches in 2 files.")
        assert "\ufffd" in shown.text

    def test_html_shows_replacements(self, plant: Plant) -> None:
        folder = plant({"f": "a needle\nthread\n"})
        result = sync.grep(r"needle\nthread", cwd=folder, rg=rg15, multiline=True, replace="<b>\nx")
        shown = Text(result._repr_html_())
        assert shown.marked == [("del", "needle"), ("del", "thread"), ("ins", "<b>"), ("ins", "x")]
        assert "1: a needle\n2: thread<b>x\n" in shown.text

    def test_html_shows_gaps(self, plant: Plant) -> None:
        folder = plant({"f": "x\n1\n2\n3\nx\n"})
        assert "1: x\n2- 1\n--\n4- 3\n5: x\n" in Text(sync.grep("x", cwd=folder, rg=rg15, context=1)._repr_html_()).text

    @pytest.mark.slow
    def test_html_of_a_result_fits_its_budget(self, plant: Plant) -> None:
        folder = plant({f"f{number}": "needle\n" * 2500 for number in range(3)})
        html = sync.grep("needle", cwd=folder, rg=rg15, limit=None, context=0)._repr_html_()
        assert len(html) <= MAX_HTML + 1000
        assert "too long to show" in html
        assert Text(html)

    @pytest.mark.slow
    def test_html_budget_counts_headings_and_long_lines_are_clipped(self, plant: Plant) -> None:
        folder = plant({f"{number:03}{'n' * 240}": "needle\n" for number in range(900)})
        html = sync.grep("needle", cwd=folder, rg=rg15, limit=None)._repr_html_()
        assert len(html) <= MAX_HTML + 1000 and "too long to show" in html
        long = plant({"000": "é" * 100_000 + "needle" + "é" * 100_000 + "needle\n"})
        shown = Text(sync.grep("needle", cwd=long, rg=rg15, paths="000")._repr_html_())
        assert shown.marked == [("mark", "needle")]
        assert "1: …é" in shown.text and shown.text.endswith("é…\n") and len(shown.text) < 2200

    @pytest.mark.posix
    def test_html_shows_a_tree(self, plant: Plant) -> None:
        folder = plant({f"d&/{HOSTILE.replace('/', '_')}": "", "d&/x": "", "e": ""})
        tree = sync.tree_text(cwd=folder, limit=2)
        assert isinstance(tree, Tree) and tree.truncated
        shown = Text(tree._repr_html_())
        assert shown.text == str(tree) == "d&/\n    [2 truncated]\ne"
        assert shown.tags == {"pre", "b", "span"}
        assert tuple(tree) == tree.entries == tuple(sync.tree(cwd=folder, limit=2))
        assert (len(tree), len(Tree())) == (3, 0)
        assert pickle.loads(pickle.dumps(tree)).entries == copy.copy(tree).entries == tree.entries
        assert str(Tree()) == "" and Tree()._repr_html_() == Text.EMPTY_TREE

    def test_html_of_a_tree_fits_its_budget(self) -> None:
        entries = [TreeEntry(path="x" * 1000, name="x" * 1000, depth=0)] * 1000
        html = Tree(entries=tuple(entries))._repr_html_()
        assert len(html) < MAX_HTML + 1000 and "too long" in html


def printed(thing: Any, **options: Any) -> str:
    console = Console(width=80, **options)
    with console.capture() as capture:
        console.print(thing)
    return capture.get()


class TestTerminal:
    @pytest.mark.posix
    def test_terminal_shows_a_result_grouped_by_file(self, plant: Plant) -> None:
        folder = plant({"a": "x [red]\n1\n2\n3\nx\n", b"\xff": "x"})
        result = sync.grep("x", cwd=folder, rg=rg15, context=1)
        assert printed(result) == ("a\n1:x [red]\n2-1\n--\n4-3\n5:x\n\n\ufffd\n1:x\n\n3 matches in 2 files.\n")
        coloured = printed(result, force_terminal=True, color_system="standard", no_color=False)
        assert "\x1b[35ma\x1b[0m" in coloured
        assert "\x1b[1;31mx\x1b[0m [red]" in coloured

    def test_terminal_marks_a_hit_after_control_characters(self, plant: Plant) -> None:
        folder = plant({"f": "a\x0c\rneedle\x07 b\r\n"})
        coloured = printed(sync.grep("needle", cwd=folder, rg=rg15), force_terminal=True, color_system="standard")
        assert "a\\x0c\\x0d\x1b[1;31mneedle\x1b[0m\\x07 b" in coloured

    def test_terminal_shows_a_tree_with_styled_directories(self, plant: Plant) -> None:
        tree = sync.tree_text(cwd=plant({"d/[red]x": "", "d/y": ""}), limit=2)
        assert printed(tree) == f"{tree}\n" == "d/\n    [red]x\n    [1 truncated]\n"
        assert "\x1b[1;34md/\x1b[0m" in printed(tree, force_terminal=True, color_system="standard")


class TestGrepResult:
    def test_length_is_the_number_of_matches_on_the_page(self, plant: Plant) -> None:
        folder = plant({"a": "x\nx\n", "b": "x\n"})
        assert len(sync.grep("x", cwd=folder, rg=rg15)) == 3
        assert len(sync.grep("x", cwd=folder, rg=rg15, limit=2)) == 2

    def test_result_is_true_if_any_page_has_a_match(self, plant: Plant) -> None:
        folder = plant({"a": "x\n"})
        assert sync.grep("x", cwd=folder, rg=rg15)
        assert sync.grep("x", cwd=folder, rg=rg15, limit=0)
        assert not sync.grep("y", cwd=folder, rg=rg15)

    def test_iteration_yields_files_and_matches_has_the_matches(self, plant: Plant) -> None:
        """`for match in result.matches` raised `TypeError`, because it was a method."""
        result = sync.grep("x", cwd=plant({"a": "x\nx\n", "b": "x\n"}), rg=rg15)
        assert list(result) == list(result.files)
        assert [(match.path, match.line_number) for match in result.matches] == [("a", 1), ("a", 2), ("b", 1)]
        assert len(result.matches) == 3 and result.matches[-1] in result.matches == (*result.matches,)

    def test_call_of_matches_warns_and_works(self, plant: Plant) -> None:
        result = sync.grep("x", cwd=plant({"a": "x\n"}), rg=rg15)
        with pytest.warns(DeprecationWarning, match="use GrepResult.matches, without a call") as warned:
            called = result.matches()
        assert next(called) == result.matches[0]
        assert warned[0].filename == __file__

    @pytest.mark.posix
    def test_text_of_a_result_has_greps_format(self, plant: Plant) -> None:
        folder = plant({"a": "x\n1\n2\n3\nx\r\n", b"\xff": "x"})
        assert str(sync.grep("x", cwd=folder, rg=rg15, context=1)) == (
            "a:1:x\na-2-1\n--\na-4-3\na:5:x\n--\n\ufffd:1:x\n3 matches in 2 files."
        )
        plain = sync.grep("x", cwd=folder, rg=rg15, context=0, no_line_number=True, replace="y")
        assert str(plain) == "a:y\na:y\n\ufffd:y\n3 matches in 2 files."

    def test_text_of_a_result_without_a_match_is_the_message(self, folder: Path) -> None:
        assert str(sync.grep("x", cwd=folder, rg=rg15)) == "No matches found."


@pytest.mark.posix
def test_tree_survives_json_and_pickling(plant: Plant) -> None:
    tree = sync.tree_text(cwd=plant({b"\xff/f": "", "g": ""}))
    assert Tree.model_validate_json(tree.model_dump_json()) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree and not tree.truncated


@pytest.mark.posix
def test_result_survives_json_and_pickling(plant: Plant) -> None:
    folder = plant({b"\xff/f": b"needle \xfe\n", "g": "needle é\nx\n"})
    (folder / "broken").symlink_to("nowhere")
    result = sync.grep("needle", cwd=folder, rg=rg15, replace="x\udcff".encode("utf-8", "replace").decode())
    again = GrepResult.model_validate_json(result.model_dump_json())
    assert again == result
    assert again.files[0].matches[0].raw_lines in (b"needle \xfe\n", "needle é\n".encode())
    assert {line.raw_lines for file in again.files for line in file.lines()} == {
        b"needle \xfe\n",
        "needle é\n".encode(),
        b"x\n",
    }
    assert pickle.loads(pickle.dumps(result)) == result
    assert hash(again) == hash(result)
    assert FileCount.model_validate_json(FileCount(path="\udcff", count=1).model_dump_json()).path == "\udcff"
    with pytest.raises(ValueError, match="frozen"):
        result.files = ()  # type: ignore[misc]


def test_schemas_equal_the_published_ones() -> None:
    """A change breaks programs that validate by the schemas; `python tests/test_results.py` writes them."""
    assert schemas() == json.loads(SCHEMAS.read_text())


def schemas() -> Any:
    kinds: dict[str, Any] = {
        "Message": Message,
        "GrepResult": GrepResult,
        "TreeEntry": TreeEntry,
        "FileCount": FileCount,
        "Coverage": Coverage,
        "Reason": Reason,
    }
    modes: tuple[JsonSchemaMode, ...] = ("validation", "serialization")
    found = {
        f"{name}.{mode}": TypeAdapter[Any](kind).json_schema(mode=mode)
        for name, kind in kinds.items()
        for mode in modes
    }
    for schema in found.values():  # the lowest supported pydantic gives a dataclass no description
        schema.get("$defs", {}).get("Hint", {}).pop("description", None)
    return found


def test_json_of_a_result_has_the_properties_of_its_schema(plant: Plant) -> None:
    schema = GrepResult.model_json_schema(mode="serialization")
    written = json.loads(sync.grep("x", cwd=plant({"f": "x\n"}), rg=rg15).model_dump_json())
    assert set(written) == set(schema["properties"]) == set(schema["required"])
    match = Match.model_json_schema(mode="serialization")
    assert {"path", "lines", "line_number", "absolute_offset", "submatches", "type", "location"} == set(
        match["properties"]
    )


if __name__ == "__main__":
    SCHEMAS.write_text(json.dumps(schemas(), indent=1, sort_keys=True) + "\n")


@pytest.mark.parametrize("method", ["to_pandas", "to_polars"])
def test_data_frame_of_a_cut_page_warns(method: str, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The frame of the first 100 of 250 matches looked like all of them."""
    folder = plant(dict.fromkeys("abc", "x\n" * 3))
    monkeypatch.setitem(sys.modules, method.removeprefix("to_"), None)  # the warning comes first
    for options, says in {
        (("limit", 2),): "the data frame has only 2 of 9 matches; for all, call grep() with limit=None$",
        (("offset", 7),): "only 2 of 9 matches; for all, call grep() with limit=None$",
        (("max_files", 1),): "only 3 of 9 matches; for all, call grep() with limit=None and max_files=None$",
        (("timeout", 60),): "only 9 of at least 9 matches; for all, call grep() with limit=None and timeout=None$",
    }.items():
        page = sync.grep("x", cwd=folder, **dict(options))  # type: ignore[arg-type]
        if "timeout" in dict(options):
            page = page.model_copy(update={"exact": False, "truncated": True, "stop_reason": "timeout"})
        with pytest.warns(UserWarning, match=re.escape(says[:-1]) + "$") as caught, pytest.raises(ImportError):
            getattr(page, method)()
        assert caught[0].filename == __file__
    for whole in (sync.grep("x", cwd=folder), sync.grep("x", cwd=folder, limit=9), sync.grep("no", cwd=folder)):
        with pytest.raises(ImportError):  # warnings are errors
            getattr(whole, method)()

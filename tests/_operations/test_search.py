"""Searching, with every rg of the matrix, on asyncio and trio: matches, messages, options and errors."""

import logging
import os
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import ripwrap
from ripwrap import (
    Begin,
    CapabilityError,
    Context,
    End,
    GlobError,
    Match,
    Message,
    PatternError,
    SearchError,
    Summary,
    UnknownTypeError,
    sync,
)
from ripwrap._ripgrep.decoder import MAX_RECORD
from ripwrap.binary import RgBinary
from support.paths import native

Plant = Callable[..., Path]
pytestmark = [pytest.mark.rg_ends, pytest.mark.usefixtures("leaks_nothing")]


def found(pattern: "str | list[str]", folder: Path, **options: Any) -> list[tuple[str | None, int | None, str]]:
    """Return path, line number and text of each match, in order of path and line."""
    matches = sync.search(pattern, cwd=folder, **options)
    return sorted((match.path or "", match.line_number or 0, match.lines) for match in matches)


def paths(pattern: str, folder: Path, **options: Any) -> list[str]:
    return sorted({match.path or "" for match in sync.search(pattern, cwd=folder, **options)})


def summary(pattern: str, folder: Path, **options: Any) -> Summary:
    *_, last = sync.search_messages(pattern, cwd=folder, **options)
    assert isinstance(last, Summary)
    return last


@pytest.fixture
def with_broken_link(needs_posix: None, folder: Path, plant: Plant) -> Path:
    """A folder with a followed, broken link, which rg cannot read, not even as root."""
    plant({"good.txt": "needle\n"})
    (folder / "broken").symlink_to("nowhere")
    return folder


@pytest.mark.anyio
async def test_search_yields_matches_and_nothing_else(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"src/a.py": "x = 1\nneedle = 2  # needle\n", "b.txt": "no\n"})
    (match,) = [match async for match in ripwrap.search("needle", cwd=folder, rg=rg)]
    assert match.model_dump(exclude={"submatches"}) == {
        "type": "match",
        "location": None,
        "path": native("src/a.py"),
        "lines": "needle = 2  # needle\n",
        "line_number": 2,
        "absolute_offset": 6,
    }
    assert [(hit.match, hit.start, hit.end) for hit in match.submatches] == [("needle", 0, 6), ("needle", 14, 20)]


@pytest.mark.anyio
async def test_search_messages_keep_rgs_order(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": "1\nneedle\n3\n", "b": "needle\n"})
    messages = [
        message async for message in ripwrap.search_messages("needle", cwd=folder, rg=rg, context=1, sort="path")
    ]
    kinds = [type(message) for message in messages]
    assert kinds == [Begin, Context, Match, Context, End, Begin, Match, End, Summary]
    last = messages[-1]
    assert isinstance(last, Summary)
    assert (last.errors, last.dropped_records) == ((), 0)
    assert (last.stats.matches, last.stats.matched_lines, last.stats.searches_with_match) == (2, 2, 2)


@pytest.mark.anyio
async def test_search_without_a_match_is_an_empty_stream(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": "x\n"})
    assert [match async for match in ripwrap.search("needle", cwd=folder, rg=rg)] == []
    (only,) = [message async for message in ripwrap.search_messages("needle", cwd=folder, rg=rg)]
    assert isinstance(only, Summary)


@pytest.mark.anyio
async def test_limit_counts_matches_of_all_files(rg: RgBinary, plant: Plant) -> None:
    folder = plant({str(number): "needle\nneedle\n" for number in range(5)})
    assert len([match async for match in ripwrap.search("needle", cwd=folder, rg=rg, limit=3)]) == 3
    assert len([match async for match in ripwrap.search("needle", cwd=folder, rg=rg, limit=100)]) == 10
    messages = [message async for message in ripwrap.search_messages("needle", cwd=folder, rg=rg, limit=3)]
    assert sum(isinstance(message, Match) for message in messages) == 3
    assert isinstance(messages[-1], Match)


@pytest.mark.posix
@pytest.mark.anyio
@pytest.mark.fact(21)
async def test_matches_stream_while_rg_still_searches(rg: RgBinary, plant: Plant) -> None:
    """With `--sort` and one thread rg would buffer them (rg-facts 21); the FIFO keeps rg from ending."""
    folder = plant({"a": "needle\n"})
    os.mkfifo(folder / "fifo")
    async with aclosing(ripwrap.search("needle", cwd=folder, rg=rg, paths=["a", "fifo"], sort="path")) as matches:
        assert (await anext(matches)).path == "a"


class TestDefaults:
    """Defaults: hidden files, links followed, no `.git`, ignore files respected even outside a repository."""

    @pytest.fixture
    def tree(self, needs_posix: None, plant: Plant, tmp_path: Path) -> Path:
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "linked").write_text("needle")
        folder = plant(
            {
                ".hidden": "needle",
                ".git/config": "needle",
                "vendor/.git/config": "needle",
                "worktree/.git": "needle",
                ".github/x": "needle",
                ".gitignore": "ignored\n",
                "ignored": "needle",
                "seen": "needle",
            }
        )
        (folder / "link").symlink_to(tmp_path / "outside")
        return folder

    def test_search_includes_hidden_files_and_links_but_not_git(self, rg: RgBinary, tree: Path) -> None:
        assert paths("needle", tree, rg=rg) == [".github/x", ".hidden", "link/linked", "seen"]

    def test_each_default_of_search_can_be_turned_off(self, rg: RgBinary, tree: Path) -> None:
        assert paths("needle", tree, rg=rg, hidden=False) == ["link/linked", "seen"]
        assert "link/linked" not in paths("needle", tree, rg=rg, follow=False)
        assert "ignored" in paths("needle", tree, rg=rg, no_ignore=True)
        assert {".git/config", "vendor/.git/config", "worktree/.git"} <= set(
            paths("needle", tree, rg=rg, include_git=True)
        )

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "options",
        [{"glob": "*"}, {"glob": ["*", "**"]}, {"iglob": "*"}, {"glob": "*", "iglob": "*"}, {"no_ignore": True}],
    )
    def test_no_glob_includes_git(self, rg: RgBinary, tree: Path, options: dict[str, Any]) -> None:
        assert not [path for path in paths("needle", tree, rg=rg, **options) if ".git/" in path or path[-4:] == ".git"]

    def test_gitignore_applies_outside_a_repository_by_default(self, rg: RgBinary, plant: Plant) -> None:
        folder = plant({".gitignore": "ignored", "ignored": "needle"})
        assert paths("needle", folder, rg=rg) == []
        assert paths("needle", folder, rg=rg, no_require_git=False) == ["ignored"]


@pytest.mark.parametrize(
    ("pattern", "options", "lines"),
    [
        ("NEEDLE", {"ignore_case": True}, ["needle\n", "needles\n", "Needle\n"]),
        ("needle", {"smart_case": True}, ["needle\n", "needles\n", "Needle\n"]),
        ("Needle", {"smart_case": True}, ["Needle\n"]),
        ("needle", {"word_regexp": True}, ["needle\n"]),
        ("needle", {"line_regexp": True}, ["needle\n"]),
        ("n..dle$", {"fixed_strings": True}, []),
        ("needle|a.c", {"invert_match": True}, ["Needle\n"]),
        ("a.c", {"fixed_strings": True}, ["a.c\n"]),
        ("needles?\\n(N|n)", {"multiline": True}, ["needles\nNeedle\n"]),
        ("needles.N", {"multiline": True, "multiline_dotall": True}, ["needles\nNeedle\n"]),
        ("needle", {"max_count": 1}, ["needle\n"]),
        (["^Needle", "a.c"], {}, ["Needle\n", "a.c\n", "abc\n"]),
    ],
)
def test_matching_options_do_what_rg_does(
    newest: RgBinary, plant: Plant, pattern: "str | list[str]", options: dict[str, Any], lines: list[str]
) -> None:
    folder = plant({"f": "needle\na.c\nabc\nneedles\nNeedle\n"})
    assert sorted(line for _, _, line in found(pattern, folder, rg=newest, **options)) == sorted(lines)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"glob": "*.py"}, ["a.py", "sub/d.py"]),
        ({"glob": ["*.py", "!sub"]}, ["a.py"]),
        ({"iglob": "*.PY"}, ["a.py", "sub/d.py"]),
        ({"type": "py"}, ["a.py", "sub/d.py"]),
        ({"type": ["py", "c"]}, ["a.py", "b.c", "sub/d.py"]),
        ({"type_not": "py"}, ["b.c", "big"]),
        ({"max_depth": 1}, ["a.py", "b.c", "big"]),
        ({"max_filesize": 100}, ["a.py", "b.c", "sub/d.py"]),
        ({"max_filesize": "1K"}, ["a.py", "b.c", "sub/d.py"]),
        ({"paths": "sub"}, ["sub/d.py"]),
        ({"paths": ["a.py", Path("sub")]}, ["a.py", "sub/d.py"]),
        ({"paths": ["./sub"]}, ["sub/d.py"]),
    ],
)
def test_file_options_select_files(newest: RgBinary, plant: Plant, options: dict[str, Any], names: list[str]) -> None:
    folder = plant({"a.py": "needle", "b.c": "needle", "big": "needle" * 1000, "sub/d.py": "needle"})
    assert paths("needle", folder, rg=newest, **options) == list(map(native, names))


def test_type_does_not_include_hidden_files(rg: RgBinary, plant: Plant) -> None:
    folder = plant({".h.py": "needle", ".d/a.py": "needle", "a.py": "needle", ".keep.py": "needle"})
    assert paths("needle", folder, rg=rg, type="py", hidden=False) == ["a.py"]
    assert paths("needle", folder, rg=rg, type="py", hidden=False, glob=".keep.py") == [".keep.py"]
    assert paths("needle", folder, rg=rg, type="py") == [native(".d/a.py"), ".h.py", ".keep.py", "a.py"]


def test_positive_glob_overrides_ignore_files(rg: RgBinary, plant: Plant) -> None:
    folder = plant({".gitignore": "*.log", "a.log": "needle", "b": "needle"})
    assert paths("needle", folder, rg=rg) == ["b"]
    assert paths("needle", folder, rg=rg, glob="*.log") == ["a.log"]


def test_named_file_is_searched_even_if_ignored_or_hidden(rg: RgBinary, plant: Plant) -> None:
    folder = plant({".gitignore": "ignored", "ignored": "needle", ".hidden": "needle"})
    assert paths("needle", folder, rg=rg, hidden=False) == []
    assert paths("needle", folder, rg=rg, hidden=False, paths=["ignored", ".hidden"]) == [".hidden", "ignored"]


@pytest.mark.fact(25)
def test_max_count_of_zero_gives_no_matches(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"f": "needle"})
    assert found("needle", folder, rg=rg, max_count=0) == []
    assert list(sync.search_messages("needle", cwd=folder, rg=rg, max_count=0))[:-1] == []


def test_sort_orders_files_both_ways(rg: RgBinary, plant: Plant) -> None:
    folder = plant(dict.fromkeys("cab", "needle"))
    assert [match.path for match in sync.search("needle", cwd=folder, rg=rg, sort="path")] == ["a", "b", "c"]
    assert [match.path for match in sync.search("needle", cwd=folder, rg=rg, sortr="path")] == ["c", "b", "a"]


@pytest.mark.fact(24)
def test_absolute_paths_stay_absolute(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"a": "needle"})
    assert paths("needle", Path("/"), rg=rg, paths=folder / "a") == [str(folder / "a")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["-", "--pre=x", "-e", *(pytest.param(name, marks=pytest.mark.posix) for name in "*\n"), "a b", "é", "!x"]
)
@pytest.mark.fact(4)
def test_file_of_any_name_is_searched_when_named_or_found(newest: RgBinary, plant: Plant, name: str) -> None:
    folder = plant({name: "needle"})
    assert paths("needle", folder, rg=newest) == [name]
    assert paths("needle", folder, rg=newest, paths=[name]) == [name]


@pytest.mark.parametrize("pattern", ["--pre=touch evil", "-e", "--files", "--", "-", "--no-config"])
@pytest.mark.fact(4)
def test_a_pattern_that_looks_like_a_flag_is_searched_for(rg: RgBinary, plant: Plant, pattern: str) -> None:
    folder = plant({"a": f"x {pattern} x\n"})
    assert found(pattern, folder, rg=rg) == [("a", 1, f"x {pattern} x\n")]
    assert sorted(os.listdir(folder)) == ["a"]


@pytest.mark.fact(2)
def test_configuration_file_is_ignored(rg: RgBinary, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = plant({"a": "Needle\n", "ripgreprc": "--ignore-case\n--max-count=0\n"})
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(folder / "ripgreprc"))
    assert found("Needle", folder, rg=rg) == [("a", 1, "Needle\n")]
    assert found("needle", folder, rg=rg) == []


@pytest.mark.posix
@pytest.mark.fact(13)
def test_bytes_that_are_not_utf8_are_kept(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"latin": b"caf\xe9 needle \xff\n", b"\xff.txt": "needle"})
    by_path = {match.path: match for match in sync.search("needle", cwd=folder, rg=rg)}
    assert by_path["latin"].raw_lines == b"caf\xe9 needle \xff\n"
    assert (folder / by_path["\udcff.txt"].path).read_text() == "needle"
    ((hit,),) = [match.submatches for match in sync.search("(?-u)\\xff", cwd=folder, rg=rg)]
    assert hit.raw_match == b"\xff"


@pytest.mark.fact(15)
def test_search_detects_utf16_and_takes_an_encoding(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"bom": "\ufeffneedle é\n".encode("utf-16-le"), "latin": "needle é\n".encode("latin-1")})
    assert found("needle é", folder, rg=rg) == [("bom", 1, "needle é\n")]
    assert found("needle é", folder, rg=rg, encoding="latin1", paths="latin") == [("latin", 1, "needle é\n")]
    with pytest.raises(SearchError, match="unknown encoding: klingon"):
        found("x", folder, rg=rg, encoding="klingon")


@pytest.mark.fact(16)
def test_crlf_stays_in_the_line_and_dollar_needs_the_crlf_option(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"f": "needle\r\n"})
    assert found("needle$", folder, rg=rg) == []
    assert found("needle$", folder, rg=rg, crlf=True) == [("f", 1, "needle\r\n")]


@pytest.mark.fact(20)
def test_binary_file_is_searched_up_to_its_first_nul_by_default(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"late": b"needle\n" + b"x\n" * 50_000 + b"\0\nneedle\n", "early": b"\0needle\n"})
    messages = list(sync.search_messages("needle", cwd=folder, rg=rg))
    assert [message.path for message in messages if isinstance(message, Match)] == ["late"]
    (end,) = (message for message in messages if isinstance(message, End))
    assert end.binary_offset == 100_007
    assert len(found("needle", folder, rg=rg, text=True)) == 3


def test_search_messages_have_context_before_and_after_a_match(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"f": "1\n2\nneedle\n4\n5\n"})

    def numbers(**options: Any) -> list[int | None]:
        messages = sync.search_messages("needle", cwd=folder, rg=rg, **options)
        return [message.line_number for message in messages if isinstance(message, (Match, Context))]

    assert numbers(before_context=1) == [2, 3]
    assert numbers(after_context=2) == [3, 4, 5]
    assert numbers(context=1) == [2, 3, 4]
    assert numbers(context=0) == [3]


@pytest.mark.fact(14)
def test_an_inverted_search_has_no_submatches(rg: RgBinary, plant: Plant) -> None:
    (match,) = sync.search("needle", cwd=plant({"f": "needle\nother\n"}), rg=rg, invert_match=True)
    assert (match.lines, match.submatches) == ("other\n", ())


@pytest.mark.rg_matrix
def test_pcre2_works_or_raises_capability_error(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"f": "foobar\nfoobaz\n"})
    if "pcre2" in rg.features:
        assert [line for _, _, line in found("foo(?=baz)", folder, rg=rg, pcre2=True)] == ["foobaz\n"]
    else:
        with pytest.raises(CapabilityError, match=r"ripwrap\[bin\]"):
            found("foo(?=baz)", folder, rg=rg, pcre2=True)


def test_replace_works_or_raises_capability_error(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"f": "one two\n"})
    if rg.version >= (15,):
        (match,) = sync.search("(\\w+) (\\w+)", cwd=folder, rg=rg, replace="$2 $1")
        assert match.submatches[0].replacement == "two one"
        assert match.replaced() == "two one\n"
    else:
        with pytest.raises(CapabilityError, match="needs rg 15"):
            found("one", folder, rg=rg, replace="two")


class TestErrors:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("pattern", "options", "kind", "says"),
        [
            ("foo(", {}, PatternError, ["foo(", "^", "unclosed group", "fixed_strings=True"]),
            ("foo(?=x)", {}, PatternError, ["look-around", "pcre2=True"]),
            ("(a)\\1", {}, PatternError, ["backreferences", "pcre2=True"]),
            ("a\\nb", {}, PatternError, ["not allowed", "multiline=True"]),
            ("x{100000000}", {}, PatternError, ["size limit"]),
            ("\\r", {"crlf": True}, PatternError, ["not allowed", "crlf=True"]),
            ("x", {"glob": "a["}, GlobError, ["'a['", "unclosed character class", "backslash"]),
            ("x", {"iglob": "a["}, GlobError, ["'a['"]),
            ("x", {"type": "nope"}, UnknownTypeError, ["nope", "file_types()"]),
            ("x", {"type_not": "nope"}, UnknownTypeError, ["nope"]),
        ],
    )
    @pytest.mark.loops("asyncio")
    @pytest.mark.anyio
    @pytest.mark.fact(29)
    async def test_error_has_rgs_message_and_a_hint(
        self,
        rg: RgBinary,
        plant: Plant,
        pattern: str,
        options: dict[str, Any],
        kind: type[SearchError],
        says: list[str],
    ) -> None:
        folder = plant({"f": "x"})
        with pytest.raises(kind) as caught:
            [match async for match in ripwrap.search(pattern, cwd=folder, rg=rg, **options)]
        for words in says:
            assert words in str(caught.value)
        assert "Consider enabling" not in str(caught.value)  # rg's advice, which the hint repeats
        assert caught.value.argv[0] == rg.path
        assert caught.value.returncode == 2
        assert caught.value.stderr

    def test_nul_pattern_needs_text_option(self, rg: RgBinary, plant: Plant) -> None:
        folder = plant({"f": b"a\0b\n"})
        if rg.version >= (14,):
            with pytest.raises(PatternError, match="text=True"):
                found("\\x00", folder, rg=rg)
        else:
            assert found("\\x00", folder, rg=rg) == []
        assert len(found("\\x00", folder, rg=rg, text=True)) == 1

    @pytest.mark.posix
    def test_invalid_line_in_an_ignore_file_does_not_fail_the_search(
        self, rg: RgBinary, plant: Plant, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder = plant({"a": "needle", ".gitignore": "b[\n"})
        (folder / "broken").symlink_to("nowhere")
        with caplog.at_level(logging.INFO, "ripwrap"):
            assert sorted(sync.files(cwd=folder, rg=rg)) == [".gitignore", "a"]
        assert "broken" in caplog.text
        assert ("broken", "broken_link") in [
            (error.path, error.kind) for error in summary("needle", folder, rg=rg).errors
        ]

    @pytest.mark.slow
    @pytest.mark.fact(11)
    def test_line_that_is_too_long_is_dropped_and_reported(
        self, newest: RgBinary, plant: Plant, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The report names the file, also one whose name is not UTF-8."""
        long = "needle" + "x" * MAX_RECORD + "\nneedle\n"
        folder = plant({"big": long, b'q"\xff': long})
        assert found("needle", folder, rg=newest) == [("big", 2, "needle\n"), ('q"\udcff', 2, "needle\n")]
        assert "big: 1 line left out, longer than 20 MiB in rg's JSON" in caplog.text
        result = summary("needle", folder, rg=newest)
        assert sorted((error.path, error.kind) for error in result.errors) == [
            ("big", "too_long"),
            ('q"\udcff', "too_long"),
        ]
        assert result.dropped_records == 2

    def test_invalid_argument_raises_before_rg_starts(self, folder: Path) -> None:
        """The call itself raises, not the first iteration, and it needs no rg."""
        for search in (ripwrap.search, ripwrap.search_messages, sync.search, sync.search_messages):
            with pytest.raises(ValidationError, match="max_cuont"):
                search("x", rg=folder / "none", max_cuont=1)  # type: ignore[call-arg]
            with pytest.raises(ValueError, match="0 or more"):
                search("x", rg=folder / "none", limit=-1)
            with pytest.raises(TypeError, match="an int or None"):
                search("x", rg=folder / "none", limit="1")  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="NUL"):
                search("a\0", rg=folder / "none")
            with pytest.raises(ValueError, match="not valid Unicode"):
                search("\udcff", rg=folder / "none")
            with pytest.raises(TypeError, match="got bytes"):
                search("a", cwd=b".", rg=folder / "none")  # type: ignore[arg-type]

    @pytest.mark.fact(28)
    def test_summary_lists_unreadable_paths_beside_matches(self, rg: RgBinary, with_broken_link: Path) -> None:
        messages = list(sync.search_messages("needle", cwd=with_broken_link, rg=rg))
        assert [message.path for message in messages if isinstance(message, Match)] == ["good.txt"]
        last = messages[-1]
        assert isinstance(last, Summary)
        ((error),) = last.errors
        assert (error.path, error.kind) == ("broken", "broken_link")

    def test_unreadable_file_and_directory_are_reported_as_denied(self, unprivileged: Path, plant: Plant) -> None:
        folder = plant({"good": "needle", "secret": "needle", "closed/x": "needle"})
        (folder / "secret").chmod(0)
        (folder / "closed").chmod(0)
        result = summary("needle", folder, rg=unprivileged)
        (folder / "closed").chmod(0o700)
        denied = sorted((error.path or "", error.kind) for error in result.errors)
        assert denied == [("closed", "denied"), ("secret", "denied")]
        assert result.stats.matches == 1

    @pytest.mark.posix
    def test_loop_of_links_is_reported(self, rg: RgBinary, plant: Plant) -> None:
        folder = plant({"d/f": "needle"})
        (folder / "d" / "loop").symlink_to(folder)
        (error,) = summary("needle", folder, rg=rg).errors
        assert (error.path, error.kind) == ("d/loop", "loop")
        assert summary("needle", folder, rg=rg, follow=False).errors == ()

    @pytest.mark.fact(28)
    def test_missing_path_is_reported_beside_matches(self, rg: RgBinary, plant: Plant) -> None:
        folder = plant({"a": "needle"})
        result = summary("needle", folder, rg=rg, paths=["a", "missing"])
        assert [(error.path, error.kind) for error in result.errors] == [("missing", "missing")]
        assert result.stats.matches == 1

    def test_search_logs_unreadable_paths(
        self, unprivileged: Path, plant: Plant, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder = plant({"good.txt": "needle\n"})
        (folder / "closed").touch(mode=0)
        with caplog.at_level(logging.WARNING, "ripwrap"):
            assert paths("needle", folder, rg=unprivileged) == ["good.txt"]
        assert "closed" in caplog.text

    def test_search_without_errors_logs_nothing(
        self, rg: RgBinary, plant: Plant, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder = plant({"good.txt": "needle\n"})
        with caplog.at_level(logging.DEBUG, "ripwrap"):
            assert paths("needle", folder, rg=rg) == ["good.txt"]
        assert caplog.text == ""


def test_every_message_is_a_member_of_the_union(plant: Plant) -> None:
    messages: list[Message] = list(sync.search_messages("needle", cwd=plant({"a": "needle"}), context=1))
    assert {message.type for message in messages} == {"begin", "match", "end", "summary"}


@pytest.mark.parametrize("option", ["context", "before_context", "after_context", "passthru"])
def test_context_is_an_error_where_only_matches_are_yielded(option: str, folder: Path) -> None:
    """`search(context=2)` yielded no context, without a word."""
    options: Any = {option: True if option == "passthru" else 2}
    calls: list[Callable[..., Any]] = [
        sync.search,
        ripwrap.search,
        sync.search_columns,
        sync.search_history,
        sync.watch,
    ]
    calls += [partial(sync.search_in, items=[]), partial(sync.search, captures=True)]
    for call in calls:
        with pytest.raises(
            ValueError, match=rf"{option} has no effect in .*grep\(\) and search_messages\(\) return context"
        ):
            call("x", **options, **({} if "search_in" in repr(call) else {"cwd": folder}))
    none: Any = {option: False if option == "passthru" else 0}
    assert list(sync.search("x", cwd=folder, **none)) == []

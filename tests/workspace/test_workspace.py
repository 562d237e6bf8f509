"""Texts and results of the tools."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripwrap import AccessDeniedError, PatternError, Workspace, sync
from ripwrap.binary import RgBinary
from ripwrap.workspace import GrepContentResult
from support.effort import times
from support.opening import before_opening
from support.paths import native, slashed
from support.tools import APIS, Asked

Plant = Callable[..., Path]

SHOP = {
    "src/cart.py": "PRICES = {}\n\n\ndef total(items):\n    # TODO: taxes\n    return sum(items)\n",
    "src/till.py": "def pay(amount):  # TODO: cards\n    return amount\n",
    "docs/notes.md": "nothing\n",
    ".github/ci.yml": "# TODO: matrix\n",
    ".gitignore": "*.log\nbuild/\n",
    "debug.log": "TODO: not this\n",
    "build/out.py": "TODO = 1\n",
}


@pytest.fixture
def shop(plant: Plant) -> Path:
    return plant(SHOP)


@pytest.mark.parametrize("api", APIS)
def test_grep_content_groups_matches_by_file(api: str, rg: RgBinary, shop: Path) -> None:
    assert slashed(Asked(api, shop, rg=rg).grep_content("TODO", context_lines=1)) == (
        "File: src/cart.py\n"
        "  4- def total(items):\n"
        "  5:     # TODO: taxes\n"
        "  6-     return sum(items)\n"
        "\n---\n\n"
        "File: src/till.py\n"
        "  1: def pay(amount):  # TODO: cards\n"
        "  2-     return amount\n"
        "\n"
        "(2 matches in 2 files. 1 more match in hidden files (include_hidden=True).)"
    )


def test_grep_content_result_has_its_fields_and_survives_json(rg: RgBinary, shop: Path) -> None:
    found = sync.Workspace(shop, rg=rg).grep_content_result("TODO", context_lines=1, max_matches=1)
    told = found.model_dump(mode="json")
    assert told["query"] == "TODO"
    assert told["root"] == str(shop)
    assert told["matches"] == [
        {
            "file": native("src/cart.py"),
            "line": 5,
            "before": ["def total(items):"],
            "match": "    # TODO: taxes",
            "after": ["    return sum(items)"],
            "section": None,
            "anchors": [],
        }
    ]
    assert (told["total_matches"], told["truncated"], told["next_offset"]) == (2, True, 1)
    assert told["message"] == (
        "Showing 1 of 2 matching files, 1 of 2 matches. offset=1 gives the next page. "
        "Use file_pattern or refine your pattern to narrow results."
    )
    assert GrepContentResult.model_validate_json(found.model_dump_json()) == found


def test_grep_content_marks_gaps_between_lines(rg: RgBinary, plant: Plant) -> None:
    root = plant({"a": "x\n" + "-\n" * 3 + "x\nx\n"})
    assert sync.Workspace(root, rg=rg).grep_content("x", context_lines=1).splitlines()[1:7] == [
        *("  1: x", "  2- -", "  --", "  4- -", "  5: x", "  6: x"),
    ]


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("files_with_matches", "src/cart.py\nsrc/till.py\n\n(2 matching files."),
        ("count", "src/cart.py: 1\nsrc/till.py: 1\n\n(2 matching files with 2 matches."),
    ],
)
@pytest.mark.parametrize("api", APIS)
def test_file_modes_of_grep_content_name_files(api: str, rg: RgBinary, shop: Path, mode: str, text: str) -> None:
    hidden = " 1 more match in hidden files (include_hidden=True).)"
    assert Asked(api, shop, rg=rg).grep_content("TODO", output_mode=mode) == native(text) + hidden


@pytest.mark.slow
@pytest.mark.rg_ends
def test_matches_in_hidden_files_are_counted(rg: RgBinary, plant: Plant) -> None:
    """Hidden files are left out in silence if something else matches."""
    root = plant(
        {
            "seen": "x\n",
            "sub/deep/seen": "x\n",
            ".env": "x\n",
            "sub/.github/flows/ci": "x\nx\n",
            "sub/deep/.env": "x\n",
            "sub/.gitignore": "build\n*.log\n!.shown\n",
            "sub/.shown": "x\n",
            "sub/build/.env": "x\n",
            "sub/deep/.x.log": "x\n",
        }
    )
    asked = sync.Workspace(root, rg=rg)
    assert asked.grep_content("x").endswith(
        "(3 matches in 3 files. 4 more matches in hidden files (include_hidden=True).)"
    )
    assert asked.grep_content("x", path="sub").endswith("3 more matches in hidden files (include_hidden=True).)")
    # The rules of `sub` also hold below it.
    assert asked.grep_content("x", path="sub/deep").endswith(" 1 more match in hidden files (include_hidden=True).)")
    assert " 7 more matches in hidden" in asked.grep_content("x", include_ignored=True)
    others: list[dict[str, Any]] = [
        {"include_hidden": True},
        {"path": "seen"},
        {"path": "sub/.github"},
        {"file_pattern": "seen"},
        {"file_pattern": "/seen"},
    ]
    for arguments in others:
        assert "more" not in asked.grep_content("x", **arguments)


def test_matches_in_hidden_files_of_several_roots_are_counted(rg: RgBinary, plant: Plant) -> None:
    root = plant({"a/seen": "x\n", ".b/seen": "x\n", ".b/.env": "x\n", "c/.env": "x\n"})
    text = sync.Workspace(root / "a", root / ".b", rg=rg).grep_content("x")
    assert text.endswith("(2 matches in 2 files. 1 more match in hidden files (include_hidden=True).)")


@pytest.mark.slow
def test_only_complete_answers_search_hidden_files(stand_in: Callable[..., Path], rg: RgBinary, plant: Plant) -> None:
    """A page that has a next one says anyway that there is more."""
    root = plant({"a": "x\n" * 3, "b": "x\n", ".env": "x\n"})
    log = root.parent / "log"
    body = f"""
        with open({str(log)!r}, "a") as file: file.write("run\\n")
        os.execv({rg.path!r}, [{rg.path!r}, *sys.argv[1:]])
    """
    asked = sync.Workspace(root, rg=stand_in(body))
    calls: list[tuple[dict[str, Any], int]] = [
        ({}, 2),
        ({"max_matches": 2}, 1),
        ({"max_matches": 2, "offset": 2}, 2),
        ({"max_files": 1}, 1),
        ({"output_mode": "count", "max_matches": 1}, 1),
        ({"output_mode": "count"}, 2),
        ({"include_hidden": True}, 1),
    ]
    for arguments, runs in calls:
        log.write_text("")
        text = asked.grep_content("x", **arguments)
        assert (len(log.read_text().split()), "1 more match in hidden files" in text) == (runs, runs == 2), arguments


@pytest.mark.slow
def test_file_modes_of_grep_content_have_pages(rg: RgBinary, plant: Plant) -> None:
    asked = sync.Workspace(plant({f"{number:02}": "x\nx\n" for number in range(25)}), rg=rg)
    pages = []
    offset: int | None = 0
    while offset is not None:
        page = asked.grep_content_result("x", output_mode="count", max_matches=10, offset=offset)
        assert (page.files_matched, page.total_matches) == (25, 50)
        assert " of 25 matching files with 50 matches." in page.message
        pages.append([file.path for file in page.files])
        offset = page.next_offset
    assert pages == [[f"{number:02}" for number in range(start, min(start + 10, 25))] for start in (0, 10, 20)]


@pytest.mark.slow
def test_message_without_matches_says_what_would_match(rg: RgBinary, shop: Path) -> None:
    asked = sync.Workspace(shop, rg=rg)
    text = asked.grep_content("todo: matrix", case_insensitive=True)
    assert text.startswith("No matches found. There would be 1 match in 1 file with hidden files included ")
    assert "included (include_hidden=True), first in .github/ci.yml" in slashed(text)
    assert "There would be 1 match in 1 file without" not in text
    text = asked.grep_content("not this")
    assert "1 match in 1 file with ignored files included (include_ignored=True), first in debug.log" in text
    text = asked.grep_content("TODO", file_pattern="build/*")
    assert "with hidden and ignored files included (include_hidden=True, include_ignored=True), first in build" in text
    text = asked.grep_content("TODO", file_pattern="build/*", include_hidden=True)
    assert "with ignored files included (include_ignored=True), first in build/out.py" in slashed(text)
    text = asked.grep_content("PRICES", file_pattern="*.md")
    first = "There would be 1 match in 1 file if files are not filtered (without file_pattern), first in src/cart.py."
    assert first in slashed(text)
    text = asked.grep_content("prices", fixed_strings=True)
    assert "if case is ignored (case_insensitive=True)" in text


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.parametrize(
    ("api", "mode"),
    [*((api, "content") for api in APIS), ("blocking", "files_with_matches"), ("blocking", "count")],
)
def test_answer_without_matches_says_which_files_nothing_has_read(
    api: str, rg: RgBinary, plant: Plant, tmp_path: Path, mode: Any
) -> None:
    """The searches for a reason include hidden, ignored and binary files, but follow no links."""
    root = plant({"a.py": "x", ".b": "x", "c.md": "x"})
    asked = Asked(api, root, rg=rg)
    assert "ot searched" not in asked.grep_content("needle", output_mode=mode)
    (tmp_path / "outside").write_text("needle")
    (root / "link.py").symlink_to(tmp_path / "outside")
    text = asked.grep_content("needle", output_mode=mode)
    assert "Not searched: 1 symbolic link, which is not followed: link.py." in text
    assert "hidden files" not in text.partition("Not searched")[2]
    (root / "d.md").symlink_to("c.md")
    os.mkfifo(root / "fifo")
    text = asked.grep_content("needle", output_mode=mode)
    assert "Not searched: 2 symbolic links, which are not followed, e.g. d.md." in text
    assert "Not searched: 1 FIFO, socket or device: fifo." in text
    text = asked.grep_content("needle", file_pattern="*.md", output_mode=mode)
    assert "Not searched: 1 symbolic link, which is not followed: d.md." in text and "fifo" not in text
    assert "ot searched" not in asked.grep_content("x", output_mode=mode)
    assert "ot searched" not in Asked(api, root, rg=rg, follow=True).grep_content("needle", output_mode=mode)


@pytest.mark.slow
@pytest.mark.posix
def test_answer_without_matches_names_no_denied_link(plant: Plant, rg: RgBinary) -> None:
    root = plant({"a": "x", "secret/b": ""})
    (root / "secret/link").symlink_to("../a")
    (root / "Key.pem").symlink_to("a")
    asked = sync.Workspace(root, deny=["*.pem", "secret/"], rg=rg)
    assert "ot searched" not in asked.grep_content("needle")
    assert "Not listed" not in asked.find_files("*.go")
    (root / "plain").symlink_to("a")
    assert "Not searched: 1 symbolic link, which is not followed: plain." in asked.grep_content("needle")


@pytest.mark.slow
def test_answer_says_if_no_file_was_searched(rg: RgBinary, plant: Plant) -> None:
    root = plant({"a.py": "x", ".gitignore": "d/\n", "d/e": "x", "empty/.hidden": ""})
    asked = sync.Workspace(root, rg=rg)
    assert "No file was searched." in asked.grep_content("x", file_pattern="*.rs")
    assert "No file was searched." in asked.grep_content("x", path="empty")
    assert "No file was searched." not in asked.grep_content("y")
    assert "No file was searched." not in asked.grep_content("y", path="d")


@pytest.mark.slow
@pytest.mark.posix
def test_ignore_file_that_is_a_link_out_of_the_root_is_not_read(plant: Plant, rg: RgBinary, tmp_path: Path) -> None:
    root = plant({"a": "x"})
    (tmp_path / "outside").write_text("a\n")
    (root / ".ignore").symlink_to(tmp_path / "outside")
    text = sync.Workspace(root, rg=rg).grep_content("needle")
    assert "No file was searched." in text and "outside" not in text


@pytest.mark.slow
def test_message_without_matches_names_a_binary_file(rg: RgBinary, plant: Plant) -> None:
    """The answer does not say that a file is binary if that is why nothing matched."""
    asked = sync.Workspace(plant({"src/b.bin": b"\0\0\nbinary words\n"}), rg=rg)
    assert slashed(asked.grep_content("binary words")) == (
        "No matches found. There would be 1 match in 1 file in binary files (to search one, pass it as path), first in "
        "src/b.bin."
    )
    assert "1 match in 1 file. 1 file taken for binary" in asked.grep_content("binary words", path="src/b.bin")
    assert "binary" not in asked.grep_content("nothing", path="src/b.bin")


@pytest.mark.parametrize("api", APIS)
def test_invalid_pattern_error_shows_a_caret_and_literal_matches(api: str, rg: RgBinary, shop: Path) -> None:
    text = Asked(api, shop, rg=rg).grep_content("total(")
    assert text.startswith("Error: regex parse error:\n")
    assert "^\n" in text
    assert "The error is at character 5, counted from 0." in text
    assert "As plain text the pattern matches 1 line in 1 file (fixed_strings=True)." in text
    with pytest.raises(PatternError):
        Asked(api, shop, rg=rg).grep_content_result("total(")


def test_look_around_works_if_rg_has_pcre2(rg: RgBinary, shop: Path) -> None:
    text = sync.Workspace(shop, rg=rg).grep_content(r"(?<=def )total")
    if "pcre2" in rg.features:
        assert "File: src/cart.py" in slashed(text)
    else:
        assert text.startswith("Error: ")
        assert "PCRE2" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"pattern": ""}, "Error: pattern is empty"),
        ({"pattern": "x", "max_matches": -1}, "Error: max_matches must be 0 or more, got -1"),
        ({"pattern": "x", "path": "../.."}, "Error: ../.. is outside of the allowed directories: {root}"),
        ({"pattern": "x", "path": "/etc/passwd"}, "Error: /etc/passwd is outside of the allowed directories: {root}"),
        ({"pattern": "x", "path": "nope"}, "Error: nope does not exist in {root}; ls lists the files"),
        ({"pattern": "x", "file_type": "pyton"}, "Error: unrecognized file type: pyton\nDid you mean"),
        ({"pattern": "x", "file_pattern": "a[b"}, "Error: error parsing glob"),
        ({"pattern": "x", "path": "a\0b"}, "Error: path must be a path without a NUL character"),
        ({"pattern": "x\0"}, "Error: pattern must be a pattern without a NUL character"),
        ({"pattern": "\ud800"}, "Error: the pattern '\\ud800' is not valid Unicode"),
        pytest.param(
            *({"pattern": "x", "path": "\ud800"}, "Error: '\\ud800' has a character that no path can have"),
            marks=pytest.mark.posix,
        ),
        ({"pattern": r"a\nb"}, "Error: the literal"),
        ({"pattern": "x", "output_mode": "lines"}, "Error: output_mode must be"),
    ],
)
def test_invalid_argument_gives_an_error_text_and_never_raises(
    rg: RgBinary, shop: Path, arguments: dict[str, Any], says: str
) -> None:
    for api in ("asyncio", "blocking"):
        asked = Asked(api, shop, rg=rg)
        text = asked.grep_content(**arguments)
        assert text.startswith(says.format(root=shop)), text
        assert asked.call("Grep", arguments) == text


def test_unknown_arguments_and_tools_give_error_texts(shop: Path) -> None:
    asked = sync.Workspace(shop)
    assert asked.call("Grep", {"pattern": "x", "foo": 1}).startswith(
        "Error: unknown argument 'foo'; allowed are pattern,"
    )
    assert asked.call("rm", {}).startswith("Error: there is no tool 'rm'")
    assert asked.call("Grep", "{").startswith("Error: the arguments are not valid JSON")


def test_call_accepts_the_arguments_of_claudes_grep(rg: RgBinary, shop: Path) -> None:
    asked = sync.Workspace(shop, rg=rg)
    sent = {
        "pattern": "todo",
        "-i": True,
        "glob": "*.py",
        "output_mode": "content",
        "-A": "1",
        "head_limit": "5",
        "-n": True,
    }
    assert asked.call("Grep", sent) == asked.grep_content(
        "todo", case_insensitive=True, file_pattern="*.py", context_lines=0, after_context=1, max_matches=5
    )


@pytest.mark.slow
def test_globs_and_types_do_not_include_ignored_files(rg: RgBinary, plant: Plant) -> None:
    root = plant(
        {
            ".gitignore": "gen.py\nlib/out/\n",
            "a.py": "x",
            "gen.py": "x",
            "src/b.py": "x",
            "src/gen.py": "x",
            "src/c.rs": "x",
            "src/.h.py": "x",
            "lib/out/d.py": "x",
            "lib/e.py": "x",
            "lib/sub/f.py": "x",
        }
    )
    asked = sync.Workspace(root, rg=rg)

    def files(**arguments: Any) -> list[str]:
        modes = [
            [file.path for file in asked.grep_content_result("x", **arguments).files],
            [file.path for file in asked.grep_content_result("x", output_mode="files_with_matches", **arguments).files],
            [file.path for file in asked.grep_content_result("x", output_mode="count", **arguments).files],
        ]
        assert modes[0] == modes[1] == modes[2]
        if "file_type" not in arguments:
            given = {"pattern": arguments.pop("file_pattern"), **arguments}
            assert list(asked.find_files_result(**given).files) == modes[0]
        return list(map(slashed, modes[0]))

    assert files(file_pattern="*.py") == ["a.py", "lib/e.py", "lib/sub/f.py", "src/b.py"]
    assert files(file_pattern="**/*.py") == ["a.py", "lib/e.py", "lib/sub/f.py", "src/b.py"]
    assert files(file_pattern="src/**/*.py") == ["src/b.py"]
    assert files(file_pattern="lib/**") == ["lib/e.py", "lib/sub/f.py"]
    assert files(file_pattern="lib/") == ["lib/e.py", "lib/sub/f.py"]
    assert files(file_pattern="/*.py") == ["a.py"]
    assert files(file_pattern="*.{rs,c}") == ["src/c.rs"]
    assert files(file_pattern="*.rs, a.*") == ["a.py", "src/c.rs"]
    assert files(file_pattern="*.py,!lib/**") == ["a.py", "src/b.py"]
    assert files(file_pattern="!*.py") == ["src/c.rs"]
    assert files(file_pattern="sub/*.py", path="lib") == ["lib/sub/f.py"]
    assert files(file_pattern="*.py", path="lib") == ["lib/e.py", "lib/sub/f.py"]
    assert files(file_type="rust") == ["src/c.rs"]
    assert files(file_type="py", file_pattern="src/*") == ["src/b.py"]
    assert files(file_type="py", file_pattern="b*") == ["src/b.py"]
    assert files(file_pattern="*.py", include_ignored=True, path="src") == ["src/b.py", "src/gen.py"]
    assert files(file_pattern="*.py", include_hidden=True, path="src") == ["src/.h.py", "src/b.py"]


def test_ignore_rules_apply_from_the_root_down_to_the_path(rg: RgBinary, folder: Path, plant: Plant) -> None:
    plant({".gitignore": "*.txt\n", "root/.gitignore": "*.log\n/sub/a\n", "root/sub/.ignore": "b\n"})
    root = plant({f"root/sub/{name}": "x" for name in ("a", "b", "c", "d.log", "e.txt", "deep/a", "deep/b")}) / "root"
    asked = sync.Workspace(root, rg=rg)
    for path in (".", "sub"):
        assert asked.find_files(path=path) == native("sub/c\nsub/deep/a\nsub/e.txt") + "\n\n(3 files.)"
        # rg before 15 applies the anchored rule of a parent wrongly.
        assert (
            native("sub/e.txt") not in sync.Workspace(root, rg=rg, outer_ignore=True).find_files_result(path=path).files
        )
    assert list(asked.find_files_result(path="sub/deep").files) == [native("sub/deep/a")]
    assert [file.path for file in asked.grep_content_result("x", path="sub/deep").files] == [native("sub/deep/a")]
    assert list(asked.find_files_result(path="sub/d.log").files) == [native("sub/d.log")]


@pytest.mark.slow
def test_find_files_sorts_newest_first(rg: RgBinary, plant: Plant) -> None:
    root = plant({"a": "", "b": "", "c/d": ""})
    for age, name in enumerate(("b", "c/d", "a")):
        os.utime(root / name, (1_000_000 - age, 1_000_000 - age))
    asked = sync.Workspace(root, rg=rg)
    assert asked.find_files(sort="newest", limit=2) == native(
        "b\nc/d\n\n(Showing 1 to 2 of 3 files. offset=2 gives the next page; a narrower pattern or path finds less.)"
    )
    assert asked.find_files(sort="newest", offset=2) == "a\n\n(Showing 3 to 3 of 3 files.)"
    assert asked.find_files("nope*") == "No files found, not even hidden or ignored files."


def test_long_lines_are_clipped_around_the_match(rg: RgBinary, plant: Plant) -> None:
    root = plant({"min.js": "a" * 5000 + "NEEDLE" + "b" * 5000 + "\n" + "c" * 3000 + "\n"})
    line, after = sync.Workspace(root, rg=rg, max_line=100).grep_content("NEEDLE").splitlines()[1:3]
    assert line.startswith("  1: …aaa")
    assert line.endswith("bbb…")
    assert "NEEDLE" in line
    assert after == f"  2- {'c' * 100}…"


def test_lines_of_a_multiline_match_are_numbered(rg: RgBinary, plant: Plant) -> None:
    root = plant({"a": "one\r\ntwo\r\nthree\r\nfour\r\n"})
    text = sync.Workspace(root, rg=rg).grep_content("two.*thr", multiline=True, context_lines=1)
    assert text.splitlines()[1:5] == ["  1- one", "  2: two", "  3: three", "  4- four"]


@pytest.mark.slow
def test_ten_thousand_matches_fit_the_budget_with_every_file_named(rg: RgBinary, plant: Plant) -> None:
    names = [f"pkg/module_{number:03}.py" for number in range(100)]
    root = plant({name: "".join(f"line {line}\nneedle {line}\nafter\n" for line in range(100)) for name in names})
    found = sync.Workspace(root, rg=rg, max_chars=4000).grep_content_result("needle")
    text = str(found)
    assert len(text) <= 4000
    assert len(text) > 3000
    assert all(native(name) in text for name in names)
    assert (found.total_matches, found.files_matched, found.truncated) == (10_000, 100, True)
    assert found.next_offset == len(found.matches) > 0
    assert f"{len(found.matches)} of 10000 matches" in text
    assert f"offset={len(found.matches)} gives the next page" in text
    assert len({match.file for match in found.matches}) == len(found.matches)


@pytest.mark.slow
@settings(max_examples=times(6, 100))
@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,40}(/[a-z]{1,20})?", fullmatch=True), st.integers(1, 40), min_size=1, max_size=12
    ),
    st.integers(1000, 4000),
    st.integers(0, 3),
)
def test_pages_within_any_budget_have_each_match_once(
    tmp_path_factory: pytest.TempPathFactory, counts: dict[str, int], max_chars: int, context: int
) -> None:
    root = tmp_path_factory.mktemp("pages")
    planted = {f"f-{number}-{name}": count for number, (name, count) in enumerate(counts.items())}
    for name, count in planted.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("".join(f"{'needle' * (line % 40)} needle {line}\n\n" for line in range(count)))
    asked = sync.Workspace(root, max_chars=max_chars)
    seen: list[tuple[str, int]] = []
    offset: int | None = 0
    while offset is not None:
        page = asked.grep_content_result("needle", context_lines=context, offset=offset)
        assert len(str(page)) <= max_chars
        assert page.total_matches == sum(planted.values())
        seen += [(match.file, match.line) for match in page.matches]
        offset = page.next_offset
    assert len(seen) == len(set(seen)) == sum(planted.values())


def test_match_longer_than_the_budget_is_cut_and_pages_go_on(rg: RgBinary, plant: Plant) -> None:
    root = plant({"a": "begin\n" + "line\n" * 2000 + "end\n", "b": "begin end\n", "c": "begin end\n"})
    asked = sync.Workspace(root, rg=rg, max_chars=1000)
    first = asked.grep_content_result("begin.*end", multiline=True, fixed_strings=False)
    assert 900 < len(str(first)) <= 1000
    assert [(match.file, match.match[:12]) for match in first.matches] == [("a", "begin\nline\nl")]
    assert "offset=1 gives the next page" in str(first)
    second = asked.grep_content_result("begin.*end", multiline=True, offset=1)
    assert [match.file for match in second.matches] == ["b", "c"]


@pytest.mark.slow
def test_sections_count_towards_the_budget(rg: RgBinary, plant: Plant) -> None:
    name = "a_rather_long_name_for_a_function_of_which_there_are_many"
    root = plant({f"m{number:03}.py": f"def {name}():\n    return needle\n" for number in range(120)})
    asked = sync.Workspace(root, rg=rg, max_chars=4000)
    found = asked.grep_content_result("needle", context_lines=0, sections=True)
    assert 3500 < len(str(found)) <= 4000
    assert len(found.matches) > 8
    assert found.next_offset == len(found.matches)
    assert all(match.section and match.section.line == 1 for match in found.matches)
    assert str(found).count("  in lines 1-2: def a_rather") == len(found.matches)


@pytest.mark.slow
def test_missing_time_for_sections_is_noted(rg: RgBinary, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an hour pass while the first file is read for its definitions."""
    later = time.monotonic() + 3600
    asked = sync.Workspace(shop, rg=rg)
    first = asked.grep_content_result("TODO", sections=True).matches[0].file
    with before_opening(Path(first).name, lambda: monkeypatch.setattr(time, "monotonic", lambda: later)):
        text = asked.grep_content("TODO", sections=True)
    assert "There was not enough time to name all definitions." in text
    assert text.count("File: ") == 2


@pytest.mark.slow
def test_result_holds_no_more_matches_than_fit_the_budget(rg: RgBinary, plant: Plant) -> None:
    root = plant({f"{number}": "needle\n" * 2000 for number in range(5)})
    asked = sync.Workspace(root, rg=rg)
    told = asked.call_result("Grep", {"pattern": "needle", "head_limit": 0, "-C": 0})
    assert isinstance(told, GrepContentResult)
    assert 19_000 < len(str(told)) <= 20_000
    assert told.next_offset == len(told.matches) > 1000
    far = asked.grep_content_result("needle", offset=1_000_000)
    assert (far.matches, far.next_offset) == ((), None)
    assert "There are no matches from offset=20000 on." in str(far)
    assert len(asked.call_result("LS", {"limit": 1_000_000}).message) < 100


@pytest.mark.slow
def test_more_matches_than_can_be_shown_are_said_so(plant: Plant) -> None:
    root = plant({f"{number}": "needle\n" * 7001 for number in range(3)})
    said = sync.Workspace(root).grep_content_result("needle", offset=20_000).message
    assert said.startswith(
        "Showing 0 of 3 matching files, 0 of 21003 matches. Only the first 20,000 matches can be shown."
    )
    assert "max_files" not in said


def test_text_names_each_file_once_and_at_most_max_matches_files(rg: RgBinary, plant: Plant) -> None:
    asked = sync.Workspace(plant({f"{number:03}": "x\n" for number in range(400)}), rg=rg)
    assert asked.grep_content("x").count("\nFile: ") == 99
    assert "not shown: 001 (1), 002 (1)" in asked.grep_content("x", max_matches=1)
    assert len(asked.grep_content("x", max_matches=1)) < 400
    assert len(asked.grep_content("x", max_matches=1, offset=5)) < 250


def test_dollar_matches_before_crlf(rg: RgBinary, plant: Plant) -> None:
    root = plant({"a.cs": "class A {\r\n  return x;\r\n}\r\n", "b.cs": "  return x;\n"})
    asked = sync.Workspace(root, rg=rg)
    assert [match.file for match in asked.grep_content_result(r"return x;$").matches] == ["a.cs", "b.cs"]
    assert asked.grep_content_result(r"^class A \{$").total_matches == 1
    assert asked.grep_content_result("x;$", fixed_strings=True).total_matches == 0


def test_globs_match_directories_at_any_depth_and_whole_paths(rg: RgBinary, folder: Path, plant: Plant) -> None:
    plant({"one/pkg/build/o.txt": "", "one/build/p.txt": "", "one/a.txt": "", "two/a.txt": ""})
    asked = sync.Workspace(folder / "one", rg=rg)
    assert asked.find_files_result("!build/").files == ("a.txt",)
    assert asked.find_files_result("build/").files == (native("build/p.txt"), native("pkg/build/o.txt"))
    assert asked.ls_result(ignore=["build/"]).total_files == 1
    assert asked.find_files_result(f"{folder}/one/*.txt").files == ("a.txt",)
    both = sync.Workspace(folder / "one", folder / "two", rg=rg)
    assert both.find_files_result(f"{folder}/two/*.txt").files == (str(folder / "two/a.txt"),)
    assert asked.find_files("../*").startswith("Error: ../* leads out of the searched directory")


@pytest.mark.posix
def test_globs_match_names_with_a_colon_in_several_roots(rg: RgBinary, folder: Path, plant: Plant) -> None:
    plant({"one/a.txt": "", "two/we:b.txt": ""})
    both = sync.Workspace(folder / "one", folder / "two", rg=rg)
    assert both.find_files_result("we:*").files == (str(folder / "two/we:b.txt"),)
    assert both.find_files_result(f"{folder}/two/*.txt").files == (str(folder / "two/we:b.txt"),)


@pytest.mark.slow
def test_find_files_hints_at_hidden_and_ignored_files(rg: RgBinary, shop: Path, plant: Plant) -> None:
    """Both arguments are named where one of them is enough."""
    asked = sync.Workspace(shop, rg=rg)
    assert slashed(asked.find_files("*.yml")) == (
        "No files found. There would be 1 file with hidden files included (include_hidden=True), "
        "the first: .github/ci.yml."
    )
    assert "1 file with ignored files included (include_ignored=True), the first: debug.log" in asked.find_files(
        "*.log"
    )
    for hidden in (False, True):
        text = asked.find_files("build/*", include_hidden=hidden)
        assert slashed(text).endswith(
            "1 file with ignored files included (include_ignored=True), the first: build/out.py."
        )
    both = sync.Workspace(plant({".git-cache/.ignore": "x\n", ".git-cache/x": ""}), rg=rg)
    assert "hidden and ignored files included (include_hidden=True, include_ignored=True)" in both.find_files("x")


@pytest.mark.slow
@pytest.mark.posix
def test_diagnosis_escapes_newlines_in_paths(rg: RgBinary, folder: Path, plant: Plant) -> None:
    plant({"one/a": "", "two/.a\nFile: evil\n  1: fake": "x\n"})
    text = sync.Workspace(folder / "one", folder / "two", rg=rg).grep_content("x")
    assert f"first in {folder}/two/.a\\x0aFile: evil" in text
    assert "\nFile: evil" not in text


@pytest.mark.posix
def test_fifo_path_is_refused(rg: RgBinary, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert sync.Workspace(folder, rg=rg).grep_content("x", "pipe").startswith("Error: pipe is neither a file nor")


def test_control_characters_of_a_file_are_escaped(rg: RgBinary, plant: Plant) -> None:
    text = sync.Workspace(plant({"a": b"x\x1b[2J\ty\n"}), rg=rg).grep_content("x")
    assert "  1: x\\x1b[2J\ty" in text


def test_max_files_shows_the_first_files_and_says_how_to_get_more(rg: RgBinary, plant: Plant) -> None:
    root = plant(dict.fromkeys("abcde", "x\n"))
    text = sync.Workspace(root, rg=rg).grep_content("x", max_files=2)
    assert text.endswith(
        "(Showing 2 of 5 matching files, 2 of 5 matches. A larger max_files shows more files; a larger offset does "
        "not. Not named here: 3 more files with matches. Use file_pattern or refine your pattern to narrow results.)"
    )
    assert text.count("File: ") == 2


@pytest.mark.slow
def test_paths_of_several_roots_are_absolute_and_can_be_passed_back(rg: RgBinary, folder: Path, plant: Plant) -> None:
    plant({"one/a.py": "x\n", "one/sub/b.py": "x\n", "two/c.py": "x\n", "three/d.py": "x\n", ".gitignore": "*.py"})
    asked = sync.Workspace(folder / "one", folder / "two", rg=rg)
    everything = asked.find_files_result()
    assert everything.files == tuple(str(folder / name) for name in ("one/a.py", "one/sub/b.py", "two/c.py"))
    assert [match.file for match in asked.grep_content_result("x").matches] == list(everything.files)
    assert asked.find_files_result("sub/*.py").files == (str(folder / "one/sub/b.py"),)
    for path in everything.files:
        assert [match.file for match in asked.grep_content_result("x", path).matches] == [path]
    assert asked.find_files_result(path="sub").files == (str(folder / "one/sub/b.py"),)
    assert asked.ls() == (
        f"- ./\n  - {folder / 'one'}/\n    - sub/\n      - b.py\n    - a.py\n  - {folder / 'two'}/\n    - c.py\n\n"
        f"(3 files. Allowed directories: {folder / 'one'}, {folder / 'two'}.)"
    )
    assert asked.grep_content("x", str(folder / "three")).startswith("Error: ")


@pytest.mark.slow
@pytest.mark.posix
def test_followed_links_never_show_files_outside_the_roots(rg: RgBinary, folder: Path, plant: Plant) -> None:
    plant({"root/a": "x\n", "root/real/b": "x\n", "outside/secret": "x\n"})
    root = folder / "root"
    (root / "out").symlink_to("../outside")
    (root / "in").symlink_to("real")
    (root / "file").symlink_to("../outside/secret")
    (root / "loop").symlink_to(".")
    assert sync.Workspace(root, rg=rg).find_files_result().files == ("a", "real/b")
    following = sync.Workspace(root, rg=rg, follow=True)
    assert following.find_files_result().files == ("a", "in/b", "real/b")
    found = following.grep_content_result("x")
    assert [match.file for match in found.matches] == ["a", "in/b", "real/b"]
    assert (found.total_matches, found.files_matched) == (3, 3)
    assert "secret" not in str(found)
    assert following.grep_content_result("x", output_mode="count").total_matches == 3
    assert "secret" not in following.ls()


def test_outside_path_is_an_error_text_or_raised_by_result_variants(rg: RgBinary, shop: Path) -> None:
    asked = sync.Workspace(shop, rg=rg)
    for tool in ("ls", "tree", "find_files", "grep_content"):
        given = {"pattern": "x"} if tool == "grep_content" else {}
        with pytest.raises(AccessDeniedError):
            getattr(asked, f"{tool}_result")(path="..", **given)
        assert getattr(asked, tool)(path="..", **given) == f"Error: .. is outside of the allowed directories: {shop}"


@pytest.mark.parametrize("api", APIS)
def test_tools_without_rg_say_how_to_install_rg_and_ls_works(
    api: str, shop: Path, no_rg: None, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Asked(api, shop)
    with_rg = sync.Workspace(shop, rg=_any_rg())
    for name, arguments in (("grep_content", {"pattern": "x"}), ("find_files", {}), ("tree", {})):
        text = getattr(asked, name)(**arguments)
        assert text.startswith("Error: ripgrep (rg) was not found. Install it, for instance:\n  pip install")
        assert f"{'winget' if os.name == 'nt' else 'apt'} install " in text
    assert asked.ls() == with_rg.ls()
    assert (asked.ls_result().engine, with_rg.ls_result().engine) == ("python", "rg")
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1


def _any_rg() -> str:
    from support import rgs

    return str(rgs.provide("15.2.0"))


def test_missing_rg_is_a_warning_only_if_a_tool_needs_it(
    shop: Path, no_rg: None, caplog: pytest.LogCaptureFixture
) -> None:
    """`ls`, which works without rg, logged a warning with the ways to install rg."""
    asked = sync.Workspace(shop)

    def warned(text: str) -> tuple[bool, int]:
        return text.startswith("Error: "), sum(record.levelname == "WARNING" for record in caplog.records)

    with caplog.at_level("DEBUG", "ripwrap"):
        assert warned(asked.ls()) == (False, 0)
        assert any("ls lists files without rg" in record.message for record in caplog.records)
        assert warned(asked.find_files(entry_type="directory")) == (False, 0)
        assert warned(asked.tree()) == (True, 1)
        assert warned(asked.grep_content("x")) == (True, 1)
        assert warned(asked.ls()) == (False, 1)
    (warning,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert "https://github.com/BurntSushi/ripgrep/releases\n" in warning


def test_failed_download_of_rg_is_not_retried_at_every_call(
    shop: Path, no_rg: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the next download waits; an rg that is there is used at once."""
    monkeypatch.delenv("RIPWRAP_OFFLINE")
    mirror = shop / "no-mirror"
    monkeypatch.setenv("RIPWRAP_MIRROR", mirror.as_uri())
    asked = sync.Workspace(shop)
    failed = asked.grep_content("x")
    assert "was not found (" in failed
    monkeypatch.setenv("RIPWRAP_MIRROR", f"{mirror.as_uri()}-other")  # a download would name it in its error
    assert asked.grep_content("TODO") == failed
    monkeypatch.setenv("RIPWRAP_RG", _any_rg())
    assert asked.grep_content("TODO").startswith("File: ")
    monkeypatch.delenv("RIPWRAP_RG")
    assert "no-mirror-other" in asked.grep_content("x")
    later = time.monotonic() + 3600
    monkeypatch.setenv("RIPWRAP_MIRROR", mirror.as_uri())
    assert "no-mirror-other" in asked.grep_content("x")
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert asked.grep_content("x") == failed


def test_rg_that_is_installed_later_is_found_at_once(
    shop: Path, no_rg: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = sync.Workspace(shop)
    for _ in range(2):
        assert asked.grep_content("TODO").startswith("Error: ripgrep")
        monkeypatch.setenv("RIPWRAP_RG", _any_rg())
        assert asked.grep_content("TODO").startswith("File: ")
        monkeypatch.delenv("RIPWRAP_RG")
    assert len(caplog.records) == 2  # each absence is logged once


@pytest.mark.slow
def test_timeout_ends_a_search_and_is_noted(stand_in: Callable[..., Path], shop: Path) -> None:
    slow = stand_in("import time\nprint_all = None\ntime.sleep(60)")
    for tool, arguments in (("grep_content", {"pattern": "x"}), ("find_files", {}), ("ls", {}), ("tree", {})):
        text = getattr(sync.Workspace(shop, rg=slow, timeout=0.2), tool)(**arguments)
        assert "The search was stopped after 0.2 seconds, so results may be missing" in text


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["content", "count", "files_with_matches"])
def test_empty_answer_names_the_timeout(stand_in: Callable[..., Path], shop: Path, mode: Any) -> None:
    """`No matches found.` beside a timeout looks like a zero."""
    asked = sync.Workspace(shop, rg=stand_in("time.sleep(60)"), timeout=0.2)
    assert asked.grep_content("x", output_mode=mode).startswith("No matches found within 0.2 seconds. ")
    # A glob with a slash needs a listing, which is stopped; the search after it finds nothing that is listed.
    assert asked.grep_content("x", file_pattern="src/*", output_mode=mode).startswith("No matches found within 0.2 ")


@pytest.mark.slow
def test_empty_listing_names_the_timeout(stand_in: Callable[..., Path], shop: Path) -> None:
    """`No files found.` beside a timeout looks like a zero."""
    asked = sync.Workspace(shop, rg=stand_in("time.sleep(60)"), timeout=0.2)
    for text in (asked.find_files(), asked.ls(), asked.tree()):
        assert text.startswith("No files found within 0.2 seconds. ")


@pytest.mark.slow
def test_timeout_of_a_ranking_names_no_argument_that_agents_lack(stand_in: Callable[..., Path], shop: Path) -> None:
    """'timeout=0.2 seconds …; allow more time'."""
    slow = stand_in("import time\ntime.sleep(60)")
    asked = sync.Workspace(shop, rg=slow, timeout=0.2)
    said = "rg was stopped after 0.2 seconds, before all files were counted; search fewer files"
    assert asked.codebase_search("taxes") == f"Error: {said}"
    with pytest.raises(TimeoutError, match=f"{said}, or pass a larger timeout$"):
        asked.codebase_search_result("taxes")


@pytest.mark.slow
def test_guarded_root_is_searched_with_limits_and_a_note(
    rg: RgBinary, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = "/".join("abcdefgh")
    root = plant({f"{deep}/file": "x\n", "a/file": "x\n"})
    monkeypatch.setenv("USERPROFILE" if os.name == "nt" else "HOME", str(root))
    guarded = sync.Workspace(root, rg=rg)
    for tool, arguments in (("grep_content", {"pattern": "x"}), ("find_files", {}), ("ls", {}), ("tree", {})):
        text = getattr(guarded, tool)(**arguments)
        assert "This is a home directory or a directory above one, so the search is limited to 6 levels" in text
    assert guarded.find_files_result().files == (native("a/file"),)
    assert "one file system and 3 seconds" in sync.Workspace(root, rg=rg, timeout=3).find_files()
    everything = sync.Workspace(root, rg=rg, guard=False).find_files_result().files
    assert everything == (native(f"{deep}/file"), native("a/file"))
    assert guarded.find_files_result(path="a/b").notes == ()


@pytest.mark.posix
def test_file_names_cannot_forge_lines(rg: RgBinary, folder: Path) -> None:
    (folder / "a\nFile: b\x1b[2J").write_text("x\n")
    asked = sync.Workspace(folder, rg=rg)
    for text in (asked.grep_content("x"), asked.find_files(), asked.ls(), asked.tree()):
        assert r"a\x0aFile: b\x1b[2J" in text
        assert "\nFile: b" not in text


@pytest.mark.posix
def test_names_that_are_not_utf8_are_shown_and_survive_json(rg: RgBinary, plant: Plant) -> None:
    root = plant({b"caf\xe9.txt": "x\n"})
    asked = sync.Workspace(root, rg=rg)
    for name, arguments in (("grep_content", {"pattern": "x"}), ("find_files", {}), ("ls", {}), ("tree", {})):
        result = getattr(asked, f"{name}_result")(**arguments)
        assert "caf\ufffd.txt" in str(result)
        assert "caf\ufffd.txt" in result.model_dump_json()


def test_sections_of_grep_content_name_the_enclosing_definition(rg: RgBinary, shop: Path) -> None:
    text = sync.Workspace(shop, rg=rg).grep_content("TODO", file_pattern="cart.py", context_lines=0, sections=True)
    assert text.splitlines()[:3] == [
        native("File: src/cart.py"),
        "  in lines 4-6: def total(items):",
        "  5:     # TODO: taxes",
    ]


NESTED = """\
class Big:
    SIZE = 1

    @staticmethod
    def method():
        a = 1  # TODO
        def inner():
            return 2  # TODO
        return inner  # TODO


X = 1  # TODO

@cache  # TODO
def plain(): ...
"""


def test_heading_stands_where_the_lines_of_its_definition_begin(rg: RgBinary, plant: Plant) -> None:
    """A heading stands above context that is not in its lines, and its name is not qualified."""
    asked = sync.Workspace(plant({"a.py": NESTED}), rg=rg)
    assert asked.grep_content("TODO", context_lines=1, sections=True).splitlines() == [
        "File: a.py",
        "  in Big.method, lines 5-9: def method():",
        "  5-     def method():",
        "  6:         a = 1  # TODO",
        "  in Big.method.inner, lines 7-8: def inner():",
        "  7-         def inner():",
        "  8:             return 2  # TODO",
        "  in Big.method, lines 5-9: def method():",
        "  9:         return inner  # TODO",
        "  outside of definitions:",
        "  10-",
        "  11-",
        "  12: X = 1  # TODO",
        "  13-",
        "  in lines 14-15: def plain(): ...",
        "  14: @cache  # TODO",
        "  15- def plain(): ...",
        "",
        "(5 matches in 1 file.)",
    ]
    far = asked.grep_content("a = 1|inner  #", context_lines=2, sections=True).splitlines()
    assert far[1:4] == ["  4-     @staticmethod", "  in Big.method, lines 5-9: def method():", "  5-     def method():"]


def test_tools_report_progress(rg: RgBinary, shop: Path) -> None:
    for tool, arguments, much in (("grep_content", {"pattern": "TODO"}, 2), ("find_files", {}, 3), ("ls", {}, 3)):
        seen: list[int] = []
        sync.Workspace(shop, rg=rg).call_result(tool, arguments, progress=seen.append)
        assert seen
        assert seen[-1] == much


@pytest.mark.slow
@pytest.mark.python
async def test_cancelled_call_leaves_no_child_process(
    stand_in: Callable[..., Path], shop: Path, children: Any, anyio_backend: str
) -> None:
    import anyio

    workspace = Workspace(shop, rg=stand_in("import time\ntime.sleep(60)"))
    for tool in workspace.tools:
        if tool.__name__ in ("read_file", "history"):
            continue  # they need no rg
        needed = {"grep_content": {"pattern": "x"}, "codebase_search": {"query": "x"}, "find_references": {"name": "x"}}
        given = needed.get(tool.__name__, {})
        with anyio.move_on_after(0.3) as scope:
            await tool(**given)
        assert scope.cancelled_caught
        assert children() == []


def test_workspace_refuses_a_too_small_budget(shop: Path) -> None:
    with pytest.raises(ValueError, match="max_chars must be at least 1000, got 10"):
        Workspace(shop, max_chars=10)
    with pytest.raises(ValueError, match="max_line must be at least 40, got 1"):
        Workspace(shop, max_line=1)


@pytest.mark.slow
def test_note_on_a_line_that_is_too_long_names_its_file(plant: Plant) -> None:
    """The note says which file has the line."""
    folder = plant({"d/big": "needle" + "x" * (21 << 20)})
    result = sync.Workspace(folder).grep_content_result("needle")
    assert result.notes == ("1 line left out, too long to show, e.g. in d/big.",)

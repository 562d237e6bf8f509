"""`search_code()` and `replace_code()`: matches, plans, files that are not searched, and processes that end."""

import os
import re
import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import aclosing, closing, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

import ripwrap
from ripwrap import CodeError, CodeMatch, ConflictError, PatternError, RipwrapError, sync
from ripwrap._edits.structure import MAX_FILE_BYTES
from support.parsers import running
from support.waiting import until, until_blocking

pytest.importorskip("ast_grep_py")

from ast_grep_py import SgRoot

Plant = Callable[..., Path]
pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.usefixtures("leaks_nothing")]

GET = "requests.get($URL, verify=False)"
SLOW = "f(" * 1_000_000
"""Text whose parsing takes seconds."""


def parsers() -> list[Any]:
    """Return the processes that parse."""
    return running("structure.worker")


def found(folder: Path, pattern: str, lang: str = "python", **options: Any) -> list[CodeMatch]:
    """Return the matches; fail if a file was not searched."""
    hits = list(sync.search_code(pattern, lang=lang, cwd=folder, **options))
    assert not [hit for hit in hits if isinstance(hit, CodeError)]
    return [hit for hit in hits if isinstance(hit, CodeMatch)]


def test_a_match_has_lines_offsets_and_metavariables(plant: Plant) -> None:
    text = "é = 1\nif é:\n    b = requests.get(\n        'ü', verify=False\n    ), 'ä'\n"
    folder = plant({"a/b.py": text, "a.py": text.replace("False", "True"), "b.txt": text})
    (hit,) = found(folder, GET)
    assert (hit.path, hit.line_number, hit.metavariables) == (os.path.join("a", "b.py"), 3, {"URL": "'ü'"})
    assert hit.lines == text[text.index("    b =") :]
    (submatch,) = hit.submatches
    assert submatch.match == "requests.get(\n        'ü', verify=False\n    )"
    start = hit.absolute_offset + submatch.start
    assert text.encode()[start:].startswith(submatch.raw_match)
    assert hit.ranges() == ((3, 8, 5, 5),)
    assert CodeMatch.model_validate_json(hit.model_dump_json()) == hit


def test_lists_of_nodes_and_nested_matches_are_found_in_path_order(plant: Plant) -> None:
    folder = plant({"b.ts": "f(a, g(), f())\n", "a.mts": "\n f ( 1,\n2 )", "c.tsx": "f()", "d.js": "f()"})
    hits = found(folder, "f($$$ARGS)", "TS")
    told = [(hit.path, hit.line_number, hit.submatches[0].start, hit.metavariables["ARGS"]) for hit in hits]
    assert told == [("a.mts", 2, 1, "1,\n2"), ("b.ts", 1, 0, "a, g(), f()"), ("b.ts", 1, 10, "")]
    assert len(found(folder, "f($$$ARGS)", "ts", limit=2)) == 2
    assert found(folder, "f($$$ARGS)", "ts", limit=0) == []
    assert [hit.path for hit in found(folder, "f($$$)", "ts", paths="d.js")] == ["d.js"]
    assert [hit.path for hit in found(folder, "f($$$)", "ts", glob="b*")] == ["b.ts"] * 2
    assert [hit.path for hit in found(folder, "f($$$)", "ts", sortr="path")] == ["b.ts"] * 2 + ["a.mts"]


def test_byte_order_marks_and_utf_16_are_read_and_kept(plant: Plant) -> None:
    text = "ö = f(1)\r\n"
    contents = {"a.py": text.encode("utf-8-sig"), "b.py": b"\xff\xfe" + text.encode("utf-16-le"), "c.py": text.encode()}
    folder = plant(contents)
    assert {(hit.path, hit.absolute_offset, hit.lines) for hit in found(folder, "f($A)")} == {
        (path, 0, text) for path in contents
    }
    plan = sync.replace_code("f($A)", "ä($A)", lang="python", cwd=folder)
    plan.apply(journals=folder.parent / "journals")
    for path, before in contents.items():
        codec = "utf-16-le" if path == "b.py" else "utf-8"
        assert (folder / path).read_bytes() == before.replace("f(".encode(codec), "ä(".encode(codec))
    plan.undo(journals=folder.parent / "journals")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == contents


def test_what_cannot_be_searched_is_told_and_the_rest_is_searched(plant: Plant) -> None:
    folder = plant(
        {
            "a.py": b"f(1)\n\xff",
            "b.py": b"f(2)\0",
            "c.py": "f(3)\nx = = f(4)\n",
            "d.py": "",
            "e.py": "f(5)",
            "f.py": b"\xff\xfef\0(\0\0\xd8(\0",
        }
    )
    with (folder / "d.py").open("wb") as file:
        file.write(b"f(1)\n" * 20_000)
        file.truncate(MAX_FILE_BYTES + 1)
    hits = list(sync.search_code("f($A)", lang="py", cwd=folder))
    assert [(hit.path, hit.submatches[0].match) for hit in hits if isinstance(hit, CodeMatch)] == [
        ("c.py", "f(3)"),
        ("c.py", "f(4)"),
        ("e.py", "f(5)"),
    ]
    errors = [hit for hit in hits if isinstance(hit, CodeError)]
    assert [(error.path, error.kind, error.line_number) for error in errors] == [
        ("a.py", "encoding", None),
        ("b.py", "binary", None),
        ("c.py", "syntax", 2),
        ("d.py", "too_large", None),
        ("f.py", "encoding", None),
    ]
    assert str(errors[0]) == "a.py: it is not valid utf-8, at byte 5; convert it to UTF-8"
    plan = sync.replace_code("f($A)", "g($A)", lang="py", cwd=folder)
    assert [file.path for file in plan] == ["e.py"]
    assert [error.path for error in plan.errors] == [error.path for error in errors]
    told = {error.path: error.message for error in errors}
    told["c.py"] = "it is not changed, because line 2 is not valid python; correct that line, or replace by hand"
    assert {error.path: error.message for error in plan.errors} == told


@pytest.mark.posix
def test_a_path_that_rg_cannot_read_is_told(plant: Plant) -> None:
    folder = plant({"a.py": "f(1)"})
    (folder / "b").mkdir()
    (folder / "b/c").symlink_to(folder)  # a loop is no error
    error, hit = sync.search_code("f($A)", lang="py", cwd=folder, paths=[".", "gone"])
    assert isinstance(error, CodeError) and (error.kind, error.path) == ("unreadable", "gone")
    assert hit.path == "a.py"
    assert sync.replace_code("f($A)", "g", lang="py", cwd=folder, follow=True).errors == ()


def test_a_file_that_takes_too_long_does_not_stop_the_others(plant: Plant) -> None:
    folder = plant({"a.py": "f(1)", "b.py": SLOW, "c.py": "f(2)"})
    hits = list(sync.search_code("f($A)", lang="python", cwd=folder, file_timeout=0.5))
    assert [(hit.path, hit.type) for hit in hits] == [("a.py", "match"), ("b.py", "error"), ("c.py", "match")]
    assert isinstance(hits[1], CodeError) and hits[1].kind == "timeout"
    assert hits[1].message == (
        "the parser was stopped after 0.5 seconds; increase file_timeout, or search this file as text"
    )


@pytest.mark.posix
def test_parser_that_cannot_be_started_names_a_command_that_says_why(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(
        RipwrapError, match=r"it ended with exit code 1; to see the reason, run /bin/false -c 'import ripwrap\._code"
    ):
        list(sync.search_code("f($A)", lang="python", cwd=plant({"a.py": "f(1)\n"})))


def test_a_file_that_crashes_the_parser_does_not_stop_the_others(plant: Plant) -> None:
    folder = plant({"a.py": "f(1)", "b.py": SLOW, "c.py": "f(2)"})
    hits = []
    for hit in sync.search_code("f($A)", lang="python", cwd=folder, file_timeout=60):
        hits.append(hit)
        if hit.path == "a.py":
            until_blocking(lambda: parsers()[0].memory_info().rss > 100 << 20)  # it parses b.py
            parsers()[0].kill()
    assert [(hit.path, hit.type) for hit in hits] == [("a.py", "match"), ("b.py", "error"), ("c.py", "match")]
    assert isinstance(hits[1], CodeError) and hits[1].kind == "crash"


@pytest.mark.parametrize("how", ["break", "exception", "timeout", "limit"])
def test_leaving_a_search_ends_its_processes(plant: Plant, how: str) -> None:
    folder = plant({"a.py": "f(1)", "b0.py": SLOW})
    for number in range(1, 40):
        os.link(folder / "b0.py", folder / f"b{number}.py")
    seconds = 1.5 if how == "timeout" else None
    hits = sync.search_code("f($A)", lang="python", cwd=folder, timeout=seconds, limit=1 if how == "limit" else None)
    with closing(hits), suppress(KeyError):
        assert next(hits).path == "a.py"
        for parser in parsers():
            parser.suspend()  # so that it takes no processor until it is ended
        assert how == "limit" or parsers()
        if how == "exception":
            raise KeyError
        if how == "timeout":
            with pytest.raises(TimeoutError, match=r"timeout=1\.5"):
                list(hits)
        if how == "limit":
            assert list(hits) == []
    assert parsers() == []


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["cancel", "aclose"])
async def test_cancelling_a_search_ends_its_processes(plant: Plant, how: str) -> None:
    folder = plant({"a.py": "f(1)", "b.py": SLOW, "c.py": SLOW})
    search = ripwrap.search_code("f($A)", lang="python", cwd=folder)
    before = {*threading.enumerate()}  # a worker of another test may be idle
    with anyio.CancelScope() as scope:
        async with aclosing(search) as hits, anyio.create_task_group() as tasks:
            assert (await anext(hits)).path == "a.py"
            if how == "cancel":

                async def cancel() -> None:
                    await until(parsers)
                    scope.cancel()

                tasks.start_soon(cancel)
                await anext(hits)
    # A cancelled call is left to its threads, one of which may be starting a process.
    await until(
        lambda: not any(thread.name.startswith("ripwrap-worker") for thread in {*threading.enumerate()} - before)
    )
    assert parsers() == []


@pytest.mark.loops("asyncio")  # cancellation is tested on trio, too
@pytest.mark.anyio
async def test_async_and_blocking_calls_find_the_same_with_several_processes(plant: Plant) -> None:
    folder = plant({f"{number}.py": f"def f{number}(a): pass\n" * (number % 3) for number in range(60)})
    expected = list(sync.search_code("def $F($$$A): $$$", lang="python", cwd=folder))
    assert [hit async for hit in ripwrap.search_code("def $F($$$A): $$$", lang="python", cwd=folder)] == expected
    assert len(expected) == 60
    plan = await ripwrap.replace_code("def $F($A): pass", "def $F(): pass", lang="python", cwd=folder)
    assert (len(plan), plan.total_edits) == (40, 60)
    assert plan.files == sync.replace_code("def $F($A): pass", "def $F(): pass", lang="python", cwd=folder).files


def test_outer_matches_are_replaced_and_a_changed_file_is_a_conflict(plant: Plant) -> None:
    folder = plant({"a.py": "x = f(f(1))\nf(2)\n", ".b.py": "f(3)\n"})
    plan = sync.replace_code("f($A)", "g($A)", lang="python", cwd=folder)
    assert plan.diff().endswith("@@ -1,2 +1,2 @@\n-x = f(f(1))\n+x = g(f(1))\n-f(2)\n+g(2)\n")
    assert plan.message == "2 replacements in 1 file."
    (folder / "a.py").write_text("f(2)\n", "utf-8")
    with pytest.raises(ConflictError):
        plan.apply(journals=folder.parent / "journals")


@pytest.mark.parametrize(
    ("pattern", "fix", "message"),
    [
        ("f($A", None, "the pattern 'f($A' cannot be used: it is not valid python"),
        ("a\nb", None, "it has several statements"),
        ("", None, "it is empty"),
        ("$$$A", None, "it is only a $$$ metavariable"),
        ("\ud800", None, "cannot be used"),
        ("f($A)", "g($B)", "the fix names $B, but the pattern captures $A"),
        ("f($A)", "g($$$A)", "the fix names $$$A, but the pattern captures $A"),
        ("f($$$A)", "$1", "the fix names $1, but the pattern captures $$$A"),
    ],
)  # fmt: skip
def test_bad_patterns_and_fixes_are_refused(folder: Path, pattern: str, fix: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        if fix is None:
            list(sync.search_code(pattern, lang="python", cwd=folder))
        else:
            sync.replace_code(pattern, fix, lang="python", cwd=folder)
    assert isinstance(error.value, PatternError) == (fix is None)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lang": "pyton"}, ValueError, "did you mean python"),
        ({"type": "py"}, ValueError, "type does not apply"),
        ({"limit": -1}, ValueError, "limit must be 0 or more"),
        ({"file_timeout": 0}, ValueError, "file_timeout must be a positive number of seconds, got 0"),
        ({"langs": "python"}, ValidationError, "unknown option langs; did you mean lang"),
        ({"cwd": "no such directory"}, FileNotFoundError, "no such directory"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        list(sync.search_code("f($A)", **{"lang": "python", **options}))


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ast_grep_py", None)
    with pytest.raises(RipwrapError, match=r'needs ast-grep-py: pip install "ripwrap\[structure\]"'):
        sync.search_code("a", lang="python")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a package of ripwrap, which no test may change."""
    folder, package = tmp_path_factory.mktemp("sources") / "tree", Path(ripwrap.__file__).parent / "workspace"
    return shutil.copytree(package, folder, ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture(scope="module")
def parsed(tree: Path) -> dict[str, SgRoot]:
    """All files of the tree, parsed without a prefilter and without processes."""
    files = sorted(tree.rglob("*.py"))
    return {str(path.relative_to(tree)): SgRoot(path.read_text("utf-8"), "python") for path in files}


@pytest.mark.parametrize(
    "pattern", ["isinstance($A, $B)", "raise $E from None", "self.$A = $A", "lambda: $A", '"utf-8"']
)
def test_matches_are_those_of_ast_grep_in_all_files(tree: Path, parsed: dict[str, SgRoot], pattern: str) -> None:
    hits = found(tree, pattern, no_ignore=True)
    told = [(hit.path or "", hit.ranges()[0][0], hit.ranges()[0][2]) for hit in hits]
    ranges = [(path, node.range()) for path, root in parsed.items() for node in root.root().find_all(pattern=pattern)]
    assert sorted(told) == sorted((path, one.start.line + 1, one.end.line + 1) for path, one in ranges)
    assert told


def test_replacement_has_a_limit_of_size_and_leaves_out_version_control(plant: Plant) -> None:
    folder = plant({"a.py": "f(1)\n" * 10, ".git/b.py": "f(1)\n"})
    plan = sync.replace_code("f($A)", "g($A)", lang="python", cwd=folder, hidden=True, include_git=True)
    assert ([file.path for file in plan], [error.path for error in plan.errors]) == (["a.py"], [str(Path(".git/b.py"))])
    with pytest.raises(ValueError, match="the edits take more than 5,000 bytes"):
        sync.replace_code("f($A)", "g($A)", lang="python", cwd=folder, max_bytes=5_000)

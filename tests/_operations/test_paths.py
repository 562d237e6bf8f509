"""The argument `paths`: what is missing, what is a broken link, and what is too long for one command line."""

import logging
import os
import re
import subprocess
import zipfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

import ripwrap
from ripwrap import Summary, sync
from ripwrap.binary import RgBinary
from support import forks
from support.effort import some
from support.paths import native
from support.waiting import TIMEOUTS

Plant = Callable[..., Path]
pytestmark = [pytest.mark.rg_ends, pytest.mark.usefixtures("leaks_nothing")]

# Each operation that takes `paths`, with the arguments that it needs.
OPERATIONS: dict[str, tuple[str, ...]] = {
    "search": ("needle",),
    "search_messages": ("needle",),
    "grep": ("needle",),
    "files": (),
    "files_with_matches": ("needle",),
    "files_without_match": ("needle",),
    "count": ("needle",),
    "count_matches": ("needle",),
    "rank": ("needle",),
}


def run(backend: str, operation: str, **options: Any) -> Any:
    """Return the answer of an operation, a list if it is a stream, async or blocking."""
    arguments = OPERATIONS[operation]
    if backend == "sync":
        answer = getattr(sync, operation)(*arguments, **options)
        return list(answer) if hasattr(answer, "close") else answer

    async def collect() -> Any:
        called: AsyncGenerator[Any] | Coroutine[Any, Any, Any] = getattr(ripwrap, operation)(*arguments, **options)
        if isinstance(called, AsyncGenerator):
            async with aclosing(called) as stream:
                return [item async for item in stream]
        return await called

    return anyio.run(collect, backend=backend)


@pytest.mark.parametrize("operation", OPERATIONS)
class TestMissingPaths:
    @pytest.mark.slow
    def test_operation_raises_if_every_path_is_missing(self, newest: RgBinary, plant: Plant, operation: str) -> None:
        """A search of nothing but missing paths is an error, and not an answer without matches."""
        folder = plant({"a": "needle\n"})
        with pytest.raises(FileNotFoundError, match="no such file or directory; check paths or cwd") as caught:
            run("asyncio", operation, cwd=folder, rg=newest, paths="gone")
        assert caught.value.filename == "gone"
        with pytest.raises(FileNotFoundError, match=r"none of the 3 paths exists \(gone, a[/\\]b, lost\)") as caught:
            run("asyncio", operation, cwd=folder, rg=newest, paths=["gone", Path("a/b"), "./lost"])
        assert caught.value.filename == "gone"

    @pytest.mark.slow
    def test_operation_answers_if_one_path_exists_and_its_answer_has_errors(
        self, newest: RgBinary, plant: Plant, operation: str
    ) -> None:
        """If only some paths are missing, the answer has the others."""
        folder = plant({"a": "needle\n", "b": "no\n"})
        if operation in ("grep", "search_messages"):
            assert run("asyncio", operation, cwd=folder, rg=newest, paths=["gone", "a", "b"])
        else:
            with pytest.raises(FileNotFoundError, match="'gone'"):
                run("asyncio", operation, cwd=folder, rg=newest, paths=["gone", "a", "b"])


@pytest.mark.posix
def test_named_broken_link_is_a_missing_path(rg: RgBinary, folder: Path) -> None:
    """rg follows a link that is named, so a broken link is as good as no path."""
    (folder / "broken").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="'broken'"):
        run("sync", "search", cwd=folder, rg=rg, paths=["broken"], follow=False)


def test_missing_paths_do_not_hide_what_is_wrong_with_the_search(rg: RgBinary, folder: Path) -> None:
    """rg's own error comes first, unless the path was checked before rg starts."""
    with pytest.raises(ripwrap.PatternError):
        sync.grep("(", cwd=folder, rg=rg, paths="gone")
    with pytest.raises(ripwrap.GlobError):
        list(sync.search_messages("x", cwd=folder, rg=rg, paths="gone", glob="a["))
    with pytest.raises(FileNotFoundError):
        list(sync.search("(", cwd=folder, rg=rg, paths="gone"))


def test_missing_paths_raise_even_if_no_match_is_wanted(rg: RgBinary, folder: Path) -> None:
    """With `max_count=0` rg itself looks at no path."""
    with pytest.raises(FileNotFoundError):
        list(sync.search("x", cwd=folder, rg=rg, paths="gone", max_count=0))


@pytest.mark.skipif(os.name == "nt", reason="directories have no such permission")
def test_path_that_may_not_be_seen_is_not_missing(unprivileged: Path, plant: Plant) -> None:
    """A path below a closed directory may exist, so it is data as before."""
    folder = plant({"closed/a": "needle\n"})
    (folder / "closed").chmod(0)
    try:
        *_, summary = sync.search_messages("needle", cwd=folder, rg=unprivileged, paths="closed/a")
    finally:
        (folder / "closed").chmod(0o700)
    assert isinstance(summary, Summary)
    assert [(error.path, error.kind) for error in summary.errors] == [("closed/a", "denied")]


class TestBrokenLinks:
    @pytest.fixture
    def linked(self, needs_posix: None, plant: Plant) -> Path:
        folder = plant({"a": "needle\n", "d/b": "needle\n"})
        (folder / "broken").symlink_to("nowhere")
        (folder / "d" / "broken").symlink_to("nowhere")
        return folder

    @pytest.mark.slow
    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_operation_logs_no_warning(
        self, newest: RgBinary, linked: Path, operation: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Links are followed by default, so a broken link would give a warning for each call."""
        with caplog.at_level(logging.INFO, "ripwrap"):
            run("sync", operation, cwd=linked, rg=newest, glob=["*"])
        assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []

    def test_answer_lists_the_links_and_its_message_does_not(self, rg: RgBinary, linked: Path) -> None:
        """The links are data of the answer."""
        result: ripwrap.GrepResult = run("sync", "grep", cwd=linked, rg=rg)
        *_, summary = run("sync", "search_messages", cwd=linked, rg=rg)
        assert set(summary.errors) == set(result.errors)
        assert {(error.path, error.kind, error.harmless) for error in result.errors} == {
            ("broken", "broken_link", True),
            ("d/broken", "broken_link", True),
        }
        assert result.message == "2 matches in 2 files."

    def test_link_that_is_named_is_a_missing_path(self, rg: RgBinary, linked: Path) -> None:
        """The caller expects something behind it."""
        *_, summary = run("sync", "search_messages", cwd=linked, rg=rg, paths=["a", "./d/broken"])
        ((error),) = summary.errors
        assert (error.path, error.kind, error.harmless) == ("d/broken", "missing", False)
        with pytest.raises(FileNotFoundError, match="'d/broken'"):
            run("sync", "files", cwd=linked, rg=rg, paths=["a", "./d/broken"])


@pytest.mark.slow
@pytest.mark.usefixtures("fork_server")
def test_warnings_are_visible_without_logging_and_can_be_switched_off(unprivileged: Path, plant: Plant) -> None:
    """No `NullHandler` swallows the warnings, so Python prints them on stderr; broken links are none."""
    folder = plant({"a": "needle\n"})
    (folder / "closed").mkdir(mode=0)
    (folder / "broken").symlink_to("nowhere")
    code = f"import logging; from ripwrap import sync; SETUP; print(list(sync.files(rg={str(unprivileged)!r})))"
    said = "rg could not read some paths: closed: Permission denied (os error 13)\n"
    for setup, stderr in {
        "pass": said,
        "logging.getLogger('ripwrap').setLevel('ERROR')": "",
        "logging.getLogger('ripwrap').addHandler(logging.NullHandler())": "",
        "logging.basicConfig(format='%(name)s: %(message)s')": f"ripwrap: {said}",
    }.items():
        done = forks.run(["-c"], code.replace("SETUP", setup), cwd=folder, env=os.environ)
        assert (done.returncode, done.stdout, done.stderr) == (0, "['a']\n", stderr)


@pytest.mark.fact(22)
def test_sort_by_path_keeps_the_order_of_paths(rg: RgBinary, plant: Plant) -> None:
    """rg sorts below each path; from rg 14 on `--sortr=path` sorts the files of all paths."""
    folder = plant({"a/1": "", "a/2": "", "b/1": "", "c": ""})
    paths = ["b", "c", "a"]
    assert list(sync.files(cwd=folder, rg=rg, paths=paths, sort="path")) == list(
        map(native, ["b/1", "c", "a/1", "a/2"])
    )
    reverse = ["c", "b/1", "a/2", "a/1"] if rg.version >= (14,) else ["b/1", "c", "a/2", "a/1"]
    assert list(sync.files(cwd=folder, rg=rg, paths=paths, sortr="path")) == list(map(native, reverse))


# Several command lines: Linux gives arguments and environment a quarter of the stack's limit.


def names_of(number: int) -> list[str]:
    return [f"f{index:04}" for index in range(number)]


def long(name: str) -> str:
    """Return another path of the same file, of about 4,000 characters, which is as long as a path can be."""
    return "d/" + "../d/" * 790 + name


@pytest.fixture
def many(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of 40 files, two with a match; their long paths need three command lines.

    These have 256 KiB, most of which the environment takes.
    """
    import resource  # not on Windows

    for number in range(2):
        monkeypatch.setenv(f"FILLER{number}", "x" * 95_000)  # a variable has at most 128 KiB
    folder = plant({f"d/{name}": f"needle {name}\n" if name in ("f0000", "f0025") else "no\n" for name in names_of(40)})
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, hard))
    yield folder
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))


def paths_in(answer: Any) -> list[str]:
    return [os.path.normpath(item if isinstance(item, str) else item.path) for item in answer]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has shorter paths")
@pytest.mark.parametrize("backend", ["asyncio", "trio", "sync"])
class TestPathsOfSeveralCommandLines:
    """The paths of a call may need several rg, which are as one."""

    def test_stream_has_the_items_of_all_runs_in_order(self, newest: RgBinary, many: Path, backend: str) -> None:
        paths = [long(name) for name in names_of(40)]
        listed = paths_in(run(backend, "files", cwd=many, rg=newest, paths=iter(paths), sort="path"))
        assert listed == [f"d/{name}" for name in names_of(40)]
        found = paths_in(run(backend, "search", cwd=many, rg=newest, paths=reversed(paths), sort="path"))
        assert found == ["d/f0025", "d/f0000"]  # rg goes through the paths in their order
        assert len(run(backend, "files", cwd=many, rg=newest, paths=paths, limit=38)) == 38
        fewer = paths[:27]
        counts = run(backend, "count", cwd=many, rg=newest, paths=(path for path in fewer), include_zero=True)
        assert (len(counts), sum(one.count for one in counts)) == (27, 2)
        assert len(run(backend, "files_without_match", cwd=many, rg=newest, paths=fewer)) == 25
        assert sorted(paths_in(run(backend, "files_with_matches", cwd=many, rg=newest, paths=paths))) == found[::-1]

    def test_messages_have_one_summary(self, newest: RgBinary, many: Path, backend: str) -> None:
        paths = [*map(long, names_of(40)), "gone"]
        messages = run(backend, "search_messages", cwd=many, rg=newest, paths=paths)
        assert [message.type for message in messages] == [*["begin", "match", "end"] * 2, "summary"]
        summary = messages[-1]
        assert (summary.stats.matches, summary.stats.searches_with_match) == (2, 2)
        assert summary.elapsed_total.human == f"{summary.elapsed_total.total_seconds():.6f}s"
        assert [(error.path, error.kind) for error in summary.errors] == [("gone", "missing")]
        few = run(backend, "search_messages", cwd=many, rg=newest, paths=paths, limit=2)
        assert [message.type for message in few] == ["begin", "match", "end", "begin", "match"]

    def test_collected_answer_is_of_all_runs(self, newest: RgBinary, many: Path, backend: str) -> None:
        paths = [*map(long, names_of(40)), "gone"]
        result = run(backend, "grep", cwd=many, rg=newest, paths=iter(reversed(paths)), limit=1, timeout=None)
        assert (paths_in(result), result.total_matches, result.next_offset) == (["d/f0000"], 2, 1)
        rest = run(backend, "grep", cwd=many, rg=newest, paths=paths, offset=1, timeout=None)
        assert (paths_in(rest), rest.total_matches, rest.stop_reason) == (["d/f0025"], 2, "end")
        assert [(error.path, error.kind) for error in rest.errors] == [("gone", "missing")]
        none = run(backend, "grep", cwd=many, rg=newest, paths=paths[5:25], timeout=None)
        assert (none.total_matches, none.exact) == (0, True)
        chunks = run(backend, "rank", cwd=many, rg=newest, paths=paths[:-1])
        assert sorted(paths_in(chunks)) == ["d/f0000", "d/f0025"]

    def test_every_path_of_all_runs_must_be_missing(self, newest: RgBinary, many: Path, backend: str) -> None:
        lost = [long(f"none{index}") for index in range(40)]
        with pytest.raises(FileNotFoundError, match="none of the 40 paths exists"):
            run(backend, "search", cwd=many, rg=newest, paths=lost)
        with pytest.raises(FileNotFoundError, match="none of the 40 paths exists"):
            run(backend, "grep", cwd=many, rg=newest, paths=lost)
        with pytest.raises(FileNotFoundError, match="40 of the 41 paths do not exist"):
            run(backend, "files", cwd=many, rg=newest, paths=[*lost, "d/f0003"])
        some = run(backend, "grep", cwd=many, rg=newest, paths=[*lost, "d/f0000"])
        assert (paths_in(some), len(some.errors)) == (["d/f0000"], 40)

    def test_timeout_holds_for_all_runs(self, stand_in: Callable[..., Path], many: Path, backend: str) -> None:
        """The second run waits for ever; the time limit ends it and keeps what was found."""
        body = "say(BEGIN, MATCH); time.sleep(FOR_EVER) if sys.argv[-1].endswith('f0038') else say(SUMMARY)"
        rg = stand_in(body)
        paths = [long(name) for name in names_of(39)]
        for timeout in TIMEOUTS:
            result = run(backend, "grep", cwd=many, rg=rg, paths=paths, timeout=timeout)
            if result.total_matches > 1:
                break
        assert (result.total_matches >= 2, result.stop_reason, result.exact) == (True, "timeout", False)
        if backend == "sync":
            with pytest.raises(TimeoutError):
                run(backend, "search", cwd=many, rg=rg, paths=paths, timeout=0.5)

    def test_failure_of_one_run_is_raised(self, stand_in: Callable[..., Path], many: Path, backend: str) -> None:
        """The output of an earlier run does not count for a later one."""
        paths = [long(name) for name in names_of(39)]
        last = f"sys.argv[-1].endswith('{names_of(39)[-1]}')"
        for rg in (
            stand_in(f"sys.exit(2) if {last} else say(BEGIN, MATCH, SUMMARY)"),
            stand_in(f"os.kill(os.getpid(), 9) if {last} else say(BEGIN, MATCH, SUMMARY)"),
        ):
            for operation in ("search", "grep"):
                with pytest.raises(ripwrap.SearchError):
                    run(backend, operation, cwd=many, rg=rg, paths=paths)
        with pytest.raises(ripwrap.SearchError, match="exit code 1"):
            run(backend, "files", cwd=many, rg=stand_in(f"list_files(1); sys.exit({last})"), paths=paths)

    def test_each_option_that_sorts_all_files_is_refused(self, newest: RgBinary, many: Path, backend: str) -> None:
        """rg sorts the files of all paths together, but for `sort="path"`; several rg cannot."""
        paths = [long(name) for name in names_of(40)]
        for options in ({"sortr": "path"}, {"sort": "modified"}, {"sort": "path", "sortr": "created"}):
            with pytest.raises(ripwrap.SearchError, match=r"cannot sort the files of all 40 paths together"):
                run(backend, "files", cwd=many, rg=newest, paths=paths, **options)
        found = run(backend, "grep", cwd=many, rg=newest, paths=paths, sortr="path", timeout=None)
        assert paths_in(found) == ["d/f0000", "d/f0025"]


def test_paths_may_be_any_iterable(rg: RgBinary, plant: Plant) -> None:
    """A generator is consumed once, at the call."""
    folder = plant({"a": "needle\n", "b": "needle\n", "c": "needle\n"})
    for paths in ({"a": 1, "b": 2}, {"a", "b"}, iter(("a", "b")), (Path(name) for name in "ab")):
        assert sorted(sync.files(cwd=folder, rg=rg, paths=paths)) == ["a", "b"]
    assert [file.path for file in sync.grep("x|y", cwd=folder, rg=rg, paths=iter("b"), explain=True)] == []
    assert len(list(sync.files(cwd=folder, rg=rg, paths=iter(())))) == 3


OVERLAPS = [
    [".", "a.py"], ["a.py", "."], ["a.py", "a.py"], ["d", "d/b.py"], ["d/b.py", "d/"], ["d", "d"], ["d/e", ".", "d"],
    ["d/e/c.py", "d/e", "d", "."], [".", "late"], ["late", "."], [".", "."], ["d/", "d"], ["./d", "d/e"],
    [".ignored", "."], ["a.py", "d"], ["d/../a.py", "a.py"],
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.parametrize("paths", some(OVERLAPS, 6), ids=" ".join)
def test_file_that_two_paths_reach_is_answered_once(newest: RgBinary, plant: Plant, paths: list[str]) -> None:
    """The streams yield what rg prints, twice; an answer about files has each file once, as the last-named path."""
    folder = plant(
        {"a.py": "needle\n", "d/b.py": "needle needle\n", "d/e/c.py": "x\nneedle\n", ".gitignore": ".ignored\n"}
        | {".ignored": "needle\n", "late": b"needle\n" + b"x\n" * 80_000 + b"\0\nneedle\n", "f.zip": b""}
    )
    with zipfile.ZipFile(folder / "f.zip", "w") as archive:
        archive.writestr("m", "needle\n")
    argv = [newest.path, "--no-config", "--null", "--hidden", "--no-require-git", "--count-matches", "needle", *paths]
    done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    found = re.findall(r"(?:\./)?([^\0]+)\0([0-9]+)\n", done.stdout.decode())
    options: dict[str, Any] = {"cwd": folder, "paths": paths, "rg": newest}
    assert sorted((one.path, str(one.count)) for one in sync.count_matches("needle", **options)) == sorted(found)
    hits = {path: int(number) for path, number in found if path != "late"}
    lines = sorted([*hits] + ["late"] * (2 if "late" in paths else 1) * any(one in (".", "late") for one in paths))
    result = sync.grep("needle", **options)
    assert sorted(match.path for match in result.matches) == lines
    assert (result.total_matches, result.files_matched) == (len(lines), len(set(lines)))
    assert [file.path for file in result.files] == sorted(set(lines))
    near = sync.grep("needle", near="needle", within=0, **options)
    assert (near.total_matches, near.files_matched) == (len(lines), len(set(lines)))
    assert sorted(sync.files_matching(all_of=["needle", "n"], **options)) == sorted(set(lines))
    scanned = Counter(hit.path for hit in sync.scan({"one": "needle"}, **options) if hit.path != "late")
    assert scanned == hits
    within = sync.grep("needle", inside="zip", **options)
    assert within.total_matches == len(lines) + ("." in paths)
    by_place = {os.path.realpath(folder / path): number for path, number in hits.items()}
    plan = sync.replace("needle", "pin", hidden=True, **options)
    edits = {os.path.realpath(folder / file.path): len([*file.edits]) for file in plan.files}
    assert {path: number for path, number in edits.items() if not path.endswith("late")} == by_place
    references = sync.references("needle", hidden=True, **options)
    places = [(use.path, use.line, use.column) for use in (*references.definitions, *references.uses)]
    assert len(places) == len(set(places)) > 0

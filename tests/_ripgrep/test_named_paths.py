"""Named paths and ignore files that are missing or cannot be read: an error where the answer has no place for it."""

import inspect
import logging
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest

import ripwrap
from ripwrap import Rule, sync, testing
from ripwrap._ripgrep.named_paths import FAKE_FILES, MAX_IGNORE_FILE_BYTES, missing_paths_as_warnings
from ripwrap.binary import RgBinary
from ripwrap.places import Directory, Items
from support.hosts import ThisMachine

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")

# Each operation whose answer has no place for errors, with the arguments that it needs.
STREAMS: dict[str, tuple[Any, ...]] = {
    "search": ("needle",),
    "search_columns": ("needle",),
    "files": (),
    "files_with_matches": ("needle",),
    "files_without_match": ("needle",),
    "count": ("needle",),
    "count_matches": ("needle",),
    "scan": ([Rule(id="rule", pattern="needle")],),
    "rank": ("needle",),
    "files_matching": (),
}


def call(operation: str, backend: str = "sync", **options: Any) -> Any:
    """Call an operation, and return the first item of its answer, or the answer if it is not a stream."""
    if operation == "files_matching":
        options["all_of"] = "needle"
    if backend == "sync":
        answer = getattr(sync, operation)(*STREAMS[operation], **options)
        try:
            return next(answer, None) if hasattr(answer, "__next__") else answer
        finally:
            if hasattr(answer, "close"):
                answer.close()

    async def run() -> Any:
        called: AsyncGenerator[Any] | Coroutine[Any, Any, Any] = getattr(ripwrap, operation)(
            *STREAMS[operation], **options
        )
        if not isinstance(called, AsyncGenerator):
            return await called
        try:
            return await anext(called, None)
        finally:
            await called.aclose()

    return anyio.run(run, backend=backend)


@pytest.mark.parametrize("backend", ["sync", "asyncio"])
@pytest.mark.parametrize("operation", STREAMS)
class TestNamedPaths:
    def test_one_missing_path_is_an_error_before_rg_starts(self, plant: Plant, operation: str, backend: str) -> None:
        """`search(paths=["nope", "src"])` was the answer of `src`, without a word."""
        with testing.fake({"src/a": "needle\n"}) as rg, pytest.MonkeyPatch.context() as patch:
            patch.delenv(FAKE_FILES)
            folder = plant({"src/a": "needle\n"})
            with pytest.raises(FileNotFoundError, match="no such file or directory; check paths or cwd") as caught:
                call(operation, backend, cwd=folder, paths=["nope", "src"])
            assert (caught.value.filename, rg.calls) == ("nope", [])

    def test_every_missing_path_is_named(self, plant: Plant, operation: str, backend: str) -> None:
        """Also a path below a file, and all of more than ten paths."""
        folder = plant({"a": "needle\n"})
        with pytest.raises(FileNotFoundError, match=r"2 of the 3 paths do not exist \(nope, a[/\\]b\)") as caught:
            call(operation, backend, cwd=folder, paths=["nope", "a", Path("a/b")])
        assert caught.value.filename == "nope"
        lost = [f"lost{number:02}" for number in range(30)]
        with pytest.raises(FileNotFoundError) as caught:
            call(operation, backend, cwd=folder, paths=["a", *lost])
        assert all(name in str(caught.value) for name in lost)

    def test_missing_directory_is_named_before_its_paths(self, folder: Path, operation: str, backend: str) -> None:
        with pytest.raises(FileNotFoundError, match="cwd does not exist"):
            call(operation, backend, cwd=folder / "gone", paths=["a"])
        (folder / "file").touch()
        with pytest.raises(NotADirectoryError, match="cwd is not a directory"):
            call(operation, backend, cwd=folder / "file", paths=["a"])

    @pytest.mark.posix
    def test_named_link_must_lead_to_a_file(self, plant: Plant, operation: str, backend: str) -> None:
        """rg cannot read a link to itself, either."""
        folder = plant({"a": "needle\n"})
        (folder / "broken").symlink_to("nowhere")
        (folder / "loop").symlink_to("loop")
        (folder / "good").symlink_to("a")
        with pytest.raises(FileNotFoundError, match="'broken'"):
            call(operation, backend, cwd=folder, paths=["a", "broken"])
        with pytest.raises(OSError, match=r"symbolic links.*'loop'"):
            call(operation, backend, cwd=folder, paths=["a", "loop"])
        assert call(operation, backend, cwd=folder, paths=["good"]) or operation == "files_without_match"

    def test_ignore_file_must_exist(self, plant: Plant, operation: str, backend: str) -> None:
        """Without its ignore file, a search finds more than the caller wants."""
        folder = plant({"a": "needle\n", "rules": "", "d/x": ""})
        if operation == "files_matching" and backend == "asyncio":
            pytest.skip("the same code as blocking")
        for paths in ((), ("a",)):
            for wrong, error in {"nope": FileNotFoundError, "d": IsADirectoryError}.items():
                with pytest.raises(error, match="check ignore_file") as caught:
                    call(operation, backend, cwd=folder, paths=paths, ignore_file=["rules", wrong])
                assert caught.value.filename == wrong
        assert call(operation, backend, cwd=folder, ignore_file="rules")
        assert call(operation, backend, cwd=folder, ignore_file="nope", no_ignore_files=True)


@pytest.fixture
def closed(plant: Plant) -> Iterator[Path]:
    """A directory with files and directories that only root may read."""
    folder = plant({"a": "needle\n", "no.txt": "needle\n", "closed/a": "needle\n", "listed/a": "needle\n", "rules": ""})
    (folder / "unlisted").mkdir()
    modes = {"no.txt": 0, "closed": 0, "listed": 0o444, "rules": 0, "unlisted": 0o311}
    for name, mode in modes.items():
        (folder / name).chmod(mode)
    yield folder
    for name in modes:
        (folder / name).chmod(0o755)


DENIED = """
import sys
from ripwrap import Rule, sync
rule = [Rule(id="rule", pattern="needle")]
calls = {
    "search": ["needle"], "search_columns": ["needle"], "files": [], "files_with_matches": ["needle"],
    "files_without_match": ["needle"], "count": ["needle"], "count_matches": ["needle"], "scan": [rule],
    "rank": ["needle"],
}
if not SCANS:  # scan() needs rg 15
    del calls["scan"]
for name, arguments in calls.items():
    for paths in ("no.txt", ["a", "no.txt"], "closed", "closed/a", "listed", ["a", "listed/a"]):
        try:
            print(name, paths, list(getattr(sync, name)(*arguments, paths=paths, rg=RG)))
        except PermissionError as error:
            assert error.filename == (paths if isinstance(paths, str) else paths[-1]), error
    try:
        print(name, list(getattr(sync, name)(*arguments, paths="a", ignore_file="rules", rg=RG)))
    except PermissionError as error:
        assert error.filename == "rules" and "ignore_file" in str(error)
    assert list(getattr(sync, name)(*arguments, paths="a", rg=RG)) or name == "files_without_match"
found = sync.grep("needle", paths=["a", "no.txt"], rg=RG)
assert [(one.path, one.kind) for one in found.errors] == [("no.txt", "denied")], found
*_, summary = sync.search_messages("needle", paths=["a", "no.txt"], ignore_file="rules", rg=RG)
assert {(one.path, one.kind) for one in summary.errors} == {("no.txt", "denied"), ("rules", "denied")}, summary
assert sync.coverage(paths=["a", "no.txt"], rg=RG).skipped[0].kind == "unreadable"
why = sync.why("closed/a", rg=RG)
assert (why.kind, why.detail) == ("unreadable", "Permission denied"), why
why = sync.why("listed/a", rg=RG)
assert (why.kind, why.detail) == ("unreadable", "Permission denied"), why
why = sync.why("no.txt", rg=RG)
assert (why.kind, why.detail) == ("unreadable", "Permission denied"), why
for missing in ("gone", "a/b", "gone/a"):
    try:
        print(sync.why(missing, rg=RG))
    except FileNotFoundError as error:
        assert error.filename == missing
for answer in (sync.search("x", cwd="unlisted", rg=RG), sync.tree(cwd="unlisted", rg=RG)):
    try:
        print(list(answer))
    except PermissionError as error:
        assert "cwd cannot be read" in str(error), error
"""


@pytest.mark.slow
@pytest.mark.posix
def test_named_path_without_permission_is_an_error(newest: RgBinary, closed: Path) -> None:
    """`paths="no.txt"` with mode 000 was an empty answer, and `why()` said 'no such file'."""
    argv = [sys.executable, "-c", f"RG = {newest.path!r}\nSCANS = {newest.version >= (15,)}\n{DENIED}"]
    if os.geteuid() == 0:  # as the fixture `unprivileged`
        argv = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--", *argv]
    done = subprocess.run(argv, cwd=closed, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.posix
def test_path_that_only_rg_cannot_read_is_an_error_at_the_end(unprivileged: Path, closed: Path) -> None:
    """This process may read the file, so that only rg's own error tells."""
    for paths in ("no.txt", ["a", "./no.txt"], ["closed", "a"]):
        with pytest.raises(PermissionError):
            list(sync.search("needle", cwd=closed, paths=paths, rg=unprivileged))
    with pytest.raises(PermissionError):
        sync.files_matching(all_of="needle", cwd=closed, paths=["a", "no.txt"], rg=unprivileged)
    with pytest.raises(PermissionError, match="check ignore_file"):
        list(sync.files(cwd=closed, ignore_file="rules", rg=unprivileged))


def test_answers_with_a_place_for_errors_keep_missing_paths(plant: Plant) -> None:
    """`grep()`, `search_messages()` and plans list the path."""
    folder = plant({"a": "needle\n"})
    options: dict[str, Any] = {"cwd": folder, "paths": ["nope", "a"]}
    assert [error.path for error in sync.grep("needle", **options).errors] == ["nope"]
    assert [error.path for error in sync.replace("needle", "x", **options).errors] == ["nope"]
    *_, summary = sync.search_messages("needle", **options, ignore_file="rules")
    assert summary.type == "summary"
    assert {(error.path, error.kind) for error in summary.errors} == {("nope", "missing"), ("rules", "missing")}
    covered = sync.grep("needle", coverage=True, **options).coverage
    assert covered is not None and covered.searched == 1
    with pytest.raises(FileNotFoundError, match="'nope'"):
        sync.coverage(**options)


def test_file_that_vanishes_between_two_searches_is_no_error(plant: Plant) -> None:
    """Only paths of the caller must exist."""
    folder = plant({"a": "one two\n", "b": "one two\n"})

    def fresh() -> Iterator[str]:
        yield "a"
        yield "b"

    assert sync.files_matching(all_of=["one", "two"], cwd=folder, paths=fresh()) == ["a", "b"]
    rules = [Rule(id="rule", pattern=r"\w+", keywords=("one",))]
    assert {hit.path for hit in sync.scan(rules, cwd=folder, paths=["a", "b"])} == {"a", "b"}


def test_host_reports_missing_paths_at_the_end(plant: Plant) -> None:
    """Only rg knows the paths on a host; `ThisMachine` has them in another directory."""
    folder = plant({"a": "needle\n"})
    found = sync.search("needle", on=ThisMachine(str(folder)), paths=["a", "nope", "./lost"])
    assert next(found).path == "a"
    with pytest.raises(FileNotFoundError, match=r"2 of the 3 paths do not exist \(nope, lost\)"):
        next(found)
    grep = sync.grep("needle", on=ThisMachine(str(folder)), paths=["a", "nope"])
    assert [error.path for error in grep.errors] == ["nope"]
    assert [match.path for match in sync.search("needle", on=ThisMachine(str(folder)), paths="a")] == ["a"]


def test_files_of_a_fake_rg_are_not_on_the_disk(folder: Path) -> None:
    with testing.fake({"src/a.py": "needle\n"}):
        assert [match.path for match in sync.search("needle", cwd=folder, paths="src")] == ["src/a.py"]
        assert FAKE_FILES in os.environ
    assert FAKE_FILES not in os.environ


def test_command_line_warns_about_missing_paths_and_goes_on(plant: Plant, caplog: pytest.LogCaptureFixture) -> None:
    """The command line shows warnings, so there a missing path is as in rg: the other paths are searched."""
    folder = plant({"a": "needle\n"})
    with missing_paths_as_warnings():
        counts = sync.count("needle", cwd=folder, paths=["nope", "a"])
    with caplog.at_level(logging.WARNING, "ripwrap"):
        assert [one.path for one in counts] == ["a"]
    assert "nope: " in caplog.text


# Each ignore file that rg reads before it searches, below the directory that holds the searched one, and the options
# with which rg does not read it.
IGNORE_FILES = {
    ".gitignore": ("no_ignore_vcs", "no_ignore"),
    ".ignore": ("no_ignore_dot", "no_ignore"),
    ".rgignore": ("no_ignore_dot", "no_ignore"),
    ".git/info/exclude": ("no_ignore_vcs", "no_ignore"),
    "sub/.gitignore": ("no_ignore_vcs", "no_ignore"),
    "sub/.ignore": ("no_ignore_dot", "no_ignore"),
    "sub/.rgignore": ("no_ignore_dot", "no_ignore"),
    "sub/.git/info/exclude": ("no_ignore_vcs", "no_ignore"),
    "named": ("no_ignore_files",),
}


@pytest.mark.parametrize("file", IGNORE_FILES)
def test_rg_is_not_given_an_ignore_file_that_is_too_large(plant: Plant, file: str) -> None:
    root = plant({"sub/deep/a.py": "needle\n", "b.py": "", file: "x\n"})
    given: Any = {"ignore_file": root / file} if file == "named" else {}
    asked: list[Callable[..., Any]] = [
        lambda **options: [one.path for one in sync.search("needle", cwd=root / "sub", **options)],
        lambda **options: [one.path for one in sync.grep("needle", cwd=root, paths="sub", **options)],
        lambda **options: [*sync.files(cwd=root / "sub", **options)],
        lambda **options: [*sync.count("needle", cwd=root, paths=["b.py", "sub"], **options)],
    ]
    with (root / file).open("r+b") as opened:
        for size, refused in ((MAX_IGNORE_FILE_BYTES, False), (MAX_IGNORE_FILE_BYTES + 1, True)):
            opened.truncate(size)
            for ask in asked:
                if refused:
                    with pytest.raises(ripwrap.RipwrapError) as caught:
                        ask(**given)
                    name = os.path.join(*file.split("/"))
                    assert f"{name} is larger than 1,048,576 bytes, so rg was not started" in str(caught.value)
                    assert str(caught.value).endswith(f"{IGNORE_FILES[file][-1]}=True")
                    for option in IGNORE_FILES[file]:
                        assert ask(**given, **{option: True})
                else:
                    assert ask(**given)
    # rg reads no ignore file for a file that is named, and none of a place that is no directory.
    if file != "named":
        assert [one.path for one in sync.grep("needle", cwd=root, paths="sub/deep/a.py")] == ["sub/deep/a.py"]
        assert sync.grep("needle", where=Items([("a", "needle")]), cwd=root).total_matches == 1


def test_error_about_a_large_ignore_file_names_the_argument_of_the_tools(plant: Plant) -> None:
    root = plant({"a.py": "needle\n", ".gitignore": "x\n"})
    os.truncate(root / ".gitignore", MAX_IGNORE_FILE_BYTES + 1)
    workspace = sync.Workspace(root, timeout=60)
    for answer in (workspace.grep_content("needle"), workspace.ls(), workspace.find_files("*.py")):
        assert ".gitignore is larger than 1,048,576 bytes" in answer
        assert "pass include_ignored=True" in answer
    assert "1 match" in workspace.grep_content("needle", include_ignored=True)
    assert "1 match" in workspace.grep_content("needle", "a.py")


class TestEmptyCwd:
    """An empty `cwd`, such as that of a variable that is not set, is no directory: `scan()` and four more took `.`."""

    CALLS: ClassVar[dict[str, tuple[Any, ...]]] = {
        **STREAMS,
        "grep": ("needle",),
        "search_messages": ("needle",),
        "search_history": ("needle",),
        "coverage": (),
        "why": ("file",),
        "tree": (),
        "tree_text": (),
        "outline": ("file",),
        "references": ("needle",),
        "expand": (),
        "replace": ("needle", "other"),
        "replace_code": ("needle", "other"),
        "search_code": ("needle",),
        "undo": (),
        "watch": ("needle",),
    }

    @pytest.fixture(autouse=True)
    def here(self, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(plant({"file": "needle\n", "below/file": "needle\n"}))

    def test_each_call_with_a_directory_is_here(self) -> None:
        functions = {name: one for name in dir(sync) if inspect.isfunction(one := getattr(sync, name))}
        assert {name for name, one in functions.items() if "cwd" in inspect.signature(one).parameters} == {*self.CALLS}

    @pytest.mark.parametrize("operation", CALLS)
    def test_empty_cwd_is_an_error(self, operation: str) -> None:
        arguments = self.CALLS[operation]
        if operation == "expand":
            arguments = (next(sync.search("needle", paths="file")),)
        named = {"lang": "python"} if operation in ("search_code", "replace_code") else {}
        with pytest.raises(FileNotFoundError, match="cwd does not exist, because it is empty"):
            getattr(sync, operation)(*arguments, **named, cwd="")

    @pytest.mark.parametrize("place", [Directory("below"), Directory("")])
    def test_empty_directory_of_a_place_is_an_error(self, place: Directory) -> None:
        with pytest.raises(FileNotFoundError, match="cwd does not exist"):
            list(sync.search("needle", cwd="" if place.path else ".", where=place))

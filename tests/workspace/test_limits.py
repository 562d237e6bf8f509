"""Hostile ignore files, depths and arguments: bounded work, in worker threads, within the time limit of a call."""

import os
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import sync
from ripwrap._ignore.globs import GlobRegex, SteppingPattern, glob_pattern
from ripwrap._ignore.rules import MAX_RULES, MAX_RULES_BYTES, IgnoreStack, outer_rules, read_rules
from ripwrap._ripgrep.literals import literals_of, required_literals
from ripwrap._ripgrep.protocols import Step
from ripwrap._ripgrep.runner import run_blocking
from ripwrap._system.concurrency import CANCELLED, Cancellation
from ripwrap.models import PathError, Submatch
from ripwrap.results import FileMatches, GrepMatch
from ripwrap.workspace.arguments import MAX_ARGUMENT_CHARS, comma_separated
from ripwrap.workspace.deny import DenyRules
from ripwrap.workspace.dispatch import GRACE, CallRunner, MissingRg
from ripwrap.workspace.notes import notes_of
from ripwrap.workspace.redact import Redacted
from ripwrap.workspace.sandbox import Sandbox
from ripwrap.workspace.scope import Scope, half
from ripwrap.workspace.shown_lines import content_matches
from support.counting import executed_lines
from support.effort import times
from support.tools import TOOLS

Plant = Callable[..., Path]

PIECES = (
    *(
        "a",
        "a/",
        "../",
        "./",
        "~/",
        "//",
        "(",
        "(?:",
        "[",
        "[a-",
        "{a,",
        "{",
        "}",
        "\\",
        ",",
        "a,",
        "*",
        "**/",
        "a*",
        "?",
    ),
    *("!", "|", "x|", "^", "$", "#", "-", "--", " ", "\n", "\t", "\0", "1-2,", "a{9}", "(?i)", "\u0301", "é", "\u202e"),
    *("\udcff", "\ud800", "a.b.", "a b ", "42·k7q", "=", '"', "'"),
)
TEXTS = [
    (tool, name)
    for tool, model in TOOLS.items()
    for name, field in model.model_fields.items()
    if field.annotation is str or "str" in str(field.annotation)
]
NEEDED = {
    "grep_content": {"pattern": "f"},
    "codebase_search": {"query": "f"},
    "read_file": {"path": "a.py"},
    "resolve": {"anchor": "a.py#1·000"},
    "replace_content": {"pattern": "f", "replacement": "g"},
}
LIMIT = f"the arguments have more than {MAX_ARGUMENT_CHARS:,} characters"


@pytest.fixture
def workspace(plant: Plant) -> Iterator[sync.Workspace]:
    root = plant({"a.py": "def f(): pass\n", "sub/b.py": "x = 1\n"})
    with sync.Workspace(root, deny=ripwrap.Workspace.SECRETS, anchors=True, write=True, redact=True) as made:
        yield made


def ratio(work: Callable[[int], object], size: int) -> float:
    """Return by which factor the executed lines grow if the size is doubled; 2 is linear, and 4 is quadratic."""
    work(size)  # fill caches
    return executed_lines(lambda: work(2 * size)) / executed_lines(lambda: work(size))


@pytest.mark.parametrize(("tool", "name"), TEXTS)
def test_long_arguments_are_refused_before_any_work(workspace: sync.Workspace, tool: str, name: str) -> None:
    for piece in PIECES:
        text = piece * (times(50_000, 1_000_000) // len(piece))
        for value in (text, [text], [piece] * 50_000):
            if name != "ignore" and not isinstance(value, str):
                continue
            given = {**NEEDED.get(tool, {}), name: value}
            assert executed_lines(partial(workspace.call, tool, given)) < 3_000
            assert LIMIT in workspace.call(tool, given)


def test_many_and_long_names_of_arguments_are_refused(workspace: sync.Workspace) -> None:
    assert LIMIT in workspace.call("ls", {"a" * 50_000: 1})
    assert LIMIT in workspace.call("ls", {f"a{n}": 1 for n in range(10_000)})
    assert LIMIT in workspace.call("ls", {"ignore": [["a"] * 10_000] * 10_000})
    assert LIMIT in workspace.call("ls", '{"path": "' + "a" * 300_000 + '"}')


@pytest.mark.parametrize("tool", ["grep_content", "find_files", "ls", "tree", "codebase_search", "read_file"])
def test_long_paths_are_refused_at_once(workspace: sync.Workspace, tool: str) -> None:
    for path in ("a/" * 5_000, "../" * 2_000, "é" * 4_000, "~/" * 3_000):
        assert "no path can have more than 4,095;" in workspace.call(tool, {**NEEDED.get(tool, {}), "path": path})
    said = workspace.call(tool, {**NEEDED.get(tool, {}), "path": "sub/" + "é" * 128})
    assert "no name in a path can have more than 255;" in said
    assert "4,095" in workspace.call("resolve", {"anchor": "a/" * 4_000 + "#42·k7q"})


def test_raw_access_refuses_long_paths(workspace: sync.Workspace) -> None:
    for call in (workspace.read_bytes, workspace.file_info, workspace.list_directory):
        with pytest.raises(ValueError, match="4,095"):
            call("a/" * 500_000)


@pytest.mark.parametrize("start", ["", "/", "~/"])
def test_work_for_a_path_is_linear_in_its_depth(workspace: sync.Workspace, start: str) -> None:
    sandbox = Sandbox(workspace.roots, deny=ripwrap.Workspace.SECRETS)

    def locate(depth: int) -> None:
        with pytest.raises((OSError, ValueError, ripwrap.AccessDeniedError)):
            sandbox.locate(start + "a/" * depth)

    assert ratio(locate, 500) < 3


def test_denied_paths_of_a_deep_tree_take_linear_time() -> None:
    def ask(depth: int) -> None:
        rules = DenyRules(["secrets/", "*.pem"])
        for level in range(1, depth):
            assert rules.glob_of("a/" * level + "b") is None

    assert ratio(ask, 200) < 3
    rules = DenyRules(["secrets/"])
    assert rules.glob_of("a/secrets/b/c") == rules.glob_of("a/secrets/b/d") == "secrets/"
    assert rules.glob_of("a/b/c") is None


def test_globs_and_patterns_are_split_in_linear_time() -> None:
    assert ratio(lambda size: comma_separated("a" * size + ",{b,c}"), 1_000) < 1.5
    literals = required_literals(["a" * MAX_ARGUMENT_CHARS], {})
    assert literals is not None
    assert max(map(len, literals_of(literals))) <= 2_000


@pytest.mark.parametrize(
    "glob", ["*a*a*b", "**/a/**/a/**/b", "a*" * 2_000, "**/" * 1_000 + "b", "{a*,a*,a*,a*}" * 200, "[a-z]" * 800]
)
def test_hostile_globs_match_in_bounded_time(glob: str) -> None:
    pattern = glob_pattern(glob, include=True, allow_unclosed=True)
    assert isinstance(pattern, SteppingPattern) or glob.startswith(("[", "**/**"))
    for path in ("a" * 4_000, "a/" * 2_000, "/" * 4_000):
        assert executed_lines(partial(pattern.match_file, path)) < 300_000


def test_long_names_of_items_are_matched_without_backtracking() -> None:
    pattern = glob_pattern("*a*b", include=True, allow_unclosed=True)
    assert isinstance(pattern, GlobRegex)
    assert pattern.match_file("a" * 65_000) is None
    # A regex runs no lines of Python, and would need quadratic time.
    assert executed_lines(lambda: pattern.match_file("a" * 65_000)) > 1_000
    assert pattern.match_file("a" * 65_000 + "b") is True


def test_huge_ignore_file_is_read_in_bounded_memory(tmp_path: Path) -> None:
    file = tmp_path / ".gitignore"
    with file.open("wb") as opened:
        opened.write(b"a\n")
        opened.truncate(3 << 30)
    tracemalloc.start()
    rules = read_rules(str(file))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [rule.text for rule in rules.rules] == ["a"]
    assert rules.cut == str(file)
    assert peak < 10 << 20


@pytest.mark.slow
def test_only_the_first_rules_are_applied_and_a_note_says_so(plant: Plant) -> None:
    many = "".join(f"rule{number}\n" for number in range(MAX_RULES + 1_000))
    root = plant({".gitignore": f"first\n{many}last\n", "sub/first": "", "sub/last": "", "sub/deep/c": ""})
    (root / "sub" / ".ignore").write_text("a" * 5_000 + "\nshort\n")
    text, cut = outer_rules(str(root), "sub")
    assert (text.startswith("/**/first\n"), cut, len(text) <= MAX_RULES_BYTES) == (True, [".gitignore"], True)
    answer = sync.Workspace(root).ls("sub")
    assert "Not all rules of .gitignore were applied" in answer
    assert "last" in answer
    assert "first" not in answer.partition("Not all")[0]
    rules = read_rules(str(root / "sub" / ".ignore"))
    assert ([rule.text for rule in rules.rules], bool(rules.cut)) == (["short"], True)
    found = sync.Workspace(root).find_files("*", entry_type="directory")
    assert "not all rules are applied" in found


@pytest.mark.slow
def test_rules_of_a_deep_directory_fit_into_one_bounded_text(tmp_path: Path) -> None:
    sub = "d/" * 120 + "d"
    (tmp_path / sub).mkdir(parents=True)
    for level in range(1, 120):
        (tmp_path / ("d/" * level) / ".ignore").write_text("x\n" * 500)
    text, cut = outer_rules(str(tmp_path.resolve()), sub.replace("/", os.sep))
    assert len(text) <= MAX_RULES_BYTES
    assert cut


def test_reading_ignore_files_is_linear_in_the_depth(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    here = root
    for _ in range(200):
        here /= "d"
        here.mkdir()
        (here / ".gitignore").write_text("x\n")

    def read(depth: int) -> None:
        IgnoreStack.above(str(root), os.sep.join(["d"] * depth))

    assert ratio(read, 100) < 3


@pytest.mark.posix
def test_ignore_file_behind_a_link_out_of_the_root_has_no_rules(plant: Plant, tmp_path: Path) -> None:
    root = plant({"sub/a": "x"})
    outside = tmp_path / "rules of another directory"
    outside.write_text("a\n")
    (root / ".ignore").symlink_to(outside)
    assert outer_rules(os.path.realpath(root), "sub") == ("", [])


@pytest.mark.posix
@pytest.mark.parametrize("kind", [".gitignore", ".ignore", ".rgignore"])
def test_pipe_as_an_ignore_file_does_not_block(plant: Plant, kind: str) -> None:
    root = plant({"sub/a.py": "", "sub/deep/b.py": ""})
    os.mkfifo(root / kind)
    os.mkfifo(root / "sub" / "deep" / kind)
    assert read_rules(str(root / kind)).rules == ()
    workspace = sync.Workspace(root, timeout=1)
    assert "sub/deep/" in workspace.find_files("*", entry_type="directory")  # without rg
    assert f"{kind} is no regular file, so rg was not started" in workspace.ls()
    (root / kind).unlink()
    assert "stopped after 1 second" in workspace.ls()  # rg blocks, and is stopped


@pytest.mark.anyio
async def test_ignore_files_are_read_in_a_worker_thread(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    root = plant({".gitignore": "x\n", "sub/a.py": "a\n"})
    threads: set[int] = set()
    lstat = os.lstat

    def recording(path: str, *args: int, **options: int) -> os.stat_result:
        if str(path).startswith(str(root)):
            threads.add(threading.get_ident())
        return lstat(path, *args, **options)

    workspace = ripwrap.Workspace(root, deny=["*.pem"])
    monkeypatch.setattr(os, "lstat", recording)
    await workspace.ls("sub")
    await workspace.grep_content("a", "sub")
    await workspace.read_file("sub/a.py")
    assert threads
    assert threading.get_ident() not in threads


class Recorder:
    """Runner that records time limits."""

    def __init__(self) -> None:
        self.seconds: list[float | None] = []

    async def collect(self, step: Any) -> Any:
        self.seconds.append(step.timeout)

    async def call(self, work: Callable[[], Any], *, seconds: float | None = None, lock: Any = None) -> Any:
        self.seconds.append(seconds)
        if seconds is not None and seconds <= GRACE:
            raise TimeoutError
        return work()


def test_all_steps_of_a_call_share_one_time_limit() -> None:
    recorder: Any = Recorder()
    nothing: Any = None
    step: Step[Any] = Step(nothing, lambda: nothing, 5.0)
    for limit in (0.0, 1.0, None):
        runner = CallRunner(recorder, limit, MissingRg())
        run_blocking(runner.collect(step))
        if limit != 0.0:
            run_blocking(runner.call(lambda: None))
    first, second, third, fourth, fifth = recorder.seconds
    assert (first, fourth, fifth) == (0.0, 5.0, None)
    assert second is not None
    assert third is not None
    assert second <= 1.0 < third <= 1.0 + GRACE
    with pytest.raises(TimeoutError, match=r"more than timeout=0.0 seconds"):
        run_blocking(CallRunner(recorder, 0.0, MissingRg()).call(lambda: None))
    assert (half(None), half(3.0)) == (None, 1.5)


def test_lines_of_a_match_are_clipped_in_linear_time() -> None:
    def clip(lines: int) -> None:
        hits = tuple(Submatch(match="x ", start=4 * n, end=4 * n + 2) for n in range(lines))
        match = GrepMatch(path="a", lines="x y\n" * lines, line_number=1, absolute_offset=0, submatches=hits)
        content_matches(FileMatches(path="a", matches=(match,), total_matches=1), "a", 80)

    assert ratio(clip, 300) < 3


@pytest.mark.parametrize("lines", [100, 3_000])
def test_long_multi_line_match_is_cut_and_the_rest_can_be_read(plant: Plant, lines: int) -> None:
    """A match of many lines, which rg has joined, is cut to the budget, and the answer says so."""
    folder = plant({"joined.txt": "x y\n" * lines + "end\nx y\n"})
    workspace = sync.Workspace(folder, max_chars=2_000)
    found = workspace.grep_content_result(r"x\s", multiline=True)
    counted = workspace.grep_content_result(r"x\s", multiline=True, output_mode="count")
    assert found.total_matches == counted.total_matches == lines + 1
    assert [file.count for file in found.files] == [file.count for file in counted.files] == [lines + 1]
    (first, *others) = found.matches
    if lines == 100:
        assert (first.match.count("\n"), len(others), found.truncated) == (lines - 1, 1, False)
        return
    assert found.truncated and not others and len(str(found)) <= 2_000
    shown = first.match.count("\n") + 1
    assert f"is cut in line {shown}; read_file(start_line={shown}) shows its other lines" in found.message
    assert "x y" in workspace.read_file("joined.txt", start_line=shown)
    rest = workspace.grep_content_result(r"x\s", multiline=True, offset=found.next_offset or 0)
    assert [one.line for one in rest.matches] == [lines + 2]


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("redact", [False, True])
def test_cut_match_never_looks_whole(plant: Plant, ends: str, redact: bool) -> None:
    """With masked secrets, short lines, and any length near the budget."""
    for lines in range(180, 220, 3):
        secret = 'token = "ghp_' + "a1B2" * 9 + '"'
        folder = plant({"f": ends.join([secret, *["x y"] * lines, ""])})
        found = sync.Workspace(folder, max_chars=2_000, redact=redact).grep_content_result(
            r"(token.*\n)?(x y\s+)+", multiline=True
        )
        (match,) = found.matches
        assert found.truncated == (match.match.count("\n") + 1 < lines + 1)


def test_work_for_a_match_does_not_grow_with_the_lines_that_are_left_out(plant: Plant) -> None:
    """The lines of a joined match are masked and cut only as far as an answer can show them."""
    numbers: list[int] = []
    for lines in (3_000, 30_000):
        masked: list[str] = []

        def mask(text: str, number: int, masked: list[str] = masked) -> Redacted:
            masked.append(text)
            return Redacted(text)

        hits = tuple(Submatch(match="x ", start=at, end=at + 2) for at in range(0, lines * 4, 4))
        match = GrepMatch(path="a", lines="x y\n" * lines, line_number=1, absolute_offset=0, submatches=hits)
        content_matches(FileMatches(path="a", matches=(match,), total_matches=1), "a", 80, mask, max_chars=2_000)
        numbers.append(len(masked))
    assert numbers[0] == numbers[1] < 1_000


def test_time_limit_holds_while_an_answer_is_made() -> None:
    """The steps after rg end in the time limit of the call."""
    hit = Submatch(match="x", start=0, end=1)
    match = GrepMatch(path="a", lines="x\n", line_number=1, absolute_offset=0, submatches=(hit,))
    file = FileMatches(path="a", matches=(match,) * 3, total_matches=3)
    token = CANCELLED.set(Cancellation(0))
    try:
        with pytest.raises(TimeoutError):
            content_matches(file, "a", 80)
    finally:
        CANCELLED.reset(token)


@pytest.mark.slow  # 21 MiB
def test_joined_matches_that_are_too_long_are_not_called_a_line(plant: Plant) -> None:
    """A record over 20 MiB may have the lines of many matches."""
    folder = plant({"big": "x y\n" * (1 << 20)})
    (error,) = sync.grep(r"x\s", cwd=folder, multiline=True, timeout=None).errors
    assert error.message == "1 block of joined matches left out, longer than 20 MiB in rg's JSON"
    answer = sync.Workspace(folder, timeout=60).grep_content(r"x\s", multiline=True)
    assert "1 block of joined matches left out, too long to show, e.g. in big" in answer


def test_few_of_many_unreadable_paths_are_checked(plant: Plant) -> None:
    """Whether a path leads out of the roots is a look-up, and a search may have any number of errors."""
    location = Sandbox([plant({"a": ""})]).locate(".")
    checked: list[str] = []

    def allowed(path: str) -> bool:
        checked.append(path)
        return path != "f00000"

    scope = Scope(location, {}, None, allowed=allowed)
    errors = [PathError(path=f"f{number:05}", kind="denied", message="denied") for number in range(3_000)]
    (note,) = notes_of(errors, None, scope)
    assert note.startswith("at least 999 paths could not be read, the first: f00001")
    assert len(checked) == 1_000
    (note,) = notes_of(errors[:1_000], None, scope)
    assert note.startswith("999 paths could not be read")

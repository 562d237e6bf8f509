"""A dense search counts its matches first; its answer is that of one run of rg, with every rg."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from ripwrap import GrepResult
from ripwrap._operations.grep import grep_request, run_grep
from ripwrap._operations.pagination import Density
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.protocols import Collector, Step
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.runner import AsyncRunner, BlockingRunner, run_blocking
from ripwrap.binary import RgBinary
from ripwrap.errors import RipwrapError
from support.effort import times
from support.grep import same
from support.outcomes import cut
from support.patterns import ENCODINGS, NOISE, Sample, encoded, samples
from support.waiting import TIMEOUTS

pytestmark = pytest.mark.usefixtures("leaks_nothing")

Plant = Callable[..., Path]
C = TypeVar("C", bound=Collector)
ALWAYS, NEVER = Density(matches=0, per_second=0), Density(matches=10**9)
"""With `ALWAYS`, matches are counted first if there are as many as on a page."""


class Pieces:
    """Collector that passes rg's output on in small pieces, because all output for a small tree comes at once."""

    def __init__(self, inner: Collector) -> None:
        self.inner = inner
        self.ended = False

    def feed(self, chunk: bytes) -> None:
        for piece in cut(chunk, [100]):
            self.inner.feed(piece)
        self.ended = self.inner.ended

    def end_run(self, end: Exit) -> None:
        self.inner.end_run(end)
        self.ended = self.inner.ended

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        self.inner.finish(end, timed_out=timed_out)


class Runs(BlockingRunner):
    """Runner that stores its queries, and edits files before some of its runs."""

    def __init__(self, rg: RgBinary | Path, edits: Mapping[int, Callable[[], object]] | None = None) -> None:
        super().__init__(rg)
        self.queries: list[Query] = []
        self._edits = edits or {}

    async def collect(self, step: Step[C]) -> C:
        self._edits.get(len(self.queries), lambda: None)()
        self.queries.append(step.query)
        in_pieces = Step(step.query, lambda: Pieces(step.collector()), step.timeout)
        inner: Any = (await super().collect(in_pieces)).inner
        return cast("C", inner)


def grep(run: Runs, pattern: str | list[str], cwd: Path, density: Density = ALWAYS, **options: Any) -> GrepResult:
    """Run `grep()` with its arguments."""
    others: Any = {"limit": 2, "max_files": None, "offset": 0, "timeout": None, "paths": (), **options}
    paths, limit, max_files, offset, timeout = map(others.pop, ("paths", "limit", "max_files", "offset", "timeout"))
    request = grep_request(pattern, cwd, paths, limit, max_files, offset, timeout, others, explain=False)
    return run_blocking(run_grep(run, request, density))


@pytest.fixture
def tree(plant: Plant) -> Path:
    return plant(
        {f"{folder}/{name}": "x\no\nx\no\no\nx\n" for folder in ("a", "a-b", "c") for name in ("-f", "é", "g")}
    )


def test_dense_search_searches_only_the_files_of_its_page_with_context(rg: RgBinary, tree: Path) -> None:
    run = Runs(rg)
    result = grep(run, "x", tree, offset=4, limit=4, context=1)
    assert same(result, grep(Runs(rg), "x", tree, NEVER, offset=4, limit=4, context=1))
    assert (result.total_matches, result.files_matched, result.exact, result.next_offset) == (27, 9, True, 8)
    first, counting, page = run.queries
    assert first == grep_request("x", tree, (), 4, None, 4, None, {"context": 1}, explain=False).query
    assert counting.stats and counting.paths == (".",)
    assert [file.path for file in result.files] == [*page.paths]
    assert len(page.paths) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"multiline": True}, {"max_count": 5}, {"invert_match": True}, {"null_data": True}, {"binary": True},
        {"text": True}, {"mmap": True}, {"limit": 1001}, {"limit": None}, {"paths": ["a", "a/g"]},
        {"paths": ["a"] * 11},
    ],
    ids=str,
)  # fmt: skip
def test_search_that_cannot_be_counted_first_takes_one_run(
    newest: RgBinary, tree: Path, options: dict[str, Any]
) -> None:
    run = Runs(newest)
    density = replace(ALWAYS, matches=-options.get("limit", 2)) if options.get("limit", 2) else ALWAYS
    assert same(grep(run, "x|^$", tree, density, **options), grep(Runs(newest), "x|^$", tree, NEVER, **options))
    assert len(run.queries) == 1


def test_search_without_many_matches_takes_one_run(rg: RgBinary, tree: Path) -> None:
    for density in (Density(), Density(matches=26), Density(matches=0, per_second=1e12)):
        run = Runs(rg)
        grep(run, "x", tree, density)
        assert len(run.queries) == 1


@pytest.mark.fact(58)
def test_file_with_a_late_nul_byte_takes_one_more_run(rg: RgBinary, tree: Path) -> None:
    """In a binary file, rg's counts leave out the matches, and its statistics count them."""
    (tree / "z").write_bytes(b"x\n" + b"o\n" * 50_000 + b"\0x\n")
    run = Runs(rg)
    result = grep(run, "x", tree)
    assert same(result, grep(Runs(rg), "x", tree, NEVER))
    assert result.total_matches == 28 and "taken for binary" in result.message
    assert len(run.queries) in (1, 3)  # rg may write this file first


@pytest.mark.slow
@pytest.mark.parametrize("edit", ["more", "fewer", "gone", "binary", "all gone"])
def test_file_that_changes_after_it_was_counted_takes_one_more_run(rg: RgBinary, tree: Path, edit: str) -> None:
    def change() -> None:
        first, content = tree / "a/-f", (tree / "a/-f").read_bytes()
        match edit:
            case "more":
                first.write_bytes(content + b"x\n")
            case "fewer":
                first.write_bytes(b"x\n")
            case "binary":
                first.write_bytes(content + b"\0")
            case "gone":
                first.unlink()
            case _:
                for path in [*tree.glob("*/*")]:
                    path.unlink()

    run = Runs(rg, {2: change})
    result = grep(run, "x", tree, limit=5)
    assert same(result, grep(Runs(rg), "x", tree, NEVER, limit=5))
    assert len(run.queries) == 4


@pytest.mark.slow
@pytest.mark.parametrize("late", [1, 2])
def test_timeout_of_a_later_run_keeps_the_matches_of_the_first(
    stand_in: Callable[..., Path], rg: RgBinary, tree: Path, late: int
) -> None:
    """The stand-in runs rg; the run that counts, or the run for the page, then takes long."""
    slow = "'--stats' in sys.argv" if late == 1 else "any(one.startswith('--max-count') for one in sys.argv)"
    wait = f"sys.stdout.flush(); {slow} and time.sleep(60)"
    body = f"import subprocess\ncode = subprocess.run([{rg.path!r}, *sys.argv[1:]]).returncode\n{wait}\nsys.exit(code)"
    for timeout in TIMEOUTS:
        run = Runs(stand_in(body))
        result = grep(run, "x", tree, limit=2, timeout=timeout)
        if len(run.queries) == 1 + late and result.total_matches == 27:  # on a slow machine, a run has not begun
            break
    assert (result.stop_reason, result.exact, result.truncated) == ("timeout", False, True)
    assert result.total_matches == 27 and result.files_matched == 9
    assert sum(len(file.matches) for file in result.files) == 2


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
@pytest.mark.slow
async def test_dense_search_is_found_without_a_seam(rg: RgBinary, plant: Plant, anyio_backend: str) -> None:
    folder = plant({f"{number}/f": "x\n" * 1000 for number in range(30)})
    run = AsyncRunner(rg)
    request = grep_request("x", folder, (), 100, None, 0, None, {}, explain=False)
    expected = await run_grep(run, request, NEVER)
    assert same(await run_grep(run, request, Density(per_second=0)), expected)
    assert same(await run_grep(run, request), expected)


NAMES = ("a.txt", "sub/b.py", "sub/deep/c.c", "d.bin", "-e", "f \u00e9.txt", "\udcff.txt", ".h", "i.log", "sub/k\n2")
FLAGS = st.fixed_dictionaries(
    {},
    optional={
        name: st.booleans()
        for name in (
            "ignore_case", "smart_case", "fixed_strings", "word_regexp", "line_regexp", "crlf", "no_unicode",
            "hidden", "follow", "no_ignore", "no_line_number", "include_git",
        )
    },
)  # fmt: skip
OTHERS = st.sampled_from(
    [
        {}, {}, {}, {"invert_match": True}, {"multiline": True}, {"max_count": 1}, {"text": True}, {"binary": True},
        {"null_data": True}, {"mmap": True}, {"mmap": False}, {"glob": "*.txt"}, {"glob": "!sub"}, {"type": "py"},
        {"pcre2": True}, {"engine": "auto"}, {"encoding": "latin1"}, {"encoding": "none"}, {"sort": "path"},
        {"sortr": "path"}, {"sort": "modified"}, {"threads": 1}, {"max_depth": 1}, {"max_filesize": "50K"},
        {"one_file_system": True}, {"paths": ["sub", "."]}, {"paths": ["./sub/deep/.."]}, {"ignore_file": "rules"},
    ]
)  # fmt: skip
PAGES = st.fixed_dictionaries(
    {"limit": st.integers(0, 4), "offset": st.integers(0, 4)},
    optional={
        "max_files": st.integers(0, 3),
        "context": st.integers(0, 3),
        "before_context": st.integers(0, 3),
        "after_context": st.integers(0, 3),
    },
)


@pytest.mark.rg_ends
@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.posix
@pytest.mark.timeout(3600)
def test_two_runs_equal_one_run_for_any_options_and_edits(tmp_path: Path, rg: RgBinary) -> None:
    root = tmp_path / "tree"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / ".ignore").write_text("*.log\n")
    (root / "rules").write_text("d.*\n")
    (root / "link").symlink_to("sub")

    @st.composite
    def contents(draw: st.DrawFn, texts: list[str]) -> bytes:
        parts = draw(st.lists(st.one_of(st.sampled_from(texts), NOISE), max_size=8))
        return encoded("\n".join(parts), draw(st.sampled_from(ENCODINGS)))

    def write(files: Mapping[str, bytes | None]) -> None:
        for name, content in files.items():
            if content is None:
                (root / name).unlink(missing_ok=True)
            else:
                (root / name).write_bytes(content)

    @settings(max_examples=times(9, 2000), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data(), st.lists(samples(), min_size=1, max_size=2), FLAGS, OTHERS, PAGES)
    def compare(
        data: st.DataObject, found: list[Sample], flags: dict[str, Any], others: dict[str, Any], page: dict[str, Any]
    ) -> None:
        texts = [text for sample in found for text in (*sample, sample[1].swapcase())]
        patterns, options = [pattern for pattern, _ in found], {**flags, **others, **page}
        files = data.draw(st.fixed_dictionaries({name: st.none() | contents(texts) for name in NAMES}))
        edits = data.draw(st.dictionaries(st.sampled_from(NAMES), st.none() | contents(texts), max_size=3))
        edited_before = data.draw(st.sampled_from([0, 1, 2]))
        write(files)
        old = _answer(Runs(rg), patterns, root, NEVER, options)
        run = Runs(rg, {edited_before: lambda: write(edits)} if edited_before else {})
        result = _answer(run, patterns, root, ALWAYS, options)
        event(f"{len(run.queries)} runs")
        if len(run.queries) <= edited_before or not edited_before:
            assert _equal(result, old)
            return
        new = _answer(Runs(rg), patterns, root, NEVER, options)
        if _equal(result, new):
            return
        # Files were edited between the count and the search of the page: a file of the page has as many matches as
        # before, and the totals are those of the count.
        assert edited_before == 2 and isinstance(result, GrepResult) and isinstance(old, GrepResult)
        event("totals of the count")
        assert _numbers(result) == _numbers(old)
        whole = grep(Runs(rg), patterns, root, NEVER, **{**options, "limit": None, "offset": 0, "max_files": None})
        now = {(file.path, match.line_number, match.lines) for file in whole.files for match in file.matches}
        assert {(file.path, match.line_number, match.lines) for file in result.files for match in file.matches} <= now

    compare()


def _answer(
    run: Runs, patterns: list[str], root: Path, density: Density, options: dict[str, Any]
) -> GrepResult | type[Exception]:
    try:
        return grep(run, patterns, root, density, **options)
    except (RipwrapError, FileNotFoundError) as error:
        return type(error)


def _equal(result: GrepResult | type[Exception], expected: GrepResult | type[Exception]) -> bool:
    if isinstance(result, GrepResult) and isinstance(expected, GrepResult):
        return same(result, expected)
    return result is expected


def _numbers(result: GrepResult) -> tuple[object, ...]:
    files = [(file.path, file.total_matches, len(file.matches)) for file in result.files]
    return result.total_matches, result.files_matched, result.exact, result.next_offset, files

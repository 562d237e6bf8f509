"""Many roots in one call: what comes back, what fails as data, and what ends early."""

import inspect
import itertools
import os
import pickle
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

import ripwrap
from ripwrap import (
    GlobError,
    PatternError,
    RankedChunk,
    Repositories,
    Root,
    RootCount,
    RootError,
    RootFile,
    RootMatch,
    sync,
)
from ripwrap.binary import RgBinary
from ripwrap.repositories.requests import Lease, ResultPage, ResultPart, RootRequest, RootTask, SearchRequest
from ripwrap.repositories.scheduler import BUFFER, Schedule, arrivals_blocking
from support.paths import native

Plant = Callable[..., Path]

FILES = {
    "shop/cart.py": "# TODO: taxes\nclass Cart:\n    def total(self):  # TODO: discounts\n        return 1\n",
    "shop/till.py": "def pay(cart):\n    return cart.total()  # TODO: cards\n",
    "bank/account.py": "class Account:\n    def total(self):\n        return 2  # TODO: interest\n",
    "post/letter.py": "def send(letter):\n    return letter\n",
}


@pytest.fixture
def roots(plant: Plant) -> Path:
    return plant(FILES)


@pytest.fixture(params=["async", "blocking"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(api: str, roots: Path, rg: RgBinary) -> Callable[..., "Driver"]:
    """Return a function that makes `Repositories` of the API, for the planted roots unless it is given others."""
    kind: Any = Repositories if api == "async" else sync.Repositories

    def made(*others: Any, **settings: Any) -> Driver:
        return Driver(kind(*(others or (roots / "*",)), **{"rg": rg, **settings}))

    return made


class Driver:
    """Caller of `Repositories` that collects what either API yields or returns."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **settings: Any) -> Any:
            answer = getattr(self.target, name)(*arguments, **settings)
            if inspect.isasyncgen(answer):
                return anyio.run(_list, cast("AsyncGenerator[Any]", answer))
            if inspect.iscoroutine(answer):
                return anyio.run(_await, answer)
            return list(answer) if inspect.isgenerator(answer) else answer

        return call


async def _list(items: AsyncGenerator[Any]) -> list[Any]:
    return [item async for item in items]


async def _await(answer: Awaitable[Any]) -> Any:
    return await answer


def places(matches: Iterable[RootMatch]) -> list[tuple[str, str | None, int | None]]:
    return [(match.root, match.path, match.line_number) for match in matches]


ALL = [("bank", "account.py", 3), ("shop", "cart.py", 1), ("shop", "cart.py", 3), ("shop", "till.py", 2)]


def test_search_yields_the_matches_of_all_roots(make: Callable[..., Driver]) -> None:
    assert sorted(places(make().search("TODO"))) == ALL
    assert places(make().search("TODO", order="root", sort="path")) == ALL
    assert places(make().search("TODO", order="root", sort="path", per_root=2)) == ALL[:3]
    assert places(make().search("TODO", order="root", sort="path", limit=2)) == ALL[:2]
    assert make().search("TODO", limit=0) == []
    first = make().search("TODO", order="root", limit=1)[0]
    assert first == RootMatch.model_validate(first.model_dump())
    assert first.text == "        return 2  # TODO: interest"


@pytest.mark.slow
def test_search_through_an_executor_yields_the_same(make: Callable[..., Driver]) -> None:
    with ThreadPoolExecutor(2) as executor:
        assert places(make(executor=executor).search("TODO", order="root")) == ALL
        assert places(make(executor=executor).search("TODO", order="root", per_root=1)) == [ALL[0], ALL[1]]


def test_context_yields_no_lines_of_its_own(make: Callable[..., Driver]) -> None:
    assert sorted(places(make().search("TODO", context=1))) == ALL


@pytest.mark.slow
def test_files_are_in_path_order_in_each_root(make: Callable[..., Driver]) -> None:
    found = make().files(order="root")
    assert found == [RootFile(root=name.partition("/")[0], path=name.partition("/")[2]) for name in sorted(FILES)]
    assert len(make().files(per_root=1)) == 3
    assert len(make().files(glob="t*.py")) == 1


def test_count_has_a_number_for_each_root(make: Callable[..., Driver]) -> None:
    assert make().count("TODO", order="root") == [
        RootCount(root="bank", count=1, files=1),
        RootCount(root="post", count=0, files=0),
        RootCount(root="shop", count=3, files=2),
    ]


def test_grep_takes_matches_round_robin(make: Callable[..., Driver], roots: Path) -> None:
    whole = make().grep("TODO", context=0)
    assert (whole.total_matches, whole.files_matched, whole.roots_matched, whole.roots_searched) == (4, 3, 2, 3)
    assert whole.exact and not whole.truncated and not whole.errors
    assert [(one.root, len(one), one.directory) for one in whole] == [
        ("bank", 1, str(roots / "bank")),
        ("shop", 3, str(roots / "shop")),
    ]
    assert whole.message == "4 matches in 3 files of 2 roots (3 roots searched)."
    page = make().grep("TODO", limit=3, context=0)
    assert [len(one) for one in page] == [1, 2]
    assert page.truncated and page.exact and page.total_matches == 4
    assert str(page) == native(
        "bank/account.py:3:        return 2  # TODO: interest\n"
        "shop/cart.py:1:# TODO: taxes\n"
        "shop/cart.py:3:    def total(self):  # TODO: discounts\n"
        "3 of 4 matches in 3 files of 2 roots (3 roots searched)."
    )
    assert [len(one) for one in make().grep("TODO", per_root=1)] == [1, 1]
    none = make().grep("nothing")
    assert not none and len(none) == 0 and none.message == "No matches in 3 roots."


@pytest.mark.slow
def test_grep_gives_each_root_the_page_of_grep(make: Callable[..., Driver], roots: Path, rg: RgBinary) -> None:
    found = make().grep("total|TODO", per_root=None)
    for one in found:
        alone = sync.grep("total|TODO", cwd=roots / one.root, rg=rg)
        assert (one.files, one.total_matches, one.files_matched) == (
            alone.files,
            alone.total_matches,
            alone.files_matched,
        )


QUERIES = ("Account", "where is pay defined", "send letters", "TODO taxes")


@pytest.mark.parametrize("query", ["cart total", *(pytest.param(query, marks=pytest.mark.slow) for query in QUERIES)])
def test_rank_equals_rank_over_the_directory_of_the_roots(
    make: Callable[..., Driver], roots: Path, rg: RgBinary, query: str
) -> None:
    with ThreadPoolExecutor(2) as executor:
        for settings in ({}, {"executor": executor}):
            ranked = make(**settings).rank(query)
            assert not ranked.errors
            assert prefixed(ranked) == sync.rank(query, cwd=roots, rg=rg)


def prefixed(chunks: Iterable[Any]) -> list[RankedChunk]:
    return [RankedChunk(**{**dict(one), "path": os.path.join(one.root, one.path)}) for one in chunks]


@pytest.mark.slow
def test_rank_without_results_is_empty(make: Callable[..., Driver]) -> None:
    assert len(make().rank("zebra")) == 0
    assert len(make().rank("cart", limit=0)) == 0
    with pytest.raises(ValueError, match="no word"):
        make().rank("?")


@pytest.mark.slow
def test_failed_root_is_data_and_the_others_go_on(make: Callable[..., Driver], roots: Path) -> None:
    (roots / "file").write_text("TODO\n")
    given = (roots / "gone", roots / "file", roots / "shop")
    found = make(*given).search("TODO", order="root", sort="path")
    assert [str(error) for error in found[:2]] == ["gone: the directory does not exist", "file: not a directory"]
    assert [(error.kind, error.error) for error in found[:2]] == [
        ("missing", "FileNotFoundError"),
        ("missing", "NotADirectoryError"),
    ]
    assert places(found[2:]) == ALL[1:]
    result = make(*given).grep("TODO")
    assert [error.root for error in result.errors] == ["gone", "file"]
    assert result.total_matches == 3 and not result.exact and result.truncated
    assert result.message == (
        "At least 3 matches in 2 files of 1 root (1 root searched). "
        "2 roots failed completely or in part. First error: gone: the directory does not exist."
    )
    assert [error.root for error in make(*given).rank("cart").errors] == ["gone", "file"]
    assert [type(one) for one in make(*given).count("TODO", order="root")] == [RootError, RootError, RootCount]
    assert [type(one) for one in make(*given).files(order="root")] == [RootError, RootError, RootFile, RootFile]


@pytest.mark.slow
def test_unreadable_path_makes_a_root_incomplete(make: Callable[..., Driver], roots: Path, unprivileged: Path) -> None:
    (roots / "shop/till.py").chmod(0)
    found = make(roots / "shop", rg=unprivileged).search("TODO")
    [error] = [one for one in found if isinstance(one, RootError)]
    assert (error.kind, [path.path for path in error.paths]) == ("incomplete", ["till.py"])
    assert len(found) == 3
    result = make(roots / "shop", rg=unprivileged).grep("TODO")
    assert result.total_matches == 2 and not result.exact
    assert result.errors[0].message.startswith("1 path could not be read, the first: till.py: Permission denied")
    counted = make(roots / "shop", rg=unprivileged).count("TODO")
    assert [type(one) for one in counted] == [RootCount, RootError]


@pytest.mark.slow
def test_time_limit_of_a_root_is_data(
    make: Callable[..., Driver], roots: Path, stand_in: Callable[..., Path], leaks_nothing: None
) -> None:
    slow = stand_in("import time; time.sleep(600)")  # longer than a test may take
    found = make(roots / "shop", roots / "bank", rg=slow).search("TODO", timeout=0.3, order="root")
    assert [(error.root, error.kind) for error in found] == [("shop", "timeout"), ("bank", "timeout")]
    assert found[0].message == "rg was stopped after timeout=0.3 seconds; allow more time"
    result = make(roots / "shop", rg=slow).grep("TODO", timeout=0.3)
    assert not result.exact and result.truncated


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "error"),
    [({"pattern": "("}, PatternError), ({"pattern": "x", "glob": "{"}, GlobError)],
)
def test_invalid_pattern_or_option_is_raised(
    make: Callable[..., Driver], settings: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        make().search(**settings)
    with pytest.raises(error):
        make().grep(**settings)
    with ThreadPoolExecutor(1) as executor, pytest.raises(error):
        make(executor=executor).search(**settings)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"max_cuont": 1}, "did you mean max_count"),
        ({"per_root": -1}, "per_root must be 0 or more"),
        ({"limit": -1}, "limit must be 0 or more"),
        ({"order": "size"}, "order must be 'arrival' or 'root', got 'size'"),
        ({"timeout": -1}, "timeout must be 0 seconds or more"),
        ({"passthru": True}, "passthru"),
    ],
)
def test_wrong_argument_is_raised_by_the_call(roots: Path, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Repositories(roots).search("x", **settings)


def test_missing_rg_is_raised(make: Callable[..., Driver], roots: Path) -> None:
    with pytest.raises(ripwrap.BinaryError, match="no-such-rg"):
        make(rg="no-such-rg").search("TODO")
    with ThreadPoolExecutor(1) as executor:
        found = make(roots / "shop", rg="no-such-rg", executor=executor).search("TODO")
    assert [error.error for error in found] == ["BinaryError"]


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["search", "files", "count", "grep", "rank"])
def test_progress_counts_every_root(make: Callable[..., Driver], operation: str) -> None:
    seen: list[tuple[int, int]] = []
    question = () if operation == "files" else ("TODO",)
    getattr(make(), operation)(*question, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_progress_that_is_not_a_function_is_refused(make: Callable[..., Driver]) -> None:
    with pytest.raises(TypeError, match="on_progress must be a function or None, got int"):
        make().search("TODO", on_progress=5)


@pytest.mark.slow
@pytest.mark.anyio
async def test_leaving_early_ends_every_rg(roots: Path, stand_in: Callable[..., Path], leaks_nothing: None) -> None:
    slow = stand_in(
        'import os, sys, time; print(\'{"type":"begin","data":{"path":{"text":"a"}}}\', flush=True)\n'
        'print(\'{"type":"match","data":{"path":{"text":"a"},"lines":{"text":"x"},"line_number":1,'
        '"absolute_offset":0,"submatches":[]}}\', flush=True); time.sleep(600)'
    )
    async with aclosing(Repositories(roots / "*", rg=slow).search("x")) as found:
        async for match in found:
            assert match.type == "match"
            break


def test_dropped_generator_ends_every_rg(roots: Path, rg: RgBinary, leaks_nothing: None) -> None:
    found = sync.Repositories(roots / "*", rg=rg).search("TODO")
    assert next(found).root in ("bank", "shop")
    found.close()


@pytest.mark.slow
@pytest.mark.anyio
async def test_cancelled_grep_ends_every_rg(roots: Path, stand_in: Callable[..., Path], leaks_nothing: None) -> None:
    slow = stand_in("import time; time.sleep(600)")
    with anyio.move_on_after(0.3) as scope:
        await Repositories(roots / "*", rg=slow).grep("x", timeout=None)
    assert scope.cancelled_caught


class Endless(RootRequest[int]):
    """Request with as many results as are taken; `made` counts them."""

    def __init__(self) -> None:
        self.made = 0

    async def answer(self, cwd: str, rg: Any, offset: int) -> ResultPart[int]:
        raise NotImplementedError

    async def stream(self, cwd: str, rg: Any) -> AsyncGenerator[ResultPart[int]]:
        while True:
            self.made += 1
            yield ResultPart((self.made,))


@pytest.mark.slow
@pytest.mark.parametrize("order", ["arrival", "root"])
def test_root_pauses_until_its_results_are_taken(order: Any) -> None:
    endless, later = Endless(), Endless()
    tasks = [RootTask(Root(name=name, path="/"), request) for name, request in (("a", endless), ("b", later))]
    with closing(arrivals_blocking(tasks, Schedule(concurrency=1), order)) as found:
        for taken, arrival in enumerate(itertools.islice(found, 3000), 1):
            assert arrival.item == taken
            assert endless.made <= taken + 3 * BUFFER + 3
    assert later.made == 0


class FlakyExecutor(Executor):
    """Executor that runs tasks at once, after it has lost the first ones."""

    def __init__(self, losses: int) -> None:
        self.losses = losses

    def submit(self, call: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.losses:
            self.losses -= 1
            future.set_exception(ConnectionError("worker gone"))
        else:
            future.set_result(pickle.loads(pickle.dumps(call(*pickle.loads(pickle.dumps(arguments))))))
        return future


def test_lost_task_is_sent_again(make: Callable[..., Driver], roots: Path) -> None:
    found = make(roots / "shop", executor=FlakyExecutor(2)).search("TODO")
    assert places(found) == ALL[1:]


def test_root_is_reported_if_its_tasks_are_lost_each_time(make: Callable[..., Driver], roots: Path) -> None:
    executor = FlakyExecutor(3)
    found = make(roots / "shop", roots / "bank", executor=executor, concurrency=1).search("TODO", order="root")
    assert isinstance(found[0], RootError)
    assert (found[0].kind, found[0].error, found[0].attempts) == ("lost", "ConnectionError", 3)
    assert found[0].message == "the worker was lost: worker gone"
    assert places(found[1:]) == ALL[:1]


@pytest.mark.slow
def test_broken_executor_is_replaced_by_the_function_that_makes_one(make: Callable[..., Driver]) -> None:
    made: list[Executor] = []

    def executor() -> Executor:
        made.append(ThreadPoolExecutor(1))
        if len(made) == 1:  # no task can be sent to it
            made[0]._broken = "it is broken"  # type: ignore[attr-defined]
        return made[-1]

    assert places(make(executor=executor).search("TODO", order="root")) == ALL
    assert len(made) == 2
    with pytest.raises(RuntimeError, match="after shutdown"):
        made[1].submit(print)


@pytest.mark.slow
def test_worker_says_which_rg_it_runs(make: Callable[..., Driver], rg: RgBinary) -> None:
    with ThreadPoolExecutor(1) as executor:
        [one, *_] = make(executor=executor).count("TODO")
    assert one.worker.rg == rg.path
    assert one.worker.rg_version == ".".join(map(str, rg.version))


def test_worker_sends_a_root_in_pages(roots: Path, rg: RgBinary) -> None:
    (roots / "shop/many").write_text("TODO\n" * 10)
    request = SearchRequest(("TODO",), 8, {}, page_matches=3)
    parts = []
    offset: int | None = 0
    while offset is not None:
        found = anyio.run(request.answer, str(roots / "shop"), rg, offset)
        parts.append([(match.path, match.line_number) for match in found.items])
        offset = found.next_offset
    assert [len(part) for part in parts] == [3, 3, 2]
    assert [*itertools.chain(*parts)] == [("cart.py", 1), ("cart.py", 3), *(("many", number) for number in range(1, 7))]


def test_requests_and_pages_can_be_pickled() -> None:
    root = Root(name="a", path="/a")
    task = RootTask(root, SearchRequest(("x",), None, {"glob": ["*.py"]}), "rg", 2.0, Lease("/tmp/l", "host"))
    page: ResultPage[int] = ResultPage((1, 2), RootError(root="a", kind="lost", error="E", message="m"), 7)
    assert pickle.loads(pickle.dumps(task)) == task
    assert pickle.loads(pickle.dumps(page)) == page


@pytest.mark.slow
def test_result_is_written_to_json_and_read_back(make: Callable[..., Driver]) -> None:
    result = make().grep("TODO")
    assert type(result).model_validate_json(result.model_dump_json()) == result


def test_twins_have_equal_methods() -> None:
    for name, method in inspect.getmembers(Repositories, inspect.isfunction):
        if not name.startswith("_"):
            twin = getattr(sync.Repositories, name)
            assert inspect.signature(twin).parameters == inspect.signature(method).parameters
            assert not re.search(r"\bawait\b|asyncio|aclosing", twin.__doc__ or "")


@pytest.mark.slow
@pytest.mark.anyio
async def test_each_root_has_an_index_of_its_own(anyio_backend: str, tmp_path: Path) -> None:
    for name in ("shop", "depot"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(f"def open_{name}(): ...\n")
    given = (tmp_path / "shop", tmp_path / "depot")
    indexes = ripwrap.Repositories(*given).indexes(chunker="windows", workers=0)
    assert list(indexes) == ["shop", "depot"]
    found = await indexes["depot"].search("open depot")
    assert [chunk.path for chunk in found] == ["a.py"] and "open_depot" in found[0].text
    blocking = ripwrap.sync.Repositories(*given).indexes(chunker="windows")
    assert "open_shop" in blocking["shop"].search("open shop")[0].text

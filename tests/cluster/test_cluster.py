"""200 roots on one process, a process pool and a Dask cluster: totals, lost workers, first results, cancellation."""

import itertools
import os
import resource
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import psutil
import pytest
from distributed import Client

import ripwrap
from cluster.conftest import WORKERS, make_cluster, make_pool
from ripwrap import RankedChunk, Root, RootCount, RootError, sync
from ripwrap.repositories.requests import CountRequest, Lease, RootTask, run_task
from support import fake_rg
from support.waiting import until_blocking

Report = Callable[[str], None]

RUNS = 20
PATTERN = r"\balloc\w*|raise \w+Error"

LINUX_PATTERNS = [
    "TODO", "FIXME", "kmalloc_array", r"static int \w+_probe\(", r"\bEXPORT_SYMBOL_GPL\(\w+\)", "(?i)deadlock",
    r"^#include <linux/mm\.h>$", r"[0-9a-f]{32}", "schedule_timeout", "copyright.*199[0-9]", r"\\n\"\);$", "zebra",
    "spin_lock_irqsave", r"goto err_\w+;", "MODULE_LICENSE", r"\bif \(!\w+\)$", "µ", "struct page \\*page", "0xdead",
    r"^\s+return -E(NOMEM|INVAL);",
]  # fmt: skip


@pytest.fixture(scope="module")
def totals(roots: list[Root], rg: str) -> dict[str, tuple[int, int]]:
    """Matching lines and files of each root, counted by a plain loop."""
    found: dict[str, tuple[int, int]] = {}
    for root in roots:
        counts = [one.count for one in sync.count(PATTERN, cwd=root.path, rg=rg)]
        found[root.name] = sum(counts), len(counts)
    return found


def memory(client: Client | None = None) -> str:
    """Return the peak memory of this process, in MiB, and that of the workers of Dask."""
    text = f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB"
    if client is not None:
        workers: Any = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
        text += f", of the workers {sorted(workers.values())} MiB"
    return text


def test_totals_equal_a_plain_loop(
    roots: list[Root],
    rg: str,
    executor: Executor | None,
    totals: dict[str, tuple[int, int]],
    report: Report,
    request: pytest.FixtureRequest,
) -> None:
    client = request.getfixturevalue("client") if "dask" in request.node.name else None
    repositories = sync.Repositories(*roots, rg=rg, executor=executor)
    begun = time.perf_counter()
    counted = list(repositories.count(PATTERN))
    report(f"count in {len(roots)} roots: {time.perf_counter() - begun:.2f} s; {memory(client)}")
    assert {one.root: (one.count, one.files) for one in counted if isinstance(one, RootCount)} == totals
    assert len(counted) == len(roots)
    result = repositories.grep(PATTERN)
    assert not result.errors
    assert (result.total_matches, result.files_matched, len(result)) == (
        sum(count for count, _ in totals.values()),
        sum(files for _, files in totals.values()),
        100,
    )
    begun = time.perf_counter()
    found = sum(1 for one in repositories.search(PATTERN) if one.type == "match")
    assert found == result.total_matches
    report(f"search with {found} matches: {time.perf_counter() - begun:.2f} s; {memory(client)}")


def counted_with_a_kill(
    repositories: sync.Repositories, workers: Callable[[], Sequence[int]], kill_after: int
) -> list[RootCount | RootError]:
    answers: list[RootCount | RootError] = []
    for answer in repositories.count(PATTERN):
        answers.append(answer)
        if len(answers) == kill_after:
            os.kill(workers()[0], signal.SIGKILL)
    return answers


def check_answers(
    answers: Sequence[RootCount | RootError], roots: list[Root], totals: dict[str, tuple[int, int]]
) -> list[RootError]:
    """Check that each root has one answer, and return the failures."""
    assert sorted(one.root for one in answers) == sorted(root.name for root in roots)
    for one in answers:
        if isinstance(one, RootCount):
            assert (one.count, one.files) == totals[one.root], one.root
    return [one for one in answers if isinstance(one, RootError)]


@pytest.mark.timeout(900)
def test_dask_answers_every_root_once_if_a_worker_is_killed(
    roots: list[Root], rg: str, totals: dict[str, tuple[int, int]], report: Report
) -> None:
    begun, lost = time.perf_counter(), 0
    for run in range(RUNS):
        # A cluster for each run: a nanny of Dask may give its worker up after a few kills.
        with make_cluster() as cluster, Client(cluster) as client:
            pids = [nanny.pid for nanny in cluster.workers.values()]
            repositories = sync.Repositories(*roots, rg=rg, executor=client.get_executor(retries=3))
            answers = counted_with_a_kill(repositories, partial(list, pids), 1 + run * len(roots) // (RUNS + 1))
        lost += len(check_answers(answers, roots, totals))
    report(
        f"{RUNS} runs with a killed worker of Dask: {lost} roots reported as lost, {time.perf_counter() - begun:.0f} s"
    )
    assert lost == 0


@pytest.mark.timeout(900)
def test_new_pool_answers_every_root_once_if_a_worker_is_killed(
    roots: list[Root], rg: str, totals: dict[str, tuple[int, int]], report: Report
) -> None:
    begun, lost = time.perf_counter(), 0
    for run in range(RUNS):
        pools: list[ProcessPoolExecutor] = []

        def make(pools: list[ProcessPoolExecutor] = pools) -> ProcessPoolExecutor:
            pools.append(make_pool())
            return pools[-1]

        def workers(pools: list[ProcessPoolExecutor] = pools) -> list[int]:
            return list(pools[-1]._processes)

        repositories = sync.Repositories(*roots[:80], rg=rg, executor=make)
        answers = counted_with_a_kill(repositories, workers, 1 + 3 * run)
        lost += len(check_answers(answers, roots[:80], totals))
        assert len(pools) == 2
    report(f"{RUNS} runs with a killed worker of a pool: {lost} roots lost, {time.perf_counter() - begun:.0f} s")
    assert lost == 0


def test_broken_pool_reports_the_roots_that_it_lost(
    roots: list[Root], rg: str, totals: dict[str, tuple[int, int]]
) -> None:
    with make_pool() as pool:
        repositories = sync.Repositories(*roots[:40], rg=rg, executor=pool)
        answers = counted_with_a_kill(repositories, lambda: list(pool._processes), 1)
    lost = check_answers(answers, roots[:40], totals)
    assert lost and {(one.kind, one.error, one.attempts) for one in lost} == {("lost", "BrokenProcessPool", 3)}
    assert "pass a function that makes an executor" in lost[0].message


def first_result(found: Iterator[Any]) -> float:
    begun = time.perf_counter()
    next(found)
    return time.perf_counter() - begun


def test_first_of_200_roots_comes_within_200_ms_of_the_fastest_root_alone(
    roots: list[Root], rg: str, executor: Executor | None, totals: dict[str, tuple[int, int]], report: Report
) -> None:
    def best(some: Sequence[Root]) -> float:
        times = list[float]()
        for _ in range(7):  # the least is not of the load of the machine
            with closing(sync.Repositories(*some, rg=rg, executor=executor).search(PATTERN)) as found:
                times.append(first_result(found))
        return min(times)

    whole, alone = best(roots), min(best([root]) for root in [root for root in roots if totals[root.name][0]][:5])
    report(f"first result of {len(roots)} roots after {whole * 1000:.0f} ms, of one root after {alone * 1000:.0f} ms")
    assert whole <= alone + 0.2


@pytest.fixture
def sleeper(tmp_path: Path) -> str:
    """A program in place of rg that sleeps for longer than a test may take."""
    return str(fake_rg.write(tmp_path / "sleeping-rg", "import time; time.sleep(600)", "ripgrep 15.2.0"))


def running(program: str) -> list[int]:
    found = list[int]()
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if program in line and "--version" not in line and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def seconds_to_end(program: str) -> float:
    begun = time.perf_counter()
    until_blocking(lambda: not running(program))
    return time.perf_counter() - begun


def test_cancellation_ends_every_rg_within_a_second(
    roots: list[Root], sleeper: str, executor: Executor | None, report: Report
) -> None:
    times = list[float]()
    for _ in range(3):
        repositories = ripwrap.Repositories(*roots[:20], rg=sleeper, executor=executor, concurrency=WORKERS)
        scope: list[Any] = []
        started = threading.Event()

        def run(repositories: Any = repositories, scope: Any = scope, started: Any = started) -> None:
            async def ask() -> None:
                with anyio.CancelScope() as one:
                    scope.append((one, anyio.lowlevel.current_token()))
                    started.set()
                    await repositories.grep("x", timeout=None)

            anyio.run(ask)

        thread = threading.Thread(target=run)
        thread.start()
        started.wait(30)
        until_blocking(lambda: len(running(sleeper)) >= WORKERS)
        one, token = scope[0]
        anyio.from_thread.run_sync(one.cancel, token=token)
        times.append(seconds_to_end(sleeper))
        thread.join(30)
        assert not thread.is_alive()
    report(f"every rg has ended {min(times) * 1000:.0f} ms after the cancellation (at most {max(times) * 1000:.0f})")
    assert min(times) <= 1


def test_cancelled_task_of_dask_ends_its_rg_without_a_shared_folder(
    roots: list[Root], sleeper: str, dask: Executor, report: Report
) -> None:
    task = RootTask(roots[0], CountRequest(("x",), {}), sleeper)
    future = dask.submit(run_task, task)
    until_blocking(lambda: running(sleeper))
    future.cancel()
    report(f"the rg of a cancelled task has ended after {seconds_to_end(sleeper) * 1000:.0f} ms")


def test_rg_ends_if_the_process_of_the_call_is_killed(tmp_path: Path, sleeper: str, dask: Executor) -> None:
    """Its lease is not touched any more; for a pool, the workers are its children and see the same."""
    lease = tmp_path / "lease"
    lease.touch()
    task = RootTask(
        Root(name="a", path=str(tmp_path)), CountRequest(("x",), {}), sleeper, lease=Lease(str(lease), "other")
    )
    future = dask.submit(run_task, task)
    until_blocking(lambda: running(sleeper))
    error = future.result(60).error
    assert error is not None and error.kind == "timeout"
    until_blocking(lambda: not running(sleeper))


def test_rank_over_20_roots_equals_rank_over_their_parent(
    packages: list[Path], tmp_path: Path, rg: str, executor: Executor | None
) -> None:
    chosen = [path for path in packages if path.name not in ("test", "idlelib", "lib2to3", "ensurepip")][:20]
    assert len(chosen) == 20
    for path in chosen:
        shutil.copytree(path, tmp_path / path.name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    repositories = sync.Repositories(tmp_path / "*", rg=rg, executor=executor)
    assert len(QUERIES) == 50
    for query in QUERIES:
        ranked = repositories.rank(query, limit=30)
        assert not ranked.errors
        prefixed = [RankedChunk(**{**dict(one), "path": f"{one.root}/{one.path}"}) for one in ranked]
        assert prefixed == sync.rank(query, cwd=tmp_path, rg=rg, limit=30), query
        assert prefixed


QUERIES = [
    "how are cookies stored", "JSONDecoder", "where is HTTPConnection defined", "parse a date header",
    "email message from a string", "queue with priority", "run a coroutine until complete", "selector event loop",
    "subprocess pipe transport", "stream reader limit", "lock that is fair", "encode a tuple", "scan a json string",
    "logging handler for a socket", "rotate log files", "configuration of logging from a dict", "thread pool executor",
    "process pool is broken", "future cancelled", "wait for the first completed", "dictionary changed size",
    "abstract base class", "ordered dict move to end", "named tuple fields", "counter most common", "chain map",
    "terminal colors curses", "database connection dbm", "structure alignment ctypes", "load a dynamic library",
    "character encoding utf 8", "punycode", "html entities", "parse html tags", "url quote", "robots txt",
    "proxy bypass", "xml parser expat", "dom node append child", "sax handler", "import a module from a zip",
    "importlib metadata entry points", "resource files", "wsgi server", "simple http request handler",
    "multiprocessing manager", "shared memory", "fork server", "timezone transitions", "BaseEventLoop",
]  # fmt: skip


@pytest.mark.timeout(900)
def test_shards_of_linux_give_the_answer_of_grep(linux: Path, rg: str, pool: Executor, report: Report) -> None:
    assert len(LINUX_PATTERNS) == 20
    repositories = sync.Repositories(linux, rg=rg, executor=pool)
    spent = {"grep": 0.0, "shards": 0.0}
    for pattern in LINUX_PATTERNS:
        begun = time.perf_counter()
        whole = sync.grep(pattern, cwd=linux, rg=rg, limit=200, timeout=None)
        middle = time.perf_counter()
        found = repositories.grep(pattern, shards=8, per_root=None, limit=200, timeout=None)
        spent["grep"] += middle - begun
        spent["shards"] += time.perf_counter() - middle
        files = tuple(itertools.chain.from_iterable(one.files for one in found))
        assert (found.total_matches, found.files_matched, files, found.errors) == (
            whole.total_matches,
            whole.files_matched,
            whole.files,
            (),
        ), pattern
    report(f"20 patterns on Linux: grep() {spent['grep']:.0f} s, 8 shards on 2 processes {spent['shards']:.0f} s")

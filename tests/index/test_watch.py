"""Watching: a refresh at the start, after each burst of changes and after a branch switch, and no leaks."""

import asyncio
import gc
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("watchfiles")

import anyio

from ripwrap import RipwrapError, sync
from ripwrap.binary import RgBinary
from ripwrap.index import Index, RefreshResult
from support.counting import CountingRg
from support.git import require_git
from support.opening import refused
from support.waiting import until

pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.anyio]

Plant = Callable[..., Path]
on_asyncio = pytest.mark.loops("asyncio")  # about files, which are the same on trio
# The files are text, because an index of code starts a parser process.
SECONDS = 20  # upper limit for a busy machine; waits are usually much shorter


@pytest.fixture(autouse=True)
def no_thread_leaks() -> Iterator[None]:
    """Check that no thread of watchfiles or ripwrap is left; anyio keeps idle workers for a while."""
    before = _tasks()
    yield
    gc.collect()
    for _ in range(2000):
        if _tasks() <= before:
            return
        threading.Event().wait(0.005)
    raise AssertionError(_tasks() - before)


def _tasks() -> set[str]:
    """Return the names of all native threads of this process that watch files."""
    if not sys.platform.startswith("linux"):
        return set()
    names: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
        except OSError:  # the thread has ended
            continue
        if "notify" in name:
            names.add(name)
    return names


@pytest.fixture
def counting(tmp_path: Path, rg: RgBinary) -> CountingRg:
    return CountingRg(tmp_path, rg)


@asynccontextmanager
async def watching(root: Path, home: Path | str) -> AsyncIterator[AsyncGenerator[RefreshResult]]:
    async with Index(root, location=home) as index, aclosing(index.watch()) as refreshes:
        yield refreshes


async def following(refreshes: AsyncGenerator[RefreshResult]) -> RefreshResult:
    with anyio.fail_after(SECONDS):
        return await anext(refreshes)


async def paths(index: Index, query: str) -> list[str]:
    return [found.path for found in await index.search(query, limit=None)]


def counts(done: RefreshResult) -> tuple[int, int, int]:
    return done.added, done.changed, done.removed


def git(root: Path, *arguments: str) -> None:
    require_git()
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


async def test_watch_refreshes_at_first_and_after_each_change(plant: Plant, home: Path, anyio_backend: str) -> None:
    root = plant({"a.txt": "a\n", "b.txt": "b\n"})
    async with watching(root, home) as refreshes:
        assert counts(await following(refreshes)) == (2, 0, 0)
        (root / "c.txt").write_text("c\n")
        assert counts(await following(refreshes)) == (1, 0, 0)
        (root / "a.txt").write_text("changed\n")
        (root / "b.txt").unlink()
        assert counts(await following(refreshes)) == (0, 1, 1)
        (root / "new").mkdir()
        (root / "new" / "d.txt").write_text("d\n")
        assert counts(await following(refreshes)) == (1, 0, 0)


async def test_changes_in_a_burst_cause_one_refresh(plant: Plant, home: Path, anyio_backend: str) -> None:
    root = plant({"a.txt": "a\n"})
    async with watching(root, home) as refreshes:
        await following(refreshes)
        for number in range(8):
            (root / f"{number}.txt").write_text("x\n")
        assert counts(await following(refreshes)) == (8, 0, 0)


def test_waiter_waits_for_a_quiet_period_up_to_a_limit(tmp_path: Path) -> None:
    from ripwrap._operations.watch import ChangeWaiter

    now = 1.0

    def changes(*, without_end: bool) -> Generator[set[Any]]:
        """Yield changes or nothing every tenth of a second, as watchfiles does."""
        nonlocal now
        for something in (False, True, True, False, False, True):
            now += 0.1
            yield {"x"} if something else set()
        while True:
            now += 0.1
            yield {"x"} if without_end else set()

    for without_end, took in ((False, 0.6 + 0.5), (True, 0.2 + 10)):
        found = changes(without_end=without_end)
        waiter = ChangeWaiter(tmp_path, lambda *_: True, clock=lambda: now, _changes=found)
        begun = now
        assert waiter.wait()
        assert now - begun == pytest.approx(took, abs=0.11)


async def test_changes_between_two_waits_are_not_lost(plant: Plant, home: Path, anyio_backend: str) -> None:
    from ripwrap.index.watch import _waiter

    root = plant({"a.txt": "a\n"})
    async with watching(root, home) as refreshes:
        await following(refreshes)
        with closing(_waiter(root, home)) as another:
            another.begin()
            (root / "b.txt").write_text("b\n")
            assert another.wait(time.monotonic() + SECONDS)  # a quiet period has followed the change
        assert counts(await following(refreshes)) == (1, 0, 0)


@on_asyncio
async def test_file_that_becomes_unreadable_is_reported(plant: Plant, home: Path, anyio_backend: str) -> None:
    root = plant({"a.txt": "a\n", "b.txt": "b\n"})
    async with watching(root, home) as refreshes:
        await following(refreshes)
        with refused("b.txt"):
            (root / "b.txt").chmod(0)
            done = await following(refreshes)
        assert (counts(done), [one.reason for one in done.skipped]) == ((0, 0, 1), ["unreadable"])


@on_asyncio
async def test_ignored_files_git_and_the_index_cause_no_result(plant: Plant, anyio_backend: str) -> None:
    root = plant({"a.txt": "a\n", ".gitignore": "*.log\n", ".git/HEAD": "ref: refs/heads/main\n", ".git/x": "x\n"})
    (root / ".ripgrep").mkdir()
    (root / ".ripgrep" / "x").write_text("x\n")
    async with watching(root, "project") as refreshes:
        assert counts(await following(refreshes)) == (1, 0, 0)
        (root / "noise.log").write_text("x\n")
        (root / ".git" / "index").write_text("x\n")
        (root / ".ripgrep" / "index").write_text("x\n")
        (root / ".ripwrap" / "other").write_text("x\n")
        with anyio.move_on_after(1.5) as scope:  # longer than the quiet period
            await anext(refreshes)
        assert scope.cancelled_caught


@on_asyncio
async def test_files_of_the_index_and_git_cause_no_refresh(plant: Plant, home: Path, anyio_backend: str) -> None:
    from ripwrap.index.watch import watch_folder

    root = plant({"a.txt": "a\n", ".git/HEAD": "ref: refs/heads/main\n", ".ripwrap/x": "x\n"})
    refreshed = 0

    async def refresh() -> RefreshResult:
        nonlocal refreshed
        refreshed += 1
        return RefreshResult(added=1, changed=0, removed=0, unchanged=0, skipped=(), cut=0, chunks=0, seconds=0)

    async with aclosing(watch_folder(root, root / ".ripwrap", refresh)) as refreshes:
        await following(refreshes)
        (root / ".ripwrap" / "y").write_text("y\n")
        (root / ".git" / "HEAD.lock").write_text("y\n")
        (root / ".git" / "ORIG_HEAD").write_text("y\n")
        with anyio.move_on_after(1.5):
            await anext(refreshes)
        assert refreshed == 1


@on_asyncio
@pytest.mark.parametrize("above", [False, True], ids=["in the root itself", "above it"])
async def test_index_inside_an_indexed_folder_hides_no_changes(above: bool, plant: Plant, anyio_backend: str) -> None:
    root = plant({"below/a.txt": "a\n"})
    root = root / "below" if above else root
    async with watching(root, root.parent if above else root) as refreshes:
        assert counts(await following(refreshes)) == (1, 0, 0)
        (root / "b.txt").write_text("b\n")
        assert counts(await following(refreshes)) == (1, 0, 0)
        (root / "deep").mkdir()
        (root / "deep" / "c.txt").write_text("c\n")
        assert counts(await following(refreshes)) == (1, 0, 0)


def test_filter_ignores_only_files_of_the_index(tmp_path: Path) -> None:
    from ripwrap.index.storage.files import FOLDER, own_files
    from ripwrap.index.watch import _Filter

    vectors = "vectors-1-00112233445566aa.usearch"
    for root in (tmp_path, tmp_path / "below"):
        wakes = _Filter(root, own_files(tmp_path, root), None)
        assert wakes(None, str(root / "a.txt"))
        assert wakes(None, str(root / "vectors-of-disease.md"))
        assert wakes(None, str(root / "deep" / "index.lock"))
    wakes = _Filter(tmp_path, own_files(tmp_path, tmp_path), None)
    for own in ("index.sqlite3", "index.sqlite3-wal", "index.sqlite3-shm", "index.lock", vectors, f"{vectors}.x7_"):
        assert not wakes(None, str(tmp_path / own))
    assert not wakes(None, str(tmp_path / "a" / ".ripgrep" / "index"))
    assert wakes(None, str(tmp_path / "a" / ".ripgrep"))  # `.ripgrep` may be a file
    for folder, wakes_us in (("own", True), (FOLDER, False)):
        wakes = _Filter(tmp_path, own_files(tmp_path / folder, tmp_path), None)
        assert wakes(None, str(tmp_path / folder / "a.txt")) is wakes_us
        assert not wakes(None, str(tmp_path / folder / "index.sqlite3"))


@on_asyncio
async def test_branch_switch_without_changed_files_causes_a_refresh(
    plant: Plant, home: Path, anyio_backend: str
) -> None:
    root = plant({"a.txt": "a\n"})
    git(root, "init", "--initial-branch=main")
    git(root, "add", ".")
    git(root, "commit", "--message=x")
    git(root, "branch", "other")
    async with Index(root, location=home) as index:
        await index.refresh()
        async with aclosing(index.watch()) as refreshes:
            assert counts(await following(refreshes)) == (0, 0, 0)
            git(root, "checkout", "other")
            assert counts(await following(refreshes)) == (0, 0, 0)
            assert (await index.status()).view == "other"
            git(root, "checkout", "main")
            assert counts(await following(refreshes)) == (0, 0, 0)
            assert (await index.status()).view == "main"


@on_asyncio
async def test_branches_of_worktrees_and_subfolders_are_watched(
    plant: Plant, home: Path, tmp_path: Path, anyio_backend: str
) -> None:
    root = plant({"sub/a.txt": "a\n"})
    git(root, "init", "--initial-branch=main")
    git(root, "add", ".")
    git(root, "commit", "--message=x")
    git(root, "branch", "third")
    worktree = tmp_path / "worktree"
    git(root, "worktree", "add", "-b", "second", str(worktree))
    for folder, branch in ((worktree, "fourth"), (root / "sub", "fifth")):
        async with Index(folder, location=home) as index, aclosing(index.watch()) as refreshes:
            assert counts(await following(refreshes)) == (1, 0, 0)
            git(folder, "checkout", "-b", branch)
            assert counts(await following(refreshes)) == (0, 0, 0)
            assert (await index.status()).view == branch


async def test_cancelled_watch_ends_at_once(
    plant: Plant, home: Path, anyio_backend: str, children: Callable[[], Any]
) -> None:
    root = plant({"a.txt": "a\n"})
    async with Index(root, location=home) as index:
        told: list[RefreshResult] = []

        async def follow() -> None:
            async with aclosing(index.watch()) as refreshes:
                async for done in refreshes:
                    told.append(done)  # noqa: PERF401 - the list is read while it grows

        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await until(lambda: told)
            (root / "b.txt").write_text("b\n")
            begun = anyio.current_time()
            group.cancel_scope.cancel()
        assert anyio.current_time() - begun < 5
        assert [child for child in children() if child.name() == "rg"] == []
        await index.refresh()  # and the index can still be used


@pytest.mark.loops("asyncio")
async def test_cancelled_asyncio_task_that_watches_ends_at_once(plant: Plant, home: Path, anyio_backend: str) -> None:
    root = plant({"a.txt": "a\n"})
    for turns in (0, 1, 3, 50):  # before it begins, while it begins, and while it waits
        async with Index(root, location=home) as index:

            async def follow(index: Index = index) -> None:
                async with aclosing(index.watch()) as refreshes:
                    async for _ in refreshes:
                        pass

            task = asyncio.create_task(follow())
            for _ in range(turns):
                await asyncio.sleep(0.01)
            task.cancel()
            with anyio.fail_after(SECONDS), pytest.raises(asyncio.CancelledError):
                await task


async def test_break_out_of_watch_leaves_no_process(
    plant: Plant, home: Path, anyio_backend: str, children: Callable[[], Any]
) -> None:
    root = plant({"a.txt": "a\n"})
    for _ in range(3):
        async with watching(root, home) as refreshes:
            async for done in refreshes:
                assert done.added in (0, 1)
                break
        assert children() == []
    with anyio.move_on_after(0):  # cancelled before its start
        async with watching(root, home) as refreshes:
            await anext(refreshes)


async def test_watch_releases_its_descriptors(plant: Plant, home: Path, anyio_backend: str) -> None:
    root = plant({"a.txt": "a\n"})

    async def once() -> None:
        async with watching(root, home) as refreshes:
            await following(refreshes)

    await once()  # imports modules and opens shared descriptors
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await once()
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before)


async def test_error_in_a_refresh_is_raised_by_watch(plant: Plant, home: Path, anyio_backend: str) -> None:
    root = plant({"below/a.txt": "a\n"}) / "below"
    async with watching(root, home) as refreshes:
        await following(refreshes)
        (root / "a.txt").unlink()
        root.rmdir()
        with pytest.raises(FileNotFoundError):
            await following(refreshes)
    with pytest.raises(FileNotFoundError):
        async with watching(root, home) as refreshes:
            await following(refreshes)


async def test_missing_watchfiles_raises_with_the_install_command(
    plant: Plant, home: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    async with watching(plant({"a.txt": "a\n"}), home) as refreshes:
        with pytest.raises(RipwrapError, match=r'the package watchfiles: pip install "ripwrap\[watch\]"'):
            await following(refreshes)


async def test_more_indexes_than_threads_watch_at_once(plant: Plant, home: Path, anyio_backend: str) -> None:
    root = plant({f"{number}/a.txt": "a\n" for number in range(12)})
    waiting = 0

    async def follow(number: int) -> None:
        nonlocal waiting
        async with Index(root / str(number), location=home) as index, aclosing(index.watch()) as refreshes:
            await anext(refreshes)
            waiting += 1
            assert counts(await anext(refreshes)) == (1, 0, 0)

    logging.getLogger("watchfiles").setLevel(logging.WARNING)
    limiter = anyio.to_thread.current_default_thread_limiter()
    usual, limiter.total_tokens = limiter.total_tokens, 4  # as 50 indexes with the usual 40 threads
    try:
        with anyio.fail_after(50):
            async with anyio.create_task_group() as group:
                for number in range(12):
                    group.start_soon(follow, number)
                await until(lambda: waiting == 12)
                await anyio.wait_all_tasks_blocked()
                await anyio.to_thread.run_sync(int)  # the program still has threads for other calls
                for number in range(12):
                    (root / str(number) / "b.txt").write_text("b\n")
    finally:
        limiter.total_tokens = usual


def test_blocking_watch_yields_changes_until_its_timeout(plant: Plant, home: Path) -> None:
    root = plant({"a.txt": "a\n"})
    with sync.Index(root, location=home) as index, closing(index.watch(timeout=SECONDS)) as refreshes:
        assert counts(next(refreshes)) == (1, 0, 0)
        (root / "b.txt").write_text("b\n")
        assert counts(next(refreshes)) == (1, 0, 0)
    with sync.Index(root, location=home) as index, closing(index.watch(timeout=0.5)) as refreshes:
        told: list[RefreshResult] = []
        with pytest.raises(TimeoutError, match="timeout="):
            told.extend(refreshes)
        assert [counts(done) for done in told] in ([(0, 0, 0)], [])  # none if the machine is too busy
    with sync.Index(root / "nowhere", location=home) as index, pytest.raises(FileNotFoundError):
        next(index.watch())

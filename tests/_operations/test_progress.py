"""`on_progress` of search, grep, files and rank, on asyncio, trio and blocking."""

import threading
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import Progress, sync
from ripwrap.binary import RgBinary
from support import fake_rg

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")


@pytest.fixture
def needles(plant: Plant) -> Path:
    """A folder with 20 matches in ten files."""
    return plant({f"{number}.py": "needle\nhay\nneedle\n" for number in range(10)})


def totals(progress: Progress) -> tuple[int, int, int]:
    return progress.files, progress.matches, progress.bytes_searched


@pytest.mark.slow
@pytest.mark.anyio
async def test_last_report_has_the_totals(needles: Path) -> None:
    seen: list[Progress] = []
    options: dict[str, Any] = {"cwd": needles, "on_progress": seen.append}
    found = [match async for match in ripwrap.search("needle", **options)]
    assert (len(found), totals(seen[-1])) == (20, (10, 20, 180))
    assert [path async for path in ripwrap.files(**options)] and totals(seen[-1]) == (10, 0, 0)
    assert (await ripwrap.grep("needle", limit=3, **options)).total_matches == seen[-1].matches == 20
    assert (await ripwrap.grep("nowhere", **options)).total_matches == seen[-1].matches == 0
    assert await ripwrap.rank("needle", **options) and totals(seen[-1]) == (10, 20, 0)
    assert [columns async for columns in ripwrap.search_columns("needle", **options)]
    assert totals(seen[-1]) == (10, 20, 180)


@pytest.mark.slow
def test_last_report_of_a_blocking_call_has_the_totals(needles: Path) -> None:
    seen: list[Progress] = []
    options: dict[str, Any] = {"cwd": needles, "on_progress": seen.append}
    assert len(list(sync.search("needle", **options))) == seen[-1].matches == 20
    assert len(list(sync.search("needle", captures=True, **options))) == seen[-1].matches == 20
    assert len(list(sync.files(**options))) == seen[-1].files == 10
    assert len(sync.grep("needle", **options)) == seen[-1].matches == 20
    assert sync.rank("needle", **options)
    assert seen[-1].matches == 20
    assert sum(map(len, sync.search_columns("needle", **options))) == seen[-1].matches == 20


def test_limit_bounds_the_reports(needles: Path) -> None:
    seen: list[Progress] = []
    assert len(list(sync.search("needle", cwd=needles, limit=3, on_progress=seen.append))) == 3
    assert seen[-1].matches == 3
    assert len(list(sync.files(cwd=needles, limit=4, on_progress=seen.append))) == seen[-1].files == 4


def test_reports_come_in_the_callers_thread_while_rg_writes(tmp_path: Path) -> None:
    rg = fake_rg.write(tmp_path / "rg", "slow(30)")  # it writes for more than half a second
    seen: list[tuple[Progress, threading.Thread]] = []
    matches = sync.search(
        "x", cwd=tmp_path, rg=rg, on_progress=lambda one: seen.append((one, threading.current_thread()))
    )
    assert len(list(matches)) == seen[-1][0].matches == 30
    assert len(seen) >= 2  # the last report comes after rg has ended
    assert {thread for _, thread in seen} == {threading.current_thread()}
    reported = [one.matches for one, _ in seen]
    assert reported == sorted(reported)
    elapsed = [one.elapsed for one, _ in seen]
    assert elapsed == sorted(elapsed)


@pytest.mark.slow
@pytest.mark.anyio
async def test_error_of_the_function_ends_the_search(tmp_path: Path) -> None:
    rg = fake_rg.write(tmp_path / "rg", "slow(1000)")

    def fail(_: Progress) -> None:
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        async for _ in ripwrap.search("x", cwd=tmp_path, rg=rg, on_progress=fail):
            pass
    with (
        pytest.raises(KeyError, match="stop"),
        closing(sync.search("x", cwd=tmp_path, rg=rg, on_progress=fail)) as matches,
    ):
        list(matches)
    with pytest.raises(KeyError, match="stop"):
        await ripwrap.grep("x", cwd=tmp_path, rg=rg, on_progress=fail)


def test_matches_inside_of_files_count_as_progress(plant: Plant) -> None:
    folder = plant({"a.py": "needle\n"})
    with zipfile.ZipFile(folder / "b.zip", "w") as archive:
        archive.writestr("c.py", "needle\nneedle\n")
    for call in (sync.search, sync.grep):
        seen: list[Progress] = []
        result = call("needle", cwd=folder, inside="zip", on_progress=seen.append)
        list(result)
        assert (seen[-1].files, seen[-1].matches) == (2, 3), call


@pytest.mark.slow
def test_reports_of_grep_count_only_matches_of_its_search(plant: Plant) -> None:
    folder = plant({f"{number}.py": "needle\nhay\nneedle\nneedle\n" for number in range(10)} | {".h.py": "needle\n"})
    searches: list[tuple[str, dict[str, Any]]] = [
        ("needle", {"max_count": 1, "context": 2}),  # rg writes the context as matches (rg-facts 18)
        ("needle", {"near": "nowhere"}),
        ("needle", {"near": "hay", "within": 0}),
        ("nowhere", {"near": "needle"}),
        ("NEEDLE", {"explain": True}),
        ("needle", {"hidden": False, "explain": True}),
        ("needle", {"coverage": True}),
    ]
    for pattern, options in searches:
        seen: list[Progress] = []
        found = sync.grep(pattern, cwd=folder, on_progress=seen.append, **options)
        assert (seen[-1].files, seen[-1].matches) == (found.files_matched, found.total_matches), options
    assert seen[-1].bytes_searched == 10 * 25 + 7  # that of `coverage`, which makes another run of rg


@pytest.mark.slow
@pytest.mark.posix
def test_retry_with_one_thread_counts_once(tmp_path: Path, needles: Path, rg: RgBinary) -> None:
    body = f"""
    code = real({str(rg.path)!r})
    if "--threads=1" not in sys.argv:
        print("failed to spawn thread: Os {{ code: 11, kind: WouldBlock }}", file=sys.stderr)
    sys.exit(code if "--threads=1" in sys.argv else 101)
    """
    seen: list[Progress] = []
    options: dict[str, Any] = {"cwd": needles, "rg": fake_rg.write(tmp_path / "rg", body)}
    assert sync.grep("needle", on_progress=seen.append, **options).total_matches == 20
    assert totals(seen[-1]) == (10, 20, 180)


@pytest.mark.slow
@pytest.mark.anyio
async def test_function_is_called_in_the_callers_thread_for_a_large_record(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ripwrap._ripgrep.progress.INTERVAL", 0)
    folder = plant({"a.txt": "needle" + "x" * (9 << 20) + "\n" + "needle\n" * 5})
    threads: set[threading.Thread] = set()
    options: dict[str, Any] = {"cwd": folder, "on_progress": lambda _: threads.add(threading.current_thread())}
    assert len([match async for match in ripwrap.search("needle", **options)]) == 6
    assert [len(columns) async for columns in ripwrap.search_columns("needle", **options)] == [6]
    assert threads == {threading.current_thread()}


async def _async_function(_: Progress) -> None: ...


class _AsyncCallable:
    async def __call__(self, _: Progress) -> None: ...


def test_wrong_functions_are_refused_by_the_call(needles: Path) -> None:
    calls: tuple[Callable[..., object], ...] = (sync.search, sync.search_columns, sync.grep, sync.files, sync.rank)
    for call in calls:
        query = () if call is sync.files else ("needle",)
        with pytest.raises(TypeError, match="on_progress must be a function or None, got int"):
            call(*query, cwd=needles, on_progress=5)
        for wrong in (_async_function, _AsyncCallable()):
            with pytest.raises(TypeError, match="on_progress must not be an async function, because it is not awaited"):
                call(*query, cwd=needles, on_progress=wrong)

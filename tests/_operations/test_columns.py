"""Searching for columns, on asyncio, trio and blocking: batches, limits, errors and tables."""

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import Columns, DecodeError, SearchError, sync
from ripwrap.binary import RgBinary
from support import fake_rg

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")


@pytest.fixture
def hundred(plant: Plant) -> Path:
    """A folder with 100 matches, in ten files."""
    return plant({f"{number}.txt": "hay\nneedle, needle\n" * 10 for number in range(10)})


@pytest.mark.rg_ends
@pytest.mark.anyio
async def test_batches_have_the_rows_of_search(rg: RgBinary, hundred: Path) -> None:
    matches = [match async for match in ripwrap.search("needle", cwd=hundred, rg=rg, sort="path")]
    options: dict[str, Any] = {"cwd": hundred, "rg": rg, "sort": "path", "batch": 30}
    batches = [batch async for batch in ripwrap.search_columns("needle", **options)]
    assert [len(batch) for batch in batches] == [30, 30, 30, 10]
    assert batches == list(sync.search_columns("needle", **options))
    assert [path for batch in batches for path in batch.path] == [match.path for match in matches]
    assert batches[0] == Columns.of(matches[:30])
    assert batches[0].spans[0] == ((0, 6), (8, 14))


@pytest.mark.parametrize(("limit", "sizes"), [(0, []), (7, [7]), (30, [30]), (31, [30, 1]), (1000, [30, 30, 30, 10])])
def test_limit_ends_the_last_batch(limit: int, sizes: list[int], hundred: Path) -> None:
    batches = sync.search_columns("needle", cwd=hundred, limit=limit, batch=30, sort="path")
    assert [len(batch) for batch in batches] == sizes


def test_search_without_matches_has_no_batch(hundred: Path) -> None:
    assert list(sync.search_columns("nowhere", cwd=hundred)) == []


@pytest.mark.parametrize("batch", [0, -1])
def test_batch_below_one_is_refused(batch: int, hundred: Path) -> None:
    with pytest.raises(ValueError, match=f"batch must be at least 1, got {batch}"):
        sync.search_columns("needle", cwd=hundred, batch=batch)


@pytest.mark.parametrize("batch", ["3", 2.5, True, None])
def test_batch_that_is_not_an_int_is_refused(batch: Any) -> None:
    with pytest.raises(TypeError, match=f"batch must be an int, got {type(batch).__name__}"):
        sync.search_columns("x", batch=batch)


def test_replacements_and_odd_texts_do_not_change_the_rows(plant: Plant) -> None:
    folder = plant({"a": b"x\nn\xe9edle needle\r\ny\n", "b": "é needle\n\n", os.fsdecode(b"\xff"): "needle"})
    options: dict[str, Any] = {"cwd": folder, "sort": "path", "context": 0, "crlf": True}
    columns = Columns.of(sync.search("needle", **options))
    assert list(sync.search_columns("needle", **options)) == [columns]
    assert sorted(columns.text) == ["needle", "n�edle needle", "é needle"]
    assert list(sync.search_columns("needle", **options, replace="x")) == [columns]


def test_unreadable_paths_are_logged(hundred: Path, unprivileged: Path, caplog: pytest.LogCaptureFixture) -> None:
    (hundred / "closed").touch(mode=0)
    with caplog.at_level(logging.WARNING, "ripwrap"):
        (columns,) = sync.search_columns("needle", cwd=hundred, rg=unprivileged)
    assert len(columns) == 100
    assert "closed" in caplog.text


@pytest.mark.slow
@pytest.mark.anyio
async def test_matches_before_an_error_come_first(tmp_path: Path) -> None:
    for body, error in {"killed()": SearchError, "garbage()": DecodeError}.items():
        rg = fake_rg.write(tmp_path / "rg", body)
        rows = 0
        with pytest.raises(error):
            async for columns in ripwrap.search_columns("x", cwd=tmp_path, rg=rg):
                rows += len(columns)
        assert rows == 1
        rows = 0
        with pytest.raises(error):
            for columns in sync.search_columns("x", cwd=tmp_path, rg=rg):
                rows += len(columns)
        assert rows == 1


def test_timeout_keeps_the_matches_before_it(tmp_path: Path) -> None:
    rg = fake_rg.write(tmp_path / "rg", "silent()")
    batches = sync.search_columns("x", cwd=tmp_path, rg=rg, timeout=3)  # enough to start on a busy machine
    assert next(batches).path == ["f"]
    with pytest.raises(TimeoutError):
        next(batches)


@pytest.mark.parametrize("method", ["to_arrow", "to_pandas", "to_polars"])
def test_missing_package_is_one_error(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = {"to_arrow": "pyarrow"}.get(method, method.removeprefix("to_"))
    monkeypatch.setitem(sys.modules, package, None)
    how = "ripwrap[frames]" if package == "pyarrow" else package
    with pytest.raises(ImportError, match=f'{package} is not installed: pip install "{how}"'.replace("[", r"\[")):
        getattr(Columns.of([]), method)()

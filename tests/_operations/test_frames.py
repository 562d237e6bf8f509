"""Tables of Arrow, pandas and polars from columns and from the result of `grep()`."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap import Columns, sync

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


pytestmark = pytest.mark.extra

NAMES = ["path", "line_number", "absolute_offset", "text", "spans"]


@pytest.fixture
def columns(plant: Callable[..., Path]) -> Columns:
    """Columns of a path and a line that are not UTF-8, and of a line with two submatches."""
    folder = plant({"a": b"n\xe9edle needle\n", os.fsdecode(b"b\xff"): "\nneedle, needle\n"})
    (found,) = sync.search_columns("needle", cwd=folder, sort="path")
    return found


ROWS = [("a", 1, 0, "n�edle needle", [[7, 13]]), ("b�", 2, 1, "needle, needle", [[0, 6], [8, 14]])]


def test_arrow_table_has_the_rows(columns: Columns) -> None:
    table = columns.to_arrow()
    assert [tuple(row.values()) for row in table.to_pylist()] == ROWS
    assert table.column_names == NAMES


def test_pandas_frame_has_the_rows(columns: Columns) -> None:
    frame = columns.to_pandas()
    assert list(frame.columns) == NAMES
    rows = [(*row[:4], [list(span) for span in row[4]]) for row in frame.itertuples(index=False)]
    assert rows == ROWS


def test_polars_frame_has_the_rows(columns: Columns) -> None:
    frame = columns.to_polars()
    assert frame.columns == NAMES
    rows = [(*row[:4], [list(span) for span in row[4]]) for row in frame.rows()]
    assert rows == ROWS


def test_tables_have_null_for_a_missing_line_number(columns: Columns) -> None:
    unnumbered = Columns(columns.path, [None, None], columns.absolute_offset, columns.text, columns.spans)
    assert unnumbered.to_arrow()["line_number"].to_pylist() == [None, None]
    assert unnumbered.to_polars()["line_number"].to_list() == [None, None]
    assert unnumbered.to_pandas()["line_number"].isna().all()


@pytest.mark.parametrize("method", ["to_arrow", "to_pandas", "to_polars"])
def test_table_of_no_rows_has_all_columns(method: str, columns: Columns) -> None:
    empty, full = getattr(Columns.of([]), method)(), getattr(columns, method)()
    if method == "to_arrow":
        assert empty.schema == full.schema
    else:
        assert list(empty.dtypes) == list(full.dtypes)
    assert len(empty) == 0


def test_result_of_grep_turns_into_a_frame(plant: Callable[..., Path]) -> None:
    result = sync.grep("needle", cwd=plant({"a": "needle\n", "b": "needle\n"}))
    assert list(result.to_pandas()["path"]) == ["a", "b"]
    assert result.to_polars()["path"].to_list() == ["a", "b"]
    assert result.columns().text == ["needle", "needle"]

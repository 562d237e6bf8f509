"""Matches as columns, for data frames, counts and exports: `Columns`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from ripwrap._text import as_utf8
from ripwrap.errors import Hint, HintedText, MissingPackageError
from ripwrap.models import Match, Span

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Columns:
    """Matches as columns: lists of equal length, which have the values of one match at the same position.

    `len()` is the number of matches. `to_arrow()`, `to_pandas()` and `to_polars()` return a table with these columns.

    Attributes:
        path: Path of the file, as in `Match.path`.
        line_number: Number of the first line, from 1; `None` if rg does not count lines.
        absolute_offset: Offset of the line in bytes from the start of the (decoded) file.
        text: Line without its line terminator, as in `Match.text`.
        spans: Positions of the parts that matched, in characters of `text`, as in `Match.spans()`.
    """

    path: list[str]
    line_number: list[int | None]
    absolute_offset: list[int]
    text: list[str]
    spans: list[tuple[Span, ...]]

    @classmethod
    def of(cls, matches: Iterable[Match]) -> "Columns":
        """Return the columns of matches, such as the matches that `search()` yields."""
        rows = [(one.path, one.line_number, one.absolute_offset, one.text, one.spans()) for one in matches]
        columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)] or [[] for _name in _NAMES]
        return cls(*columns)

    def __len__(self) -> int:
        """Return the number of matches."""
        return len(self.path)

    def __getitem__(self, rows: slice) -> "Columns":
        """Return the matches at the positions of a slice."""
        return Columns(*(getattr(self, name)[rows] for name in _NAMES))

    def to_arrow(self) -> "pa.Table":
        """Return an Arrow table; needs the extra `frames`.

        `spans` is a list of pairs in each row. Bytes that are not UTF-8 become U+FFFD.
        """
        pyarrow = _imported("pyarrow", "ripwrap[frames]")
        numbers, text = pyarrow.int64(), pyarrow.string()
        spans = pyarrow.list_(pyarrow.list_(numbers, 2))
        columns = zip(_NAMES, self._printable(), (text, numbers, numbers, text, spans), strict=True)
        table: pa.Table = pyarrow.table({name: pyarrow.array(column, kind) for name, column, kind in columns})
        return table

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas data frame; needs the package pandas. Bytes that are not UTF-8 become U+FFFD."""
        pandas = _imported("pandas")
        path, line_number, absolute_offset, text, spans = self._printable()
        frame: pd.DataFrame = pandas.DataFrame(
            {
                "path": pandas.Series(path, dtype="str"),
                "line_number": pandas.Series(line_number, dtype="Int64"),
                "absolute_offset": pandas.Series(absolute_offset, dtype="int64"),
                "text": pandas.Series(text, dtype="str"),
                "spans": pandas.Series(spans, dtype="object"),
            }
        )
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars data frame; needs the package polars. Bytes that are not UTF-8 become U+FFFD."""
        polars = _imported("polars")
        spans = polars.List(polars.Array(polars.Int64, 2))
        kinds = (polars.String, polars.Int64, polars.Int64, polars.String, spans)
        columns = dict(zip(_NAMES, self._printable(), strict=True))
        frame: pl.DataFrame = polars.DataFrame(columns, schema=dict(zip(_NAMES, kinds, strict=True)))
        return frame

    def _printable(self) -> tuple[list[Any], ...]:
        """Return the columns, with U+FFFD in place of surrogates in paths, because tables cannot store surrogates."""
        paths = {path: path if path.isascii() else as_utf8(path) for path in set(self.path)}
        return [paths[path] for path in self.path], self.line_number, self.absolute_offset, self.text, self.spans


_NAMES = tuple(field.name for field in fields(Columns))


def joined(parts: Sequence[Columns]) -> Columns:
    """Return one `Columns` with the rows of several, one after another."""
    if len(parts) == 1:
        return parts[0]
    return Columns(*(list(chain.from_iterable(getattr(part, name) for part in parts)) for name in _NAMES))


def _imported(name: str, package: str | None = None) -> Any:
    """Import an optional package and return its module."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        hint = Hint(kind="install", target=package or name)
        raise MissingPackageError(HintedText(f"{name} is not installed: ", hint), name=name) from error

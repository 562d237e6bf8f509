"""Make sheets with few cells far apart small, before calamine reads them.

calamine holds a sheet as a rectangle (`Range`), so that two cells, A1 and XFD1048576, need 17 billion values. A sheet
that would be much larger than its cells is written again as a table of two columns: the place and the value of each
cell. ECMA-376 part 1, 18.3.1, describes these elements.
"""

import io
import re
import secrets
import zipfile
import zlib
from collections.abc import Iterator
from operator import itemgetter
from typing import IO, Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from ripwrap._text import plural

_MOST_EMPTY = 1_000_000
"""Maximum number of empty cells of a sheet that is read as it is; they take about 60 MB."""

_SHEET_HEAD_BYTES = 4096
_CHUNK_BYTES = 1 << 16
_SCAN_BYTES = 1 << 20
_MAX_PLACE_BYTES = 32
_ROOT = re.compile(rb"<(?:\w+:)?worksheet[\s>]")
_COLUMN = re.compile(rb"""\sr\s?=\s?["']([A-Z]{1,3})[0-9]""")
_ROW = re.compile(rb"""\sr\s?=\s?["'][A-Z]{0,3}([0-9]{1,7})""")
_NAME = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_HEAD = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'


def compacted(content: bytes) -> tuple[bytes, str]:
    """Return a workbook in which no sheet is much larger than its cells, and the text that begins a table of cells.

    A broken workbook is returned unchanged, so that its error is that of calamine.
    """
    mark = secrets.token_hex()
    try:
        return _compacted(content, mark), mark
    except (zipfile.BadZipFile, zlib.error, EOFError, LookupError, NotImplementedError, RuntimeError, expat.ExpatError):
        return content, mark


def _compacted(content: bytes, mark: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as package:
        wide = {info.filename for info in package.infolist() if _is_wide(package, info)}
        if not wide:
            return content
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as copy:
            for info in package.infolist():
                with package.open(info) as opened, copy.open(info.filename, "w", force_zip64=True) as target:
                    if info.filename in wide:
                        _write_table(opened, target, mark)
                    elif info.filename.lower().endswith((".xml", ".rels", ".bin")):
                        while chunk := opened.read(_CHUNK_BYTES):
                            target.write(chunk)
    return out.getvalue()


def placed(rows: list[list[Any]], most: int) -> Iterator[tuple[int, int, Any]]:
    """Yield the row, the column and the value of each cell of a table, in order; both count from 0."""
    last, widths = 0, dict[int, int]()
    places = (str(row[0]).split() for row in rows)
    cells = [(int(row), int(column), found[1]) for (row, column), found in zip(places, rows, strict=True)]
    cells.sort(key=itemgetter(0, 1))
    for row, column, _ in cells:
        last, widths[row] = row, column
    if last + sum(widths.values()) > most:
        raise ValueError(f"its cells are too far apart: its text is larger than {plural(most, 'byte')}")
    yield from cells


def _is_wide(package: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    """Return True if a part of a workbook is a sheet that is much larger than its cells."""
    with package.open(info) as opened:
        if not _ROOT.search(opened.read(_SHEET_HEAD_BYTES)):
            return False
    sheet = package.read(info)
    cells, columns, rows = 0, set[bytes](), {b"0"}
    for start in range(0, len(sheet), _SCAN_BYTES):
        piece = sheet[start : start + _SCAN_BYTES + _MAX_PLACE_BYTES]
        found = _COLUMN.findall(piece)
        cells += len(found)
        columns.update(found)
        rows.update(_ROW.findall(piece))
    width = max((_column(letters.decode()) for letters in columns), default=1)
    return width * max(map(int, rows)) > cells + _MOST_EMPTY


def _column(letters: str) -> int:
    """Return the number of a column from 1: A is 1, and AA is 27."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _write_table(sheet: IO[bytes], target: IO[bytes], mark: str) -> None:
    """Write a sheet as a table of two columns, after a row with `mark`."""
    target.write(f"{_HEAD}<row>{_text_cell('A1', mark)}</row>".encode())
    cells = _Cells()
    while chunk := sheet.read(_CHUNK_BYTES):
        target.write(cells.feed(chunk))
    target.write(cells.feed(b"", end=True) + b"</sheetData></worksheet>")


def _text_cell(name: str, text: str) -> str:
    return f'<c r="{name}" t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'


class _Cells:
    """Parser of a sheet that returns a row of a table for each cell with a value."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._take
        self._rows: list[str] = []
        self._number = 1
        self._row = self._column = 0
        self._attributes: dict[str, str] = {}
        self._text: list[str] = []
        self._open: list[str] = []

    def feed(self, chunk: bytes, *, end: bool = False) -> bytes:
        """Parse a chunk, and return the rows of the cells that end in it."""
        self._parser.Parse(chunk, end)
        rows, self._rows = self._rows, []
        return "".join(rows).encode("utf-8", "surrogatepass")

    def _refuse(self, *_: object) -> None:
        raise ValueError("a sheet has a document type, which no workbook has")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        self._open.append(tag)
        if tag == "row":
            self._row = int(attributes.get("r", self._row + 1))
            self._column = 0
        elif tag == "c":
            place = _NAME.fullmatch(attributes.get("r", ""))
            self._column = _column(place[1]) if place else self._column + 1
            self._row = int(place[2]) if place else self._row
            self._attributes, self._text = attributes, []

    def _take(self, text: str) -> None:
        if self._open[-1:] == ["v"] or (self._open[-1:] == ["t"] and "rPh" not in self._open[-3:]):
            self._text.append(text)

    def _end(self, name: str) -> None:
        self._open.pop()
        text = "".join(self._text)
        if name.rpartition(":")[2] != "c" or not text:
            return
        self._number += 1
        place = _text_cell(f"A{self._number}", f"{self._row - 1} {self._column - 1}")
        if self._attributes.get("t") == "inlineStr":
            cell = _text_cell(f"B{self._number}", text)
        else:
            kept = "".join(f" {key}={quoteattr(self._attributes[key])}" for key in "ts" if key in self._attributes)
            cell = f'<c r="B{self._number}"{kept}><v>{escape(text)}</v></c>'
        self._rows.append(f'<row r="{self._number}">{place}{cell}</row>')

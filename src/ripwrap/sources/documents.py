"""Read PDFs (pypdf), text documents (python-docx) and spreadsheets (python-calamine).

The extra `documents` installs these packages. Documents are read in a separate process (`ripwrap.sources.reading`),
which imports the packages when it needs them. pypdf is written in Python and calamine in Rust, two memory-safe
languages. python-docx uses lxml, written in C.

Make sheets with few cells far apart small, before calamine reads them.

calamine holds a sheet as a rectangle (`Range`), so that two cells, A1 and XFD1048576, need 17 billion values. A sheet
that would be much larger than its cells is written again as a table of two columns: the place and the value of each
cell. ECMA-376 part 1, 18.3.1, describes these elements.
"""

import datetime as dt
import io
import re
import secrets
import zipfile
import zlib
from collections.abc import Iterator
from operator import itemgetter
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from ripwrap._text import plural
from ripwrap.models import Location
from ripwrap.sources.reading import MAX_TEXT_BYTES

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
                        # A table of two columns, after a row with `mark`.
                        target.write(f"{_HEAD}<row>{_text_cell('A1', mark)}</row>".encode())
                        cells = _Cells()
                        while chunk := opened.read(_CHUNK_BYTES):
                            target.write(cells.feed(chunk))
                        target.write(cells.feed(b"", end=True) + b"</sheetData></worksheet>")
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


_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""First bytes of a document of Office 97 to 2003, and of an encrypted document of a later Office ([MS-OFFCRYPTO])."""

_ONE_LINE = str.maketrans("\r\n\t\v\f\u2028\u2029", "       ")
_LIGATURES = str.maketrans({"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl"})
"""Ligatures of typeset text, each with the letters that a pattern would use."""

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH, _BREAK = f"{_WORD}p", f"{_WORD}br"
_TEXTS = frozenset({f"{_WORD}t", "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"})
_SIGNS = {
    f"{_WORD}{name}": sign for name, sign in (("tab", "\t"), ("ptab", "\t"), ("cr", "\n"), ("noBreakHyphen", "-"))
}
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_WITHOUT_TEXT = frozenset({_PARAGRAPH, _FALLBACK, *(f"{_WORD}{name}" for name in ("pPr", "rPr", "del"))})
"""Elements of a paragraph that are not read: other paragraphs, copies for older programs, formats and deleted texts."""

_RATIO_FROM_BYTES = 64 << 20
_MAX_RATIO = 200


def read_pdf(content: bytes) -> Iterator[tuple[Location, str | Exception]]:
    """Yield the text of each page; for a page that cannot be read, yield the error."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted:
        try:
            opened = reader.decrypt("")
        except (DependencyError, NotImplementedError):
            raise ValueError(
                "encrypted in a way that needs the package cryptography: pip install cryptography"
            ) from None
        if not opened:
            raise ValueError("encrypted; save it without a password")
    for number, page in enumerate(reader.pages, 1):
        location = Location(page=number)
        try:
            yield location, page.extract_text().translate(_LIGATURES)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - pypdf raises many types; the other pages are still read
            yield location, error


def read_docx(content: bytes) -> Iterator[tuple[Location, str]]:
    """Yield the text of each paragraph of the body, also in tables and text boxes; skip empty paragraphs.

    Inserted text is read, and deleted text is not (ECMA-376 part 1, 17.13.5).
    """
    _check_package(content)
    from docx import Document

    document: Any = Document(io.BytesIO(content))
    for number, element in enumerate(document.element.body.iter(_PARAGRAPH), 1):
        if next(element.iterancestors(_FALLBACK), None) is not None:
            continue  # the same text box again, for older programs
        text = "".join(_texts(element))
        if text:
            yield Location(paragraph=number), text


def _texts(element: Any) -> Iterator[str]:
    """Yield the texts below an element of a paragraph, in document order, without those of other paragraphs in it."""
    for child in element:
        if child.tag in _TEXTS:
            yield child.text or ""
        elif child.tag == _BREAK:
            yield "\n" if child.get(f"{_WORD}type", "textWrapping") == "textWrapping" else ""
        elif child.tag in _SIGNS:
            yield _SIGNS[child.tag]
        elif child.tag not in _WITHOUT_TEXT:
            yield from _texts(child)


def read_xlsx(content: bytes) -> Iterator[tuple[Location, str | Exception]]:
    """Yield the values of each sheet: a line for each row, with tabs between the columns."""
    _check_package(content)
    from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum

    content, mark = compacted(content)
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
    for sheet in workbook.sheets_metadata:
        if sheet.typ != SheetTypeEnum.WorkSheet:
            continue
        location = Location(sheet=sheet.name)
        try:
            rows = workbook.get_sheet_by_name(sheet.name).to_python(skip_empty_area=False)
            if rows and rows[0][0] == mark:
                cells = placed(rows[1:], MAX_TEXT_BYTES)
                text, line, filled = io.StringIO(), 0, 0
                for row, column, value in cells:
                    if shown := _value(value):
                        text.write("\n" * (row - line))
                        text.write("\t" * (column - (filled if row == line else 0)) + shown)
                        line, filled = row, column
                yield location, f"{text.getvalue()}\n"
            else:
                yield location, "".join("\t".join(map(_value, row)).rstrip("\t") + "\n" for row in rows)
        except (CalamineError, ValueError) as error:
            yield location, error


def _value(value: object) -> str:
    """Return the text of a cell as one line."""
    match value:
        case str():
            return value.translate(_ONE_LINE)
        case bool():
            return str(value).upper()
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case dt.datetime() if value.time() == dt.time():
            return str(value.date())
        case _:
            return str(value)


def _check_package(content: bytes) -> None:
    """Raise `ValueError` if a document is encrypted, older than Office 2007, or unpacks to far more than its size."""
    if content.startswith(_OLE):
        raise ValueError(
            "encrypted, or in a format older than Office 2007; save it as .docx or .xlsx without a password"
        )
    with zipfile.ZipFile(io.BytesIO(content)) as package:
        size = sum(info.file_size for info in package.infolist())
    if size > max(_RATIO_FROM_BYTES, _MAX_RATIO * len(content)):
        raise ValueError(f"unpacks to more than {_MAX_RATIO} times its size (a decompression bomb?)")

"""Read PDFs (pypdf), text documents (python-docx) and spreadsheets (python-calamine).

The extra `documents` installs these packages. Documents are read in a separate process (`ripwrap.sources.reading`),
which imports the packages when it needs them. pypdf is written in Python and calamine in Rust, two memory-safe
languages. python-docx uses lxml, written in C.
"""

import datetime as dt
import io
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from ripwrap.models import Location
from ripwrap.sources.reading import MAX_TEXT_BYTES
from ripwrap.sources.sheets import compacted, placed

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
    """Yield the values of each sheet: a line for each row, with tabs between the columns.

    For a sheet that cannot be read, yield the error. Sheets without cells, such as charts, are left out.
    """
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
                yield location, _text_of(placed(rows[1:], MAX_TEXT_BYTES))
            else:
                yield location, "".join("\t".join(map(_value, row)).rstrip("\t") + "\n" for row in rows)
        except (CalamineError, ValueError) as error:
            yield location, error


def _text_of(cells: Iterable[tuple[int, int, object]]) -> str:
    """Return the text of a sheet, of which only the cells with a value are known."""
    text, line, filled = io.StringIO(), 0, 0
    for row, column, value in cells:
        if shown := _value(value):
            text.write("\n" * (row - line))
            text.write("\t" * (column - (filled if row == line else 0)) + shown)
            line, filled = row, column
    return f"{text.getvalue()}\n"


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
    """Raise `ValueError` if a document is encrypted, older than Office 2007, or unpacks to far more than its size.

    Raise `zipfile.BadZipFile` if the document is broken.
    """
    if content.startswith(_OLE):
        raise ValueError(
            "encrypted, or in a format older than Office 2007; save it as .docx or .xlsx without a password"
        )
    with zipfile.ZipFile(io.BytesIO(content)) as package:
        size = sum(info.file_size for info in package.infolist())
    if size > max(_RATIO_FROM_BYTES, _MAX_RATIO * len(content)):
        raise ValueError(f"unpacks to more than {_MAX_RATIO} times its size (a decompression bomb?)")

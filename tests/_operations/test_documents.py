"""`inside=` for PDFs, text documents and spreadsheets, hostile ones included; needs the extra `documents`."""

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from _operations.test_inside import zipped
from ripwrap import Location, sync

pytestmark = [pytest.mark.usefixtures("temporary", "leaks_nothing"), pytest.mark.extra]
pytest.importorskip("pypdf")
docx = pytest.importorskip("docx")
pytest.importorskip("python_calamine")

XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def pdf(*pages: bytes, filtered: bytes = b"") -> bytes:
    """Return a PDF with a line of text on each page, or with one page whose compressed content is given."""
    contents = [b"BT /F1 12 Tf 9 9 Td (%b) Tj ET" % page for page in pages] or [filtered]
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(contents)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(contents), kids),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, content in enumerate(contents):
        resources = b"/Resources<</Font<</F1 3 0 R>>>>/MediaBox[0 0 99 99]"
        objects.append(b"<</Type/Page/Parent 2 0 R/Contents %d 0 R%b>>" % (5 + 2 * number, resources))
        kind = b"/Filter/FlateDecode" if filtered else b""
        objects.append(b"<</Length %d%b>>stream\n%b\nendstream" % (len(content), kind, content))
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%b\nendobj\n" % (number, one)
    start = len(out)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"xref\n0 %d\n0000000000 65535 f \n%b" % (len(objects) + 1, table)
    return bytes(out) + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)


def encrypted_pdf(password: str) -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(b"needle"))))
    writer.encrypt(password, "owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def docx_of(*paragraphs: str, table: Sequence[str] = ()) -> bytes:
    document = docx.Document()
    for text in paragraphs:
        document.add_paragraph(text)
    if table:
        row = document.add_table(1, len(table)).rows[0]
        for cell, text in zip(row.cells, table, strict=True):
            cell.text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def xlsx_of(sheets: Mapping[str, str]) -> bytes:
    """Return a workbook with the XML of the rows of each sheet."""
    numbered = list(enumerate(sheets, 1))
    target = f'Type="{RELATIONS}/worksheet" Target="worksheets'
    rel = "".join(f'<Relationship Id="r{n}" {target}/s{n}.xml"/>' for n, _ in numbered)
    data = {n: f"<worksheet {MAIN}><sheetData>{sheets[name]}</sheetData></worksheet>" for n, name in numbered}
    names = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in numbered)
    files = {
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="r" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{RELATIONS}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{rel}</Relationships>',
        **{f"xl/worksheets/s{n}.xml": text for n, text in data.items()},
    }
    return zipped({name: f"{XML}{text}".encode() for name, text in files.items()})


def cell(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def row(number: int, *cells: str) -> str:
    return f'<row r="{number}">{"".join(cells)}</row>'


def found(
    folder: Path, inside: Any, pattern: str = "needle", **options: Any
) -> list[tuple[str | None, int | None, str]]:
    matches = sync.search(pattern, cwd=folder, inside=inside, **options)
    return [(match.path, match.line_number, match.text) for match in matches]


def test_pages_of_a_pdf_are_searched(plant: Callable[..., Path]) -> None:
    content = pdf(b"one", b"a needle", b"needle")
    folder = plant({"r.pdf": content, "f.zip": zipped({"dir/R.PDF": content})})
    assert found(folder, ["pdf", "zip"]) == [
        ("f.zip!/dir/R.PDF!/page 2", 1, "a needle"),
        ("f.zip!/dir/R.PDF!/page 3", 1, "needle"),
        ("r.pdf!/page 2", 1, "a needle"),
        ("r.pdf!/page 3", 1, "needle"),
    ]
    (match, *_) = sync.search("a n", cwd=folder, inside="pdf", glob="*.pdf")
    assert match.location == Location(page=2)
    assert found(folder, "pdf", glob="!*.pdf") == []


def test_paragraphs_of_a_docx_are_searched_with_those_in_tables(plant: Callable[..., Path]) -> None:
    folder = plant({"d.docx": docx_of("one", "", "a needle\nb needle", table=["x", "needle é"])})
    assert found(folder, "docx") == [
        ("d.docx!/paragraph 3", 1, "a needle"),
        ("d.docx!/paragraph 3", 2, "b needle"),
        ("d.docx!/paragraph 5", 1, "needle é"),
    ]


def test_rows_of_a_sheet_are_lines(plant: Callable[..., Path]) -> None:
    rows = row(
        3, cell("B3", "needle"), '<c r="D3"><v>4</v></c>', '<c r="E3"><v>2.5</v></c>', '<c r="F3" t="b"><v>1</v></c>'
    )
    folder = plant({"b.xlsx": xlsx_of({"Stock": rows, "Prices 2": row(1, cell("A1", "one&#10;needle"))})})
    assert found(folder, "xlsx") == [
        ("b.xlsx!/sheet Stock", 3, "\tneedle\t\t4\t2.5\tTRUE"),
        ("b.xlsx!/sheet Prices 2", 1, "one needle"),
    ]
    assert [match.location for match in sync.search("one", cwd=folder, inside="xlsx")] == [Location(sheet="Prices 2")]
    far = row(1, cell("A1", "x")) + row(1_048_576, cell("XFD1048576", "needle"))
    (match,) = sync.search("needle", cwd=plant({"far/far.xlsx": xlsx_of({"S": far})}) / "far", inside="xlsx")
    assert (match.path, match.line_number) == ("far.xlsx!/sheet S", 1_048_576)


@pytest.mark.anyio
async def test_async_search_reads_documents(plant: Callable[..., Path]) -> None:
    folder = plant(
        {"r.pdf": pdf(b"needle"), "d.docx": docx_of("needle"), "b.xlsx": xlsx_of({"S": row(1, cell("A1", "needle"))})}
    )
    paths = [match.path async for match in ripwrap.search("needle", cwd=folder, inside=["pdf", "docx", "xlsx"])]
    assert paths == ["b.xlsx!/sheet S", "d.docx!/paragraph 1", "r.pdf!/page 1"]
    result = await ripwrap.grep("needle", cwd=folder, inside=["pdf", "docx", "xlsx"])
    assert [file.path for file in result] == paths


def bomb(name: str, content: bytes) -> bytes:
    """Return a document one member of which unpacks to far more."""
    out = io.BytesIO(content)
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(65 << 20))  # from 64 MiB on, 200 times the packed size is too much
    return out.getvalue()


def lying(content: bytes) -> bytes:
    """Return an archive whose directory says that its members are small."""
    changed = bytearray(content)
    at = 0
    while (at := changed.find(b"PK\x01\x02", at)) >= 0:
        changed[at + 24 : at + 28] = (10).to_bytes(4, "little")
        at += 4
    return bytes(changed)


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512)
WIDE = "".join(row(number, cell(f"XFD{number}", "y")) for number in range(1, 5000))
LARGE = b"BT " + b"(needle) Tj " * (75_000_000 // 12)  # pypdf's limit is 75,000,000 bytes


FAULTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "encrypted.pdf": (lambda: encrypted_pdf("secret"), "encrypted"),
    "junk.pdf": (lambda: b"%PDF-1.4\njunk", ""),
    "empty.pdf": (lambda: b"", ""),
    "half.pdf": (lambda: pdf(b"x")[:-60], "Stream has ended unexpectedly"),
    "bomb.pdf": (lambda: pdf(filtered=zlib.compress(LARGE)), "Limit reached while decompressing"),
    "junk.docx": (lambda: b"junk", "File is not a zip file"),
    "zip.docx": (lambda: zipped({"a": b"b"}), ""),
    "old.docx": (
        lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512),
        "encrypted, or in a format older than Office 2007; save it",
    ),
    "bomb.docx": (
        lambda: bomb("word/x.xml", docx_of("x")),
        "unpacks to more than 200 times its size (a decompression bomb?)",
    ),
    "lying.docx": (lambda: lying(bomb("word/media/x.xml", docx_of("x"))), ""),
    "junk.xlsx": (lambda: b"junk", "File is not a zip file"),
    "zip.xlsx": (lambda: zipped({"a": b"b"}), ""),
    "bomb.xlsx": (lambda: bomb("xl/worksheets/s1.xml", xlsx_of({"S": ""})), "unpacks to more than 200 times"),
    "lying.xlsx": (lambda: lying(bomb("xl/sharedStrings.xml", xlsx_of({"S": ""}))), "Cannot detect file format"),
    "wide.xlsx": (lambda: xlsx_of({"S": WIDE}), "its cells are too far apart"),
}
"""Documents that cannot be read, and what the errors say."""


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_fault_of_a_document_is_an_error_and_ends_nothing(plant: Callable[..., Path]) -> None:
    broken = {name: make() for name, (make, _) in FAULTS.items()}
    folder = plant({**broken, "unreadable.pdf": pdf(filtered=b"junk"), "z.docx": docx_of("needle")})
    result = sync.grep("needle", cwd=folder, inside=["pdf", "docx", "xlsx"], timeout=None)
    assert [file.path for file in result] == ["z.docx!/paragraph 1"]
    said = {(error.path or "").split("!")[0]: error.message for error in result.errors}
    assert said.keys() == FAULTS.keys()
    for name, (_, text) in FAULTS.items():
        assert text in said[name], name


def test_document_with_an_empty_password_is_read(plant: Callable[..., Path]) -> None:
    assert found(plant({"a.pdf": encrypted_pdf("")}), "pdf") == [("a.pdf!/page 1", 1, "needle")]

"""Sheets of workbooks: cells far apart take no memory, and lose no text."""

import datetime as dt
import io
import re
import zipfile

import pytest

pytestmark = pytest.mark.extra
pytest.importorskip("pypdf")
pytest.importorskip("docx")
pytest.importorskip("python_calamine")

from _operations.test_documents import cell, row, xlsx_of  # noqa: E402 - it needs the packages
from ripwrap.sources import documents  # noqa: E402
from ripwrap.sources.documents import read_xlsx  # noqa: E402

FAR = row(1, cell("A1", "x")) + row(1_048_576, cell("XFD1048576", "needle"))


def lines(content: bytes, sheet: str = "S") -> dict[int, str]:
    """Return the lines of a sheet that are not empty, by their numbers."""
    for location, text in read_xlsx(content):
        if location.sheet == sheet and isinstance(text, str):
            return {number: line for number, line in enumerate(text.split("\n"), 1) if line}
        if location.sheet == sheet:
            raise AssertionError(text)
    raise AssertionError(sheet)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (FAR, {1: "x", 1_048_576: "\t" * 16_383 + "needle"}),
        ('<dimension ref="A1:B2"/>' + FAR, {1: "x", 1_048_576: "\t" * 16_383 + "needle"}),
        (
            row(1, cell("XFD1", "needle")) + row(1_048_576, cell("A1048576", "y")),
            {1: "\t" * 16_383 + "needle", 1_048_576: "y"},
        ),
        (
            row(1, cell("A1", "x"), cell("ALL1", "z"))
            + '<row r="900000"><c t="str"><v>needle</v></c><c><v>2</v></c></row>',
            {1: "x" + "\t" * 999 + "z", 900_000: "needle\t2"},
        ),
    ],
)
def test_far_cell_leaves_the_workbook_readable(cells: str, expected: dict[int, str]) -> None:
    """One cell in XFD1048576 made calamine need memory for 17 billion cells, and lost the workbook."""
    content = xlsx_of({"first": row(2, cell("B2", "a")), "S": cells, "last": row(1, cell("A1", "b"))})
    assert lines(content) == expected
    assert (lines(content, "first"), lines(content, "last")) == ({2: "\ta"}, {1: "b"})


def test_table_of_cells_gives_the_text_of_the_sheet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared strings, rich texts, numbers, dates, booleans, errors and formulas keep their texts."""
    sheet = "".join(
        (
            row(
                2, cell("B2", "a&amp;b  &lt;c&gt;"), '<c r="D2" t="s"><v>1</v></c>', '<c r="E2" s="1"><v>45292</v></c>'
            ),
            row(3, '<c r="A3"><v>2.5</v></c>', '<c r="B3" t="b"><v>1</v></c>', '<c r="C3" t="e"><v>#N/A</v></c>'),
            row(
                5, '<c r="A5" t="str"><f>"x"&amp;"y"</f><v>x\ny</v></c>', '<c r="C5" s="1"/>', '<c r="D5"><f>1</f></c>'
            ),
            row(6, '<c r="A6" t="inlineStr"><is><r><t>ri</t></r><r><t>ch</t></r></is></c>'),
        )
    )
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    link = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    out = io.BytesIO(xlsx_of({"S": sheet}))
    with zipfile.ZipFile(out) as old:
        files = {name: old.read(name).decode() for name in old.namelist()}
    files["xl/_rels/workbook.xml.rels"] = files["xl/_rels/workbook.xml.rels"].replace(
        "</Relationships>",
        f'<Relationship Id="t" Type="{link}/sharedStrings" Target="sharedStrings.xml"/>'
        f'<Relationship Id="u" Type="{link}/styles" Target="styles.xml"/></Relationships>',
    )
    files["xl/sharedStrings.xml"] = f"<sst {main}><si><t>no</t></si><si><r><t>shared-</t></r><r><t>é</t></r></si></sst>"
    files["xl/styles.xml"] = f'<styleSheet {main}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        for name, text in files.items():
            new.writestr(name, text)
    expected = lines(out.getvalue())
    assert expected[2] == f"\ta&b  <c>\t\tshared-é\t{dt.date(2024, 1, 1)}"
    monkeypatch.setattr(documents, "_MOST_EMPTY", -1_000)
    assert documents.compacted(out.getvalue())[0] != out.getvalue()
    assert lines(out.getvalue()) == expected


def test_prefix_of_the_elements_does_not_matter() -> None:
    """Other programs write `x:row` and single quotes."""
    cells = row(1, cell("A1", "a")) + row(1_048_576, cell("XFD1048576", "needle"))
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(xlsx_of({"S": cells}))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            if name.endswith("s1.xml"):
                text = re.sub("<(/?)([a-z])", r"<\1x:\2", text).replace("xmlns=", "xmlns:x=").replace('"', "'")
            new.writestr(name, text)
    assert lines(out.getvalue()) == {1: "a", 1_048_576: "\t" * 16_383 + "needle"}


def test_sheet_with_too_much_space_is_one_error() -> None:
    """A text of tabs is limited before it is made, and the other sheets are read."""
    wide = "".join(row(number, cell(f"XFD{number}", "y")) for number in range(1, 5000))
    parts = {place.sheet: text for place, text in read_xlsx(xlsx_of({"S": wide, "T": row(1, cell("A1", "needle"))}))}
    assert "its cells are too far apart: its text is larger than 67108864 bytes" in str(parts["S"])
    assert parts["T"] == "needle\n"


def test_document_type_of_a_sheet_is_refused() -> None:
    """Entities of a document type may expand without end, and no workbook has one."""
    entities = "".join(f'<!ENTITY e{level} "{f"&e{level - 1};" * 9}">' for level in range(1, 4))
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(xlsx_of({"S": FAR}))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            if name.endswith("s1.xml"):
                text = text.replace("<worksheet", f'<!DOCTYPE x [<!ENTITY e0 "ha">{entities}]><worksheet')
                text = text.replace("needle", "&e3;")
            new.writestr(name, text)
    with pytest.raises(ValueError, match="a sheet has a document type"):
        list(read_xlsx(out.getvalue()))

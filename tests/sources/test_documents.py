"""Texts of documents: every text that a reader of the document sees is found."""

import io
import zipfile

import pytest

pytestmark = pytest.mark.extra
docx = pytest.importorskip("docx")
pytest.importorskip("python_calamine")

from ripwrap.sources.documents import read_docx  # noqa: E402 - it needs the packages

SPACES = " ".join(
    f'xmlns:{name}="http://schemas.openxmlformats.org/{path}"'
    for name, path in (
        ("w", "wordprocessingml/2006/main"),
        ("m", "officeDocument/2006/math"),
        ("mc", "markup-compatibility/2006"),
    )
)


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraphs(body: str) -> list[tuple[int | None, str]]:
    """Return the number and the text of each paragraph of a document with this body."""
    empty, out = io.BytesIO(), io.BytesIO()
    docx.Document().save(empty)
    with zipfile.ZipFile(empty) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            changed = f"<w:document {SPACES}><w:body>{body}</w:body></w:document>".encode()
            new.writestr(name, changed if name == "word/document.xml" else old.read(name))
    return [(location.paragraph, text) for location, text in read_docx(out.getvalue())]


@pytest.mark.parametrize(
    "inner",
    [
        f'<w:ins w:id="1" w:author="a">{run("needle")}</w:ins>',
        f'<w:moveTo w:id="1" w:author="a">{run("needle")}</w:moveTo>',
        f"<w:sdt><w:sdtContent>{run('needle')}</w:sdtContent></w:sdt>",
        f'<w:smartTag w:element="place">{run("needle")}</w:smartTag>',
        f'<w:fldSimple w:instr="PAGE">{run("needle")}</w:fldSimple>',
        f'<w:customXml w:element="x">{run("needle")}</w:customXml>',
        f'<w:dir w:val="rtl">{run("needle")}</w:dir>',
        f'<w:bdo w:val="rtl">{run("needle")}</w:bdo>',
        f"<w:hyperlink>{run('needle')}</w:hyperlink>",
        "<m:oMath><m:r><m:t>needle</m:t></m:r></m:oMath>",
        "<m:oMathPara><m:oMath><m:r><m:t>needle</m:t></m:r></m:oMath></m:oMathPara>",
        f'<w:ins w:id="1"><w:sdt><w:sdtContent><w:smartTag>{run("needle")}</w:smartTag></w:sdtContent></w:sdt></w:ins>',
        f"{run('ne')}<w:ins w:id='1'>{run('ed')}</w:ins>{run('le')}",
        f"{run('nee')}<w:del w:id='1'><w:r><w:delText>x</w:delText><w:tab/></w:r></w:del>{run('dle')}",
        f"<w:pPr><w:tabs><w:tab w:val='left' w:pos='9'/></w:tabs></w:pPr>{run('needle')}",
    ],
)
def test_every_text_below_a_paragraph_is_read(inner: str) -> None:
    """The texts that ECMA-376 part 1 (17.3 to 17.16, 22.1) allows below `w:p`."""
    assert paragraphs(f"<w:p>{run('a ')}{inner}{run(' b')}</w:p>") == [(1, "a needle b")]


def test_deleted_text_is_not_read() -> None:
    """Deleted text (`w:delText`) and deleted formulas are left out."""
    deleted = "<w:r><w:delText>gone</w:delText></w:r><m:oMath><m:r><m:t>gone</m:t></m:r></m:oMath>"
    assert paragraphs(f"<w:p>{run('a')}<w:del w:id='1'>{deleted}</w:del></w:p>") == [(1, "a")]


def test_signs_of_a_run_are_characters() -> None:
    """Tabs, breaks and hyphens between texts are kept, also in insertions."""
    signs = "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t><w:cr/></w:r>"
    assert paragraphs(f"<w:p><w:ins w:id='1'>{signs}</w:ins>{run('e')}</w:p>") == [(1, "a\tb\nc-d\ne")]
    page = "<w:r><w:t>a</w:t><w:br w:type='page'/><w:t>b</w:t></w:r>"
    assert paragraphs(f"<w:p>{page}</w:p>") == [(1, "ab")]


def test_text_box_is_a_paragraph_of_its_own_and_is_read_once() -> None:
    """A paragraph in a text box is not a part of the paragraph around it."""
    box = f"<w:txbxContent><w:p>{run('in')}</w:p></w:txbxContent>"
    both = f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    body = f"<w:p>{run('out')}<w:r>{both}</w:r>{run('side')}</w:p><w:p>{run('next')}</w:p>"
    assert paragraphs(body) == [(1, "outside"), (2, "in"), (4, "next")]

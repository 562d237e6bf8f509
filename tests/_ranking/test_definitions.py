"""Names that a file defines, as the ranking uses them: the parser finds them, in code only."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap._code.outline import CodeNames
from ripwrap._code.treesitter.merge import Chunk
from ripwrap._code.treesitter.worker import CodeReader, Source
from ripwrap._ranking import document
from ripwrap._ranking.document import SourceChunk, SourceText, read_code
from ripwrap.binary import RgBinary


def names_of(path: str, text: str) -> set[str]:
    return {name for _, name in SourceText(path, text, exact=True).code.names}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "class CookieJar(Base):\n    pass\n"),
        ("a.py", "async def CookieJar():\n    pass\n"),
        ("a.py", "CookieJar: TypeAlias = dict\n"),
        ("a.py", "if TYPE_CHECKING:\n    CookieJar = dict\n"),
        ("a.js", "function CookieJar(a) {\n}\n"),
        ("a.js", "export default class CookieJar extends A {\n}\n"),
        ("a.js", "const CookieJar = () => 1\n"),
        ("a.js", "export const CookieJar = 1\n"),
        ("a.js", "exports.CookieJar = function () {\n}\n"),
        ("a.js", "x = {\n  CookieJar: function (a) {\n  }\n}\n"),
        ("a.ts", "type CookieJar = number\n"),
        ("a.go", "package a\n\nfunc (jar *Jar) CookieJar(a int) error {\n}\n"),
        ("a.go", "package a\n\ntype CookieJar struct {\n}\n"),
        ("a.go", "package a\n\ntype CookieJar map[string]int\n"),
        ("a.go", "package a\n\nconst CookieJar = 1\n"),
        ("a.rs", "pub struct CookieJar<T> {\n}\n"),
        ("a.rs", "pub(crate) async fn CookieJar<T>() {\n}\n"),
        ("a.rs", "macro_rules! CookieJar {\n    () => {};\n}\n"),
        ("a.rs", "pub const CookieJar: u8 = 1;\n"),
        ("a.c", "static int CookieJar(struct jar *jar) {\n    return 1;\n}\n"),
        ("a.c", "#define CookieJar 1\n"),
        ("a.h", "#ifndef A_H\n#define CookieJar(x) x\n#endif\n"),
        ("a.cpp", "std::string Shop::CookieJar(int a) const {\n}\n"),
        ("a.cpp", "class CookieJar final : public Jar {\n};\n"),
        ("a.cs", "public sealed partial class CookieJar : Jar {\n}\n"),
        ("a.rb", "class Shop\n  def CookieJar!\n  end\nend\n"),
        ("a.rb", "class CookieJar < Base\nend\n"),
        ("a.rb", "CookieJar = 1\n"),
        ("a.scala", "object CookieJar extends Jar\n"),
        ("a.scala", "class A {\n  def CookieJar: Int = 1\n}\n"),
        ("a.kt", "val CookieJar: Jar by lazy {\n    1\n}\n"),
        ("a.swift", "let CookieJar = 1\n"),
        ("a.pl", "sub CookieJar {\n}\n"),
        ("a.m", "@implementation Shop\n- (int)CookieJar:(int)a to:(int)b {\n}\n@end\n"),
        ("a.sql", "CREATE TABLE CookieJar (a int);\n"),
    ],
)
def test_definitions_are_recognised_in_common_languages(path: str, text: str) -> None:
    assert "CookieJar" in names_of(path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "def f():\n    CookieJar = 1\n    return CookieJar()\n"),
        ("a.py", "class CookieJars:\n    pass\nclass OldCookieJar:\n    pass\n"),
        ("a.py", "jar = CookieJar(1)\nif CookieJar == 1:\n    isinstance(jar, CookieJar)\n"),
        ("a.py", "import CookieJar\n# a class CookieJar, which is large\n"),
        ("a.py", '"""\nclass CookieJar:\n    pass\n"""\n'),
        ("a.py", "CookieJar.x = 1\nCookieJar[0] = 1\n"),
        ("a.cpp", "static CookieJar jar;\n"),
        ("a.md", "# CookieJar\n"),
        ("a.toml", "[CookieJar]\nx = 1\n"),
        ("a.mk", "CookieJar: x\n\techo\n"),
        ("a.json", '{"CookieJar": {\n"x": 1\n}}\n'),
    ],
)
def test_use_of_a_name_and_a_heading_are_not_definitions(path: str, text: str) -> None:
    assert "CookieJar" not in names_of(path, text)


def test_chunk_has_the_names_that_begin_in_its_lines() -> None:
    text = "class Shop:\n    def add(self): ...\n\nnai\u0308ve = 1\n"
    source = SourceText("a.py", text, exact=True)

    def names(first: int, last: int) -> set[str]:
        return {*SourceChunk(source, Chunk(0, len(text), first, last)).names()}

    assert [names(1, 1), names(2, 3), names(4, 5), names(1, 4)] == [
        {"Shop"},
        {"add"},
        {"na\u00efve"},
        {"Shop", "add", "na\u00efve"},
    ]


def test_files_of_a_ranking_are_parsed_together_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    ask = CodeReader.names_of

    def count(self: CodeReader, sources: Sequence[Source], seconds: float) -> Iterator[CodeNames | None]:
        asked.append(len(sources))
        return ask(self, sources, seconds)

    monkeypatch.setattr(CodeReader, "names_of", count)
    monkeypatch.setattr(document, "_KNOWN", {})
    texts = [SourceText(f"{number}.py", f"def f{number}(): ...\n", exact=True) for number in range(5)]
    assert [code.names for code in read_code(texts)] == [[(0, f"f{number}")] for number in range(5)]
    assert [text.code.names[0][1] for text in texts] == [f"f{number}" for number in range(5)]
    again = [SourceText(text.path, text.text, exact=True) for text in texts]
    assert read_code(again) == [text.code for text in texts]
    assert asked == [5, 0]


@pytest.mark.parametrize(
    "found",
    [
        None,
        5,
        [],
        [[], True],
        [[["f", "function", 0, 0]], True, []],
        [[["f", "function", 0, 2, 2, -1]], True, []],
        [[["f", "function", 1, 0, 1, -1]], True, []],
        [[["f", "function", -1, 0, 1, -1]], True, []],
        [[["f", "function", 0, 0, "1", -1]], True, []],
        [[["", "", 0, 0, 1, 0]], True, []],
        [[["", "", 0, 0, 1, 1], ["", "", 0, 1, 1, 0]], True, []],
        [[], True, [["f", "f"]]],
        [[], True, [[0]]],
        [{}, True, 5],
    ],
)
def test_definitions_that_cannot_be_those_of_the_text_are_refused(found: object) -> None:
    """Hostile source may control the parser: a definition in itself would let a search for its name never end."""
    text = "def f(): ...\ndef g(): ..."
    assert CodeNames.of(found, text) is None
    known = CodeNames.of([[["f", "function", 0, 0, 9, -1], ["g", "", 0, 1, 1, 0]], True, [[0, "f"], [1, "g"]]], text)
    assert known is not None and [section.name for section in known.outline.sections()] == ["f", "f.g"]


def test_definitions_of_files_that_are_not_parsed_in_time_are_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "_KNOWN", {})
    text = SourceText("late.py", "LATE = 1\ndef late(): ...\n", exact=True)
    assert [code.names for code in read_code([text], 0.0)] == [[(1, "late")]]
    assert names_of(text.path, text.text) == {"LATE", "late"}  # the next call parses the file


def test_definitions_are_guessed_without_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rg: RgBinary) -> None:
    body = "".join(f"    step_{number} = send(rows, {number})\n" for number in range(40))
    (tmp_path / "a.py").write_text(f"def load(rows):\n{body}\ndef send(rows, number):\n    return rows\n")
    (parsed, *_) = sync.rank("where is send defined", cwd=tmp_path, rg=rg.path)
    monkeypatch.setattr(document, "is_available", lambda: False)
    monkeypatch.setattr(document, "_KNOWN", {})
    (guessed, *_) = sync.rank("where is send defined", cwd=tmp_path, rg=rg.path)
    assert (parsed.start_line, parsed.symbol, parsed.reasons[0]) == (43, "send", 'defines "send"')
    assert guessed == parsed

"""Names that a text defines: one pass finds the same names as one pattern for each name."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap._ranking.definitions import DEFINITION_PREFIX, defined_names, definition_lines

_MODIFIERS = (
    r"export|default|declare|public|private|fileprivate|protected|internal|abstract|final|sealed|static|async|unsafe|extern"
    r"|inline|virtual|partial|data|open|override|case|local|const|constexpr|typedef|implicit|lazy|readonly|suspend|inner|value"
    r"|pub(?:\([\w:]+\))?"
)


def lines_by_one_pattern(text: str, name: str) -> Iterator[int]:
    """Find the definitions of one name with one pattern: its rules are easy to read, but it is slow to compile."""
    end = r"(?![\w$])"
    in_code = rf"{end}(?=[!?]?\(|[ \t]*[\[{{<=;]|[ \t]+(?:extends|implements)\b)"
    at_the_start = (
        rf"{end}(?=[!?]?[ \t]*(?:[:(].*)?\r?$|[ \t]+(?:with|where|final|private|struct|interface|func|map|chan)\b"
        r"|[ \t]+\*?[\w.\[\]]+[ \t]*\r?$)"
    )
    pattern = re.compile(
        rf"{DEFINITION_PREFIX}{name}{in_code}"
        rf"|^[ \t]*(?:(?:{_MODIFIERS})[ \t]+)*{DEFINITION_PREFIX}{name}{at_the_start}"
        rf"|#[ \t]*define[ \t]+{name}{end}"
        rf"|^[ \t]*(?:(?:export|static|async|public|private|protected)\s+)*(?:[\w$.]+\.)?{name}\s*[:=]\s*"
        rf"(?:async\s+)?(?:function\b|class\b|\([^()\n]*\)\s*=>|\w+\s*=>)"
        rf"|^{name}\s*(?::[^=\n]+)?=(?!=)"
        rf"|^[\w:&*<>,\[\] \t]+[ \t*&](?:\w+::)*{name}\s*\([^;{{}}]*\)[\w\s]*\{{",
        re.MULTILINE,
    )
    for found in pattern.finditer(text):
        yield text.count("\n", 0, found.end())


NAMES = ("Jar", "jar", "Öl", "x1")
WORDS = "class def fn function function* struct typedef static const let sub export pub(crate) async extends if for"
MARKS = "# define => = == : :: . , ; { } ( ) [ ] < > & * $ ! ?"
BLANKS = (" ", " ", " ", "\t", "\n", "\n", "\n    ", "\r\n")
TEXTS = ("get_", "int ", "x = ", "(self)", "() {", "#define ")
PIECES = st.sampled_from([*NAMES, *WORDS.split(), *MARKS.split(), *BLANKS, *TEXTS])


@given(st.lists(PIECES, max_size=40).map("".join))
def test_all_defined_names_equal_those_found_with_one_pattern_each(text: str) -> None:
    names = defined_names(text)
    for name in NAMES:
        lines = list(lines_by_one_pattern(text, name))
        assert list(definition_lines(text, (name,))) == lines
        assert (name in names) == bool(lines)


def test_chunk_may_define_several_names() -> None:
    text = "class Shop:\n    def add(self): ...\n\nTOTAL: int = 1\n#define MAX_ITEMS 2\nexports.sell = async (x) => x\n"
    assert defined_names(text) == {"Shop", "add", "TOTAL", "MAX_ITEMS", "sell"}
    assert defined_names("static int shop_open(struct shop *s,\n    int door)\n{\n") == {"shop_open"}
    assert defined_names("class Shop::Door: public Thing {\n") == {"Shop", "Door"}
    assert defined_names("class nai\u0308ve: pass") == {"na\u00efve"}
    assert defined_names("") == defined_names("def 1x(): pass\n") == set()


def test_if_and_while_statements_are_not_definitions() -> None:
    text = "int sell(int item) {\n    if (item) {\n        while (open(item)) {\n"
    assert defined_names(text) == {"sell"}


HOSTILE = {
    "receivers": "sub (",
    "qualifiers": "a.a.a.",
    "parentheses": "f (a) (b)",
    "values": "x = (",
    "keywords": "static ",
    "keywords and colons": "  static a:b",
    "keywords and two colons": "class a.b::c ",
    "keywords and parentheses": "static pub(x) ",
    "many definitions in a line": "const a = ",
    "many definitions in many lines": "def a(\n",
    "functions as values": "a:function ",
    "lines of blanks": "\n ",
    "closed parentheses": "( ) ",
}


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_time_is_in_proportion_to_length_of_text(piece: str) -> None:
    size = 60_000  # takes less than a second; quadratic time would exceed the timeout
    text = f"{'a' * size}{piece * size}x) {{"
    defined_names(text)
    list(definition_lines(text, ("a",)))

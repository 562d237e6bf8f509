"""Find definitions by the look of their lines, for ranking and chunks of files that no parser reads; no I/O.

Only ranking may guess like this: a wrong name costs a place in a list. Without it, a search without the extra `code`
would not find the functions that a question describes, and would show the middle of them. What says what a file
defines, such as `outline()`, needs the parser.
"""

import re
import string
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple

from ripwrap._code.languages import language_name
from ripwrap._code.outline import CodeNames, Definition, Outline

_TYPE = (
    "class|interface|struct|enum|trait|namespace|protocol|defmodule|type|module|object|record|extension"
    r"|impl(?:<[^<>\n]{0,80}+>)?(?:[ \t][^\n{]{0,120}?[ \t]for(?=[ \t]))?"
)
_MODIFIER = (
    r"export|default|public|private|protected|internal|static|abstract|final|async|pub(?:\(\w+\))?|unsafe|inline"
    r"|override|open|local|const|declare|sealed|partial|data|suspend|extern|virtual"
)
DEFINITION_START = (
    rf"[ \t]*+(?:(?:{_MODIFIER})[ \t]++){{0,6}}"
    rf"(?:(?P<type>{_TYPE})|def|defp|defmacro|function|func|fun|fn|sub|macro_rules!)[ \t*]++"
)
"""Pattern of the beginning of a definition that a keyword begins, up to its name."""
LEAD = r"[ \t]*(?:@|//|/?\*|#)"
"""Pattern of the beginning of a decorator, an attribute or a comment above a definition."""

_WITH_KEYWORD = re.compile(
    # the receiver in Go, and the names around it in Ruby, Lua and C++, stand before the name
    rf"^{DEFINITION_START}(?:\([^()\n]{{0,80}}+\)[ \t]*+)?(?:[\w$]++(?:\.|::))*(?P<name>[\w$]++[?!]?)",
    re.MULTILINE,
)
_CONTROL = re.compile(
    "(?:if|for|foreach|while|switch|catch|return|else|do|new|throw|await|with|match|elif|unless|until|when|case|assert"
    "|delete|yield|except|using|lock|synchronized|sizeof|typeof|goto|try|defer|go|select|loop|guard|function|func|fn"
    r"|var|const|import)\b"
)
_OPENS_BODY = re.compile(r"\)[^(){};=\"'`]{0,80}+\{[ \t\r]*+$", re.MULTILINE)
_BEFORE_NAME = re.compile(r"[\w \t*&:<>,~\[\]?@]*+")
_NAME = string.ascii_letters + string.digits + "_$"
_NO_PARAMETERS = re.compile("[(){};\"'`]")
_MAX_HEAD_CHARS, _MAX_PARAMETERS_CHARS = 200, 400
_ASSIGNED = re.compile(  # JavaScript's functions without a name of their own
    r"^[ \t]*+(?:(?:export[ \t]++)?(?:const|let|var)[ \t]++|(?:[\w$]++\.)*)(?P<name>[\w$]++)[ \t]*+[=:][ \t]*+"
    r"(?:async[ \t]*+)?(?:function\b|(?:\([^()\n]{0,200}+\)|[\w$]++)[^(){};=\n]{0,60}+=>)",
    re.MULTILINE,
)
_ABOVE = re.compile(rf"{LEAD}|[ \t]*--")
_MAX_ABOVE = 8
_GOES_ON = re.compile(r"[{)\]}]|end\b|[\w ]+:\s*$")
_CLOSES = re.compile(r"\}|end\b")
_C_FAMILY = frozenset({"c", "c header", "cpp", "objective-c"})
"""Languages in which `name(…) {` without a type is a loop of a macro, and `struct name` may begin a variable."""
_DECLARES_VARIABLE = re.compile(r"[;*=\[(]")
_WORDS_OF_PROSE = frozenset({"type", "object", "record", "extension"})
_SIGNS = re.compile(r"[{=(:]")
_SCRIPTS = frozenset({"javascript", "typescript", "tsx", None})
_NO_CODE = frozenset({"html", "ini", "json", "make", "markdown", "plain data", "quarto", "rst", "toml", "yaml"})


class _Start(NamedTuple):
    row: int
    name: str
    kind: str


def named_lines(path: str, text: str) -> list[tuple[int, str]]:
    """Return the rows (from 0) at which definitions seem to begin, and their names."""
    return [(row, name) for row, name, _ in _starts(path, text)]


def guess_code(path: str, text: str) -> CodeNames:
    """Return what a file seems to define; a definition ends before the next line that is indented no more."""
    starts = list(_starts(path, text))
    lines = text.split("\n")
    found = _with_extents(starts, lines)
    return CodeNames(Outline(lines, found), found, [(row, name) for row, name, _ in starts])


def _starts(path: str, text: str) -> Iterator[_Start]:
    language = language_name(path, text[:200])
    if language in _NO_CODE or (language is None and not PurePath(path).suffix):
        return
    found = [*_with_keyword(text, language), *_with_braces(text, language)]
    if language in _SCRIPTS:
        found += [(one.start(), one["name"], "function") for one in _ASSIGNED.finditer(text)]
    row, at, known = 0, 0, -1
    for start, name, kind in sorted(found):
        row, at = row + text.count("\n", at, start), start
        if row != known:
            yield _Start(known := row, name, kind)


def _with_keyword(text: str, language: str | None) -> Iterator[tuple[int, str, str]]:
    for one in _WITH_KEYWORD.finditer(text):
        rest = text[one.end() : text.find("\n", one.end()) + 1 or len(text)].strip()
        prose = one["type"] in _WORDS_OF_PROSE and not _SIGNS.search(rest)
        if not prose and not (one["type"] and language in _C_FAMILY and _DECLARES_VARIABLE.search(rest)):
            yield one.start(), one["name"], "class" if one["type"] else "function"


def _with_braces(text: str, language: str | None) -> Iterator[tuple[int, str, str]]:
    for body in _OPENS_BODY.finditer(text):
        opens = text.rfind("(", max(body.start() - _MAX_PARAMETERS_CHARS, 0), body.start())
        start = text.rfind("\n", 0, max(opens, 0)) + 1
        if opens < 0 or opens - start > _MAX_HEAD_CHARS or _NO_PARAMETERS.search(text, opens + 1, body.start()):
            continue
        head = text[start:opens].strip(" \t")
        before = head.rstrip(_NAME)
        typed = before[:1] not in ":," if before else language not in _C_FAMILY
        if typed and len(before) < len(head) and not _CONTROL.match(head) and _BEFORE_NAME.fullmatch(before):
            yield start, head[len(before) :], "function"


def _with_extents(starts: Sequence[_Start], lines: Sequence[str]) -> list[Definition]:
    definitions: list[Definition] = []
    inside: list[tuple[int, int]] = []  # of each definition around the line: indentation, ever more, and number
    deepest = max((_indent(lines[start.row]) for start in starts), default=0)
    begun = iter([*starts, _Start(len(lines), "", "")])
    coming = next(begun)

    def close(kept: int, last: int) -> None:
        for _, number in inside[kept:]:
            definitions[number] = definitions[number]._replace(last=last)
        del inside[kept:]

    for row in [row for row, line in enumerate(lines) if line[: deepest + 1].strip()]:
        code = lines[row][(indent := _indent(lines[row])) :]
        if code[0] == "#":
            continue
        ends = row == coming.row or not _GOES_ON.match(code)
        kept = bisect_left(inside, (indent if ends else indent + 1, 0))
        if kept < len(inside):
            close(kept, _code_before(lines, row))
        if inside and indent == inside[-1][0] and _CLOSES.match(code):
            close(len(inside) - 1, row)
        if row == coming.row:
            first = row
            while first and row - first < _MAX_ABOVE and _ABOVE.match(lines[first - 1]):
                first -= 1
            definitions.append(Definition(coming.name, coming.kind, first, row, row, inside[-1][1] if inside else -1))
            inside.append((indent, len(definitions) - 1))
            coming = next(begun)
    close(0, _code_before(lines, len(lines)))
    return definitions


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _code_before(lines: Sequence[str], row: int) -> int:
    """Return the row of the last line before `row` that is neither blank nor a comment of `#`."""
    while row > 1 and lines[row - 1].lstrip()[:1] in ("", "#"):
        row -= 1
    return row - 1

"""Find sections: by headings (Markdown, RST, HTML), tables (TOML, INI), keys (YAML) or statements (SQL); no I/O."""

import re
from collections.abc import Callable, Iterator, Sequence

from ripwrap._code.patterns.definition import PatternDefinition, ScannedFile, indentation

Heading = tuple[int, int, int, str]
"""Heading of a section: index of the first line of the heading, index of the line with its text, level, and text."""

_ATX = re.compile(r" {0,3}(#{1,6})(?:\s+(.*))?$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*$")
_NO_TITLE = re.compile(r"\s*(?:[#>|]|[-*+]\s|\d+[.)]\s)|\s{4}|\s*$")
_TAG = re.compile(r"<h([1-6])\b[^<>]*>(.*?)(?:</h|$)", re.IGNORECASE)
_ANY_TAG = re.compile(r"<[^<>]*>")
_TABLE = re.compile(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:[#;].*)?$")
_KEY = re.compile(r"[-\s]*(?P<key>[^\s#\-:][^:#]*):(?:\s+(?P<value>[|>][-+\d]*|[&!]\S*))?$")
_COMMENT = re.compile(r"\s#.*")
_DASH = re.compile(r"\s*-(?:\s|$)")
_CREATE = re.compile(
    r"\s*CREATE\b[\w\s]*?\b(?:TABLE|VIEW|FUNCTION|PROCEDURE|PROC|TRIGGER|INDEX|TYPE|SCHEMA|DATABASE|SEQUENCE|ROLE|USER"
    r"|DOMAIN|EVENT|PACKAGE|POLICY|EXTENSION)\s+(?:BODY\s+|CONCURRENTLY\s+)?(?:IF\s+NOT\s+EXISTS\s+)?([\w.$\"`\[\]]+)",
    re.IGNORECASE,
)
_DEPTH = re.compile(r"\b(?:(BEGIN|CASE)|END)\b(?!\s+(?:IF|LOOP|WHILE|REPEAT|FOR)\b)|;", re.IGNORECASE)
_BATCH = re.compile(r"\s*(?:GO|/|//|\$\$)\s*$", re.IGNORECASE)


def document_sections(source: ScannedFile, form: str) -> list[PatternDefinition]:
    """Find the sections of a document or data file."""
    if form in _HEADINGS:
        return _leveled(source.lines, _HEADINGS[form](source))
    return _keys(source) if form == "yaml" else _statements(source)


def _leveled(lines: Sequence[str], headings: Iterator[Heading]) -> list[PatternDefinition]:
    """Return a section for each heading.

    A section ends before the next heading of the same or a higher level; blank lines at its end do not belong to it.
    """
    definitions: list[PatternDefinition] = []
    open_: list[tuple[int, PatternDefinition]] = []
    texts = _texts(lines)
    for start, line, level, name in headings:
        while open_ and open_[-1][0] >= level:
            definition = open_.pop()[1]
            definition.end = max(texts[start], definition.line)
        definition = PatternDefinition(name.strip(), line, start)
        definitions.append(definition)
        open_.append((level, definition))
    for _, definition in open_:
        definition.end = max(texts[-1], definition.line)
    return definitions


def _texts(lines: Sequence[str]) -> list[int]:
    """Return, for each line and for the end of the file, the index of the last nonblank line above, or -1."""
    texts = [-1]
    for index, line in enumerate(lines):
        texts.append(index if line.strip() else texts[-1])
    return texts


def _markdown(source: ScannedFile) -> Iterator[Heading]:
    lines, fence = source.lines, ""
    skipped = _front_matter(lines)
    for index in range(skipped, len(lines)):
        line = lines[index]
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        elif fence:
            continue
        elif heading := _ATX.match(line):
            yield index, index, len(heading[1]), (heading[2] or "").rstrip().rstrip("#")
        elif index > skipped and _UNDERLINE.match(line) and not _NO_TITLE.match(lines[index - 1]):
            yield index - 1, index - 1, 1 if "=" in line else 2, lines[index - 1]


def _front_matter(lines: Sequence[str]) -> int:
    if lines and lines[0].rstrip() in {"---", "+++"}:
        for index in range(1, len(lines)):
            if lines[index].rstrip() == lines[0].rstrip():
                return index + 1
    return 0


def _rst(source: ScannedFile) -> Iterator[Heading]:
    lines = source.lines
    styles: list[tuple[str, bool]] = []
    for index in range(1, len(lines)):
        mark, title = _rule(lines[index]), lines[index - 1]
        if not mark or not title.strip() or _rule(title) or len(lines[index].rstrip()) < len(title.rstrip()):
            continue
        over = index > 1 and _rule(lines[index - 2]) == mark
        if title[0].isspace() and not over:
            continue
        if (mark, over) not in styles:
            styles.append((mark, over))
        yield index - 2 if over else index - 1, index - 1, styles.index((mark, over)), title


def _rule(line: str) -> str:
    """Return the character of which a line consists, as in `====`.

    Return an empty string if the line has different characters, fewer than three characters, or letters or digits.
    """
    text = line.rstrip()
    repeated = len(text) > 2 and not (text[0].isalnum() or text[0].isspace()) and text == text[0] * len(text)
    return text[0] if repeated else ""


def _html(source: ScannedFile) -> Iterator[Heading]:
    for index, line in enumerate(source.code):
        if "<" in line and (heading := _TAG.search(line)):
            yield index, index, int(heading[1]), _ANY_TAG.sub("", heading[2])


def _tables(source: ScannedFile) -> Iterator[Heading]:
    depth = 0
    for index, (line, code) in enumerate(zip(source.lines, source.code, strict=True)):
        if not depth and index not in source.continued and (table := _TABLE.match(line)):
            yield source.first_comment_line(index), index, 1, table[1]
        elif source.code is not source.lines:  # not in INI, where brackets in values have no meaning
            depth = max(depth + code.count("[") - code.count("]"), 0)


_HEADINGS: dict[str, Callable[[ScannedFile], Iterator[Heading]]] = {
    "html": _html,
    "ini": _tables,
    "markdown": _markdown,
    "rst": _rst,
    "toml": _tables,
}


def _keys(source: ScannedFile) -> list[PatternDefinition]:
    """Find the YAML keys whose values continue on the lines below the keys."""
    definitions: list[PatternDefinition] = []
    open_: list[PatternDefinition] = []
    last, literal = -1, -1
    for index, line in enumerate(source.lines):
        text = line.lstrip()
        indent = indentation(line)
        if not text or (literal >= 0 and indent > literal):
            last = index if text else last
            continue
        if text.startswith("#"):
            continue
        literal = -1
        # The items of a list may have the same indentation as the key of the list.
        while open_ and open_[-1].indent >= indent + bool(_DASH.match(line)):
            definition = open_.pop()
            definition.end = max(last, definition.line)
        last = index
        if key := _KEY.match(_COMMENT.sub("", line, count=1).rstrip()):
            definition = PatternDefinition(key["key"].strip(" \"'"), index, index, indent=key.start("key"))
            definitions.append(definition)
            open_.append(definition)
            literal = definition.indent if (key["value"] or "").startswith(("|", ">")) else -1
    for definition in open_:
        definition.end = max(last, definition.line)
    return [definition for definition in definitions if definition.end > definition.line]


def _statements(source: ScannedFile) -> list[PatternDefinition]:
    """Find the CREATE statements of SQL. A semicolon, a line such as `GO`, or the next CREATE ends a statement."""
    definitions: list[PatternDefinition] = []
    definition: PatternDefinition | None = None
    depth, last = 0, -1
    for index, code in enumerate(source.code):
        if not code.strip():
            continue
        create = None if index in source.continued else _CREATE.match(source.lines[index])
        indent = indentation(code)
        if definition is not None and ((create and (not depth or indent <= definition.indent)) or _BATCH.match(code)):
            definition.end, definition = max(last, definition.line), None
        if create is not None and definition is None:
            start = source.first_comment_line(index)
            definition = PatternDefinition(create[1].strip('"`[]'), index, start, indent=indent)
            definitions.append(definition)
            depth = 0
        last = index
        if definition is not None and (depth := _depth(code, depth)) < 0:
            definition.end, definition = index, None
    if definition is not None:
        definition.end = max(last, definition.line)
    return definitions


def _depth(code: str, depth: int) -> int:
    """Return the number of blocks without `END` after a line, or -1 if a semicolon in the line ends the statement."""
    for token in _DEPTH.finditer(code):
        if token[0] == ";":
            if not depth:
                return -1
        else:
            depth = depth + 1 if token[1] else max(depth - 1, 0)
    return depth

"""Find definitions whose block is in braces; no I/O.

The text before an opening brace tells the kind of the definition. The end of the definition is found by counting
braces.
"""

import re
from dataclasses import dataclass

from ripwrap._code.patterns.definition import PatternDefinition, ScannedFile, indentation
from ripwrap._code.patterns.languages import Braced, Kind, find_definition
from ripwrap._code.patterns.scanner import DIRECTIVE

Pieces = list[tuple[str, int]]
"""Pieces of the text before a brace, each with the index of its line; the contents of `()` and `[]` are left out."""

_PIECE = re.compile(r"[{}()\[\];]|[^{}()\[\];]+")
_GROUP = re.compile(r"\([^(){}\[\];]*\)")
_PLAIN_GROUP = "\x01"  # Placeholder for parentheses without brackets in them. Such parentheses need no `_Frame`.
_MARKS = frozenset("{}()[];")
_GROUPS = frozenset("([")
_OPENERS = {")": "(", "]": "["}
_BEFORE = re.compile(r"[\s,]*(?:\b(?:public|private|protected)\s*:\s*)?")
_NEUTRAL = re.compile(r"[\w\s]+:\s*$|\s*[;{]")  # A label, or a brace on the line below its header.
_GOES_ON = re.compile(r"\s*(?:[.?:&|+\-*/=,]|(?:extends|implements|where|throws|with|else)\b)")
_OPEN_END = re.compile(r"(?:[=,:&|+\-*/?.]|=>|\b(?:extends|implements|class|interface|fun|func|function))\s*$")
_ANNOTATION = re.compile(r"\s*@[\w.:]+\s*(?:\(\))?\s*$")
_GENERIC = re.compile(r"<[^<>()]*(?<![=-])>")
_ANONYMOUS = re.compile(r"\bnew\b")
_MAX_DEPTH = 1_000
"""Maximum depth of nested blocks and parentheses; reading ends with the first line that exceeds it."""
_MAX_HEADER_PIECES = 60
"""Maximum number of pieces of a header. Longer headers are tables of data; only their last pieces are used."""


@dataclass(slots=True)
class _Frame:
    """A block, parentheses or square brackets that have not ended yet, or the whole file."""

    opener: str
    header: Pieces
    definition: PatternDefinition | None = None
    inside: bool = False
    indent: int = -1
    flat: bool = False
    soft: bool = False
    closed: PatternDefinition | None = None


def braced_definitions(source: ScannedFile, language: Braced) -> list[PatternDefinition]:
    """Find the definitions of a file in a language whose blocks are in braces.

    If the braces do not balance, the file is read a second time. In this second reading, a decrease of the indentation
    also ends blocks.
    """
    reader = _BraceReader(source, language, strict=True)
    if not reader.read():
        reader = _BraceReader(source, language, strict=False)
        reader.read()
    return reader.definitions


class _BraceReader:
    def __init__(self, source: ScannedFile, language: Braced, *, strict: bool) -> None:
        self.definitions: list[PatternDefinition] = []
        self._source = source
        self._language = language
        self._strict = strict
        self._frames = [_Frame("", [])]
        self._balanced = True
        self._code = 0
        """Index of the last line of code that was read."""
        self._first = 0
        """Index of the current line; -1 if the line begins in a string, or a brace in the line has closed a block."""
        self._lead = (-1, -1)
        """First line of the last definition, and the first comment line directly above that line."""

    def read(self) -> bool:
        """Read the file and return True if its braces balance."""
        for index, code in enumerate(self._source.code):
            if code and code != DIRECTIVE and not code.isspace():
                depth = len(self._frames)
                self._line(index, code)
                if index in self._source.clipped:
                    self._pop(depth, index)  # the part that was cut off may have the closing brackets
                self._code = index
                if len(self._frames) > _MAX_DEPTH or not (self._balanced or not self._strict):
                    break
        balanced = self._balanced and all(frame.opener != "{" for frame in self._frames)
        self._statement(self._frames[-1])
        self._pop(0)
        return balanced

    def _line(self, index: int, code: str) -> None:
        self._first = index if index not in self._source.continued else -1
        if not self._strict and self._first >= 0:
            self._dedent(code)
        if "(" in code:
            code = _GROUP.sub(_PLAIN_GROUP, code)
        for piece in _PIECE.findall(code + " "):
            top = self._frames[-1]
            if piece in _MARKS:
                self._mark(piece, top, index)
            elif top.header or not piece.isspace():
                if top.soft and not piece.isspace():
                    self._resume(top, piece)
                top.header.append((piece.replace(_PLAIN_GROUP, "()"), index))
        top = self._frames[-1]
        if top.header and self._language.newlines and top.opener not in _GROUPS:
            top.soft = True

    def _mark(self, mark: str, top: _Frame, index: int) -> None:
        if mark == "{":
            self._open(top, index)
        elif mark == "}":
            self._close(index)
        elif mark == ";":
            self._statement(top)
        elif mark in _GROUPS:
            if top.soft:
                self._statement(top)
            self._frames.append(_Frame(mark, [], inside=top.inside, indent=top.indent, flat=top.flat))
        elif top.opener == _OPENERS[mark]:
            self._frames.pop()
            self._frames[-1].header.append((top.opener + mark, index))

    def _open(self, top: _Frame, index: int) -> None:
        pieces = top.header[-_MAX_HEADER_PIECES:]
        frame = _Frame("{", [], inside=top.inside)
        if not self._strict:
            own_line = self._source.code[index].lstrip().startswith("{")
            frame.indent = self._indent(index if own_line or not pieces else pieces[0][1])
        header = "".join(text for text, _ in pieces) if pieces else ""
        plain, functions = _plain(header), self._allows_function(top)
        if header and (span := find_definition(self._language.definitions, plain, functions=functions)):
            kind, start, end = span
            frame.definition = self._add_definition(pieces, start, plain[start:end])
            frame.inside, frame.flat = kind is Kind.FUNCTION, kind is Kind.NAMESPACE
        elif top.closed is not None and self._continues(top.closed, header, index):
            frame.definition, frame.inside = top.closed, True
        elif "new" in header and _ANONYMOUS.search(header):
            frame.inside = False  # the body of an anonymous class, as in Java; its methods are definitions
        top.header, top.soft = [], False
        self._frames.append(frame)

    def _continues(self, closed: PatternDefinition, header: str, index: int) -> bool:
        """Return True if a brace opens one more block of the definition `closed`.

        This is the case after a type in braces, as in `f(): Promise<{…}> {`, and after member initialisers of C++.
        """
        if self._language.initialisers and (not header or header.lstrip().startswith(",")):
            return True
        return closed.end == index and (not header or header.lstrip().startswith(">"))

    def _add_definition(self, pieces: Pieces, at: int, name: str) -> PatternDefinition:
        first = next((number for text, number in pieces if not _BEFORE.fullmatch(text)), pieces[0][1])
        line = pieces[-1][1]
        for text, number in pieces:
            if at < len(text):
                line = number
                break
            at -= len(text)
        if self._lead[0] != first:
            self._lead = first, self._source.first_comment_line(first)
        receiver = self._language.receiver and self._language.receiver.match(self._source.lines[line])
        name = "".join(name.split()) if "::" in name else name
        definition = PatternDefinition(f"{receiver[1]}.{name}" if receiver else name, line, self._lead[1])
        self.definitions.append(definition)
        return definition

    def _close(self, index: int) -> None:
        frames = self._frames
        while frames[-1].opener in _GROUPS:
            frames.pop()
        self._statement(frames[-1])
        if len(frames) == 1:
            self._balanced = False
        elif self._strict or self._first != index or frames[-1].indent == self._indent(index):
            self._first = -1
            frame = frames.pop()
            if frame.definition is not None:
                frame.definition.end = index
            top = frames[-1]
            top.header, top.soft, top.closed = [], False, frame.definition

    def _indent(self, index: int) -> int:
        return indentation(self._source.code[index])

    def _resume(self, top: _Frame, text: str) -> None:
        """End the open statement unless the text on a new line continues it."""
        header = "".join(text for text, _ in top.header[-3:])
        if header.lstrip().startswith("import") or not (
            _GOES_ON.match(text) or _OPEN_END.search(header) or _ANNOTATION.match(header)
        ):
            self._statement(top)
        top.soft = False

    def _statement(self, top: _Frame) -> None:
        """End a statement, and record it if it is a definition without braces."""
        if top.header and self._language.short:
            self._short(top)
        if top.header and top.closed is not None and not top.closed.name:
            self._name_type(top)
        top.header, top.soft, top.closed = [], False, None

    def _short(self, top: _Frame) -> None:
        pieces = top.header[-_MAX_HEADER_PIECES:]
        header = "".join(text for text, _ in pieces)
        functions = self._allows_function(top)
        if (span := find_definition(self._language.short, _plain(header), functions=functions)) is not None:
            _, start, end = span
            definition = self._add_definition(pieces, start, header[start:end])
            definition.end = max(number for text, number in pieces if not text.isspace())

    def _allows_function(self, frame: _Frame) -> bool:
        """Return True if a frame may have a function definition in this language."""
        return self._language.nested or not frame.inside

    def _name_type(self, top: _Frame) -> None:
        """Set the name of a type whose name follows its block, as in `typedef struct {…} name;`."""
        name = "".join(text for text, _ in top.header[-2:]).strip()
        if top.closed is not None and name.isidentifier():
            top.closed.name = name

    def _dedent(self, code: str) -> None:
        """End the blocks that a line ends by its indentation; used if braces do not balance."""
        indent = indentation(code)
        closes = code.lstrip().startswith("}")
        if _NEUTRAL.match(code):
            return
        depth = len(self._frames)
        while depth > 1 and (
            (frame := self._frames[depth - 1]).indent > indent
            or (frame.indent == indent and not closes and frame.definition is not None and not frame.flat)
        ):
            depth -= 1
        self._pop(depth, self._code)

    def _pop(self, depth: int, end: int | None = None) -> None:
        last = self._code if end is None else end
        while len(self._frames) > max(depth, 1):
            frame = self._frames.pop()
            if frame.definition is not None:
                frame.definition.end = max(last, frame.definition.line)
            if frame.opener == "{":
                self._frames[-1].header = []


def _plain(header: str) -> str:
    """Return a header with spaces in place of angle brackets and their contents."""
    for _ in range(3 if "<" in header else 0):
        header = _GENERIC.sub(lambda generic: " " * len(generic[0]), header)
    return header

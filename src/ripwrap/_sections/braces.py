"""Definitions whose block is in braces: the text before one says what it opens, counting where it ends; pure."""

import re
from dataclasses import dataclass

from ripwrap._sections.draft import Draft, Source, indent_of
from ripwrap._sections.languages import Braced, Kind, found
from ripwrap._sections.scanner import DIRECTIVE

Pieces = list[tuple[str, int]]
"""What stands before a brace, with the line of each piece; of what is in parentheses only these."""

_PIECE = re.compile(r"[{}()\[\];]|[^{}()\[\];]+")
_GROUP = re.compile(r"\([^(){}\[\];]*\)")
_PLAIN_GROUP = "\x01"  # Parentheses with nothing in them that counts, which is most: as text they take no frame.
_MARKS = frozenset("{}()[];")
_GROUPS = frozenset("([")
_OPENERS = {")": "(", "]": "["}
_BEFORE = re.compile(r"[\s,]*(?:\b(?:public|private|protected)\s*:\s*)?")
_NEUTRAL = re.compile(r"[\w\s]+:\s*$|\s*[;{]")  # A label, a preprocessor's line, a brace below its header.
_GOES_ON = re.compile(r"\s*(?:[.?:&|+\-*/=,]|(?:extends|implements|where|throws|with|else)\b)")
_OPEN_END = re.compile(r"(?:[=,:&|+\-*/?.]|=>|\b(?:extends|implements|class|interface|fun|func|function))\s*$")
_ANNOTATION = re.compile(r"\s*@[\w.:]+\s*(?:\(\))?\s*$")
_GENERIC = re.compile(r"<[^<>()]*(?<![=-])>")
_ANONYMOUS = re.compile(r"\bnew\b")
_DEEPEST = 1_000  # Blocks and parentheses in each other; what is deeper is no program.
_MOST_PIECES = 60  # Of a header; what is longer is a table, not a definition.


@dataclass(slots=True)
class _Frame:
    """What is open: the file, a block, or parentheses."""

    opener: str
    header: Pieces
    draft: Draft | None = None
    inside: bool = False
    """Whether it is in the body of a function."""
    indent: int = -1
    flat: bool = False
    """Whether what is in it may be no deeper than itself, as in a namespace."""
    soft: bool = False
    """Whether a line has ended in the header, which ends a statement unless it goes on."""
    closed: Draft | None = None
    """The definition whose block was the last thing here."""


def braced(source: Source, language: Braced) -> list[Draft]:
    """The definitions of a file; where its braces do not balance, indentation says where blocks end."""
    reader = _Reader(source, language, strict=True)
    if not reader.read():
        reader = _Reader(source, language, strict=False)
        reader.read()
    return reader.drafts


class _Reader:
    def __init__(self, source: Source, language: Braced, *, strict: bool) -> None:
        self.drafts: list[Draft] = []
        self._source = source
        self._language = language
        self._strict = strict
        self._frames = [_Frame("", [])]
        self._balanced = True
        self._code = 0
        self._first = 0
        self._lead = (-1, -1)

    def read(self) -> bool:
        """Whether all that was opened was closed, and no more."""
        for index, code in enumerate(self._source.code):
            if code and code != DIRECTIVE and not code.isspace():
                depth = len(self._frames)
                self._line(index, code)
                if index in self._source.clipped:
                    self._pop(depth, index)  # what it opens may be closed where nobody looks
                self._code = index
                if len(self._frames) > _DEEPEST or not (self._balanced or not self._strict):
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
        pieces = top.header[-_MOST_PIECES:]
        frame = _Frame("{", [], inside=top.inside)
        if not self._strict:
            own_line = self._source.code[index].lstrip().startswith("{")
            frame.indent = self._indent(index if own_line or not pieces else pieces[0][1])
        header = "".join(text for text, _ in pieces) if pieces else ""
        if header and (place := found(self._language.definitions, plain := _plain(header), functions=self._named(top))):
            kind, start, end = place
            frame.draft = self._draft(pieces, start, plain[start:end])
            frame.inside, frame.flat = kind is Kind.FUNCTION, kind is Kind.SPACE
        elif top.closed is not None and self._continues(top.closed, header, index):
            frame.draft, frame.inside = top.closed, True
        elif "new" in header and _ANONYMOUS.search(header):
            frame.inside = False
        top.header, top.soft = [], False
        self._frames.append(frame)

    def _continues(self, closed: Draft, header: str, index: int) -> bool:
        """Whether a block goes on with what seemed one: a type in braces, or C++'s way to initialise members."""
        if self._language.initialisers and (not header or header.lstrip().startswith(",")):
            return True
        return closed.end == index and (not header or header.lstrip().startswith(">"))

    def _draft(self, pieces: Pieces, at: int, name: str) -> Draft:
        first = next((number for text, number in pieces if not _BEFORE.fullmatch(text)), pieces[0][1])
        line = pieces[-1][1]
        for text, number in pieces:
            if at < len(text):
                line = number
                break
            at -= len(text)
        if self._lead[0] != first:
            self._lead = first, self._source.lead(first)
        receiver = self._language.receiver and self._language.receiver.match(self._source.lines[line])
        name = "".join(name.split()) if "::" in name else name
        draft = Draft(f"{receiver[1]}.{name}" if receiver else name, line, self._lead[1])
        self.drafts.append(draft)
        return draft

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
            if frame.draft is not None:
                frame.draft.end = index
            top = frames[-1]
            top.header, top.soft, top.closed = [], False, frame.draft

    def _indent(self, index: int) -> int:
        return indent_of(self._source.code[index])

    def _resume(self, top: _Frame, text: str) -> None:
        """A new line after text: the same statement, or the next."""
        header = "".join(text for text, _ in top.header[-3:])
        if header.lstrip().startswith("import") or not (
            _GOES_ON.match(text) or _OPEN_END.search(header) or _ANNOTATION.match(header)
        ):
            self._statement(top)
        top.soft = False

    def _statement(self, top: _Frame) -> None:
        """The end of a statement, which may be a definition without braces."""
        if top.header and self._language.short:
            self._short(top)
        if top.header and top.closed is not None and not top.closed.name:
            self._christen(top)
        top.header, top.soft, top.closed = [], False, None

    def _short(self, top: _Frame) -> None:
        pieces = top.header[-_MOST_PIECES:]
        header = "".join(text for text, _ in pieces)
        if (place := found(self._language.short, _plain(header), functions=self._named(top))) is not None:
            _, start, end = place
            draft = self._draft(pieces, start, header[start:end])
            draft.end = max(number for text, number in pieces if not text.isspace())

    def _named(self, frame: _Frame) -> bool:
        """Whether a function may be defined where a frame is."""
        return self._language.nested or not frame.inside

    def _christen(self, top: _Frame) -> None:
        """The name of a type that comes after it, as in `typedef struct {…} name;`."""
        name = "".join(text for text, _ in top.header[-2:]).strip()
        if top.closed is not None and name.isidentifier():
            top.closed.name = name

    def _dedent(self, code: str) -> None:
        """Where braces do not balance: what is not deeper than a block is no part of it."""
        indent = indent_of(code)
        closes = code.lstrip().startswith("}")
        if _NEUTRAL.match(code):
            return
        depth = len(self._frames)
        while depth > 1 and (
            (frame := self._frames[depth - 1]).indent > indent
            or (frame.indent == indent and not closes and frame.draft is not None and not frame.flat)
        ):
            depth -= 1
        self._pop(depth, self._code)

    def _pop(self, depth: int, end: int | None = None) -> None:
        last = self._code if end is None else end
        while len(self._frames) > max(depth, 1):
            frame = self._frames.pop()
            if frame.draft is not None:
                frame.draft.end = max(last, frame.draft.line)
            if frame.opener == "{":
                self._frames[-1].header = []


def _plain(header: str) -> str:
    """A header with spaces for what stands in angle brackets."""
    for _ in range(3 if "<" in header else 0):
        header = _GENERIC.sub(_spaces, header)
    return header


def _spaces(generic: re.Match[str]) -> str:
    return " " * len(generic[0])

"""Find definitions whose block ends where the indentation decreases, or at a closing line such as `end`; no I/O."""

import re

from ripwrap._code.patterns.definition import PatternDefinition, ScannedFile, indentation
from ripwrap._code.patterns.languages import Indented

_BRACKETS = re.compile(r"[()\[\]{}]")


def indented_definitions(source: ScannedFile, language: Indented) -> list[PatternDefinition]:
    """Find the definitions of a file in an `Indented` language."""
    reader = _IndentReader(source, language)
    for index, code in enumerate(source.code):
        reader.line(index, code)
    reader.close(-1)
    found = reader.definitions
    if language.prose:
        return [one for one in found if one.end > one.line or _is_code(source.code[one.line])]
    return found


class _IndentReader:
    def __init__(self, source: ScannedFile, language: Indented) -> None:
        self.definitions: list[PatternDefinition] = []
        self._source = source
        self._language = language
        self._open: list[PatternDefinition] = []
        self._last = -1
        self._comments: list[tuple[int, int]] = []
        """Index and indentation of each comment line since the last line of code."""
        self._lead = -1
        """First line of the decorators above the next line of code; -1 if there are none."""
        self._depth = 0
        self._goes_on = False

    def line(self, index: int, code: str) -> None:
        """Read the next line of the file."""
        if not code or code.isspace():
            self._note(index)
            return
        match = self._language.definition_start.match(code)
        continues = index in self._source.continued or self._goes_on or self._depth > 0
        if continues and not (match and self._depth and index not in self._source.continued):
            self._follow(index, code)
            return
        # Definitions are never in brackets. If a bracket seems open here, it was part of a string or regular
        # expression.
        self._depth = 0
        indent = indentation(code)
        text = code.strip()
        if self._dedent(index, indent, text, defines=match is not None):
            self._follow(index, code)
        elif match is not None:
            self._define(index, code, match, indent)
        elif self._language.decorator is not None and self._language.decorator.match(code):
            self._lead = self._lead_at(index, indent)
            self._follow(index, code)
        else:
            self._lead = -1
            self._follow(index, code)

    def close(self, indent: int) -> None:
        """End the open definitions that are indented deeper than `indent`."""
        at = 0
        while self._open and self._open[-1].indent > indent:
            definition = self._open.pop()
            while at < len(self._comments) and self._comments[at][1] > definition.indent:
                at += 1
            comments = self._comments[at - 1][0] if at else -1
            last = max(self._last, comments) if definition.outdent < 0 else definition.outdent
            definition.end = max(last, definition.signature_end)

    def _note(self, index: int) -> None:
        """Remember a line if it is a comment; ignore it if it is blank."""
        if self._source.lines[index].strip():
            self._comments.append((index, indentation(self._source.lines[index])))

    def _follow(self, index: int, code: str) -> None:
        """Add a line to the open definitions, and note if the next line continues their signature or statement."""
        in_signature = bool(self._open) and self._open[-1].signature_end == self._last
        if in_signature and (self._depth or self._goes_on) and self._lead < 0:
            self._open[-1].signature_end = index
        self._last = index
        self._comments.clear()
        if self._language.brackets and index not in self._source.clipped:
            for bracket in _BRACKETS.findall(code):
                if bracket in self._language.brackets:
                    self._depth = max(self._depth + (1 if bracket in "([{" else -1), 0)
        self._goes_on = code.endswith("\\")

    def _define(self, index: int, code: str, match: re.Match[str], indent: int) -> None:
        start = self._lead_at(index, indent)
        self._lead = -1
        name = match[match.lastindex or 0].strip()
        definition = PatternDefinition(name, index, start, indent=indent, signature_end=index)
        self.definitions.append(definition)
        self._open.append(definition)
        self._last = index
        self._follow(index, code)

    def _lead_at(self, index: int, indent: int) -> int:
        """Return the first line of the decorators above a line, or else of the comments above it.

        Comments count only if they are directly above the line and have the indentation of the line. If there are
        neither decorators nor comments, return the line itself.
        """
        if self._lead >= 0:
            return self._lead
        for line, column in reversed(self._comments):
            if line != index - 1 or column != indent:
                break
            index = line
        return index

    def _dedent(self, index: int, indent: int, text: str, *, defines: bool) -> bool:
        """End the blocks that end above a line or at the line.

        Return True if the line belongs to a block: it ends the block, as `end` does, or continues it, as `else` does.
        """
        self.close(indent)
        language = self._language
        while self._open and self._open[-1].indent == indent:
            definition = self._open[-1]
            if language.closer is not None and language.closer.match(text):
                definition.end = index
                self._open.pop()
                return True
            if language.joins is not None and language.joins.match(text):
                definition.signature_end = index if definition.signature_end == self._last else definition.signature_end
                return True
            if self._stays(definition, defines=defines):
                return False
            self.close(indent - 1)
        return False

    def _stays(self, definition: PatternDefinition, *, defines: bool) -> bool:
        """Return True if a definition goes on, although the current line is not indented deeper than the definition."""
        if definition.flat:
            return True
        if definition.outdent < 0:
            opens = self._language.opens
            if opens is None or not opens.search(self._source.code[definition.signature_end]):
                return False
            definition.flat = definition.signature_end == self._last
            definition.outdent = self._last  # the line continues a text, or the block has no closing line
        return definition.flat or not defines


def _is_code(line: str) -> bool:
    return line.rstrip().endswith((")", "}", ";", "end"))

"""Definitions whose block is seen by its indentation, and by what closes it where there is such a thing; pure."""

import re

from ripwrap._sections.draft import Draft, Source, indent_of
from ripwrap._sections.languages import Indented

_BRACKETS = re.compile(r"[()\[\]{}]")


def indented(source: Source, language: Indented) -> list[Draft]:
    """The definitions of a file."""
    reader = _Reader(source, language)
    for index, code in enumerate(source.code):
        reader.line(index, code)
    reader.close(-1)
    if language.prose:
        return [draft for draft in reader.drafts if draft.end > draft.line or _is_code(source.code[draft.line])]
    return reader.drafts


class _Reader:
    def __init__(self, source: Source, language: Indented) -> None:
        self.drafts: list[Draft] = []
        self._source = source
        self._language = language
        self._open: list[Draft] = []
        self._last = -1
        self._comments: list[tuple[int, int]] = []
        """Index and indentation of the comment lines since the last line of code."""
        self._lead = -1
        """Where the decorators begin that the next line of code belongs to."""
        self._depth = 0
        self._goes_on = False

    def line(self, index: int, code: str) -> None:
        """Take the next line."""
        if not code or code.isspace():
            self._note(index)
            return
        match = self._language.definition.match(code)
        continues = index in self._source.continued or self._goes_on or self._depth > 0
        if continues and not (match and self._depth and index not in self._source.continued):
            self._follow(index, code)
            return
        # A definition is never in brackets: if they seem open, a bracket was taken for what it is not.
        self._depth = 0
        indent = indent_of(code)
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
        """End what is deeper than an indentation."""
        at = 0
        while self._open and self._open[-1].indent > indent:
            draft = self._open.pop()
            while at < len(self._comments) and self._comments[at][1] > draft.indent:
                at += 1
            comments = self._comments[at - 1][0] if at else -1
            draft.end = max(self._last, comments, draft.head) if draft.outdent < 0 else max(draft.outdent, draft.head)

    def _note(self, index: int) -> None:
        """A blank line or a comment."""
        if self._source.lines[index].strip():
            self._comments.append((index, indent_of(self._source.lines[index])))

    def _follow(self, index: int, code: str) -> None:
        """A line that belongs to what is open."""
        if self._open and self._open[-1].head == self._last and (self._depth or self._goes_on) and self._lead < 0:
            self._open[-1].head = index
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
        draft = Draft(name, index, start, indent=indent, head=index)
        self.drafts.append(draft)
        self._open.append(draft)
        self._last = index
        self._follow(index, code)

    def _lead_at(self, index: int, indent: int) -> int:
        """Where decorators, or comments of the same indentation directly above, begin."""
        if self._lead >= 0:
            return self._lead
        for line, column in reversed(self._comments):
            if line != index - 1 or column != indent:
                break
            index = line
        return index

    def _dedent(self, index: int, indent: int, text: str, *, defines: bool) -> bool:
        """End the blocks that a line ends; whether it belongs to one of them."""
        self.close(indent)
        language = self._language
        while self._open and self._open[-1].indent == indent:
            draft = self._open[-1]
            if language.closer is not None and language.closer.match(text):
                draft.end = index
                self._open.pop()
                return True
            if language.joins is not None and language.joins.match(text):
                draft.head = index if draft.head == self._last else draft.head
                return True
            if self._stays(draft, defines=defines):
                return False
            self.close(indent - 1)
        return False

    def _stays(self, draft: Draft, *, defines: bool) -> bool:
        """Whether a block goes on at a line that is no deeper than its definition."""
        if draft.flat:
            return True
        if draft.outdent < 0:
            opens = self._language.opens
            if opens is None or not opens.search(self._source.code[draft.head]):
                return False
            draft.flat = draft.head == self._last
            draft.outdent = self._last  # text over lines, or the end of a block that nothing closes
        return draft.flat or not defines


def _is_code(line: str) -> bool:
    return line.rstrip().endswith((")", "}", ";", "end"))

"""A file's definitions, by indentation and per-language patterns."""

import re
from collections.abc import Sequence

from ripwrap._sections import Section
from ripwrap._sections.braces import braced
from ripwrap._sections.documents import documented
from ripwrap._sections.draft import Draft, indent_of
from ripwrap._sections.indents import indented
from ripwrap._sections.languages import Braced, Document, Indented, Language, language_of
from ripwrap._sections.scanner import WIDTH, source_of

_LONGEST = 200
_BLOCK = re.compile(r"\s*(?:async|case|elif|else|except|finally|for|if|match|try|while|with)\b")
_BEHIND = 40  # Lines in which what a decorator or comment belongs to, and the brace of a signature, should come.
_WHOLE = 3_000  # Lines of a file that may be read as a whole for a place that may be in a string.
_LONG = 500  # Lines of a string in which a place may be, behind those that are read.
_NO_PATH = {"html", "ini", "markdown", "rst", "toml", "sql"}


class Outline:
    """The definitions of a file, to be asked for many lines.

    It is made by patterns and not by a parser: what is unusual in a file may be missed, or end elsewhere. A file of any
    content takes time in proportion to its size. A line on which several definitions begin is that of the first.
    """

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        """Read a file.

        Args:
            path: Its path; only the name tells the language.
            lines: Its lines, with or without what ends them; of each, 2,000 characters are looked at.
        """
        language = language_of(path, lines)
        self._lines = lines
        self._qualify = not (isinstance(language, Document) and language.format in _NO_PATH)
        self._drafts = [] if language is None else _ordered(_read(language, lines))
        self._parents: list[int] = []
        self._owners = self._assign(len(lines))
        self._sections: dict[int, Section] = {}

    def at(self, line_number: int) -> Section | None:
        """The innermost section that encloses a line, from 1; `None` at the top level.

        Decorators, attributes and comments directly above a definition belong to it.
        """
        if not 1 <= line_number <= len(self._owners) or (owner := self._owners[line_number - 1]) < 0:
            return None
        if owner not in self._sections:
            self._sections[owner] = self._section(owner)
        return self._sections[owner]

    def _section(self, owner: int) -> Section:
        draft = self._drafts[owner]
        text = self._lines[draft.line][:WIDTH].strip()[:_LONGEST]
        name = self._qualified(owner) if self._qualify else draft.name[:_LONGEST]
        return Section(name=name, line=draft.line + 1, text=text, end_line=draft.end + 1)

    def _qualified(self, owner: int) -> str:
        """The name with those around it; alone if that is longer than a line should be."""
        name = full = self._drafts[owner].name[:_LONGEST]
        for _ in range(_LONGEST):
            owner = self._parents[owner]
            if owner < 0:
                return full
            if outer := self._drafts[owner].name:
                full = f"{outer}.{full}" if full else outer
            if len(full) > _LONGEST:
                break
        return name

    def _assign(self, count: int) -> list[int]:
        """For each line the innermost definition that it belongs to; on the way, what each definition stands in."""
        owners: list[int] = []
        stack: list[int] = []
        drafts = self._drafts
        for number, draft in enumerate(drafts):
            self._fill(owners, stack, draft.start)
            while stack and drafts[stack[-1]].end < max(draft.end, draft.start):
                stack.pop()
            self._parents.append(stack[-1] if stack else -1)
            stack.append(number)
        self._fill(owners, stack, count)
        return owners

    def _fill(self, owners: list[int], stack: list[int], upto: int) -> None:
        while len(owners) < upto:
            while stack and self._drafts[stack[-1]].end < len(owners):
                stack.pop()
            end = min(upto, self._drafts[stack[-1]].end + 1) if stack else upto
            owners.extend([stack[-1] if stack else -1] * (end - len(owners)))


class Places:
    """As an `Outline`, for a few lines of a file, of which no more is read than they take.

    Where indentation tells what a block is, that is from the last definition at the left margin on; where nothing else
    does, as in Python, from the last definition on, with those around it. Of what follows a line it is a little.
    """

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        """Take a file; arguments are those of `Outline`."""
        self._path = path
        self._lines = lines
        self._language = language_of(path, lines)
        self._outlines: dict[tuple[int, ...], tuple[int, Outline]] = {}

    def at(self, line_number: int) -> str:
        """The name of the innermost section that encloses a line, from 1; empty if it has none."""
        *around, first = chain = self._chain(line_number)
        upto, outline = self._outlines.get(chain, (0, None))
        if outline is None or upto < line_number:
            upto = self._upto(first, line_number)
            outline = Outline(self._path, [*(self._lines[index] for index in around), *self._lines[first:upto]])
            self._outlines[chain] = (upto, outline)
        section = outline.at(line_number - first + len(around))
        return section.name if section else ""

    def _chain(self, line_number: int) -> tuple[int, ...]:
        """Where to begin to read, and before that the definitions that stand around."""
        language = self._language
        if not isinstance(language, Indented):
            return (0,)
        above = range(min(line_number, len(self._lines)) - 1, 0, -1)
        starts = (index for index in above if not self._lines[index][:1].isspace())
        margin = next((index for index in starts if language.definition.match(self._lines[index])), 0)
        if language.plain:
            if self._is_quoted(margin):
                return (0,)
            return self._around(language, margin, line_number) or (margin,)
        return (margin,)

    def _upto(self, first: int, line_number: int) -> int:
        """Where to end: behind the next definition, if nothing else tells what a line belongs to."""
        language = self._language
        if not isinstance(language, Indented):
            return len(self._lines)
        most = min(line_number + _BEHIND, len(self._lines))
        if language.plain:
            for index in range(line_number, most):
                if language.definition.match(self._lines[index]) and not self._in_string(first, index):
                    return index + 1
            if self._in_string(first, most):  # which without its end would be taken for none
                further = range(most, min(most + _LONG, len(self._lines)))
                return next((index + 1 for index in further if self._in_string(index, index + 1)), most)
        return most

    def _around(self, language: Indented, margin: int, line_number: int) -> tuple[int, ...]:
        """The definitions around the last one, the outermost first, and that; none if they are not plainly told.

        Where there is none above, it is the beginning of the line's paragraph, in which there may be one below.
        """
        chain: list[int] = []
        least = 0
        last = min(line_number, len(self._lines)) - 1
        if not any(map(language.definition.match, self._lines[margin : last + 1])):
            first = last
            while first > margin and last - first < _BEHIND and self._lines[first - 1].strip():
                first -= 1
            return () if self._in_string(margin, first) else (first,)
        for index in range(last, margin - 1, -1):
            line = self._lines[index]
            if chain and (not (text := line.lstrip()) or text[0] == "#" or indent_of(line) >= least):
                continue
            if language.definition.match(line) and not self._in_string(margin, index):
                chain.append(index)
                least = indent_of(line)
            elif chain and _BLOCK.match(line) and not self._in_string(margin, index):
                least = indent_of(line)
            elif chain:  # it ends a block, or is in a string or in brackets
                return ()
        return tuple(reversed(chain))

    def _is_quoted(self, index: int) -> bool:
        """Whether a line is in a string of several lines, if the quotes of a file that is not large tell."""
        count = len(self._lines)
        return count <= _WHOLE and self._in_string(0, index) and not self._in_string(0, count)

    def _in_string(self, margin: int, index: int) -> bool:
        """Whether a line seems to be in a string of several lines that was begun since the margin."""
        text = "\n".join(self._lines[margin:index])
        return any(text.count(quotes) % 2 for quotes in ('"""', "'''"))


def _read(language: Language, lines: Sequence[str]) -> list[Draft]:
    source = source_of(lines, language.opener)
    if isinstance(language, Braced):
        return braced(source, language)
    return indented(source, language) if isinstance(language, Indented) else documented(source, language.format)


def _ordered(drafts: list[Draft]) -> list[Draft]:
    """By where they start, outer ones first; a line on which several are defined is that of the first."""
    ordered: list[Draft] = []
    line = -1
    for draft in sorted(drafts, key=lambda draft: (draft.line, -draft.end)):
        if draft.line == line:
            draft.start = line + 1
        line = draft.line
        if draft.start <= draft.end:
            ordered.append(draft)
    ordered.sort(key=lambda draft: (draft.start, -draft.end))
    return ordered

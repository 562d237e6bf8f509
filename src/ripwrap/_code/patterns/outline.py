"""Find definitions with regular expressions: in a whole file, or in lines near a requested line (`NearbyOutline`).

No parser is used, so a definition in unusual code may be missed, or get a wrong end. The time to read a file is in
proportion to its size, whatever its content.
"""

import re
from collections.abc import Sequence

from ripwrap._code.outline import MAX_NAME_CHARS, Section
from ripwrap._code.patterns.braces import braced_definitions
from ripwrap._code.patterns.definition import PatternDefinition, indentation
from ripwrap._code.patterns.documents import document_sections
from ripwrap._code.patterns.indents import indented_definitions
from ripwrap._code.patterns.languages import Braced, Document, Indented, Language, language_patterns
from ripwrap._code.patterns.scanner import MAX_LINE_CHARS, scan_lines

_BLOCK = re.compile(r"\s*(?:async|case|elif|else|except|finally|for|if|match|try|while|with)\b")
_LOOKAHEAD_LINES = 40
"""Maximum number of lines that are read below a requested line, because a definition may follow a decorator or comment,
or an opening brace may follow a signature.
"""
_MAX_QUOTED_FILE_LINES = 3_000
"""Maximum number of lines of a file in which triple quotes are counted to find out whether a line is in a string."""
_MAX_STRING_LINES = 500
"""Maximum number of additional lines that are read to find the end of a string with triple quotes."""
_UNQUALIFIED_FORMATS = frozenset({"html", "ini", "markdown", "rst", "toml", "sql"})


class PatternOutline:
    """`Outline` that finds all definitions of a file at once; use it to ask about many lines.

    If several definitions have their names on one line, the line belongs to the definition that ends last.
    """

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        """Find the definitions."""
        language = language_patterns(path, lines)
        self._lines = lines
        self._qualify = not (isinstance(language, Document) and language.format in _UNQUALIFIED_FORMATS)
        self._definitions = [] if language is None else _in_order(_find_definitions(language, lines))
        self._parents: list[int] = []
        self._owners = self._assign_lines(len(lines))
        self._sections: dict[int, Section] = {}

    def enclosing(self, line: int) -> Section | None:
        """Return the innermost section around a line (counted from 1), or None at the top level."""
        if not 1 <= line <= len(self._owners) or (owner := self._owners[line - 1]) < 0:
            return None
        if owner not in self._sections:
            self._sections[owner] = self._section(owner)
        return self._sections[owner]

    def outer(self, line: int) -> Section | None:
        """Return the section around the innermost section of a line, or None if there is none."""
        if not 1 <= line <= len(self._owners) or (owner := self._owners[line - 1]) < 0:
            return None
        return None if self._parents[owner] < 0 else self._section(self._parents[owner])

    def sections(self) -> tuple[Section, ...]:
        """Return all sections of the file, in the order of their first lines, outer sections first."""
        return tuple(map(self._section, range(len(self._definitions))))

    def _section(self, owner: int) -> Section:
        definition = self._definitions[owner]
        text = self._lines[definition.line][:MAX_LINE_CHARS].strip()[:MAX_NAME_CHARS]
        name = self._qualified_name(owner) if self._qualify else definition.name[:MAX_NAME_CHARS]
        return Section(name=name, line=definition.line + 1, text=text, end_line=definition.end + 1)

    def _qualified_name(self, owner: int) -> str:
        """Return a qualified name (`Shop.add`), or only the last part if the qualified name is too long."""
        name = full = self._definitions[owner].name[:MAX_NAME_CHARS]
        for _ in range(MAX_NAME_CHARS):
            owner = self._parents[owner]
            if owner < 0:
                return full
            if outer := self._definitions[owner].name:
                full = f"{outer}.{full}" if full else outer
            if len(full) > MAX_NAME_CHARS:
                break
        return name

    def _assign_lines(self, count: int) -> list[int]:
        """Return for each line the index of its innermost definition, or -1; set the parent of each definition."""
        owners: list[int] = []
        stack: list[int] = []
        definitions = self._definitions
        for number, definition in enumerate(definitions):
            self._extend_owners(owners, stack, definition.start)
            while stack and definitions[stack[-1]].end < max(definition.end, definition.start):
                stack.pop()
            self._parents.append(stack[-1] if stack else -1)
            stack.append(number)
        self._extend_owners(owners, stack, count)
        return owners

    def _extend_owners(self, owners: list[int], stack: list[int], end: int) -> None:
        while len(owners) < end:
            while stack and self._definitions[stack[-1]].end < len(owners):
                stack.pop()
            run_end = min(end, self._definitions[stack[-1]].end + 1) if stack else end
            owners.extend([stack[-1] if stack else -1] * (run_end - len(owners)))


class NearbyOutline:
    """`Outline` that reads, in some languages, only a part of the file; use it to ask about a few lines.

    Ranking asks for one line of each result. Reading the whole files would take longer than the ranking itself.

    The part that is read for a line depends on the language:

    - Languages in which only indentation ends a block, such as Python: from the last definition above the line to a few
      lines below the line; also the first lines of the definitions around the line.
    - Languages in which indentation or a closing line ends a block, such as Ruby: from the last definition at the left
      margin above the line to a few lines below the line.
    - Other languages: the whole file.
    """

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        """Set the file, which `enclosing()` reads later. The arguments are the same as for `PatternOutline`."""
        self._path = path
        self._lines = lines
        self._language = language_patterns(path, lines)
        self._outlines: dict[tuple[int, ...], tuple[int, PatternOutline]] = {}
        self._starts: dict[int, tuple[int, ...]] = {}
        self._none_above = 0

    def enclosing(self, line: int) -> Section | None:
        """Return the innermost section around a line (counted from 1), or None at the top level.

        If only a part of the file was read, the section may end later in the file than `end_line` says.
        """
        language = self._language
        if isinstance(language, Indented) and language.plain and self._nearest_definition(language, line) < 0:
            below = self._lines[line : line + _LOOKAHEAD_LINES]
            if not any(map(language.definition_start.match, below)):
                return None  # no definition is near, so an outline of these lines would be empty
        *around, first = chain = self._reading_start(line)
        end, outline = self._outlines.get(chain, (0, None))
        if outline is None or end < line:
            end = self._reading_end(first, line)
            lines = [*(self._lines[index] for index in around), *self._lines[first:end]]
            outline = PatternOutline(self._path, lines)
            self._outlines[chain] = (end, outline)
        section = outline.enclosing(line - first + len(around))
        if section is None:
            return None
        start, last = (self._line_in_file(number, around, first) for number in (section.line, section.end_line))
        return section.model_copy(update={"line": start, "end_line": last})

    @staticmethod
    def _line_in_file(number: int, around: Sequence[int], first: int) -> int:
        """Convert the number of a line in the part that was read to its number in the file; both begin at 1."""
        return around[number - 1] + 1 if number <= len(around) else number - len(around) + first

    def _reading_start(self, line: int) -> tuple[int, ...]:
        """Return the index of the line at which reading starts, after the indexes of the definitions around that line.

        The outermost definition comes first. Of each of these definitions, only the first line is read.
        """
        language = self._language
        if not isinstance(language, Indented):
            return (0,)
        if not language.plain:
            return self._find_start(language, line)
        nearest = self._nearest_definition(language, line)
        if nearest < 0:
            return self._find_start(language, line)
        if nearest not in self._starts:  # the start is the same for all lines between two definitions
            self._starts[nearest] = self._find_start(language, line)
        return self._starts[nearest]

    def _nearest_definition(self, language: Indented, line: int) -> int:
        """Return the index of the last line, at or above `line`, that looks like a definition; -1 if there is none."""
        for index in range(min(line, len(self._lines)) - 1, self._none_above - 1, -1):
            if language.definition_start.match(self._lines[index]):
                return index
        self._none_above = max(self._none_above, min(line, len(self._lines)))
        return -1

    def _find_start(self, language: Indented, line: int) -> tuple[int, ...]:
        """Find the indexes of lines that `_reading_start()` returns.

        In a language like Python, reading starts at the innermost definition around the line. In other languages, and
        if that definition is not found, it starts at the nearest definition at the left margin above the line.
        """
        above = range(min(line, len(self._lines)) - 1, 0, -1)
        starts = (index for index in above if not self._lines[index][:1].isspace())
        margin = next((index for index in starts if language.definition_start.match(self._lines[index])), 0)
        if language.plain:
            if self._is_quoted(margin):
                return (0,)
            return self._definitions_around(language, margin, line) or (margin,)
        return (margin,)

    def _reading_end(self, first: int, line: int) -> int:
        """Return the index after the last line to read: the end of the file, or a few lines below `line`.

        In a language such as Python, where only indentation ends a block, reading ends with the first line of the next
        definition. If these few lines have no definition and end in a string, the string is read to its end.
        """
        language = self._language
        if not isinstance(language, Indented):
            return len(self._lines)
        limit = min(line + _LOOKAHEAD_LINES, len(self._lines))
        if language.plain:
            for index in range(line, limit):
                if language.definition_start.match(self._lines[index]) and not self._in_string(first, index):
                    return index + 1
            if self._in_string(first, limit):  # a string is not recognised without its end
                further = range(limit, min(limit + _MAX_STRING_LINES, len(self._lines)))
                return next((index + 1 for index in further if self._in_string(index, index + 1)), limit)
        return limit

    def _definitions_around(self, language: Indented, margin: int, line: int) -> tuple[int, ...]:
        """Return the indexes of the definitions around a line, the outermost first; empty if they are not found.

        `margin` is the index of the nearest definition above the line that is not indented. If there is no such
        definition, return the index of the first line of the paragraph, because a definition may begin there.
        """
        # Walk up from the line. A definition that is less indented than the last definition found is around the line. A
        # less indented line that opens a block (`if`, `for`) is passed over. Any other less indented line ends the
        # block; then this method finds nothing, and reading starts at the left margin.
        chain: list[int] = []
        least = 0
        last = min(line, len(self._lines)) - 1
        if not any(map(language.definition_start.match, self._lines[margin : last + 1])):
            first = last
            while first > margin and last - first < _LOOKAHEAD_LINES and self._lines[first - 1].strip():
                first -= 1
            return () if self._in_string(margin, first) else (first,)
        for index in range(last, margin - 1, -1):
            text = self._lines[index]
            if chain and (not (code := text.lstrip()) or code[0] == "#" or indentation(text) >= least):
                continue
            if language.definition_start.match(text) and not self._in_string(margin, index):
                chain.append(index)
                least = indentation(text)
            elif chain and _BLOCK.match(text) and not self._in_string(margin, index):
                least = indentation(text)
            elif chain:  # the line ends a block, or is in a string or in brackets
                return ()
        return tuple(reversed(chain))

    def _is_quoted(self, index: int) -> bool:
        """Return True if the triple quotes above a line show that the line is in a string.

        Always return False in a large file, and if the triple quotes of the file are not in pairs.
        """
        count = len(self._lines)
        return count <= _MAX_QUOTED_FILE_LINES and self._in_string(0, index) and not self._in_string(0, count)

    def _in_string(self, margin: int, index: int) -> bool:
        """Return True if a line is in a string with triple quotes that begins at or below line `margin`."""
        text = "\n".join(self._lines[margin:index])
        return any(text.count(quotes) % 2 for quotes in ('"""', "'''"))


def _find_definitions(language: Language, lines: Sequence[str]) -> list[PatternDefinition]:
    scanned = scan_lines(lines, language.opener)
    if isinstance(language, Braced):
        return braced_definitions(scanned, language)
    if isinstance(language, Indented):
        return indented_definitions(scanned, language)
    return document_sections(scanned, language.format)


def _in_order(definitions: list[PatternDefinition]) -> list[PatternDefinition]:
    """Sort definitions by first line, outer definitions first.

    If several definitions have their names on one line, only the definition that ends last gets the line. Drop a
    definition that then has no line.
    """
    ordered: list[PatternDefinition] = []
    line = -1
    for definition in sorted(definitions, key=lambda definition: (definition.line, -definition.end)):
        if definition.line == line:
            definition.start = line + 1
        line = definition.line
        if definition.start <= definition.end:
            ordered.append(definition)
    ordered.sort(key=lambda definition: (definition.start, -definition.end))
    return ordered

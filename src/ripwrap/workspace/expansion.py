"""Expand matches of `grep_content` and results of `codebase_search` to the definitions around them."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ripwrap._code.enclosing import LineSpan, definition_at, share_lines
from ripwrap._code.outline import MAX_NAME_CHARS, Outline, Section
from ripwrap._code.treesitter.parser import check_installed, is_available
from ripwrap._code.treesitter.worker import read_outline
from ripwrap._operations.expand import lines_of, read_lines
from ripwrap.errors import MissingPackageError
from ripwrap.results import FileMatches, RankedChunk
from ripwrap.workspace.arguments import line_hashes
from ripwrap.workspace.grep_content_models import ContentMatch
from ripwrap.workspace.redact import Redactor, redact_name
from ripwrap.workspace.sandbox import RootLocation
from ripwrap.workspace.scope import Settings
from ripwrap.workspace.shown_lines import snippet

REACHES = (400, 100, 40, 15, 5)
"""Numbers of lines of a definition to show before and after a match. They are tried in order until the answer fits."""

MAX_DEFINITION_LINES = 100
"""Maximum number of lines of a definition that `codebase_search` shows as a whole."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Lines and definitions of a file."""

    lines: Sequence[str]
    outline: Outline
    redactor: Redactor | None = None

    def has(self, span: LineSpan, text: str) -> bool:
        """Return True if the lines in `span` still have the text that a search found."""
        wanted = text.removesuffix("\n").split("\n")
        return [*self.lines[span.first - 1 : span.last]] == [line.removesuffix("\r") for line in wanted]

    def text(self, span: LineSpan) -> str:
        """Return the text of the lines in `span`, with secrets masked and without a newline at the end."""
        text = "\n".join(self.lines[span.first - 1 : span.last])
        return self.redactor(text, span.first).text if self.redactor else text

    def section_at(self, line: int) -> Section | None:
        """Return the definition around a line, with secrets masked, or None for a line outside of definitions."""
        section = self.outline.enclosing(line)
        return section and self.masked(section)

    def masked(self, section: Section) -> Section:
        """Return a section of the file with secrets masked."""
        if self.redactor is None:
            return section
        definition = self.lines[section.line - 1]
        redacted = self.redactor(definition, section.line)
        name = redact_name(self.redactor, section.name, section.line, definition, redacted.masks)
        text = redacted.text.strip()[:MAX_NAME_CHARS] if redacted.masks else section.text
        return section.model_copy(update={"text": text, "name": name})


def read_source_file(
    settings: Settings, location: RootLocation, path: str, redactor: Redactor | None
) -> SourceFile | None:
    """Return the lines and definitions of a file; `None` if it is too large, cannot be read or may not be shown."""
    try:
        if location.revision is not None:
            with location.revision.open(path, settings.timeout) as file:
                lines = lines_of(file)
        elif settings.sandbox.holds(os.path.join(location.cwd, path)):
            lines = read_lines(location.cwd, path, follow=settings.follow, roots=location.paths)
        else:
            return None
    except OSError:
        return None
    if lines is None:
        return None
    return SourceFile(lines, read_outline(path, lines).outline if is_available() else Outline(lines, ()), redactor)


def missing_code() -> str | None:
    """Return the sentence that says why an answer has no definitions; `None` if the extra `code` is installed."""
    try:
        check_installed()
    except MissingPackageError as error:
        return f"No definition is named: {error}"
    return None


def expand_matches(
    file: SourceFile, found: FileMatches, matches: Sequence[ContentMatch], reach: int, max_line: int
) -> list[ContentMatch]:
    """Return the first matches of a file, each with lines of the definition around the match; no line is shown twice.

    A match outside of definitions keeps its context. If the file has changed since the search, all matches keep their
    context.
    """
    places = [LineSpan(match.line, match.line + match.match.count("\n")) for match in matches]
    if not all(file.has(place, match.lines) for place, match in zip(places, found.matches, strict=False)):
        return [*matches]
    windows: list[LineSpan] = []
    for match, place in zip(matches, places, strict=True):
        found_at = definition_at(file.outline, place)
        if found_at is None:
            windows.append(LineSpan(place.first - len(match.before), place.last + len(match.after)))
        else:
            first, last = max(found_at[1].first, place.first - reach), min(found_at[1].last, place.last + reach)
            windows.append(LineSpan(first, last).joined(place))
    return [
        match.model_copy(
            update={
                "before": _shown_lines(file, LineSpan(shown.first, place.first - 1), max_line),
                "after": _shown_lines(file, LineSpan(place.last + 1, shown.last), max_line),
                "anchors": line_hashes(file.text(shown).split("\n")) if match.anchors else (),
            }
        )
        for match, place, shown in zip(matches, places, share_lines(places, windows), strict=True)
    ]


def _shown_lines(file: SourceFile, span: LineSpan, max_line: int) -> tuple[str, ...]:
    if span.last < span.first:
        return ()
    return tuple(snippet(line, 1, max_line) for line in file.text(span).split("\n"))


def expand_chunks(
    chunks: Sequence[RankedChunk],
    read: Callable[[str], SourceFile | None],
    fits: Callable[[Sequence[RankedChunk], int], bool],
) -> list[RankedChunk]:
    """Expand search results to whole definitions, the best result first, as long as the answer has room.

    If the definition of a result overlaps worse results, they are merged into the definition. If the definition
    overlaps a better result, or has more than `MAX_DEFINITION_LINES` lines, the result is not expanded.
    """
    shown = [*chunks]
    files: dict[str, SourceFile | None] = {}
    for chunk in chunks:
        at = next((number for number, one in enumerate(shown) if one is chunk), None)
        if chunk.symbol is None or at is None:
            continue
        if not fits(shown, at + 1):
            break
        if chunk.path not in files:
            files[chunk.path] = read(chunk.path)
        file = files[chunk.path]
        span = None if file is None else _definition_lines(file, chunk)
        if file is None or span is None:
            continue
        beside = [
            number
            for number, one in enumerate(shown)
            if number != at and one.path == chunk.path and _lines_of(one).overlaps(span)
        ]
        for number in beside:
            span = span.joined(_lines_of(shown[number]))
        if any(number < at for number in beside) or span.last - span.first >= MAX_DEFINITION_LINES:
            continue
        lines = {"start_line": span.first, "end_line": span.last, "text": f"{file.text(span)}\n"}
        whole = chunk.model_copy(update=lines)
        grown = [whole if number == at else one for number, one in enumerate(shown) if number not in beside]
        if fits(grown, at + 1):
            shown = grown
    return shown


def _lines_of(chunk: RankedChunk) -> LineSpan:
    return LineSpan(chunk.start_line, chunk.end_line)


def _definition_lines(file: SourceFile, chunk: RankedChunk) -> LineSpan | None:
    """Return the range of lines that contains a result and the whole definition around the result.

    Return `None` if the definition adds no line or is not found, or if the file has changed since the search.
    """
    place = _lines_of(chunk)
    if file.text(place) != chunk.text.replace("\r\n", "\n").removesuffix("\n"):
        return None
    found = definition_at(file.outline, place, chunk.symbol)
    if found is None or found[0].name != chunk.symbol:
        return None
    span = found[1].joined(place)
    return None if span == place else span

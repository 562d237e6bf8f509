"""Arguments and result of the tool `grep_content`."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Literal, Self, TypeAlias

from pydantic import model_validator

from ripwrap._code.outline import Section
from ripwrap._text import shown, shown_path
from ripwrap.models import Model
from ripwrap.workspace.arguments import (
    Globs,
    Number,
    PathList,
    PatternList,
    Rev,
    ToolArguments,
    is_true,
    labels,
)
from ripwrap.workspace.results import FileHits, ToolResult, next_offset_after

OutputMode: TypeAlias = Literal["content", "files_with_matches", "count"]
Expand: TypeAlias = Literal["none", "definition"]


class GrepContentArguments(ToolArguments, frozen=True):
    """Arguments of `grep_content()`."""

    foreign: ClassVar[frozenset[str]] = frozenset({"-w", "word_regexp", "whole_word", "whole_words"})

    pattern: PatternList
    path: PathList = "."
    context_lines: Number = 2
    before_context: Number = 0
    after_context: Number = 0
    max_matches: Number = 100
    max_files: Number = 0
    file_pattern: Globs = ""
    file_type: str = ""
    case_insensitive: bool = False
    fixed_strings: bool = False
    multiline: bool = False
    output_mode: OutputMode = "content"
    offset: Number = 0
    include_hidden: bool = False
    include_ignored: bool = False
    sections: bool = False
    expand: Expand = "none"
    rev: Rev = ""
    inside: Globs = ""

    @model_validator(mode="before")
    @classmethod
    def _read_whole_words(cls, given: dict[str, Any]) -> dict[str, Any]:
        r"""Put `\b` around a pattern of words if whole words are asked for, which is what rg does with `-w`."""
        values = {name: value for name, value in given.items() if name not in cls.foreign}
        asked = next((name for name in given if name in cls.foreign and is_true(given[name])), None)
        if asked is None:
            return values
        pattern, fixed = str(values.get("pattern")), is_true(values.pop("fixed_strings", False))
        if not re.fullmatch(r"\w+" if fixed else r"\w+(?:\|\w+)*", pattern):
            raise ValueError(f"unknown argument {asked!r}; write \\b before and after the word in pattern")
        return values | {"pattern": rf"\b(?:{pattern})\b" if "|" in pattern else rf"\b{pattern}\b"}


class _NotCompared:
    """Base class of values in private attributes: all are equal, because results are compared by their fields alone."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    def __hash__(self) -> int:
        return hash(type(self))


class FurtherLines(_NotCompared, frozenset[int]):
    """Numbers of lines."""


class ContentMatch(Model, frozen=True):
    """Match with its context. A context line between two matches belongs to only one of the two.

    Attributes:
        file: Path of the file.
        line: Number of the (first) matching line, from 1.
        before: Lines of context before the match.
        match: Matching line without its terminator; with `multiline`, several lines joined by newlines. `…` marks a
            place where a long line was cut.
        after: Lines of context after the match.
        section: Definition that encloses the match, if `sections` or `expand` was set; `None` outside of definitions.
        anchors: Hash of each line, from `before` to `after`, if the workspace has `anchors`; else empty.
    """

    file: str
    line: int
    before: tuple[str, ...] = ()
    match: str
    after: tuple[str, ...] = ()
    section: Section | None = None
    anchors: tuple[str, ...] = ()

    _further: FurtherLines = FurtherLines()

    def with_further(self, lines: Iterable[int]) -> Self:
        """Set the numbers of the lines of context that match, too, and are not on this page."""
        self._further = FurtherLines(lines)  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  # private
        return self

    def lines(self) -> Iterator[tuple[int, str, str]]:
        """Yield number, mark (`:` for a match, `-` for context) and text of each line."""
        number = self.line - len(self.before)
        for mark, texts in (("-", self.before), (":", self.match.split("\n")), ("-", self.after)):
            for text in texts:
                yield number, ":" if number in self._further else mark, text
                number += 1


@dataclass(frozen=True, eq=False)
class Turns(_NotCompared):
    """Order in which a page was filled."""

    offset: int = 0
    order: tuple[int, ...] = ()


class GrepContentResult(ToolResult, frozen=True):
    """Result of `grep_content()`.

    Attributes:
        query: Pattern that was searched.
        output_mode: Value of the argument `output_mode`.
        expand: Value of the argument `expand`.
        matches: Matches of this page, sorted by file and line; empty in other modes than `content`. Pages are filled
            with the first match of each file, then the second match of each file, and so on, so that no file fills a
            page alone.
        files: Files with a match on this page. In mode `content`, the first page also names the first files by path,
            even if their matches are not shown: `max_matches` files, but at least 10 and at most 100, and only as many
            as `max_chars` allows.
        total_matches: Number of all matches; `None` if they were not counted. If there are more than 50,000, in more
            files than the page needs, it is 50,000 and `exact` is False.
        files_matched: Number of all files with a match; a lower bound if `exact` is False.
        exact: True if the search ran to its end, so that `total_matches` and `files_matched` are final.
    """

    query: str
    output_mode: OutputMode
    expand: Expand = "none"
    matches: tuple[ContentMatch, ...] = ()
    files: tuple[FileHits, ...] = ()
    total_matches: int | None = None
    files_matched: int
    exact: bool

    _entries = ("matches", "files")
    _turns: Turns = Turns()

    def with_turns(self, offset: int, order: Sequence[int]) -> Self:
        """Set the number of matches before the page, and the indexes of `matches` in the order that filled the page."""
        self._turns = Turns(offset, tuple(order))  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  # private
        return self

    def _fewer(self, values: dict[str, Any], count: int) -> dict[str, Any]:
        few = super()._fewer(values, count)
        if self.output_mode != "content":
            return few | next_offset_after(self, count, self.files, self.files_matched)
        turns = self._turns
        if len(turns.order) != len(self.matches) or count >= len(self.matches):
            return few
        kept = [values["matches"][at] for at in sorted(turns.order[:count])]
        return few | {"matches": kept, "next_offset": turns.offset + count if count else None}

    def _values(self) -> dict[str, Any]:
        """Return JSON values in which `files` is a list of paths, or a map from paths to counts.

        With counts, `files` is a list of objects if two paths look the same, because they are not UTF-8.
        """
        plain = super()._values()
        counts = {file.path: file.count for file in self.files}
        if None in counts.values():
            plain["files"] = [file.path for file in self.files]
        elif counts and len(counts) == len(self.files):  # not if two paths look the same, because they are not UTF-8
            plain["files"] = counts
        return plain

    @classmethod
    def structured_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the structured answer, and of `model_dump(mode="json")`."""
        schema = super().structured_schema()
        files = schema["properties"]["files"]
        each = {"anyOf": [{"type": "string"}, files.pop("items")]}
        counts = {"type": "object", "additionalProperties": {"type": "integer"}}
        files["anyOf"] = [{"type": files.pop("type"), "items": each}, counts]
        files["description"] = (
            "Paths; a map from paths to counts if matches were counted; objects if two paths look the same."
        )
        return schema

    def _body(self) -> Iterator[str]:
        if self.output_mode == "count":
            yield from (f"{shown_path(file.path)}: {file.count}" for file in self.files)
            return
        if self.output_mode == "files_with_matches":
            yield from (shown_path(file.path) for file in self.files)
            return
        named: set[str] = set()
        for file, matches in groupby(self.matches, key=lambda match: match.file):
            yield from ("", "---", "") if named else ()
            named.add(file)
            yield f"File: {shown_path(file)}"
            yield from _file_lines(matches, expanded=self.expand != "none")
        others = [f"{shown_path(file.path)} ({file.count})" for file in self.files if file.path not in named]
        if others:
            yield from ("", "---", "") if named else ()
            yield f"{'Also matching' if named else 'Matching files'}, not shown: {', '.join(others)}"


def _file_lines(matches: Iterator[ContentMatch], *, expanded: bool) -> Iterator[str]:
    rows: list[tuple[int, str]] = []
    section: Section | None = None
    last = 0
    for match in matches:
        first = match.line - len(match.before)
        apart = not rows or first > rows[-1][0] + 1
        if rows and apart:
            rows.append((rows[-1][0], "  --"))
        lines = list(match.lines())
        named = zip(labels(first, match.anchors, len(lines)), lines, strict=True)
        rows += ((number, f"  {label}{mark} {text}".rstrip()) for label, (number, mark, text) in named)
        if match.section != section:
            # Lines of context above this definition, and those of the previous one, go above the heading; those after
            # the previous match may already belong to this definition.
            own = match.section.line if match.section else 0
            if section and section.end_line < match.line:
                own = max(own, section.end_line + 1)
            begin = first if expanded and apart else min(max(own, last + 1), match.line)
            place = bisect_left(rows, begin, key=lambda row: row[0])
            plain = expanded and match.section is not None and rows[place][0] <= match.section.line
            rows.insert(place, (rows[place][0], _heading(match.section, match.line, with_text=not plain)))
        section, last = match.section, match.line + match.match.count("\n")
    yield from (text for _, text in rows)


def _heading(section: Section | None, line: int, *, with_text: bool) -> str:
    """Return the heading above the lines of a definition: its numbers and, if necessary, its name and first line."""
    if section is None:
        return "  outside of definitions:"
    name = "" if section.name in section.text else f"{shown(section.name)}, "
    first = min(section.line, line)  # a match in a decorator or comment above the definition
    return f"  in {name}lines {first}-{section.end_line}:{f' {section.text}' if with_text else ''}"

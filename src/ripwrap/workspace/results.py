"""Results of an agent's tools: frozen models, whose `str()` is the text that a language model reads."""

import os
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, ClassVar, Literal, Self, TypeAlias

from ripwrap._code.outline import Section
from ripwrap._text import plural, shown
from ripwrap.models import Model
from ripwrap.workspace.anchors import SEPARATOR, labels
from ripwrap.workspace.arguments import Expand, OutputMode
from ripwrap.workspace.structured import first_entries, fit, shown_values

MAX_CHARS = 20_000
"""Default of `max_chars`, the maximum length of an answer in characters."""

MAX_NAME_CHARS = 300
"""Maximum number of characters of a path in a message or note."""

AnchorState: TypeAlias = Literal["unchanged", "moved", "gone"]
Engine: TypeAlias = Literal["rg", "python"]
Layout: TypeAlias = Literal["ls", "tree"]
Ranking: TypeAlias = Literal["hybrid", "index", "files"]


class ToolResult(Model, ABC, frozen=True):
    """Base class of the results of all tools.

    Attributes:
        root: Absolute path of the directory to which paths in the answer are relative; with several roots, paths are
            absolute.
        path: File or directory that was searched or listed.
        truncated: True if there is more than the answer shows.
        next_offset: Value of `offset` for the next page (for `read_file()`, value of `start_line`); `None` if there is
            no next page, or if `offset` cannot reach it.
        message: Summary of what was found and what was left out, and how to get the rest.
        notes: Further sentences, for example about time limits and about paths that could not be read.
        engine: `python` if Python code listed the files: in `ls()` if rg cannot be used, and in `find_files()` if
            it looks for directories, too, or if `path` is a file. Otherwise `rg`.
    """

    root: str
    path: str
    truncated: bool = False
    next_offset: int | None = None
    message: str
    notes: tuple[str, ...] = ()
    engine: Engine = "rg"

    _entries: ClassVar[tuple[str, ...]] = ()
    """Names of the fields whose entries `structured()` leaves out if there is no room for all."""

    def __str__(self) -> str:
        """Return the text for a language model: the lines, then `message` and `notes` in parentheses."""
        said = " ".join((self.message, *self.notes))
        body = "\n".join(self._body())
        return shown(f"{body}\n\n({said})" if body else said, lines=True)

    def structured(self, max_chars: int = MAX_CHARS) -> dict[str, Any]:
        """Return the result as plain JSON values for MCP, without fields that have their default values.

        `structured_schema()` returns the JSON schema of these values. Some lists have a shorter form than in
        `model_dump()`, e.g. paths instead of objects. Control characters are escaped as in `str()`. If the JSON is too
        long, entries at the end are left out, then strings are cut; `truncated` and a note say so.

        Args:
            max_chars: Maximum length in characters, as `json.dumps()` writes the values; at least 1000.
        """
        values = shown_values(self._values())
        return fit(values, max_chars, self._count(), partial(self._fewer, values))

    def _values(self) -> dict[str, Any]:
        """Return the whole result as JSON values."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def _count(self) -> int:
        """Return the number of entries that `_fewer()` can leave out."""
        return max((len(getattr(self, name)) for name in self._entries), default=0)

    def _fewer(self, values: dict[str, Any], count: int) -> dict[str, Any]:
        """Return values with only the first `count` entries, and with `next_offset` for the rest, if that is known."""
        return first_entries(values, self._entries, count) | ({} if count == self._count() else {"next_offset": None})

    @classmethod
    def structured_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of `structured()`; the schema also accepts `model_dump(mode="json")`."""
        return cls.model_json_schema(mode="validation")

    @abstractmethod
    def _body(self) -> Iterator[str]:
        """Yield the lines of the text, without `message` and `notes`."""


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

    def lines(self) -> Iterator[tuple[int, str, str]]:
        """Yield number, mark (`:` for a match, `-` for context) and text of each line."""
        number = self.line - len(self.before)
        for mark, texts in (("-", self.before), (":", self.match.split("\n")), ("-", self.after)):
            for text in texts:
                yield number, mark, text
                number += 1


class FileHits(Model, frozen=True):
    """File with matches.

    Attributes:
        path: Path of the file.
        count: Number of matching lines, or with `multiline`, number of matches; in `replace_content()`, number of
            replacements. `None` if nothing was counted.
    """

    path: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Turns:
    """Order in which a page was filled. All are equal, because results are compared by their fields alone.

    Attributes:
        offset: Number of matches before the page.
        order: Indexes of the matches in this order; empty if it is not known.
    """

    offset: int = 0
    order: tuple[int, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Turns)

    def __hash__(self) -> int:
        return hash(Turns)


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
        total_matches: Number of all matches; `None` if they were not counted.
        files_matched: Number of all files with a match.
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
            return few | _next_offset(self, count, self.files, self.files_matched)
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
        counts = {shown(file.path): file.count for file in self.files}
        if None in counts.values():
            plain["files"] = [file.path for file in self.files]
        elif counts and len(counts) == len(self.files):  # not if two paths look the same, because they are not UTF-8
            plain["files"] = counts
        return plain

    @classmethod
    def structured_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of `structured()` and of `model_dump(mode="json")`."""
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
            yield from (f"{shown(file.path)}: {file.count}" for file in self.files)
            return
        if self.output_mode == "files_with_matches":
            yield from (shown(file.path) for file in self.files)
            return
        named: set[str] = set()
        for file, matches in groupby(self.matches, key=lambda match: match.file):
            yield from ("", "---", "") if named else ()
            named.add(file)
            yield f"File: {shown(file)}"
            yield from _file_lines(matches, expanded=self.expand != "none")
        others = [f"{shown(file.path)} ({file.count})" for file in self.files if file.path not in named]
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
            # Lines of context after the previous match may already belong to this definition.
            begin = first if expanded and apart else min(max(_first_line(match, section), last + 1), match.line)
            place = bisect_left(rows, begin, key=lambda row: row[0])
            plain = expanded and match.section is not None and rows[place][0] <= match.section.line
            rows.insert(place, (rows[place][0], _heading(match.section, match.line, with_text=not plain)))
        section, last = match.section, match.line + match.match.count("\n")
    yield from (text for _, text in rows)


def _heading(section: Section | None, line: int, *, with_text: bool) -> str:
    """Return the heading above the lines of a definition: its line numbers and, if necessary, its name and first line.

    The heading has the name only if the first line does not contain the qualified name.

    Args:
        section: The definition; `None` for a match outside of definitions.
        line: Number of the line that matches.
        with_text: True to add the first line of the definition, because the answer does not show it below the heading.
    """
    if section is None:
        return "  outside of definitions:"
    name = "" if section.name in section.text else f"{shown(section.name)}, "
    first = min(section.line, line)  # a match in a decorator or comment above the definition
    return f"  in {name}lines {first}-{section.end_line}:{f' {section.text}' if with_text else ''}"


def _first_line(match: ContentMatch, before: Section | None) -> int:
    """Return the number of the first line that belongs below the heading of a match.

    The heading names the definition that contains the match. Two kinds of context lines go above the heading: lines
    above that definition, and lines that still belong to `before`, the definition of the previous match.
    """
    begin = match.section.line if match.section else 0
    if before and before.end_line < match.line:
        begin = max(begin, before.end_line + 1)
    return min(begin, match.line)


class FindFilesResult(ToolResult, frozen=True):
    """Result of `find_files()`.

    Attributes:
        pattern: Glob that was searched.
        files: Files and directories of this page; a directory ends in a slash.
        denied: Paths in `files` that the tools may name but not open.
        total_files: Number of all files and directories that were found.
        exact: True if the search ran to its end, so that `total_files` is final.
    """

    pattern: str
    files: tuple[str, ...]
    denied: tuple[str, ...] = ()
    total_files: int
    exact: bool

    _entries = ("files",)

    def _fewer(self, values: dict[str, Any], count: int) -> dict[str, Any]:
        few = super()._fewer(values, count) | _next_offset(self, count, self.files, self.total_files)
        return few | {"denied": [path for path in values.get("denied", ()) if path in few["files"]]}

    def _body(self) -> Iterator[str]:
        denied = frozenset(self.denied)
        yield from (f"{shown(file)} [denied]" if file in denied else shown(file) for file in self.files)


def _next_offset(result: ToolResult, count: int, page: Sequence[object], total: int) -> dict[str, Any]:
    """Return the `next_offset` after the first `count` entries of a page that lists a total number of entries."""
    end = total if result.next_offset is None else result.next_offset
    return {"next_offset": result.next_offset if count == len(page) else end - len(page) + count if count else None}


class ListEntry(Model, frozen=True):
    """One line of a listing.

    Attributes:
        path: Path of the file or directory; for a `[N truncated]` line, path of its directory.
        name: Last part of the path; for one of several roots, its whole path.
        depth: Number of directories between the entry and the directory that was listed.
        is_dir: True for a directory.
        closed: True for a directory that is named but not listed, such as `node_modules`.
        denied: True for a file or directory that the tools may name but not open.
        truncated: For a `[N truncated]` line, number of entries of `path` that are left out; else 0.
    """

    path: str
    name: str
    depth: int
    is_dir: bool = False
    closed: bool = False
    denied: bool = False
    truncated: int = 0

    def structured(self) -> str | dict[str, Any]:
        """Return the path, with a slash for a directory; an object if `closed`, `denied` or `truncated` is set."""
        if self.closed or self.denied or self.truncated:
            return self.model_dump(mode="json", exclude_defaults=True, exclude={"name", "depth"})
        return f"{self.path}/" if self.is_dir else self.path


class ListResult(ToolResult, frozen=True):
    """Result of `ls()` and `tree()`.

    Attributes:
        layout: Format of `str()`. `ls` starts with the listed directory and puts a dash before each entry; `tree` does
            neither.
        entries: Files and directories, in the order of the lines.
        total_files: Number of all files, without files of common kinds (such as `*.pyc`) that are not shown, and
            without the files in closed directories (named but not listed).
        exact: True if the listing ran to its end, so that `total_files` is final.
    """

    layout: Layout
    entries: tuple[ListEntry, ...]
    total_files: int
    exact: bool

    _entries = ("entries",)

    def _values(self) -> dict[str, Any]:
        return super()._values() | {"entries": [entry.structured() for entry in self.entries]}

    @classmethod
    def structured_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of `structured()` and of `model_dump(mode="json")`."""
        schema = super().structured_schema()
        entries = schema["properties"]["entries"]
        entries["items"] = {"anyOf": [{"type": "string"}, entries["items"]]}
        entries["description"] = "An entry is a path, with a slash at the end of a directory, or an object."
        entry = schema["$defs"]["ListEntry"]
        for name in ("name", "depth"):  # both follow from `path`
            del entry["properties"][name]
            entry["required"].remove(name)
        return schema

    def _body(self) -> Iterator[str]:
        if not self.entries:
            return
        dash, indent = ("- ", "  ") if self.layout == "ls" else ("", "    ")
        if [entry.path for entry in self.entries] == [self.path]:  # a file
            yield f"{dash}{shown(self.path)}"
            return
        if self.layout == "ls":
            yield f"- {shown(self.path.rstrip(os.sep))}/"
        for entry in self.entries:
            depth = entry.depth + (self.layout == "ls")
            yield f"{indent * depth}{dash}{_name(entry)}"


class CodePlace(Model, frozen=True):
    """Lines of code that answer a question.

    Attributes:
        file: Path of the file.
        start_line: Number of the first line, from 1.
        end_line: Number of the last line.
        symbol: Name of the definition that encloses the most relevant line; `None` outside of definitions.
        score: Value that results are sorted by; comparable only within one answer and one root.
        why: Reasons for the score.
        snippet: Text of the lines. If the answer has no room for all lines, only the first lines. `…` marks a place
            where a long line was cut. Blank lines at the end are included; `str()` omits them.
        anchors: Hash of each line of `snippet`, if the workspace has `anchors`; else empty.
    """

    file: str
    start_line: int
    end_line: int
    symbol: str | None = None
    score: float
    why: tuple[str, ...]
    snippet: str
    anchors: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the path, the score and its reasons, then the lines, each with its number."""
        symbol = f" in {shown(self.symbol)}" if self.symbol else ""
        yield f"{shown(self.file)}:{self.start_line}-{self.end_line}{symbol}"
        yield f"  score {self.score:.2f}" + (f": {shown('; '.join(self.why))}" if self.why else "")
        texts = self.snippet.split("\n") if self.snippet else []
        left_out = self.end_line - self.start_line + 1 - len(texts)
        while texts and left_out <= 0 and not texts[-1].strip():
            texts.pop()
        for label, text in zip(labels(self.start_line, self.anchors, len(texts)), texts, strict=True):
            yield f"  {label}: {text}".rstrip()
        if left_out > 0:
            yield f"  [{plural(left_out, 'more line')}]"


class CodebaseSearchResult(ToolResult, frozen=True):
    """Result of `codebase_search()`.

    Attributes:
        query: Question or name that was searched.
        ranking: Source of the results: `index` (words in the refreshed index), `hybrid` (words and embeddings in the
            index), or `files` (no index).
        places: Results, the best first. With several indexed roots, results of the roots alternate.
    """

    query: str
    ranking: Ranking
    places: tuple[CodePlace, ...]

    _entries = ("places",)

    def _body(self) -> Iterator[str]:
        for number, place in enumerate(self.places):
            yield from ("",) if number else ()
            yield from place.lines()


class LineBlock(Model, frozen=True):
    """Consecutive lines of a file.

    Attributes:
        start_line: Number of the first line, from 1.
        lines: Lines without their terminators; `…` marks a place where a long line was cut.
        anchors: Hash of each line, if the workspace has `anchors`; else empty.
    """

    start_line: int
    lines: tuple[str, ...]
    anchors: tuple[str, ...] = ()

    def rows(self) -> Iterator[str]:
        """Yield the lines, each with its number."""
        for label, text in zip(labels(self.start_line, self.anchors, len(self.lines)), self.lines, strict=True):
            yield f"  {label}: {text}".rstrip()


class ReadFileResult(ToolResult, frozen=True):
    """Result of `read_file()`.

    Attributes:
        blocks: Blocks of consecutive lines.
        total_lines: Number of all lines of the file; `None` if counting them took too long.
        encoding: Encoding of the file: `utf-16-le` or `utf-16-be` if the file begins with the byte order mark of that
            encoding, otherwise `utf-8`.
    """

    blocks: tuple[LineBlock, ...]
    total_lines: int | None
    encoding: str = "utf-8"

    def _count(self) -> int:
        return sum(len(block.lines) for block in self.blocks)

    def _fewer(self, values: dict[str, Any], count: int) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = []
        rest = self.next_offset
        for block in values["blocks"]:
            if count < len(block["lines"]):
                rest = block["start_line"] + count
            if count:
                blocks.append(first_entries(block, ("lines", "anchors"), count))
            count = max(count - len(block["lines"]), 0)
            if rest != self.next_offset:
                break
        return values | {"blocks": blocks, "next_offset": rest}

    def _body(self) -> Iterator[str]:
        for number, block in enumerate(self.blocks):
            yield "  --" if number else f"File: {shown(self.path)}"
            yield from block.rows()


class ResolveResult(ToolResult, frozen=True):
    """Result of `resolve()`.

    Attributes:
        anchor: Anchor, such as `42·k7q`.
        state: `unchanged` if the line of the anchor still has the hash, `moved` if another line has the hash, otherwise
            `gone`.
        line: Current number of the line; `None` if it is `gone`. If it `moved` and several lines have the hash, the
            number of the line nearest to the anchor.
        text: Current text of the line, cut if it is long.
        others: If the line `moved`, numbers of further lines with the hash: at most 20, the nearest first.
    """

    anchor: str
    state: AnchorState
    line: int | None = None
    text: str = ""
    others: tuple[int, ...] = ()

    def _body(self) -> Iterator[str]:
        if self.line is not None:
            yield f"File: {shown(self.path)}"
            hashed = self.anchor.partition(SEPARATOR)[2]
            yield f"  {self.line}{SEPARATOR}{hashed}: {self.text}".rstrip()


class ReplaceContentResult(ToolResult, frozen=True):
    """Result of `replace_content()`.

    Attributes:
        query: Pattern that was searched.
        replacement: Text in place of each match, as in the argument `replacement`.
        applied: True if the files were changed.
        diff: Lines of a unified diff, as many as fit into the answer. Long lines are cut, and secrets are masked if the
            workspace masks them.
        files: Files that change, at most 100 of them, each with its number of replacements.
        total_replacements: Number of replacements.
    """

    query: str
    replacement: str
    applied: bool
    diff: tuple[str, ...] = ()
    files: tuple[FileHits, ...] = ()
    total_replacements: int

    _entries = ("diff", "files")

    def _body(self) -> Iterator[str]:
        yield from map(shown, self.diff)


class IndexedRoot(Model, frozen=True):
    """Changes that `index_codebase()` made for one root.

    Attributes:
        root: Path of the root.
        added: Number of new files.
        changed: Number of files with changed content.
        removed: Number of files that were deleted, or that are ignored now.
        unchanged: Number of files that did not change.
        skipped: Number of files that are left out because they are binary or cannot be read.
        chunks: Number of chunks (parts of files) that were written to the index.
        seconds: Duration in seconds.
        pruned: Names of deleted branches whose content was removed from the index.
        embedded: Number of texts that were embedded; equal chunks are one text.
        failed: Reasons why texts were not embedded, each with the number of texts.
    """

    root: str
    added: int
    changed: int
    removed: int
    unchanged: int
    skipped: int
    chunks: int
    seconds: float
    pruned: tuple[str, ...]
    embedded: int = 0
    failed: tuple[str, ...] = ()


class IndexCodebaseResult(ToolResult, frozen=True):
    """Result of `index_codebase()`.

    Attributes:
        roots: Changes for each root.
    """

    roots: tuple[IndexedRoot, ...]

    _entries = ("roots",)

    def _body(self) -> Iterator[str]:
        for one in self.roots:
            files = f"{one.added} new, {one.changed} changed, {one.removed} removed, {one.unchanged} unchanged"
            gone = f"; removed branches that are gone: {', '.join(map(shown, one.pruned))}" if one.pruned else ""
            embedded = f", {plural(one.embedded, 'text')} embedded" if one.embedded else ""
            yield f"{shown(one.root)}: {files}, {one.skipped} left out{embedded}{gone}"
            yield from (f"  {shown(why)}" for why in one.failed)


class RootStatus(Model, frozen=True):
    """State of the index of one root.

    Attributes:
        root: Path of the root.
        built: True if the index has the current branch of the root.
        outdated: True if another chunker or version of ripwrap made the index, or if the index is damaged.
            `index_codebase` rebuilds the index.
        files: Number of indexed files.
        chunks: Number of chunks (parts) of these files.
        bytes: Size of the index on disk in bytes, with all branches.
        branch: Current branch of the root.
        branches: Branches in the index.
        chunker: Name and version of the chunker, which splits files.
        model: Embedding model; `None` if the index has no embeddings.
        changed_at: Time of the last change of the index for the current branch; `None` if there was no change.
        lacking: Number of texts without an embedding.
        sent: Sentences that say which texts are sent to which address to be embedded; empty without a model.
        sent_texts: Number of texts and queries that were sent since the index was made; a retry counts again.
        sent_characters: Number of characters of these texts and queries.
        messages: Notes, each with what to do.
    """

    root: str
    built: bool
    outdated: bool
    files: int
    chunks: int
    bytes: int
    branch: str
    branches: tuple[str, ...]
    chunker: str
    model: str | None = None
    changed_at: datetime | None = None
    lacking: int = 0
    sent: tuple[str, ...] = ()
    sent_texts: int = 0
    sent_characters: int = 0
    messages: tuple[str, ...] = ()


class IndexStatusResult(ToolResult, frozen=True):
    """Result of `index_status()`.

    Attributes:
        roots: State of the index of each root.
    """

    roots: tuple[RootStatus, ...]

    _entries = ("roots",)

    def _body(self) -> Iterator[str]:
        for one in self.roots:
            name = f"{shown(one.root)} ({shown(one.branch)})"
            if one.built:
                yield f"{name}: {_indexed(one)}"
            else:
                others = ", ".join(map(shown, one.branches))
                yield f"{name}: not built{f'; the index has {others}' if others else ''}"
            yield from (f"  embeddings: {shown(what)}" for what in one.sent)
            if one.sent_texts:
                yield f"  sent so far: {one.sent_characters:,} characters in {plural(one.sent_texts, 'text')}"
            if one.lacking:
                yield f"  without an embedding: {plural(one.lacking, 'text')}; index_codebase embeds them"
            yield from (f"  {shown(message)}" for message in one.messages)


def _indexed(one: RootStatus) -> str:
    changed = f", changed {one.changed_at:%Y-%m-%d %H:%M:%S} UTC" if one.changed_at else ""
    model = f", model {shown(one.model)}" if one.model else ""
    return f"{one.files} files, {one.chunks} chunks, {one.bytes} bytes{model}{changed}"


class RootHealth(Model, frozen=True):
    """Health of the index of one root.

    Attributes:
        root: Path of the root.
        ok: True if no problem was found.
        files: Number of files in all branches.
        chunks: Number of chunks (parts of files) in all branches.
        indexed: Number of chunks that can be searched; equal to `chunks` in a sound index.
        orphans: Number of stored file contents that no branch uses.
        messages: Problems and notes, each with what to do.
    """

    root: str
    ok: bool
    files: int
    chunks: int
    indexed: int
    orphans: int = 0
    messages: tuple[str, ...] = ()


class IndexHealthResult(ToolResult, frozen=True):
    """Result of `index_health_check()`.

    Attributes:
        roots: Health of the index of each root.
    """

    roots: tuple[RootHealth, ...]

    _entries = ("roots",)

    def _body(self) -> Iterator[str]:
        for one in self.roots:
            yield f"{shown(one.root)}: {'sound' if one.ok else 'NOT sound'}, {one.chunks} chunks"
            yield from (f"  {shown(message)}" for message in one.messages)


def _name(entry: ListEntry) -> str:
    if entry.truncated:
        return f"[{entry.truncated} truncated]"
    name = shown(entry.name)
    if entry.denied:
        return f"{name}{'/' * entry.is_dir} [denied]"
    return f"{name}/ [not listed]" if entry.closed else f"{name}/" if entry.is_dir else name


def shown_start(text: str) -> str:
    """Return a text on one line, with control characters escaped, and with at most `MAX_NAME_CHARS` characters."""
    return shown(text)[:MAX_NAME_CHARS]


class FileInfo(Model, frozen=True):
    """File or directory of a workspace.

    Attributes:
        path: Path as in answers of tools: relative to the root, or absolute if there are several roots.
        name: Last part of the path.
        is_dir: True for a directory, or a link to a directory.
        size: Size of the file in bytes; `None` for a directory, and for a path that cannot be read, such as a broken
            link.
        modified_at: Time of the last change; `None` if it cannot be read, or if Python does not support the year.
    """

    path: str
    name: str
    is_dir: bool
    size: int | None = None
    modified_at: datetime | None = None

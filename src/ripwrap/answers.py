"""What an agent's tools answer: frozen models; `str()` of one is the text that a model reads."""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Literal, TypeAlias

from pydantic import BaseModel

from ripwrap._arguments import OutputMode
from ripwrap._sections import Section

Engine: TypeAlias = Literal["rg", "python"]
Layout: TypeAlias = Literal["ls", "tree"]
Ranking: TypeAlias = Literal["index", "files"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


class ToolResult(BaseModel, ABC, frozen=True):
    """What every tool's answer has.

    Attributes:
        root: The directory that relative paths in the answer start from, as an absolute path; with several roots paths
            are absolute.
        path: What was searched or listed.
        truncated: Whether there is more than is shown.
        next_offset: The `offset` that gives what follows; `None` if nothing does, or no offset reaches it.
        message: What was found, what was left out, and how to get it.
        notes: What else to know: bounds that were set, paths that could not be read.
        engine: What did it: `rg`, or plain `python` where there is no rg.
    """

    root: str
    path: str
    truncated: bool
    next_offset: int | None
    message: str
    notes: tuple[str, ...] = ()
    engine: Engine = "rg"

    def __str__(self) -> str:
        """The text for a model: what was found, then `message` and `notes` in parentheses."""
        said = " ".join((self.message, *self.notes))
        body = "\n".join(self._body())
        return f"{body}\n\n({said})" if body else said

    @abstractmethod
    def _body(self) -> Iterator[str]:
        """Its lines."""


class ContentMatch(BaseModel, frozen=True):
    """A match, with the context that is its own: a line that two matches share belongs to the first.

    Attributes:
        file: The file.
        line: The number of the (first) line that matches, from 1.
        before: Lines before it.
        match: The line without its terminator, or under `multiline` several, joined by newlines; `…` stands where a
            long line was cut.
        after: Lines after it.
        section: The definition that encloses it, if `sections` was asked for.
    """

    file: str
    line: int
    before: tuple[str, ...]
    match: str
    after: tuple[str, ...]
    section: Section | None = None

    def lines(self) -> Iterator[tuple[int, str, str]]:
        """Number, mark (`:` for what matches, `-` for context) and text of each line."""
        number = self.line - len(self.before)
        for mark, texts in (("-", self.before), (":", self.match.split("\n")), ("-", self.after)):
            for text in texts:
                yield number, mark, text
                number += 1


class FileHits(BaseModel, frozen=True):
    """A file with matches.

    Attributes:
        path: The file.
        count: How many lines of it match, or under `multiline` runs of lines; `None` if that was not counted.
    """

    path: str
    count: int | None = None


class GrepContentResult(ToolResult, frozen=True):
    """What `grep_content()` found.

    Attributes:
        query: The pattern.
        output_mode: What was asked for.
        matches: The matches of this page, by file and line; taken in turn from every file, the first of each, then the
            second, so that no file uses up the page. Empty unless `output_mode` is `content`.
        files: The files that match: under `content` those of the page, and on the first page also others, the first
            ones by path, as many as matches were asked for, up to 100; under the other modes those of the page.
        total_matches: How many matches there are; `None` if that was not counted.
        files_matched: How many files have one.
        exact: Whether the search came to its end, so that the two numbers are all that there are.
    """

    query: str
    output_mode: OutputMode
    matches: tuple[ContentMatch, ...]
    files: tuple[FileHits, ...]
    total_matches: int | None
    files_matched: int
    exact: bool

    def _body(self) -> Iterator[str]:
        if self.output_mode == "count":
            yield from (f"{printable(file.path)}: {file.count}" for file in self.files)
            return
        if self.output_mode == "files_with_matches":
            yield from (printable(file.path) for file in self.files)
            return
        shown: set[str] = set()
        for file, matches in groupby(self.matches, key=lambda match: match.file):
            yield from ("", "---", "") if shown else ()
            shown.add(file)
            yield f"File: {printable(file)}"
            yield from _file_lines(matches)
        others = [f"{printable(file.path)} ({file.count})" for file in self.files if file.path not in shown]
        if others:
            yield from ("", "---", "") if shown else ()
            yield f"{'Also matching' if shown else 'Matching files'}, not shown: {', '.join(others)}"


def _file_lines(matches: Iterator[ContentMatch]) -> Iterator[str]:
    upto: int | None = None
    section: Section | None = None
    for match in matches:
        if upto is not None and match.line - len(match.before) > upto:
            yield "  --"
        if match.section != section:
            section = match.section
            yield f"  in lines {section.line}-{section.end_line}: {section.text}" if section else "  in no definition:"
        for number, mark, text in match.lines():
            yield f"  {number}{mark} {text}".rstrip()
            upto = number + 1


class FindFilesResult(ToolResult, frozen=True):
    """What `find_files()` found.

    Attributes:
        pattern: The glob.
        files: The files of this page.
        total_files: How many files there are.
        exact: Whether the search came to its end, so that the number is all that there are.
    """

    pattern: str
    files: tuple[str, ...]
    total_files: int
    exact: bool

    def _body(self) -> Iterator[str]:
        yield from map(printable, self.files)


class ListEntry(BaseModel, frozen=True):
    """One line of a listing.

    Attributes:
        path: The file or directory; for what was left out of a directory that directory.
        name: Its last part; of a root among several its path.
        depth: 0 for what lies directly in the place that was listed.
        is_dir: Whether it is a directory.
        closed: Whether it is a directory of a kind that is named and not listed (`node_modules`, …).
        truncated: 0, or how many entries of `path` are left out here.
    """

    path: str
    name: str
    depth: int
    is_dir: bool = False
    closed: bool = False
    truncated: int = 0


class ListResult(ToolResult, frozen=True):
    """What `ls()` and `tree()` list.

    Attributes:
        layout: Whose lines `str()` gives: `ls` heads them with the place and sets a dash before each.
        entries: What is there, in the order of the lines.
        total_files: How many files there are, without those in closed directories.
        exact: Whether the listing came to its end.
    """

    layout: Layout
    entries: tuple[ListEntry, ...]
    total_files: int
    exact: bool

    def _body(self) -> Iterator[str]:
        if not self.entries:
            return
        dash, indent = ("- ", "  ") if self.layout == "ls" else ("", "    ")
        if [entry.path for entry in self.entries] == [self.path]:  # a file
            yield f"{dash}{printable(self.path)}"
            return
        if self.layout == "ls":
            yield f"- {printable(self.path.rstrip(os.sep))}/"
        for entry in self.entries:
            depth = entry.depth + (self.layout == "ls")
            yield f"{indent * depth}{dash}{_name(entry)}"


class CodePlace(BaseModel, frozen=True):
    """A place that answers a question.

    Attributes:
        file: The file.
        start_line: The number of the first line, from 1.
        end_line: The number of the last.
        symbol: The definition that encloses what says most in it; `None` at the top level.
        score: By which it has its place; comparable within one answer of one root alone.
        why: What made the score.
        snippet: Its lines, or, where the answer has no room for all, the first of them; `…` stands where a long line
            was cut.
    """

    file: str
    start_line: int
    end_line: int
    symbol: str | None
    score: float
    why: tuple[str, ...]
    snippet: str

    def lines(self) -> Iterator[str]:
        """Where it is and why, then its lines, each with its number."""
        symbol = f" in {printable(self.symbol)}" if self.symbol else ""
        yield f"{printable(self.file)}:{self.start_line}-{self.end_line}{symbol}"
        yield f"  score {self.score:.2f}: {printable('; '.join(self.why))}"
        texts = self.snippet.split("\n") if self.snippet else []
        for number, text in enumerate(texts, self.start_line):
            yield f"  {number}: {text}".rstrip()
        if (left_out := self.end_line - self.start_line + 1 - len(texts)) > 0:
            yield f"  [{left_out} more lines]"


class CodebaseSearchResult(ToolResult, frozen=True):
    """What `codebase_search()` found.

    Attributes:
        query: What was asked for.
        ranking: How the places were found: with the `index`, refreshed just before, or out of the `files` alone.
        places: The places, the best first; of several indexed roots in turn.
    """

    query: str
    ranking: Ranking
    places: tuple[CodePlace, ...]

    def _body(self) -> Iterator[str]:
        for number, place in enumerate(self.places):
            yield from ("",) if number else ()
            yield from place.lines()


class IndexedRoot(BaseModel, frozen=True):
    """What `index_codebase()` did for one root.

    Attributes:
        root: The root.
        added: How many files are new.
        changed: How many have other content than before.
        removed: How many are no longer there.
        unchanged: How many are as they were.
        skipped: How many are left out, because they are binary or cannot be read.
        chunks: How many pieces of files were written.
        seconds: How long it took.
    """

    root: str
    added: int
    changed: int
    removed: int
    unchanged: int
    skipped: int
    chunks: int
    seconds: float


class IndexCodebaseResult(ToolResult, frozen=True):
    """What `index_codebase()` did.

    Attributes:
        roots: For each root what was done.
    """

    roots: tuple[IndexedRoot, ...]

    def _body(self) -> Iterator[str]:
        for one in self.roots:
            files = f"{one.added} new, {one.changed} changed, {one.removed} removed, {one.unchanged} unchanged"
            yield f"{printable(one.root)}: {files}, {one.skipped} left out"


class RootStatus(BaseModel, frozen=True):
    """What the index of one root has.

    Attributes:
        root: The root.
        built: Whether it was made for the branch that the root is on.
        files: How many files it has text of.
        chunks: How many pieces they are cut into.
        bytes: Its size on disk, with all branches.
        branch: The branch that the root is on.
        branches: Those that it knows.
        model: The embedding model; `None` if words alone count.
        changed_at: When it was last changed.
        sent: What is sent to whom; empty if nothing leaves the machine.
    """

    root: str
    built: bool
    files: int
    chunks: int
    bytes: int
    branch: str
    branches: tuple[str, ...]
    model: str | None
    changed_at: datetime | None
    sent: tuple[str, ...]


class IndexStatusResult(ToolResult, frozen=True):
    """What `index_status()` tells.

    Attributes:
        roots: For each root what there is.
    """

    roots: tuple[RootStatus, ...]

    def _body(self) -> Iterator[str]:
        for one in self.roots:
            name = f"{printable(one.root)} ({printable(one.branch)})"
            if not one.built:
                yield f"{name}: not built"
                continue
            changed = f", changed {one.changed_at:%Y-%m-%d %H:%M:%S} UTC" if one.changed_at else ""
            model = f", model {printable(one.model)}" if one.model else ""
            yield f"{name}: {one.files} files, {one.chunks} chunks, {one.bytes} bytes{model}{changed}"
            yield from (f"  sent: {printable(what)}" for what in one.sent)


class RootHealth(BaseModel, frozen=True):
    """Whether the index of one root is sound.

    Attributes:
        root: The root.
        ok: Whether nothing is wrong.
        files: How many files all its branches have.
        chunks: How many pieces there are.
        indexed: How many of them can be searched; the same number if all is well.
        orphans: How many contents no branch has any more.
        messages: What is wrong, or worth knowing.
    """

    root: str
    ok: bool
    files: int
    chunks: int
    indexed: int
    orphans: int
    messages: tuple[str, ...]


class IndexHealthResult(ToolResult, frozen=True):
    """What `index_health_check()` found.

    Attributes:
        roots: For each root whether its index is sound.
    """

    roots: tuple[RootHealth, ...]

    def _body(self) -> Iterator[str]:
        for one in self.roots:
            yield f"{printable(one.root)}: {'sound' if one.ok else 'NOT sound'}, {one.chunks} chunks"
            yield from (f"  {printable(message)}" for message in one.messages)


def _name(entry: ListEntry) -> str:
    if entry.truncated:
        return f"[{entry.truncated} truncated]"
    name = printable(entry.name)
    return f"{name}/ [not listed]" if entry.closed else f"{name}/" if entry.is_dir else name


def printable(name: str) -> str:
    r"""A name on one line: what would end the line, or steer a terminal, as `\x0a`."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", name)

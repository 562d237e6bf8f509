"""Find the definitions and uses of a name: rg finds the lines, and the syntax tells what each of them is."""

import base64
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack, cast

from ripwrap._code.languages import language_name
from ripwrap._code.outline import MAX_NAME_CHARS, Outline
from ripwrap._code.references import (
    CONFIDENCES,
    MAX_DEPTH,
    Confidence,
    Definitions,
    FileOccurrences,
    Occurrence,
    Reference,
    ReferenceKind,
    References,
    ReferenceSyntax,
    belongs,
    called_name,
    narrowed_owner,
    rate,
)
from ripwrap._code.treesitter.occurrences import Places
from ripwrap._code.treesitter.parser import check_installed
from ripwrap._code.treesitter.worker import Source, shared_reader
from ripwrap._operations.grep import GREP_TIMEOUT
from ripwrap._operations.pagination import Records, on_page
from ripwrap._ripgrep.command import ARGUMENTS, several_paths
from ripwrap._ripgrep.page_collector import Block, MatchCollector, PageRequest
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap._signature import lists_options
from ripwrap._system.concurrency import countdown
from ripwrap._text import cut_text, in_seconds, plural, shown, text_of
from ripwrap.binary.resolver import Rg
from ripwrap.errors import DecodeError, named_paths
from ripwrap.options import VISIBLE_FILES, SearchOptions, StrPath, check_limit, check_timeout
from ripwrap.places.where import PlacedFileOptions, placed_search

REFERENCES_LIMIT = 1_000

MAX_FOLLOWED = 50
"""Maximum number of definitions whose uses are searched for one call: the nearest, and those most surely meant."""

MAX_LINES = 5_000
"""Maximum number of lines with the name that are looked at: the first in path order."""

MAX_FILE_BYTES = "2000000"
"""Default of `max_filesize`, in bytes; larger files are seldom written by hand."""

MAX_TOTAL_BYTES = 128 << 20
"""Maximum number of bytes of rg's output in memory. Of further files, only the lines with the name are kept."""

_WHOLE_FILE = 2_000_000
"""Number of lines of context: all lines of a file of `MAX_FILE_BYTES`."""

_BATCH_BYTES = 4_000_000
"""Number of bytes of rg's output after which what is known of the files is read, in one request."""

_NARROWING = ("glob", "iglob", "type", "type_not")
"""Options that leave out files; definitions are looked for in these, too."""

_MAX_OUTLINED_LINES = 100_000
"""Maximum number of lines of a file that is read as a whole; files of more short lines take seconds."""

_SEARCH_SHARE = 0.5
"""Share of the time limit for the search; the rest is for reading what the lines are."""

_END_SHARE = 0.9
"""Share of the time limit after which no further file is read."""

_NAME = re.compile(r"[\w$](?:[\w$-]*[\w$])?[?!]?")
_SEPARATOR = re.compile(r"\.|::|#")


@named_paths
@lists_options({"max_filesize": MAX_FILE_BYTES, **VISIBLE_FILES})
async def references(
    name: str,
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    depth: int = 1,
    limit: int | None = REFERENCES_LIMIT,
    timeout: float | None = GREP_TIMEOUT,  # noqa: ASYNC109 - keeps what was found until then
    rg: Rg = None,
    **options: Unpack[PlacedFileOptions],
) -> References:
    """Find the definitions of a name, and its uses: imports, calls and mentions, each with the definition around it.

    rg finds the lines that have the name as a whole word. The syntax around the name (by tree-sitter, the extra `code`)
    then tells what it is. No types are used: a use of a method means any method with this name. `Reference.confidence`
    says how probable it is that a place means one of the definitions. Names in strings and comments are mentions with
    low confidence.

    ```python
    import asyncio

    import ripwrap

    found = asyncio.run(ripwrap.references("PRICES", cwd="demo"))
    for one in (*found.definitions, *found.uses):
        print(one.path, one.line, one.kind, one.confidence)
    ```

    ```text
    shop/cart.py 1 definition high
    shop/cart.py 6 mention high
    ```

    Args:
        name: Name to find, e.g. `total`, or qualified by its class, module or package, as in `Cart.total`: only these
            definitions are then listed, and uses of others have low confidence. A call, `Cart.total()`, is its name.
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search for uses, any number of them; empty is all of `cwd`. A file that
            several of them reach is searched once. Definitions are looked for in all of `cwd`, also in files that globs
            and types leave out.
        depth: From 1 to 5. With 2, also find the uses of the definitions around the uses (callers of callers), and so
            on. Places in strings and comments, imports and places with a low confidence are not followed; the
            confidence of a caller is the lowest of its chain. At most 50 definitions are followed.
        limit: Maximum number of uses; `None` is no limit. The first 5,000 lines with the name, in path order, are
            looked at.
        timeout: Seconds that the call may take; `None` is no limit. At the limit, the answer has what was found.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags that choose files, and where to search, such as `rev="main"`; see `FileOptions` and
            `ripwrap.places.PlaceOptions`. Hidden files and links are left out, unless `hidden` or `follow` is set.
            Files of more than two million bytes are left out, unless `max_filesize` is given.

    Raises:
        ValueError: The name is not a name, `depth` or `limit` is out of bounds, or a path or option has a NUL.
        MissingPackageError: The extra `code` is not installed.

    It also raises what `search()` raises about options and places. Unreadable paths are in `errors`.
    """
    request = references_request(name, cwd, paths, limit, timeout, options, depth=depth)
    return await run_references(AsyncRunner(rg), request)


@dataclass(frozen=True, slots=True)
class ReferencesRequest:
    """Checked arguments of `references()`."""

    name: str
    owner: str
    word: str
    query: Query
    limit: int | None
    timeout: float | None
    depth: int = 1
    allowed: Callable[[str], bool] | None = None
    whole_lines: bool = False
    wide: Query | None = None
    wide_allowed: Callable[[str], bool] | None = None


def references_request(
    name: str,
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    limit: int | None,
    timeout: float | None,
    options: PlacedFileOptions,
    *,
    depth: int = 1,
    allowed: Callable[[str], bool] | None = None,
    whole_lines: bool = False,
    wide: PlacedFileOptions | None = None,
    wide_allowed: Callable[[str], bool] | None = None,
) -> ReferencesRequest:
    """Check the arguments, and return the request of `references()`.

    `wide` are the options of the search for definitions, in all of `cwd`; None are those without the ones that narrow.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {type(name).__name__}")
    if depth not in range(1, MAX_DEPTH + 1):
        raise ValueError(f"depth must be from 1 to {MAX_DEPTH}, got {depth}")
    *owners, word = _SEPARATOR.split(name.strip().removesuffix("()"))
    if not is_name(name):
        quoted = shown(cut_text(name, 60))
        raise ValueError(
            f"name must be a name such as total or Cart.total, got {quoted!r}; search for other texts with a pattern"
        )
    several = several_paths(paths)
    narrows = bool(several) and [os.fspath(one) for one in several] != [os.curdir]
    narrows = narrows or any(options.get(key) for key in _NARROWING)
    everything = {key: value for key, value in options.items() if key not in _NARROWING} if wide is None else wide

    def query(paths: Iterable[StrPath], options: Mapping[str, object]) -> Query:
        known = {"max_filesize": MAX_FILE_BYTES, **VISIBLE_FILES, **options}
        searched = {**known, "fixed_strings": True, "word_regexp": True, "case_sensitive": True, "context": _WHOLE_FILE}
        made = placed_search(
            "references()",
            word,
            cwd,
            paths,
            cast("SearchOptions", searched),
            sorts=False,
            keeps_errors=True,
            arguments=("name", *ARGUMENTS[1:]),
        )
        return replace(made, once=True)

    return ReferencesRequest(
        name,
        owners[-1] if owners else "",
        word,
        query(several, options),
        check_limit(limit),
        check_timeout(timeout),
        depth,
        allowed,
        whole_lines,
        query((), everything) if narrows else None,
        wide_allowed,
    )


def is_name(name: str) -> bool:
    """Return True if a text is a name whose uses can be found, such as `total`, `Cart.total` or `total()`."""
    return len(name) <= MAX_NAME_CHARS and all(map(_NAME.fullmatch, _SEPARATOR.split(name.strip().removesuffix("()"))))


class _SourceCollector(MatchCollector):
    """Collector of lines with a name and of all lines around them, in bounded memory."""

    def __init__(self, page: PageRequest, allowed: Callable[[str], bool] | None) -> None:
        super().__init__(page, None if allowed is None else lambda path: allowed(os.fsdecode(path)))
        self.cut: bool = False
        self._sizes: dict[int, int] = {}
        self._bytes = 0

    def _append(self, record: bytes, *, is_match: bool) -> None:
        block = self._block
        if block is None:
            return
        if not is_match and self._bytes > MAX_TOTAL_BYTES:
            self.cut = True
            return
        before = len(block.records)
        super()._append(record, is_match=is_match)
        if len(block.records) > before:
            self._bytes += len(record)
            self._sizes[block.number] = self._sizes.get(block.number, 0) + len(record)

    def _keep_block(self) -> None:
        super()._keep_block()
        if self._bytes > MAX_TOTAL_BYTES:  # files may have been dropped that cannot be on the page
            kept = {block.number for block in self._kept}
            self._sizes = {number: size for number, size in self._sizes.items() if number in kept}
            self._bytes = sum(self._sizes.values())


async def run_references(run: Runner, request: ReferencesRequest) -> References:
    """Find the lines with the name, read what each of them is, and return the definitions and uses."""
    await run.call(check_installed)
    left = countdown(request.timeout)
    found = await _search(run, request, request.query, request.allowed)
    files, left_out = await _read(run, request, found, left)
    wide: list[FileOccurrences] = []
    if request.wide is not None:
        more = await _search(run, request, request.wide, request.wide_allowed)
        everywhere, unread = await _read(run, request, more, left)
        known = {file.path for file in files}
        wide = [file for file in everywhere if file.path not in known]
        left_out += unread
    answer = await run.call(lambda: _answer(request, found, files, wide, left_out))
    return answer if request.depth == 1 else await _with_callers(run, request, answer, left)


async def _with_callers(
    run: Runner, request: ReferencesRequest, answer: References, left: Callable[[], float | None]
) -> References:
    """Return the answer with the uses of the definitions around its uses, and so on; each definition is taken once."""
    known = {(one.path, one.line) for one in answer.definitions}
    callers: list[Reference] = []
    level: Sequence[Reference] = answer.uses
    followed, is_late, is_cut, exact = 0, False, False, answer.exact
    for _ in range(request.depth - 1):
        waiting = sorted(level, key=lambda one: CONFIDENCES.index(one.confidence))
        further: list[Reference] = []
        for use in waiting:
            around = use.enclosing
            name = "" if around is None else called_name(around)
            if around is None or (use.path, around.line) in known or not is_name(name) or not _is_followed(use):
                continue
            is_late = request.timeout is not None and (left() or 0) <= request.timeout * (1 - _END_SHARE)
            is_cut = followed == MAX_FOLLOWED
            if is_late or is_cut:
                break
            known.add((use.path, around.line))
            followed += 1
            *owners, word = name.split(".")
            asked = replace(
                request,
                name=name,
                owner=owners[-1] if owners else "",
                word=word,
                query=replace(request.query, patterns=(word,)),
                wide=request.wide and replace(request.wide, patterns=(word,)),
                limit=None,
                timeout=left(),
                depth=1,
            )
            found = await run_references(run, asked)
            exact = exact and found.exact and not found.truncated
            most: Confidence = "high" if len(found.definitions) == 1 else "medium"
            for one in found.uses:
                own = one.enclosing is not None and (one.path, one.enclosing.line) == (use.path, around.line)
                if own or one.kind == "definition" or not _is_followed(one):
                    continue
                doubts = (use.confidence, one.confidence, "high" if one.path == use.path else most)
                about = {"confidence": max(doubts, key=CONFIDENCES.index), "chain": (around.name, *use.chain)}
                further.append(one.model_copy(update=about))
        callers += further
        level = further
    shown_callers = callers if request.limit is None else callers[: request.limit]
    said = [f"{plural(len(callers), 'use')} of {plural(followed, 'definition')} around them."]
    if is_cut:
        said.append(f"Only the uses of {MAX_FOLLOWED} definitions were looked for; choose fewer files.")
    if is_late:
        said.append("There was no time for the uses of further definitions; choose fewer files.")
    if len(shown_callers) < len(callers):
        said.append(f"{len(shown_callers)} of these are here; a larger limit gives more.")
    return answer.model_copy(
        update={
            "callers": tuple(shown_callers),
            "exact": exact,
            "truncated": answer.truncated or not exact or is_late or is_cut or len(shown_callers) < len(callers),
            "summary": " ".join((answer.summary, *said)),
            "message": " ".join((answer.message, *said)),
        }
    )


def _is_followed(use: Reference) -> bool:
    """Return True if the definition around a use probably uses what is searched."""
    return use.syntax == "code" and use.kind in ("call", "mention") and use.confidence != "low"


async def _search(
    run: Runner, request: ReferencesRequest, query: Query, allowed: Callable[[str], bool] | None
) -> _SourceCollector:
    page = PageRequest(0, MAX_LINES, MAX_LINES, _WHOLE_FILE, _WHOLE_FILE, None)
    share = _SEARCH_SHARE if request.wide is None else _SEARCH_SHARE / 2
    seconds = None if request.timeout is None else request.timeout * share
    return await run.collect(Step(query, lambda: _SourceCollector(page, allowed), seconds))


async def _read(
    run: Runner, request: ReferencesRequest, found: _SourceCollector, left: Callable[[], float | None]
) -> tuple[list[FileOccurrences], int]:
    """Return what the places of the files are, and the number of lines for which there was no time."""
    page = PageRequest(0, MAX_LINES, MAX_LINES, _WHOLE_FILE, _WHOLE_FILE, None)
    files: list[FileOccurrences] = []
    batch: list[tuple[Block, int]] = []
    size = left_out = 0
    for block, _, taken in on_page(page, found.blocks()):
        if request.timeout is not None and (left() or 0) <= request.timeout * (1 - _END_SHARE):
            left_out += taken
            continue
        batch.append((block, taken))
        size += sum(len(record) for _, record in block.records)
        if size > _BATCH_BYTES:
            files += await run.call(lambda: _occurrences(request.word, batch))  # noqa: B023 - it is called at once
            batch, size = [], 0
    if batch:
        files += await run.call(lambda: _occurrences(request.word, batch))
    return files, left_out


def _occurrences(word: str, blocks: Sequence[tuple[Block, int]]) -> list[FileOccurrences]:
    """Return the places of files that have the name, each in its first `taken` lines with the name."""
    read: list[tuple[str, list[tuple[int, str]], frozenset[int]]] = []
    for block, taken in blocks:
        records = block.records
        if len(records) > _MAX_OUTLINED_LINES:
            records = [one for one in records if one[0]]
        lines = _lines(records)
        matching = [number for (is_match, _), (number, _) in zip(records, lines, strict=True) if is_match][:taken]
        read.append((os.fsdecode(block.path), lines, frozenset(matching)))
    sources = [Source(path, "\n".join(text for _, text in lines)) for path, lines, _ in read]
    found = shared_reader().places_of(word, sources)
    return [_file(*one, *places) for one, places in zip(read, found, strict=True)]


def _file(
    path: str, lines: Sequence[tuple[int, str]], matching: Collection[int], outline: Outline, found: Places
) -> FileOccurrences:
    whole = bool(lines) and lines[-1][0] == len(lines)
    occurrences: list[Occurrence] = []
    texts: dict[int, str] = {}
    for one in found.places:
        number, text = lines[one.row]
        if number not in matching:
            continue
        enclosing = outline.enclosing(one.row + 1) if whole else None
        if number not in texts:  # one copy of a long line for all of its places
            texts[number] = text.strip()
        if enclosing is not None and enclosing.line not in texts:
            texts[enclosing.line] = lines[enclosing.line - 1][1].strip()
        occurrences.append(
            Occurrence(
                number,
                one.column + 1,
                cast("ReferenceKind", one.kind),
                cast("ReferenceSyntax", one.syntax),
                one.is_member,
                one.receiver,
                one.is_local,
                enclosing,
                one.owner,
            )
        )
    return FileOccurrences(
        path,
        language_name(path, lines[0][1] if lines else "") or "",
        texts,
        tuple(occurrences),
        found.imports_all,
        found.aliases,
        frozenset(found.imported),
        frozenset(found.modules),
        found.package,
    )


def _lines(records: Records) -> list[tuple[int, str]]:
    """Return the number and the text of each line."""
    lines: list[tuple[int, str]] = []
    for _, record in records:
        try:
            data = json.loads(record)["data"]
            texts = data["lines"]
            text = texts["text"] if "text" in texts else text_of(base64.b64decode(texts["bytes"]))
            lines.append((int(data["line_number"]), text.removesuffix("\n").removesuffix("\r")))
        except (ValueError, KeyError, TypeError) as error:
            raise DecodeError(f"a record of rg is malformed: {error!r}") from error
    return lines


def _answer(
    request: ReferencesRequest,
    found: _SourceCollector,
    files: Sequence[FileOccurrences],
    wide: Sequence[FileOccurrences],
    left_out: int,
) -> References:
    every = sorted((*files, *wide), key=lambda file: file.path) if wide else files
    owner, is_known = narrowed_owner(every, request.owner)
    known = Definitions.of(every, owner)
    listed = [(file, one) for file in every for one in file.occurrences if _is_definition(owner, file, one)]
    places = [(file, one) for file in files for one in file.occurrences if not _is_definition(owner, file, one)]
    definitions = [_reference(request, owner, known, *place) for place in listed]
    uses = [_reference(request, owner, known, *place) for place in places]
    kept = uses if request.limit is None else uses[: request.limit]
    truncated = len(kept) < len(uses) or found.matches > MAX_LINES or left_out > 0 or not found.exact
    elsewhere = {(file.path, one.line) for file, one in listed if file in wide} if wide else set[tuple[str, int]]()
    summary = " ".join(_sentences(request, found, definitions, uses, elsewhere, left_out))
    if not is_known and definitions:
        asked = f"No class or module {request.owner} with this name was found, so all definitions of {request.word} are"
        summary = f"{summary} {asked} listed."
    return References(
        root=os.path.normpath(request.query.cwd),
        name=request.name,
        definitions=tuple(definitions),
        uses=tuple(kept),
        total_lines=found.matches,
        exact=found.exact and not left_out,
        truncated=truncated,
        errors=found.path_errors(),
        summary=summary,
        message=" ".join((summary, *_further_sentences(found, len(kept), len(uses)))),
    )


def _is_definition(owner: str, file: FileOccurrences, one: Occurrence) -> bool:
    return one.kind == "definition" and (not owner or belongs(file, one, owner))


def _reference(
    request: ReferencesRequest, owner: str, known: Definitions, file: FileOccurrences, one: Occurrence
) -> Reference:
    around = one.enclosing
    if around is not None and request.whole_lines:
        around = around.model_copy(update={"text": file.lines[around.line]})
    text = file.lines[one.line]
    return Reference(
        path=file.path,
        line=one.line,
        column=one.column,
        text=text if request.whole_lines else text[:MAX_NAME_CHARS],
        kind=one.kind,
        syntax=one.syntax,
        confidence=rate(file, one, known, owner),
        enclosing=around,
    )


def _sentences(
    request: ReferencesRequest,
    found: _SourceCollector,
    definitions: Sequence[Reference],
    uses: Sequence[Reference],
    elsewhere: Collection[tuple[str, int]],
    left_out: int,
) -> Iterator[str]:
    """Yield sentences about what was found and what was not looked at, also in other files (`elsewhere`)."""
    least = "" if found.exact else "at least "
    if not found.matches and not elsewhere:
        yield f"No line has the name {request.word}." if found.exact else "No line with the name was found in time."
    else:
        more = len({path for path, _ in elsewhere})
        files = f"{plural(found.matches + len(elsewhere), 'line')} of {least}{plural(found.files + more, 'file')}"
        others = sum(one.kind == "definition" for one in uses)
        other = f", {plural(others, 'other definition')}" if others else ""
        used = plural(len(uses) - others, "use")
        yield f"{plural(len(definitions), 'definition')}{other} and {used} in {least}{files}."
    if found.matches > MAX_LINES:
        yield f"Only the first {MAX_LINES:,} lines in path order were looked at; choose fewer files."
    if found.timed_out or left_out:
        seconds = in_seconds(request.timeout or 0)
        yield f"The time limit of {seconds} was reached, so places may be missing; choose fewer files."
    if found.cut:
        yield "Not all files were read as a whole, because they are too large; definitions in them may be missing."
    if found.dropped_records:
        yield f"{plural(found.dropped_records, 'line')} left out, because they are too long."


def _further_sentences(found: _SourceCollector, kept: int, uses: int) -> Iterator[str]:
    """Yield sentences about uses beyond the limit, and about unreadable paths."""
    if kept < uses:
        yield f"{kept} of {uses} uses are here; a larger limit gives more."
    failed = [error for error in found.path_errors() if not error.harmless]
    if failed:
        yield f"{plural(len(failed), 'path')} could not be read, the first: {failed[0]}."

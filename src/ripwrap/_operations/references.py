"""Find the definitions and uses of a name: rg finds the lines, and patterns tell what each of them is."""

import base64
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack, cast

from ripwrap._code.outline import MAX_NAME_CHARS
from ripwrap._code.references import Definitions, FileOccurrences, Occurrence, Reference, References, rate
from ripwrap._concurrency import countdown
from ripwrap._operations.grep import GREP_TIMEOUT
from ripwrap._operations.pagination import Records, on_page
from ripwrap._ranking.definitions import definition_lines
from ripwrap._ripgrep.command import ARGUMENTS
from ripwrap._ripgrep.page_collector import Block, MatchCollector, PageRequest
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap._signature import lists_options
from ripwrap._text import cut_text, in_seconds, plural, shown, text_of
from ripwrap.binary.resolver import Rg
from ripwrap.errors import DecodeError, named_paths
from ripwrap.options import VISIBLE_FILES, SearchOptions, StrPath, check_limit, check_timeout
from ripwrap.places.where import PlacedFileOptions, placed_search

REFERENCES_LIMIT = 1_000

MAX_LINES = 5_000
"""Maximum number of lines with the name that are looked at: the first in path order."""

MAX_FILE_BYTES = "2000000"
"""Default of `max_filesize`, in bytes; larger files are seldom written by hand."""

MAX_TOTAL_BYTES = 128 << 20
"""Maximum number of bytes of rg's output in memory. Of further files, only the lines with the name are kept."""

_WHOLE_FILE = 2_000_000
"""Number of lines of context: all lines of a file of `MAX_FILE_BYTES`."""

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
    cwd: StrPath = ".",
    paths: StrPath | Iterable[StrPath] = (),
    limit: int | None = REFERENCES_LIMIT,
    timeout: float | None = GREP_TIMEOUT,  # noqa: ASYNC109 - keeps what was found until then
    rg: Rg = None,
    **options: Unpack[PlacedFileOptions],
) -> References:
    """Find the definitions of a name, and its uses: imports, calls and mentions, each with the definition around it.

    rg finds the lines that have the name as a whole word. The text around the name then tells what it is. No parser and
    no types are used: a use of a method means any method with this name. `Reference.confidence` says how probable it is
    that a place means one of the definitions. Names in strings and comments are mentions with low confidence.

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
        name: Name to find, e.g. `total`, or qualified by its class or module, as in `Cart.total`: only these
            definitions are then listed, and uses of others have low confidence.
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, any number of them; empty is all of `cwd`. A file that several
            of them reach is searched once.
        limit: Maximum number of uses; `None` is no limit. The first 5,000 lines with the name, in path order, are
            looked at.
        timeout: Seconds that the call may take; `None` is no limit. At the limit, the answer has what was found.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags that choose files, and where to search, such as `rev="main"`; see `FileOptions` and
            `ripwrap.places.PlaceOptions`. Hidden files and links are left out, unless `hidden` or `follow` is set.
            Files of more than two million bytes are left out, unless `max_filesize` is given.

    Raises:
        ValueError: The name is not a name, `limit` is negative, or a path or option has a NUL.

    It also raises what `search()` raises about options and places. Unreadable paths are in `errors`.
    """
    request = references_request(name, cwd, paths, limit, timeout, options)
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
    allowed: Callable[[str], bool] | None = None
    whole_lines: bool = False


def references_request(
    name: str,
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    limit: int | None,
    timeout: float | None,
    options: PlacedFileOptions,
    *,
    allowed: Callable[[str], bool] | None = None,
    whole_lines: bool = False,
    arguments: Collection[str] = ("name", *ARGUMENTS[1:]),
) -> ReferencesRequest:
    """Check the arguments, and return the request of `references()`."""
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {type(name).__name__}")
    *owners, word = _SEPARATOR.split(name.strip())
    if len(name) > MAX_NAME_CHARS or not all(map(_NAME.fullmatch, (*owners, word))):
        quoted = shown(cut_text(name, 60))
        raise ValueError(
            f"name must be a name such as total or Cart.total, got {quoted!r}; search for other texts with a pattern"
        )
    known = {"max_filesize": MAX_FILE_BYTES, **VISIBLE_FILES, **options}
    searched = {**known, "fixed_strings": True, "word_regexp": True, "case_sensitive": True, "context": _WHOLE_FILE}
    query = placed_search(
        "references()",
        word,
        cwd,
        paths,
        cast("SearchOptions", searched),
        sorts=False,
        keeps_errors=True,
        arguments=arguments,
    )
    owner = owners[-1] if owners else ""
    query = replace(query, once=True)
    return ReferencesRequest(name, owner, word, query, check_limit(limit), check_timeout(timeout), allowed, whole_lines)


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
    left = countdown(request.timeout)
    page = PageRequest(0, MAX_LINES, MAX_LINES, _WHOLE_FILE, _WHOLE_FILE, None)
    seconds = None if request.timeout is None else request.timeout * _SEARCH_SHARE
    found = await run.collect(Step(request.query, partial(_SourceCollector, page, request.allowed), seconds))
    files: list[FileOccurrences] = []
    left_out = 0
    for block, _, taken in on_page(page, found.blocks()):
        if request.timeout is not None and (left() or 0) <= request.timeout * (1 - _END_SHARE):
            left_out += taken
            continue
        files.append(await run.call(partial(_occurrences, request.word, block, taken)))
    return await run.call(partial(_answer, request, found, files, left_out))


def _occurrences(word: str, block: Block, taken: int) -> FileOccurrences:
    """Return the places of a file that have the name, in its first `taken` lines with the name."""
    path, records = os.fsdecode(block.path), block.records
    if len(records) > _MAX_OUTLINED_LINES:
        records = [one for one in records if one[0]]
    lines = _lines(records)
    matching = [number for (is_match, _), (number, _) in zip(records, lines, strict=True) if is_match][:taken]
    texts = [text for _, text in lines]
    numbers = [number for number, _ in lines]
    whole = numbers == [*range(1, len(lines) + 1)]
    from ripwrap._code.occurrences import find_occurrences  # late: it compiles the patterns of all languages

    defined = frozenset(definition_lines("\n".join(texts), (word,)))
    found = find_occurrences(path, texts, word, defined, None if whole else numbers)
    shown_lines = frozenset(matching)
    kept = tuple(one for one in found.occurrences if one.line in shown_lines)
    return replace(found, occurrences=kept)


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
    request: ReferencesRequest, found: _SourceCollector, files: Sequence[FileOccurrences], left_out: int
) -> References:
    known = Definitions.of(files, request.owner)
    places = [(file, one) for file in files for one in file.occurrences]
    definitions = [_reference(request, known, *place) for place in places if _is_definition(request, *place)]
    uses = [_reference(request, known, *place) for place in places if not _is_definition(request, *place)]
    kept = uses if request.limit is None else uses[: request.limit]
    truncated = len(kept) < len(uses) or found.matches > MAX_LINES or left_out > 0 or not found.exact
    summary = " ".join(_sentences(request, found, len(definitions), len(uses), left_out))
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


def _is_definition(request: ReferencesRequest, file: FileOccurrences, one: Occurrence) -> bool:
    return one.kind == "definition" and (not request.owner or request.owner in (one.owner, file.module))


def _reference(request: ReferencesRequest, known: Definitions, file: FileOccurrences, one: Occurrence) -> Reference:
    around = one.enclosing
    if around is not None and request.whole_lines:
        around = around.model_copy(update={"text": file.lines[around.line].strip()})
    text = file.lines[one.line].strip()
    return Reference(
        path=file.path,
        line=one.line,
        column=one.column,
        text=text if request.whole_lines else text[:MAX_NAME_CHARS],
        kind=one.kind,
        syntax=one.syntax,
        confidence=rate(file, one, known, request.owner),
        enclosing=around,
    )


def _sentences(
    request: ReferencesRequest, found: _SourceCollector, definitions: int, uses: int, left_out: int
) -> Iterator[str]:
    """Yield sentences about what was found and what was not looked at."""
    least = "" if found.exact else "at least "
    if not found.matches:
        yield f"No line has the name {request.word}." if found.exact else "No line with the name was found in time."
    else:
        files = f"{plural(found.matches, 'line')} of {least}{plural(found.files, 'file')}"
        yield f"{plural(definitions, 'definition')} and {plural(uses, 'use')} in {least}{files}."
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

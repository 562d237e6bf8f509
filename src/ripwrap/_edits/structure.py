"""Search code by its syntax with ast-grep, and make a plan that replaces what was found.

Each match contains the literals of the pattern, such as names and keywords. rg lists the files of the language that
contain the longest literal, or all files of the language if the pattern has no literal. (Keywords and frequent names
count as the shortest literals.) Of the listed files, only files that contain all literals are parsed, in worker
processes. The matches are the same as if ast-grep had searched all files.
"""

import math
import os
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, Unpack, cast

from ripwrap._code.structure.client import (
    CodeWorkers,
    Language,
    StructureMatches,
    UnsearchedError,
    check_installed,
    find_language,
)
from ripwrap._edits.planning import MAX_BYTES, EditSize, FileChange, Found, plan_files
from ripwrap._edits.replace import ReplacePlan
from ripwrap._ripgrep.command import ARGUMENTS, files_query, search_query, several_paths
from ripwrap._ripgrep.decoder import PathDecoder, listing_decoder
from ripwrap._ripgrep.page_collector import ListingCollector, path_order
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.runner import AsyncRunner, BlockingRunner, DeadlineRunner, run_blocking
from ripwrap._signature import lists_options
from ripwrap._system.safe_open import open_regular_file
from ripwrap._system.subprocess.worker import WorkerProcess
from ripwrap._text import byte_order_mark, is_binary
from ripwrap.binary.resolver import Rg
from ripwrap.edits import EditPlan
from ripwrap.errors import Hint, HintedText, named_paths
from ripwrap.models import CodeError, CodeErrorKind, CodeMatch, PathError, Submatch
from ripwrap.options import VISIBLE_FILES, FileOptions, SearchOptions, StrPath, check_limit, check_timeout, values_of
from ripwrap.places.where import refuse_places

FILE_SECONDS = 10.0
"""Default maximum number of seconds for parsing and searching a file."""

MAX_FILE_BYTES = 32 << 20
"""Size in bytes above which a file is not parsed; its syntax tree would not fit in the memory of a worker process."""

_TYPE = "ripwrapcode"
_HEAD_BYTES = 64 << 10

CodeItem: TypeAlias = CodeMatch | CodeError


@named_paths
def search_code(
    pattern: str,
    *,
    lang: str,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    limit: int | None = None,
    file_timeout: float = FILE_SECONDS,
    rg: Rg = None,
    **options: Unpack[FileOptions],
) -> AsyncGenerator[CodeItem]:
    """Search code by its syntax, with a pattern of ast-grep; yield each match, and each file that was not searched.

    A pattern is code, in which `$NAME` stands for one node of the syntax tree, and `$$$NAME` for any number of nodes,
    such as arguments (https://ast-grep.github.io/guide/pattern-syntax.html). White space does not count. The matches
    are the same that ast-grep finds in all files of the language, and include matches within other matches. They come
    in path order, unless `sort` or `sortr` is given. JavaScript in HTML and HTML around PHP are not searched. A pattern
    that never matches, because the language reads its code otherwise outside of a function, is an error that names a
    pattern that does: `free($P);` for `free($P)` in C. `search_code()` needs the extra `structure`.

    First, rg finds the files that contain the longest name (or other fixed text) of the pattern. So a search for a rare
    name is fast. Files are parsed in separate processes, because a parser may hang or crash. For a file that was not
    searched, or only in part, a `CodeError` is yielded, whose `type` is `"error"`. Then the search continues.

    ```python
    import asyncio

    import ripwrap


    async def main():
        async for hit in ripwrap.search_code("def $NAME($$$ARGS): $$$", lang="python", cwd="demo"):
            if hit.type == "match":
                print(hit.path, hit.line_number, hit.metavariables)


    asyncio.run(main())
    ```

    ```text
    shop/cart.py 4 {'NAME': 'total', 'ARGS': 'items'}
    shop/till.py 1 {'NAME': 'pay', 'ARGS': 'amount'}
    ```

    Args:
        pattern: A pattern of ast-grep.
        lang: Language, as ast-grep names it: `python`, `typescript`, `tsx`, `rust`, …; files with its extensions are
            searched.
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, any number of them; empty is all of `cwd`. A file named here is searched
            with any extension.
        limit: Maximum number of matches, over all files.
        file_timeout: Maximum number of seconds for parsing and searching a file. For a slower file, a `CodeError` is
            yielded.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags that choose files; see `FileOptions`. `type` does not apply.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: The language is unknown, `limit` is negative, `file_timeout` is not positive, `type` is given, or a
            path or option has a NUL.
        RipwrapError: ast-grep-py is not installed, or the process that parses cannot be started.
        PatternError: ast-grep does not accept the pattern, or does not capture one of its metavariables.
        FileNotFoundError, NotADirectoryError, BinaryNotFoundError, GlobError, UnknownTypeError, SearchError: See
            `search()`.

    The call itself raises the errors about options and the language, and the error for a missing package. The first
    iteration raises the other errors.
    """
    return run_code(code_request(pattern, None, lang, cwd, paths, limit, file_timeout, options), rg)


@named_paths
@lists_options(VISIBLE_FILES)
async def replace_code(
    pattern: str,
    fix: str,
    *,
    lang: str,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    file_timeout: float = FILE_SECONDS,
    max_bytes: int = MAX_BYTES,
    rg: Rg = None,
    **options: Unpack[FileOptions],
) -> ReplacePlan:
    """Find code by its syntax, and return a plan that replaces it; nothing is written before `plan.apply()`.

    In `fix`, `$NAME` and `$$$NAME` stand for the code that the metavariables of the pattern have captured. The lines of
    the new text are indented relative to the match, as with `ast-grep run --rewrite`, and end as the line of the match
    does. Unlike ast-grep 0.51, ripwrap keeps lines inside strings as they are, and keeps code at the start and end of a
    match that the pattern does not name, such as `async`, an `else` or a semicolon. If such code is in the middle, the
    match is not replaced. If a file parses, and would not parse with the new text, it is not changed. If a match is
    inside another match, only the outer match is replaced; to replace the inner match, apply the plan and call
    `replace_code()` again.

    ```python
    import asyncio

    import ripwrap


    async def main():
        plan = await ripwrap.replace_code("$A[item]", "$A.get(item, 0)", lang="python", cwd="demo")
        print([(file.path, edit.before, edit.after) for file in plan for edit in file.edits])


    asyncio.run(main())
    ```

    ```text
    [('shop/cart.py', 'PRICES[item]', 'PRICES.get(item, 0)')]
    ```

    Args:
        pattern: A pattern of ast-grep, as in `search_code()`.
        fix: Text to put in place of each match.
        lang: Language, as in `search_code()`.
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, as in `search_code()`.
        file_timeout: Maximum number of seconds for parsing and searching a file. A slower file is left out.
        max_bytes: Maximum size of a file, and of all edits together, as in `replace()`.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags that choose files. As in `replace()`, hidden files are left out, unless `hidden`
            is set, and symbolic links are left out, unless `follow` is set.

    Files and matches that are not changed, and files that were not searched, or only in part, are in `plan.errors`.

    Raises:
        ValueError: The fix names a metavariable that the pattern does not capture, or all edits together are larger
            than `max_bytes`.
        ConflictError: A file changed while it was searched.

    It also raises what `search_code()` raises.
    """
    request = code_request(pattern, fix, lang, cwd, paths, None, file_timeout, {**VISIBLE_FILES, **options})
    known = await run_replace_code(AsyncRunner(rg), request, timeout=None, max_bytes=max_bytes)
    return ReplacePlan(root=known.root, files=known.files, errors=known.errors)


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """Checked arguments of `search_code()` or `replace_code()`."""

    pattern: str
    fix: str | None
    language: Language
    paths: tuple[StrPath, ...]
    limit: int | None
    file_timeout: float
    options: FileOptions
    listing: Query

    @property
    def root(self) -> str:
        """Directory that is searched, as an absolute path without `..`."""
        return os.path.normpath(self.listing.cwd)

    def candidates(self, literals: Sequence[str]) -> "Step[ListingCollector[str]]":
        """Return the step (a run of rg) that lists the files that contain the first of `literals`."""
        if not literals:
            return Step(self.listing, lambda: ListingCollector[str](PathDecoder()), None)
        options = cast("SearchOptions", {**self.options, "fixed_strings": True, "text": True})
        query = search_query(literals[0], self.listing.cwd, self.paths, options, "files-with-matches")
        return Step(query, lambda: ListingCollector[str](listing_decoder(counts=query.counts)), None)


def code_request(
    pattern: str,
    fix: str | None,
    lang: str,
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    limit: int | None,
    file_timeout: float,
    options: FileOptions,
) -> CodeRequest:
    """Check the arguments, and return the request of `search_code()` or `replace_code()`."""
    refuse_places("search_code()" if fix is None else "replace_code()", options)
    language = find_language(lang)
    if options.get("type"):
        hint = Hint("type", kind="omit")
        said = " does not apply, because lang chooses the files; leave "
        raise ValueError(HintedText(hint, said, hint, " out, or use glob"))
    for name, text in {"pattern": pattern, "fix": fix or ""}.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a string, got {type(text).__name__}")
    seconds = check_timeout(file_timeout)
    if not seconds:
        raise ValueError(f"file_timeout must be a positive number of seconds, got {file_timeout}")
    check_installed()
    several = several_paths(paths)
    globs = (f"{_TYPE}:*.{extension}" for extension in language.extensions)
    arguments = (*ARGUMENTS, "lang", "file_timeout", "max_bytes", "fix")
    files_query(cwd, several, options, arguments=arguments)  # checks the options and their types
    known: FileOptions = {
        **options,
        "type_add": (*values_of(options, "type_add"), *globs),
        "type": _TYPE,
    }
    listing = files_query(cwd, several, known)
    return CodeRequest(pattern, fix, language, several, check_limit(limit), seconds, known, listing)


async def run_code(request: CodeRequest, rg: Rg) -> AsyncGenerator[CodeItem]:
    """Search code by its syntax; yield the matches, and an error for each file that was not, or not fully, searched."""
    run = AsyncRunner(rg)
    with CodeSearch(request) as search:
        found = await search.begin(run)
        while found is not None:
            for item in search.limited(found.items()):
                yield item
            found = await search.next(run)


def run_code_blocking(request: CodeRequest, rg: Rg, timeout: float | None) -> Generator[CodeItem]:
    """Search code by its syntax, and yield the matches and errors, blocking."""
    run = DeadlineRunner(BlockingRunner(rg, timeout=timeout), timeout)
    with CodeSearch(request) as search:
        found = run_blocking(search.begin(run))
        while found is not None:
            yield from search.limited(found.items())
            found = run_blocking(search.next(run))


async def run_replace_code(
    run: Runner,
    request: CodeRequest,
    *,
    timeout: float | None,  # noqa: ASYNC109
    max_bytes: int = MAX_BYTES,
) -> EditPlan:
    """Search code by its syntax, and return the plan that replaces the matches. Raise what `replace_code()` raises."""
    files: list[Found] = []
    errors: list[CodeError] = []
    size = EditSize(max_bytes)
    run = DeadlineRunner(run, check_timeout(timeout))
    with CodeSearch(request) as search:
        await search.begin(run)
        while (found := await search.next(run)) is not None:
            errors += found.errors
            for change in found.changes:
                size.add(found.path, len(change.before) + len(change.after))
            if found.changes:
                files.append(Found(found.path, found.changes))
        planned, left_out = await run.call(lambda: plan_files(request.root, files, max_bytes=max_bytes))
    told = (PathError(path=one.path, kind="other", message=one.message) for one in errors)
    return EditPlan(root=request.root, files=planned, errors=(*search.unlisted, *told, *left_out))


@dataclass(slots=True)
class FoundInFile:
    """Result of searching one file."""

    path: str = ""
    matches: list[CodeMatch] = field(default_factory=list[CodeMatch])
    changes: list[FileChange] = field(default_factory=list[FileChange])
    errors: list[CodeError] = field(default_factory=list[CodeError])

    def add_error(self, kind: CodeErrorKind, message: str, line_number: int | None = None) -> None:
        """Add an error about the file."""
        self.errors.append(CodeError(path=self.path, kind=kind, message=message, line_number=line_number))

    def items(self) -> Iterator[CodeItem]:
        """Yield the matches, then the errors."""
        yield from self.matches
        yield from self.errors


class CodeSearch:
    """State of a search of code by its syntax; a context manager that ends the worker processes."""

    def __init__(self, request: CodeRequest) -> None:
        """Prepare the search; worker processes are started when they are needed."""
        self._request = request
        self._limit = math.inf if request.limit is None else request.limit
        self._workers = CodeWorkers(request.pattern, request.language, request.fix, request.file_timeout)
        self.unlisted: tuple[PathError, ...] = ()
        self._literals: tuple[bytes, ...] = ()
        self._results: Generator[tuple[str, FoundInFile]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.pool.close()
        if self._results is not None:
            with suppress(ValueError):  # a cancelled thread still runs the generator, and will end it
                self._results.close()

    async def begin(self, run: Runner) -> FoundInFile | None:
        """Check the pattern and list the files; return errors for the paths that rg could not read."""
        request = self._request
        literals = await run.call(self._workers.check)
        if self._limit == 0:
            return None
        self._literals = tuple(text.encode() for text in literals)
        listing = await run.collect(request.candidates(literals))
        listed = listing.every()
        if not cast("Mapping[str, Any]", request.options).keys() & {"sort", "sortr"}:
            listed.sort(key=lambda path: path_order(os.fsencode(path)))
        self._results = self._workers.pool.map(self._search_file, listed, self._workers.count(len(listed)))
        self.unlisted = tuple(error for error in listing.errors if not error.harmless)
        unreadable = (CodeError(path=one.path, kind="unreadable", message=one.message) for one in self.unlisted)
        return FoundInFile(errors=list(unreadable))

    async def next(self, run: Runner) -> FoundInFile | None:
        """Return the result for the next file with matches or errors; `None` after the last file, or at the limit."""
        if self._results is None or self._limit <= 0:
            return None
        results = self._results
        return await run.call(
            lambda: next((one for _, one in results if one.matches or one.changes or one.errors), None)
        )

    def limited(self, items: Iterable[CodeItem]) -> Iterator[CodeItem]:
        """Yield items until the limit of matches is reached."""
        for item in items:
            if self._limit <= 0:
                return
            self._limit -= item.type == "match"
            yield item

    def _search_file(self, worker: WorkerProcess, path: str) -> FoundInFile:
        found = FoundInFile(path)
        try:
            text = self._read(path)
            if all(literal in text for literal in self._literals):
                self._add(found, text, self._workers.search(worker, text))
        except OSError as error:
            found.add_error("unreadable", error.strerror or str(error))
        except UnicodeDecodeError as error:
            found.add_error("encoding", f"it is not valid {error.encoding}, at byte {error.start}; convert it to UTF-8")
        except UnsearchedError as error:
            found.add_error(error.kind, str(error))
        return found

    def _read(self, path: str) -> bytes:
        """Return the text of a file in UTF-8, without a byte order mark."""
        options = cast("Mapping[str, Any]", self._request.options)
        listing = self._request.listing
        roots = listing.paths or (os.curdir,)
        with open_regular_file(listing.cwd, path, follow=options.get("follow", True), roots=roots) as file:
            raw = file.read(_HEAD_BYTES)
            if is_binary(raw):
                raise UnsearchedError("binary", f"it is binary (NUL at byte {raw.index(0)})")
            if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
                raise UnsearchedError("too_large", f"it is larger than {MAX_FILE_BYTES >> 20} MiB")
            raw += file.read()
        mark, encoding = byte_order_mark(raw)
        return raw[len(mark) :].decode(encoding).encode()

    def _add(self, found: FoundInFile, text: bytes, answer: StructureMatches) -> None:
        """Add the matches in the answer of a worker process to `found`; for a replacement, add the changes instead."""
        line, counted = 1, 0
        for hit in answer.hits:
            first = text.rfind(b"\n", 0, hit.start) + 1
            last = text.find(b"\n", max(hit.end - 1, hit.start)) + 1 or len(text)
            line, counted = line + text.count(b"\n", counted, first) - text.count(b"\n", first, counted), first
            if self._request.fix is None:
                matched = text[hit.start : hit.end].decode()
                submatch = Submatch.model_construct(match=matched, start=hit.start - first, end=hit.end - first)
                found.matches.append(
                    CodeMatch.model_construct(
                        path=found.path,
                        lines=text[first:last].decode(),
                        line_number=line,
                        absolute_offset=first,
                        submatches=(submatch,),
                        metavariables={name: text[one:other].decode() for name, (one, other) in hit.spans.items()},
                    )
                )
            elif isinstance(hit.edit, str):
                message = f"the match in line {line} is not replaced: {hit.edit}; replace it by hand"
                found.add_error("syntax", message, line)
            elif hit.edit is not None:
                start, end, new = hit.edit
                found.changes.append(FileChange(start, end, text[start:end], new.encode()))
        if answer.broken_line is not None:
            found.changes.clear()
            message = f"with the new text, line {answer.broken_line} would not be valid {self._request.language.name}"
            found.add_error("syntax", f"it is not changed, because {message}; correct the fix, or replace by hand")
        if answer.error_line is not None:
            message = f"line {answer.error_line} is not valid {self._request.language.name}"
            if self._request.fix is not None and answer.hits:
                message = f"it is not changed, because {message}; correct that line, or replace by hand"
            else:
                message += "; matches may be missing"
            found.add_error("syntax", message, answer.error_line)

"""Base class of the async and the blocking `Index`.

Each of these two classes runs the coroutines of the base class with its own runner: `AsyncRunner` or `BlockingRunner`.
"""

import errno
import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias, TypeVar, Unpack, cast

import anyio
from anyio.lowlevel import RunVar

from ripwrap._code.treesitter.merge import chunker_version
from ripwrap._code.treesitter.parser import check_installed, is_available
from ripwrap._code.treesitter.worker import CodeReader
from ripwrap._operations.grep import GrepRequest, grep_request, run_grep
from ripwrap._ranking.passages import BROAD
from ripwrap._ranking.scoring import NO_EVIDENCE
from ripwrap._ranking.word_query import WordQuery, parse_query
from ripwrap._ripgrep.command import choosing_flags, files_query
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.literals import Required, required_literals
from ripwrap._ripgrep.page_collector import ListingCollector
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._signature import lists_options
from ripwrap._system.concurrency import refuse_copy
from ripwrap._text import shown
from ripwrap.binary import cache
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, HintedText, MissingPackageError, RipwrapError, named_paths
from ripwrap.index import maintenance
from ripwrap.index.embeddings.hybrid import HybridSearch
from ripwrap.index.embeddings.protocol import Embedder
from ripwrap.index.file_state import key_of, view_of
from ripwrap.index.models import CheckResult, IndexStatus, Progress, PruneResult, RefreshResult, VectorSearch
from ripwrap.index.refresh import refresh
from ripwrap.index.search import IndexResults, search
from ripwrap.index.splitting import TOKENIZER, WINDOW_CHUNKER, Chunker, Splitter
from ripwrap.index.storage.database import versions_of
from ripwrap.index.storage.engine import is_available as has_engine
from ripwrap.index.storage.files import FOLDER, NAME, own_files
from ripwrap.index.storage.store import Store
from ripwrap.index.storage.tables import View, generation_of, number_of
from ripwrap.index.trigrams import FoundFiles, Trigrams
from ripwrap.models import PathError
from ripwrap.options import (
    VISIBLE_FILES,
    FileOptions,
    SearchOptions,
    StrPath,
    check_callback,
    check_limit,
    check_max_age,
    values_of,
)
from ripwrap.places.items import Candidates
from ripwrap.places.where import refuse_places
from ripwrap.results import GrepResult

IndexLocation: TypeAlias = Literal["project"] | StrPath | None
ChunkerName: TypeAlias = Literal["auto", "syntax", "windows"]

_HYBRID_WEIGHT = Hint("hybrid_weight", kind="correct")


def check_weight(weight: float | None) -> None:
    """Check the weight of embeddings in the score."""
    if weight is None:
        return
    if not isinstance(weight, (int, float)) or isinstance(weight, bool):
        raise TypeError(HintedText(_HYBRID_WEIGHT, f" must be a number from 0 to 1, or None; got {weight!r}"))
    if not 0 <= weight <= 1:
        raise ValueError(HintedText(_HYBRID_WEIGHT, f" must be from 0 to 1, got {weight}"))


def check_workers(workers: int | None) -> None:
    """Check the number of worker processes."""
    if workers is None:
        return
    option = Hint("workers", kind="correct")
    if not isinstance(workers, int) or isinstance(workers, bool):
        raise TypeError(HintedText(option, f" must be an int of 0 or more, or None; got {workers!r}"))
    if workers < 0:
        raise ValueError(HintedText(option, f" must be 0 or more, got {workers}"))


def weight_without_embedder_error() -> ValueError:
    """Return the error for an index that has a `hybrid_weight` but no embedder."""
    return ValueError(HintedText(_HYBRID_WEIGHT, " needs an embedder; pass ", Hint("embedder")))


def make_chunker(wanted: ChunkerName) -> Chunker:
    """Return the chunker with the name `wanted`, such as 'syntax'."""
    if wanted not in ("auto", "syntax", "windows"):
        raise ValueError(f"chunker must be 'auto', 'syntax' or 'windows', got {wanted!r}")
    if wanted == "windows" or not is_available():
        if wanted == "syntax":
            check_installed()
        return WINDOW_CHUNKER
    process = CodeReader()
    return Chunker(chunker_version(), process.chunks_of, process.close)


def index_folder(root: Path, location: IndexLocation) -> Path:
    """Return the directory in which the index of `root` is stored."""
    if location == "project":
        return root / FOLDER
    if location is not None and not os.fspath(location):
        raise ValueError(HintedText(Hint("location", kind="correct"), " must name a directory, got ''"))
    if location is not None:
        return Path(os.path.realpath(location))
    folder = cache.folder()
    if reason := cache.why_untrusted(folder):
        wrong = f"could not use the cache {shown(str(folder))} for an index: {reason}"
        raise RipwrapError(HintedText(wrong, "; pass ", Hint("location")))
    name = hashlib.blake2b(os.fsencode(key_of(root)), digest_size=16).hexdigest()
    return folder / "index" / name


DEFAULT_LIMIT = 10

_TOKENIZER = f"{TOKENIZER} 3"
"""Versions of the tokenizer of full-text search, and of the rules that split identifiers into words. If one of these
versions changes, indexes are rebuilt.
"""

_FILES_VERSION = "2"
"""Version of the default rules for choosing files. Version 1 included hidden files and followed links, so an
index of version 1 is rebuilt.
"""

_INDEX_NUMBERS = itertools.count()
_REFRESH_ATTEMPTS = 3  # further attempts are needed if another process refreshes at the same time
_ARGUMENTS = ("root", "location", "chunker", "embedder", "hybrid_weight", "rg", "workers")
_GREP_ARGUMENTS = ("pattern", "limit", "max_files", "offset", "timeout", "explain", "refresh", "max_age")

ProgressCallback: TypeAlias = Callable[[Progress], object]

_Found = TypeVar("_Found", IndexStatus, CheckResult)


class BaseIndex:
    """Base class of the async and the blocking `Index`: the index of the files of a directory."""

    def __reduce__(self) -> NoReturn:
        refuse_copy(self)

    @named_paths
    @lists_options(VISIBLE_FILES)
    def __init__(
        self,
        root: StrPath = ".",
        *,
        location: IndexLocation = None,
        chunker: ChunkerName = "auto",
        embedder: str | Embedder | None = None,
        hybrid_weight: float | None = None,
        rg: Rg = None,
        workers: int | None = None,
        **options: Unpack[FileOptions],
    ) -> None:
        """Configure the index; its files are not read or written yet.

        Args:
            root: Directory to index.
            location: Directory in which the index is stored. `None` is a directory in the user's cache; all worktrees
                of a repository share this directory. `"project"` is the subdirectory `.ripwrap` of `root`; git and rg
                ignore this subdirectory. Any other value is a path.
            chunker: Method that splits files into chunks. `"syntax"` splits at definitions and needs the extra
                `code`. `"windows"` splits by lines, and guesses from the look of a line what it defines. `"auto"` is
                `"syntax"` if the extra is installed, otherwise `"windows"`. `"syntax"` parses source in a separate
                process, because hostile source may crash a parser. If the chunker changes, the index is rebuilt.
            embedder: Embedding model. `"wordllama"` runs on this machine, without a network. `"provider:model"`,
                e.g. `"openai:text-embedding-3-small"`, sends the text of every chunk and query to that provider.
                `"auto"` is the first provider of `detect()` that can be used or, if there is none, wordllama. An
                `Embedder` is used as it is. With `None`, the index searches words only. wordllama needs the extra
                `vectors`, hosted models need `hosted`, and Google's models need `google`.
            hybrid_weight: Weight of embeddings in the score, from 0 to 1; `None` is 0.34. Words have the weight 1 if
                this value is at most 0.5. Above 0.5, the weight of words falls, to 0 for `hybrid_weight=1`.
                `search()` can override the value for a query. With 0, a search sends no text to the embedder.
            rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one.
            workers: Maximum number of worker processes that read and split files. They are started if a refresh has
                to read 4 MB or more, and end with the refresh. 0 means no workers. `None` means one for each CPU, up to
                4; no workers if there is only one CPU. If workers cannot be started, this process does all the work.
            **options: rg's flags, which choose the files; see `FileOptions`. Hidden files (such as `.env`) are indexed
                only with `hidden=True`, and links are followed only with `follow=True`.

        Raises:
            pydantic.ValidationError: An option is unknown or ill-typed.
            ValueError: A path or option has a NUL character, `location` is empty, `chunker` is unknown,
                `hybrid_weight` or `workers` is out of range, or `hybrid_weight` is given without an `embedder`.
            TypeError: `hybrid_weight` is not an int or float, `workers` is not an int, or `embedder` is neither a name
                nor an `Embedder`.
            RipwrapError: tantivy (extra `index`) is not installed, `chunker="syntax"` is given and the extra `code`
                is not installed, or the user's cache cannot be trusted.
            EmbeddingError: The embedder is unknown, or its package or key is missing.
        """
        if not has_engine():
            needed = HintedText("an index needs tantivy: ", Hint(kind="install", target="ripwrap[index]"))
            raise MissingPackageError(needed, name="tantivy")
        check_weight(hybrid_weight)
        check_workers(workers)
        self._file_options: FileOptions = {**VISIBLE_FILES, **options}
        listing = files_query(os.path.realpath(root), (), self._file_options, _ARGUMENTS)
        self._listing = replace(listing, overlay=None)
        self._root = Path(self._listing.cwd)
        self._rg = rg
        self._lock_of_loop: RunVar[anyio.Lock] = RunVar(f"ripwrap_index_{next(_INDEX_NUMBERS)}")
        self._chunker = make_chunker(chunker)
        self._splitter = Splitter(self._chunker, workers)
        self._options = json.dumps(choosing_flags(self._listing))
        versions = {"chunker": self._chunker.version, "tokenizer": _TOKENIZER, "files": _FILES_VERSION}
        self._location = location
        project = location == "project"
        self._store = Store(
            index_folder(self._root, location), versions, ignored=project, named=location is not None and not project
        )
        self._trigrams = Trigrams(self._store)
        self._unlisted: tuple[PathError, ...] = ()
        """Paths that rg could not read when it last listed the files."""
        self._last_listing: tuple[View, float] | None = None
        self._depth = BROAD
        self._hybrid: HybridSearch | None = None
        if embedder is not None:
            from ripwrap.index.embeddings.registry import embedder as make_embedder  # late: an HTTP client

            # The function does not refer to this object: a reference cycle would keep it alive.
            root, text = self._root, self._options
            self._hybrid = HybridSearch(
                self._store, lambda: View(str(root), view_of(root), text), make_embedder(embedder), hybrid_weight
            )
        elif hybrid_weight is not None:
            raise weight_without_embedder_error()

    @property
    def root(self) -> Path:
        """Directory that is indexed, as a real path."""
        return self._root

    @property
    def location(self) -> Path:
        """Directory in which the index is stored."""
        return self._store.folder

    def _current_view(self) -> View:
        return View(str(self._root), view_of(self._root), self._options)

    def _close(self) -> None:
        if self._hybrid is not None:
            self._hybrid.store_sent()
        self._store.close()  # waits for threads that use the store, and therefore the chunker
        self._trigrams.close()
        self._chunker.close()

    def _lock(self) -> anyio.Lock:
        """Return the lock of this index for the running event loop; a task that waits for the lock blocks no thread."""
        lock = self._lock_of_loop.get(None)
        if lock is None:
            lock = anyio.Lock()
            self._lock_of_loop.set(lock)
        return lock

    async def _get_status(self, run: Runner) -> IndexStatus:
        info = None if self._hybrid is None else self._hybrid.info()
        return await run.call(
            lambda: self._with_notes_of_others(maintenance.get_status(self._store, self._current_view(), info))
        )

    def _with_notes_of_others(self, found: _Found) -> _Found:
        """Add a note if this index is in the user's cache and the project also has an index, or the reverse."""
        if found.views or self._location not in (None, "project"):
            return found
        other = "project" if self._location is None else None
        with suppress(RipwrapError):  # the cache cannot be trusted
            folder = index_folder(self._root, "project" if other else None)
            if (folder / NAME).is_file():
                hint = Hint("location", other, kind="pass" if other else "omit")
                way = ("; pass " if other else "; leave out ", hint, " to use it")
                note = HintedText(f"There is an index in {shown(str(folder))}", way, ".")
                kept: list[str] = [message for message in found.messages if message != maintenance.NO_INDEX]
                return found.model_copy(update={"messages": (*kept, note)})
        return found

    async def _check(self, run: Runner) -> CheckResult:
        return await run.call(
            lambda: self._with_notes_of_others(maintenance.check_index(self._store, self._current_view())[0])
        )

    async def _prune(self, run: Runner) -> PruneResult:
        return await run.call(lambda: maintenance.prune(self._store))

    def _delete(self) -> None:
        self._last_listing = None
        if self._root.is_dir():  # otherwise the index could not be rebuilt
            self._store.delete()

    async def _refresh(self, run: Runner, on_progress: ProgressCallback | None, *, rebuild: bool) -> RefreshResult:
        """Refresh the files of the index, then embed their texts."""
        refuse_places("an index")
        check_callback(on_progress)
        if rebuild:
            await run.call(self._delete)
        last, start = Progress(files=0, total=0, chunks=0), time.monotonic()

        def report(now: Progress) -> None:
            nonlocal last
            last = now.model_copy(update={"elapsed": time.monotonic() - start})
            if on_progress is not None:
                on_progress(last)

        hybrid = self._hybrid
        if hybrid is None:
            return await self._refresh_files(run, report)

        def report_embedded(embedded: int, total: int) -> None:
            report(last.model_copy(update={"embedded": embedded, "to_embed": total}))

        done = await self._refresh_files(run, report)
        begun = time.monotonic()
        outcome = await run.wait(lambda: hybrid.embed(report_embedded, patient=True))
        seconds = done.seconds + time.monotonic() - begun
        return done.model_copy(update={"embedded": outcome.embedded, "failed": outcome.failed, "seconds": seconds})

    async def _refresh_files(self, run: Runner, progress: ProgressCallback | None) -> RefreshResult:
        """List the files with rg, and index the changed files."""
        begun = time.monotonic()

        def write() -> RefreshResult | None:
            try:
                done = self._store.run(
                    lambda database: refresh(
                        database, self._store, view, paths, self._splitter, generation, progress, insist=insist
                    )
                )
            except BaseException:  # after a cancellation, the caller may never close this index
                self._chunker.close()
                raise
            # Another branch may have been checked out during the refresh.
            return done if insist or self._current_view() == view else None

        for attempt in range(_REFRESH_ATTEMPTS):
            listed_at = time.monotonic()
            view, generation = await run.call(self._state_before)
            listing = await run.collect(Step(self._listing, lambda: ListingCollector(PathDecoder()), None))
            if listing.end is not None:
                listing.end.warn()
            self._unlisted = listing.errors
            paths = self._without_own(listing.every())
            insist = attempt == _REFRESH_ATTEMPTS - 1
            done = await run.call(write)
            if done is not None:
                self._last_listing = view, listed_at
                return done.model_copy(update={"seconds": time.monotonic() - begun})
        raise AssertionError("unreachable: the last attempt returns a result")

    def _state_before(self) -> tuple[View, int | None]:
        """Return the view and its generation, as they are before the files are listed."""
        view = self._current_view()
        if not self._root.is_dir():
            if self._root.exists():
                raise NotADirectoryError(errno.ENOTDIR, "root is not a directory", str(self._root))
            raise FileNotFoundError(errno.ENOENT, "root does not exist", str(self._root))
        return view, self._store.run(lambda database: generation_of(database, view))

    def _without_own(self, paths: Sequence[str]) -> Sequence[str]:
        """Return the paths without the files of the index itself, which may be inside of the root."""
        own = own_files(self._store.folder, self._root)
        return paths if own is None else [path for path in paths if own.fullmatch(path) is None]

    async def _search_chunks(
        self,
        run: Runner,
        text: str,
        limit: int | None,
        *,
        refresh: bool,
        max_age: float | None = None,
        hybrid_weight: float | None = None,
        patience: float | None = None,
        shown: Callable[[str], bool] | None = None,
    ) -> IndexResults:
        """Search like `Index.search()`, for files whose path `shown` accepts."""
        refuse_places("an index")
        query, limit, max_age = parse_query(text), check_limit(limit), check_max_age(max_age)
        check_weight(hybrid_weight)
        if hybrid_weight and self._hybrid is None:
            raise weight_without_embedder_error()
        if limit == 0:
            return IndexResults([])
        if not refresh and not await run.call(self._is_searchable):
            raise self._missing_error()
        vectors: VectorSearch | None = None

        def rank() -> IndexResults | None:
            view = self._current_view()
            evidence = self._evidence(query)
            return self._store.run(
                lambda database: search(
                    database, self._store.postings, view, query, limit, vectors, shown, self._depth, evidence
                )
            )

        for attempt in range(_REFRESH_ATTEMPTS):
            if refresh:
                await self._refresh_if_stale(run, max_age, retry=attempt > 0)
            if self._hybrid is not None:
                weight = self._hybrid.weight if hybrid_weight is None else hybrid_weight
                embed = refresh and weight != 0
                vectors = await self._vectors(run, self._hybrid, text, weight, vectors, patience, embed=embed)
            found = await run.call(rank)
            # Files that have changed since the refresh are missing in the results, so refresh and search again. A file
            # that changes during each attempt stays missing.
            if found is not None and not (found.changed and refresh and attempt < _REFRESH_ATTEMPTS - 1):
                return found
            if not refresh:
                break
        raise self._missing_error()

    async def _vectors(
        self,
        run: Runner,
        hybrid: HybridSearch,
        text: str,
        weight: float | None,
        known: VectorSearch | None,
        patience: float | None,
        *,
        embed: bool,
    ) -> VectorSearch:
        """Embed a query; return a function that searches with it, or the reason why embeddings are left out."""

        async def ask() -> VectorSearch:
            if embed:
                await hybrid.embed(None, patient=False)
            return known or await hybrid.vectors_for(text, weight)

        if patience is None:
            return await run.wait(ask)
        try:
            return await run.wait(ask, seconds=patience)
        except TimeoutError:
            return hybrid.give_up(patience, weight)

    async def _refresh_if_stale(self, run: Runner, max_age: float | None, *, retry: bool = False) -> None:
        """Refresh the index, unless this object listed the files of the current branch less than `max_age` ago."""
        last = self._last_listing
        is_recent = max_age is not None and last is not None and time.monotonic() - last[1] < max_age
        if retry or not is_recent or last is None or await run.call(self._current_view) != last[0]:
            await self._refresh_files(run, None)

    def _grep_request(
        self,
        pattern: str | Sequence[str],
        limit: int | None,
        max_files: int | None,
        offset: int,
        timeout: float | None,
        options: SearchOptions,
        *,
        explain: bool,
    ) -> GrepRequest:
        refuse_places("an index", options)
        merged: SearchOptions = {**self._file_options, **options}
        return grep_request(
            pattern,
            self._root,
            (),
            limit,
            max_files,
            offset,
            timeout,
            merged,
            explain=explain,
            arguments=_GREP_ARGUMENTS,
        )

    async def _grep(self, run: Runner, request: GrepRequest, *, refresh: bool, max_age: float | None) -> GrepResult:
        """Search only the files that may match (candidates)."""
        refuse_places("an index")
        chosen = {name: value for name, value in request.options.items() if name in FileOptions.__annotations__}
        listing = files_query(self._root, (), cast("FileOptions", chosen))
        if choosing_flags(listing) != choosing_flags(self._listing):
            return await run_grep(run, request)
        max_age = check_max_age(max_age)
        required = required_literals(request.query.patterns, request.options)
        candidates = await self._candidates(run, required, max_age, refresh=refresh)
        return await run_grep(run, request.within(candidates))

    async def _candidates(
        self, run: Runner, required: Required | None, max_age: float | None, *, refresh: bool
    ) -> Candidates:
        """Return the files that may have the required literals (texts that every match contains)."""
        if not refresh and not await run.call(self._is_searchable):
            raise self._missing_error()

        def find() -> FoundFiles | None:
            view = self._current_view()
            found = self._trigrams.find(view, required)
            # If the files were not listed for this call, some may be gone, or replaced by a link, pipe or directory.
            return found if found is None or (refresh and max_age is None) else found.without_replaced(view)

        for attempt in range(_REFRESH_ATTEMPTS):
            if refresh:
                await self._refresh_if_stale(run, max_age, retry=attempt > 0)
            found = await run.call(find)
            if found is not None:
                own = own_files(self._store.folder, self._root)
                follow = bool(self._file_options.get("follow"))
                iglobs = values_of(self._file_options, "iglob")
                return Candidates(found.total, found.named, found.unsure, self._unlisted, own, follow, iglobs)
            if not refresh:
                break
        raise self._missing_error()

    def _is_searchable(self) -> bool:
        """Return True if there is an index of the current branch, with these options, version and chunker."""
        view, versions = self._current_view(), self._store.versions
        return bool(
            self._store.run_if_current(
                lambda database: versions_of(database) == versions and number_of(database, view) is not None
            )
        )

    def _missing_error(self) -> RipwrapError:
        root, way = shown(str(self._root)), Hint(kind="call", target="refresh")
        none = f"there is no index of {root} yet for its current branch, these options and this chunker; "
        return RipwrapError(HintedText(none, way, " makes it"))

    def _evidence(self, _query: WordQuery) -> Mapping[str, float]:
        """Return the paths that commits changed which are similar to a query; the tools of a workspace read commits."""
        return NO_EVIDENCE

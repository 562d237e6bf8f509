"""What an index does, step by step, for both colours: `Index` and its blocking twin carry it out."""

import errno
import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, Unpack

import anyio
from anyio.lowlevel import RunVar

from ripwrap._ranking.chunks import chunks_of as windows_of
from ripwrap._ranking.tokens import TOKENIZE, Query, understood
from ripwrap._rg.argv import files_command
from ripwrap._rg.collect import Ask, Plan, Step, Work
from ripwrap._rg.decoder import PathDecoder
from ripwrap._rg.gather import Gathered
from ripwrap._text import shown
from ripwrap.binary import cache
from ripwrap.binary.resolver import Rg
from ripwrap.errors import RipwrapError
from ripwrap.index import health
from ripwrap.index.apart import Chunker as SyntaxChunker
from ripwrap.index.database import reading
from ripwrap.index.embed import Embedder
from ripwrap.index.models import Collected, IndexHealth, IndexStatus, Progress, Refreshed
from ripwrap.index.query import Vectors, search
from ripwrap.index.refresh import Chunker, refresh
from ripwrap.index.rows import View, generation_of, number_of
from ripwrap.index.semantic import Outcome, Semantic
from ripwrap.index.store import FOLDER, Store, own_files
from ripwrap.index.syntax import available
from ripwrap.index.syntax import chunker as syntax_version
from ripwrap.index.views import key_of, view_of
from ripwrap.options import FileOptions, StrPath, check_limit
from ripwrap.results import RankedChunk

if TYPE_CHECKING:
    from sqlite3 import Connection

LIMIT = 10
WINDOWS = Chunker("windows 1", lambda _, text: windows_of(text))
"""Windows of lines."""

_TOKENIZER = f"{TOKENIZE} 2"
"""What text is made into words by; the number is that of how identifiers are split."""

_NUMBERS = itertools.count()
_ATTEMPTS = 3  # To refresh while others do, too.
_EVERY = 2**62
_HOW = ("--sort=", "--sortr=", "--threads=")  # say in which order and how fast, and not which files

Location: TypeAlias = Literal["project"] | StrPath | None
Cut: TypeAlias = Literal["auto", "syntax", "windows"]
Report: TypeAlias = Callable[[Progress], object]

T = TypeVar("T")


class Plans:
    """An index of a folder's files, whose methods are plans."""

    def __init__(
        self,
        root: StrPath = ".",
        *,
        location: Location = None,
        chunker: Cut = "auto",
        embedder: str | Embedder | None = None,
        hybrid_weight: float | None = None,
        rg: Rg = None,
        **options: Unpack[FileOptions],
    ) -> None:
        """Say what is to be indexed; nothing is read or made yet.

        Args:
            root: The folder.
            location: The folder that has the index: `None` is one below the user's cache, the same for all worktrees of
                a repository; `"project"` is `.ripwrap` in `root`, which git and rg ignore; or a path.
            chunker: What cuts files into chunks: `"syntax"` at their definitions, which needs the extra `syntax`, in a
                process of its own, because hostile source may make a parser crash; `"windows"` into lines; `"auto"` at
                definitions if that extra is installed. An index that was made by another one is cut anew.
            embedder: What makes vectors: `"wordllama"` on this machine, without a network; `"provider:model"`, as
                `"openai:text-embedding-3-small"`, which is then sent the text of every chunk and query; `"auto"` for
                the first provider that the environment, or an Ollama on this machine, has; or an `Embedder`. `None`
                finds by words alone. Needs the extra `vectors`.
            hybrid_weight: What vectors say of what words and they say, from 0 to 1; `None` is .3, and .2 for a query
                that is nothing but a name.
            rg: Which rg to run: a path, or a bare name to find in PATH; `None` finds one.
            **options: rg's flags, which say what files there are; see `FileOptions`. With an embedder, hidden files
                (such as `.env`) and links are left out, unless `hidden=True` and `follow=True` are given.

        Raises:
            pydantic.ValidationError: An option is unknown or ill-typed.
            ValueError: A NUL is in a path or option, `location` is empty, `chunker` is none of these, or
                `hybrid_weight` is no such number.
            RipwrapError: The extra `syntax` was asked for and is not installed.
            EmbeddingError: The embedder is unknown, or its package or key is missing.
        """
        if hybrid_weight is not None and not 0 <= hybrid_weight <= 1:
            raise ValueError(f"hybrid_weight should be from 0 to 1, not {hybrid_weight}")
        if embedder is not None:  # what may leave the machine: no secrets in hidden files, nothing from elsewhere
            options = {"hidden": False, "follow": False, **options}
        self._command = files_command(os.path.realpath(root), (), options)
        self._root = Path(self._command.cwd)
        self._rg = rg
        self._turn: RunVar[anyio.Lock] = RunVar(f"ripwrap_index_{next(_NUMBERS)}")
        self._chunker = _chunker(chunker)
        self._options = json.dumps([one for one in self._command.arguments if not one.startswith(_HOW)])
        versions = {"chunker": self._chunker.version, "tokenizer": _TOKENIZER}
        project = location == "project"
        self._store = Store(
            _folder(self._root, location), versions, ignored=project, named=location is not None and not project
        )
        self._semantic: Semantic | None = None
        if embedder is not None:
            from ripwrap.index.providers import embedder as chosen  # only then: it loads an HTTP client

            self._semantic = Semantic(self._store, self._view, chosen(embedder), hybrid_weight)
        elif hybrid_weight is not None:
            raise ValueError("hybrid_weight says something with an embedder alone; pass embedder=")

    @property
    def root(self) -> Path:
        """The folder that is indexed, as a real path."""
        return self._root

    @property
    def location(self) -> Path:
        """The folder that has the index."""
        return self._store.folder

    def _view(self) -> View:
        return View(str(self._root), view_of(self._root), self._options)

    def _close(self) -> None:
        self._store.close()  # waits for who uses it, and the chunker with it
        self._chunker.close()

    def _lock(self) -> anyio.Lock:
        """What a task of this event loop holds while it uses the index."""
        turn = self._turn.get(None)
        if turn is None:
            turn = anyio.Lock()
            self._turn.set(turn)
        return turn

    def _looked(self, call: Callable[[], T]) -> Plan[T]:
        told: T = yield Work(call)
        return told

    def _told(self) -> Plan[IndexStatus]:
        embedder = None if self._semantic is None else self._semantic.embedder
        return self._looked(lambda: health.status(self._store, self._view(), embedder))

    def _checked(self) -> Plan[IndexHealth]:
        return self._looked(lambda: health.health(self._store)[0])

    def _collected(self) -> Plan[Collected]:
        return self._looked(lambda: health.collect(self._store))

    def _anew(self, plan: Plan[T]) -> Plan[T]:
        """A plan that begins without anything that there was."""
        yield Work(self._throw_away)
        return (yield from plan)

    def _throw_away(self) -> None:
        if self._root.is_dir():  # if not, nothing could be made
            self._store.throw_away()

    def _embedded(self, progress: Report | None) -> Plan[Refreshed]:
        """A refresh with all that belongs to it."""
        if self._semantic is None:
            return (yield from self._refreshed(progress))
        last = Progress(files=0, total=0, chunks=0)

        def heard(told: Progress) -> None:
            nonlocal last
            last = told
            if progress is not None:
                progress(told)

        def tell(embedded: int, total: int) -> None:
            heard(last.model_copy(update={"embedded": embedded, "to_embed": total}))

        done = yield from self._refreshed(heard)
        begun = time.monotonic()
        outcome: Outcome = yield Ask(partial(self._semantic.embed, tell, patient=True))
        seconds = done.seconds + time.monotonic() - begun
        return done.model_copy(update={"embedded": outcome.embedded, "failed": outcome.failed, "seconds": seconds})

    def _refreshed(self, progress: Report | None) -> Plan[Refreshed]:
        for attempt in range(_ATTEMPTS):
            view, generation = yield Work(self._begin)
            listing: Gathered[str] = yield Step(self._command, lambda: Gathered(PathDecoder(), _EVERY), None)
            if listing.end is not None:
                listing.end.warn()
            paths = self._without_own(listing.every())
            insist = attempt == _ATTEMPTS - 1
            done = yield Work(partial(self._refresh, view, paths, generation, progress, insist=insist))
            if done is not None:
                result: Refreshed = done
                return result
        raise AssertionError("the last attempt insists")

    def _begin(self) -> tuple[View, int | None]:
        view = self._view()
        if not self._root.is_dir():
            if self._root.exists():
                raise NotADirectoryError(errno.ENOTDIR, "root is not a directory", str(self._root))
            return view, None  # rg's turn says what is wrong
        return view, self._store.run(lambda database: generation_of(database, view))

    def _refresh(
        self, view: View, paths: Sequence[str], generation: int | None, progress: Report | None, *, insist: bool
    ) -> Refreshed | None:
        try:
            done = self._store.run(
                lambda database: refresh(database, view, paths, self._chunker, generation, progress, insist=insist)
            )
        except BaseException:  # nobody waits any more, perhaps, and may never close this
            self._chunker.close()
            raise
        # A branch may have been switched to meanwhile.
        return done if insist or self._view() == view else None

    def _without_own(self, paths: Sequence[str]) -> Sequence[str]:
        """Paths but those of the index itself, which may share its folder with others."""
        own = own_files(self._store.folder, self._root)
        return paths if own is None else [path for path in paths if own.fullmatch(path) is None]

    def _searched(self, text: str, limit: int | None, *, first: bool) -> Plan[list[RankedChunk]]:
        query, limit = understood(text), check_limit(limit)
        if limit == 0:
            return []
        vectors: Vectors | None = None
        for _ in range(_ATTEMPTS):
            if first:
                yield from self._refreshed(None)
            if self._semantic is not None:
                if first:
                    yield Ask(partial(self._semantic.embed, None, patient=False))
                vectors = vectors or (yield Ask(partial(self._semantic.vectors_for, text)))
            found = yield Work(partial(self._found, query, limit, vectors))
            if found is not None:
                places: list[RankedChunk] = found
                return places
            if not first:
                break
        raise RipwrapError(
            f"there is no index of {shown(str(self._root))} yet, or not of its current branch; refresh() makes it"
        )

    def _found(self, query: Query, limit: int | None, vectors: Vectors | None) -> list[RankedChunk] | None:
        view = self._view()

        def find(database: "Connection") -> list[RankedChunk] | None:
            with reading(database):
                number = number_of(database, view)
                return None if number is None else search(database, number, query, limit, vectors)

        return self._store.run(find)


def _chunker(wanted: Cut) -> Chunker:
    """What cuts files into chunks.

    Raises:
        ValueError: There is no such chunker.
        RipwrapError: What it needs is not installed.
    """
    if wanted not in ("auto", "syntax", "windows"):
        raise ValueError(f"chunker should be 'auto', 'syntax' or 'windows', not {wanted!r}")
    if wanted == "windows" or not available():
        if wanted == "syntax":
            needed = "tree-sitter 0.26.1 or later and semble-grammars"
            raise RipwrapError(f"chunker='syntax' needs {needed}: pip install \"ripwrap[syntax]\"")
        return WINDOWS
    apart = SyntaxChunker()
    return Chunker(syntax_version(), apart.chunks_of, apart.close)


def _folder(root: Path, location: Location) -> Path:
    """The folder of an index.

    Raises:
        RipwrapError: The user's cache cannot be trusted.
    """
    if location == "project":
        return root / FOLDER
    if location is not None and not os.fspath(location):
        raise ValueError("location should name a folder, not ''")
    if location is not None:
        return Path(os.path.realpath(location))
    folder = cache.folder()
    if reason := cache.distrust(folder):
        raise RipwrapError(f"an index cannot be kept in {shown(str(folder))}: {reason}; pass location=")
    name = hashlib.blake2b(os.fsencode(key_of(root)), digest_size=16).hexdigest()
    return folder / "index" / name

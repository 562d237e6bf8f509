"""Get the status of an index, check it for damage, and remove unused content (prune it)."""

import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Literal, TypeAlias

from ripwrap._text import as_utf8, shown
from ripwrap.errors import Hint, HintedText
from ripwrap.index.file_state import is_gone
from ripwrap.index.models import CheckResult, EmbedderInfo, IndexedModel, IndexStatus, IndexView, PruneResult
from ripwrap.index.storage.database import (
    SCHEMA_VERSION,
    DamageError,
    check,
    check_error,
    checkpoint,
    decode_text,
    is_damage,
    own_text,
    to_integer,
    versions_of,
    write_transaction,
)
from ripwrap.index.storage.engine import RebuildError
from ripwrap.index.storage.store import Store
from ripwrap.index.storage.tables import WITHOUT_VECTOR, View, model_of, number_of, remove_unused, sent_to
from ripwrap.index.trigrams import Trigrams

MIN_FREE_BYTES = 1_000_000  # the file is compacted if this many bytes, and at least a quarter of the file, are free
_MAX_NAMES = 10  # maximum number of views that a message names
_UNUSED_BLOBS = "SELECT id FROM blob WHERE id NOT IN (SELECT blob FROM tree WHERE blob IS NOT NULL) ORDER BY id"

Remedy: TypeAlias = Literal["rebuild", "refresh", "prune", ""]
"""Method of `Index` that fixes an index: `refresh(rebuild=True)`, `refresh()` or `prune()`; empty if none does."""


def get_status(store: Store, view: View, embedder: EmbedderInfo | None) -> IndexStatus:
    """Return the status of an index. If the index cannot be used, the `messages` of the status give the reason."""
    none = _empty_status(store, view, embedder)
    try:
        return store.read_only(lambda database: _status(database, store, view, embedder)) or none
    except sqlite3.Error as error:
        return none.model_copy(update={"outdated": is_damage(error), "messages": (_why_unreadable(error),)})
    except DamageError as error:
        return none.model_copy(update={"outdated": True, "messages": (_damaged(error),)})


def _status(database: Connection, store: Store, view: View, embedder: EmbedderInfo | None) -> IndexStatus:
    versions = versions_of(database)
    none = _empty_status(store, view, embedder)
    if why := store.why_untrusted(database, versions):
        return none.model_copy(update={"outdated": True, "messages": (_untrusted(why),)})
    number = number_of(database, view)
    changed = database.execute("SELECT changed FROM view WHERE id = ?", (number,)).fetchone()
    files, chunks = database.execute(
        "SELECT count(DISTINCT tree.path), count(chunk.id) FROM tree JOIN chunk ON chunk.blob = tree.blob"
        " WHERE tree.view = ?",
        (number,),
    ).fetchone()
    empty = database.execute(
        "SELECT count(*) FROM tree WHERE view = ? AND blob IS NOT NULL AND blob NOT IN (SELECT blob FROM chunk)",
        (number,),
    ).fetchone()[0]
    about: dict[str, Any] = {
        "built": changed is not None,
        "outdated": versions != store.versions,
        "files": files + empty,
        "chunks": chunks,
        "chunker": versions.get("chunker", ""),
        "views": _views(database, view),
        "models": _models(database),
        "messages": tuple(_why_outdated(store, versions)),
        "changed_at": None if changed is None else _time_of(changed[0]),
    }
    if embedder is not None:
        known = model_of(database, embedder.name).dimension
        dimension = embedder.dimension if known is None else known
        count = f"SELECT count(DISTINCT chunk.digest) {WITHOUT_VECTOR}"
        missing = database.execute(count, (number, embedder.name, 2 * (dimension or 0))).fetchone()[0]
        sent = sent_to(database, embedder.name).plus(embedder.sent)
        about |= {
            "dimension": dimension,
            "lacking": missing,
            "sent_texts": sent.texts,
            "sent_characters": sent.characters,
        }
    return none.model_copy(update=about)


def _views(database: Connection, current: View) -> tuple[IndexView, ...]:
    rows = database.execute(
        "SELECT root, options, name, changed, (SELECT count(*) FROM tree WHERE view = view.id),"
        " (SELECT count(chunk.id) FROM tree JOIN chunk ON chunk.blob = tree.blob WHERE tree.view = view.id)"
        " FROM view ORDER BY root, name, options"
    )
    return tuple(
        IndexView(
            name=as_utf8(decode_text(name)),
            root=decode_text(root),
            options=own_text(options),
            files=files,
            chunks=chunks,
            changed_at=_time_of(changed),
            current=(root, options, name) == current.key,
            gone=is_gone(Path(decode_text(root)), decode_text(name)),
        )
        for root, options, name, changed, files, chunks in rows
    )


def _models(database: Connection) -> tuple[IndexedModel, ...]:
    rows = database.execute(
        "SELECT name, dimension, (SELECT count(*) FROM vec WHERE vec.model = model.name) FROM model ORDER BY name"
    )
    return tuple(
        IndexedModel(name=own_text(name), dimension=to_integer(dimension), vectors=vectors)
        for name, dimension, vectors in rows
    )


def _time_of(nanoseconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(to_integer(nanoseconds) / 1e9, UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise DamageError("the time of a change is impossible") from error


def _why_outdated(store: Store, versions: Mapping[str, str]) -> Iterator[HintedText]:
    """Yield the reasons why the next refresh rebuilds an index; yield nothing if the index is kept."""
    made, wanted = versions.get("chunker", ""), store.versions["chunker"]
    if made != wanted:
        name = made.partition(" ")[0]
        other = name in ("syntax", "windows") and name != wanted.partition(" ")[0]
        keep = (". To keep the index, pass ", Hint("chunker", name)) if other else ""
        using = f"The index was made with the chunker '{made}', and the chunker is now '{wanted}'; the next "
        yield HintedText(using, _REFRESH, " rebuilds it", keep, ".")
    elif versions != store.versions:
        yield HintedText("The index was made by another version of ripwrap; the next ", _REFRESH, " rebuilds it.")


def _empty_status(store: Store, view: View, embedder: EmbedderInfo | None) -> IndexStatus:
    return IndexStatus(
        built=False,
        outdated=False,
        files=0,
        chunks=0,
        bytes=store.files.size(),
        view=as_utf8(view.name),
        views=(),
        models=(),
        location=str(store.folder),
        schema_version=SCHEMA_VERSION,
        chunker=store.versions["chunker"],
        model=None if embedder is None else embedder.name,
        dimension=None if embedder is None else embedder.dimension,
        lacking=0,
        changed_at=None,
        sent=() if embedder is None else (embedder.destination,),
        messages=(),
    )


def check_index(store: Store, view: View) -> tuple[CheckResult, Remedy]:
    """Check an index; return the result, and the method that fixes the index, such as `"rebuild"`. Change nothing.

    The method is `"refresh"` if nothing is wrong.
    """
    try:
        found = store.read_only(lambda database: _check_database(database, store, view))
    except sqlite3.Error as error:
        return _unread(f"{error}", _why_unreadable(error)), "rebuild" if is_damage(error) else "refresh"
    except DamageError as error:
        return _unread(f"{error}", _damaged(error)), "rebuild"
    return found or (_unread("ok", NO_INDEX, ok=True), "refresh")


def _why_unreadable(error: "sqlite3.Error") -> HintedText:
    if is_damage(error):
        return _damaged(error)
    return HintedText(f"The index cannot be read: {error}. If the error persists, ", _REBUILD)


def _damaged(error: Exception) -> HintedText:
    return HintedText(f"The index is damaged ({error}); ", _REBUILD)


def _untrusted(why: str) -> HintedText:
    return HintedText(f"The index cannot be used, because {why}; ", _REFRESH, " rebuilds it.")


def _unread(checked: str, message: str, *, ok: bool = False) -> CheckResult:
    """Return the result for an index whose content was not read."""
    return CheckResult(ok=ok, checked=checked, files=0, blobs=0, chunks=0, indexed=0, orphans=0, messages=(message,))


def _check_database(database: Connection, store: Store, view: View) -> tuple[CheckResult, Remedy]:
    checked = "\n".join(row for (row,) in database.execute("PRAGMA integrity_check(5)"))
    if checked != "ok":
        return _unread(checked, HintedText("The database file of the index is damaged; ", _REBUILD)), "rebuild"
    versions = versions_of(database)
    if why := store.why_untrusted(database, versions):
        return _unread(checked, _untrusted(why)), "refresh"
    files, blobs, chunks, orphans = (
        int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - constants
        for table in ("tree", "blob", "chunk", f"({_UNUSED_BLOBS})")
    )
    indexed, failure = store.postings.check(database)
    if failure is None and indexed != chunks:
        raise DamageError("full-text search and the database have different numbers of chunks")
    unsearchable: list[str] = []
    if isinstance(failure, RebuildError):
        again = f"The index is damaged: {failure}; "
        unsearchable.append(HintedText(again, _REFRESH, " rebuilds it and keeps the embeddings."))
    elif failure is not None:
        unsearchable.append(HintedText("The index failed the check: ", failure.args[0], "."))
    wrong_size = [_WRONG_SIZE_MESSAGE] if database.execute(f"SELECT count(*) {_WRONG_SIZE}").fetchone()[0] else []
    views = _views(database, view)
    notes = list(_why_outdated(store, versions))
    if gone := [f"{one.name} in {shown(one.root)}" for one in views if one.gone]:
        more = f" and {len(gone) - _MAX_NAMES} more" if len(gone) > _MAX_NAMES else ""
        names = ", ".join(gone[:_MAX_NAMES]) + more
        notes.append(HintedText(f"Branches or directories are gone: {names}; ", _PRUNE, " removes their content."))
    if orphans:
        notes.append(HintedText(f"File contents that are no longer used: {orphans}; ", _PRUNE, " removes them."))
    problems = (*unsearchable, *wrong_size)
    result = CheckResult(
        ok=not problems,
        checked=checked,
        files=files,
        blobs=blobs,
        chunks=chunks,
        indexed=indexed,
        orphans=orphans,
        chunker=versions.get("chunker", ""),
        views=views,
        models=_models(database),
        messages=(*problems, *notes),
    )
    if failure is not None and not isinstance(failure, RebuildError):
        return result, ""
    return result, "prune" if wrong_size else "refresh"


_WRONG_SIZE = (
    "FROM vec WHERE NOT EXISTS (SELECT 1 FROM model WHERE model.name = vec.model AND 2 * dimension = length(vec.v))"
)
_PRUNE = Hint(kind="call", target="prune")
_REFRESH = Hint(kind="call", target="refresh")
NO_INDEX = HintedText("There is no index yet; ", _REFRESH, " makes it.")
_WRONG_SIZE_MESSAGE = HintedText(
    "Some embeddings in the index have the wrong size for their model, and searches ignore them. ",
    _PRUNE,
    " removes them, and the next ",
    _REFRESH,
    " with that model embeds the texts again.",
)
_REBUILD = HintedText(
    "rebuild the index with ",
    Hint("rebuild", True, kind="call", target="refresh"),
    ", which also discards the embeddings.",
)


def prune(store: Store) -> PruneResult:
    """Remove unused content from an index, such as the files of deleted branches; if there is no index, do nothing."""
    done = store.run_if_current(lambda database: _prune(database, store, vectors=True))
    return done or PruneResult(views=(), blobs=0, chunks=0, vectors=0, bytes=0)


def prune_views(store: Store) -> tuple[str, ...]:
    """Remove unused content from an index, such as the files of deleted branches, but keep all embeddings.

    Nothing is written if there is nothing to remove, or if the index is read-only.
    """

    def prune_if_any(database: Connection) -> tuple[str, ...]:
        unused = database.execute(f"{_UNUSED_BLOBS} LIMIT 1").fetchone()
        if store.is_read_only or not (unused or _gone_views(database)):
            return ()
        return _prune(database, store, vectors=False).views

    return store.run_if_current(prune_if_any) or ()


def _gone_views(database: Connection) -> list[tuple[int, str]]:
    """Return the id and name of each view whose branch or directory is gone."""
    return [
        (row, as_utf8(decode_text(name)))
        for row, name, root in database.execute("SELECT id, name, root FROM view ORDER BY root, name").fetchall()
        if is_gone(Path(decode_text(root)), decode_text(name))
    ]


def _prune(database: Connection, store: Store, *, vectors: bool) -> PruneResult:
    before = store.files.size()
    with write_transaction(database):
        gone = _gone_views(database)
        for row, _ in gone:
            database.execute("DELETE FROM tree WHERE view = ?", (row,))
            database.execute("DELETE FROM view WHERE id = ?", (row,))
        blobs = [blob for (blob,) in database.execute(_UNUSED_BLOBS).fetchall()]
        chunks = 0
        for blob in blobs:
            check()
            chunks += remove_unused(database, blob)
        removed = 0
        if vectors:  # of texts that no chunk has, and of a wrong size
            removed = database.execute("DELETE FROM vec WHERE digest NOT IN (SELECT digest FROM chunk)").rowcount
            removed += database.execute(f"DELETE {_WRONG_SIZE}").rowcount
        if removed:
            database.execute("DELETE FROM model WHERE name NOT IN (SELECT model FROM vec)")
            database.execute("UPDATE model SET generation = random() & 0x3fffffffffffffff")
        views = {row for (row,) in database.execute("SELECT id FROM view")}
    store.files.remove_vectors(keep=views)
    store.postings.clean(database)
    Trigrams(store).prune(database)
    store.postings.remove_others(database)
    _compact(database)
    return PruneResult(
        views=tuple(name for _, name in gone),
        blobs=len(blobs),
        chunks=chunks,
        vectors=removed,
        bytes=max(before - store.files.size(), 0),
    )


def _compact(database: Connection) -> None:
    """Make the database file smaller if much of it is unused, unless another process is reading the file."""
    free, pages, page = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("freelist_count", "page_count", "page_size")
    )
    try:
        if free * page >= MIN_FREE_BYTES and free * 4 >= pages:
            database.execute("VACUUM")
        checkpoint(database)
    except sqlite3.OperationalError as error:
        check_error(error)

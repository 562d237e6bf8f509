"""What there is in an index, whether it is sound, and how what nobody needs any more is removed."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ripwrap._text import shown
from ripwrap.index.database import check, check_error, checkpoint, is_damage, restored, writing
from ripwrap.index.embed import Embedder, describe
from ripwrap.index.kept import LACKING, model_of
from ripwrap.index.models import Collected, IndexHealth, IndexStatus, IndexView
from ripwrap.index.rows import View, number_of, remove_unused
from ripwrap.index.schema import SCHEMA, versions_of
from ripwrap.index.store import Store
from ripwrap.index.views import is_gone

if TYPE_CHECKING:
    from sqlite3 import Connection

_WORTH_IT = 1_000_000  # Bytes that have to be free, and a quarter of all, for the file to be written anew.
_UNUSED = "SELECT id FROM blob WHERE id NOT IN (SELECT blob FROM tree WHERE blob IS NOT NULL) ORDER BY id"

Remedy: TypeAlias = Literal["anew", "refresh", "gc"]
"""What mends an index: `refresh(anew=True)`, a refresh, or `gc()`."""


def status(store: Store, view: View, embedder: Embedder | None) -> IndexStatus:
    """What there is; one that is damaged or of another version counts as none."""
    import sqlite3

    about = None
    with suppress(sqlite3.Error):
        about = store.look(lambda database: _status(database, store, view, embedder))
    return about or _nothing(store, view, embedder)


def _status(database: "Connection", store: Store, view: View, embedder: Embedder | None) -> IndexStatus | None:
    if versions_of(database) != store.versions:
        return None
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
    about = {
        "built": changed is not None,
        "files": files + empty,
        "chunks": chunks,
        "views": tuple(_views(database, number)),
        "changed_at": None if changed is None else datetime.fromtimestamp(changed[0] / 1e9, UTC),
    }
    if embedder is not None:
        known = model_of(database, embedder.name).dimension
        dimension = embedder.dimension if known is None else known
        count = f"SELECT count(DISTINCT chunk.digest) {LACKING}"
        lacking = database.execute(count, (number, embedder.name, 2 * (dimension or 0))).fetchone()[0]
        about |= {"dimension": dimension, "lacking": lacking}
    return _nothing(store, view, embedder).model_copy(update=about)


def _views(database: "Connection", current: int | None) -> list[IndexView]:
    rows = database.execute(
        "SELECT id, name, root, options, (SELECT count(*) FROM tree WHERE view = view.id) FROM view"
        " ORDER BY root, name, options"
    )
    return [
        IndexView(name=shown(restored(name)), root=restored(root), options=options, files=files, current=row == current)
        for row, name, root, options, files in rows
    ]


def _nothing(store: Store, view: View, embedder: Embedder | None) -> IndexStatus:
    return IndexStatus(
        built=False,
        files=0,
        chunks=0,
        bytes=store.size(),
        view=shown(view.name),
        views=(),
        location=str(store.folder),
        schema_version=SCHEMA,
        chunker=store.versions["chunker"],
        model=None if embedder is None else embedder.name,
        dimension=None if embedder is None else embedder.dimension,
        lacking=0,
        changed_at=None,
        sent=() if embedder is None else (str(describe(embedder)),),
    )


def health(store: Store) -> tuple[IndexHealth, Remedy]:
    """Whether it is sound, and what mends it; nothing is mended."""
    import sqlite3

    try:
        found = store.look(lambda database: _health(database, store))
    except sqlite3.Error as error:
        if is_damage(error):
            return _unsound(f"{error}", f"The index cannot be read: {error}; {_ANEW}"), "anew"
        return _unsound(f"{error}", f"The index cannot be read: {error}; if that lasts, {_ANEW}"), "refresh"
    if found is None:
        return _about("ok", (0, 0, 0, 0, 0), ("There is no index yet; refresh() makes it.",), ok=True), "refresh"
    return found


def _unsound(checked: str, message: str) -> IndexHealth:
    return _about(checked, (0, 0, 0, 0, 0), (message,), ok=False)


def _about(checked: str, counts: tuple[int, int, int, int, int], messages: tuple[str, ...], *, ok: bool) -> IndexHealth:
    files, blobs, chunks, indexed, orphans = counts
    return IndexHealth(
        ok=ok,
        checked=checked,
        files=files,
        blobs=blobs,
        chunks=chunks,
        indexed=indexed,
        orphans=orphans,
        messages=messages,
    )


def _health(database: "Connection", store: Store) -> tuple[IndexHealth, Remedy]:
    checked = "\n".join(row for (row,) in database.execute("PRAGMA quick_check(5)"))
    if checked != "ok":
        return _unsound(checked, f"The file is damaged; {_ANEW}"), "anew"
    versions = versions_of(database)
    if doubt := store.doubt(database, versions):
        return _unsound(checked, f"{doubt[0].upper()}{doubt[1:]}: refresh() makes it anew."), "refresh"
    counts = tuple(
        int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - names of ours
        for table in ("tree", "blob", "chunk", "fts_docsize", f"({_UNUSED})")
    )
    wrong = [said for statement, said in _RULES if database.execute(statement).fetchone()[0]]
    wrong += _searchable(database)
    missized = [_RESIZE] if database.execute(f"SELECT count(*) {_MISSIZED}").fetchone()[0] else []
    known = [
        f"It was made with {name} {versions.get(name)}, and {wanted} is wanted: the next refresh() makes it anew."
        for name, wanted in store.versions.items()
        if versions.get(name) != wanted
    ]
    if counts[4]:
        known.append(f"{counts[4]} contents are in no view; gc() removes them.")
    files, blobs, chunks, indexed, orphans = counts
    messages = (*wrong, *missized, *known)
    told = _about(checked, (files, blobs, chunks, indexed, orphans), messages, ok=not wrong and not missized)
    return told, "anew" if wrong else "gc" if missized else "refresh"


_MISSIZED = (
    "FROM vec WHERE NOT EXISTS (SELECT 1 FROM model WHERE model.name = vec.model AND 2 * dimension = length(vec.v))"
)
_RESIZE = (
    "Vectors are not of the size that their model's have; searches leave them out, gc() removes them, and the next"
    " refresh() with that model makes them anew."
)
_ANEW = "make it anew, with refresh(anew=True)."
_RULES = (
    (
        "SELECT count(*) FROM tree WHERE blob IS NOT NULL AND blob NOT IN (SELECT id FROM blob)",
        f"Files have no content: {_ANEW}",
    ),
    ("SELECT count(*) FROM chunk WHERE blob NOT IN (SELECT id FROM blob)", f"Chunks belong to no file: {_ANEW}"),
    (
        (
            "SELECT (SELECT count(*) FROM chunk WHERE id NOT IN (SELECT id FROM fts_docsize))"
            " + (SELECT count(*) FROM fts_docsize WHERE id NOT IN (SELECT id FROM chunk))"
        ),
        f"Full-text search has other chunks than there are: {_ANEW}",
    ),
    ("SELECT count(*) FROM tree WHERE view NOT IN (SELECT id FROM view)", f"Files belong to no view: {_ANEW}"),
)


def _searchable(database: "Connection") -> list[str]:
    """What FTS5 finds wrong with itself, where it can be asked."""
    import sqlite3

    database.execute("PRAGMA busy_timeout = 0")
    try:
        database.execute("INSERT INTO fts(fts) VALUES ('integrity-check')")
    except sqlite3.OperationalError as error:  # somebody writes now, or nobody can
        check_error(error)
        return []
    except sqlite3.DatabaseError as error:
        return [f"Full-text search is damaged ({error}): {_ANEW}"]
    return []


def collect(store: Store) -> Collected:
    """Remove the views that are gone, and what no view has; where there is no index, none is made."""
    done = store.tend(lambda database: _collect(database, store))
    return done or Collected(views=(), blobs=0, chunks=0, vectors=0, bytes=0)


def _collect(database: "Connection", store: Store) -> Collected:
    before = store.size()
    with writing(database):
        gone = [
            (row, shown(restored(name)))
            for row, name, root in database.execute("SELECT id, name, root FROM view ORDER BY root, name").fetchall()
            if is_gone(Path(restored(root)), restored(name))
        ]
        for row, _ in gone:
            database.execute("DELETE FROM tree WHERE view = ?", (row,))
            database.execute("DELETE FROM view WHERE id = ?", (row,))
        blobs = [blob for (blob,) in database.execute(_UNUSED).fetchall()]
        chunks = 0
        for blob in blobs:
            check()
            chunks += remove_unused(database, blob)
        vectors = database.execute("DELETE FROM vec WHERE digest NOT IN (SELECT digest FROM chunk)").rowcount
        vectors += database.execute(f"DELETE {_MISSIZED}").rowcount
        if vectors:
            database.execute("DELETE FROM model WHERE name NOT IN (SELECT model FROM vec)")
            database.execute("UPDATE model SET generation = random() & 0x3fffffffffffffff")
        views = {row for (row,) in database.execute("SELECT id FROM view")}
    store.remove_vectors(but=views)
    _compact(database)
    return Collected(
        views=tuple(name for _, name in gone),
        blobs=len(blobs),
        chunks=chunks,
        vectors=vectors,
        bytes=max(before - store.size(), 0),
    )


def _compact(database: "Connection") -> None:
    """Give back space where that is worth it, unless somebody reads now."""
    import sqlite3

    free, pages, page = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("freelist_count", "page_count", "page_size")
    )
    try:
        if free * page >= _WORTH_IT and free * 4 >= pages:
            database.execute("VACUUM")
        checkpoint(database)
    except sqlite3.OperationalError as error:
        check_error(error)

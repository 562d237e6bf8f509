"""Open and close the database of an index, and rebuild it if it is damaged.

The database is a SQLite file in WAL mode; full-text search is in files beside it (`postings.py`). A refresh is one
transaction: readers see the state before or after the refresh, even if the writing process is killed. One thread at a
time uses a connection; in async code, this is a worker thread. A damaged file, or a file whose tables have another
version, is deleted and rebuilt, with a log message. Files of other programs are never touched.
"""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from typing import TypeVar

from ripwrap._system.concurrency import ProcessLock, hold_lock, reached_limit
from ripwrap._text import shown
from ripwrap.errors import Hint, HintedText, RipwrapError
from ripwrap.index.storage.database import (
    BUSY,
    CANNOT_OPEN,
    FULL,
    IO_ERROR,
    IS_SENT,
    LOCKED,
    MARK_KEY,
    READONLY,
    SCHEMA_VERSION,
    DamageError,
    check,
    check_error,
    checkpoint,
    clear_content,
    code_of,
    connect,
    create_tables,
    expected_shape,
    is_damage,
    is_empty,
    mark_of,
    read_versions,
    shape_of,
    write_transaction,
)
from ripwrap.index.storage.engine import OTHER_LOCATION, RebuildError, limit_advice, location_error
from ripwrap.index.storage.files import IndexFiles, foreign_file_error, is_blank, known_mark, make_mark
from ripwrap.index.storage.postings import Postings

LOCK_PATIENCE = 30.0  # seconds to wait while another process opens or deletes the file

_LOGGER = logging.getLogger("ripwrap")

T = TypeVar("T")


class _StaleError(Exception):
    """Error for a database that must be deleted and rebuilt; the message gives the reason."""


class Store:
    """Database of an index. It is opened when it is first used, and any number of threads may use it."""

    def __init__(
        self, folder: Path, versions: Mapping[str, str], *, ignored: bool = False, named: bool = False
    ) -> None:
        """Set the directory; nothing is opened or created yet.

        Content that code with other `versions` made is rebuilt. With `ignored`, the directory is in the project, and
        the index is used only if this user made it, because a repository may come with an index. With `named`, the
        caller chose the directory, which may contain other files.
        """
        self.folder = folder
        self.files: IndexFiles = IndexFiles(folder, in_project=ignored, named=named)
        self.postings: Postings = Postings(folder)
        self.path: Path = self.files.database
        self.versions: dict[str, str] = {"schema": str(SCHEMA_VERSION), **versions}
        self._lock = threading.RLock()  # so that `close()` does not wait for a call that Ctrl-C has ended
        self._database: Connection | None = None
        self._identity: tuple[int, int, int] | None = None
        self._checked = False
        self._read_only = False
        self._warned_read_only = False

    @property
    def is_read_only(self) -> bool:
        """True if the open database cannot be written to."""
        return self._read_only

    def run(self, call: Callable[[Connection], T]) -> T:
        """Call `call` with the database, one call at a time; if the database is damaged, rebuild it and call again."""

        def call_prepared() -> T:
            database = self._connect()
            self._prepare(database)
            return call(database)

        return self._retry(call_prepared)

    def run_if_current(self, call: Callable[[Connection], T]) -> T | None:
        """Call `call` with the database if there is an index, even an index that another chunker made.

        An index that has other tables, or that cannot be trusted, is deleted, and counts as missing.
        """

        def call_if_made() -> T | None:
            self.files.check()
            if is_blank(self.path):
                return None
            database = self._connect()
            return call(database) if self._is_made(database, read_versions(database)) else None

        return self._retry(call_if_made)

    def _retry(self, call: Callable[[], T]) -> T:
        damage = ""
        with self._hold():
            for _ in range(3):
                try:
                    if damage:
                        self._clear(damage)
                        damage = ""
                    return call()
                except sqlite3.Error as error:
                    check_error(error)
                    if self._read_only or not is_damage(error):
                        self._make_room()
                        self._close()
                        raise self._translate(error) from error
                    self._discard(f"it is damaged ({error})")
                except (_StaleError, DamageError) as error:
                    self._check_writable(error)
                    self._discard(str(error) if isinstance(error, _StaleError) else f"it is damaged ({error})")
                except RebuildError as error:
                    self._check_writable(error)
                    damage = str(error)
                except RipwrapError:
                    self._make_room()
                    raise
                except (TypeError, ValueError, AttributeError, LookupError, OverflowError) as error:
                    # A damaged value may have any type. If SQLite finds no damage, the error has another cause.
                    if not (why := self._why_damaged()):
                        raise
                    self._check_writable(error)
                    self._discard(f"it is damaged ({why})")
        raise RipwrapError(f"the index {shown(str(self.path))} was damaged three times in a row; check the disk")

    def _make_room(self) -> None:
        """Give back the space that a failed write has taken, so that the index works again after a full disk.

        The log has the rows of the transaction. If full-text search was committed before the database failed, it has
        documents without contents.
        """
        if self._database is not None and not self._read_only:
            with suppress(sqlite3.Error, RipwrapError, RebuildError, DamageError):
                checkpoint(self._database)
                self.postings.clean(self._database)
                checkpoint(self._database)

    def _why_damaged(self) -> str:
        """Let SQLite check the open database; return the damage that it finds."""
        if self._database is None:
            return ""
        try:
            found = self._database.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.Error as error:
            return f"{error}"
        return "" if found == "ok" else f"{found}"

    def read_only(self, call: Callable[[Connection], T]) -> T | None:
        """Call `call` with the database as it is, on a new connection.

        This creates and rebuilds nothing and waits for no lock, so it can be called while a refresh is running.
        """
        if not self.path.exists():
            return None
        self.files.check()
        database = self._new_connection(make=False)
        try:
            versions = read_versions(database)
            if versions is None and not is_empty(database):
                raise foreign_file_error(self.path)
            if versions is None or (self.files.in_project and self.why_untrusted(database, versions)):
                return None
            return call(database)
        except sqlite3.Error as error:
            check_error(error)
            raise
        finally:
            database.close()

    def delete(self) -> None:
        """Delete the database; the next call makes a new one."""
        with self._hold():
            self._close()
            with self._hold_file():
                self.files.remove("the caller asked for it")

    def close(self) -> None:
        """Close the database; the next call opens it again."""
        with self._lock:
            self._close()

    def __del__(self) -> None:
        self._close()

    @contextmanager
    def _hold(self) -> Generator[None]:
        with hold_lock(self._lock, check):
            check()
            yield

    def _identify(self) -> tuple[int, int, int] | None:
        """Return a key that changes if another process replaces the database file, or if this process is forked."""
        try:
            state = os.stat(self.path)
        except OSError:
            return None
        return os.getpid(), state.st_dev, state.st_ino

    def _connect(self) -> Connection:
        if self._database is not None and self._identity != self._identify():
            self._close()
        if self._database is None:
            with self._hold_file():
                self._identity = self._identify()
                self._database = self._new_connection(make=True)
                self._identity = self._identify()
        return self._database

    def _new_connection(self, *, make: bool) -> Connection:
        """Open a connection; it is read-only if the file or its directory cannot be written to."""
        uri = self.path.absolute().as_uri()
        for mode in ("rwc" if make else "rw", "ro", "ro&immutable=1"):
            if make:
                self._read_only = mode != "rwc"
            try:
                database = connect(f"{uri}?mode={mode}", log=mode == "rwc")
            except sqlite3.Error as error:
                read_only = code_of(error) in (READONLY, CANNOT_OPEN) and mode != "ro&immutable=1"
                if not (read_only and self.path.exists()) or reached_limit():
                    raise
            else:
                if mode == "ro&immutable=1" and not self._warned_read_only:
                    self._warned_read_only = True
                    _LOGGER.warning(
                        "the index in %s is read-only; changes by other processes are not visible",
                        shown(str(self.folder)),
                    )
                return database
        raise AssertionError("unreachable: the last mode returns or raises")

    def _prepare(self, database: Connection) -> None:
        """Make missing tables, and delete content that other versions made."""
        versions = read_versions(database)
        if self._checked and versions == self.versions:
            return
        self._is_made(database, versions)
        if versions != self.versions:
            if self._read_only:
                raise _StaleError("it was made by another chunker or version of ripwrap")
            with self._making(database):
                self._fill(database)
        self._checked = True

    @contextmanager
    def _making(self, database: Connection) -> Generator[None]:
        """Hold the write transaction that makes a directory of full-text search; then remove all others.

        After an error, this removes the directory that was made.
        """
        try:
            with write_transaction(database):
                yield
        except BaseException:
            with suppress(sqlite3.Error):
                self.postings.remove_others(database)
            raise
        self.postings.remove_others(database)

    def _is_made(self, database: Connection, versions: dict[str, str] | None) -> bool:
        """Return True if the database has the tables of an index, and False if it is empty."""
        if versions is None:
            if not is_empty(database):
                raise foreign_file_error(self.path)
            return False
        if why := self.why_untrusted(database, versions):
            raise _StaleError(why)
        return True

    def _fill(self, database: Connection) -> None:
        """Make the tables, or delete content that other versions made, unless another process has just done so."""
        versions = read_versions(database)
        if versions is None:
            create_tables(database)
            self.files.remove_vectors()
            self.postings.reset(database)
            mark = make_mark(self.folder) if self.files.in_project else ""
        elif why := self.why_untrusted(database, versions):
            raise _StaleError(why)
        elif versions == self.versions:
            return
        else:
            _LOGGER.info("the index in %s is rebuilt: another chunker or version of ripwrap made it", self.folder)
            clear_content(database)
            self.postings.reset(database)
            mark = mark_of(database)
        database.execute(f"DELETE FROM meta WHERE NOT {IS_SENT}")  # noqa: S608 - a constant
        database.executemany("INSERT INTO meta VALUES (?, ?)", self.versions.items())
        if mark:
            database.execute("INSERT INTO meta VALUES (?, ?)", (MARK_KEY, mark))

    def why_untrusted(self, database: Connection, versions: dict[str, str] | None) -> str:
        """Return the reason why the database must not be used, or an empty string.

        Of `versions`, only the version of the tables is compared, not the versions of the content.
        """
        found = (versions or {}).get("schema")
        if found is not None and found != str(SCHEMA_VERSION):
            return f"its tables have version {found} instead of {SCHEMA_VERSION}"
        if shape_of(database) != expected_shape():
            return "its tables differ from the tables of an index, or it has triggers or views"
        if self.files.in_project:
            mark = mark_of(database)  # read it before the mark in the cache, which is written first
            if not mark or mark != known_mark(self.folder):
                return "this user's cache has no proof (ownership mark) that this user made it"
        return ""

    @contextmanager
    def _hold_file(self) -> Generator[None]:
        """Hold the lock that a process needs to open or delete the database file."""
        self.files.make_folder()
        check()
        deadline = time.monotonic() + LOCK_PATIENCE
        path = self.files.lock

        def check_wait() -> None:
            check()
            if time.monotonic() > deadline:
                raise RipwrapError(
                    f"another process has held the lock {path} for over {LOCK_PATIENCE:.0f} seconds; try again"
                )

        with hold_lock(ProcessLock(path, if_writable=True), check_wait):
            yield

    def _check_writable(self, why: Exception) -> None:
        """Check that the index can be rebuilt."""
        if self._read_only:
            self._close()
            raise location_error(
                f"the index {shown(str(self.path))} must be rebuilt, because {why}, but it cannot be written; "
            ) from why

    def _clear(self, why: str) -> None:
        """Delete all content except embeddings, unless another process has already rebuilt the index."""
        if self._database is None or self._identity != self._identify():
            self._close()
            return
        damaged = self.postings.opened
        with self._making(self._database):
            if self.postings.is_replaced(self._database, damaged):
                return
            _LOGGER.warning("the index in %s is rebuilt: %s", shown(str(self.folder)), why, extra={"note": True})
            clear_content(self._database)
            self.postings.reset(self._database)

    def _discard(self, why: str) -> None:
        """Delete the database, so that it is rebuilt, unless another process has already replaced it."""
        seen = self._identity
        self._close()
        with self._hold_file():
            if seen is not None and seen != self._identify():
                return
            _LOGGER.warning("the index in %s is rebuilt: %s", shown(str(self.folder)), why, extra={"note": True})
            self.files.remove(why)

    def _close(self) -> None:
        if (database := getattr(self, "_database", None)) is not None:
            self._database = None
            self._checked = False
            self.postings.close()
            database.close()

    def _translate(self, error: "sqlite3.Error") -> RipwrapError:
        limit = reached_limit() if code_of(error) in (CANNOT_OPEN, FULL, IO_ERROR, READONLY) else ""
        advice = {
            BUSY: "another process is using it, so try again later",
            LOCKED: "another process is using it, so try again later",
            FULL: HintedText("free some space, or ", OTHER_LOCATION),
            READONLY: HintedText(OTHER_LOCATION, (", or search with ", Hint("refresh", False))),
            CANNOT_OPEN: HintedText("make its directory writable, or ", OTHER_LOCATION),
        }.get(code_of(error), HintedText(OTHER_LOCATION, ", or remove the index: the next refresh makes it again"))
        if limit:
            advice = limit_advice(limit)
        return RipwrapError(HintedText(f"could not use the index {shown(str(self.path))}: {error}; ", advice))

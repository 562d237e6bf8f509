"""SQLite and tantivy, which may be missing. Then `ripwrap.index` can be imported, and an index says what it needs."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ripwrap._system.concurrency import reached_limit
from ripwrap.errors import RipwrapError

__all__ = ["HAS_SQLITE", "Connection", "sqlite3", "tantivy"]

HAS_SQLITE: bool = find_spec("_sqlite3") is not None
"""False for a Python that was built without SQLite."""

if TYPE_CHECKING or HAS_SQLITE:
    import sqlite3
    from sqlite3 import Connection
else:
    sqlite3, Connection = None, object

if TYPE_CHECKING or find_spec("tantivy"):
    try:
        import tantivy
    except ImportError as _error:  # such as a limit of memory or of open files
        _cause = reached_limit(1 << 28)
        _limit = f"the limit of {_cause} is reached; raise the limit, or end programs, and try again" if _cause else ""
        raise RipwrapError(
            f"could not load tantivy, which an index needs: {_error}; {_limit or 'install it again'}"
        ) from _error
else:
    tantivy = None

"""SQLite and tantivy, which may be missing. Then `ripwrap.index` can be imported, and an index says what it needs."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

__all__ = ["HAS_SQLITE", "Connection", "sqlite3", "tantivy"]

HAS_SQLITE: bool = find_spec("_sqlite3") is not None
"""False for a Python that was built without SQLite."""

if TYPE_CHECKING or HAS_SQLITE:
    import sqlite3
    from sqlite3 import Connection
else:
    sqlite3, Connection = None, object

if TYPE_CHECKING or find_spec("tantivy"):
    import tantivy
else:
    tantivy = None

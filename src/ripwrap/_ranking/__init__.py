"""Rank chunks (parts of files) for a query, in the same way with and without an index; no I/O except in SQLite."""

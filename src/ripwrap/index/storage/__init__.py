"""Storage of an index: its files, SQLite tables and transactions, full-text search, and ownership."""

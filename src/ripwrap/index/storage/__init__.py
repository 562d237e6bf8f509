"""The SQLite file of an index: files, tables, transactions and ownership."""

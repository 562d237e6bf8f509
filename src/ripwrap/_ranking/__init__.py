"""Rank chunks (parts of files) for a query, in the same way with and without an index; no I/O except in SQLite.

- `query` parses a query into words and symbols, and splits the text of files into words for SQLite's
full-text search (FTS5).
- `selection` chooses the files to read if there is no index, by the number of matches of each word in each file.
- `document` decodes the bytes of a file, and converts a ranked chunk to a result.
- `fts` stores chunks in FTS5, and returns the chunks to rank (the pool): the chunks with the highest BM25, and chunks
that may define a symbol of the query.
- `scoring` ranks the chunks of the pool.
- `paths` finds words in a path, and lowers the scores of tests and of other files that queries rarely ask for.
"""

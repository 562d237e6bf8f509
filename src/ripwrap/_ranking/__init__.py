"""Words in, places out: what ranks pieces of files by a query, the same with and without an index; pure, no I/O.

A query becomes words and symbols (`tokens`), a file becomes chunks (`chunks`), SQLite's FTS5 gives a pool of them with
their BM25, and `score` puts those in order. `choose` says, without an index, which files are worth reading.
"""

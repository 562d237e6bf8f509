"""Rank chunks of files for a query, in the same way with and without an index; no I/O except SQLite.

query         text of a query to words and symbols, text of files to words of FTS5
selection     without an index: which files to read, by how often rg finds each word in them
document      bytes of a file to text, a ranked chunk to a result
fts           SQLite's FTS5: chunks in, a pool of the best by BM25 out
scoring       a pool to a ranking
definitions   lines that define a name
paths         words in a path, and kinds of files that rank lower
"""

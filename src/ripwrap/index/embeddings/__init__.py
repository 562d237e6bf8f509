"""Vectors of chunks: embedders, storage, and the part of vectors in the ranking."""

"""Embeddings of chunks: embedders, storage, and search by embedding."""

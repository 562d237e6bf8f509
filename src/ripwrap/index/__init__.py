"""The index of a tree: it answers questions in words faster than a search through all files, and keeps up with them."""

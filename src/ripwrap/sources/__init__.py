"""Sources of items, which are names with contents: revisions of git. A source knows nothing of rg."""

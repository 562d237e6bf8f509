"""Find definitions with tree-sitter (the extra `syntax`), in a separate process."""

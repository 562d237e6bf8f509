"""Find definitions with tree-sitter (the extra `code`), in a separate process."""

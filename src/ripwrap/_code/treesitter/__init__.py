"""Find definitions with tree-sitter (the extra `syntax`), in a process of its own."""

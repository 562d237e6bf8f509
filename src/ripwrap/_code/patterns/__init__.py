"""Find definitions with regular expressions; import `outline` late, because its patterns take time to compile."""

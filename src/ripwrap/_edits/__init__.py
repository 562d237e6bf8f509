"""Changes of files: plans of replacements, their journal, undo, and patterns of code."""

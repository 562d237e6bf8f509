"""Split source text into definitions and chunks; no I/O."""

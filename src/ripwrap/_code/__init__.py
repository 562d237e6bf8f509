"""Split source text into definitions and chunks; nothing here opens a file."""

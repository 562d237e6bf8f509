"""Find definitions with regular expressions.

Import `outline` only in the functions that use it, because its patterns take time to compile.
"""

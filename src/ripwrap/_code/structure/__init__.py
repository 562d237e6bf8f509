"""Search source text by its syntax with ast-grep, in worker processes; the extra `structure`."""

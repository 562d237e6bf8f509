"""Search source text by its syntax with ast-grep, in worker processes; needs the extra `structure`."""

"""Show results in a notebook (HTML), on a console (rich), as plain text, and as a unified diff."""

"""Read ignore files and globs as rg does; nothing here asks rg."""

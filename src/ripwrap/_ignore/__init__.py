"""Read ignore files and globs as rg does, without running rg."""

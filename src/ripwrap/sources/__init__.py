"""Sources of items, which are names with contents: revisions of git, members of archives; they know nothing of rg."""

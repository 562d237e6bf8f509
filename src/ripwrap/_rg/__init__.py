"""Everything that knows how rg is spelled: its flags, its JSON, its exit codes, its stderr."""

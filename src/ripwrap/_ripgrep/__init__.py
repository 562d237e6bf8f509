"""Interface to rg: its flags, its JSON, its exit codes, its stderr, and its process."""

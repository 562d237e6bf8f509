"""A scan by rules: the rules, gitleaks' files of them, the passes over the files, and reports."""

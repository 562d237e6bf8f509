"""A scan by rules: the rules, files of them, the passes over the files, and reports."""

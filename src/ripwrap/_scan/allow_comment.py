"""Exception of the built-in rules, and of the rules in files; it makes Pydantic's first validator."""

from ripwrap._scan.rules import Allowlist

ALLOW_COMMENT = Allowlist(regexes=("gitleaks:allow",), target="line")
"""Exception for lines with the comment `gitleaks:allow`, as gitleaks has it."""

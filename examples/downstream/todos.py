"""Count the TODOs in the Python files of a directory, by author; an author is in parentheses after TODO."""

from collections import Counter

import ripwrap
from ripwrap import sync

PATTERN = r"TODO\((\w+)\)"


class TodosError(Exception):
    """The TODOs could not be counted."""


def authors(matches: list[ripwrap.Match]) -> Counter[str]:
    """Return the number of matches for each author."""
    return Counter(part.match[len("TODO(") : -1] for match in matches for part in match.submatches)


def count(root: str = ".") -> Counter[str]:
    """Count the TODOs of each author.

    Raises:
        TodosError: rg is missing or failed.
    """
    try:
        return authors(list(sync.search(PATTERN, cwd=root, glob="*.py")))
    except ripwrap.RipwrapError as error:
        raise TodosError(f"cannot count the TODOs of {root}: {error}") from error

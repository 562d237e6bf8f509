"""Paths that tests spell with `/`, on systems with another separator."""

import os
import re

_NOT_ON_WINDOWS = re.compile(r'[\x00-\x1f\\*?"<>|:\ud800-\udfff]|[. ](?:/|\Z)')


def native(text: str) -> str:
    """Return a path or message that a test spells with `/`, with the separator of this system."""
    return text.replace("/", os.sep)


def slashed(text: str) -> str:
    """Return a path or message of this system with `/` as the separator."""
    return text.replace(os.sep, "/")


def needs_posix(*names: str) -> bool:
    """Return True if Windows cannot have files of these names."""
    return any(_NOT_ON_WINDOWS.search(name) for name in names)

"""Refuse files with text that must not be committed: `python examples/check_forbidden.py FILE…`.

Prints `path:line:column: rule: text` for each forbidden text. The exit code is 0 if there is none, 1 if there are some,
and 2 if a file cannot be read. Every argument is a path, even if it begins with a dash. Ignored, hidden and binary
files are checked too. To use it as a pre-commit hook, with ripwrap installed:

    - repo: local
      hooks:
        - id: forbidden
          name: nothing forbidden
          entry: python examples/check_forbidden.py
          language: system
          types: [file]
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ripwrap import Match, RipwrapError, Summary, sync

RULES = {
    "conflict marker": r"^(?:<{7}|>{7}|\|{7})(?: |\r?$)",
    "debugger": r"\bbreakpoint\(\)|\bi?pdb\.set_trace\(",
    "private key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
    "text direction": r"[\u{202A}-\u{202E}\u{2066}-\u{2069}]",  # makes code look different from what it does
}
MAX_LINE_CHARS = 100  # maximum length of an excerpt


class Find(NamedTuple):
    """Position of forbidden text; columns are in characters, from 1."""

    path: str
    line: int
    column: int
    rule: str
    text: str

    def __str__(self) -> str:
        """Format the position, the rule and the text as one line."""
        return f"{printable(self.path)}:{self.line}:{self.column}: {self.rule}: {printable(self.text)}"


def printable(text: str) -> str:
    """Return the text with escapes for line breaks and for characters that change the direction of text."""
    shown = os.fsencode(text).decode(errors="replace")
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in shown)


def finds(rule: str, match: Match) -> Iterator[Find]:
    """Yield the forbidden texts of a match, each with an excerpt of the line."""
    for span, place in zip(match.spans(), match.ranges(), strict=True):
        start = max(0, span[0] - MAX_LINE_CHARS // 2) if len(match.text) > MAX_LINE_CHARS else 0
        text = match.text[start : start + MAX_LINE_CHARS].strip()
        yield Find(match.path, place.start_line, place.start_column + 1, rule, text)


def check(files: Sequence[str], unread: list[str]) -> Iterator[Find]:
    """Run rg for each rule, and add unreadable files to `unread`."""
    for rule, pattern in RULES.items():
        for message in sync.search_messages(pattern, paths=files, text=True):
            if isinstance(message, Match):
                yield from finds(rule, message)
            elif isinstance(message, Summary):
                unread += map(str, message.errors)


def main(arguments: Sequence[str]) -> int:
    """Check the files, and print the forbidden texts by path and line."""
    if not arguments:
        print("usage: python examples/check_forbidden.py FILE…", file=sys.stderr)
        return 2
    files, unread = list[str](), list[str]()
    for file in arguments:
        if Path(file).is_file():  # reading a named pipe would block forever
            files.append(file)
        else:
            unread.append(f"{file}: no such file")
    try:
        found = sorted(check(files, unread))
    except (OSError, RipwrapError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for find in found:
        print(find)
    for one in dict.fromkeys(unread):
        print(f"not checked: {printable(one)}", file=sys.stderr)
    return 2 if unread else 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

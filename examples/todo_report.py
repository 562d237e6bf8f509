"""Report, in Markdown, the lines marked TODO, FIXME, XXX or HACK: `python examples/todo_report.py [DIR]`.

Prints the number of each tag, then a table for each file with line, tag, owner (`ann` in `TODO(ann)`) and text. The
exit code is 0; 1 if there are no such lines; 2 if the folder cannot be searched.
"""

import argparse
import asyncio
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import ripwrap

DEMO = "demo"
TAGS = ("TODO", "FIXME", "XXX", "HACK")
PATTERN = rf"\b(?:{'|'.join(TAGS)})\b(?:\([^()]*\))?"
AROUND = re.compile(r"^[\s:-]+|\s*(?:\*/|-->|#|//)?\s*$")  # removed before and after the text of a mark


class Mark(NamedTuple):
    """Mark in a file; `owner` is empty if the mark has none."""

    line: int | None
    tag: str
    owner: str
    text: str


def marks(match: ripwrap.Match) -> Iterator[Mark]:
    """Yield the marks of a line, each with the text up to the next mark."""
    spans = match.spans()
    ends = [*(start for start, _ in spans[1:]), len(match.text)]
    for (start, end), until in zip(spans, ends, strict=True):
        tag, _, owner = match.text[start:end].rstrip(")").partition("(")
        text = AROUND.sub("", match.text[end:until])
        yield Mark(match.line_number, tag, owner.strip(), text)


async def collect(folder: str) -> dict[str, list[Mark]]:
    """Return the marks of each file, in path order."""
    found: dict[str, list[Mark]] = {}
    async for match in ripwrap.search(PATTERN, cwd=folder, follow=False, sort="path"):
        found.setdefault(match.path, []).extend(marks(match))
    return found


def literal(text: str) -> str:
    """Escape a text for one line of Markdown; bytes that are not UTF-8 become U+FFFD."""
    shown = os.fsencode(text).decode(errors="replace")
    return re.sub(r"([\\`*_\[\]<>|&~])", r"\\\1", " ".join(shown.split()))


def report(found: dict[str, list[Mark]]) -> Iterator[str]:
    """Yield the lines of the report."""
    counts = Counter(mark.tag for of_file in found.values() for mark in of_file)
    yield from ("# To do", "", "| tag | count |", "| --- | ---: |")
    yield from (f"| {tag} | {counts[tag]} |" for tag in TAGS)
    for path, of_file in found.items():
        yield from ("", f"## {literal(path)}", "", "| line | tag | owner | text |", "| ---: | --- | --- | --- |")
        yield from (f"| {mark.line} | {mark.tag} | {literal(mark.owner)} | {literal(mark.text)} |" for mark in of_file)


def main() -> int:
    """Search, and print the report."""
    parser = argparse.ArgumentParser(description="Report lines marked TODO, FIXME, XXX or HACK, in Markdown.")
    parser.add_argument("folder", nargs="?", default=DEMO)
    try:
        found = asyncio.run(collect(parser.parse_args().folder))
    except (OSError, ripwrap.RipwrapError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not found:
        print("No line is marked.")
        return 1
    print("\n".join(report(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Ways in which an agent finds the code that answers a question: calls of tools, by fixed rules."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import permutations

from ripwrap._ranking.word_query import STOP_WORDS
from ripwrap.sync import Workspace

Policy = Callable[[Workspace, str], Iterator[str]]
"""Function that answers a question by calls of tools. It yields the text of each answer; the caller may stop early."""

HITS = 30
"""Number of matches on a page of `grep_content`; the agent then reads around them."""

LINES_BEFORE = 20
LINES_AFTER = 80
"""Numbers of lines that an agent reads around a match; most of a definition is below the line with its name."""

_WORD = re.compile(r"\w+(?:\.\w+)*")
_FILE = re.compile(r"File: (.+)")
_RESULT = re.compile(r"(.+):\d+-\d+(?: in .+)?")
_LINE = re.compile(r"  (\d+)([:-])(?: (.*))?")
_DEFINITION = re.compile(
    r"\s*(?:(?:export|default|async|static)\s+)*(?:class|def|function)\b|[\w.]+ = (?:async )?function"
)
"""Line that begins a definition, in the languages of the packages: Python and JavaScript."""


@dataclass(frozen=True)
class ShownLine:
    """Line of a file in the answer of a tool.

    Attributes:
        path: Path of the file.
        number: Number of the line, from 1.
        text: Text of the line.
        is_match: False for a line of context.
    """

    path: str
    number: int
    text: str
    is_match: bool = True


def shown_lines(answer: str) -> Iterator[ShownLine]:
    """Yield the lines of files that an answer of `grep_content`, `codebase_search` or `read_file` shows."""
    path = ""
    for row in answer.split("\n"):
        if line := _LINE.fullmatch(row):
            yield ShownLine(path, int(line[1]), line[3] or "", line[2] == ":")
        elif heading := _FILE.fullmatch(row) or _RESULT.fullmatch(row):
            path = heading[1]


def words_of(question: str) -> tuple[str, ...]:
    """Return the words of a question without stop words, each once; names with dots are one word."""
    words = dict.fromkeys(_WORD.findall(question))
    return tuple(word for word in words if word.lower() not in STOP_WORDS) or tuple(words)


def patterns_of(question: str) -> tuple[str, ...]:
    """Return regular expressions for a question, the most selective first.

    The first pattern finds lines with two different words of the question, the second one lines with any word.
    """
    words = [*map(re.escape, words_of(question))]
    pairs = "|".join(f"{one}.*{other}" for one, other in permutations(words, 2))
    return (pairs, "|".join(words)) if pairs else ("|".join(words),)


def order_hits(hits: list[ShownLine], words: tuple[str, ...]) -> list[ShownLine]:
    """Return matches in the order in which an agent reads around them.

    Matches with the most different words come first; a line that begins a definition counts as one word more.
    """

    def worth(hit: ShownLine) -> int:
        text = hit.text.lower()
        return sum(word.lower() in text for word in words) + bool(_DEFINITION.match(hit.text))

    return sorted(hits, key=worth, reverse=True)


def grep(workspace: Workspace, question: str) -> Iterator[str]:
    """Search for the words with `grep_content`, page by page, with its default of two lines of context."""
    yield from _pages(workspace, question, context_lines=2)


def grep_and_read(workspace: Workspace, question: str) -> Iterator[str]:
    """Search for the words with `grep_content`, and read around each match of a page with `read_file`; then repeat.

    Matches in lines that were read already are skipped, and so are such lines at the beginning of a range.
    """
    words = words_of(question)
    read: set[tuple[str, int]] = set()
    for page in _pages(workspace, question, context_lines=0, max_matches=HITS):
        yield page
        for hit in order_hits([*shown_lines(page)], words):
            if (hit.path, hit.number) not in read:
                yield from _read_around(workspace, hit.path, hit.number, read)


def grep_definitions(workspace: Workspace, question: str) -> Iterator[str]:
    """Search for the words with `grep_content(expand="definition")`, page by page."""
    yield from _pages(workspace, question, expand="definition")


def codebase_search(workspace: Workspace, question: str, limit: int = 10) -> Iterator[str]:
    """Ask `codebase_search`, once; `limit` is the number of results."""
    yield workspace.codebase_search(question, limit=limit)


def search_and_read(workspace: Workspace, question: str, limit: int = 10) -> Iterator[str]:
    """Ask `codebase_search`, then read around the beginning of each result with `read_file`, the best first."""
    result = workspace.codebase_search_result(question, limit=limit)
    answer = workspace.text(result)
    yield answer
    read = {(line.path, line.number) for line in shown_lines(answer)}
    for place in result.places:
        yield from _read_around(workspace, place.file, place.start_line, read)


def _read_around(workspace: Workspace, path: str, line: int, read: set[tuple[str, int]]) -> Iterator[str]:
    """Read around a line with `read_file`, from the first line that is not in `read` on; add the lines to `read`."""
    wanted = range(max(line - LINES_BEFORE, 1), line + LINES_AFTER + 1)
    first = next((number for number in wanted if (path, number) not in read), None)
    if first is not None:
        answer = workspace.read_file(path, first, wanted[-1])
        read.update((line.path, line.number) for line in shown_lines(answer))
        yield answer


def _pages(workspace: Workspace, question: str, **options: object) -> Iterator[str]:
    """Yield the pages of a search for lines with two words of a question, then for lines with any word, in any case."""
    for pattern in patterns_of(question):
        offset: int | None = 0
        while offset is not None:
            arguments = {"pattern": pattern, "case_insensitive": True, "offset": offset, **options}
            result = workspace.call_result("grep_content", arguments)
            yield workspace.text(result)
            offset = result.next_offset


POLICIES: Mapping[str, Policy] = {
    "grep_content": grep,
    "grep_content, then read_file": grep_and_read,
    'grep_content(expand="definition")': grep_definitions,
    "codebase_search": codebase_search,
    "codebase_search, cut": codebase_search,
    "codebase_search(limit=3)": partial(codebase_search, limit=3),
    "codebase_search, then read_file": search_and_read,
    "codebase_search(limit=3), then read_file": partial(search_and_read, limit=3),
}
"""Policies by their names in the table."""

CUT = "codebase_search, cut"
"""Policy whose answers are not limited by `max_chars`; the agent stops reading at the budget."""

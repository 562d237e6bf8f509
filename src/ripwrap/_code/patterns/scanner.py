"""Remove comments and strings from lines, in one pass; no I/O."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ripwrap._code.patterns.definition import ScannedFile

MAX_LINE_CHARS = 2_000
"""Maximum number of characters of a line that are read."""

DIRECTIVE = "#"
"""Replacement for a line with a preprocessor directive."""

_STRING = '"'
"""Replacement for a string, and for a line inside a string."""
_MAX_CLOSERS = 100
"""Maximum number of different closers to search for; a closer is a text that ends a comment or literal. Each search
reads the whole file.
"""
_BEFORE_REGEX = frozenset("=(,:;!&|?+{}[<>~^%*-")
"""Characters after which a slash begins a regular expression of JavaScript; otherwise the slash is a division."""

_CLOSERS: dict[str, Callable[[str], str]] = {
    "block": lambda token: {"/*": "*/", "<!--": "-->", "=begin": "=end"}.get(token) or _lua(token) or "=cut",
    "bare": lambda token: _lua(token) or _raw(token) or token,
    "long": lambda token: token,
    "short": lambda token: token,
}
"""Map a kind of comment or string (see `scan_lines()`) to a function that takes an opener and returns its closer."""


class LiteralSpan(NamedTuple):
    """Part of a line that is a comment or literal, or the part of one on this line."""

    start: int
    end: int
    kind: str
    opener: str


def scan_lines(
    lines: Sequence[str], opener: re.Pattern[str] | None, spans: dict[int, list[LiteralSpan]] | None = None
) -> ScannedFile:
    """Separate the code in lines from comments and strings."""
    kept = [line[:MAX_LINE_CHARS].rstrip("\r\n") for line in lines]
    clipped = frozenset(index for index, line in enumerate(lines) if len(line) > MAX_LINE_CHARS)
    if opener is None:
        return ScannedFile(kept, kept, frozenset(), clipped)
    scanner = _Scanner(kept, opener, clipped, spans)
    code = [scanner.strip(index, line) for index, line in enumerate(kept)]
    return ScannedFile(kept, code, frozenset(scanner.continued), clipped)


class _Scanner:
    def __init__(
        self,
        lines: Sequence[str],
        opener: re.Pattern[str],
        clipped: frozenset[int],
        spans: dict[int, list[LiteralSpan]] | None = None,
    ) -> None:
        self._spans = spans
        self.continued: set[int] = set()
        self._lines = lines
        self._opener = opener
        self._clipped = clipped
        self._kind = self._closer = self._word = ""
        self._dead: set[str] = set()
        """Openers without a closer; they are ordinary text in the current line."""
        self._last: dict[str, int] = {}
        """Map a closer to the index of the last line that has this closer; -1 if no line has it."""
        self._text: str | None = None
        self._words: dict[str, int] | None = None
        """Map a word to the index of the last line that consists of this word; such a line may end a here document."""

    def strip(self, index: int, line: str) -> str:
        """Return the next line without its comments, and with placeholders for its strings."""
        if self._word:
            self._add_span(index, 0, len(line), "heredoc", "")
            return self._in_heredoc(index, line)
        at, parts = 0, list[str]()
        inside = self._kind
        if inside:
            at = self._resume(index, line)
            self._add_span(index, 0, at, inside, "")
            parts.append({"block": " " * at, "directive": DIRECTIVE}.get(inside, _STRING))
        elif not self._opener.search(line):
            return line
        self._dead.clear()
        while at < len(line) and (found := self._opener.search(line, at)):
            parts.append(line[at : found.start()])
            at = self._enter(index, line, found, parts)
            self._add_span(index, found.start(), at, found.lastgroup or "", found[0])
        parts.append(line[at:])
        if index in self._clipped and not inside:
            self._kind = self._word = ""  # the closer may be in the part that was cut off
        return "".join(parts)

    def _add_span(self, index: int, start: int, end: int, kind: str, opener: str) -> None:
        if self._spans is not None:
            self._spans.setdefault(index, []).append(LiteralSpan(start, end, kind, opener))

    def _in_heredoc(self, index: int, line: str) -> str:
        self.continued.add(index)
        if _word_of(line) == self._word:
            self._word = ""
        return _STRING

    def _resume(self, index: int, line: str) -> int:
        """Return the offset of the first code in a line that begins inside a comment or literal."""
        if self._kind == "directive":
            if not line.endswith("\\"):
                self._kind = ""
            return len(line)
        if self._kind != "block":
            self.continued.add(index)
        end = _end(line, 0, self._kind, self._closer)
        if end < 0:
            return len(line)
        self._kind = ""
        return end

    def _enter(self, index: int, line: str, found: re.Match[str], parts: list[str]) -> int:
        """Skip the comment or literal that begins at `found`, and return the offset of the code after it."""
        kind, token = found.lastgroup or "", found[0]
        if kind == "cut":
            return len(line)
        if kind == "whole":
            parts.append(_STRING)
            return found.end()
        if kind == "directive":
            parts.append(DIRECTIVE)
            self._kind = kind if line.endswith("\\") else ""
            return len(line)
        if kind == "regex":
            return self._regex(line, found.end(), parts)
        if kind == "heredoc":
            self._word = self._here(index, token)
            parts.append(_STRING)
            return found.end()
        return self._delimited(index, line, found, parts)

    def _delimited(self, index: int, line: str, found: re.Match[str], parts: list[str]) -> int:
        kind, token = found.lastgroup or "", found[0]
        mark = "" if kind == "block" else _STRING
        if token not in self._dead:
            closer = _CLOSERS[kind](token)
            end = _end(line, found.end(), kind, closer)
            if end >= 0:
                parts.append(mark or " " * (end - found.start()))
                return end
            if (kind != "short" or line.endswith("\\")) and self._closes(closer, index):
                parts.append(mark)
                self._kind, self._closer = kind, closer
                return len(line)
            self._dead.add(token)  # search only once: otherwise a line of escaped quotes takes quadratic time
        parts.append(token)
        return found.end()

    def _regex(self, line: str, at: int, parts: list[str]) -> int:
        """Return the offset after a regular expression of JavaScript, or after the slash if the slash is a division."""
        parts.append("/")
        if "/" in self._dead:
            return at
        before = line[: at - 1].rstrip()
        if before and before[-1] not in _BEFORE_REGEX and not before.endswith("return"):
            return at
        in_class = False
        for found in _REGEX.finditer(line, at):
            if found[0] == "/" and not in_class:
                return found.end()
            in_class = found[0] == "[" or (in_class and found[0] != "]")
        self._dead.add("/")
        return at

    def _here(self, index: int, token: str) -> str:
        """Return the word that ends a here document, or an empty string if no line below consists of this word.

        Without such a line, the token does not start a here document.
        """
        word = _word_of(token.lstrip("<~- \t\\"))
        if self._words is None:
            self._words = {_word_of(line): number for number, line in enumerate(self._lines)}
        return word if self._words.get(word, -1) > index else ""

    def _closes(self, closer: str, index: int) -> bool:
        """Return True if a line below has the closer of a comment or string; otherwise the opener is ordinary text."""
        if closer not in self._last and len(self._last) < _MAX_CLOSERS:
            if self._text is None:
                self._text = "\n".join(self._lines)
            at = self._text.rfind(closer)
            self._last[closer] = self._text.count("\n", 0, at) if at >= 0 else -1
        return self._last.get(closer, -1) > index


_REGEX = re.compile(r"\\.|[/\[\]]")


def _end(line: str, at: int, kind: str, closer: str) -> int:
    """Return the offset after the closer, or -1 if the line has no closer."""
    if kind in {"long", "short"}:
        for found in _escaped(closer).finditer(line, at):
            if not found[0].startswith("\\"):
                return found.end()
        return -1
    end = line.find(closer, at)
    return -1 if end < 0 else end + len(closer)


@lru_cache(maxsize=64)
def _escaped(closer: str) -> re.Pattern[str]:
    return re.compile(r"\\.|" + re.escape(closer))


def _word_of(line: str) -> str:
    return line.strip(" \t\"'`;,)")


def _lua(token: str) -> str:
    """Return the text that closes a long string or comment of Lua, `]==]` for `[==[`; empty for another opener."""
    equals = token.lstrip("-")
    return equals.replace("[", "]") if equals.startswith("[") else ""


def _raw(token: str) -> str:
    """Return the text that closes a raw string of Rust, C++ or C#; empty if `token` opens no raw string."""
    if token.endswith("("):
        return ")" + token.partition('"')[2][:-1] + '"'
    return '"' + "#" * token.count("#") if token.endswith('"') and not token.startswith('"') else ""

"""Read ignore files as rg does: parse their lines, and apply their precedence."""

import logging
import os
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

from pathspec import Pattern, RegexPattern

from ripwrap._ignore.globs import byte_text, glob_pattern

KINDS = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
"""Kinds of ignore files; the first that has a rule for a path decides."""

_FIRST_PARTS = tuple(kind.partition("/")[0] for kind in KINDS)

_LOGGER = logging.getLogger("ripwrap")

# What Rust's `trim_end` removes; Python's `rstrip`, which pathspec calls, would also remove U+001C to U+001F.
_WHITESPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule on a line of an ignore file.

    Attributes:
        glob: Glob for paths relative to the folder of the file.
        pattern: Pattern of the glob; it is including for an ignored path, excluding for one that `!` brings back.
        only_folders: True if the rule does not apply to files.
    """

    glob: str
    pattern: Pattern
    only_folders: bool

    @classmethod
    def parse(cls, line: str, *, allow_unclosed: bool = True, ignore_case: bool = False) -> "Rule | None":
        """Return the rule of a line, or `None` for a comment or an empty line.

        Raises:
            ValueError: The line does not parse; the text is rg's.
        """
        if line.startswith("#"):
            return None
        # A space at the end is kept if a backslash is before it.
        glob = line if line.endswith("\\ ") else line.rstrip(_WHITESPACE)
        if not glob:
            return None
        negated = glob.startswith("!")
        escaped = glob.startswith(("\\!", "\\#"))
        glob = glob[1:] if negated or escaped else glob
        anchored = glob.startswith("/") and not escaped
        glob = glob[1:] if anchored else glob
        only_folders = glob.endswith("/")
        if only_folders:
            glob = glob[:-1].removesuffix("\\")
        if not anchored and "/" not in glob:
            glob = "**" if glob in ("", "**") else f"**/{glob}"
        pattern = glob_pattern(glob, include=not negated, allow_unclosed=allow_unclosed, ignore_case=ignore_case)
        return cls(glob, pattern, only_folders)


class Rules:
    """Rules of one ignore file; the last that matches decides."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules: tuple[Rule, ...] = tuple(rules)

    def is_ignored(self, path: str, *, is_folder: bool) -> bool | None:
        """Return True if a path is ignored, False if it is brought back, or `None` if no rule matches."""
        if not self._any_regex.match(path) and not any(pattern.match_file(path) for pattern in self._slow):
            return None
        for rule in reversed(self.rules):
            if (is_folder or not rule.only_folders) and rule.pattern.match_file(path):
                return rule.pattern.include
        return None

    # Not pathspec's `PathSpec`: where RE2 is installed it compiles all patterns with that, which has no `\Z`, and
    # without RE2 it tries one pattern after another, which takes twice as long as one regex that rules out most paths.
    @cached_property
    def _any_regex(self) -> re.Pattern[str]:
        patterns: list[Any] = [rule.pattern for rule in self.rules if isinstance(rule.pattern, RegexPattern)]
        return re.compile("|".join(pattern.regex.pattern for pattern in patterns) or "(?!)")

    @cached_property
    def _slow(self) -> tuple[Pattern, ...]:
        return tuple(rule.pattern for rule in self.rules if not isinstance(rule.pattern, RegexPattern))


@dataclass(frozen=True, slots=True)
class IgnoreStack:
    """Ignore files from a root down to a folder.

    Attributes:
        levels: Rules of the files of each kind, the deepest first, each with the length of its folder's path.
    """

    levels: tuple[tuple[tuple[int, Rules], ...], ...] = ((),) * len(KINDS)

    @classmethod
    def above(cls, root: str, sub: str) -> "IgnoreStack":
        """Return the ignore files in the folders from the root to `sub`, without `sub`."""
        stack = cls()
        for folder in _folders_above(sub):
            stack = stack.entered(root, folder)
        return stack

    def entered(self, root: str, folder: str, names: Container[str] = _FIRST_PARTS) -> "IgnoreStack":
        """Return these ignore files and those in `folder`; `names` are the names in it, if they are known."""
        found = [
            _read(root, folder, kind) if first in names else () for kind, first in zip(KINDS, _FIRST_PARTS, strict=True)
        ]
        if not any(found):
            return self
        start = len(match_text(os.path.join(folder, "")))
        pairs = zip(found, self.levels, strict=True)
        return IgnoreStack(tuple(((start, Rules(rules)), *level) if rules else level for rules, level in pairs))

    def is_ignored(self, path: str, *, is_folder: bool) -> bool | None:
        """Return True if a path is ignored, False if it is brought back, or `None` if no rule matches."""
        for level in self.levels:
            for start, rules in level:
                ignored = rules.is_ignored(path[start:], is_folder=is_folder)
                if ignored is not None:
                    return ignored
        return None


def outer_rules(root: str, sub: str) -> str:
    """Return the text of one ignore file with the rules from a root down to `sub`, without those in `sub`.

    Pass it as `--ignore-file`, with `--no-ignore-parent`, the root as working directory and the relative path `sub`.
    Then rg lists the same files in `sub` as in a listing of the root, with three differences:

    - If `sub` or a folder on the way is ignored, rg lists the files in `sub`; a listing of the root does not.
    - Any rule in `sub` or below it overrides a rule above `sub`, because rg reads an `--ignore-file` last.
    - rg 13 reads no `.gitignore` and no exclude file above a nested repository; the rules here apply.

    The rules hold for this `sub` only: they have the number of folders on the way, not their names. rg 13 and 14 cannot
    parse all of them (nested braces; an unclosed `[`), and report that as for any ignore file. Rules above the root
    have no effect, but rg reads them if it reads `.gitignore`s at all. If one of their lines does not parse, rg reports
    its path and number, and exits with 2.
    """
    lines = (
        f"{'' if rule.pattern.include else '!'}/{'*/' * depth}{rule.glob}{'/' if rule.only_folders else ''}\n"
        for kind in reversed(KINDS)
        for depth, folder in enumerate(_folders_above(sub))
        for rule in _read(root, folder, kind)
        if rule.glob  # a rule that is only a slash matches nothing; with a prefix it would match a folder
    )
    return "".join(lines)


def match_text(path: str) -> str:
    """Return a path in the form that patterns match."""
    return byte_text(os.fsencode(path.replace(os.sep, "/")))


def _folders_above(sub: str) -> list[str]:
    """Return the folders from the root, which is "", down to `sub`, without it."""
    parts = [] if sub == os.curdir else sub.split(os.sep)
    return [os.sep.join(parts[:depth]) for depth in range(len(parts))]


def _read(root: str, folder: str, kind: str) -> tuple[Rule, ...]:
    path = os.path.realpath(os.path.join(root, folder, kind))
    # A link may lead out of the root, and opening a FIFO could wait for ever. Before Python 3.13 one call of
    # `realpath` does not resolve what is behind a loop of links.
    if os.path.realpath(path) != path or not PurePath(path).is_relative_to(root) or not os.path.isfile(path):
        return ()
    try:
        with open(path, "rb") as file:
            return tuple(_parse(file.read(), path))
    except OSError as error:
        _LOGGER.debug("%s: %s", path, error)
        return ()


def _parse(content: bytes, path: str) -> Iterator[Rule]:
    for number, line in enumerate(content.replace(b"\r\n", b"\n").split(b"\n"), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            _LOGGER.debug("%s: line %d: not UTF-8; rg reads no further", path, number)
            return
        try:
            rule = Rule.parse(text if number > 1 else text.lstrip("\ufeff"))
        except ValueError as error:
            _LOGGER.debug("%s: line %d: %s", path, number, error)
        else:
            if rule:
                yield rule

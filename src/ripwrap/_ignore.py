"""Ignore files as rg reads them: what their lines say of a path, and which file is asked first."""

import logging
import os
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from ripwrap._globs import Glob, of_bytes

# The first that says anything of a path decides.
KINDS = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
_FIRSTS = tuple(kind.partition("/")[0] for kind in KINDS)

_LOGGER = logging.getLogger("ripwrap")

# What Rust's `trim_end` takes off; Python's `rstrip` would take U+001C to U+001F too.
_WHITE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of an ignore file.

    Attributes:
        glob: For paths in the folder of the file; it excludes if the line has a `!`.
        only_folders: Whether it says something of folders alone.
    """

    glob: Glob
    only_folders: bool

    @classmethod
    def of(cls, line: str, *, unclosed: bool = True) -> "Rule | None":
        """The rule of a line that may be a comment, or nothing.

        Raises:
            ValueError: It does not parse; in rg's words.
        """
        if line.startswith("#"):
            return None
        # A space stays only where it is last and a backslash stands before it.
        text = line if line.endswith("\\ ") else line.rstrip(_WHITE)
        if not text:
            return None
        brought_back = text.startswith("!")
        escaped = text.startswith(("\\!", "\\#"))
        text = text[1:] if brought_back or escaped else text
        anchored = text.startswith("/") and not escaped
        text = text[1:] if anchored else text
        only_folders = text.endswith("/")
        if only_folders:
            text = text[:-1].removesuffix("\\")
        text = _anywhere(text) if not anchored and "/" not in text else text
        return cls(Glob.of(text, include=not brought_back, unclosed=unclosed), only_folders)


def _anywhere(glob: str) -> str:
    return "**" if glob in ("", "**") else f"**/{glob}"


class Rules:
    """The rules of one ignore file, of which the last that matches decides."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether a path is ignored, or brought back; `None` if nothing is said of it."""
        if not self._any.match(path) and not any(rule.glob.pattern.match_file(path) for rule in self._slow):
            return None
        for rule in reversed(self.rules):
            if (is_folder or not rule.only_folders) and rule.glob.pattern.match_file(path):
                return rule.glob.pattern.include
        return None

    @cached_property
    def _any(self) -> re.Pattern[str]:
        """Those that are regexes, all in one, which does not match most paths."""
        return re.compile("|".join(rule.glob.regex for rule in self.rules if rule.glob.regex is not None) or "(?!)")

    @cached_property
    def _slow(self) -> tuple[Rule, ...]:
        """Those that are none, since that would take too long."""
        return tuple(rule for rule in self.rules if rule.glob.regex is None)


@dataclass(frozen=True, slots=True)
class Ignores:
    """What the ignore files from a root down to a folder say of what is in that folder.

    Attributes:
        levels: For each kind the rules of its files, the deepest first, each with the length of its folder's path.
    """

    levels: tuple[tuple[tuple[int, Rules], ...], ...] = ((),) * len(KINDS)

    @classmethod
    def above(cls, root: str, sub: str) -> "Ignores":
        """Those in the folders from the root to `sub`, which is not among them."""
        ignores = cls()
        for folder in _above(sub):
            ignores = ignores.entered(root, folder)
        return ignores

    def entered(self, root: str, folder: str, names: Container[str] = _FIRSTS) -> "Ignores":
        """With those in one folder more, of which the names are known or not."""
        found = [
            _read(root, folder, kind) if first in names else () for kind, first in zip(KINDS, _FIRSTS, strict=True)
        ]
        if not any(found):
            return self
        start = len(matched(os.path.join(folder, "")))
        pairs = zip(found, self.levels, strict=True)
        return Ignores(tuple(((start, Rules(rules)), *level) if rules else level for rules, level in pairs))

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether a path is ignored, or brought back; `None` if nothing is said of it."""
        for level in self.levels:
            for start, rules in level:
                verdict = rules.verdict(path[start:], is_folder=is_folder)
                if verdict is not None:
                    return verdict
        return None


def outer_rules(root: str, sub: str) -> str:
    """One ignore file for what those from a root down to `sub` say, the root's among them and those in `sub` not.

    With `--ignore-file` of it, `--no-ignore-parent`, the root as working directory and `sub` as the path, relative and
    alone, rg lists what it lists there from the root. Not where it lists nothing, `sub` or a folder on the way being
    ignored; and as rg asks such a file last, these two things differ:

    - A line above `sub` gives way to any in `sub` or below it, also to one of a lesser kind.
    - rg 13 asks no `.gitignore` and no exclude file above a nested repository; those it does ask.

    It is for that `sub` only: of folders on the way is written how many they are, not what they are called. rg 13 and
    14 cannot parse all that is in it (nested braces; a `[` that nothing closes), and say so as of any ignore file.
    What stands above the root has no say, but is read all the same if rg heeds `.gitignore`s at all; and where a line
    of that does not parse, rg tells so, with path and line, and exits with 2.
    """
    lines = (
        f"{'' if rule.glob.pattern.include else '!'}/{'*/' * depth}{rule.glob.text}{'/' if rule.only_folders else ''}\n"
        for kind in reversed(KINDS)
        for depth, folder in enumerate(_above(sub))
        for rule in _read(root, folder, kind)
        if rule.glob.text  # A lone slash matches nothing, but would match a folder on the way.
    )
    return "".join(lines)


def matched(path: str) -> str:
    """A path as globs match it."""
    return of_bytes(os.fsencode(path.replace(os.sep, "/")))


def _above(sub: str) -> list[str]:
    """The folders from the root, which is "", down to `sub`, which is not among them."""
    parts = [] if sub == os.curdir else sub.split(os.sep)
    return [os.sep.join(parts[:depth]) for depth in range(len(parts))]


def _read(root: str, folder: str, kind: str) -> tuple[Rule, ...]:
    path = os.path.realpath(os.path.join(root, folder, kind))
    # It may be a link, or in a folder that is; and what is no file, a FIFO say, could be waited for without end.
    # Before Python 3.13 what stands behind a loop of links is not resolved at once.
    if os.path.realpath(path) != path or not PurePath(path).is_relative_to(root) or not os.path.isfile(path):
        return ()
    try:
        with open(path, "rb") as file:
            return tuple(_rules(file.read(), path))
    except OSError as error:
        _LOGGER.debug("%s: %s", path, error)
        return ()


def _rules(text: bytes, path: str) -> Iterator[Rule]:
    for number, line in enumerate(text.replace(b"\r\n", b"\n").split(b"\n"), 1):
        try:
            decoded = line.decode()
        except UnicodeDecodeError:
            _LOGGER.debug("%s: line %d: no UTF-8, which ends the file for rg", path, number)
            return
        try:
            rule = Rule.of(decoded if number > 1 else decoded.lstrip("\ufeff"))
        except ValueError as error:
            _LOGGER.debug("%s: line %d: %s", path, number, error)
        else:
            if rule:
                yield rule

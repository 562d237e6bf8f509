"""Read ignore files as rg does, apply their precedence, and decide which items are searched.

Decide which items are searched: things with a name that are no files on the disk, such as members of an archive.

The checks have the same order as in rg 15.2 (`matched()` in `crates/ignore/src/dir.rs`): globs, types, hidden files.
Which files on the disk are left out, rg says itself (`ripwrap._ripgrep.debug_log`).
"""

import logging
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pathspec import Pattern

from ripwrap._ignore.globs import MAX_REGEX_CHARS, GlobRegex, byte_text, glob_pattern
from ripwrap._system.concurrency import CANCELLED
from ripwrap._system.safe_open import is_link, read_start
from ripwrap._text import raw_bytes
from ripwrap.errors import GlobError
from ripwrap.options import EXCLUDED, values_of

KINDS = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
"""Kinds of ignore files; the first kind with a rule that matches a path decides."""

_FIRST_PARTS = tuple(kind.partition("/")[0] for kind in KINDS)
IGNORE_NAMES = _FIRST_PARTS
"""Names of files and directories that affect which rules apply in the directory that has them."""

MAX_RULES_BYTES = 262_144
"""Number of bytes at the start of an ignore file that are read, and maximum size of the text of `outer_rules()`.

rg has no limit, and reads each line into memory.
"""
MAX_RULES = 10_000
"""Maximum number of rules of an ignore file that are read."""
MAX_RULE_BYTES = 4_096
"""Maximum length of a rule that is read."""
TOO_MANY_RULES = f"not all rules are applied: more than {MAX_RULES_BYTES:,} bytes or {MAX_RULES:,} rules"
_MAX_CHUNK = 100
_MAX_CHUNK_CHARS = 8_192
"""Maximum number of rules, and of characters in them, that are tried with one regex."""

_LOGGER = logging.getLogger("ripwrap")

# The characters that Rust's `trim_end` removes. Python's `rstrip`, which pathspec calls, would also remove U+001C to
# U+001F.
_WHITESPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """Rule on a line of an ignore file, in an option such as `glob`, or of a file type."""

    glob: str
    pattern: Pattern
    only_folders: bool
    text: str = ""

    @classmethod
    def parse(cls, line: str, *, allow_unclosed: bool = True, ignore_case: bool = False) -> "IgnoreRule | None":
        """Return the rule of a line, or `None` for a comment or an empty line."""
        if line.startswith("#"):
            return None
        # If a backslash is before the last space, the spaces at the end are kept.
        glob = line if line.endswith("\\ ") else line.rstrip(_WHITESPACE)
        if not glob:
            return None
        text = glob
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
        return cls(glob, pattern, only_folders, text)

    @property
    def ignores(self) -> bool:
        """True for a rule without `!`: a file ignores the paths that match; an option such as `glob` selects them."""
        return bool(self.pattern.include)


class Rules:
    """Rules of one ignore file, of the options with globs, or of a file type; the last rule that matches decides."""

    def __init__(self, rules: Iterable[IgnoreRule], cut: str = "") -> None:
        """Set the rules, and the path of their file if it has more rules than are read (see `MAX_RULES`)."""
        self.rules: tuple[IgnoreRule, ...] = tuple(rules)
        self.cut: str = cut

    def match(self, path: str, *, is_folder: bool) -> IgnoreRule | None:
        """Return the rule that decides about a path, or `None` if no rule matches."""
        for chunk in self._chunks:
            if rule := chunk.match(path, is_folder=is_folder):
                return rule
        return None

    def is_ignored(self, path: str, *, is_folder: bool) -> bool | None:
        """Return True if a path is ignored, False if a rule with `!` includes it, or `None` if no rule matches."""
        rule = self.match(path, is_folder=is_folder)
        return None if rule is None else rule.ignores

    @cached_property
    def _chunks(self) -> "list[_Chunk]":
        chunks: list[list[IgnoreRule]] = []
        chars = _MAX_CHUNK_CHARS + 1
        for rule in reversed(self.rules):
            chars += len(rule.glob)
            if chars > _MAX_CHUNK_CHARS or len(chunks[-1]) == _MAX_CHUNK:
                chunks.append([])
                chars = len(rule.glob)
            chunks[-1].append(rule)
        return [_Chunk(tuple(rules)) for rules in chunks]


@dataclass(frozen=True)
class _Chunk:
    """Some successive rules, the last one first."""

    rules: tuple[IgnoreRule, ...]

    def match(self, path: str, *, is_folder: bool) -> IgnoreRule | None:
        """Return the first of these rules that matches, or `None`."""
        CANCELLED.get().check()
        if (
            len(path) <= MAX_REGEX_CHARS
            and not self._any_regex.match(path)
            and not any(pattern.match_file(path) for pattern in self._slow)
        ):
            return None
        for rule in self.rules:
            if (is_folder or not rule.only_folders) and rule.pattern.match_file(path):
                return rule
        return None

    # pathspec's `PathSpec` is not used. If RE2 is installed, `PathSpec` compiles all patterns with RE2, which has no
    # `\Z`. Otherwise it tries one pattern after another, which takes twice as long as one regex that excludes most
    # paths.
    @cached_property
    def _any_regex(self) -> re.Pattern[str]:
        sources = (rule.pattern.source for rule in self.rules if isinstance(rule.pattern, GlobRegex))
        return re.compile("|".join(sources) or "(?!)", re.ASCII)

    @cached_property
    def _slow(self) -> tuple[Pattern, ...]:
        return tuple(rule.pattern for rule in self.rules if not isinstance(rule.pattern, GlobRegex))


_NO_RULES = Rules(())


@dataclass(frozen=True, slots=True)
class IgnoreStack:
    """Rules of the ignore files in the directories from a root down to a directory."""

    levels: tuple[tuple[tuple[int, Rules], ...], ...] = ((),) * len(KINDS)
    cut: tuple[str, ...] = ()

    @classmethod
    def above(cls, root: str, sub: str) -> "IgnoreStack":
        """Return a stack with the ignore files in the directories from the root down to `sub`, but not in `sub`."""
        stack = cls()
        for folder in _folders_above(sub):
            stack = stack.entered(root, folder)
        return stack

    def entered(self, root: str, folder: str, names: Container[str] = IGNORE_NAMES) -> "IgnoreStack":
        """Return a stack that also has the ignore files in `folder`; `names` are the names in `folder`, if known.

        An ignore file is skipped if links lead out of `root` to the file.
        """
        stack = replace(self, cut=()) if self.cut else self
        found = [
            rules_in(root, folder, kind) if first in names else _NO_RULES
            for kind, first in zip(KINDS, _FIRST_PARTS, strict=True)
        ]
        if all(one is _NO_RULES for one in found):
            return stack
        start = len(match_text(os.path.join(folder, "")))
        pairs = zip(found, stack.levels, strict=True)
        levels = tuple(((start, rules), *level) if rules.rules else level for rules, level in pairs)
        return replace(stack, levels=levels, cut=tuple(rules.cut for rules in found if rules.cut))

    def is_ignored(self, path: str, *, is_folder: bool) -> bool | None:
        """Return True if a path is ignored, False if a rule with `!` includes it, or `None` if no rule matches."""
        for level in self.levels:
            for start, rules in level:
                rule = rules.match(path[start:], is_folder=is_folder)
                if rule is not None:
                    return rule.ignores
        return None


def outer_rules(root: str, *subs: str) -> tuple[str, list[str]]:
    """Return the text of one ignore file with all rules of the directories from a root down to `subs`, but not in them.

    The second value lists the paths, relative to the root, of the files whose rules are not all in the text, because
    the file or the text has too many (see `MAX_RULES_BYTES`).

    Pass the file to rg as `--ignore-file`, with `--no-ignore-parent`, the root as working directory and the relative
    paths `subs`. Then rg lists the same files in each `sub` as in a listing of the root, with three differences:

    - If `sub` or a directory above it is ignored, rg lists the files in `sub`; a listing of the root does not.
    - Any rule in `sub` or below `sub` overrides a rule above `sub`, as an `--ignore-file` has the lowest precedence in
      rg.
    - rg 13 reads no `.gitignore` and no exclude file above a nested repository; this text has their rules.

    The rules are valid only for these `subs`: for a single one, they contain the number of directories above it, but
    not their names.
    rg 13 and 14 cannot parse some rules (nested braces, an unclosed `[`), and report them as in any ignore file. Ignore
    files above the root have no effect, but rg reads them if it reads any `.gitignore`. If a line of such a file does
    not parse, rg reports the path of the file and the number of the line, and exits with 2.
    """
    lines: list[str] = []
    cut: list[str] = []
    room = MAX_RULES_BYTES
    folders = sorted({one for sub in subs for one in _folders_above(sub)}, key=lambda one: (len(one) > 0, one))
    for kind in reversed(KINDS):
        for folder in folders:
            depth = folder.count(os.sep) + bool(folder)
            # A line end in a name would end the rule.
            named = re.sub(r"([\\*?\[\]{}!])", r"\\\1", folder.replace(os.sep, "/")).replace("\n", "?")
            start = "*/" * depth if len(subs) == 1 else f"{named}{'/' * bool(folder)}"
            found = rules_in(root, folder, kind)
            for rule in found.rules if room >= 0 else ():
                if rule.glob:  # drop the rule `/`, which matches nothing; with a prefix it would match a directory
                    end = "/" if rule.only_folders else ""
                    lines.append(f"{'' if rule.pattern.include else '!'}/{start}{rule.glob}{end}\n")
                    room -= len(lines[-1])
                if room < 0:
                    del lines[-1]
                    break
            if found.cut or (found.rules and room < 0):
                cut.append(os.path.join(folder, kind))
    return "".join(lines), cut


def match_text(path: str) -> str:
    """Return a path as a text that patterns can match: with slashes, and with one character for each byte."""
    return byte_text(os.fsencode(path.replace(os.sep, "/")))


def _folders_above(sub: str) -> list[str]:
    """Return the directories from the root, which is "", down to `sub`, without `sub` itself."""
    parts = [] if sub == os.curdir else sub.split(os.sep)
    return [os.sep.join(parts[:depth]) for depth in range(len(parts))]


def rules_in(root: str, folder: str, kind: str) -> Rules:
    """Return the rules of the ignore file of one kind in a directory; none if it is missing or cannot be read."""
    return read_rules(os.path.join(root, folder, kind)) if _is_inside(root, folder, kind) else _NO_RULES


def _is_inside(root: str, folder: str, kind: str) -> bool:
    """Return True if an ignore file exists, and no link leads out of the root to it."""
    here = os.path.join(root, folder)
    if here != root and not here.startswith(os.path.join(root, "")):
        return False
    # The path of the directory is real. So only the parts of `kind` can be links, and without a link one call for each
    # part is enough. `realpath` would need one call for each directory of the path.
    for part in kind.split("/"):
        here = os.path.join(here, part)
        try:
            info = os.lstat(here)
        except OSError:
            return False
        if is_link(info):
            break
    else:
        return True
    path = os.path.join(root, folder, kind)
    real = os.path.realpath(path)
    # Before Python 3.13, one call of `realpath` does not resolve a path behind a loop of links.
    return os.path.realpath(real) == real and real.startswith(os.path.join(root, ""))


def read_rules(path: str) -> Rules:
    """Return the rules of an ignore file; none if it cannot be read, or is not a regular file.

    A line that does not parse has no rule. At a line that is not UTF-8, reading ends, as in rg. At most `MAX_RULES` in
    the first `MAX_RULES_BYTES` are read, none of them longer than `MAX_RULE_BYTES`; if the file has more, `Rules.cut`
    is its path.
    """
    try:
        content = read_start(path, MAX_RULES_BYTES + 1)
    except OSError as error:
        _LOGGER.debug("could not read the ignore file %s: %s", path, error)
        return _NO_RULES
    left = [len(content) > MAX_RULES_BYTES]
    if left[0]:
        content = content[: content.rfind(b"\n", 0, MAX_RULES_BYTES) + 1]
    rules = tuple(_parse(content, path, left))
    if left[-1]:
        _LOGGER.debug("%s: not all rules are read, because there are too many", path)
    return Rules(rules, path if any(left) else "") if rules or any(left) else _NO_RULES


def _parse(content: bytes, path: str, left: list[bool]) -> Iterator[IgnoreRule]:
    """Yield the rules of an ignore file; append True to `left` if rules are left out."""
    found = 0
    for number, line in enumerate(content.replace(b"\r\n", b"\n").split(b"\n"), 1):
        CANCELLED.get().check()
        if len(line) > MAX_RULE_BYTES:
            left.append(True)
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError:
            _LOGGER.debug("%s: line %d: not UTF-8; rg ignores the rest of the file", path, number)
            return
        text = text if number > 1 else text.lstrip("\ufeff")
        try:
            rule = IgnoreRule.parse(text)
        except ValueError as error:
            _LOGGER.debug("%s: line %d: %s; rg ignores this line", path, number, error)
        else:
            if rule and found == MAX_RULES:
                left.append(True)
                return
            if rule:
                found += 1
                yield rule


OptionKind: TypeAlias = Literal["glob", "type"]

_MAX_FOLDERS = 10_000
"""Maximum number of directories for which a `NameSelection` caches whether it selects them."""


class NameSelection:
    """Rules that select items by name, for searches of items that are not files.

    A name is matched as if it were the path of a file. Ignore files and limits of the file size have no effect. An item
    inside of an archive is also selected if a glob or type chooses the archive by its name, and it is not selected if
    one excludes the archive.
    """

    def __init__(
        self, options: Mapping[str, Any], types: Mapping[str, Sequence[str]], roots: Sequence[str] = ()
    ) -> None:
        """Prepare the rules."""
        self._hidden: bool = options.get("hidden", True)
        self._max_depth: int | None = options.get("max_depth")
        self._globs = Rules(_glob_rules(options))
        self._has_globs = any(rule.ignores for rule in self._globs.rules)
        self._types = list(_type_rules(options, types))
        self._has_types = not all(negated for negated, _ in self._types)
        self._roots = {"/".join(_parts(root)): True for root in roots}
        self._folders = {"": True, **self._roots}
        self._archive: tuple[str, frozenset[OptionKind] | None] = "", None  # the last archive, and what chooses it

    def selects(self, name: str) -> bool:
        """Return True if a search of files would read a file with the path `name`."""
        chosen = self._chosen(getattr(name, "outer", None))
        if chosen is None:
            return False
        parts = _parts(name)
        above = (len(_parts(root)) for root in self._roots if name.startswith(f"{root}/"))
        return self._selects(parts, max(above, default=0), chosen, is_folder=False)

    def _chosen(self, archive: str | None) -> frozenset[OptionKind] | None:
        """Return the kinds of options that choose an archive, or one that has it; `None` if an option excludes it."""
        if archive is None:
            return frozenset()
        if archive != self._archive[0]:
            above, path = self._chosen(getattr(archive, "outer", None)), "/".join(_parts(archive))
            own = frozenset[OptionKind]() if path in self._roots else self._chosen_by(path)
            self._archive = archive, None if above is None or own is None else above | own
        return self._archive[1]

    def _selects(
        self, parts: Sequence[str], root: int, chosen: frozenset[OptionKind] = frozenset(), *, is_folder: bool
    ) -> bool:
        """Return True if a path is selected; its first `root` parts are the path of a root."""
        above = "/".join(parts[:-1])
        if above not in self._folders:
            if len(self._folders) > _MAX_FOLDERS:
                self._folders = {"": True, **self._roots}
            self._folders[above] = self._selects(parts[:-1], root, is_folder=True)
        if not self._folders[above] or (
            self._max_depth is not None and len(parts) - root + is_folder > self._max_depth
        ):
            return False
        rule = self._globs.match(byte_text(raw_bytes("/".join(parts))), is_folder=is_folder)
        if rule is not None:
            return rule.ignores
        if self._has_globs and not is_folder and "glob" not in chosen:
            return False
        typed = None if is_folder else self._type_of(parts[-1] if parts else "")  # an item may be called `.` or `/`
        if typed is False or (typed is None and self._has_types and not is_folder and "type" not in chosen):
            return False
        return bool(typed or self._hidden or not parts[-1].startswith("."))

    def _chosen_by(self, path: str) -> frozenset[OptionKind] | None:
        """Return the kinds of options, `glob` and `type`, that choose a file by its path; `None` if one excludes it."""
        rule = self._globs.match(byte_text(raw_bytes(path)), is_folder=False)
        typed = self._type_of(path.rpartition("/")[2])
        if (rule is not None and not rule.ignores) or (rule is None and typed is False):
            return None
        kinds: dict[OptionKind, bool] = {"glob": rule is not None, "type": typed is True}
        return frozenset(kind for kind, is_given in kinds.items() if is_given)

    def _type_of(self, name: str) -> bool | None:
        """Return True if a type of `type` chooses a name, False if one of `type_not` excludes it; else `None`."""
        text = byte_text(raw_bytes(name))
        for negated, rules in reversed(self._types):
            if rules.match(text, is_folder=False) is not None:
                return not negated
        return None


def _parts(path: str) -> list[str]:
    return [part for part in path.replace(os.sep, "/").split("/") if part not in ("", os.curdir)]


def _glob_rules(options: Mapping[str, Any]) -> Iterator[IgnoreRule]:
    """Yield the rules of globs in the order of rg's command line."""
    if options.get("hidden") is False and options.get("type"):
        yield from _glob_rule("!.*", ignore_case=False)
    for option in ("glob", "iglob"):
        ignore_case = option == "iglob" or bool(options.get("glob_case_insensitive"))
        for glob in values_of(options, option):
            yield from _glob_rule(glob, ignore_case=ignore_case)
        if not options.get("include_git") and (option == "glob" or options.get("iglob")):
            for glob in EXCLUDED:
                yield from _glob_rule(f"!{glob}", ignore_case=ignore_case)


def _glob_rule(glob: str, *, ignore_case: bool) -> Iterator[IgnoreRule]:
    try:
        rule = IgnoreRule.parse(glob, allow_unclosed=False, ignore_case=ignore_case)
    except ValueError as error:
        raise GlobError(f"error parsing glob '{glob}': {error}") from error
    if rule is not None:
        yield rule


def _type_rules(options: Mapping[str, Any], types: Mapping[str, Sequence[str]]) -> Iterator[tuple[bool, Rules]]:
    for option in ("type", "type_not"):
        for name in values_of(options, option):
            for one in types if name == "all" else [name]:
                globs = [glob_pattern(glob, include=True, allow_unclosed=False) for glob in types.get(one, ())]
                rules = Rules(IgnoreRule(pattern=glob, glob="", only_folders=False) for glob in globs)
                yield option == "type_not", rules

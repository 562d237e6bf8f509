"""Decide, as rg does, which names that are not on the disk a search reads: items, and new files of an overlay.

The checks have the same order as in rg 15.2 (`matched()` in `crates/ignore/src/dir.rs`): globs, ignore files, types,
hidden files. Which files on the disk are left out, rg says itself (`ripwrap._ripgrep.debug_log`).
"""

import os
import stat
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

from ripwrap._ignore.git import global_ignore_files
from ripwrap._ignore.globs import byte_text, glob_pattern
from ripwrap._ignore.rules import KINDS, IgnoreRule, IgnoreStack, Rules, match_text, read_rules
from ripwrap._text import raw_bytes
from ripwrap.errors import GlobError
from ripwrap.options import EXCLUDED, Paths, StrPath

OptionKind: TypeAlias = Literal["glob", "type"]

_HIDDEN_GLOB = "!.*"
_NONE: frozenset[OptionKind] = frozenset()


class Selection:
    """Rules by which rg selects files, for the options of a search."""

    def __init__(self, cwd: str, options: Mapping[str, Any], types: Mapping[str, Sequence[str]]) -> None:
        """Prepare the rules."""
        self.cwd = cwd
        self._options = options
        self._max_depth: int | None = options.get("max_depth")
        self._globs = Rules(_glob_rules(options))
        self._chooses = any(rule.ignores for rule in self._globs.rules)
        self._types = list(_type_rules(options, types))

    def allows_new(self, searched: str, parts: Sequence[str]) -> bool:
        """Return True if a search would read a file that does not exist yet; directories above the file may exist."""
        path = "" if searched == os.curdir else searched
        real = os.path.realpath(os.path.join(self.cwd, path))
        device = os.stat(real).st_dev if os.path.exists(real) else None
        stack = self._stack_at(real)
        for depth, name in enumerate(parts):
            path, full = os.path.join(path, name), os.path.join(real, name)
            is_folder = depth + 1 < len(parts)
            if not self._is_entered(os.path.join(self.cwd, path), device):
                return False
            if self._max_depth is not None and depth + is_folder >= self._max_depth:
                return False
            rule = stack.match(match_text(full), is_folder=is_folder)
            text = match_text(path.removeprefix(os.path.join(self.cwd, "")))  # as rg does, relative to its directory
            if rule is None and stack.git_counts:
                rule = self._global_rules.match(text, is_folder=is_folder)
            for rules in self._explicit_rules:
                rule = rule or rules.match(text, is_folder=is_folder)
            if not self._allows(name, text, rule, is_folder=is_folder):
                return False
            stack, real = stack.entered("", full), full
        return True

    def allows_name(self, path: str, depth: int, *, is_folder: bool, chosen: Container[OptionKind] = _NONE) -> bool:
        """Return True if globs, types, depth and options about hidden files allow a path; ignore files do not count."""
        if self._max_depth is not None and depth + is_folder > self._max_depth:
            return False
        name, text = path.rpartition("/")[2], byte_text(raw_bytes(path))
        return self._allows(name, text, None, is_folder=is_folder, chosen=chosen)

    def chosen_by(self, path: str) -> frozenset[OptionKind] | None:
        """Return the kinds of options, `glob` and `type`, that choose a file by its path; `None` if one excludes it."""
        rule = self._globs.match(byte_text(raw_bytes(path)), is_folder=False)
        typed = self._type_of(path.rpartition("/")[2])
        if (rule is not None and not rule.ignores) or (rule is None and typed is False):
            return None
        kinds: dict[OptionKind, bool] = {"glob": rule is not None, "type": typed is True}
        return frozenset(kind for kind, is_given in kinds.items() if is_given)

    def _allows(
        self,
        name: str,
        text: str,
        ignoring: IgnoreRule | None,
        *,
        is_folder: bool,
        chosen: Container[OptionKind] = _NONE,
    ) -> bool:
        """Return False if a glob, the rule of an ignore file or a type excludes an entry, or if it is hidden."""
        rule = self._globs.match(text, is_folder=is_folder)
        if rule is not None:
            return rule.ignores
        if self._chooses and not is_folder and "glob" not in chosen:
            return False
        if ignoring is not None and ignoring.ignores:
            return False
        typed = None if is_folder else self._type_of(name)
        if typed is False or (
            typed is None and not is_folder and not all(negated for negated, _ in self._types) and "type" not in chosen
        ):
            return False
        shown = self._options.get("hidden", True) or not name.startswith(".")
        return bool(shown or ignoring is not None or typed)

    def _type_of(self, name: str) -> bool | None:
        """Return True if a type of `type` chooses a name, False if one of `type_not` excludes it; else `None`."""
        text = byte_text(raw_bytes(name))
        for negated, rules in reversed(self._types):
            if rules.match(text, is_folder=False) is not None:
                return not negated
        return None

    def _is_entered(self, full: str, device: int | None) -> bool:
        """Return True if rg reads an entry of this kind, or if it is not on the disk."""
        try:
            info = os.lstat(full) if self._options.get("follow", True) is False else os.stat(full)
        except OSError:
            return not os.path.lexists(full)
        if not stat.S_ISDIR(info.st_mode):
            return False
        return not self._given("one_file_system") or info.st_dev == device

    def _stack_at(self, real: str) -> IgnoreStack:
        """Return the ignore files of a searched directory, and of those above it, if the options let them apply."""
        stack = IgnoreStack(
            kinds=self._kinds,
            ignore_case=self._options.get("ignore_file_case_insensitive", False),
            require_git=not self._options.get("no_require_git", True),
        )
        no_parents = self._given("no_ignore", "no_ignore_parent")
        # With `no_ignore_parent`, the parents are only needed to tell if this is a repository.
        for parent in reversed(PurePath(real).parents) if stack.require_git or not no_parents else ():
            stack = stack.entered("", str(parent))
        return (stack.without_levels() if no_parents else stack).entered("", real)

    def _given(self, *names: str) -> bool:
        return any(self._options.get(name) for name in names)

    @cached_property
    def _kinds(self) -> frozenset[str]:
        rgs, dot, git, exclude = KINDS
        kinds: set[str] = set()
        if not self._given("no_ignore", "no_ignore_dot"):
            kinds |= {rgs, dot}
        if not self._given("no_ignore", "no_ignore_vcs"):
            kinds |= {git} if self._given("no_ignore_exclude") else {git, exclude}
        return frozenset(kinds)

    @cached_property
    def _global_rules(self) -> Rules:
        if self._given("no_ignore", "no_ignore_vcs", "no_ignore_global"):
            return Rules(())
        path = os.path.join(self.cwd, global_ignore_files()[0])
        return read_rules(path, ignore_case=self._options.get("ignore_file_case_insensitive", False))

    @cached_property
    def _explicit_files(self) -> tuple[str, ...]:
        """Absolute paths of `ignore_file`; the last path takes precedence. Empty with `no_ignore_files`."""
        if self._given("no_ignore_files"):
            return ()
        return tuple(os.path.join(self.cwd, path) for path in _listed(self._options.get("ignore_file")))

    @cached_property
    def _explicit_rules(self) -> tuple[Rules, ...]:
        return tuple(read_rules(path) for path in reversed(self._explicit_files))


def _listed(value: Paths | None) -> list[str]:
    """Return the values of an option that takes one string or several; empty for `None`."""
    if value is None:
        return []
    several: Sequence[StrPath] = (value,) if isinstance(value, (str, os.PathLike)) else value
    return [os.fspath(one) for one in several]


def _glob_rules(options: Mapping[str, Any]) -> Iterator[IgnoreRule]:
    """Yield the rules of globs in the order of rg's command line; `IgnoreRule.file` is the name of the option."""
    if options.get("hidden") is False and options.get("type"):
        yield from _glob_rule("hidden", _HIDDEN_GLOB, ignore_case=False)
    for option in ("glob", "iglob"):
        ignore_case = option == "iglob" or bool(options.get("glob_case_insensitive"))
        for glob in _listed(options.get(option)):
            yield from _glob_rule(option, glob, ignore_case=ignore_case)
        if not options.get("include_git") and (option == "glob" or options.get("iglob")):
            for glob in EXCLUDED:
                yield from _glob_rule("include_git", f"!{glob}", ignore_case=ignore_case)


def _glob_rule(option: str, glob: str, *, ignore_case: bool) -> Iterator[IgnoreRule]:
    try:
        rule = IgnoreRule.parse(glob, allow_unclosed=False, ignore_case=ignore_case, file=option)
    except ValueError as error:
        raise GlobError(f"error parsing glob '{glob}': {error}") from error
    if rule is not None:
        yield rule


def _type_rules(options: Mapping[str, Any], types: Mapping[str, Sequence[str]]) -> Iterator[tuple[bool, Rules]]:
    for option in ("type", "type_not"):
        for name in _listed(options.get(option)):
            for one in types if name == "all" else [name]:
                globs = [glob_pattern(glob, include=True, allow_unclosed=False) for glob in types.get(one, ())]
                rules = Rules(IgnoreRule(pattern=glob, glob="", only_folders=False) for glob in globs)
                yield option == "type_not", rules

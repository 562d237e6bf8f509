"""Decide, as rg does, which entries of a directory are searched, and why the other entries are not searched.

The checks have the same order as in rg 15.2 (`generate_work()` in `crates/ignore/src/walk.rs`, `matched()` in
`dir.rs`): links, globs, ignore files, types, hidden files; then file system and depth for a directory, size and kind
for a file. A file or directory that `paths` names is not checked.
"""

import os
import stat
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

from ripwrap._ignore.git import global_ignore_files
from ripwrap._ignore.globs import byte_text, glob_pattern
from ripwrap._ignore.rules import IGNORE_NAMES, KINDS, IgnoreRule, IgnoreStack, Rules, is_link, match_text, read_rules
from ripwrap._text import plural, raw_bytes
from ripwrap.errors import GlobError, Hint
from ripwrap.options import EXCLUDED, Paths, StrPath, size_in_bytes

CauseKind: TypeAlias = Literal[
    "ignored", "hidden", "glob", "type", "too_large", "link", "special", "max_depth", "one_file_system", "unreadable"
]

_HIDDEN_GLOB = "!.*"


@dataclass(frozen=True, slots=True)
class Cause:
    """Reason why rg leaves out a file or directory."""

    kind: CauseKind
    hint: Hint | None = None
    rule: IgnoreRule | None = None
    detail: str = ""


_TOO_DEEP = Cause("max_depth", Hint("max_depth", kind="omit"))


@dataclass(frozen=True, slots=True)
class Folder:
    """Directory that rg reads."""

    path: str
    real: str
    depth: int
    stack: IgnoreStack
    device: int | None
    above: tuple[tuple[int, int], ...]

    def join(self, name: str) -> str:
        """Return the path of an entry, as rg prints it."""
        return os.path.join(self.path, name)


class Selection:
    """Rules by which rg selects files, for the options of a search."""

    def __init__(
        self, cwd: str, options: Mapping[str, Any], types: Mapping[str, Sequence[str]], *, inside: str = ""
    ) -> None:
        """Prepare the rules."""
        self.cwd = cwd
        self.follow: bool = options.get("follow", True)
        self._options = options
        self._inside = inside
        self._hidden: bool = options.get("hidden", True)
        self._max_depth: int | None = options.get("max_depth")
        self._max_size = size_in_bytes(options.get("max_filesize"))
        self._globs = Rules(_glob_rules(options))
        self._chooses = any(rule.ignores for rule in self._globs.rules)
        self._types = list(_type_rules(options, types))

    def root(self, path: str, *, is_new: bool = False) -> Folder:
        """Return a searched directory as a `Folder`; ignore files above it apply unless an option turns them off."""
        path = "" if path == os.curdir else path
        full = os.path.join(self.cwd, path)
        real, info = os.path.realpath(full), None if is_new and not os.path.lexists(full) else os.stat(full)
        stack = IgnoreStack(
            kinds=self._kinds,
            ignore_case=self._options.get("ignore_file_case_insensitive", False),
            require_git=not self._options.get("no_require_git", True),
        )
        no_parents = self._given("no_ignore", "no_ignore_parent")
        # With `no_ignore_parent`, the parents are only needed to tell if this is a repository.
        for parent in _parents(real) if stack.require_git or not no_parents else ():
            stack = stack.entered(self._inside, parent)
        if no_parents:
            stack = stack.without_levels()
        device = info.st_dev if info and self._given("one_file_system") else None
        above: tuple[tuple[int, int], ...] = ()
        if info and self.follow:
            # A link to a directory that holds the searched one is not entered (`ripwrap._ripgrep.upward`).
            holders = map(os.stat, (*_parents(real), *_parents(self.cwd), self.cwd))
            above = tuple((one.st_dev, one.st_ino) for one in (info, *holders))
        return Folder(path, real, 0, stack.entered(self._inside, real), device, above)

    def enter(self, folder: Folder, name: str, names: Container[str] = IGNORE_NAMES) -> Folder:
        """Return the `Folder` of a subdirectory; `names` are the names in the subdirectory, if known."""
        path, real = folder.join(name), os.path.join(folder.real, name)
        above = folder.above
        if self.follow:
            info = os.stat(os.path.join(self.cwd, path))
            above = ((info.st_dev, info.st_ino), *above)
        stack = folder.stack.entered(self._inside, real, names)
        return Folder(path, real, folder.depth + 1, stack, folder.device, above)

    def check(self, folder: Folder, name: str) -> tuple[bool, Cause | None]:
        """Return a pair: True for a directory, and the reason why rg excludes the entry (`None` if rg searches it).

        A link counts as a directory only if it is followed and leads to a directory that does not contain the link.
        """
        path = folder.join(name)
        try:
            info = os.lstat(os.path.join(self.cwd, path))
            if is_link(info) and self.follow:
                info = os.stat(os.path.join(self.cwd, path))
                if stat.S_ISDIR(info.st_mode) and (info.st_dev, info.st_ino) in folder.above:
                    return False, Cause("unreadable", detail="a link to a directory above it")
        except OSError as error:
            return False, Cause("unreadable", detail=error.strerror or type(error).__name__)
        linked = is_link(info)
        is_folder = stat.S_ISDIR(info.st_mode) and not linked
        if folder.depth == self._max_depth:  # `max_depth` is 0: rg does not read the entries of the searched path
            return is_folder, _TOO_DEEP
        cause = self._by_rules(folder, name, info, is_folder=is_folder)
        if cause is None and is_folder:
            if folder.device not in (None, info.st_dev):
                cause = Cause("one_file_system", Hint("one_file_system", value=False))
            elif folder.depth + 1 == self._max_depth:
                cause = _TOO_DEEP
        elif cause is None:
            cause = self._by_kind(info, linked=linked)
        return is_folder, cause

    def find_cause(self, searched: str, parts: Sequence[str]) -> tuple[str | None, Cause | None]:
        """Return why a search does not read a file: the excluded directory above the file, and the cause.

        The directory is `None` if the file itself is excluded. Both are `None` if a search reads the file.
        """
        if not parts:
            is_folder = os.path.isdir(os.path.join(self.cwd, searched))
            return None, _TOO_DEEP if is_folder and self._max_depth == 0 else None
        folder = self.root(searched)
        for number, name in enumerate(parts, 1):
            _, cause = self.check(folder, name)
            if cause is not None:
                return None if number == len(parts) else folder.join(name), cause
            if number < len(parts):
                folder = self.enter(folder, name)
        return None, None

    def allows_new(self, searched: str, parts: Sequence[str]) -> bool:
        """Return True if a search would read a file that does not exist yet; directories above the file may exist."""
        folder = self.root(searched, is_new=True)
        for number, name in enumerate(parts, 1):
            path = folder.join(name)
            if os.path.isdir(os.path.join(self.cwd, path)) and number < len(parts):
                if self.check(folder, name)[1] is not None:
                    return False
                folder = self.enter(folder, name)
                continue
            is_folder = number < len(parts)
            if folder.depth == self._max_depth or (is_folder and folder.depth + 1 == self._max_depth):
                return False
            text = match_text(self._relative(path))
            ignoring = partial(self._ignoring, folder, name, text, is_folder=is_folder)
            if self._by_names(name, text, ignoring, partial(name.startswith, "."), is_folder=is_folder) is not None:
                return False
            real = os.path.join(folder.real, name)
            stack = folder.stack.entered(self._inside, real, ())
            folder = Folder(path, real, folder.depth + 1, stack, folder.device, folder.above)
        return True

    def allows_name(
        self, path: str, depth: int, *, is_folder: bool, chosen: Container[CauseKind] = frozenset[CauseKind]()
    ) -> bool:
        """Return True if globs, types, depth and options about hidden files allow a path; ignore files do not count."""
        if self._max_depth is not None and depth + is_folder > self._max_depth:
            return False
        name, text = path.rpartition("/")[2], byte_text(raw_bytes(path))
        hidden = partial(name.startswith, ".")
        return self._by_names(name, text, None, hidden, is_folder=is_folder, chosen=chosen) is None

    def chosen_by(self, path: str) -> frozenset[CauseKind] | None:
        """Return the kinds of options, `glob` and `type`, that choose a file by its path; `None` if one excludes it."""
        rule = self._globs.match(byte_text(raw_bytes(path)), is_folder=False)
        typed = self._by_type(path.rpartition("/")[2])
        if (rule is not None and not rule.ignores) or (rule is None and _excludes(typed)):
            return None
        kinds: dict[CauseKind, bool] = {"glob": rule is not None, "type": typed is True}
        return frozenset(kind for kind, is_given in kinds.items() if is_given)

    def _by_rules(self, folder: Folder, name: str, info: os.stat_result, *, is_folder: bool) -> Cause | None:
        text = match_text(self._relative(folder.join(name)))

        def ignoring() -> IgnoreRule | None:
            return self._ignoring(folder, name, text, is_folder=is_folder)

        return self._by_names(name, text, ignoring, lambda: is_hidden(name, info), is_folder=is_folder)

    def _by_names(
        self,
        name: str,
        text: str,
        ignoring: Callable[[], IgnoreRule | None] | None,
        hidden: Callable[[], bool],
        *,
        is_folder: bool,
        chosen: Container[CauseKind] = frozenset[CauseKind](),
    ) -> Cause | None:
        """Return the cause if a glob, an ignore file or a type excludes an entry, or if it is hidden; else `None`."""
        rule = self._globs.match(text, is_folder=is_folder)
        if rule is not None:
            return None if rule.ignores else _by_glob(rule)
        if self._chooses and not is_folder and "glob" not in chosen:
            return Cause("glob", Hint(next(rule.file for rule in self._globs.rules if rule.ignores), kind="omit"))
        rule = ignoring and ignoring()
        if rule is not None and rule.ignores:
            option = "no_ignore_files" if rule.file in self._explicit_files else "no_ignore"
            return Cause("ignored", Hint(option, value=True), rule)
        typed = None if is_folder else self._by_type(name)
        if isinstance(typed, Cause) and (_excludes(typed) or "type" not in chosen):
            return typed
        if rule is None and typed is None and not self._hidden and hidden():
            return Cause("hidden", Hint("hidden", value=True))
        return None

    def _by_kind(self, info: os.stat_result, *, linked: bool) -> Cause | None:
        if self._max_size is not None and info.st_size > self._max_size:
            return Cause("too_large", Hint("max_filesize", kind="omit"), detail=plural(info.st_size, "byte"))
        if linked:
            return Cause("link", Hint("follow", value=True))
        return None if stat.S_ISREG(info.st_mode) else Cause("special")

    def _ignoring(self, folder: Folder, name: str, text: str, *, is_folder: bool) -> IgnoreRule | None:
        """Return the rule that decides about an entry, out of all ignore files; `None` if no rule matches.

        Rules of git's global ignore file and of `ignore_file` are matched with `text`, the relative path.
        """
        stack = folder.stack
        rule = stack.match(match_text(os.path.join(folder.real, name)), is_folder=is_folder)
        if rule is None and stack.git_counts:
            rule = self._global_rules.match(text, is_folder=is_folder)
        for rules in self._explicit_rules:
            rule = rule or rules.match(text, is_folder=is_folder)
        return rule

    def _by_type(self, name: str) -> Cause | bool | None:
        """Return the cause if a file's type excludes it, True if the type selects it, or `None` if no type decides."""
        text = byte_text(raw_bytes(name))
        for type_name, negated, rules in reversed(self._types):
            if rules.match(text, is_folder=False) is not None:
                hint = Hint("type_not", kind="omit")
                return Cause("type", hint, detail=f"of type {type_name}") if negated else True
        chosen = dict.fromkeys(type_name for type_name, negated, _ in self._types if not negated)
        return Cause("type", Hint("type", kind="omit"), detail=f"not of type {' or '.join(chosen)}") if chosen else None

    def _relative(self, path: str) -> str:
        """Return a path relative to the working directory of rg; return a path outside of that directory unchanged."""
        return path.removeprefix(os.path.join(self.cwd, ""))

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


def _excludes(typed: Cause | bool | None) -> bool:
    """Return True if a type of `type_not` excludes a file, and not only no type of `type` chooses it."""
    return isinstance(typed, Cause) and typed.hint is not None and typed.hint.option == "type_not"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """File that rg does not search, or directory whose files rg does not search."""

    path: str
    matched: str
    cause: Cause | None


def walk_left_out(
    selection: Selection,
    paths: Sequence[str],
    is_searched: Callable[[str], bool],
    stop: Callable[[], bool],
    *,
    whole: bool,
) -> Iterator[LeftOut]:
    """Yield the files that rg does not search, although they are in the searched paths.

    A directory that cannot be read is skipped. With `follow`, links are followed in excluded directories, too.
    """
    # This uses a stack instead of recursion, because a tree may be deeper than Python's recursion limit. Each item has
    # the parent directory (`None` for a searched path), the name of the directory to read, and the reason if the
    # directory is left out.
    waiting: list[tuple[Folder | None, str, LeftOut | None]] = []
    for path in paths:
        if os.path.isdir(os.path.join(selection.cwd, path)):
            waiting.append((None, path, None))
        elif os.path.lexists(os.path.join(selection.cwd, path)) and not is_searched(path):
            yield LeftOut(path, path, None)
    while waiting and not stop():
        above, name, inside = waiting.pop()
        try:
            folder, names = _read_folder(selection, above, name, with_rules=inside is None)
        except OSError:
            continue
        for name in names:
            if is_searched(folder.join(name)):
                continue
            is_folder, left_out = _judge(selection, folder, name, inside)
            if is_folder and (whole or not left_out.cause):
                waiting.append((folder, name, left_out if left_out.cause else None))
            else:
                yield left_out


def _read_folder(
    selection: Selection, above: Folder | None, name: str, *, with_rules: bool
) -> tuple[Folder, Sequence[str]]:
    """Return a directory and the names in it.

    The ignore files in the directory are read if `with_rules` is True or the directory is a searched path (`above` is
    `None`).
    """
    if above is None:
        folder = selection.root(name)
        return folder, os.listdir(os.path.join(selection.cwd, folder.path))
    names = os.listdir(os.path.join(selection.cwd, above.join(name)))
    return selection.enter(above, name, names if with_rules else ()), names


def _judge(selection: Selection, folder: Folder, name: str, inside: LeftOut | None) -> tuple[bool, LeftOut]:
    """Return a pair: True for a directory to walk, and the entry with the reason (if any) why rg does not search it."""
    path = folder.join(name)
    if inside is not None:
        return _is_entered(selection, folder, path), LeftOut(path, inside.matched, inside.cause)
    is_folder, cause = selection.check(folder, name)
    return is_folder, LeftOut(path, path, cause)


def _is_entered(selection: Selection, folder: Folder, path: str) -> bool:
    """Return True if an entry of an excluded directory is a directory to walk; a link counts only if it is followed."""
    full = os.path.join(selection.cwd, path)
    try:
        info = os.lstat(full)
        if is_link(info) and selection.follow:
            info = os.stat(full)
            return stat.S_ISDIR(info.st_mode) and (info.st_dev, info.st_ino) not in folder.above
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and not is_link(info)


def is_hidden(name: str, info: os.stat_result) -> bool:
    """Return True if rg treats an entry as hidden: its name begins with a dot, or it has Windows' hidden attribute."""
    if sys.platform == "win32" and info.st_file_attributes & stat.FILE_ATTRIBUTE_HIDDEN:
        return True
    return name.startswith(".")


def _parents(path: str) -> list[str]:
    """Return the directories above an absolute path, the topmost first."""
    return [*map(str, PurePath(path).parents)][::-1]


def _listed(value: Paths | None) -> list[str]:
    """Return the values of an option that takes one string or several; empty for `None`."""
    if value is None:
        return []
    several: Sequence[StrPath] = (value,) if isinstance(value, (str, os.PathLike)) else value
    return [os.fspath(one) for one in several]


def _by_glob(rule: IgnoreRule) -> Cause:
    """Return the cause for an entry that a glob excludes; the cause depends on the option that the glob comes from."""
    match rule.file:
        case "hidden":
            return Cause("hidden", Hint("hidden", value=True))
        case "include_git":
            return Cause("glob", Hint("include_git", value=True), rule)
        case option:
            return Cause("glob", Hint(option, kind="omit"), rule)


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


def _type_rules(options: Mapping[str, Any], types: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, bool, Rules]]:
    for option in ("type", "type_not"):
        for name in _listed(options.get(option)):
            for one in types if name == "all" else [name]:
                globs = [glob_pattern(glob, include=True, allow_unclosed=False) for glob in types.get(one, ())]
                yield (
                    name,
                    option == "type_not",
                    Rules(IgnoreRule(pattern=glob, glob="", only_folders=False) for glob in globs),
                )

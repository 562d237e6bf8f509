"""Decide which items are searched: things with a name that are no files on the disk, such as members of an archive.

The checks have the same order as in rg 15.2 (`matched()` in `crates/ignore/src/dir.rs`): globs, types, hidden files.
Which files on the disk are left out, rg says itself (`ripwrap._ripgrep.debug_log`).
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ripwrap._ignore.globs import byte_text, glob_pattern
from ripwrap._ignore.rules import IgnoreRule, Rules
from ripwrap._text import raw_bytes
from ripwrap.errors import GlobError
from ripwrap.options import EXCLUDED, Paths, StrPath

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
        self,
        parts: Sequence[str],
        root: int,
        chosen: frozenset[OptionKind] = frozenset(),
        *,
        is_folder: bool,
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


def _listed(value: Paths | None) -> list[str]:
    """Return the values of an option that takes one string or several; empty for `None`."""
    if value is None:
        return []
    several: Sequence[StrPath] = (value,) if isinstance(value, (str, os.PathLike)) else value
    return [os.fspath(one) for one in several]


def _glob_rules(options: Mapping[str, Any]) -> Iterator[IgnoreRule]:
    """Yield the rules of globs in the order of rg's command line."""
    if options.get("hidden") is False and options.get("type"):
        yield from _glob_rule("!.*", ignore_case=False)
    for option in ("glob", "iglob"):
        ignore_case = option == "iglob" or bool(options.get("glob_case_insensitive"))
        for glob in _listed(options.get(option)):
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
        for name in _listed(options.get(option)):
            for one in types if name == "all" else [name]:
                globs = [glob_pattern(glob, include=True, allow_unclosed=False) for glob in types.get(one, ())]
                rules = Rules(IgnoreRule(pattern=glob, glob="", only_folders=False) for glob in globs)
                yield option == "type_not", rules

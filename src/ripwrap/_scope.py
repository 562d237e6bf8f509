"""Where and how a tool looks: its place in the sandbox, the options that it has there, and which files it wants."""

import os
import re
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from ripwrap._arguments import comma_separated
from ripwrap._rails import home, mounted, rails
from ripwrap._sandbox import Place, Sandbox
from ripwrap._text import shown
from ripwrap.errors import SearchError
from ripwrap.options import FileOptions

_EVERYTHING = frozenset({"", "*", "**", "**/*", "*.*"})
_TYPE = "ripwrap"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a workspace was made with; see `Workspace`."""

    sandbox: Sandbox
    follow: bool
    outer_ignore: bool
    guard: bool
    timeout: float | None
    max_chars: int
    max_line: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Where and how a tool looks.

    Attributes:
        place: Where.
        options: What rg is told, besides what the tool was asked for.
        timeout: After how many seconds rg is ended.
        notes: What is to be said of it.
        allowed: Whether a path that rg names may be shown; `None` if any may.
    """

    place: Place
    options: FileOptions
    timeout: float | None
    notes: tuple[str, ...] = ()
    allowed: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which files of a place are wanted.

    Attributes:
        options: What rg is told for it.
        overrides: Whether that would bring back files that ignore files leave out, so that what rg names has to be
            compared with what there is to see.
        names: The arguments that a caller leaves out to get all files.
    """

    options: FileOptions = field(default_factory=FileOptions)
    overrides: bool = False
    names: tuple[str, ...] = ()


@contextmanager
def scope(settings: Settings, path: str, *, hidden: bool, ignored: bool) -> Generator[Scope]:
    """Where a path leads, and how to look there.

    Rules for ignoring files come from inside of the roots only, unless `outer_ignore` was set; rg looks at those above
    a root nevertheless, but they do not count. Those between a root and `path` are handed to it in a file of ours.

    Raises:
        AccessDeniedError, FileNotFoundError, ValueError: As `Sandbox.place()`.
    """
    place = settings.sandbox.place(path)
    options: FileOptions = {"hidden": hidden, "follow": settings.follow, "no_ignore": ignored}
    found = Scope(place, options, settings.timeout)
    if settings.follow:
        note = "Links were followed; what lies outside of the roots is left out."
        found = replace(found, notes=(note,), allowed=partial(_holds, settings.sandbox, place.cwd))
    if settings.guard:
        found = _railed(found)
    if settings.outer_ignore:
        yield found
        return
    options |= {"no_ignore_parent": True, "no_ignore_global": True}
    rules = "" if ignored or place.several else _rules(place)
    if not rules:
        yield found
        return
    try:
        temporary = tempfile.TemporaryDirectory(prefix="ripwrap-")
    except OSError as error:
        raise SearchError(f"ignore rules need a temporary file: {error}; set TMPDIR to a folder to write to") from error
    with temporary as folder:
        file = os.path.join(folder, "ignore")
        with open(file, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as written:
            written.write(rules)
        options["ignore_file"] = file
        yield found


def _holds(sandbox: Sandbox, cwd: str, path: str) -> bool:
    return sandbox.holds(os.path.join(cwd, path))


def _rules(place: Place) -> str:
    if place.paths[0] == os.curdir:
        return ""
    from ripwrap._ignore import outer_rules  # pathspec, only now

    return outer_rules(place.cwd, place.paths[0])


def _railed(found: Scope) -> Scope:
    where, mounts = home(), mounted()
    for path in found.place.paths:
        bounds = rails(os.path.normpath(os.path.join(found.place.cwd, path)), where, mounts)
        if bounds is not None:
            found.options.update({"one_file_system": True, "max_depth": bounds.max_depth})
            timeout = bounds.timeout if found.timeout is None else min(bounds.timeout, found.timeout)
            return replace(found, timeout=timeout, notes=(*found.notes, bounds.note))
    return found


def wanted(place: Place, file_pattern: str, file_type: str = "") -> Wanted:
    """Which files a glob, or several with commas between them, and a type mean.

    A glob without a slash is about names at any depth; one with a slash starts from `place`. Neither brings back what
    is ignored or hidden, as rg's own `--glob` does (ripgrep#865): the first kind is made a file type, which counts
    after ignore files, and the second leaves that to be sorted out (`overrides`).
    """
    globs = [_plain(one) for one in comma_separated(file_pattern)]
    without = [one for one in globs if one.startswith("!")]
    only = [one for one in globs if not one.startswith("!")]
    if not _EVERYTHING.isdisjoint(only):
        only = []
    options: FileOptions = {}
    names = [name for name, given in (("file_pattern", only or without), ("file_type", file_type)) if given]
    if file_type:
        options["type"] = file_type
    by_name = not file_type and not any("/" in one or ":" in one for one in only)  # a colon would end a type's name
    if only and by_name:
        options |= {"type_add": [f"{_TYPE}:{one}" for one in only], "type": _TYPE}
        return Wanted(_excluding(options, place, without), names=tuple(names))
    options["glob"] = [found for one in only for found in _anchored(one, place)]
    return Wanted(_excluding(options, place, without), overrides=bool(only), names=tuple(names))


def left_out(place: Place, globs: Sequence[str]) -> FileOptions:
    """The options that leave out what globs match; those with a slash start from `place`."""
    return _excluding({}, place, [_plain(f"!{one.removeprefix('!')}") for one in globs])


def visible(found: Scope, files: Wanted) -> FileOptions:
    """The options that list what there is to see of the wanted types, ignore files respected."""
    kept = {name: value for name, value in files.options.items() if name in ("type", "type_add")}
    return cast("FileOptions", {**found.options, **kept})


def _excluding(options: FileOptions, place: Place, without: list[str]) -> FileOptions:
    globs = [f"!{found}" for one in without for found in _anchored(one[1:], place)]
    options["glob"] = [*options.get("glob", ()), *globs]
    return options if options["glob"] else cast("FileOptions", {k: v for k, v in options.items() if k != "glob"})


def _anchored(glob: str, place: Place) -> list[str]:
    """A glob that starts from what is searched, as one that starts from where rg runs."""
    if glob.startswith(place.cwd.rstrip(os.sep) + os.sep):  # as an answer with several roots calls it
        return [f"/{glob[len(place.cwd) :].lstrip(os.sep)}"]
    if ".." in glob.split("/"):
        raise ValueError(f"{shown(glob)} would lead out of what is searched; name a directory as path instead")
    if "/" not in glob.rstrip("/"):
        return [glob]
    starts = ("" if path == os.curdir else f"{escaped(path)}/" for path in place.paths)
    return [f"/{start}{glob.lstrip('/')}" for start in starts]


def escaped(path: str) -> str:
    """A path as a glob that matches it alone."""
    return re.sub(r"([\\*?\[\]{}!])", r"\\\1", path) if os.sep == "/" else re.sub(r"([*?\[{])", r"[\1]", path)


def _plain(glob: str) -> str:
    bang, glob = ("!", glob[1:]) if glob.startswith("!") else ("", glob)
    glob = glob.removeprefix("./")
    while glob.startswith("**/") and "/" not in glob[3:]:
        glob = glob[3:]  # rg's globs without a slash are about any depth already
    if glob.endswith("/") and not bang:  # what is in a directory; to leave one out, rg takes the slash as it is
        return f"{glob}**" if "/" in glob[:-1] else f"**/{glob}**"
    return bang + glob

"""Scope of a tool call: the files and directories that it searches, and the options of rg for this search.

Limits for searches in directories where a search may take forever: `/`, `$HOME`, `/proc`, network file systems.

Without limits, agents hang in `$HOME` (opencode#22139), in `/proc` and `/sys` (ripgrep#311, #916), and on network
mounts, where each access to a file takes a round trip.
"""

import os
import re
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeAlias, cast

from ripwrap._ripgrep.command import check_text, files_query
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.page_collector import NO_LIMIT, ListingCollector
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query
from ripwrap._system.subprocess import TemporaryFolder
from ripwrap._system.windows import IS_WINDOWS
from ripwrap._text import path_from_shown, plural, shown, shown_path
from ripwrap.errors import SearchError
from ripwrap.options import FileOptions, ShowDenied
from ripwrap.sources.base import SEPARATOR
from ripwrap.workspace.arguments import MAX_QUOTED_CHARS, comma_separated
from ripwrap.workspace.deny import DeniedPaths, escaped
from ripwrap.workspace.redact import Redaction, Redactor, key_lines
from ripwrap.workspace.results import shown_start
from ripwrap.workspace.sandbox import RootLocation, Sandbox

if TYPE_CHECKING:
    from ripwrap.sources.git import RevisionTree

SYSTEM_DIRECTORIES = ("/proc", "/sys")
DEVICE_DIRECTORIES = ("/dev", "/run")  # without their subdirectories, such as /dev/shm/project and /run/media/disk
NETWORK_FILE_SYSTEMS = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|smb3|afs|afpfs|9p|ceph|lustre|gpfs|beegfs|glusterfs|ncpfs|coda|davfs|webdav"
    r"|fuse\.(?:sshfs|s3fs|gcsfuse|rclone|glusterfs|davfs2?|ceph|blobfuse2?|goofys|juicefs)"
)
ESCAPED_BYTE = re.compile(r"\\([0-7]{3})")  # `/proc/self/mountinfo` writes a space as \040 (proc_pid_mountinfo(5))


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """Limits for a search in a directory where a search may take forever."""

    max_depth: int
    timeout: float
    place: str

    @property
    def note(self) -> str:
        """Sentence that names the limits, to add to an answer."""
        return (
            f"This is {self.place}, so the search is limited to {self.max_depth} levels, one file system and "
            f"{self.timeout:g} seconds; pass a directory in it as path to search deeper."
        )


def guard_limits(path: str, home: str, mounts: str) -> GuardLimits | None:
    """Return the limits for a search in a real path, or None for a usual directory; no I/O."""
    here = PurePath(path)
    if here == PurePath(here.anchor):
        return GuardLimits(4, 5.0, "the whole file system")
    if path in DEVICE_DIRECTORIES or any(here.is_relative_to(system) for system in SYSTEM_DIRECTORIES):
        return GuardLimits(4, 5.0, f"{path}, a system directory")
    if PurePath(home).is_relative_to(here):
        return GuardLimits(6, 10.0, "a home directory or a directory above one")
    deepest, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = PurePath(ESCAPED_BYTE.sub(lambda octal: chr(int(octal[1], 8)), fields[4]))
        if here.is_relative_to(point) and len(point.parts) >= deepest:
            deepest, kind = len(point.parts), right.split(" ")[0]
    remote = NETWORK_FILE_SYSTEMS.fullmatch(kind)
    return GuardLimits(16, 10.0, f"a network file system ({kind})") if remote else None


def mounted() -> str:
    """Return Linux's list of mounts, or an empty string on other systems."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def home() -> str:
    """Return the real path of the user's home directory."""
    return os.path.realpath(os.path.expanduser("~"))


ReportProgress: TypeAlias = Callable[[int], None]
PathFilter: TypeAlias = Callable[[str], bool]


FOLLOW_NOTE = "Links were followed; files outside of the roots are left out."
HIDDEN_RULES = "*\n!*/\n!.*\n!**/.*/**\n"
"""Ignore rules that exclude all files except hidden files and files in hidden directories.

rg gives `--ignore-file` the lowest precedence, so files that other ignore files exclude stay excluded.
"""

MATCH_ALL_GLOBS = frozenset({"", "*", "**", "**/*", "*.*"})
LEFT_OUT = ("hidden", "no_ignore")
"""Options of rg that include the files that an answer usually leaves out."""

TYPE_NAME = "ripwrap"
"""Name of the file type to which the globs of a call are added."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a workspace; see `Workspace`."""

    sandbox: Sandbox
    follow: bool
    outer_ignore: bool
    guard: bool
    timeout: float | None
    max_chars: int
    max_line: int
    anchors: bool = False
    show_denied: ShowDenied = "hide"
    redact: Redaction | None = None
    write: bool = False
    repositories: tuple[str, ...] = ()

    def redactor(self, location: RootLocation, path: str, check: Callable[[], object] | None = None) -> Redactor | None:
        """Read a file, and return the function that masks the secrets in its lines; `None` if secrets are shown."""
        if not self.redact:
            return None
        if location.revision is not None:
            with location.revision.open(path, self.timeout) as file:
                return partial(self.redact, keys=key_lines(cast("BinaryIO", file), check=check), check=check)
        relative = os.path.relpath(os.path.join(location.cwd, path), location.cwd)
        return self.redact.of_file(location.cwd, relative, follow=self.follow, roots=location.paths, check=check)


@dataclass(frozen=True, slots=True)
class Scope:
    """Location of a tool call, and the options of rg that are the same for all tools."""

    location: RootLocation
    options: FileOptions
    timeout: float | None
    notes: tuple[str, ...] = ()
    allowed: PathFilter | None = None
    denied: DeniedPaths | None = None


@dataclass(frozen=True, slots=True)
class FileFilter:
    """Files that the caller asks for, by name or type."""

    options: FileOptions = field(default_factory=FileOptions)
    overrides: bool = False
    names: tuple[str, ...] = ()


class PatternArguments(Protocol):
    """Arguments of a tool that say how a pattern is matched."""

    @property
    def pattern(self) -> str: ...  # noqa: D102
    @property
    def case_insensitive(self) -> bool: ...  # noqa: D102
    @property
    def fixed_strings(self) -> bool: ...  # noqa: D102
    @property
    def multiline(self) -> bool: ...  # noqa: D102


def pattern_options(arguments: PatternArguments) -> dict[str, object]:
    """Return the options of rg that say how the pattern of a call is matched."""
    pattern = arguments.pattern
    options: dict[str, object] = {
        "ignore_case": arguments.case_insensitive,
        "fixed_strings": arguments.fixed_strings,
        "multiline": arguments.multiline,
        "multiline_dotall": arguments.multiline,  # as in the tools that models are trained on
        # In files with CRLF, `$` matches only with --crlf. But with --crlf alone, rg refuses a pattern with `\r`.
        "crlf": "$" in pattern
        and not arguments.fixed_strings
        and (arguments.multiline or ("\r" not in pattern and "\\r" not in pattern)),
    }
    return {name: value for name, value in options.items() if value}


class LocatedArguments(Protocol):
    """Arguments of a tool that say where it looks."""

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def include_hidden(self) -> bool: ...  # noqa: D102
    @property
    def include_ignored(self) -> bool: ...  # noqa: D102
    @property
    def rev(self) -> str: ...  # noqa: D102


def scope_of(run: Runner, settings: Settings, arguments: LocatedArguments) -> AbstractAsyncContextManager[Scope]:
    """Return the scope of a call, as `open_scope()` yields it."""
    hidden, ignored = arguments.include_hidden, arguments.include_ignored
    return open_scope(run, settings, arguments.path, hidden=hidden, ignored=ignored, rev=arguments.rev)


@asynccontextmanager
async def open_scope(
    run: Runner, settings: Settings, path: str, *, hidden: bool, ignored: bool, rev: str = ""
) -> AsyncGenerator[Scope]:
    """Yield the scope of a call: the location of `path`, and the options of rg for a search in this location.

    Ignore files are read in a worker thread. Without `outer_ignore`, ignore files above a root must have no effect. So
    an option tells rg to disregard all ignore files above `path`. The rules of the ignore files between a root and
    `path` are passed to rg in a temporary file.
    """
    scope, rules = await run.call(lambda: _scope(settings, path, hidden=hidden, ignored=ignored, rev=rev))
    if not rules:
        yield scope
        return
    with rules_file(rules) as file:
        scope.options["ignore_file"] = file
        yield scope


def locate(settings: Settings, path: str, rev: str = "") -> RootLocation:
    """Return the location of one or more paths on the disk, or in a revision; blocking."""
    if not rev:
        return settings.sandbox.locate_all(path)
    from ripwrap.workspace.revision import locate_in_revision  # few calls need it

    known = settings.sandbox, settings.repositories, rev
    return settings.sandbox.locate_all(path, find=lambda one: locate_in_revision(*known, one, settings.timeout))


def locate_file(settings: Settings, path: str, rev: str = "") -> RootLocation:
    """Return the location of a file, which may be a member of an archive; blocking."""
    try:
        location = locate(settings, path, rev)
    except FileNotFoundError:
        if rev or SEPARATOR not in path:
            raise
        from ripwrap.workspace.revision import locate_member  # few calls need it

        location = locate_member(settings.sandbox, path, settings.timeout)[1]
    if not location.is_file:
        raise IsADirectoryError(f"{shown_path(location.name)} is a directory; ls lists its files")
    return location


def in_revision(scope: Scope, query: Query) -> Query:
    """Return a query as a query of the revision of a scope; without a revision, return it as it is."""
    revision = scope.location.revision
    if revision is None:
        return query
    from ripwrap.places.items import ItemPlace, in_items

    paths, timeout = scope.location.paths, scope.timeout
    allows = _item_filter(scope, hidden=bool(query.options.get("hidden")))
    place = ItemPlace(lambda: revision.source(paths, timeout), revision.source(paths).roots, allows)
    return in_items(replace(query, paths=()), place)


async def list_files(
    run: Runner,
    scope: Scope,
    options: FileOptions,
    timeout: float | None,  # noqa: ASYNC109 - a limit for rg
    most: int = NO_LIMIT,
    *,
    allowed: PathFilter | None,
    progress: ReportProgress | None = None,
    install: bool = True,
) -> ListingCollector[str]:
    """List the files of a scope with these options of rg; of them, keep the first `most` paths."""
    query = in_revision(scope, files_query(scope.location.cwd, scope.location.paths, options))

    def collector() -> ListingCollector[str]:
        return ListingCollector(PathDecoder(), most, allowed=allowed, progress=progress)

    return await run.collect(Step(query, collector, timeout, install=install))


def _item_filter(scope: Scope, *, hidden: bool) -> PathFilter:
    from ripwrap.workspace.revision import ItemFilter

    return ItemFilter(scope.location, scope.denied, hidden=hidden).allows


def scope_of_root(settings: Settings, root: str, revision: "RevisionTree | None" = None) -> Scope:
    """Return the scope of a whole root, or of a repository in it, without hidden and ignored files."""
    if revision is None:
        return _scope(settings, root, hidden=False, ignored=False)[0]
    return _scope(settings, os.path.join(root, revision.below), hidden=False, ignored=False, rev=revision.commit)[0]


def _scope(settings: Settings, path: str, *, hidden: bool, ignored: bool, rev: str = "") -> tuple[Scope, str]:
    """Return the scope of a call, and the rules of the ignore files between a root and `path`; blocking."""
    location = locate(settings, path, rev)
    options: FileOptions = {"hidden": hidden, "follow": settings.follow, "no_ignore": ignored}
    scope = Scope(location, options, settings.timeout)
    if location.lines:
        scope = replace(scope, notes=(f"path names line {location.lines[0]}; the whole file was searched.",))
    denied = settings.sandbox.denied_paths(location)
    if denied is not None:
        # The options already exclude denied paths. The filter is a second check, in case rg lists a denied path anyway.
        options["iglob"] = denied.iglobs()
        scope = replace(scope, denied=denied, allowed=denied.allows)
    if rev:  # no link of a revision is followed, its files are on no file system, and no ignore file has an effect
        del options["follow"]
        return scope, ""
    if settings.follow:

        def holds(path: str) -> bool:
            return settings.sandbox.holds(os.path.join(location.cwd, path))

        scope = replace(scope, notes=(*scope.notes, FOLLOW_NOTE), allowed=holds)
    if settings.guard:
        scope = _apply_guard_limits(scope)
    if settings.outer_ignore:
        return scope, ""
    options |= {"no_ignore_parent": True, "no_ignore_global": True}
    if ignored or location.several:
        return scope, ""
    from ripwrap._ignore.rules import outer_rules  # late: it imports pathspec

    rules, cut = outer_rules(location.cwd, *location.paths)
    if cut:
        named = shown_start(location.shown(cut[0]))
        named += f" and {plural(len(cut) - 1, 'more ignore file')}" if len(cut) > 1 else ""
        note = f"Not all rules of {named} were applied, because there are too many: only the first count."
        scope = replace(scope, notes=(*scope.notes, note))
    return scope, rules


@contextmanager
def rules_file(rules: str) -> Generator[str]:
    """Write ignore rules to a temporary file, and yield its path."""
    with ExitStack() as stack:
        try:
            file = os.path.join(stack.enter_context(TemporaryFolder("ripwrap-")), "ignore")
            with open(file, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as written:
                written.write(rules)
        except OSError as error:
            raise SearchError(
                f"could not write ignore rules to a temporary file: {error}; set TMPDIR to a writable directory"
            ) from error
        yield file


def _apply_guard_limits(scope: Scope) -> Scope:
    """Return the scope with limits if it has a path that needs limits, such as `/` or `$HOME`."""
    user_home, mounts = home(), mounted()
    for path in scope.location.paths:
        limits = guard_limits(os.path.normpath(os.path.join(scope.location.cwd, path)), user_home, mounts)
        if limits is not None:
            scope.options.update({"one_file_system": True, "max_depth": limits.max_depth})
            if scope.timeout is not None:
                limits = replace(limits, timeout=min(limits.timeout, scope.timeout))
            return replace(scope, timeout=limits.timeout, notes=(*scope.notes, limits.note))
    return scope


async def visible_paths(run: Runner, scope: Scope, files: FileFilter) -> tuple[PathFilter | None, bool]:
    """Return the filter for the paths that rg prints (`None` allows all paths), and True if the filter is incomplete.

    The filter is incomplete if the time limit was reached before all allowed paths were listed.
    """
    if scope.location.revision is not None:
        return _item_filter(scope, hidden=bool(scope.options.get("hidden"))), False
    if not files.overrides or (scope.options.get("hidden") and scope.options.get("no_ignore")):
        return scope.allowed, False
    # rg's --glob overrides ignore files (ripgrep#865), so only the files that rg lists without it are visible.
    types = {name: value for name, value in files.options.items() if name in ("type", "type_add")}
    options = cast("FileOptions", {**scope.options, **types})
    listing = await list_files(run, scope, options, half(scope.timeout), allowed=scope.allowed)
    return frozenset(listing.every()).__contains__, listing.timed_out


def wider(scope: Scope, names: Iterable[str], seconds: float | None) -> Scope:
    """Return a scope that also includes hidden or ignored files, and has the time limit `seconds`."""
    added = dict.fromkeys(names, True)
    kept = {name: value for name, value in scope.options.items() if name != "ignore_file" or "no_ignore" not in added}
    return replace(scope, options=cast("FileOptions", {**kept, **added}), timeout=seconds)


def half(timeout: float | None) -> float | None:
    """Return half of a time limit: the limit of a step before the search, which leaves time for the search."""
    return None if timeout is None else timeout / 2


def file_filter(location: RootLocation, file_pattern: str, file_type: str = "") -> FileFilter:
    """Return the filter for a file type and for one or more globs, separated by commas.

    A glob without a slash matches names at any depth. A glob with a slash starts from `location`. rg's `--glob` also
    includes ignored and hidden files (ripgrep#865), but this filter must not. So globs without a slash become a file
    type, because rg applies file types after ignore files. This is not possible if `file_type` is given, or if a glob
    has a slash or a colon. The globs are then passed as `--glob`, and `overrides` is set.
    """
    globs = [plain_glob(one) for one in _slashed(comma_separated(file_pattern), location)]
    without = [one for one in globs if one.startswith("!")]
    only = [one for one in globs if not one.startswith("!")]
    if not MATCH_ALL_GLOBS.isdisjoint(only):
        only = []
    options: FileOptions = {}
    names = [name for name, given in (("file_pattern", only or without), ("file_type", file_type)) if given]
    if file_type:
        options["type"] = file_type
    # In the definition of a type, a colon would end the type's name. On Windows, a backslash is a separator in the glob
    # of a type, but not in rg's `--glob`.
    refused = r"[/:]" if location.sep == "/" else r"[/:\\]"
    by_name = not file_type and not any(re.search(refused, one) for one in only)
    if only and by_name:
        options |= {"type_add": [f"{TYPE_NAME}:{one}" for glob in only for one in _readings(glob)], "type": TYPE_NAME}
        return FileFilter(_excluding(options, location, without), names=tuple(names))
    options["glob"] = [one for glob in only for one in anchored(glob, location)]
    return FileFilter(_excluding(options, location, without), overrides=bool(only), names=tuple(names))


def entry_globs(location: RootLocation, pattern: str) -> tuple[list[str], FileOptions]:
    """Split a pattern at its commas. Return the globs without `!`, and options of rg that apply the globs with `!`.

    The globs are relative to the directory that rg runs in. A glob without a slash matches names at any depth, and a
    glob that ends in a slash matches only directories. An empty list matches everything.
    """
    globs = _slashed(comma_separated(pattern), location)
    only = [
        path + "/" * one.endswith("/")
        for one in globs
        if not one.startswith("!")
        for path in anchored(plain_glob(one.rstrip("/")), location)
    ]
    if not MATCH_ALL_GLOBS.isdisjoint(globs):
        only = []
    return only, _excluding({}, location, [plain_glob(one) for one in globs if one.startswith("!")])


def denied_glob_notes(scope: Scope, pattern: str) -> Iterator[str]:
    """Yield a note if a glob of the caller matches only denied paths; the paths need not exist."""
    for one in comma_separated(pattern) if scope.denied else ():
        glob = scope.denied and scope.denied.rules.glob_of(os.path.normpath(one.replace("/", os.sep).lstrip(os.sep)))
        if glob and not one.startswith("!"):
            yield f'{shown(one)[:MAX_QUOTED_CHARS]} is denied by "{glob}".'
            return


def exclude_options(location: RootLocation, globs: Sequence[str]) -> FileOptions:
    """Return the options that exclude the paths that globs match. Globs with a slash start from `location`."""
    return _excluding({}, location, [plain_glob(f"!{one.removeprefix('!')}") for one in _slashed(globs, location)])


def _excluding(options: FileOptions, location: RootLocation, without: list[str]) -> FileOptions:
    # rg leaves out everything for a glob that is blank or only `/`.
    globs = [f"!{one}" for glob in without if glob[1:].strip().strip("/") for one in anchored(glob[1:], location)]
    options["glob"] = [*(options.get("glob") or ()), *globs]
    return options if options["glob"] else cast("FileOptions", {k: v for k, v in options.items() if k != "glob"})


def anchored(glob: str, location: RootLocation) -> list[str]:
    """Convert a glob that starts from the location to globs that start from the directory that rg runs in.

    A glob with brackets or braces also matches as a name (`[slug]` is a common name of a directory). A glob that begins
    with the location itself, such as `src/*.py` in `src`, is also read from the root, because answers have such paths,
    unless the location has such a directory, as in `site/site/*.py`.
    """
    cwd = location.cwd.replace(location.sep, "/").rstrip("/") + "/"
    same = str if location.sep == "/" else str.lower
    if same(glob[: len(cwd)]) == same(cwd):  # the glob begins with an absolute path, as in an answer with several roots
        return _readings(f"/{glob[len(cwd) :].lstrip('/')}")
    glob = _collapsed(glob)
    if ".." in glob.split("/"):
        raise ValueError(f"{shown(glob)} leads out of the searched directory; pass a directory as path instead")
    if "/" not in glob.rstrip("/"):
        return _readings(glob)
    starts = ["" if path in ("", os.curdir) else f"{escaped(path, location.sep)}/" for path in location.paths]
    globs = [f"/{start}{one}" for start in starts for one in _readings(glob.lstrip("/"))]
    own, rest = location.paths[0], glob.lstrip("/").removeprefix("**/")
    named = f"{own.replace(location.sep, '/')}/"
    if starts[1:]:
        return globs
    if braces := re.match(r"([^*?\[\]{}\\]*)\{([^{}\\]*)\}", rest):
        spelled = [f"{braces[1]}{one}{rest[braces.end() :]}" for one in braces[2].split(",")]
        return globs + [one for glob in spelled if glob.startswith(named) for one in anchored(glob, location)]
    literal = re.split(r"(?:\A|/)[^/]*[*?\[{\\]", rest)[0]
    on_disk = location.revision is None and os.path.lexists(os.path.join(location.cwd, own, literal))
    if not rest.startswith(named) or on_disk:
        return globs
    return globs + [f"/{starts[0]}{one}" for one in _readings(rest[len(named) :])]


def _collapsed(glob: str) -> str:
    """Return a glob such as `src/../lib/*.py` without the names that a `..` takes back; a wildcard is no name."""
    parts: list[str] = []
    for part in glob.split("/"):
        if part == ".." and parts and not re.search(r"\A(?:|\.\.|.*[*?\[{\\].*)\Z", parts[-1]):
            parts.pop()
        elif part != ".":
            parts.append(part)
    if len(parts) == glob.count("/") + 1:
        return glob
    collapsed = "/".join(parts)
    return collapsed if collapsed.startswith(("/", "..")) else f"/{collapsed}"  # `a/../*.py` is not `*.py` at any depth


def _readings(glob: str) -> list[str]:
    """Return a glob and, if it has brackets or braces, a glob that matches it as a name with wildcards."""
    return [glob, as_name(glob)] if re.search(r"[\[\]{}]", glob) and "\\" not in glob else [glob]


def as_name(glob: str) -> str:
    """Return a glob in which brackets, braces, commas and backslashes stand for themselves.

    On Windows, where a backslash is a separator or an escape, a glob with backslashes stays.
    """
    if IS_WINDOWS and "\\" in glob:
        return glob
    return re.sub(r"[\[\]{},]", r"[\g<0>]", glob.replace("\\", r"\\"))


def _slashed(globs: Sequence[str], location: RootLocation) -> Sequence[str]:
    """On Windows, replace backslashes in globs by slashes, except those before a bracket, comma or `!`."""
    if location.sep == "/":
        return globs
    return [re.sub(r"\\+(?![\[\]{},!])", "/", glob) for glob in globs]


def unescaped(glob: str) -> str:
    r"""Return a glob of a path as answers show it, in which `\x1b` is the control character and `\x5c` a backslash."""
    escapes = r"\\(?:\\|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"
    return re.sub(escapes, lambda found: r"\\" if (one := path_from_shown(found[0])) == "\\" else one, glob)


def plain_glob(glob: str) -> str:
    """Convert a glob to rg's form: `src/` to `**/src/**`, `./a` to `a`, and `**/*.py` to `*.py`, which is the same."""
    check_text(glob)
    bang, glob = ("!", glob[1:]) if glob.startswith("!") else ("", glob)
    glob = unescaped(glob).removeprefix("./")
    while glob.startswith("**/") and "/" not in glob[3:]:
        glob = glob[3:]  # without a slash, rg matches a glob at any depth anyway
    if glob.endswith("/") and not bang:  # change it to match the files in the directory; `!dir/` already excludes them
        return f"{glob}**" if "/" in glob[:-1] else f"**/{glob}**"
    return bang + glob

"""Tool `history`: the commits that changed a path, a text or lines, and the changes of a commit, read from git."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Annotated, TypeVar, Unpack, cast

from pydantic import AfterValidator
from typing_extensions import TypedDict

from ripwrap._ripgrep.command import check_text
from ripwrap._system.concurrency import CANCELLED
from ripwrap._text import as_utf8, in_seconds, plural, shown_path
from ripwrap.errors import SearchError
from ripwrap.models import Model
from ripwrap.sources.git import RevisionTree
from ripwrap.sources.git_log import ChangedPath, LoggedCommit, LogReader
from ripwrap.sources.git_process import NoRepositoryError
from ripwrap.workspace.arguments import (
    MAX_QUOTED_CHARS,
    Number,
    ToolArguments,
    check_revs,
    parse_arguments,
    two_revs,
)
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.notes import shortened
from ripwrap.workspace.redact import MAX_SECRET_CHARS
from ripwrap.workspace.results import ToolResult
from ripwrap.workspace.revision import locate_in_revision
from ripwrap.workspace.sandbox import MissingPathError, RootLocation
from ripwrap.workspace.scope import Settings
from ripwrap.workspace.shown_lines import snippet
from ripwrap.workspace.tool import ToolCall, ToolSpec

COMMITS = 30
"""Number of commits of a page, unless the caller passes `limit`."""

MAX_COMMITS = 10_000
"""Maximum number of commits of a log that are looked at."""

MAX_LINES = 1_000
"""Maximum number of lines of a page."""

MAX_FILES = 100_000
"""Maximum number of changed files of a commit that are looked at."""

_MAX_FILES = 20
"""Maximum number of files that an answer names for a commit."""

_MAX_SUBJECT_CHARS = 200
_MAX_MESSAGE_CHARS = 2_000
_ID_CHARS = 12
_CHANGES = {"A": "added", "D": "deleted", "M": "modified", "T": "modified", "R": "renamed", "C": "copied"}
_SIGN = re.compile(r"(\0@@ -\S+ \S+ @@|\0.?|[^\0]*)(.*)", re.DOTALL)
"""Pattern of a line of a difference, which begins with a NUL, or of the name of a file; group 2 is to be masked."""

T = TypeVar("T")


class HistoryOptions(TypedDict, total=False):
    """Options of `history()` besides `path`."""

    pattern: str
    lines: str
    commit: str
    rev: str
    fixed_strings: bool
    case_insensitive: bool
    limit: int
    offset: int


class HistoryArguments(ToolArguments, frozen=True):
    """Arguments of `history()`."""

    path: str = "."
    pattern: str = ""
    lines: str = ""
    commit: Annotated[str, AfterValidator(check_revs)] = ""
    rev: Annotated[str, AfterValidator(check_revs)] = ""
    fixed_strings: bool = False
    case_insensitive: bool = False
    limit: Number = 0
    offset: Number = 0


class LoggedChange(Model, frozen=True):
    """Commit in the answer of `history()`.

    Attributes:
        id: Id of the commit in hexadecimal digits.
        date: Day of the commit, in its own time zone.
        author: Name of the author.
        subject: First line of the message; for `commit`, the whole message.
        files: Paths of the changed files that the answer is about, at most 20; none for a merge.
        total_files: Number of all of these files.
    """

    id: str
    date: str
    author: str
    subject: str
    files: tuple[str, ...] = ()
    total_files: int = 0

    def rows(self) -> Iterator[str]:
        """Yield the lines of the text."""
        yield f"{self.id[:_ID_CHARS]} {self.date} {self.author}: {self.subject}"
        if self.files:
            more = self.total_files - len(self.files)
            yield f"  {', '.join(map(shown_path, self.files))}{f' and {more} more' if more else ''}"


class HistoryResult(ToolResult, frozen=True):
    """Result of `history()`.

    Attributes:
        commits: Commits, the newest first.
        lines: For lines of a file, each with the commit and its number; for `commit`, the lines of the difference,
            those of each file after a line such as `modified: a.py`.
        exact: True if the history was read as far as the page reaches.
    """

    commits: tuple[LoggedChange, ...]
    lines: tuple[str, ...] = ()
    exact: bool

    _entries = ("commits", "lines")

    def _body(self) -> Iterator[str]:
        for commit in self.commits:
            yield from commit.rows()
        yield from ("",) if self.commits and self.lines else ()
        yield from self.lines


async def run_history(call: ToolCall, arguments: HistoryArguments) -> HistoryResult:
    """Return the commits that changed a path, the origins of lines, or the changes of a commit."""
    return await call.run.call(lambda: _answer(call.settings, arguments))


def _answer(settings: Settings, arguments: HistoryArguments) -> HistoryResult:
    """Choose the question, and answer it; blocking."""
    between = two_revs(arguments.commit or arguments.rev)
    location, tree = _locate(
        settings, arguments, between[2] if between else arguments.commit or arguments.rev or "HEAD"
    )
    lines = _lines_of(arguments.lines) if arguments.lines.strip() else None
    if not (arguments.lines or arguments.commit or arguments.pattern):
        lines = location.lines
    given = {"pattern": arguments.pattern, "lines": lines, "commit": arguments.commit}
    asked = [name for name, value in given.items() if value]
    asked += ["rev"] if arguments.rev and (arguments.commit or (between and asked == ["lines"])) else []
    if len(asked) > 1:
        raise ValueError(f"{asked[0]} and {asked[1]} do not go together; leave one of them out")
    deadline = None if settings.timeout is None else time.monotonic() + settings.timeout
    with CANCELLED.get().child(), LogReader(tree, location.paths[0], deadline) as reader:
        old = tree.resolve(between[0], settings.timeout) if between else ""
        call = _History(settings, arguments, location, reader, tree.commit)
        if reader.is_shallow:
            call.notes.append("The clone is shallow: older commits are missing.")
        if lines is not None:
            return call.blame(*lines)
        if not arguments.commit:
            return call.log(f"{old}{between[1]}{tree.commit}" if between else tree.commit)
        return call.diff(reader.merge_base(old, tree.commit) if between and between[1] == "..." else old)


def _lines_of(text: str) -> tuple[int, int]:
    """Return the first and the last of a range of lines; 0 is the end of the file."""
    found = re.fullmatch(r"\s*(\d{1,9})\s*(-\s*(\d{1,9})?\s*)?", text)
    first, last = (int(found[1]), int(found[3] or 0) if found[2] else int(found[1])) if found else (1, 0)
    if found is None or first < 1 or 0 < last < first:
        raise ValueError(f"lines must be a range such as 10-20 or 10-, got {text[:MAX_QUOTED_CHARS]!r}")
    return first, last


def _locate(settings: Settings, arguments: HistoryArguments, rev: str) -> tuple[RootLocation, RevisionTree]:
    """Return the location of the path, which may have been deleted, and the commit."""

    def find(path: str, *, must_exist: bool = True) -> RootLocation:
        known = settings.sandbox, settings.repositories, rev, path, settings.timeout
        return locate_in_revision(*known, must_exist=must_exist)

    try:
        location = settings.sandbox.locate(arguments.path, find=find)
    except MissingPathError:
        location = find(arguments.path, must_exist=bool(arguments.lines.strip()))  # a deleted file has no lines
    except NoRepositoryError as error:
        roots = ", ".join(map(shown_path, settings.sandbox.roots))
        said = f"history needs a git repository, and {roots} has none at {shown_path(arguments.path)}; read_file shows"
        raise ValueError(f"{said} files as they are now") from error
    return location, cast("RevisionTree", location.revision)


class _History:
    """One call of `history`."""

    def __init__(
        self, settings: Settings, arguments: HistoryArguments, location: RootLocation, reader: LogReader, commit: str
    ) -> None:
        self.notes: list[str] = []
        self._settings = settings
        self._arguments = arguments
        self._location = location
        self._reader = reader
        self._commit = commit
        self._denied = settings.sandbox.denied_paths(location)
        self._exact = True

    def log(self, commits: str) -> HistoryResult:
        """Return the commits that changed the path, or lines that match the pattern."""
        arguments, is_file = self._arguments, self._location.is_file
        follow = ["--follow"] if is_file else []
        options = [commits, *follow]
        known: set[str] | None = None
        if arguments.pattern:
            check_text(arguments.pattern)
            options += ["--regexp-ignore-case"] if arguments.case_insensitive else []
            options.append(f"-S{arguments.pattern}" if arguments.fixed_strings else f"-G{_posix(arguments.pattern)}")
            if is_file and self._denied:  # whether denied contents match must not change the answer
                known = {one.commit.id for one in self._until_denied(self._reader.log(commits, *follow))}
        logged = self._until_late(self._reader.log(*options))
        end = arguments.offset + min(arguments.limit or COMMITS, self._settings.max_chars // _ID_CHARS)
        found: list[LoggedChange] = []
        for number, one in enumerate(logged if known is not None else self._until_denied(logged)):
            if number == MAX_COMMITS:
                self._exact = False
                self.notes.append(f"Only {MAX_COMMITS:,} commits were looked at; pass an older rev for further ones.")
                break
            every = (change for change in one.changes if not arguments.pattern or self._shows(change.old_path))
            shows = [change.path for change in every if self._shows(change.path)]  # old contents are compared, too
            if (shows or not one.changes) and (known is None or one.commit.id in known):
                found.append(self._entry(one, shows))
            if len(found) > end:
                break
        more, page = len(found) > end, found[arguments.offset : end]

        def answer(count: int) -> HistoryResult:
            next_offset = arguments.offset + count if count and (more or count < len(page)) else None
            name = "" if self._location.paths == (".",) else f" {shown_path(self._location.name)}"
            about = f"of {self._rev}" + (
                f" that changed{name or ' lines that match'}" if name or arguments.pattern else ""
            )
            about += " in lines that match" if arguments.pattern and name else ""
            said = f"{plural(count, 'commit')} {about}" if count else f"No {'further ' * bool(found)}commit {about}"
            paged = f" offset={next_offset} gives older ones." if next_offset else ""
            id_ = page[0].id[:_ID_CHARS] if count else ""
            ways = f' commit="{id_}" shows its changes, read_file with rev="{id_}" a file as it was.' if count else ""
            return self._result(f"{said}.{paged}{ways}", page[:count], (), next_offset)

        return shortened(answer, len(page), self._settings.max_chars)

    def diff(self, old: str) -> HistoryResult:
        """Return the changes of the commit, or those since an older commit."""
        shown: list[LoggedChange] = []
        if not two_revs(self._arguments.commit):
            logged = next(self._reader.log("--no-walk", self._commit, everywhere=True))
            old = logged.parents[0] if logged.parents else ""
            if len(logged.parents) > 1:
                self.notes.append(f"The commit is a merge; these are the changes since its parent {old[:_ID_CHARS]}.")
            message = self._masked(self._reader.message(self._commit))[:_MAX_MESSAGE_CHARS]
            if not logged.changes or any(self._shows(change.path) for change in logged.changes):
                shown = [self._entry(logged, ()).model_copy(update={"subject": message})]
        listed = map(self._visible, self._until_late(self._reader.changes(old, self._commit)))
        changes = [change for change in islice(listed, MAX_FILES) if change is not None]
        names = [self._location.shown(change.path) for change in changes]
        known = {"files": tuple(names[:_MAX_FILES]), "total_files": len(names)}
        shown = [one.model_copy(update=known) for one in shown]
        offset, most = self._arguments.offset, self._most_lines()
        rows = [*islice(self._until_late(self._rows(changes)), offset, offset + most + 1)]
        lines = [line for _, group in groupby(rows[:most], lambda row: row[0]) for line in self._of_file(group)]
        return self._fitted(shown, lines, f"{plural(len(names), 'file')} changed", more=len(rows) > most)

    def blame(self, first: int, last: int) -> HistoryResult:
        """Return lines of the file, with the commits that wrote them."""
        location, path = self._location, self._location.paths[0]
        if not location.is_file:
            raise IsADirectoryError(f"{shown_path(location.name)} is a directory; only a file has lines")
        first, most = first + self._arguments.offset, self._most_lines()
        end = min(last or first + most, first + most)
        try:
            found = [*self._until_late(self._reader.blame(self._commit, first, max(end, first)))]
        except SearchError as error:
            if (has := re.search(r"has only (\d+) line", error.stderr)) is None:
                raise
            raise ValueError(
                f"{shown_path(location.name)} has {plural(int(has[1]), 'line')} in {self._rev}, so there is no line "
                f"{first}; pass a smaller line number"
            ) from None
        redactor = self._settings.redactor(location, path)
        ids = dict.fromkeys(one.commit for one in found[:most] if self._shows(one.path))
        commits = (
            [self._entry(one, ()) for one in self._reader.log("--no-walk=unsorted", *ids, everywhere=True)]
            if ids
            else []
        )
        lines: list[str] = []
        for one in found[:most]:
            text = self._text(one.text)
            text = snippet(redactor(text, one.line).text if redactor else text, 1, self._settings.max_line)
            lines.append(
                f"{one.commit[:_ID_CHARS] if one.commit in ids else '-' * _ID_CHARS} {one.line}: {text}".rstrip()
            )
        if any(one.commit not in ids for one in found[:most]):
            self.notes.append("Lines after dashes are from files that are denied.")
        commits.sort(key=lambda one: one.date, reverse=True)
        return self._fitted(
            commits, lines, f"Lines {first} to {first + len(lines) - 1} in {self._rev}", more=len(found) > most
        )

    @property
    def _rev(self) -> str:
        return self._arguments.commit or self._arguments.rev or "HEAD"

    def _most_lines(self) -> int:
        return min(self._arguments.limit or MAX_LINES, MAX_LINES, self._settings.max_chars // 2)

    def _shows(self, path: str) -> bool:
        return bool(path) and (self._denied is None or self._denied.allows(path))

    def _visible(self, change: ChangedPath) -> ChangedPath | None:
        """Return a change without the name and content of a file that the tools may not show."""
        shows, showed = self._shows(change.path), self._shows(change.old_path)
        if shows and not showed:
            return change._replace(status="A", old_path=change.path, old="")
        if showed and not shows and change.status == "R":
            return change._replace(status="D", path=change.old_path, new="")
        return change if shows else None

    def _rows(self, changes: Sequence[ChangedPath]) -> Iterator[tuple[int, str]]:
        """Yield the lines of a difference, each with the number of its file; the first of each file names it."""
        for number, change in enumerate(changes):
            was = (
                "" if change.old_path == change.path else f" (was {shown_path(self._location.shown(change.old_path))})"
            )
            yield (
                number,
                f"{_CHANGES.get(change.status, 'changed')}: {shown_path(self._location.shown(change.path))}{was}",
            )
            for line in self._reader.diff(change):
                yield number, f"\0{self._text(line)}"

    def _of_file(self, rows: Iterable[tuple[int, str]]) -> Iterator[str]:
        """Yield the lines of a file as an answer shows them, with secrets masked."""
        texts = [text for _, text in rows]
        parts = [cast("re.Match[str]", _SIGN.fullmatch(text)).groups() for text in texts]
        masked = self._masked("\n".join(text for _, text in parts)).split("\n")
        for (sign, _), text in zip(parts, masked, strict=True):
            yield snippet(f"{sign.removeprefix(chr(0))}{text}", 1, self._settings.max_line)

    def _text(self, line: bytes) -> str:
        """Return a line without its end, and without the part that can neither be shown nor belong to a secret."""
        text = line.decode("utf-8", "replace").rstrip("\n").removesuffix("\r")
        return text[: self._settings.max_line + 1 + MAX_SECRET_CHARS]

    def _masked(self, text: str) -> str:
        return self._settings.redact(text, 1).text if self._settings.redact else text

    def _entry(self, logged: LoggedCommit, paths: Sequence[str]) -> LoggedChange:
        commit = logged.commit
        return LoggedChange(
            id=commit.id,
            date=f"{commit.date:%Y-%m-%d}",
            author=self._masked(commit.author),
            subject=self._masked(commit.subject)[:_MAX_SUBJECT_CHARS],
            files=tuple(map(self._location.shown, paths[:_MAX_FILES])),
            total_files=len(paths),
        )

    def _until_denied(self, logged: Iterator[LoggedCommit]) -> Iterator[LoggedCommit]:
        """Yield the commits of a file down to the one that gave it a name that may be shown."""
        for one in logged:
            yield one
            if self._location.is_file and any(not self._shows(change.old_path) for change in one.changes):
                self.notes.append("Before, the file had a name that is denied, so older commits are not shown.")
                return

    def _until_late(self, found: Iterator[T]) -> Iterator[T]:
        """Yield what is found before the time limit."""
        try:
            yield from found
        except TimeoutError:
            CANCELLED.get().check()
            self._exact = False
            self.notes.append(
                f"The search was stopped after {in_seconds(self._settings.timeout or 0)}; more may follow."
            )

    def _fitted(self, commits: Sequence[LoggedChange], lines: Sequence[str], said: str, *, more: bool) -> HistoryResult:
        """Return as many of the lines as fit."""
        offset = self._arguments.offset

        def answer(count: int) -> HistoryResult:
            next_offset = offset + count if count and (more or count < len(lines)) else None
            paged = f" offset={next_offset} gives more." if next_offset else ""
            return self._result(f"{said}.{paged}", commits, lines[:count], next_offset)

        return shortened(answer, len(lines), self._settings.max_chars)

    def _result(
        self, message: str, commits: Sequence[LoggedChange], lines: Sequence[str], next_offset: int | None
    ) -> HistoryResult:
        return HistoryResult(
            root=as_utf8(self._location.cwd),
            path=self._location.name,
            commits=tuple(commits),
            lines=tuple(lines),
            exact=self._exact,
            truncated=next_offset is not None or not self._exact,
            next_offset=next_offset,
            message=message,
            notes=tuple(self.notes),
        )


def _posix(pattern: str) -> str:
    """Return a pattern of rg as one of git, a POSIX extended regular expression; refuse what that cannot say."""
    if found := re.search(r"\(\?(?!:)|\\[pPkAzZ]|(?<!\\)[*+?}][?+]", pattern):
        raise ValueError(
            f"git has no {found[0]} in regular expressions; write pattern without it, or pass fixed_strings"
        )

    def spelled(token: re.Match[str]) -> str:
        if token[0].startswith("["):
            classes = {r"\d": "0-9", r"\w": "[:alnum:]_", r"\s": "[:space:]"}
            return re.sub(r"\\.", lambda one: classes.get(one[0], one[0][1:]), token[0])
        return {r"\d": "[0-9]", r"\D": "[^0-9]", "(?:": "("}.get(token[0], token[0])

    return re.sub(r"\[\^?\]?(?:\[:\w+:\]|\\.|[^\]])*\]|\\.|\(\?:", spelled, pattern)


HISTORY = ToolSpec(
    "history",
    HistoryArguments,
    HistoryResult,
    run_history,
    title="Show the history of a file, text or lines",
    aliases=("git_log", "git_show", "git_blame", "git_history"),
)


class HistoryMethods(ToolMethods, offers=(HISTORY,)):
    """Methods of `history`."""

    async def history(
        self,
        path: str = ".",
        *,
        pattern: str = "",
        lines: str = "",
        commit: str = "",
        rev: str = "",
        fixed_strings: bool = False,
        case_insensitive: bool = False,
        limit: int = 0,
        offset: int = 0,
    ) -> str:
        """Show which commits of git changed a file, a text or lines, or the changes of one commit.

        With a path alone, the answer lists its commits, the newest first. With pattern, only commits that added or
        removed lines that match; with lines, the commit that wrote each of them; with commit, the differences.

        Args:
            path (str): The file or directory, which may have been deleted; `.` is everything.
            pattern (str): Only commits that changed lines that match this regular expression.
            lines (str): Show which commit wrote each of these lines of the file, e.g. `10-20` or `10-`.
            commit (str): Show what this commit changed, or what changed between two, e.g. `v1..v2`.
            rev (str): The newest commit to look at, or a range such as `v1..v2`; the default is `HEAD`.
            fixed_strings (bool): Take the pattern as plain text, and find the commits that added or removed it.
            case_insensitive (bool): Ignore case in the pattern; default false.
            limit (int): Maximum number of commits or lines; 0, the default, is 30 commits, or the lines that fit.
            offset (int): Number of commits or lines to skip, for the next page; the previous answer gives it.
        """
        return self.text(
            await self.history_result(
                path,
                pattern=pattern,
                lines=lines,
                commit=commit,
                rev=rev,
                fixed_strings=fixed_strings,
                case_insensitive=case_insensitive,
                limit=limit,
                offset=offset,
            )
        )

    async def history_result(self, path: str = ".", **options: Unpack[HistoryOptions]) -> HistoryResult:
        """Return the answer of `history()` as a `HistoryResult`; raise the errors of `grep_content_result()`."""
        arguments = parse_arguments(HistoryArguments, {"path": path, **options})
        return await run_history(self._tools.begin(), arguments)

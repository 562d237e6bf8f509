"""Read all versions of files in a git history, and the messages of the last commits."""

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from ripwrap._system.subprocess import open_temporary_file
from ripwrap._text import shown
from ripwrap.errors import Hint, HintedText, SearchError
from ripwrap.models import Commit
from ripwrap.options import Directories, StrPath
from ripwrap.sources.base import Item, NamedItem, NamedSource
from ripwrap.sources.git import LONG_NAME, MAX_BLOB_BYTES, REGULAR, Budget, Diffs, GitSource, Lifetimes
from ripwrap.sources.git_process import LOG_MARK, MAX_RECORD_BYTES, PLAIN_LOG, Git, holds, missing_path_error
from ripwrap.sources.repository import real_directories

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def check_date(since: str | None) -> str | None:
    """Check a date for `git log --since`, and return it. Return `None` if `since` is `None`."""
    if since is None:
        return None
    if not isinstance(since, str):
        raise TypeError(f"since must be a str or None, got {type(since).__name__}")
    if not since.strip() or "\0" in since:
        raise date_error(since)
    if not _DATE.fullmatch(since.strip()):
        return since
    try:
        datetime.fromisoformat(since.strip())
    except ValueError:
        raise date_error(since) from None
    # git reads a date without a time as that day at the current time of day (approxidate), so add midnight.
    return f"{since.strip()} 00:00"


def date_error(since: str) -> ValueError:
    """Return the error for a text that is not a date, or is a date that git cannot read."""
    return ValueError(HintedText(Hint("since", kind="correct"), f" must be a date such as '2024-01-31', got {since!r}"))


def read_date(text: str) -> datetime:
    """Parse a date that git wrote. If its time zone is invalid, read the date as UTC.

    An invalid date, or a date after the year 9999, becomes the beginning of 1970; git allows both.
    """
    for known in (text, f"{text[:19]}Z"):
        with suppress(ValueError):
            return datetime.fromisoformat(known)
    return datetime.fromtimestamp(0, UTC)


def readable_date(git: Git, since: str) -> str:
    """Check that git can read a date, and return it. `git log` would read any other text as the current time."""
    try:
        git.read("config", "--type=expiry-date", f"--default={since}", "--get", "ripwrap.since")
    except SearchError as error:
        if error.returncode is None:  # git could not be started
            raise
        raise date_error(since) from None
    return since


ALL_REFS = "--all"
"""Revision for the commits of all branches, tags and other refs, and of all stashes, as `git rev-list` spells it."""

SHALLOW = (
    "the repository is a shallow clone, so the older commits are missing and were not searched; fetch them with: "
    "git fetch --unshallow"
)

_PLAIN_DIFF = (
    *("--always", "-r", "--root", "--raw", "-z", "--no-renames", "--no-abbrev", "--relative"),
    *("--no-ext-diff", "--no-color"),
)
"""Options of `git diff-tree`. With `--always`, it prints the id of the commit also if nothing was changed."""

COMMIT_FORMAT = "--format=tformat:%x01%H%x00%P%x00%an%x00%cI%x00%s%x00"
"""Option of `git log`; `read_commit()` reads what git writes with it."""


def read_commit(record: bytes, records: Iterator[bytes]) -> tuple[Commit, tuple[str, ...]]:
    """Return a commit and the ids of its parents, given its first record in a log and the records after it."""
    fields = (record[len(LOG_MARK) :], *(next(records, b"") for _ in range(4)))
    oid, parents, author, date, subject = (field[:MAX_RECORD_BYTES].decode("utf-8", "replace") for field in fields)
    return Commit(id=oid, author=author, date=read_date(date), subject=subject), tuple(parents.split())


@dataclass(slots=True)
class Blob:
    """Version of a file in a history."""

    oid: str
    first: Commit
    paths: dict[str, None]
    last: Commit


class BlobName(NamedItem):
    """Name of an item in a history: a path of a version of a file, the newest that the search selects."""

    blob: Blob

    @classmethod
    def of(cls, path: str, blob: Blob) -> "BlobName":
        """Return the name with this path and this version."""
        name = cls(path)
        name.blob = blob
        return name

    def fields(self, text: Callable[[str], object]) -> Mapping[str, object]:
        """Return the commits and paths of the version."""
        return {
            "blob": self.blob.oid,
            "paths": [text(one) for one in self.blob.paths],
            "first": self.blob.first.model_dump(mode="json"),
            "last": self.blob.last.model_dump(mode="json"),
        }


class HistorySource(GitSource, NamedSource):
    """Source of all versions of files in a git history; each version is yielded once, the newest first."""

    def __init__(
        self,
        cwd: str,
        rev: str,
        since: str | None,
        paths: Sequence[StrPath] = (),
        *,
        repositories: Directories | None = None,
        max_filesize: int | None = None,
        must_exist: bool = False,
    ) -> None:
        """Choose the commits, up to `rev` or of `ALL_REFS`, and the files; git runs when they are read.

        With `must_exist`, a path that never existed is an error, and not only if all never did; not with `since`.
        """
        super().__init__(cwd, rev, paths, repositories, max_filesize)
        self._since = since
        self._must_exist = must_exist
        self._commits: dict[str, Commit] = {}
        self._budget = Budget("commit, path or version", "paths", "since")
        self._unseen = set(self.roots)  # paths that no commit so far has changed

    def __iter__(self) -> Iterator[Item]:
        return self._read(self._versions())

    def names(self) -> Iterator[BlobName]:
        """Yield a name of each selected version."""
        return self._names(self._versions())

    def _versions(self) -> Iterator[tuple[BlobName, str]]:
        tips = self._tips()
        since = () if self._since is None else (f"--since={readable_date(self._git, self._since)}",)
        paths: dict[str, dict[str, None]] = {}
        heads, expected, complete = list[str](), set[bytes](), True
        with open_temporary_file() as commits, open_temporary_file() as edges:
            for commit, parents in self._walk(*since, *tips):
                if commit not in expected:  # it is no parent of a commit before it
                    heads.append(commit.decode())
                expected.discard(commit)
                expected.update(parents)
                complete = complete and bool(parents)
                self._budget.check(len(expected) + len(heads))
                commits.write(b" ".join((commit, *parents)) + b"\n")
                edges.writelines(b"%b %b\n" % (commit, parent) for parent in parents or [b""])
            if not complete and self._git.read("rev-parse", "--is-shallow-repository") == b"true\n":
                self._fail(None, SHALLOW, "missing")
            known = self._lifetimes(heads)
            commits.seek(0)
            edges.seek(0)
            with self._git.lines("diff-tree", "--stdin", *_PLAIN_DIFF, "--", *self.roots, stdin=edges) as output:
                found = self._follow(Diffs(output.records()), commits, known, paths)
        if self._since is None:
            if not found:
                self._check_cwd(heads[0])
            if self._unseen and (self._must_exist or not found):
                raise missing_path_error(self._rev, [root for root in self.roots if root in self._unseen])
        self._read_commits({oid for version in paths for oid in (known.first[version], known.last[version])})
        for version, names in paths.items():
            name = next(filter(self.selects, names), None)
            if name is not None:
                blob = Blob(version, self._known(known.first[version]), names, self._known(known.last[version]))
                yield BlobName.of(name, blob), version

    def _tips(self) -> Sequence[str]:
        """Return the arguments of `git rev-list` for the newest commits: the revision, or all refs and all stashes."""
        if self._rev != ALL_REFS:
            return [self._open("commit")]
        self._git.deadline = self.deadline
        self._git.open()
        stash = self._git.read("for-each-ref", "--count=1", "refs/stash")
        # The ref is only the newest stash; the others are in its log.
        others = self._git.read("rev-list", "--walk-reflogs", "refs/stash", "--") if stash else b""
        return [ALL_REFS, *others.decode().split("\n")[:-1]]

    def _lifetimes(self, heads: Sequence[str]) -> Lifetimes:
        """Return lifetimes that begin with the versions of the commits that have no child."""
        if not heads and self._since is None:
            raise ValueError(f"the repository in {shown(self._cwd)} has no branch, tag or other ref; check cwd")
        known = Lifetimes()
        for head in heads:
            for mode, oid, _ in self._tree(head, self.roots):
                if mode.startswith(REGULAR):
                    known.remove(oid, head)
            self._budget.check(known.waiting)
        return known

    def _walk(self, *chosen: str) -> Iterator[tuple[bytes, Sequence[bytes]]]:
        """Yield the commits with their parents, the newest first, and no commit before one of its children."""
        with self._git.lines("rev-list", "--date-order", "--parents", *chosen, "--") as output:
            while line := output.stdout.readline(MAX_RECORD_BYTES):
                if not line.endswith(b"\n"):
                    raise SearchError("a commit of the git repository has more than 1500 parents; pass another rev")
                commit, *parents = line.split()
                yield commit, [*dict.fromkeys(parents)]

    def _follow(
        self, diffs: Diffs, commits: Iterable[bytes], known: Lifetimes, paths: dict[str, dict[str, None]]
    ) -> bool:
        """Take the changes of all commits, and return True if there are any."""
        found = False
        for line in commits:
            commit, *parents = line.decode().split()
            known.reach(commit)
            introduced: dict[tuple[str, bytes], None] | None = None
            budget = Budget("change", "paths", "since")
            for parent in parents or [""]:
                added: dict[tuple[str, bytes], None] = {}
                for old, new, path in diffs.changes(commit):
                    found = True
                    self._unseen -= {root for root in self._unseen if holds(root, os.fsdecode(path))}
                    if len(path) > MAX_RECORD_BYTES:
                        self._fail(f"{os.fsdecode(path[:100])}…", LONG_NAME)
                        continue
                    if old:
                        known.remove(old, parent)
                    if new:
                        known.add(new, commit)
                        if introduced is None or (new, path) in introduced:
                            budget.take(len(path))
                            added[new, path] = None
                self._budget.check(known.waiting)
                introduced = added
            for version, path in introduced or ():
                known.first[version] = commit
                self._add(paths.setdefault(version, {}), path)
        return found

    def _add(self, paths: dict[str, None], path: bytes) -> None:
        """Add a path to those of a version."""
        name = os.fsdecode(path)
        if name not in paths:
            self._budget.take(len(path))
            paths[name] = None

    def _known(self, commit: str) -> Commit:
        if commit not in self._commits:
            raise SearchError(f"git could not read the commit {commit}")
        return self._commits[commit]

    def _read_commits(self, oids: Iterable[str]) -> None:
        """Read the commits with these ids, and store them."""
        with open_temporary_file() as ids:
            ids.write("".join(f"{oid}\n" for oid in oids).encode())
            if not ids.tell():
                return
            ids.seek(0)
            options = ("--no-walk=unsorted", "--stdin", "-z", COMMIT_FORMAT, *PLAIN_LOG)
            with self._git.lines("log", *options, stdin=ids) as output:
                records = output.records()
                for record in records:
                    if (text := record.lstrip(b"\n")).startswith(LOG_MARK):
                        commit, _ = read_commit(text, records)
                        self._budget.take(len(commit.author) + len(commit.subject))
                        self._commits[commit.id] = commit


MAX_COMMITS = 3_000
"""Maximum number of commits, the newest first."""
MAX_PATHS = 30
"""Maximum number of files of a commit; a commit with more says little about each of them, and is left out."""
MAX_MESSAGE_BYTES = 1_000
"""Maximum number of bytes of a message; the rest is left out."""
_MAX_PATH_BYTES = 1_000
_CHANGES_LOG = (
    *("log", f"--max-count={MAX_COMMITS}", "--no-merges", "--name-only", "--relative", "-z", "--no-renames"),
    *("--format=tformat:%x01%B%x00", "--no-ext-diff", *PLAIN_LOG),
)


class ChangedFiles(NamedTuple):
    """Commit, with the files that it changed."""

    message: str
    paths: tuple[str, ...]


class ChangeReader:
    """Reader of the last commits of the repository of a directory; use it as a context manager."""

    def __init__(self, cwd: str, repositories: Directories, deadline: float) -> None:
        """Choose the repository; git runs when it is read. Only changes of files in `cwd` are read."""
        self._git = Git(cwd, real_directories(repositories), MAX_BLOB_BYTES)
        self._git.deadline = deadline

    def __enter__(self) -> "ChangeReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._git.close()

    def tip(self) -> bytes:
        """Return the id of the commit that is checked out."""
        self._git.open()
        return self._git.read("rev-parse", "--verify", "--quiet", "HEAD^{commit}")

    def changes(self) -> Generator[ChangedFiles]:
        """Yield the commits, the newest first; raise the errors of `tip()`."""
        with self._git.lines(*_CHANGES_LOG) as output:
            message, paths = b"", list[bytes]()
            for record in output.records():
                text = record.lstrip(b"\n")
                if text.startswith(LOG_MARK):
                    yield from _change(message, paths)
                    message, paths = text.removeprefix(LOG_MARK)[:MAX_MESSAGE_BYTES], []
                elif 0 < len(text) <= _MAX_PATH_BYTES and len(paths) <= MAX_PATHS:
                    paths.append(text)
            yield from _change(message, paths)


def _change(message: bytes, paths: Sequence[bytes]) -> Iterator[ChangedFiles]:
    if 0 < len(paths) <= MAX_PATHS:
        yield ChangedFiles(
            message.decode("utf-8", "replace"), tuple(os.fsdecode(path).replace("/", os.sep) for path in paths)
        )

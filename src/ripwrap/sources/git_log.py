"""Read the log of a path, the origins of its lines, and the changes between commits.

git starts no program that a repository or its tree names, and no `.mailmap` changes an author. Contents are compared as
two blobs, without their paths: no attribute hides a difference, and none can be taken for that of another file.
"""

import codecs
import os
import posixpath
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import NamedTuple

from ripwrap.models import Commit
from ripwrap.sources.git import MAX_BLOB_BYTES, REGULAR, RevisionTree
from ripwrap.sources.git_history import COMMIT_FORMAT, read_commit
from ripwrap.sources.git_process import LOG_MARK, MAX_RECORD_BYTES, PLAIN_LOG

_NO_PROGRAMS = ("--no-ext-diff", "--no-textconv")
"""Options of commands that compare files: attributes of a tree can choose programs of the user's configuration."""

_LOG = ("log", "-z", "--root", "--name-status", "--find-renames", COMMIT_FORMAT, *_NO_PROGRAMS, *PLAIN_LOG)
_TREE = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--find-renames", *_NO_PROGRAMS)
_DIFF = ("diff", "--unified=3", "--inter-hunk-context=0", "--no-color", *_NO_PROGRAMS)
_BLAME = ("blame", "--porcelain", "--no-textconv", "--ignore-revs-file=")
_OF_LINE = re.compile(rb"([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?\n")


class ChangedPath(NamedTuple):
    """Change of a file: its status in git, its paths, and the ids of its contents; an id is empty if there is none."""

    status: str
    old_path: str
    path: str
    old: str = ""
    new: str = ""


class LoggedCommit(NamedTuple):
    """Commit with its parents and the files that it changed; a merge has none."""

    commit: Commit
    parents: tuple[str, ...]
    changes: list[ChangedPath]


class Origin(NamedTuple):
    """Line of a file: the commit and the path from which it is, its number and its text."""

    commit: str
    path: str
    line: int
    text: bytes


class LogReader:
    """Reader of the history of a path; a context manager. Paths are relative to the root, and empty outside of it."""

    def __init__(self, tree: RevisionTree, path: str, deadline: float | None) -> None:
        self._below = tree.below
        self._path = posixpath.relpath(path.replace(os.sep, "/"), tree.below or os.curdir)
        self._git = tree.git(MAX_BLOB_BYTES)
        self._git.deadline = deadline
        self._prefix = ""
        self.is_shallow: bool = False
        """True if the repository lacks old commits."""

    def __enter__(self) -> "LogReader":
        self._git.open()
        said = self._git.read("rev-parse", "--show-prefix", "--is-shallow-repository")
        prefix, _, shallow = said.rstrip(b"\n").rpartition(b"\n")
        self._prefix, self.is_shallow = os.fsdecode(prefix), shallow == b"true"
        self._path = posixpath.normpath(f"{self._prefix}{self._path}")
        self._git.leave_the_tree()
        return self

    def __exit__(self, *_: object) -> None:
        self._git.close()

    def log(self, *options: str, everywhere: bool = False) -> Generator[LoggedCommit]:
        """Yield the commits that `git log` shows with these options; those that change the path, or `everywhere`."""
        everywhere = everywhere or self._path == os.curdir
        with self._git.lines(*_LOG, *options, "--", *(() if everywhere else (self._path,))) as output:
            records, logged = output.records(), None
            for record in records:
                text = record.lstrip(b"\n")
                if text.startswith(LOG_MARK):
                    if logged is not None:
                        yield logged
                    logged = LoggedCommit(*read_commit(text, records), [])
                elif text and logged is not None:
                    logged.changes.append(self._change(text.decode(), records))
            if logged is not None:
                yield logged

    def message(self, commit: str) -> str:
        """Return the message of a commit, or its beginning."""
        text = self._git.read("log", "--no-walk", "--format=tformat:%B", *PLAIN_LOG, commit)
        return text.decode("utf-8", "replace").strip()

    def merge_base(self, one: str, other: str) -> str:
        """Return the newest common ancestor of two commits."""
        return self._git.read("merge-base", one, other).decode().strip()

    def changes(self, old: str, new: str) -> Generator[ChangedPath]:
        """Yield the changed files between two commits; without the first, all files of the second are added."""
        commits = (old, new) if old else ("--root", "--no-commit-id", new)
        with self._git.lines(*_TREE, *commits, "--", self._path) as output:
            records = output.records()
            for record in records:
                old_mode, mode, before, after, status = record.decode().removeprefix(":").split(" ")
                known = [oid if of.startswith(REGULAR) else "" for of, oid in ((old_mode, before), (mode, after))]
                yield self._change(status, records)._replace(old=known[0], new=known[1])

    def diff(self, change: ChangedPath) -> Iterator[bytes]:
        """Yield the lines of the difference of the contents of a file, from the first `@@` on."""
        if change.old and change.new:
            with closing(self._lines(*_DIFF, change.old, change.new)) as lines:
                for line in lines:
                    if line.startswith((b"@@", b"Binary")):
                        yield b"Binary file" if line.startswith(b"Binary") else line
                        yield from lines
        elif change.old or change.new:
            with closing(self._lines("cat-file", "blob", change.new or change.old)) as lines:
                for line in lines:
                    if b"\0" in line:
                        yield b"Binary file"
                        return
                    yield (b"+" if change.new else b"-") + line

    def blame(self, commit: str, first: int, last: int) -> Iterator[Origin]:
        """Yield the lines of the file from `first` to `last`, with their origins."""
        paths: dict[str, str] = {}
        oid, number = "", 0
        with closing(self._lines(*_BLAME, "-L", f"{first},{last}", commit, "--", self._path)) as lines:
            for line in lines:
                if line.startswith(b"\t"):
                    yield Origin(oid, paths.get(oid, ""), number, line[1:])
                elif line.startswith(b"filename "):
                    path = line.removeprefix(b"filename ").removesuffix(b"\n")
                    # git writes a path with special characters in quotes, as in C
                    paths[oid] = self._name(codecs.escape_decode(path[1:-1])[0] if path.startswith(b'"') else path)
                elif found := _OF_LINE.fullmatch(line):
                    oid, number = found[1].decode(), int(found[2])

    def _lines(self, *arguments: str) -> Generator[bytes]:
        """Yield the lines of the output of git; the end of a long line is left out."""
        with self._git.lines(*arguments) as output:
            while line := output.stdout.readline(MAX_RECORD_BYTES):
                yield line
                while line and not line.endswith(b"\n"):
                    line = output.stdout.readline(MAX_RECORD_BYTES)

    def _change(self, status: str, records: Iterator[bytes]) -> ChangedPath:
        first = self._name(next(records, b""))
        return ChangedPath(status[0], first, self._name(next(records, b"")) if status[0] in "RC" else first)

    def _name(self, path: bytes) -> str:
        name = os.fsdecode(path)
        if not name.startswith(self._prefix):
            return ""
        return posixpath.join(self._below, name.removeprefix(self._prefix)).replace("/", os.sep)

"""Read files out of git without a checkout: the files of a revision, or all versions of files in a history.

git is started without a shell. A revision is never read as an option, and each path in git's output ends with a NUL.
Only the absolute entries of PATH are searched for git, so that a `git` in a checkout is never run. The directory
determines the repository; variables such as `GIT_DIR`, which git sets for hooks, have no effect. git asks no questions,
takes no optional locks, and does not fetch missing objects of a partial clone.
"""

import errno
import io
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, NamedTuple, cast

from ripwrap._subprocess import Popen, defer_interrupts, kill, open_temporary_file, start, wait_for_exit
from ripwrap._subprocess.programs import find_program
from ripwrap._text import shown
from ripwrap.errors import Hint, HintedText, SearchError
from ripwrap.models import Commit, PathError
from ripwrap.options import StrPath
from ripwrap.sources.base import Item, NamedSource, Source
from ripwrap.sources.dates import date_error, read_date

_DROPPED_VARIABLES = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_EXTERNAL_DIFF"),
    # git fails if one of the next three is set together with GIT_LITERAL_PATHSPECS.
    *("GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
)
_SETTINGS = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",  # from git 2.44 on; `_missing()` finds missing objects for older versions
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
_GLOBAL_OPTIONS = ("--no-pager", "-c", "log.diffMerges=separate")
"""Options before the command. They override the user's `log.diffMerges`, with which `git log -m` could hide changes."""

_REGULAR, _SUBMODULE = "100", "160000"
"""Beginning of the modes of regular files, and mode of a submodule; the mode of a link begins with 120."""

_OTHER_TYPE = "but the object dereferences to"
"""Part of the error that `git rev-parse` prints if an object has a wrong type, such as a tree in place of a commit."""

_EXIT_SECONDS = 5.0
_MAX_ERROR = 4000
_BUFFER_BYTES = 1 << 20
_COMMIT = b"\x01"
"""First byte of a commit in the log; the fields of the commit follow, each ended by a NUL."""

_PLAIN_LOG = (
    "--format=tformat:%x01%H%x00%P%x00%an%x00%cI%x00%s%x00",
    *("--no-show-signature", "--no-color", "--no-notes", "--no-mailmap", "--no-follow", "--encoding=UTF-8"),
)
"""Options of `git log`, which override the user's configuration. For example, `log.showSignature` would start gpg."""


class _Entry(NamedTuple):
    """File of a git revision: its path, and the id of its content in git."""

    path: str
    oid: str


class _Git:
    """Runner of git in a directory, one command at a time. Another thread may call `close()` to end git."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._lock = threading.Lock()
        self._running: Popen | None = None
        self.closed: bool = False

    def lines(self, *arguments: str, stdin: IO[bytes] | int = subprocess.DEVNULL) -> "_Output":
        """Start a command of git, and return an `_Output`, from which the output of the command can be read.

        Raises:
            SearchError: git cannot be started.
            FileNotFoundError: The directory does not exist.
            InterruptedError: The search has ended.
        """
        program = find_program("git")
        argv = (program or "git", *_GLOBAL_OPTIONS, *arguments)
        env = {name: value for name, value in os.environ.items() if name not in _DROPPED_VARIABLES}
        stderr = open_temporary_file()
        given = stdin if isinstance(stdin, int) else stdin.fileno()
        with self._lock:
            if self.closed:
                raise InterruptedError("the search has ended")
            try:
                if program is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                with defer_interrupts():
                    popen = start(
                        argv,
                        stdin=given,
                        stdout=subprocess.PIPE,
                        stderr=stderr,
                        env={**env, **_SETTINGS},
                        cwd=self._cwd,
                    )
            except OSError as error:
                stderr.close()
                raise _start_error(error, argv, self._cwd) from error
            self._running = popen
        return _Output(popen, argv, stderr)

    def read(self, *arguments: str) -> bytes:
        """Return the whole output of a command of git.

        Raises:
            SearchError: The command fails. This method also raises the errors of `lines()`.
        """
        with self.lines(*arguments) as output:
            return output.stdout.read()

    def close(self) -> None:
        """End the command that runs, and start no more commands."""
        with self._lock:
            self.closed = True
            if self._running is not None:
                kill(self._running)


class _Output:
    """Output of git. Leaving the context manager ends git, and raises an error if git failed."""

    def __init__(self, popen: Popen, argv: tuple[str, ...], stderr: IO[bytes]) -> None:
        self._popen = popen
        self._argv = argv
        self._stderr = stderr
        self.stdout = io.BufferedReader(cast("io.RawIOBase", popen.stdout), _BUFFER_BYTES)

    def __enter__(self) -> "_Output":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            kill(self._popen)
        try:
            self.stdout.close()
            code = wait_for_exit(self._popen, _EXIT_SECONDS)
            if code is None:
                kill(self._popen)
                wait_for_exit(self._popen, _EXIT_SECONDS)
            elif code and kind is None:
                self._stderr.seek(0)
                raise _git_error(self._argv, code, self._stderr.read(_MAX_ERROR))
        finally:
            self._stderr.close()

    def records(self) -> Iterator[bytes]:
        """Yield the parts of the output, each of which git ends with a NUL."""
        rest = b""
        while chunk := self.stdout.read1(_BUFFER_BYTES):
            *whole, rest = (rest + chunk).split(b"\0")
            yield from whole
        if rest:
            yield rest


def check_revision(rev: str) -> str:
    """Check a revision and return it.

    Raises:
        ValueError: The revision is empty, begins with a dash or `^`, begins or ends with white space, or has a NUL.
        TypeError: The revision is not a string.
    """
    if not isinstance(rev, str):
        raise TypeError(f"rev must be a str, got {type(rev).__name__}")
    if not rev or rev.startswith(("-", "^")) or "\0" in rev or rev != rev.strip():
        raise ValueError(
            HintedText(
                Hint("rev", kind="correct"), f" must be a revision of git, such as 'v1.2' or 'main~3', got {rev!r}"
            )
        )
    return rev


class RevisionSource(NamedSource):
    """Source of the regular files that a revision has below a directory, in path order.

    Links are left out. Submodules and missing objects become errors.
    """

    def __init__(self, cwd: str, rev: str, paths: Sequence[StrPath] = (), *, commits_only: bool = False) -> None:
        """Choose the files; git runs when they are read.

        Args:
            cwd: Directory in a repository; paths are relative to this directory.
            rev: Revision, such as a commit, branch or tag.
            paths: Files and directories; empty is all.
            commits_only: True if `rev` must be a commit. If False, `rev` may also be the tree of a subdirectory, such
                as `main:src`, whose paths do not begin at the top directory of the repository.
        """
        super().__init__()
        self._kind = "commit" if commits_only else "tree"
        self._cwd = cwd
        self._rev = rev
        self.roots: tuple[str, ...] = tuple(_relative(cwd, path) for path in paths)
        self._git = _Git(cwd)

    def __iter__(self) -> Iterator[Item]:
        entries = self._entries()
        missing = _missing(self._git, self._rev) if entries else frozenset[str]()
        read = [entry for entry in entries if entry.oid not in missing]
        self.errors.extend(_missing_error(entry.path, entry.oid) for entry in entries if entry.oid in missing)
        contents = _contents(self._git, [entry.oid for entry in read])
        for entry, content in zip(read, contents, strict=True):
            if content is None:
                self.errors.append(_missing_error(entry.path, entry.oid))
            else:
                yield entry.path, content

    def names(self) -> Iterator[str]:
        """Yield the paths of the selected files."""
        return (entry.path for entry in self._entries())

    def close(self) -> None:
        """End git."""
        self._git.close()

    def _entries(self) -> list[_Entry]:
        tree = _resolve(self._git, self._cwd, f"{self._rev}^{{{self._kind}}}", self._rev)
        entries: list[_Entry] = []
        left = set(self.roots)
        with self._git.lines("ls-tree", "-r", "-z", tree) as output:
            for record in output.records():
                about, _, path = record.partition(b"\t")
                mode, _, oid = about.decode().split(" ")
                name = os.fsdecode(path)
                named = next((one for one in self.roots if one in (os.curdir, name) or name.startswith(f"{one}/")), "")
                if self.roots and not named:
                    continue
                left.discard(named)
                if mode == _SUBMODULE:
                    about_it = (
                        f"a submodule at commit {oid[:12]}, whose files are not searched; search the directory of the "
                        "submodule separately"
                    )
                    self.errors.append(PathError(path=name, kind="other", message=about_it))
                elif mode.startswith(_REGULAR) and (name == named or self.selects(name)):
                    entries.append(_Entry(name, oid))
        if self.roots and left == set(self.roots):
            raise _no_path(self._rev, self.roots)
        return sorted(entries, key=lambda entry: os.fsencode(entry.path).replace(b"/", b"\0"))


@dataclass(slots=True)
class Blob:
    """Version of a file in a history.

    Attributes:
        oid: Id of the version (a blob of git).
        first: Oldest commit that introduced the version.
        paths: Paths that had the version, the newest first.
        last: Newest commit that had the version; `None` if it is not known.
    """

    oid: str
    first: Commit
    paths: dict[str, None] = field(default_factory=dict[str, None])
    last: Commit | None = None


class BlobName(str):
    """Name of an item in a history: a path of a version of a file, the newest that the search selects.

    Attributes:
        blob: Version of the file.
    """

    blob: Blob

    @classmethod
    def of(cls, path: str, blob: Blob) -> "BlobName":
        """Return the name with this path and this version."""
        name = cls(path)
        name.blob = blob
        return name


class HistorySource(Source):
    """Source of all versions of files in a git history; each version is yielded once, the newest first."""

    def __init__(self, cwd: str, rev: str, since: str | None, paths: Sequence[StrPath] = ()) -> None:
        """Choose the commits; git runs when they are read.

        Args:
            cwd: Directory in a repository; paths are relative to this directory, and only files in it are read.
            rev: Newest commit.
            since: Date that git can read; older commits are not read. `None` reads all commits.
            paths: Files and directories; empty is all.
        """
        super().__init__()
        self._cwd = cwd
        self._rev = rev
        self._since = since
        self.roots: tuple[str, ...] = tuple(_relative(cwd, path) for path in paths)
        self._git = _Git(cwd)
        self._commits: dict[str, Commit] = {}

    def __iter__(self) -> Iterator[Item]:
        tip = _resolve(self._git, self._cwd, f"{self._rev}^{{commit}}", self._rev)
        chosen = [
            (name, blob) for blob in self._blobs(tip).values() if (name := next(filter(self.selects, blob.paths), None))
        ]
        missing = _missing(self._git, tip, history=True) if chosen else frozenset[str]()
        self.errors.extend(_missing_error(name, blob.oid) for name, blob in chosen if blob.oid in missing)
        read = [(name, blob) for name, blob in chosen if blob.oid not in missing]
        contents = _contents(self._git, [blob.oid for _, blob in read])
        for (name, blob), content in zip(read, contents, strict=True):
            if content is None:
                self.errors.append(_missing_error(name, blob.oid))
            else:
                yield BlobName.of(name, blob), content

    def close(self) -> None:
        """End git."""
        self._git.close()

    def _blobs(self, tip: str) -> Mapping[str, Blob]:
        """Return the versions of files, the newest first, as a map from the id of each version to the version."""
        blobs: dict[str, Blob] = {}
        found = False
        left: dict[str, tuple[bool, str]] = {}  # by version: (removed by a merge, parent of the commit that removed it)
        since = () if self._since is None else (f"--since={_readable_date(self._git, self._since)}",)
        diff = ("--raw", "-z", "-m", "--root", "--no-renames", "--no-abbrev", "--relative", "--no-ext-diff")
        with self._git.lines("log", *diff, *_PLAIN_LOG, *since, tip, "--", *self.roots) as output:
            records = output.records()
            commit, parents = None, [""]
            for record in records:
                text = record.lstrip(b"\n")
                if text.startswith(_COMMIT):
                    commit, parents = self._commit(text, records)
                elif text.startswith(b":") and commit is not None:
                    found = True
                    path = os.fsdecode(next(records, b""))
                    old_mode, mode, old, new, _ = text[1:].decode().split(" ")
                    if mode.startswith(_REGULAR):
                        blob = blobs.setdefault(new, Blob(new, commit))
                        blob.first = commit
                        blob.paths[path] = None
                    if old_mode.startswith(_REGULAR) and old != new:
                        merges = len(parents) > 1
                        if old not in left or (left[old][0] and not merges):
                            left[old] = merges, parents[0]
        if self.roots and self._since is None and not found:
            raise _no_path(self._rev, self.roots)
        here = self._at_tip(tip)
        lasts = {oid: tip if oid in here else left.get(oid, (False, tip))[1] for oid in blobs}
        self._read_commits({oid for oid in lasts.values() if oid not in self._commits})
        for oid, blob in blobs.items():
            blob.last = self._commits.get(lasts[oid])
        return blobs

    def _commit(self, first: bytes, records: Iterator[bytes]) -> tuple[Commit, list[str]]:
        """Return the commit whose first record in the log is `first`, and the ids of its parents."""
        fields = (first[len(_COMMIT) :], *(next(records, b"") for _ in range(4)))
        oid, parents, author, date, subject = (field.decode("utf-8", "replace") for field in fields)
        if oid not in self._commits:
            self._commits[oid] = Commit(id=oid, author=author, date=read_date(date), subject=subject)
        return self._commits[oid], parents.split() or [""]

    def _at_tip(self, tip: str) -> frozenset[str]:
        with self._git.lines("ls-tree", "-r", "-z", tip) as output:
            return frozenset(record.partition(b"\t")[0].split(b" ")[2].decode() for record in output.records())

    def _read_commits(self, oids: Iterable[str]) -> None:
        """Read the commits with these ids, which the log did not show, and store them."""
        with open_temporary_file() as ids:
            ids.write("".join(f"{oid}\n" for oid in oids).encode())
            if not ids.tell():
                return
            ids.seek(0)
            with self._git.lines("log", "--no-walk=unsorted", "--stdin", "-z", *_PLAIN_LOG, stdin=ids) as output:
                records = output.records()
                for record in records:
                    if (text := record.lstrip(b"\n")).startswith(_COMMIT):
                        self._commit(text, records)


def _readable_date(git: _Git, since: str) -> str:
    """Check that git can read a date, and return it. `git log` would read any other text as the current time.

    Raises:
        ValueError: git cannot read the date.
    """
    try:
        git.read("config", "--type=expiry-date", f"--default={since}", "--get", "ripwrap.since")
    except SearchError as error:
        if error.returncode is None:  # git could not be started
            raise
        raise date_error(since) from None
    return since


def _resolve(git: _Git, cwd: str, name: str, rev: str) -> str:
    """Return the id of the object (commit or tree) that a revision names.

    Args:
        git: Runner of git.
        cwd: Directory, for errors.
        name: Revision with the type of the object, such as `main^{tree}`.
        rev: Revision as the caller passed it, for errors.

    Raises:
        ValueError: The revision does not exist, or the directory is not in a repository.
        SearchError: git could not be started, or failed for another reason.
    """
    try:
        return git.read("rev-parse", "--verify", "--quiet", name).decode().strip()
    except SearchError as error:
        if error.returncode is None:  # git could not be started
            raise
        stderr = "" if _OTHER_TYPE in error.stderr else error.stderr.strip()
    if "not a git repository" in stderr:
        raise ValueError(
            HintedText(
                Hint("rev", kind="correct"),
                f" needs a git repository, and {shown(cwd)} is not in a git repository; check ",
                Hint("cwd", kind="correct"),
            )
        )
    if stderr:
        raise SearchError(f"git could not read the revision {rev!r}: {stderr}")
    raise ValueError(
        HintedText(
            Hint("rev", kind="correct"),
            f" is not a revision of the repository in {shown(cwd)}: {rev!r}; pass a commit, branch or tag",
        )
    )


def _no_path(rev: str, paths: Sequence[str]) -> FileNotFoundError:
    text = HintedText(f"no such path in {rev}; check ", Hint("paths", kind="correct"))
    return FileNotFoundError(errno.ENOENT, text, ", ".join(map(shown, paths[:10])))


def _missing(git: _Git, rev: str, *, history: bool = False) -> frozenset[str]:
    """Return the ids of objects that are missing in a partial clone; empty if the repository is not a partial clone."""
    try:
        git.read("config", "--get-regexp", r"^remote\..*\.promisor$")
    except SearchError:  # git exits with 1 if no remote has this setting
        return frozenset()
    walk = () if history else ("--no-walk",)
    listing = git.read("rev-list", "--objects", "--no-object-names", "--missing=print", *walk, rev, "--")
    return frozenset(line[1:] for line in listing.decode().split("\n") if line.startswith("?"))


def _missing_error(path: str, oid: str) -> PathError:
    return PathError(
        path=path,
        kind="missing",
        message=(
            f"the repository does not have the object {oid[:12]}; if it is a partial clone, clone it again without "
            "--filter"
        ),
    )


def _contents(git: _Git, oids: Sequence[str]) -> Iterator[bytes | None]:
    """Yield the content of each blob; `None` for a blob that is missing in the repository."""
    if not oids:
        return
    with open_temporary_file() as ids:
        ids.write("".join(f"{oid}\n" for oid in oids).encode())
        ids.seek(0)
        with git.lines("cat-file", "--batch", "--buffer", stdin=ids) as output:
            for _ in oids:
                head = output.stdout.readline().split()
                if len(head) != 3:
                    if not head:
                        raise SearchError(
                            "git cat-file ended before it had written all files; search again", argv=("git", "cat-file")
                        )
                    yield None
                    continue
                content = output.stdout.read(int(head[2]))
                output.stdout.read(1)
                yield content


def _relative(cwd: str, path: StrPath) -> str:
    """Return a path relative to `cwd`, with `/` as separator.

    Raises:
        ValueError: The path is empty, or outside of `cwd`.
    """
    text = os.fspath(path)
    if not text:
        raise ValueError("a path is empty; pass '.' for the directory itself")
    try:
        relative = os.path.normpath(os.path.relpath(text, cwd) if os.path.isabs(text) else text).replace(os.sep, "/")
    except ValueError:  # on another drive of Windows
        relative = ".."
    if relative == ".." or relative.startswith("../"):
        raise ValueError(
            HintedText(
                f"the path {shown(text)} is outside of {shown(cwd)}, the only directory that ",
                Hint("rev"),
                " searches; check ",
                Hint("cwd", kind="correct"),
            )
        )
    return relative


def _start_error(error: OSError, argv: tuple[str, ...], cwd: str) -> Exception:
    if not os.path.isdir(cwd):
        return FileNotFoundError(error.errno, HintedText(Hint("cwd", kind="correct"), " does not exist"), cwd)
    return SearchError(f"could not start git: {error.strerror}; install git, or put it into PATH", argv=argv)


def _git_error(argv: tuple[str, ...], code: int, stderr: bytes) -> SearchError:
    text = stderr.decode("utf-8", "replace").strip()
    command = argv[len(_GLOBAL_OPTIONS) + 1]
    return SearchError(f"git {command} failed: {text or f'exit code {code}'}", argv=argv, returncode=code, stderr=text)

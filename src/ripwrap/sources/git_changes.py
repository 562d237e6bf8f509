"""Read the messages of the last commits of a git repository, with the files that they changed."""

import os
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

from ripwrap.options import Directories
from ripwrap.sources.git import MAX_BLOB_BYTES
from ripwrap.sources.git_process import LOG_MARK, PLAIN_LOG, Git
from ripwrap.sources.repository import real_directories

MAX_COMMITS = 3_000
"""Maximum number of commits, the newest first."""
MAX_PATHS = 30
"""Maximum number of files of a commit; a commit with more says little about each of them, and is left out."""
MAX_MESSAGE_BYTES = 1_000
"""Maximum number of bytes of a message; the rest is left out."""
_MAX_PATH_BYTES = 1_000
_LOG = (
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
        """Choose the repository; git runs when it is read.

        Args:
            cwd: Directory in a repository; only changes of files in it are read.
            repositories: Directories in which the repository must be, with all directories that it uses.
            deadline: Time, as `time.monotonic()` gives it, at which reading ends.
        """
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
        with self._git.lines(*_LOG) as output:
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

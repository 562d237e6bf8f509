"""First and last commits of the versions of files, from the changes between commits and their parents.

The commits come from the newest to the oldest, and no commit comes before one of its children. So the newest commit
with a version is either the tip, or it has a child without the version; then the change from it to the child removes
the version. The change is known for each parent of a merge, because the parents need not have the same files.
"""

from collections.abc import Iterable, Iterator

from ripwrap.errors import SearchError

REGULAR = "100"
"""Beginning of the modes of regular files."""


class Lifetimes:
    """Newest and oldest commits of versions."""

    def __init__(self, tip: str, versions: Iterable[str]) -> None:
        """Set the newest commit and its versions."""
        self.first: dict[str, str] = {}
        self.last: dict[str, str] = dict.fromkeys(versions, tip)
        self.waiting: int = 0
        self._waiting: dict[str, set[str]] = {}

    def reach(self, commit: str) -> None:
        """Go on to the next commit."""
        versions = self._waiting.pop(commit, set[str]())
        self.waiting -= len(versions)
        for version in versions:
            self.last.setdefault(version, commit)

    def add(self, version: str, commit: str) -> None:
        """Store that a commit has a version that one of its parents does not have."""
        self.last.setdefault(version, commit)

    def introduce(self, version: str, commit: str) -> None:
        """Store that a commit has a version that none of its parents has."""
        self.first[version] = commit

    def remove(self, version: str, parent: str) -> None:
        """Store that a parent has a version that its child does not have."""
        versions = self._waiting.setdefault(parent, set())
        if version not in self.last and version not in versions:
            versions.add(version)
            self.waiting += 1


class Diffs:
    """Changes of files, as `git diff-tree --stdin --always --raw -z` prints them for pairs of commits."""

    def __init__(self, records: Iterator[bytes]) -> None:
        self._records = records
        self._head = next(records, b"")

    def changes(self, commit: str) -> Iterator[tuple[str, str, bytes]]:
        """Yield the removed version, the added version and the path of each change of the next pair of commits.

        A version is empty if it is none of a regular file. The iterator must be exhausted before the next one.

        Raises:
            SearchError: The output is not about this commit.
        """
        if self._head.decode() != commit:
            raise SearchError("git ended early")
        self._head = b""
        for record in self._records:
            if not record.startswith(b":"):
                self._head = record
                return
            path = next(self._records, b"")
            old_mode, mode, old, new, _ = record[1:].decode().split(" ")
            removed = old if old_mode.startswith(REGULAR) else ""
            added = new if mode.startswith(REGULAR) else ""
            if removed != added:  # otherwise only the mode differs
                yield removed, added, path

"""Find out if an index is up to date without listing its files: by a journal of the changes in its root."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ripwrap._ripgrep.query import Query
from ripwrap.index.storage.files import own_files
from ripwrap.index.storage.tables import View

if TYPE_CHECKING:
    from ripwrap.index.inotify import InotifyJournal, JournalPosition

TRUST_SECONDS = 60.0
"""Seconds after a refresh in which a search does not refresh if the journal (the record of changes) has no change.

The journal misses a few kinds of changes; see `inotify.py`.
"""


@dataclass(frozen=True, slots=True)
class FinishedRefresh:
    """Data about a finished refresh, from which a later search decides if it must refresh again."""

    view: View
    begun: float
    generation: int | None
    position: "JournalPosition | None"


class RootJournal:
    """Journal of the changes in the root of an index, kept while the root is watched; with it, searches list less."""

    def __init__(self, listing: Query, folder: Path) -> None:
        """Set the query that lists the files of the root, and the directory of the index; nothing is watched yet."""
        self.watches: int = 0
        self.is_excluded: Callable[[str], bool] | None = None
        self._listing, self._folder = listing, folder
        self._opened: InotifyJournal | None = None

    @contextmanager
    def watched(self) -> Generator[None]:
        """Record changes of files while the block runs."""
        self.watches += 1
        try:
            yield
        finally:
            self.watches -= 1
            if not self.watches:
                self.close()

    def close(self) -> None:
        """Stop watching; the next call of `position()` starts again if the root is still to be watched."""
        journal, self._opened = self._opened, None
        if journal is not None:
            journal.close()

    def position(self, view: View) -> "JournalPosition | None":
        """Return the position in the journal; `None` if no journal records all changes now."""
        if not self.watches or view.follows or self._listing.options.get("include_git"):
            return None
        journal = self._opened
        if journal is None:
            from ripwrap.index.inotify import InotifyJournal  # late: it imports ctypes

            root = Path(self._listing.cwd)
            ignore_files = [os.path.join(root, one) for one in self._listing.values("ignore_file")]
            journal = InotifyJournal(root, own_files(self._folder, root), ignore_files, is_excluded=self.is_excluded)
            self._opened = journal
        return journal.position()

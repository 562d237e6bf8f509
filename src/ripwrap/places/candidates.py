"""Place that consists of the candidates of an index: the files that may have a match.

The result is the same as if rg searched all files. This module does no I/O.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from ripwrap._ripgrep.change import Change
from ripwrap._ripgrep.command import in_paths
from ripwrap._ripgrep.place import Part, Plan
from ripwrap._ripgrep.protocols import Runner
from ripwrap._ripgrep.query import Output, Query
from ripwrap.models import PathError
from ripwrap.options import FileOptions

_FILE_NAMES = frozenset(FileOptions.__annotations__) - {"threads"}
# A file name without characters that are special in globs, or `*` with a file extension.
_PLAIN_GLOB = re.compile(r"[*A-Za-z0-9_+-][A-Za-z0-9_.+-]*")
_MAX_GLOBS = 200
"""Maximum number of globs of a query. If more are needed, rg lists all files of the directories instead."""


@dataclass(frozen=True)
class Candidates:
    """Files of an index that may have a match; the place of a search in them.

    rg treats NUL bytes in two ways (rg-facts 20). It searches a file to the end if the command line names the file. It
    stops at the NUL byte if it finds the file in a directory. So the command line names only files without a NUL byte.
    """

    total: int
    named: tuple[str, ...] | None
    unsure: tuple[str, ...]
    errors: tuple[PathError, ...]
    own: re.Pattern[str] | None
    follow: bool
    iglob: tuple[str, ...] = ()

    @property
    def searched(self) -> int:
        """Number of files that rg searches."""
        return self.total if self.named is None else len(self.named) + len(self.unsure)

    @property
    def keeps_all(self) -> bool:
        """True if no result of rg is to be dropped."""
        return self.named is None and self.own is None

    @cached_property
    def paths(self) -> frozenset[str]:
        """Paths of all candidates."""
        return frozenset((*(self.named or ()), *self.unsure))

    def errors_with(self, errors: Iterable[PathError]) -> tuple[PathError, ...]:
        """Return the errors of the listing, and each error of the search whose path is a candidate that still exists.

        If rg searched all files, return all errors of the search, and no errors of the listing.
        """
        if self.named is None:
            return tuple(errors)
        found = [error for error in errors if error.path in self.paths and error.kind != "missing"]
        return tuple(dict.fromkeys((*self.errors, *found)))

    def below(self, folder: str) -> "Candidates | None":
        """Return the candidates in a directory; `None` if it has no candidates, e.g. because it is not in the index.

        If rg searches all files, or if `folder` is `.`, return this object.
        """
        if self.named is None or folder == os.curdir:
            return self
        start = os.path.join(folder, "")
        named, unsure = ([path for path in paths if path.startswith(start)] for paths in (self.named, self.unsure))
        return replace(self, named=tuple(named), unsure=tuple(unsure)) if named or unsure else None

    def only(self, allowed: Callable[[str], bool]) -> "Candidates":
        """Return the candidates for whose path `allowed` returns True."""
        named = None if self.named is None else tuple(filter(allowed, self.named))
        return replace(self, named=named, unsure=tuple(filter(allowed, self.unsure)))

    async def plan(self, query: Query, run: Runner, seconds: float | None) -> Plan:  # noqa: ARG002 - see `Place`
        """Return the runs that search the candidates; they share a change, which keeps each candidate once."""
        change = None if self.keeps_all else _Candidates(query.output, self)
        return Plan(tuple(Part(one, change) for one in self.queries(query)))

    def queries(self, query: Query) -> Iterator[Query]:
        """Yield the queries that search the candidates, given the query that searches all files."""
        if self.named is None:
            yield query
            return
        others = replace(query.without(*_FILE_NAMES), once=False)
        # rg maps files into memory if the command line names few files, and then treats NUL bytes differently (rg-facts
        # 20). `mmap=False` turns that off. The directory itself is among the paths so that at least one path exists,
        # and rg always checks the pattern.
        paths = (*self.named, os.curdir)
        yield in_paths(others.with_(mmap=others.options.get("mmap", False), max_depth=0), paths)
        if self.unsure:
            folders = dict.fromkeys(os.path.dirname(path) or os.curdir for path in self.unsure)
            yield in_paths(others.with_(**self._files_of_folders()), folders)

    def _files_of_folders(self) -> FileOptions:
        """Return options with which rg, in the directories of the unsure files, finds these and few other files."""
        options: FileOptions = {"max_depth": 1, "follow": self.follow, "include_git": True, "no_ignore": True}
        if self.iglob:
            options["iglob"] = self.iglob
        names = {os.path.basename(path) for path in self.unsure}
        globs = {*map(_glob, names)} if len(names) > _MAX_GLOBS else names
        if len(globs) > _MAX_GLOBS or not all(map(_PLAIN_GLOB.fullmatch, globs)):
            return options
        return {**options, "glob": sorted(globs)}


class _Candidates(Change):
    """Change that keeps each candidate once.

    For the unsure files, rg searches whole directories. There it also finds files that are not candidates, and finds
    the named files a second time. If rg searches all files, only the index's own files are dropped.
    """

    def __init__(self, output: Output, candidates: Candidates) -> None:
        self._candidates = candidates
        super().__init__(output, self._drops_path)

    def restart(self) -> None:
        """Return to the state before the first run."""
        super().restart()
        self._left = None if self._candidates.named is None else set(self._candidates.paths)

    def _drops_path(self, path: str) -> bool:
        own = self._candidates.own
        if self._left is None:
            return own is not None and own.fullmatch(path) is not None
        expected = path in self._left
        self._left.discard(path)
        return not expected


def _glob(name: str) -> str:
    """Return a glob for the extension of a file name, such as `*.py`; the name itself if it has no extension.

    One such glob matches many files, so that rg needs few globs.
    """
    extension = os.path.splitext(name)[1]
    return f"*{extension}" if extension else name

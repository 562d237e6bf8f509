"""Search the files that an index names, with the answer that rg gives for all files: pure, no I/O."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, cast

from ripwrap._ripgrep.command import Command, search_command
from ripwrap.models import PathError
from ripwrap.options import FileOptions, SearchOptions

PathFilter: TypeAlias = Callable[[bytes], bool]

_FILE_NAMES = frozenset(FileOptions.__annotations__) - {"threads"}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*")
_PLAIN_EXTENSION = re.compile(r"\.[A-Za-z0-9_+-]+")
_MAX_GLOBS = 200


@dataclass(frozen=True)
class Candidates:
    """Files that may have a match.

    rg goes on after a NUL in a file that is named, and leaves a file that it finds in a folder (rg-facts 20). So files
    are only named if they have no NUL.

    Attributes:
        total: Number of files of the index.
        named: Text files, which rg is given by name; `None` if rg shall search all files of the folder.
        unsure: Files that rg may take for binary, or that the index does not know well enough. rg finds them in their
            folders.
        errors: Paths that could not be read when the files were listed.
        own: Pattern of the paths of the index's own files; `None` if none is in the folder.
        follow: True if links are followed.
    """

    total: int
    named: tuple[str, ...] | None
    unsure: tuple[str, ...]
    errors: tuple[PathError, ...]
    own: re.Pattern[str] | None
    follow: bool

    @property
    def searched(self) -> int:
        """Number of files that rg searches."""
        return self.total if self.named is None else len(self.named) + len(self.unsure)

    @cached_property
    def _paths(self) -> frozenset[str]:
        return frozenset((*(self.named or ()), *self.unsure))

    def path_filter(self) -> PathFilter | None:
        """Return a function that says whether the matches of a file count, for one search; `None` if all do.

        In the folder of an unsure file, rg also finds files that it was given by name. They count once.
        """
        if self.named is None:
            own = self.own
            return None if own is None else lambda path: own.fullmatch(os.fsdecode(path)) is None
        left = {os.fsencode(path) for path in self._paths}

        def allowed(path: bytes) -> bool:
            expected = path in left
            left.discard(path)
            return expected

        return allowed

    def errors_with(self, errors: Iterable[PathError]) -> tuple[PathError, ...]:
        """Return the errors of the listing and of the search, without those of other files, and of files now gone."""
        if self.named is None:
            return tuple(errors)
        found = [error for error in errors if error.path in self._paths and error.kind != "missing"]
        return tuple(dict.fromkeys((*self.errors, *found)))

    def commands(self, command: Command, options: SearchOptions) -> Iterator[Command]:
        """Yield the commands that search, given the command and options for all files."""
        if self.named is None:
            yield command
            return
        others = {name: value for name, value in options.items() if name not in _FILE_NAMES}
        # Given a few files, rg would map them into memory. The folder itself is there so that at least one path exists,
        # and that rg checks the pattern in any case.
        paths = (*self.named, os.curdir)
        yield _command(command, paths, {"mmap": False, **others, "max_depth": 0})
        if self.unsure:
            folders = dict.fromkeys(os.path.dirname(path) or os.curdir for path in self.unsure)
            yield _command(command, tuple(folders), {**others, **self._files_of_folders()})

    def _files_of_folders(self) -> FileOptions:
        """Return options with which rg finds the unsure files in their folders, and few others."""
        options: FileOptions = {"max_depth": 1, "follow": self.follow, "include_git": True, "no_ignore": True}
        globs = {_glob(os.path.basename(path)) for path in self.unsure}
        return options if "*" in globs or len(globs) > _MAX_GLOBS else {**options, "glob": sorted(globs)}


def _command(command: Command, paths: tuple[str, ...], options: Mapping[str, object]) -> Command:
    return search_command(command.patterns, command.cwd, paths, cast("SearchOptions", options))


def _glob(name: str) -> str:
    """Return a glob for a name, mostly for its extension, so that there are few."""
    extension = os.path.splitext(name)[1]
    if _PLAIN_EXTENSION.fullmatch(extension):
        return f"*{extension}"
    return name if _PLAIN_NAME.fullmatch(name) else "*"

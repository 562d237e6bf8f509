"""Decide which items are searched: things with a name that are no files on the disk, such as members of an archive."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ripwrap._ignore.selection import OptionKind, Selection

_MAX_FOLDERS = 10_000
"""Maximum number of directories for which a `NameSelection` caches whether it selects them."""


class NameSelection:
    """Rules that select items by name, for searches of items that are not files.

    A name is matched as if it were the path of a file. Ignore files and limits of the file size have no effect. An item
    inside of an archive is also selected if a glob or type chooses the archive by its name, and it is not selected if
    one excludes the archive.
    """

    def __init__(
        self, options: Mapping[str, Any], types: Mapping[str, Sequence[str]], roots: Sequence[str] = ()
    ) -> None:
        """Prepare the rules."""
        self._selection = Selection("", {**options, "no_ignore": True}, types)
        self._roots = {"/".join(_parts(root)): True for root in roots}
        self._folders = {"": True, **self._roots}
        self._archive: tuple[str, frozenset[OptionKind] | None] = "", None  # the last archive, and what chooses it

    def selects(self, name: str) -> bool:
        """Return True if a search of files would read a file with the path `name`."""
        chosen = self._chosen(getattr(name, "outer", None))
        if chosen is None:
            return False
        parts = _parts(name)
        above = (len(_parts(root)) for root in self._roots if name.startswith(f"{root}/"))
        return self._selects(parts, max(above, default=0), chosen, is_folder=False)

    def _chosen(self, archive: str | None) -> frozenset[OptionKind] | None:
        """Return the kinds of options that choose an archive, or one that has it; `None` if an option excludes it."""
        if archive is None:
            return frozenset()
        if archive != self._archive[0]:
            above, path = self._chosen(getattr(archive, "outer", None)), "/".join(_parts(archive))
            own = frozenset[OptionKind]() if path in self._roots else self._selection.chosen_by(path)
            self._archive = archive, None if above is None or own is None else above | own
        return self._archive[1]

    def _selects(
        self,
        parts: Sequence[str],
        root: int,
        chosen: frozenset[OptionKind] = frozenset(),
        *,
        is_folder: bool,
    ) -> bool:
        """Return True if a path is selected; its first `root` parts are the path of a root."""
        above = "/".join(parts[:-1])
        if above not in self._folders:
            if len(self._folders) > _MAX_FOLDERS:
                self._folders = {"": True, **self._roots}
            self._folders[above] = self._selects(parts[:-1], root, is_folder=True)
        depth = len(parts) - root
        return self._folders[above] and self._selection.allows_name(
            "/".join(parts), depth, is_folder=is_folder, chosen=chosen
        )


def _parts(path: str) -> list[str]:
    return [part for part in path.replace(os.sep, "/").split("/") if part not in ("", os.curdir)]

"""Searches of `grep_content` in revisions of git, and inside archives and documents.

`ripwrap.workspace.revision` says what an item is, and which items an answer may name.
"""

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.query import Mode, Query
from ripwrap._text import as_utf8
from ripwrap.errors import Hint, combination_error
from ripwrap.options import SearchOptions
from ripwrap.places.inside import ArchiveLimits, in_files, layered
from ripwrap.places.items import ItemPlace, in_items
from ripwrap.sources.archives import check_inside
from ripwrap.sources.base import SEPARATOR, UNPACKED, Item, LocatedName, Source, format_of
from ripwrap.workspace.arguments import comma_separated
from ripwrap.workspace.grep_content_models import GrepContentArguments
from ripwrap.workspace.redact import UNKNOWN_KEYS, KeyLines, KeyScanner, Redactor, key_lines
from ripwrap.workspace.revision import ItemFilter
from ripwrap.workspace.scope import Scope, Settings


def into_archive(arguments: GrepContentArguments, scope: Scope) -> GrepContentArguments:
    """Return the arguments with which an archive that is named as `path` is searched as `inside` searches it."""
    formats, location = comma_separated(arguments.inside), scope.location
    paths = [one for one in location.paths if arguments.rev or os.path.isfile(os.path.join(location.cwd, one))]
    kinds = {kind for one in paths if (kind := format_of(one, UNPACKED)) is not None} - {*formats}
    if not kinds:
        return arguments
    inside = ",".join([*formats, *sorted(kinds)])
    return arguments.model_copy(update={"inside": inside, "sections": False, "expand": "none"})


def check_arguments(arguments: GrepContentArguments) -> None:
    """Check the arguments of a search with `rev` or `inside`."""
    what = "rev" if arguments.rev else "inside"
    given = {"sections": arguments.sections, "expand": arguments.expand != "none"}
    for name in (name for name, is_given in given.items() if is_given):
        raise combination_error(name, Hint(what, kind="omit"))
    if arguments.inside:
        check_inside(comma_separated(arguments.inside))


class _NotesKeys(Source):
    """Source that yields the items of another source, or one, and finds their lines of private keys, to be masked."""

    def __init__(self, source: Source, keys: dict[str, KeyLines], only: str = "") -> None:
        super().__init__()
        self.errors = source.errors
        self.keys: dict[str, KeyLines] = keys
        self._source = source
        self._only = only

    def __iter__(self) -> Iterator[Item]:
        self._source.selects, self._source.deadline = self.selects, self.deadline
        scanner, document = KeyScanner(), ""
        for name, content in self._source:
            if self._only not in ("", name):  # another part of the same document
                continue
            if not isinstance(content, str):
                file = io.BytesIO(content) if isinstance(content, bytes) else cast("BinaryIO", content)
                above = name.rpartition(SEPARATOR)[0] if isinstance(name, LocatedName) else ""
                if not above or above != document:  # a key may span parts of a document
                    scanner, document = KeyScanner(), above
                plain, found = str(name), key_lines(file, scanner)
                file.seek(0)
                before = self.keys.get(plain, found)  # two members may have the same name
                # Readers of documents may join lines and spaces, so each line of a part is also checked by itself.
                scanned = 0 if above else min(found.scanned, before.scanned)
                self.keys[plain] = KeyLines(found.numbers | before.numbers, scanned)
            yield name, content
            del content  # the next item needs the memory

    def close(self) -> None:
        """Close the source."""
        self._source.close()


@dataclass(frozen=True, slots=True)
class ItemSearch:
    """Search of a call with `rev` or `inside`."""

    settings: Settings
    arguments: GrepContentArguments
    scope: Scope
    keys: dict[str, KeyLines] = field(default_factory=dict[str, KeyLines])
    member: str = ""

    def query(self, pattern: str, options: SearchOptions, mode: Mode) -> Query:
        """Return the query that searches the items, and with `inside` also the files, with these options of rg."""
        location = self.scope.location
        if (revision := location.revision) is not None:
            plain = cast("SearchOptions", {name: one for name, one in options.items() if name != "ignore_file"})
            call = search_query(pattern, location.cwd, (), plain, mode)
            formats = tuple(comma_separated(self.arguments.inside))

            def opens() -> Source:
                return self._noting(layered(revision.source(location.paths), {}, formats))

            return in_items(call, ItemPlace(opens, revision.source(location.paths).roots, self.allows))
        denied = () if self.scope.denied is None else self.scope.denied.iglobs()
        limits = ArchiveLimits(denied, self.scope.allowed, self.allows, self._noting)
        call = search_query(pattern, location.cwd, location.paths, options, mode)
        return in_files(call, comma_separated(self.arguments.inside), limits)

    def allows(self, name: str) -> bool:
        """Return True if an answer may show an item."""
        if self.member not in ("", name) and not self.member.startswith(f"{name}{SEPARATOR}"):
            return False
        return ItemFilter(self.scope.location, self.scope.denied, hidden=self.arguments.include_hidden).allows(name)

    def shown(self, path: str) -> str:
        """Return the path of a file, or the name of an item, as it appears in the answer."""
        file, separator, member = path.partition(SEPARATOR)
        return self.scope.location.shown(file) + as_utf8(f"{separator}{member}")

    def is_item(self, path: str) -> bool:
        """Return True for the name of an item, and False for the path of a file on the disk."""
        return bool(self.arguments.rev) or SEPARATOR in path

    def has(self, path: str | None) -> bool:
        """Return True if an answer may name an item, or a file that rg prints; False for `None`."""
        return self.allows(path) if path and self.is_item(path) else self.scope.location.has(path)

    def redactor(self, path: str, check: Callable[[], object]) -> Redactor | None:
        """Return the function that masks secrets in the lines of a file or item; `None` if secrets are shown."""
        if not (masking := self.settings.redact):
            return None
        keys = self.keys.get(path)
        if keys is None and not self.is_item(path):
            return self.settings.redactor(self.scope.location, path, check)
        return lambda text, first: masking(text, first, UNKNOWN_KEYS if keys is None else keys, check)

    def _noting(self, source: Source) -> Source:
        return _NotesKeys(source, self.keys, self.member) if self.settings.redact or self.member else source

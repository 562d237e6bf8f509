"""Searches of `grep_content` in revisions of git, and inside archives and documents.

An item is a file in a revision, or a part of an archive or document. The globs of `deny` exclude items, too, and hidden
items are left out without `include_hidden`. A revision must be a commit. In the tree object of a subdirectory, paths
lack the name of the subdirectory, so the globs might not match them.
"""

import io
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO, cast

from ripwrap._operations.inside import inside_part, run_items
from ripwrap._operations.streams import CollectingAnswer, ItemNames, item_command
from ripwrap._ripgrep.batches import ItemCommand
from ripwrap._ripgrep.decoder import FileTypes
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.page_collector import Block, PageRequest
from ripwrap._ripgrep.runner import Runner, Step
from ripwrap._text import as_utf8
from ripwrap.models import PathError
from ripwrap.options import SearchOptions
from ripwrap.results import FileMatches
from ripwrap.sources.archives import check_inside, is_document
from ripwrap.sources.base import SEPARATOR, Item, LocatedName, Source
from ripwrap.sources.git import RevisionSource, check_revision
from ripwrap.workspace.arguments import comma_separated
from ripwrap.workspace.collector import RoundRobinMatchCollector
from ripwrap.workspace.grep_content_tool import GrepContentArguments
from ripwrap.workspace.redact import UNKNOWN_KEYS, KeyLines, KeyScanner, Redactor, key_lines, redact
from ripwrap.workspace.sandbox import Location
from ripwrap.workspace.scope import Scope, Settings

if TYPE_CHECKING:
    from ripwrap.workspace.grep_content import Query

_ITEM = "\0"
"""Character before the path of an item, to distinguish items from files on disk; no path of a file contains it."""


def check_arguments(arguments: GrepContentArguments) -> None:
    """Check the arguments of a search with `rev` or `inside`.

    Raises:
        ValueError: Two arguments cannot be combined, or a format or the revision is invalid.
    """
    what = "rev" if arguments.rev else "inside"
    if arguments.rev and arguments.inside:
        raise ValueError("inside cannot be combined with rev; leave one of them out")
    given = {"sections": arguments.sections, "expand": arguments.expand != "none"}
    for name in (name for name, is_given in given.items() if is_given):
        raise ValueError(f"{name} cannot be combined with {what}; leave one of them out")
    if arguments.rev:
        check_revision(arguments.rev)
    else:
        check_inside(comma_separated(arguments.inside))


class MergedCollector(RoundRobinMatchCollector):
    """Collector that combines the matches in files and the matches in items, as if one search had found all of them.

    An item is a file in a git revision, or a part of an archive or document.

    Attributes:
        errors: Errors about unreadable parts of a revision, an archive or a document.
        keys: Map from the name of an item, as answers show it, to the lines of private keys in the item.
    """

    def __init__(
        self,
        page: PageRequest,
        files: RoundRobinMatchCollector | None,
        items: "_Answer",
        errors: tuple[PathError, ...],
        keys: Mapping[str, KeyLines],
    ) -> None:
        super().__init__(page, None, None)
        self.errors: tuple[PathError, ...] = errors
        self.keys: Mapping[str, KeyLines] = keys
        self._files = files
        self._items = items
        parts = [part for part in (files, items.collector) if part is not None]
        self.matches: int = sum(part.matches for part in parts)
        self.files: int = sum(part.files for part in parts)
        self.binary: int = sum(part.binary for part in parts)
        self.timed_out: bool = any(part.timed_out for part in parts)
        if files is not None:
            self.end: Exit = files.end
        self._parts = parts

    @property
    def dropped(self) -> Mapping[str, int]:
        """Map from a file or item to the number of its dropped records (lines of rg's output that are too long)."""
        files: Mapping[str, int] = {} if self._files is None else self._files.dropped
        return {**files, **{str(self._items.names[path]): n for path, n in self._items.collector.dropped.items()}}

    @property
    def dropped_records(self) -> int:
        """Number of records that were dropped because they are too long."""
        return sum(part.dropped_records for part in self._parts)

    def blocks(self) -> Sequence[Block]:
        """Return the blocks; a block has the matches and the context of one file or item, as rg wrote them.

        `name_of()` converts the path of a block to a name.
        """
        files = () if self._files is None else self._files.blocks()
        items = self._items.collector.blocks()
        return (*files, *(replace(block, path=os.fsencode(_ITEM) + block.path) for block in items))

    def named(self) -> Sequence[tuple[bytes, int]]:
        """Return the files and items with a match, each with its number of matches."""
        files = () if self._files is None else self._files.named()
        return (*files, *((os.fsencode(_ITEM) + path, count) for path, count in self._items.collector.named()))

    def name_of(self, path: str) -> str:
        """Return the name for the path of a block: the path of a file, or the name of an item."""
        return str(self._items.names[path[1:]]) if path.startswith(_ITEM) else path


class _Answer(CollectingAnswer[RoundRobinMatchCollector]):
    """Answer that takes the first match of every item, then the second match of every item, and so on."""

    def keep_names(self) -> None:
        """Keep the names of the items with a match or a dropped line, and forget all other names."""
        blocks = (block.path for block in self.collector.blocks())
        named = (path for path, _ in self.collector.named())
        self.names.keep((*map(os.fsdecode, (*blocks, *named)), *self.collector.dropped))


class _NotesKeys(Source):
    """Source that yields the items of another source, and finds the lines of private keys in these items.

    Answers mask these lines.

    Attributes:
        keys: Map from the name of an item, as answers show it, to the lines of private keys in the item.
    """

    def __init__(self, source: Source, location: Location) -> None:
        super().__init__()
        self.errors = source.errors
        self.keys: dict[str, KeyLines] = {}
        self._source = source
        self._location = location

    def __iter__(self) -> Iterator[Item]:
        self._source.selects, self._source.deadline = self.selects, self.deadline
        scanner, document = KeyScanner(), ""
        for name, content in self._source:
            if not isinstance(content, str):
                file = io.BytesIO(content) if isinstance(content, bytes) else cast("BinaryIO", content)
                above = name.rpartition(SEPARATOR)[0] if isinstance(name, LocatedName) else ""
                if not above or above != document:  # a key may span parts of a document
                    scanner, document = KeyScanner(), above
                shown_name, found = name_in_answer(self._location, name), key_lines(file, scanner)
                file.seek(0)
                before = self.keys.get(shown_name, found)  # two members may have the same name
                # Readers of documents may join lines and spaces, so each line of a part is also checked by itself.
                scanned = 0 if above else min(found.scanned, before.scanned)
                self.keys[shown_name] = KeyLines(found.numbers | before.numbers, scanned)
            yield name, content
            del content  # the next item needs the memory

    def close(self) -> None:
        """Close the source."""
        self._source.close()


async def collect_merged(run: Runner, query: "Query", page: PageRequest) -> MergedCollector:
    """Search a git revision if `rev` is given; otherwise search files, then the inside of archives and documents.

    The errors of `stream_items()` are raised. `ValueError` is raised for a revision that does not exist, and for `rev`
    with several roots.
    """
    scope = query.scope
    until = None if scope.timeout is None else time.monotonic() + scope.timeout
    answer = _Answer(RoundRobinMatchCollector(page, None, None), ItemNames())
    allowed = ItemFilter(scope, hidden=query.arguments.include_hidden).allows
    options = cast("SearchOptions", {**scope.options, **query.options})
    noting: list[_NotesKeys] = []

    def wrap(source: Source) -> Source:
        if not query.settings.redact:
            return source
        noting.append(_NotesKeys(source, scope.location))
        return noting[0]

    def merged(files: RoundRobinMatchCollector | None, errors: Iterable[PathError]) -> MergedCollector:
        keys = noting[0].keys if noting else {}
        shown_errors = (error for error in errors if error.path is None or allowed(error.path))
        return MergedCollector(page, files, answer, tuple(shown_errors), keys)

    if query.arguments.rev:
        source = _revision(query, scope.location)
        options.pop("ignore_file", None)
        command = _filtered(item_command(query.arguments.pattern, options, roots=source.roots), allowed)
        answer.collector.timed_out = await run.collect_items(command, wrap(source), answer, scope.timeout)
        return merged(None, source.errors)
    formats = check_inside(comma_separated(query.arguments.inside))
    visible = query.allowed

    def is_file(path: bytes) -> bool:
        name = os.fsdecode(path)
        return not is_document(name, formats) and (visible is None or visible(name))

    def collector() -> RoundRobinMatchCollector:
        return RoundRobinMatchCollector(page, lambda path: is_file(os.fsencode(path)), query.progress)

    found = await run.collect(Step(query.command(query.options), collector, scope.timeout))
    denied = () if scope.denied is None else scope.denied.iglobs()
    part = inside_part(query.command(query.options), scope.location.cwd, scope.location.paths, options, formats, denied)
    part = replace(part, command=_filtered(part.command, allowed))
    searched = await run_items(run, part, answer, until, scope.allowed, wrap)
    return merged(found, searched.errors)


def _revision(query: "Query", location: Location) -> RevisionSource:
    if location.several:
        raise ValueError(
            "with rev, only one root can be searched; set path to the root whose git repository has this revision"
        )
    rev, settings = check_revision(query.arguments.rev), query.settings
    allowed = (*settings.sandbox.roots, *settings.repositories)
    return RevisionSource(location.cwd, rev, location.paths, commits_only=True, repositories=allowed)


def _filtered(command: ItemCommand, allowed: Callable[[str], bool]) -> ItemCommand:
    """Return a command that also excludes the items for whose names `allowed` returns False."""

    def selects(types: FileTypes) -> Callable[[str], bool]:
        selected = command.selects(types)
        return lambda name: allowed(name) and selected(name)

    return replace(command, selects=selects)


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Filter for items by name: the path in a revision, or the path of an archive followed by the path of its member.

    Attributes:
        scope: Scope of the call, with the denied paths.
        hidden: True to allow hidden items.
    """

    scope: Scope
    hidden: bool

    def allows(self, name: str) -> bool:
        """Return True if an answer may show an item."""
        file, *members = name.split(SEPARATOR)
        denied = self.scope.denied
        if denied is not None:
            if not denied.allows(file.replace("/", os.sep)):
                return False
            # Globs are compared with the path of a member from the top of the archive, and with the path that the
            # member would have if the archive were unpacked in its own directory.
            inner = [_plain(member) for member in members]
            paths = (*inner, *(os.path.join(os.path.dirname(file), path) for path in inner))
            if any(denied.rules.glob_of(path) for path in paths if path):
                return False
        if self.hidden:
            return True
        return not any(part.startswith(".") for part in self._below(file)) and not any(
            part.startswith(".") for member in members for part in _plain(member).split(os.sep)
        )

    def _below(self, file: str) -> list[str]:
        """Return the parts of a path below the location, without the location itself, because that may be hidden."""
        for root in self.scope.location.paths:
            start = root.replace(os.sep, "/")
            if file == start:
                return []
            if file.replace(os.sep, "/").startswith(f"{start}/"):
                return file[len(start) + 1 :].replace(os.sep, "/").split("/")
        return [part for part in file.replace(os.sep, "/").split("/") if part not in ("", os.curdir)]


def _plain(member: str) -> str:
    """Return the path of an archive's member for comparison with globs: without `..` and without a leading slash."""
    parts = member.replace("\\", "/").split("/")
    return os.sep.join(part for part in parts if part not in ("", os.curdir, os.pardir))


def name_in_answer(location: Location, name: str) -> str:
    """Return the name with which answers show a file or item."""
    file, separator, member = name.partition(SEPARATOR)
    return location.shown(file) + as_utf8(f"{separator}{member}")


def named_files(files: Iterable[FileMatches], found: MergedCollector, location: Location) -> tuple[FileMatches, ...]:
    """Return the files and items, each with its name in answers as its path; join those with the same name."""
    by_name: dict[str, FileMatches] = {}
    for file in files:
        name = name_in_answer(location, found.name_of(file.path))
        before = by_name.get(name)
        if before is None:
            by_name[name] = file.model_copy(update={"path": name})
        else:
            both = {
                "matches": (*before.matches, *file.matches),
                "total_matches": before.total_matches + file.total_matches,
            }
            by_name[name] = before.model_copy(update=both)
    return tuple(by_name.values())


def redactor_of(
    settings: Settings, location: Location, path: str, check: Callable[[], object], found: MergedCollector
) -> Redactor | None:
    """Return the function that masks secrets in the lines of a file or item; `None` if secrets are shown.

    Args:
        settings: Settings of the workspace.
        location: Location of the search.
        path: Name of the file or item in the answer.
        check: Function that is called before each line, and may raise an error; see `redact()`.
        found: Result of the search.
    """
    if not settings.redact:
        return None
    keys = found.keys.get(path)
    if keys is None and SEPARATOR not in path:
        return settings.redactor(location, path, check)
    return lambda text, first: redact(text, first, UNKNOWN_KEYS if keys is None else keys, check)

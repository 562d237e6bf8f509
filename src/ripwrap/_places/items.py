"""Place that consists of items: pairs of a name and a content, such as members of an archive or files of a revision.

The items are written to temporary files, in batches. While rg searches a batch, the next batch is written. The paths of
the temporary files in rg's output are replaced by the names of the items. Results are in the order of the items: rg's
output is read batch by batch, and rg searches the files of a batch in the order of their names (`--sort=path`).
"""

import base64
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from ripwrap._ripgrep.change import Change, Mode, mode_of, plain_bytes
from ripwrap._ripgrep.command import Command, search_command
from ripwrap._ripgrep.command import Mode as OutputMode
from ripwrap._ripgrep.decoder import DOT_SLASH, FileTypes, decode_types
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.output import WholeOutput
from ripwrap._ripgrep.place import Part, Place, Plan, chain, divide
from ripwrap._ripgrep.runner import Runner, Step
from ripwrap._ripgrep.spool import MAX_RUNNING, Batch, Feed, Spool
from ripwrap._text import raw_bytes
from ripwrap.errors import Hint, HintedText, SearchError
from ripwrap.models import PathError
from ripwrap.options import FileOptions, SearchOptions
from ripwrap.sources.base import AnyItems, NamedItem, Source

ARGUMENTS = ("pattern", "items", "limit", "rg")

NOWHERE = os.path.abspath(os.sep)
"""Working directory of commands for items. These commands search no file in this directory."""

_CHECKED_BY_RG = ("glob", "iglob", "type", "type_not", "type_add", "type_clear")
_BY_NAME = frozenset(FileOptions.__annotations__) - {"max_filesize"}
"""Options that choose items by their names. ripwrap applies them, because rg does not see these names."""

_REFUSED = {
    "ignore_file": "items have no ignore files",
    "sort": "matches come in the order of the items",
    "sortr": "matches come in the order of the items",
    "threads": "items are searched by several rg processes with one thread each",
}
"""Options that a search of items does not support, with the reasons."""

_MATCH = b'{"type":"match","data":{'


@dataclass(frozen=True, slots=True)
class ItemSelection:
    """Options that choose items by their names.

    Attributes:
        by_name: Options about names, such as `glob`.
        check: Command that searches nothing, but makes rg check the globs and file types; `None` if there are none.
        roots: Directories that no option excludes. Options can exclude the items in them.
        allows: Function that takes the name of an item, and returns False if the item is not to be searched.
    """

    by_name: Mapping[str, object]
    check: Command | None = None
    roots: Sequence[str] = ()
    allows: Callable[[str], bool] | None = None

    async def selects(self, run: Runner, seconds: float | None) -> Callable[[str], bool]:
        """Return the function that takes the name of an item and returns True if the item is to be searched.

        Raises:
            GlobError, UnknownTypeError, SearchError: rg rejects a glob or file type, or fails.
            TimeoutError: The time limit of `seconds` was reached.
        """
        types: FileTypes = {}
        if self.check is not None:
            await _output(run, self.check, seconds, lambda end: end.check(summary=True))
            types = decode_types(await _output(run, self.check.types(), seconds, Exit.check_listing))
        from ripwrap._ignore.selection import NameSelection  # imported late, because it imports pathspec

        selected, allows = NameSelection(self.by_name, types, self.roots).selects, self.allows
        return selected if allows is None else lambda name: allows(name) and selected(name)


async def _output(run: Runner, command: Command, seconds: float | None, check: Callable[[Exit], object]) -> bytes:
    output = await run.collect(Step(command, lambda: WholeOutput(check), seconds, metered=False))
    if output.timed_out:
        raise TimeoutError(f"rg was stopped after timeout={seconds} seconds; allow more time")
    return b"".join(output.chunks)


@dataclass(frozen=True, slots=True)
class ItemPlace:
    """Place that consists of items.

    Attributes:
        open: Function that returns the items of one search.
        selection: Options that choose items by their names.
        inner: Place of the search in each batch of items, such as files in several encodings; `None` for a plain one.
    """

    open: Callable[[], AnyItems]
    selection: ItemSelection
    inner: Place | None = None

    async def plan(self, command: Command, run: Runner, seconds: float | None) -> Plan:
        """Return a plan with a run for each batch of items."""
        selects = await self.selection.selects(run, seconds)
        batches = Batches(replace(command, place=self.inner), run, self.open(), selects, seconds)
        return Plan((), more=batches.more, ahead=MAX_RUNNING, errors=batches.errors, close=batches.close)


class Batches:
    """Runs of rg for items, each for one batch."""

    def __init__(
        self, command: Command, run: Runner, items: AnyItems, selects: Callable[[str], bool], seconds: float | None
    ) -> None:
        """Begin the iteration of the items.

        Args:
            command: Command for each batch; its directory is set for each batch.
            run: Runner, which reads the items.
            items: Items to search.
            selects: Function that takes the name of an item and returns True if the item is to be searched.
            seconds: Time limit for taking items; `None` is no limit.
        """
        self._command, self._run = command, run
        self._source = items if isinstance(items, Source) else None
        self._spool = Spool()
        self._feed = Feed(items, self._spool, selects, seconds=seconds)
        self._searched = False
        self._waits = False

    async def more(self) -> Sequence[Part] | None:
        """Write the next batch, and return its runs; see `Plan.more`.

        Without any item, rg still runs once, on an empty batch, because rg must check the pattern.

        Raises:
            Exception: The iterable of items raised this error, or an item is not a pair of a name and a content.
        """
        waits, self._waits = self._waits, False
        if waits:
            return ()
        feed = self._feed
        while not feed.ended:
            batch = self._spool.begin()
            if feed.is_async:
                await feed.fill_async(batch)
            else:
                await self._run.call(partial(feed.fill, batch))
            if batch.names or (feed.ended and not self._searched):
                self._searched, self._waits = True, feed.slow
                return await self._parts(batch)
            self._spool.discard(batch)
            if feed.slow:
                return ()
        if feed.error is not None:
            raise feed.error
        return None

    def errors(self) -> Sequence[PathError]:
        """Return the errors of the source: items that could not be read."""
        return () if self._source is None else self._source.errors

    def close(self) -> None:
        """End the iteration, and delete the temporary files."""
        self._feed.close()
        self._spool.__exit__()

    async def _parts(self, batch: Batch) -> Sequence[Part]:
        command = replace(self._command, cwd=batch.path)
        parts = (await divide(Part(command, in_order=True), self._run, None)).parts
        left = len(parts)

        def ended() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._spool.discard(batch)

        mode = mode_of(command)
        return [replace(part, change=chain(part.change, Renamed(mode, batch, ended))) for part in parts]


class Renamed(Change):
    """Change that replaces the paths of temporary files by the names of the items in these files."""

    def __init__(self, mode: Mode, batch: Batch, ended: Callable[[], object]) -> None:
        self._batch = batch
        self._on_end = ended
        self._old = self._name = self._old_match = self._match = b""
        super().__init__(mode, lambda path: False)  # noqa: ARG005 - drops nothing

    def exit(self, end: Exit) -> Exit:
        """Convert the exit of a run: its paths are no paths of the caller, and each must be readable."""
        self._on_end()
        end = super().exit(end)
        if errors := [error for error in end.path_errors() if error.path is not None]:
            text = (
                f"rg could not read the temporary file of an item ({errors[0].message}); do not delete "
                f"{os.path.dirname(self._batch.path)} before the search has ended"
            )
            stderr = end.stderr.decode("utf-8", "replace")
            error = SearchError(text, argv=end.argv, returncode=end.returncode, stderr=stderr)
            end = replace(end, failed=error)
        return replace(end, command=end.command.without_paths())

    def _begin(self, record: bytes) -> bytes:
        start = record.index(b'"path":')
        self._old = record[start : record.index(b"}", start) + 1]
        name = self._batch.name_of(json.loads(self._old.partition(b":")[2])["text"].removeprefix(DOT_SLASH))
        self._name = b'"path":' + _json_path(name)
        self._old_match = _MATCH + self._old
        self._match = _MATCH + self._name
        if isinstance(name, NamedItem):
            self._match += b"," + json.dumps(name.fields(_json_text))[1:-1].encode()
        return record.replace(self._old, self._name, 1)

    def _records_of_file(self, records: bytes) -> bytes:
        # A quote inside of a JSON string has a backslash before it, so only paths are replaced.
        return records.replace(self._old_match, self._match).replace(self._old, self._name)

    def _ended(self, record: bytes) -> bytes:
        return record.replace(self._old, self._name, 1)

    def _record(self, record: re.Match[bytes]) -> bytes:
        name = self._batch.name_of(os.fsdecode(plain_bytes(record[1])))
        if "\0" in name:
            raise ValueError(f"the name of an item has a NUL, so it cannot be listed: {name!r}; search() shows it")
        return raw_bytes(DOT_SLASH + name) + b"\0" + record[2]


def _json_path(name: str) -> bytes:
    """Return the path of an item as rg writes a path in JSON."""
    value = _json_text(DOT_SLASH + name)
    return json.dumps({"text": value} if isinstance(value, str) else value, separators=(",", ":")).encode()


def _json_text(text: str) -> str | dict[str, str]:
    """Return a text for JSON; its bytes in Base64 if they are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"bytes": base64.b64encode(raw_bytes(text)).decode()}
    return text


def item_command(
    pattern: str | Sequence[str],
    open_items: Callable[[], AnyItems],
    options: SearchOptions,
    arguments: Collection[str] = ARGUMENTS,
    roots: Sequence[str] = (),
    *,
    cwd: str = NOWHERE,
    mode: OutputMode = "json",
    allows: Callable[[str], bool] | None = None,
) -> Command:
    """Return the command of a search of items.

    Args:
        pattern: Pattern, or several.
        open_items: Function that returns the items of one search.
        options: Options of the search.
        arguments: Names of the caller's arguments that are not options. An error about an unknown option may suggest
            one of these names.
        roots: Directories that no option excludes. Options can exclude the items in them.
        cwd: Directory that the names of the items are relative to; it must exist.
        mode: What rg writes.
        allows: Function that takes the name of an item, and returns False if the item is not to be searched.

    Raises what `search_command()` raises, and `ValueError` for an option that a search of items does not support.
    """
    selection = item_selection(pattern, options, arguments, roots, allows)
    lines = {name: value for name, value in options.items() if name not in _BY_NAME}
    settings = {"no_ignore": True, "follow": False, "sort": "path"}
    command = search_command(pattern, cwd, (), cast("SearchOptions", {**lines, **settings}), mode)
    return replace(command, overlay=None, place=ItemPlace(open_items, selection))  # items are not files on disk


def item_selection(
    pattern: str | Sequence[str],
    options: SearchOptions,
    arguments: Collection[str] = ARGUMENTS,
    roots: Sequence[str] = (),
    allows: Callable[[str], bool] | None = None,
) -> ItemSelection:
    """Check the options of a search of items, and return those that choose items; see `item_command()`."""
    whole = search_command(pattern, NOWHERE, (), {**options, "max_depth": 0, "no_ignore": True}, arguments=arguments)
    given = cast("Mapping[str, Any]", options)
    for name, reason in _REFUSED.items():
        if given.get(name) not in (None, False, "none", (), []):
            raise ValueError(HintedText(Hint(name, kind="omit"), f" does not apply to items: {reason}; leave it out"))
    check = replace(whole, overlay=None) if any(name in given for name in _CHECKED_BY_RG) else None
    by_name = {name: value for name, value in given.items() if name in _BY_NAME}
    return ItemSelection(by_name, check, roots, allows)

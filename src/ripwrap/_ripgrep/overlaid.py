"""Change the output of rg as if the texts of `ripwrap.overlay()` had been on the disk.

1. rg lists the files that the search covers. If a listed path leads to a file of the overlay (perhaps through a link),
   the text of that file is selected. For files that do not exist on disk, rg lists empty files at the same places of a
   temporary directory that has the same ignore files.
2. The selected texts are written to temporary files. rg searches them, and their paths in rg's output are
   replaced by the paths of the overlay.
3. rg searches the files on disk. Its output about files of the overlay is removed, and the output of step 2 is added.

Because only the output of rg changes, every operation that reads this output supports overlays.
"""

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from operator import itemgetter
from typing import Any, TypeVar

from ripwrap._ripgrep.change import COUNT, PATH, Change, plain_bytes
from ripwrap._ripgrep.decoder import DOT_SLASH, PathDecoder
from ripwrap._ripgrep.exit_status import Exit, without_paths
from ripwrap._ripgrep.page_collector import ListingCollector, WholeOutput, path_order
from ripwrap._ripgrep.place import Part, Plan
from ripwrap._ripgrep.protocols import Step
from ripwrap._ripgrep.query import Output, Query
from ripwrap._ripgrep.spool import Batch, Spool
from ripwrap._system.concurrency import countdown
from ripwrap._system.overlay import OverlayTexts
from ripwrap._system.safe_open import read_start
from ripwrap._system.subprocess import TemporaryFolder
from ripwrap._text import to_envelope
from ripwrap.options import FileOptions

T = TypeVar("T")

_FILE_OPTIONS = frozenset(FileOptions.__annotations__) - {"max_filesize"}
"""Options that choose or sort files, such as `glob`. The search of the overlay's texts drops them."""

_ALL_FILES: FileOptions = {
    "no_ignore": True,
    "hidden": True,
    "follow": False,
    "no_require_git": False,
    "include_git": True,
    "sort": "path",
}
_NUMBERED = re.compile(rb'"path":\{"text":"(?:\.(?:/|\\\\))?([0-9]+)"\}')

MAX_RULES_BYTES = 1024 * 1024
"""Number of bytes at the start of an ignore file that apply to files that exist only in the overlay."""

_MAX_MAPPED = 10
"""Maximum number of paths with which rg uses memory maps, if all paths are files.

rg detects binary files differently with memory maps.
"""


class _TimeoutError(Exception):
    """Error for a time limit that was reached before the overlay's texts were searched; `end` is the exit of rg."""

    def __init__(self, end: Exit) -> None:
        super().__init__()
        self.end = end


class _Listing(WholeOutput):
    """Collector of the listed paths that lead to a file of the overlay, each with its text."""

    def __init__(self, paths: "_Paths") -> None:
        super().__init__(Exit.check_listing)
        self.found: list[tuple[str, bytes]] = []
        self._paths = paths
        self._decoder = PathDecoder()

    def feed(self, chunk: bytes) -> None:
        for path in self._decoder.feed(chunk):
            text = self._paths.overlay.texts.get(self._paths.real(path))
            if text is not None:
                self.found.append((path, text))


class _Paths:
    """Converter of the paths that rg prints to real paths; it caches the real paths of directories."""

    def __init__(self, query: Query, overlay: OverlayTexts) -> None:
        self.overlay = overlay
        self._cwd = query.cwd
        self._folders: dict[str, str] = {}

    def real(self, path: str) -> str:
        """Return the real path (without links) of a file that rg has printed."""
        above, name = os.path.split(os.path.join(self._cwd, path))
        if above not in self._folders:
            self._folders[above] = os.path.realpath(above)
        full = os.path.join(self._folders[above], name)
        return os.path.realpath(full) if full not in self.overlay.texts and os.path.islink(full) else full

    def folders(self) -> Mapping[str, str]:
        """Map the directories of the converted paths, and those above them in rg's `cwd`, to real, absolute paths."""
        known = dict(self._folders)
        for path in self._folders:
            while (path := os.path.dirname(path)) not in known and path.startswith(self._cwd):
                known[path] = os.path.realpath(path)
        return known

    def has_text(self, path: str) -> bool:
        """Return True if a path leads to a file that the overlay replaces or deletes."""
        return self.real(path) in self.overlay.texts


class _Order:
    """Order in which rg writes the results of files; `key()` returns the sort key of a file.

    The key is the number of the root, and the path of the file. The root is the path in the command line under which rg
    found the file.
    """

    def __init__(self, query: Query) -> None:
        self.sorted: bool = query.sort_key != "none"
        self.reverse: bool = query.reverse
        self._roots = [path.removeprefix(DOT_SLASH).rstrip(os.sep) or os.sep for path in query.paths]

    def key(self, path: str, least: int = 0) -> tuple[int, bytes]:
        """Return the sort key of a path."""
        if self.reverse:
            return 0, path_order(os.fsencode(path))
        holding = (number for number, root in enumerate(self._roots) if number >= least and _is_below(path, root))
        return next(holding, least), path_order(os.fsencode(path))


def _is_below(path: str, root: str) -> bool:
    return root == os.curdir or path == root or path.startswith(os.path.join(root, ""))


async def plan(query: Query, run: Any, seconds: float | None) -> Plan:
    """Search the texts of the query's overlay, and return the run that adds their results to those of the disk."""
    try:
        return await _plan(query, run, seconds)
    except _TimeoutError as late:
        return Plan((), late.end)


async def _plan(query: Query, runner: Any, seconds: float | None) -> Plan:
    overlay = query.overlay
    if overlay is None:
        raise ValueError("the query has no overlay")
    paths = _Paths(query, overlay)
    left = countdown(seconds)

    async def run(one: Query, make: Callable[[], Any]) -> Any:
        collector: Any = await runner.collect(Step(one, make, left(), metered=False))
        if collector.timed_out:
            raise _TimeoutError(collector.end)
        return collector

    disk: Query = await runner.call(lambda: _on_disk(query, overlay))
    found: list[tuple[str, bytes]] = []
    # A listing is an error if none of its paths exists, so leave out the paths that exist only in the overlay.
    listed = await runner.call(lambda: [path for path in disk.paths if os.path.exists(os.path.join(disk.cwd, path))])
    if listed and any(text is not None for text in overlay.texts.values()):
        listing = replace(disk.only_files().without("max_filesize"), paths=tuple(listed), overlay=None)
        found += (await run(listing, lambda: _Listing(paths))).found
    found += await _new_files(query, overlay, runner, run, paths.folders())
    named = {path.removeprefix(DOT_SLASH) for path in query.paths}
    mode = query.output
    blocks: list[tuple[str, bytes]] = []
    stats: list[dict[str, Any]] = []
    mapped = len(query.paths) <= _MAX_MAPPED
    mapped = mapped and all(_is_file(os.path.join(query.cwd, path), overlay) for path in query.paths)
    with Spool() as spool:
        for is_named in (False, True):
            batch = spool.begin()
            texts = [(path, text) for path, text in found if (path in named) is is_named]
            await runner.call(partial(_write, spool, batch, texts))
            if not batch.names:
                continue
            numbers = tuple(sorted(os.listdir(batch.path))) if is_named else (os.curdir,)
            search = query.without(*_FILE_OPTIONS).with_(**_ALL_FILES)  # in path order
            if not mapped and not search.options.get("mmap"):
                search = search.with_(mmap=False)
            search = replace(search, cwd=batch.path, paths=numbers, overlay=None)
            output = await run(search, lambda: WholeOutput(_check))
            blocks += _blocks(mode, b"".join(output.chunks), batch.name_of, stats)
    return Plan((Part(replace(disk, overlay=None), Overlaid(query, paths, mode, blocks, stats)),))


class Overlaid(Change):
    """Change that puts the results for the texts of the overlay in place of the results for their files."""

    def __init__(
        self, original: Query, paths: _Paths, mode: Output, blocks: list[tuple[str, bytes]], stats: list[dict[str, Any]]
    ) -> None:
        self._original = original
        self._paths = paths
        self._stats = stats
        self._order = _Order(original)
        self._blocks = [(self._order.key(path), output) for path, output in blocks]
        if self._order.sorted:
            self._blocks.sort(key=itemgetter(0), reverse=self._order.reverse)
        super().__init__(mode, paths.has_text)

    def restart(self) -> None:
        """Return to the state before the first run."""
        super().restart()
        self._pending = deque(self._blocks)
        self._root = 0

    def exit(self, end: Exit) -> Exit:
        """Convert the exit of a run on the files on disk, as if rg had also searched the texts of the overlay."""
        cwd, exists = self._original.cwd, self._paths.overlay.exists
        named = self._original.paths if self.last else ()
        missing = [path for path in named if exists(os.path.join(cwd, path)) is False]
        stderr = without_paths(end.stderr, self._paths.has_text)
        stderr += b"".join(b"rg: %b: No such file or directory (os error 2)\n" % os.fsencode(path) for path in missing)
        code = end.returncode
        # As in `Exit.check_listing()`: if the exit code does not fit the output, rg failed.
        valid = {0: end.wrote or not end.stderr, 1: not end.wrote or end.query.lists_zeros or self._mode == "json"}
        if end.lingered or end.failed or not (valid.get(code) or code == 2):
            return replace(end, query=self._original)
        code = 2 if missing or (code == 2 and stderr) else 0 if self._wrote else 1
        wrote, self._wrote = self._wrote, False
        return replace(end, query=self._original, returncode=code, stderr=stderr, wrote=wrote)

    def _before(self, path: bytes) -> Iterator[bytes]:
        """Yield the output for each text of the overlay that rg would write before the output for a file on disk."""
        if not self._pending:
            return
        key = self._order.key(os.fsdecode(path), self._root)
        self._root = key[0]
        while self._pending:
            first = self._pending[0][0]
            if self._order.sorted and not (first > key if self._order.reverse else first < key):
                break
            yield self._pending.popleft()[1]

    def _others(self) -> bytes:
        """Return the output for all texts of the overlay whose output was not returned before."""
        taken = b"".join(output for _, output in self._pending)
        self._pending.clear()
        return taken

    def _correct(self, stats: dict[str, Any]) -> None:
        """Subtract the counts of removed files; in the last run, add the counts of the texts."""
        super()._correct(stats)
        for other in self._stats if self.last else ():
            for name in stats.keys() - {"elapsed"}:
                stats[name] += other[name]


def _write(spool: Spool, batch: Batch, texts: Iterable[tuple[str, bytes]]) -> None:
    for path, text in texts:
        spool.add(batch, path, text)


def _check(end: Exit) -> None:
    if end.query.output == "json":
        end.check(summary=end.wrote)
    else:
        end.check_listing()


def _is_file(full: str, overlay: OverlayTexts) -> bool:
    exists = overlay.exists(full)
    return overlay.is_file(full) if exists is not None else os.path.isfile(full)


def _on_disk(query: Query, overlay: OverlayTexts) -> Query:
    """Return the query without the paths that exist only in the overlay, or that the overlay deletes."""
    kept: list[str] = []
    for path in query.paths:
        full = os.path.join(query.cwd, path)
        exists = overlay.exists(full)
        if exists is None or (exists and os.path.lexists(full)):
            kept.append(path)
    if len(kept) == len(query.paths):
        return query
    # If no path is left, rg gets the current directory with a depth of 0, so that it searches nothing.
    return replace(query, paths=tuple(kept)) if kept else replace(query.with_(max_depth=0), paths=(os.curdir,))


async def _new_files(
    query: Query, overlay: OverlayTexts, runner: Any, run: Callable[..., Any], folders: Mapping[str, str]
) -> list[tuple[str, bytes]]:
    """Return each path under which a search finds a file that exists only in the overlay, and the file's text.

    rg decides that: it lists empty files at the same places of a directory that has only copies of the ignore files.
    """
    places = await runner.call(lambda: [*_places(query, overlay, folders)])
    inner = [one for one in places if one.parts]
    if not inner:
        return [(one.shown, one.text) for one in places]
    with TemporaryFolder("ripwrap-") as mirror:
        cwd = _inside(mirror, await runner.call(lambda: os.path.realpath(query.cwd)))
        await runner.call(lambda: _grow(mirror, cwd, inner))
        roots = {one.root: _mirrored(mirror, one.root) for one in inner}
        files = query.only_files().without("max_filesize", "one_file_system", "ignore_file")
        kept = [os.path.join(query.cwd, path) for path in query.values("ignore_file")]
        files = replace(files.with_(ignore_file=kept), cwd=cwd, paths=tuple(roots.values()), overlay=None)
        listing = await run(files, lambda: ListingCollector(PathDecoder()))
        listed = {path.removeprefix(mirror).removeprefix(DOT_SLASH) for path in listing.every()}
    return [(one.shown, one.text) for one in places if not one.parts or one.shown in listed]


@dataclass(frozen=True, slots=True)
class _NewFile:
    """File of the overlay below a searched path, whose real path is `real`; without `parts` if it is that path."""

    root: str
    real: str
    parts: tuple[str, ...]
    text: bytes

    @property
    def shown(self) -> str:
        return os.path.join(self.root, *self.parts).removeprefix(DOT_SLASH)


def _places(query: Query, overlay: OverlayTexts, folders: Mapping[str, str]) -> Iterator[_NewFile]:
    """Yield the files that exist only in the overlay, once for each way to them from a searched path."""
    new = {path: text for path, text in overlay.texts.items() if text is not None and not os.path.lexists(path)}
    for root in query.paths if new else ():
        top = os.path.normpath(os.path.join(query.cwd, root))
        known = {top: os.path.realpath(top), **{path: real for path, real in folders.items() if _is_below(path, top)}}
        for path, text in new.items():
            if path == known[top]:
                yield _NewFile(root, known[top], (), text)
            above = [(folder, real) for folder, real in known.items() if path.startswith(os.path.join(real, ""))]
            for full in sorted({os.path.join(folder, os.path.relpath(path, real)) for folder, real in above}):
                if _may_be_entered(query, known[top], os.path.dirname(full)):
                    yield _NewFile(root, known[top], tuple(os.path.relpath(full, top).split(os.sep)), text)


def _may_be_entered(query: Query, top: str, folder: str) -> bool:
    """Return True if rg enters the part of a directory's path that is on the disk."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        return False
    return not query.options.get("one_file_system") or os.stat(folder).st_dev == os.stat(top).st_dev


def _grow(mirror: str, cwd: str, places: Iterable[_NewFile]) -> None:
    """Make the files in the mirror, and copy the ignore files of all directories above them."""
    os.makedirs(cwd, exist_ok=True)
    known: set[str] = set()
    for one in places:
        file = os.path.join(one.real, *one.parts)
        copied = os.path.dirname(file)
        os.makedirs(_inside(mirror, copied), exist_ok=True)
        while copied not in known:
            known.add(copied)
            _copy_rules(copied, _inside(mirror, copied))
            copied = os.path.dirname(copied)
        open(_inside(mirror, file), "wb").close()
        link = os.path.normpath(os.path.join(cwd, _mirrored(mirror, one.root)))
        if not os.path.lexists(link):  # a path that leads through links
            os.makedirs(os.path.dirname(link), exist_ok=True)
            os.symlink(_inside(mirror, one.real), link)


def _copy_rules(folder: str, copy: str) -> None:
    for kind in (".rgignore", ".ignore", ".gitignore", ".git", os.path.join(".git", "info", "exclude")):
        with suppress(OSError):  # no such file, or no file
            text = read_start(os.path.join(folder, kind), MAX_RULES_BYTES)
            os.makedirs(os.path.dirname(os.path.join(copy, kind)), exist_ok=True)
            with open(os.path.join(copy, kind), "wb") as file:
                file.write(text)
    for kind in (".git", ".jj"):
        if os.path.isdir(os.path.join(folder, kind)):
            os.makedirs(os.path.join(copy, kind), exist_ok=True)


def _inside(mirror: str, path: str) -> str:
    return os.path.join(mirror, os.path.splitdrive(path)[1].lstrip(os.sep))


def _mirrored(mirror: str, root: str) -> str:
    return _inside(mirror, root) if os.path.isabs(root) else root


def _blocks(
    mode: Output, output: bytes, name_of: Callable[[str], str], stats: list[dict[str, Any]]
) -> Iterator[tuple[str, bytes]]:
    """Yield the path of each text and rg's output for it; replace the paths of temporary files in the output."""
    if mode != "json":
        for record in (PATH if mode == "paths" else COUNT).finditer(output):
            path = name_of(os.fsdecode(plain_bytes(record[1])))
            yield path, os.fsencode(path) + b"\0" + record[2]
        return
    path, spelled, lines = "", b"", list[bytes]()
    for line in BytesIO(output).readlines():
        numbered = _NUMBERED.search(line, 0, 100)
        if numbered is None:
            summary = json.loads(line)
            if summary.get("type") == "summary":
                stats.append(summary["data"]["stats"])
            continue
        if line.startswith(b'{"type":"begin"'):
            path, lines = name_of(numbered[1].decode()), []
            envelope = to_envelope(os.fsencode(path))
            spelled = json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode()
        lines.append(line[: numbered.start()] + b'"path":' + spelled + line[numbered.end() :])
        if line.startswith(b'{"type":"end"'):
            yield path, b"".join(lines)

"""Collect what a page, a listing or a ranking needs of rg's output, and count the rest; no I/O.

rg searches files in parallel and writes them in any order (rg-facts 22); with `--sort` it would use one thread only. So
this module selects the page. It keeps a file as long as the file can be on the page, and drops it when files with
earlier paths fill the page.
"""

import os
import re
import sys
from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Generic, NamedTuple, Protocol, TypeVar

from ripwrap._ripgrep.decoder import MAX_RECORD, Framer, decode_path, kind_of, path_in, path_of
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._text import in_seconds
from ripwrap.errors import DecodeError, Hint, HintedText
from ripwrap.models import FileCount, PathError

# The fewest first bytes that distinguish a match, a line of context and the end of a file from any other record.
_HEAD_BYTES = len(b'{"type":"context","data":')
_MATCH, _CONTEXT, _END = (b'{"type":"%b","data":{"path":' % kind for kind in (b"match", b"context", b"end"))
_MATCH_HEAD, _CONTEXT_HEAD, _END_HEAD = (start[:_HEAD_BYTES] for start in (_MATCH, _CONTEXT, _END))
_DOT_SLASH = os.fsencode(os.path.join(os.curdir, ""))
_take_head = itemgetter(slice(_HEAD_BYTES))


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Request for one page: some successive matches in path order, with their context."""

    offset: int
    max_matches: int
    max_files: int
    before: int
    after: int
    max_count: int | None

    @property
    def end(self) -> int:
        """Position of the page's end: `offset + max_matches`."""
        return self.offset + self.max_matches


@dataclass(slots=True)
class Block:
    """Records of one file, as rg wrote them."""

    path: bytes
    matches: int = 0
    records: list[tuple[bool, bytes]] = field(default_factory=list[tuple[bool, bytes]])
    end: bytes = b""
    number: int = 0
    trailing: int = 0
    """Number of records after the last match that can be on the page."""


class PageCollector:
    """Collector of the records of a page. It accepts files in any order, and counts every match.

    Only the path of a file is decoded; the first bytes of a record tell its kind. At most `3 * PageRequest.end` matches
    are in memory, with their context.

    With `max_count`, the context after the last counted match may contain further matches, and rg writes these lines as
    matches (rg-facts 18). The collector converts them to context. If `allowed` returns False for the path of a file,
    the matches in the file are not counted.
    """

    full = False
    """True if no more output is needed, so that rg is ended, and `matches` and `files` are lower bounds."""

    _counts_together = True
    """True if matches that cannot be on the page are only counted; False in a subclass that reads every match."""

    def __init__(
        self, request: PageRequest, allowed: Callable[[bytes], bool] | None = None, *, max_record: int = MAX_RECORD
    ) -> None:
        self.matches: int = 0
        self.files: int = 0
        self.binary: int = 0
        self.ended: bool = False
        self._request = request
        self._allowed = allowed
        self._skipping_file = False
        self._framer = Framer(max_record, path_in)
        self._kept: list[Block] = []
        self._held = 0
        self._block: Block | None = None
        self._in_file = 0
        self._number = 0
        self._ordered = False

    def begin_ordered(self) -> None:
        """Keep the order of all further files, which come after the files so far; `allowed` is not asked for these."""
        self._keep_block()
        self._ordered = True
        self._allowed = None  # these files are items, which were selected by their names

    @property
    def dropped(self) -> Mapping[str, int]:
        """Map each path, in order, to the number of its records that are too long; their matches are not counted."""
        dropped = self._framer.dropped
        return dict(sorted(dropped.items(), key=lambda one: path_order(os.fsencode(one[0]))))

    @property
    def dropped_records(self) -> int:
        """Number of records that were dropped because they are too long."""
        return self._framer.dropped.total()

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        records = self._framer.feed(chunk)
        heads: list[bytes] = []
        number = 0
        while number < len(records):
            block = self._block
            # If no further record of the file can be on the page, its matches are only counted.
            if self._counts_together and (
                block is None or (block.matches >= self._request.end and block.trailing == self._request.after)
            ):
                heads = heads or list(map(_take_head, records))
                end = _end_of_lines(heads, number)
                self._count(heads[number:end].count(_MATCH_HEAD))
                number = end
                if end == len(records):
                    return
            self._take(records[number])
            number += 1

    def close(self) -> None:
        """Process the last line, if it has no newline; raise what `feed()` raises."""
        for record in self._framer.close():
            self._take(record)

    def blocks(self) -> Sequence[Block]:
        """Return the files that can be on the page, in path order; if rg was stopped, also the unfinished file."""
        self._keep_block()
        return self._kept

    def _take(self, record: bytes) -> None:
        match kind_of(record):
            case "match":
                self._match(record)
            case "context":
                self._append(record, is_match=False)
            case "begin":
                self._begin(path_of(record))
            case "end":
                self._end(record)
            case "summary":
                self.ended = True
            case _:
                pass  # a kind of record that a later version of rg added

    def _begin(self, path: bytes) -> None:
        self._keep_block()
        self._in_file = 0
        self._number += 1
        self._skipping_file = self._allowed is not None and not self._allowed(path)
        if not self._skipping_file and self._may_be_on_page(path):
            self._block = Block(path, number=self._number)

    def _may_be_on_page(self, path: bytes) -> bool:
        if not (self._request.max_matches and self._request.max_files):
            return False
        return not self._fills_page(len(self._kept), self._held) or self._is_before(path, self._kept[-1])

    def _is_before(self, path: bytes, block: Block) -> bool:
        """Return True if a file that comes now is before a file that is kept."""
        return not self._ordered and path_order(path) < path_order(block.path)

    def _keep(self, block: Block) -> None:
        """Add a file to the kept files."""
        if self._ordered:
            self._kept.append(block)
        else:
            insort(self._kept, block, key=lambda kept: path_order(kept.path))

    def _add_file(self, path: bytes, matches: int) -> None:
        """Count a file of which only the number of matches is known, and keep it if it can be on the page."""
        self.matches += matches
        self.files += 1
        path = path.removeprefix(_DOT_SLASH)
        if self._may_be_on_page(path):
            self._block = Block(path, matches, number=self.files)
            self._keep_block()

    def _match(self, record: bytes) -> None:
        self._append(record, is_match=bool(self._count(1)))

    def _count(self, matches: int) -> int:
        """Count matches of the current file, up to `max_count`, and return how many were counted."""
        if self._skipping_file:
            return 0
        if self._request.max_count is not None:
            matches = min(matches, self._request.max_count - self._in_file)
        self.matches += matches
        self.files += bool(matches) and not self._in_file
        self._in_file += matches
        if self._block:
            self._block.matches += matches
        return matches

    def _append(self, record: bytes, *, is_match: bool) -> None:
        block = self._block
        if block is None:
            return
        if block.matches + (not is_match) > self._request.end:
            if block.trailing == self._request.after:
                return
            block.trailing += 1
        block.records.append((is_match, record))

    def _end(self, record: bytes) -> None:
        self.binary += bool(self._in_file) and not is_text(record)
        if self._block:
            self._block.end = record
        self._keep_block()

    def _keep_block(self) -> None:
        """Add the current file to the kept files, and drop files that can no longer be on the page."""
        if self._block and self._block.matches:
            self._keep(self._block)
            self._held += self._block.matches
        self._block = None
        while self._kept and self._fills_page(len(self._kept) - 1, self._held - self._kept[-1].matches):
            self._held -= self._kept.pop().matches

    def _fills_page(self, count: int, held: int) -> bool:
        """Return True if the first `count` kept files, with `held` matches, fill the page."""
        files = self._request.max_files
        if held >= self._request.end:
            return True
        if count < files:
            return False
        # A page begins in the file with the match at `offset`, and has at most `max_files` files. So the page is full
        # if at least `max_files - 1` of the first `count` files come after that file.
        return held - sum(block.matches for block in self._kept[count - files + 1 : count]) > self._request.offset


class MatchCollector(PageCollector):
    """Collector of the matches of one search."""

    end: Exit
    timed_out: bool

    def end_run(self, end: Exit) -> None:
        """Process the end of a run of rg; raise an error if rg failed."""
        if end.ended:
            self.close()
        end.check(summary=self.ended)
        self.ended = False

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Store the exit of rg, and in `timed_out` whether rg was stopped at its time limit."""
        self.end, self.timed_out = end, timed_out

    def path_errors(self) -> tuple[PathError, ...]:
        """Return the errors for paths that rg could not read."""
        return self.end.path_errors()

    @property
    def exact(self) -> bool:
        """True if all matches were counted: rg was not stopped, and no record was too long."""
        return not self.timed_out and not self.full and not self.dropped_records


class FirstMatches(MatchCollector):
    """Collector that ends rg when the page is full, with the context of its last match."""

    _counts_together = False

    def feed(self, chunk: bytes) -> None:
        super().feed(chunk)
        filled = self._fills_page(len(self._kept), self._held)
        if not filled and self._block is not None:
            records, last = self._block.records, self._request.end - self._held
            at = [number for number, (is_match, _) in enumerate(records) if is_match]
            filled = len(at) >= last and len(records) > at[last - 1] + self._request.after
        self.full = filled and not self.ended


def _end_of_lines(heads: Sequence[bytes], first: int) -> int:
    """Return the position of the first record from `first` on that is no match or context, or else their number."""
    if heads[first] not in (_MATCH_HEAD, _CONTEXT_HEAD):
        return first
    try:
        end = heads.index(_END_HEAD, first)
    except ValueError:
        end = len(heads)
    lines = heads[first:end]
    if lines.count(_MATCH_HEAD) + lines.count(_CONTEXT_HEAD) == len(lines):
        return end
    return next(place for place in range(first, end) if heads[place] not in (_MATCH_HEAD, _CONTEXT_HEAD))


def path_order(path: bytes) -> bytes:
    """Return the sort key of a path, which gives the order of `rg --sort=path`: paths are compared name by name."""
    return path.replace(os.fsencode(os.sep), b"\0")


def is_text(end: bytes) -> bool:
    """Return True if an `end` record reports no NUL byte, or if the record is empty."""
    return not end or b'"binary_offset":null' in end


class WholeOutput:
    """Collector of the whole output of rg."""

    ended = False

    def __init__(self, check: Callable[[Exit], object]) -> None:
        """Set the function that raises an error if rg failed."""
        self.chunks: list[bytes] = []
        self.timed_out = False
        self._check = check

    def feed(self, chunk: bytes) -> None:
        """Store a chunk of rg's output."""
        self.chunks.append(chunk)

    def end_run(self, end: Exit) -> None:
        """Raise an error if rg failed."""
        self._check(end)

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Store the exit of rg, and whether rg was stopped at its time limit."""
        self.end, self.timed_out = end, timed_out


def refuse_failure(end: Exit) -> None:
    """Raise `SearchError` if rg did not exit with 0."""
    if end.returncode:
        raise end.failure()


NO_LIMIT = sys.maxsize
"""Number of items that no listing reaches."""

Item = TypeVar("Item", bound=str | FileCount)
ItemOut = TypeVar("ItemOut", covariant=True)


class Decoder(Protocol[ItemOut]):
    """Interface of a decoder of rg's output into items: paths, or paths with a count."""

    def feed(self, chunk: bytes) -> Sequence[ItemOut]:
        """Return the items that `chunk` completes."""
        ...

    def close(self) -> None:
        """Check that the stream ended with a complete item."""
        ...


class BaseListingCollector(Generic[ItemOut]):
    """Base class of the collectors of the paths or counts that rg lists; it handles the exit of rg."""

    def __init__(self, decoder: Decoder[ItemOut]) -> None:
        self.end: Exit | None = None
        self.errors: tuple[PathError, ...] = ()
        self.timed_out: bool = False
        self.ended: bool = False
        self._decoder = decoder

    def end_run(self, end: Exit) -> None:
        """Raise an error if rg failed, or if its output ends with an incomplete item."""
        end.check_listing()
        self._decoder.close()

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Store the exit of rg and its errors."""
        self.end, self.timed_out = end, timed_out
        self.errors = end.path_errors()


class ListingCollector(BaseListingCollector[Item]):
    """Collector of the paths or counts that rg lists; it holds at most `2 * max_items + 1000` between chunks."""

    def __init__(
        self,
        decoder: Decoder[Item],
        max_items: int = NO_LIMIT,
        *,
        allowed: Callable[[str], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Set the maximum number of items to return, and the function that chooses items."""
        super().__init__(decoder)
        self.total = 0
        self.counted = 0
        self._max_items = max_items
        self._allowed = allowed
        self._progress = progress
        self._items: list[Item] = []
        self._ordered = False

    def begin_ordered(self) -> None:
        """Keep the order of all further items, which come after the items so far; `allowed` is not asked for these."""
        self._trim()
        self._ordered = True
        self._allowed = None  # these are items of a place, which were selected by their names

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        items = self._decoder.feed(chunk)
        if self._allowed is not None:
            items = [item for item in items if self._allowed(_path(item))]
        self.total += len(items)
        if items and isinstance(items[0], FileCount):  # then all items are counts
            self.counted += sum(item.count for item in items if isinstance(item, FileCount))
        self._items += items
        if len(self._items) > 2 * self._max_items + 1000:
            self._trim()
        if self._progress is not None:
            self._progress(self.total)

    def every(self) -> list[Item]:
        """Return all items that are in memory, in any order."""
        return self._items

    def items(self) -> list[Item]:
        """Return the first items in path order."""
        self._trim()
        return self._items

    def _trim(self) -> None:
        if not self._ordered:
            self._items.sort(key=lambda item: path_order(os.fsencode(_path(item))))
        del self._items[self._max_items :]


def _path(item: str | FileCount) -> str:
    return item if isinstance(item, str) else item.path


MAX_NAMED_FILES = 1000
"""Maximum number of files for `RoundRobinCollector.named()`: the first files with a match, in path order.

Further files are only counted. If `PageRequest.end` is higher, `PageRequest.end` is the maximum instead. In both cases,
`max_files` is an upper limit.
"""


class NamedFile(NamedTuple):
    """File with a match."""

    path: bytes
    matches: int
    number: int


class RoundRobinCollector(PageCollector):
    """Collector of a page of matches in rotation: the first match of each file, then the second of each file.

    It also collects the paths of the files with a match. At most `3 * PageRequest.end` matches are in memory, with
    their context. If `max_files` is less than `PageRequest.end`, up to `PageRequest.end` matches of each file may be
    in memory instead.
    """

    def __init__(self, request: PageRequest, allowed: Callable[[bytes], bool] | None = None) -> None:
        super().__init__(request, allowed)
        self._path: bytes | None = None
        self._named: list[NamedFile] = []
        self._max_page_files = min(request.max_files, request.end)  # maximum number of files with a match on the page
        self._trim_above = 2 * request.end
        self._max_named = min(request.max_files, max(MAX_NAMED_FILES, request.end))

    def named(self) -> Sequence[NamedFile]:
        """Return the first files with a match, by path; see `MAX_NAMED_FILES`."""
        self._keep_block()
        self._trim_names()
        return self._named

    def _begin(self, path: bytes) -> None:
        super()._begin(path)
        self._path = path

    def _may_be_on_page(self, path: bytes) -> bool:
        if not (self._max_page_files and self._request.max_matches):
            return False
        return len(self._kept) < self._max_page_files or self._is_before(path, self._kept[-1])

    def _keep_block(self) -> None:
        block, path, self._block, self._path = self._block, self._path, None, None
        if path is not None and self._in_file:
            self._named.append(NamedFile(path, self._in_file, self._number))
            if len(self._named) > 2 * self._max_named:
                self._trim_names()
        if block and block.matches:
            self._keep(block)
            self._held += min(block.matches, self._request.end)
            if len(self._kept) > self._max_page_files:
                self._kept.pop()
            if self._held > self._trim_above:
                self._trim()

    def begin_ordered(self) -> None:
        """Keep the order of all further files, which come after the files so far."""
        self._keep_block()
        self._trim_names()
        super().begin_ordered()

    def _trim_names(self) -> None:
        if not self._ordered:
            self._named.sort(key=lambda named: path_order(named.path))
        del self._named[self._max_named :]

    def _trim(self) -> None:
        """Compute the maximum number of matches that each file can have on the page, and drop further records."""
        counts = [block.matches for block in self._kept]
        if self._request.max_files < self._request.end:
            # If a file with an earlier path arrives later, it can push a file with many matches off the page; the other
            # files can then have more matches on the page.
            most = self._request.end - len(counts) + 1
            shared = [min(count, most) for count in counts]
        else:
            shared = shares(counts, self._request.end)
        for block, share in zip(self._kept, shared, strict=True):
            _shorten(block, share, self._request.after)
        self._held = sum(shared)
        self._trim_above = max(2 * self._held, 2 * self._request.end)


def shares(counts: Sequence[int], wanted: int) -> list[int]:
    """Return how many items to take from each file, one after another in rotation, at most `wanted` in all."""
    if sum(counts) <= wanted:
        return list(counts)
    left, rounds, standing = wanted, 0, len(counts)
    for count in sorted(counts):
        if (count - rounds) * standing > left:
            break
        left -= (count - rounds) * standing
        rounds, standing = count, standing - 1
    if not standing:
        return [min(count, rounds) for count in counts]
    whole, rest = divmod(left, standing)
    given: list[int] = []
    for count in counts:
        share = min(count, rounds + whole)
        if count > rounds + whole and rest:
            share, rest = share + 1, rest - 1
        given.append(share)
    return given


def _shorten(block: Block, matches: int, after: int) -> None:
    """Keep the records of the first `matches` matches, and `after` lines of context after the last of these matches."""
    left, behind = matches, after
    for place, (is_match, _) in enumerate(block.records):
        if left:
            left -= is_match
        elif behind:
            behind -= 1
        else:
            del block.records[place:]
            return


Words = Callable[[str], Collection[str]]

MAX_FILES_PER_WORD = 5_000
"""Maximum number of files whose counts are kept for each word; see `TermCounts`."""

# rg writes this line to stdout for a binary file whose path is on the command line, and for a file in which it stopped
# at a NUL byte.
_REMARK = re.compile(
    rb"[^\0]*?: (?:WARNING: stopped searching )?binary file (?:after match|matches) \(found [^\n]*\)\n\n?"
)


class TermCounts:
    """Collector of the output of `words_query()`, with bounded memory.

    Only counts are in memory. If there are many files, only the best `max_files` files of each word are kept: the files
    with the most different words, then the files with the most matches. The result does not depend on the order in
    which rg finds the files.
    """

    def __init__(self, words: Words, timeout: float | None = None, *, max_files: int = MAX_FILES_PER_WORD) -> None:
        self.files: dict[str, Mapping[str, int]] = {}
        self.having: Counter[str] = Counter()
        self.total = 0
        self.end: Exit | None = None
        self.ended = False
        self._words = words
        self._timeout = timeout
        self._max_files = max_files
        self._trim_above = 2 * max_files
        self._known: dict[bytes, Collection[str]] = {}
        self._rest = b""
        self._path: bytes | None = None
        self._counts: Counter[bytes] = Counter()

    def feed(self, chunk: bytes) -> None:
        """Process a chunk of rg's output."""
        text = self._rest + chunk
        at = 0
        while True:
            if self._path is None:
                nul = text.find(b"\0", at)
                if nul < 0:
                    break
                self._path, at = text[at:nul], nul + 1
            end = text.find(b"\n\n", at)
            if end < 0:
                # Keep the last newline: the next chunk may begin with the empty line that ends the file.
                if (cut := text.rfind(b"\n", at)) > at:
                    self._counts.update(text[at:cut].split(b"\n"))
                    at = cut
                break
            self._counts.update(text[at:end].split(b"\n"))
            at = end + 2
            self._close_file()
        self._rest = text[at:]
        if len(self._rest) > MAX_RECORD:
            raise DecodeError(f"rg wrote a path longer than {MAX_RECORD} bytes", record=self._rest)

    def end_run(self, end: Exit) -> None:
        """Process the end of one run of rg."""
        if self._path is not None:
            self._counts.update(self._rest.split(b"\n"))
            self._close_file()
        elif self._rest and not _REMARK.fullmatch(self._rest):
            raise DecodeError("rg wrote an incomplete path", record=self._rest)
        self._rest = b""
        end.check_listing()

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Store the exit of rg."""
        self.end = end
        if timed_out:
            after = in_seconds(self._timeout or 0)
            said = f"rg was stopped after {after}, before all files were counted; search fewer files"
            raise TimeoutError(HintedText(said, (", or pass a larger ", Hint("timeout", kind="correct"))))
        self.trim()

    def _close_file(self) -> None:
        path = _REMARK.sub(b"", self._path or b"").removeprefix(_DOT_SLASH)
        counts: dict[str, int] = {}
        del self._counts[b""]  # a chunk that ends at a line end leaves empty text
        for hit, number in self._counts.items():
            words = self._known.get(hit)
            if words is None:
                words = self._known[hit] = self._words(hit.decode("utf-8", "replace"))
            for word in words:
                counts[word] = counts.get(word, 0) + number
        self._path = None
        self._counts.clear()
        if counts:
            self.total += 1
            self.having.update(counts.keys())
            self.files[decode_path(path)] = counts
            self._trim_if_many()

    def add(self, files: Mapping[str, Mapping[str, int]], having: Mapping[str, int], total: int) -> None:
        """Add counts, for example from a collector for other directories."""
        self.total += total
        self.having.update(having)
        self.files.update(files)
        self._trim_if_many()

    def _trim_if_many(self) -> None:
        if len(self.files) > self._trim_above:
            self.trim()
            self._trim_above = 2 * max(len(self.files), self._max_files)

    def trim(self) -> None:
        """Keep the best `max_files` files of each word: with the most different words, then with the most matches."""
        order = sorted(self.files, key=lambda path: (-len(self.files[path]), -sum(self.files[path].values()), path))
        before: Counter[str] = Counter()
        kept: dict[str, Mapping[str, int]] = {}
        for path in order:
            counts = self.files[path]
            if any(before[word] < self._max_files for word in counts):
                kept[path] = counts
            before.update(counts.keys())
        self.files = kept

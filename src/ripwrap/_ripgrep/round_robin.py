"""Collect matches from rg's JSON in rotation: the first match of each file, then the second of each file; no I/O."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ripwrap._ripgrep.page_collector import Block, PageCollector, PageRequest, path_order

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
    """Return the number of items to take from each file, so that the total is at most `wanted`.

    Items are taken in rotation: the first item of each file, then the second item of each file.
    """
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

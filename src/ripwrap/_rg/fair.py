"""rg's JSON to matches that are taken in turn from every file, the first of each, then the second: pure, no I/O."""

from bisect import insort
from collections.abc import Callable, Sequence

from ripwrap._rg.sifter import Block, Sifter, Window, path_order

NAMED = 1000
"""How many of the files that match are known by name, in path order; more are only counted."""


class FairSifter(Sifter):
    """Keeps the records of a window of matches in that order, and the names of all the files.

    What is held is bounded by what is wanted: at most three times so many matches, with their context; where
    `max_files` is less than that, so many for each file. Matches of a file that is not `allowed` are not counted.
    """

    def __init__(self, window: Window, allowed: Callable[[bytes], bool] | None = None) -> None:
        super().__init__(window)
        self._allowed = allowed
        self._refusing = False
        self._path: bytes | None = None
        self._named: list[tuple[bytes, int]] = []
        self._room = min(window.max_files, window.upto)  # how many files can have a match on the page
        self._full = 2 * window.upto
        self._most = min(window.max_files, max(NAMED, window.upto))

    def named(self) -> Sequence[tuple[bytes, int]]:
        """The first files with a match, in path order, each with how many it has."""
        self._keep()
        self._sort_names()
        return self._named

    def _begin(self, path: bytes) -> None:
        super()._begin(path)
        self._path = path
        self._refusing = self._allowed is not None and not self._allowed(path)
        if self._refusing:
            self._block = None

    def _match(self, record: bytes) -> None:
        if not self._refusing:
            super()._match(record)

    def _wanted(self, path: bytes) -> bool:
        if not (self._room and self._window.max_matches):
            return False
        return len(self._kept) < self._room or path_order(path) < path_order(self._kept[-1].path)

    def _keep(self) -> None:
        block, path, self._block, self._path = self._block, self._path, None, None
        if path is not None and self._in_file:
            self._named.append((path, self._in_file))
            if len(self._named) > 2 * self._most:
                self._sort_names()
        if block and block.matches:
            insort(self._kept, block, key=lambda kept: path_order(kept.path))
            self._held += min(block.matches, self._window.upto)
            if len(self._kept) > self._room:
                self._kept.pop()
            if self._held > self._full:
                self._cut()

    def _sort_names(self) -> None:
        self._named.sort(key=lambda named: path_order(named[0]))
        del self._named[self._most :]

    def _cut(self) -> None:
        """Let go what is behind the largest share that each file can have in the end."""
        counts = [block.matches for block in self._kept]
        if self._window.max_files < self._window.upto:
            # A file that is still to come may push out one with many matches, and the others have more again.
            most = self._window.upto - len(counts) + 1
            shared = [min(count, most) for count in counts]
        else:
            shared = shares(counts, self._window.upto)
        for block, share in zip(self._kept, shared, strict=True):
            _shorten(block, share, self._window.after)
        self._held = sum(shared)
        self._full = max(2 * self._held, 2 * self._window.upto)


def shares(counts: Sequence[int], wanted: int) -> list[int]:
    """How many each may give if they are taken in turn, the first of each, then the second, until there are enough.

    Args:
        counts: How many each has, in their order.
        wanted: How many are taken in all, if there are so many.
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
    """Keep the records of the first matches, and the context behind the last of them."""
    left, behind = matches, after
    for place, (is_match, _) in enumerate(block.records):
        if left:
            left -= is_match
        elif behind:
            behind -= 1
        else:
            del block.records[place:]
            return

"""What rg matches, by file, to how often each file has each word: pure, no I/O."""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection

from ripwrap._rg.exit import Exit
from ripwrap._rg.framer import MAX_RECORD
from ripwrap.errors import DecodeError

Words = Callable[[str], Collection[str]]

MOST = 5_000
"""Of how many files with each word the counts are kept."""

_DOT = b"." + os.fsencode(os.sep)
# rg says so in stdout of a binary file that it was given by name, and of one that it left at a NUL byte.
_REMARK = re.compile(
    rb"[^\0]*?: (?:WARNING: stopped searching )?binary file (?:after match|matches) \(found [^\n]*\)\n\n?"
)


class Hits:
    """Takes in what `words_command()` gives.

    What is held is bounded: of a file only its counts, and for each word those of so many files that have it: those
    with most of the words, and of these with most hits. Of a word that few files have, that is all of them. In the end
    it is the same in whatever order rg found them.

    Attributes:
        files: For each file that is held how often it has each of its words.
        having: How many files have each word, those among them that are no longer held.
        total: How many files have any.
        end: How rg ended; `None` if it has not.
        ended: Nothing tells the last file.
    """

    def __init__(self, words: Words, timeout: float | None = None, *, most: int = MOST) -> None:
        """Take in hits.

        Args:
            words: Which words a hit stands for; none if it is none of ours.
            timeout: The time that rg has, for an error.
            most: Of how many files with each word the counts are kept.
        """
        self.files: dict[str, dict[str, int]] = {}
        self.having: Counter[str] = Counter()
        self.total = 0
        self.end: Exit | None = None
        self.ended = False
        self._words = words
        self._timeout = timeout
        self._most = most
        self._full = 2 * most
        self._known: dict[bytes, Collection[str]] = {}
        self._rest = b""
        self._path: bytes | None = None
        self._counts: Counter[bytes] = Counter()
        self._any = False

    def feed(self, chunk: bytes) -> None:
        """Take in what rg has written.

        Raises:
            DecodeError: A path is longer than `MAX_RECORD`.
        """
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
                # The last newline is kept: the next chunk may begin with the empty line.
                if (cut := text.rfind(b"\n", at)) > at:
                    self._counts.update(text[at:cut].split(b"\n"))
                    at = cut
                break
            self._counts.update(text[at:end].split(b"\n"))
            at = end + 2
            self._close_file()
        self._rest = text[at:]
        if len(self._rest) > MAX_RECORD:
            raise DecodeError(f"rg wrote a path of over {MAX_RECORD} bytes", record=self._rest)

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Take note of the end.

        Raises:
            TimeoutError: rg's time was over before it had an answer.
            SearchError: It has none.
            DecodeError: It ended in the middle of a path.
        """
        self.end = end
        if timed_out and not end.partial:
            raise TimeoutError(f"rg was ended after timeout={self._timeout} seconds; there is no ranking of a part")
        if self._path is not None:
            self._counts.update(self._rest.split(b"\n"))
            self._close_file()
        elif self._rest and not _REMARK.fullmatch(self._rest):
            raise DecodeError("rg wrote a path without an end", record=self._rest)
        self._let_go()
        end.check_listing(listed=self._any)

    def _close_file(self) -> None:
        path = _REMARK.sub(b"", self._path or b"").removeprefix(_DOT)
        counts: dict[str, int] = {}
        del self._counts[b""]  # where two chunks meet
        for hit, number in self._counts.items():
            words = self._known.get(hit)
            if words is None:
                words = self._known[hit] = self._words(hit.decode("utf-8", "replace"))
            for word in words:
                counts[word] = counts.get(word, 0) + number
        self._path = None
        self._counts.clear()
        self._any = True
        if counts:
            self.total += 1
            self.having.update(counts.keys())
            self.files[os.fsdecode(path)] = counts
            if len(self.files) > self._full:
                self._let_go()
                self._full = 2 * max(len(self.files), self._most)

    def _let_go(self) -> None:
        """Keep the first files of each word; one that is let go has so many before it, whatever else is found."""
        order = sorted(self.files, key=lambda path: (-len(self.files[path]), -sum(self.files[path].values()), path))
        before: Counter[str] = Counter()
        kept: dict[str, dict[str, int]] = {}
        for path in order:
            counts = self.files[path]
            if any(before[word] < self._most for word in counts):
                kept[path] = counts
            before.update(counts.keys())
        self.files = kept

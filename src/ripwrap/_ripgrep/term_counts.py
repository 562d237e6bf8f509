"""Count the words in the texts that rg matched, for each file; no I/O."""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from ripwrap._ripgrep.decoder import decode_path
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.framing import MAX_RECORD
from ripwrap._text import in_seconds
from ripwrap.errors import DecodeError, Hint, HintedText

Words = Callable[[str], Collection[str]]

MAX_FILES_PER_WORD = 5_000
"""Maximum number of files whose counts are kept for each word; see `TermCounts`."""

_DOT = b"." + os.fsencode(os.sep)
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
        """Set the words to count, and the limits."""
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
        path = _REMARK.sub(b"", self._path or b"").removeprefix(_DOT)
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
        """Keep the best `max_files` files of each word: the files with the most different words, then the most matches.

        The result is the same as if this method were called only once, after the last file.
        """
        order = sorted(self.files, key=lambda path: (-len(self.files[path]), -sum(self.files[path].values()), path))
        before: Counter[str] = Counter()
        kept: dict[str, Mapping[str, int]] = {}
        for path in order:
            counts = self.files[path]
            if any(before[word] < self._max_files for word in counts):
                kept[path] = counts
            before.update(counts.keys())
        self.files = kept

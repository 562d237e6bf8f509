r"""Split rg's output into records (lines), incrementally and with bounded memory; no I/O.

Records end only at `b"\n"`. `splitlines()` would also split at U+2028 and other characters, which a record may contain.
"""

from collections import Counter
from collections.abc import Callable
from io import BytesIO

MAX_RECORD = 20 * 1024 * 1024
"""Maximum size of a record in bytes, without its newline; longer records are dropped (rg-facts 11)."""

HEAD_BYTES = 32 * 1024
"""Number of bytes to keep from the start of a dropped line; they contain the path of the file.

Linux allows 4,096 bytes for a path, and JSON takes up to six bytes for each byte of the path.
"""


class Framer:
    """Splitter that takes chunks of output and returns whole lines, each with its newline.

    `feed()` skips empty lines; `feed_joined()` may keep them. A line that is too long is dropped and counted; the next
    line is read as usual.
    """

    def __init__(self, max_record: int, name: Callable[[bytes], str]) -> None:
        """Set the limit, and the function that names dropped lines."""
        self.dropped: Counter[str] = Counter()
        self._max = max_record
        self._name = name
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    @property
    def pending(self) -> int:
        """Number of bytes received of an incomplete last record; 0 if the last record is complete."""
        return self._size

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the records that `chunk` completes."""
        first, newline, rest = chunk.partition(b"\n")
        self._append(first)
        if not newline:
            return []
        records = [record + newline for record in self.close()]
        lines = BytesIO(rest).readlines()  # faster than `split()`, which compares byte by byte
        last = lines.pop() if lines and not rest.endswith(newline) else b""
        if len(chunk) > self._max:
            lines = self._within_budget(lines)
        if newline in lines:
            lines = [line for line in lines if line != newline]
        self._append(last)
        return records + lines

    def feed_joined(self, chunk: bytes) -> bytes:
        """Return, as one bytes object, the records that `chunk` completes; each record keeps its newline."""
        if len(chunk) > self._max:
            return b"".join(self.feed(chunk))
        start, end = chunk.find(b"\n") + 1, chunk.rfind(b"\n") + 1
        records = self.feed(chunk[:start])
        self._append(chunk[end:])
        return b"".join((*records, memoryview(chunk)[start:end]))

    def close(self) -> list[bytes]:
        """Return a list with the last record, if it has no newline; otherwise return an empty list."""
        record = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._skipping = False
        return [record] if record else []

    def _append(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max:
            if not self._skipping:
                self._drop(b"".join((*self._parts, part)))
            self._skipping = True
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _within_budget(self, lines: list[bytes]) -> list[bytes]:
        longest = self._max + len(b"\n")
        for line in lines:
            if len(line) > longest:
                self._drop(line)
        return [line for line in lines if len(line) <= longest]

    def _drop(self, line: bytes) -> None:
        self.dropped[self._name(line[:HEAD_BYTES])] += 1

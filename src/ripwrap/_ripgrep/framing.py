r"""Split chunks into records: pure, incremental, with bounded memory.

Records end at `b"\n"` alone. `splitlines()` would also split at U+2028 and others, which a record may contain.
"""

from io import BytesIO

MAX_RECORD = 20 * 1024 * 1024
"""Bytes of the longest record that is kept, without its newline (rg-facts 11)."""


class Framer:
    """A splitter of chunks into lines with their newline, without empty lines.

    A line that is too long is dropped and counted; the next line is read as usual.
    """

    def __init__(self, max_record: int) -> None:
        self.dropped = 0
        self._max = max_record
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

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

    def close(self) -> list[bytes]:
        """Return the unfinished record, if there is one; it has no newline."""
        record = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._skipping = False
        return [record] if record else []

    def _append(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max:
            self.dropped += not self._skipping
            self._skipping = True
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _within_budget(self, lines: list[bytes]) -> list[bytes]:
        kept = [line for line in lines if len(line) <= self._max + len(b"\n")]
        self.dropped += len(lines) - len(kept)
        return kept

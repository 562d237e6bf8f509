r"""Chunks to records: pure, incremental, and bounded in what it holds.

Records end at `b"\n"` alone: a line may hold U+2028 and other things that `splitlines()` splits at.
"""

from io import BytesIO

MAX_RECORD = 20 * 1024 * 1024
"""The longest record that is kept, in bytes without its newline: the seed's buffer."""


class Framer:
    """Lines out of chunks, each with its newline, but for empty ones.

    One that is too long is dropped, counted, and the next starts afresh.
    """

    def __init__(self, max_record: int) -> None:
        self.dropped = 0
        self._max = max_record
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The records that `chunk` completes."""
        first, newline, rest = chunk.partition(b"\n")
        self._append(first)
        if not newline:
            return []
        records = [record + newline for record in self.close()]
        lines = BytesIO(rest).readlines()  # `split()` looks at one byte after another, this at many at once
        last = lines.pop() if lines and not rest.endswith(newline) else b""
        if len(chunk) > self._max:
            lines = self._within_budget(lines)
        if newline in lines:
            lines = [line for line in lines if line != newline]
        self._append(last)
        return records + lines

    def close(self) -> list[bytes]:
        """The record that is under way, if there is one; it has no newline."""
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

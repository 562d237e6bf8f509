r"""Chunks to records: pure, incremental, and bounded in what it holds.

Records end at `b"\n"` alone: a line may hold U+2028 and other things that `splitlines()` splits at.
"""

MAX_RECORD = 20 * 1024 * 1024
"""The longest record that is kept, in bytes: the seed's buffer."""


class Framer:
    """Lines out of chunks, but for empty ones; one that is too long is dropped, counted, and the next starts afresh."""

    def __init__(self, max_record: int) -> None:
        self.dropped = 0
        self._max = max_record
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> list[bytes]:
        first, newline, rest = chunk.partition(b"\n")
        self._append(first)
        if not newline:
            return []
        records = self.close()
        *whole, last = rest.split(b"\n")
        records += filter(None, whole if len(chunk) <= self._max else self._within_budget(whole))
        self._append(last)
        return records

    def close(self) -> list[bytes]:
        """The record that is under way, if there is one."""
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

    def _within_budget(self, records: list[bytes]) -> list[bytes]:
        kept = [record for record in records if len(record) <= self._max]
        self.dropped += len(records) - len(kept)
        return kept

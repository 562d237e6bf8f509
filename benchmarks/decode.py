"""Decode matches of 250 bytes under callgrind: `python decode.py LIBRARY NUMBER_OF_CHUNKS`."""

import json
import sys
from collections.abc import Callable, Iterator

_SIZE = 250
PER_CHUNK = 64 * 1024 // _SIZE
"""Number of matches in a chunk of 64 KiB."""


def record(number: int) -> bytes:
    """Return a match record with one submatch and 250 bytes, the mean size of records in the Linux sources."""
    line = f"\tstatic int probe_{number:06d}(struct device *dev)"
    data = {
        "path": {"text": "./drivers/net/example/"},
        "lines": {"text": line + "\n"},
        "line_number": 100 + number % 900,
        "absolute_offset": 10_000 + number,
        "submatches": [{"match": {"text": "static int"}, "start": 1, "end": 11}],
    }
    written = json.dumps({"type": "match", "data": data}, separators=(",", ":")) + "\n"
    data["path"] = {"text": "./drivers/net/example/" + "x" * (_SIZE - len(written))}
    return (json.dumps({"type": "match", "data": data}, separators=(",", ":")) + "\n").encode()


def ripwrap(chunks: Iterator[bytes]) -> int:
    """Decode as `search()` does, and return the number of matches."""
    from ripwrap._ripgrep.decoder import MessageDecoder

    decoder = MessageDecoder(("match",))
    return sum(1 for chunk in chunks for _ in decoder.feed(chunk))


def columns(chunks: Iterator[bytes]) -> int:
    """Decode as `search_columns()` does, and return the number of matches."""
    from ripwrap._operations.columns import ColumnDecoder
    from ripwrap._ripgrep.decoder import MessageDecoder

    decoder = ColumnDecoder(MessageDecoder(("match",)))
    return sum(len(part) for chunk in chunks for part in decoder.feed(chunk))


def rpygrep(chunks: Iterator[bytes]) -> int:
    """Decode as `run()` of rpygrep does, which processes one line of text after another."""
    from rpygrep.base import ResultProcessor

    processor, count = ResultProcessor(), 0
    for chunk in chunks:
        for line in chunk.decode().splitlines():
            processor.process_line(line)
            count += 1
        processor.matches.clear()
    return count


_DECODERS: dict[str, Callable[[Iterator[bytes]], int]] = {
    "ripwrap": ripwrap,
    "columns": columns,
    "rpygrep": rpygrep,
}


def main() -> None:
    """Decode the chunks."""
    name, count = sys.argv[1], int(sys.argv[2])
    chunk = b"".join(map(record, range(PER_CHUNK)))
    assert len(chunk) == PER_CHUNK * _SIZE
    assert _DECODERS[name](chunk for _ in range(count)) == count * PER_CHUNK


if __name__ == "__main__":
    main()

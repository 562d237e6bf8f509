"""What is counted under callgrind: `python decode.py NAME COUNT` decodes so many chunks of matches of 250 bytes."""

import json
import sys
from collections.abc import Callable, Iterator

_SIZE = 250
PER_CHUNK = 64 * 1024 // _SIZE
"""How many matches a chunk has."""


def record(number: int) -> bytes:
    """A match with one submatch, in as many bytes as a record of the Linux sources has in the mean."""
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
    """As `search()` does it."""
    from ripwrap._ripgrep.decoder import MessageDecoder

    decoder = MessageDecoder(("match",))
    return sum(1 for chunk in chunks for _ in decoder.feed(chunk))


def rpygrep(chunks: Iterator[bytes]) -> int:
    """As its `run()` does it: lines out of a text stream, one after another, to its processor."""
    from rpygrep.base import ResultProcessor

    processor, count = ResultProcessor(), 0
    for chunk in chunks:
        for line in chunk.decode().splitlines():
            processor.process_line(line)
            count += 1
        processor.matches.clear()
    return count


_DECODERS: dict[str, Callable[[Iterator[bytes]], int]] = {"ripwrap": ripwrap, "rpygrep": rpygrep}


def main() -> None:
    """See the module's docstring."""
    name, count = sys.argv[1], int(sys.argv[2])
    chunk = b"".join(map(record, range(PER_CHUNK)))
    assert len(chunk) == PER_CHUNK * _SIZE
    assert _DECODERS[name](chunk for _ in range(count)) == count * PER_CHUNK


if __name__ == "__main__":
    main()

"""The collector of a page counts what it does not keep, whatever records rg writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap import DecodeError
from ripwrap._ripgrep.page_collector import PageCollector, PageRequest
from support.outcomes import cut

_LINES = st.sampled_from(["match", "match", "context", "new", "matches"])
FILES = st.lists(
    st.tuples(st.sampled_from(["a", "a/b", "b", "skip", "c"]), st.lists(_LINES, max_size=12), st.booleans()), max_size=6
)
REQUESTS = st.builds(
    PageRequest,
    offset=st.integers(0, 3),
    max_matches=st.integers(0, 4),
    max_files=st.integers(0, 3),
    before=st.integers(0, 2),
    after=st.integers(0, 2),
    max_count=st.none() | st.integers(0, 3),
)


def written(files: list[tuple[str, list[str], bool]]) -> bytes:
    """Return rg's output for files, each with kinds of records, and True if it has an `end` record."""
    records: list[str] = []
    for path, kinds, ends in files:
        about = f'{{"path":{{"text":"./{path}"}}'
        records.append(f'{{"type":"begin","data":{about}}}}}\n')
        records += (f'{{"type":"{kind}","data":{about},"lines":"{line}"}}}}\n' for line, kind in enumerate(kinds))
        records += [f'{{"type":"end","data":{about},"binary_offset":null}}}}\n'] * ends
    return "".join(records).encode()


def collected(stream: bytes, request: PageRequest, size: int) -> tuple[object, ...]:
    """Return everything that the collector knows after the stream, in chunks of this size."""
    collector = PageCollector(request, lambda path: path != b"skip")
    for chunk in cut(stream, [size]):
        collector.feed(chunk)
    blocks = [
        (block.path, block.matches, [(is_match, record.replace(b'": ', b'":')) for is_match, record in block.records])
        for block in collector.blocks()
    ]
    return collector.matches, collector.files, collector.binary, blocks


@given(FILES, REQUESTS, st.integers(1, 2000))
def test_records_that_are_only_counted_count_as_any_others(
    files: list[tuple[str, list[str], bool]], request: PageRequest, size: int
) -> None:
    """A space in the first bytes of each record makes the collector parse it."""
    stream = written(files)
    assert collected(stream, request, size) == collected(stream.replace(b'{"type":', b'{"type": '), request, 10_000)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(50, 3000))
def test_damaged_record_raises_in_a_file_that_is_only_counted(before: int, after: int, size: int) -> None:
    match, damaged = (
        b'{"type":"match","data":{"path":{"text":"b"}}}\n',
        b'{"type":"match","data!:{"path":{"text":"b"}}}\n',
    )
    end = b'{"type":"end","data":{"path":{"text":"b"},"binary_offset":null}}\n'
    stream = written([("a", ["match"], True), ("b", [], False)]) + match * before + damaged + match * after + end
    request = PageRequest(offset=0, max_matches=1, max_files=1, before=0, after=0, max_count=None)
    with pytest.raises(DecodeError) as caught:
        collected(stream, request, size)
    assert caught.value.record == damaged.rstrip(b"\n")

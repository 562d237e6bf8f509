"""`search_in()` and `grep_in()`: items are searched as files are, and nothing is left behind."""

import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import ripwrap
from _operations.test_against_rg import drawn, globs, patterns, types
from ripwrap import GlobError, PatternError, SearchError, UnknownTypeError, sync
from ripwrap._ripgrep import spool
from ripwrap._ripgrep.page_collector import path_order
from ripwrap.binary import RgBinary
from support.effort import times
from support.outcomes import without_context

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("temporary")]

Items = list[tuple[str, Any]]


async def streamed(items: Items, then: Exception | None = None) -> AsyncIterator[tuple[str, Any]]:
    for item in items:
        yield item
    if then is not None:
        raise then


PIECES = {
    "needle": b"needle\n",
    "Needle": b"Needle",
    "empty line": b"\n",
    "CRLF": b"other\r\n",
    "NUL": b"\0",
    "FF": b"\xff",
    "é": "é needle\n".encode(),
    "BOM": b"\xef\xbb\xbf",
    "UTF-16": "needle\n".encode("utf-16"),
    "spaces": b" " * 999 + b"\n",
    "many lines": (b"x" + b" " * 98 + b"\n") * 1400,
    "no newline": b"needle",
}
"""Parts of contents, by the names that a failure shows: Hypothesis refuses to show contents of a hundred kilobytes."""

contents = st.lists(st.sampled_from(list(PIECES)), max_size=5)
names = st.sampled_from(
    ["a.py", "b.c", "no-suffix", "sub/a.py", "sub/deep/é.txt", ".hidden", ".dir/x.py", "UP.TXT", ".git/config", "-dash"]
)
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "glob": globs | st.lists(globs, max_size=3),
    "iglob": globs,
    "glob_case_insensitive": st.booleans(),
    "type": types,
    "type_not": types,
    "type_add": st.just("own:*.c"),
    "hidden": st.booleans(),
    "include_git": st.booleans(),
    "max_depth": st.integers(0, 3),
    "max_filesize": st.sampled_from([0, 10, "1K"]),
    **{name: st.booleans() for name in ("ignore_case", "invert_match", "multiline", "multiline_dotall", "crlf")},
    **{name: st.booleans() for name in ("null_data", "binary", "text", "word_regexp", "fixed_strings")},
    "encoding": st.sampled_from(["auto", "none", "utf-16le"]),
    "max_count": st.integers(0, 3),
    "context": st.integers(0, 3),
}


@pytest.mark.slow
@pytest.mark.rg_ends
@pytest.mark.timeout(1500)
@settings(max_examples=times(10, 2000), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(patterns, st.dictionaries(names, contents, max_size=6), drawn(OPTIONS), st.sampled_from([1, 2, 64]))
def test_answers_equal_those_about_files(
    rg: RgBinary,
    tmp_path: Path,
    pattern: Any,
    files: dict[str, list[str]],
    options: dict[str, Any],
    batch_items: int,
) -> None:
    # Only one file with a line or a NUL past 64 KiB: a long line enlarges the buffer of a thread of rg, which then
    # takes the next file with a NUL for binary at once (docs/reference/rg-facts.md, 20). So rg's own answers differ.
    assume(sum("many lines" in parts for parts in files.values()) <= 1)
    written = {name: b"".join(map(PIECES.__getitem__, parts)) for name, parts in files.items()}
    items = sorted(written.items(), key=lambda item: path_order(item[0].encode()))
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "FIRST_BATCH_ITEMS", batch_items)  # a slow system searches small batches, too
        patch.setattr(spool, "MAX_BATCH_ITEMS", batch_items)
        for name, content in items:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        on_files = {"cwd": folder, "rg": rg, "no_ignore": True, **options}
        try:
            expected = list(sync.search(pattern, sort="path", **without_context(on_files)))
            page: Any = sync.grep(pattern, timeout=None, **on_files)  # its default of 10 s is too short under load
        except (SearchError, ValueError) as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                list(sync.search_in(pattern, items, rg=rg, **without_context(options)))
            return
        found = list(sync.search_in(pattern, items, rg=rg, **without_context(options)))
        page_in = sync.grep_in(pattern, items, timeout=None, rg=rg, **options)
    assert found == expected
    assert page_in == page.model_copy(update={"root": ""})


def test_no_match_spans_two_items() -> None:
    items = [("a", "one"), ("b", "two\n"), ("c", ""), ("d", "one\ntwo")]
    found = list(sync.search_in(r"one\s*two|\Atwo\n\z", items, multiline=True))
    assert [(match.path, match.lines, match.absolute_offset) for match in found] == [
        ("b", "two\n", 0),
        ("d", "one\ntwo", 0),
    ]


HOSTILE = ["", "same", "same", "../../up", "/etc/passwd", "nul\0.py", "x" * 5000, "\udcff", "a//b/", "-", "\n", "CON"]


@pytest.mark.anyio
async def test_items_may_have_any_name_and_keep_their_order() -> None:
    items: Items = [(name, f"needle {number}\n") for number, name in enumerate(HOSTILE)]
    for given_items in (items, iter(items), streamed(items)):
        found = [match async for match in ripwrap.search_in("needle", given_items)]
        assert [(match.path, match.text) for match in found] == [(name, text[:-1]) for name, text in items]
    assert [file.path for file in sync.grep_in("needle", items)] == HOSTILE


def test_content_may_be_text_or_any_bytes() -> None:
    items: Items = [("s", "é"), ("b", b"\xc3\xa9"), ("a", bytearray(b"\xc3\xa9")), ("m", memoryview(b"\xc3\xa9"))]
    assert [match.path for match in sync.search_in("é", items)] == ["s", "b", "a", "m"]


@pytest.mark.slow
def test_pages_of_grep_in_have_each_match_once() -> None:
    items = [(f"item {number}", "x\n" * (number % 4)) for number in range(300)]
    pages: list[tuple[str | None, int | None]] = []
    offset: int | None = 0
    while offset is not None:
        page = sync.grep_in("x", items, limit=100, offset=offset, context=0)
        pages += [(match.path, match.line_number) for match in page.matches]
        offset = page.next_offset
        assert (page.total_matches, page.files_matched, page.root) == (450, 225, "")
    assert pages == [(name, line + 1) for name, text in items for line in range(len(text) // 2)]


@pytest.mark.slow
def test_line_that_is_too_long_is_reported_with_the_name_of_its_item(caplog: pytest.LogCaptureFixture) -> None:
    items = [("first", "x\n"), ("long one", "x" + "y" * (21 << 20))]
    assert [match.path for match in sync.search_in("x", items)] == ["first"]
    assert "long one: 1 line left out" in caplog.text
    result = sync.grep_in("x", items)
    assert [error.path for error in result.errors] == ["long one"]
    assert "in long one" in result.message


@pytest.mark.python
class TestItemsThatFail:
    @pytest.mark.anyio
    async def test_matches_before_an_error_are_yielded(self) -> None:
        items: Items = [(str(number), "x") for number in range(200)]

        def broken() -> Iterator[tuple[str, str]]:
            yield from items
            raise LookupError("gone")

        for source in (broken(), streamed(items, LookupError("gone"))):
            found: list[str | None] = []
            with pytest.raises(LookupError, match="gone"):
                async for match in ripwrap.search_in("x", source):
                    found.append(match.path)  # noqa: PERF401 - kept when the search raises
            assert found == [name for name, _ in items]
        with pytest.raises(LookupError, match="gone"):
            await ripwrap.grep_in("x", broken())

    @pytest.mark.parametrize(
        ("item", "text"),
        [
            (("a",), r"an item must be a pair \(name, bytes or str\), got tuple"),
            (7, r"an item must be a pair \(name, bytes or str\), got int"),
            ("ab", r"an item must be a pair \(name, bytes or str\), got str"),
            ({"a": 1, "b": 2}, r"an item must be a pair \(name, bytes or str\), got dict"),
            ({"a", "b"}, r"an item must be a pair \(name, bytes or str\), got set"),
            ((b"a", b"x"), "the name of an item must be a str, got bytes"),
            (("a", None), "the content of the item 'a' must be bytes or str, got NoneType"),
        ],
    )
    def test_item_of_another_type_is_an_error_after_the_matches_before_it(self, item: Any, text: str) -> None:
        found = sync.search_in("x", [("first", "x"), item])
        assert next(found).path == "first"
        with pytest.raises(TypeError, match=text):
            next(found)

    @pytest.mark.parametrize("items", [None, 5, "text", b"bytes"])
    def test_call_refuses_what_is_no_iterable(self, items: Any) -> None:
        for call in (sync.search_in, ripwrap.search_in, sync.grep_in):
            with pytest.raises(TypeError, match=r"items must be an iterable of pairs \(name, bytes or str\)"):
                call("x", items)

    def test_blocking_call_refuses_an_async_iterable(self) -> None:
        for call in (sync.search_in, sync.grep_in):
            with pytest.raises(TypeError, match="cannot take an async iterable"):
                call("x", streamed([]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"sort": "path"}, ValueError, "sort does not apply to items: matches come in the order of the items"),
        ({"threads": 2}, ValueError, "threads does not apply to items"),
        ({"ignore_file": "x"}, ValueError, "ignore_file does not apply to items"),
        ({"globs": "x"}, ValueError, "unknown option globs; did you mean glob"),
        ({"cwd": "."}, ValueError, "unknown option cwd"),
        ({"glob": "a["}, GlobError, "a\\["),
        ({"type": "pyy"}, UnknownTypeError, "Did you mean py"),
    ],
)
def test_option_that_items_cannot_follow_is_an_error(options: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        list(sync.search_in("x", [], **options))


def test_pattern_is_checked_without_any_item() -> None:
    for items in ([], [("a.c", "x")]):
        with pytest.raises(PatternError):
            list(sync.search_in("(", items, glob="*.py"))
        with pytest.raises(PatternError):
            sync.grep_in("(", [])


@pytest.mark.python
@pytest.mark.anyio
async def test_items_are_drawn_as_the_consumer_goes_on() -> None:
    drawn_items = 0

    def endless() -> Iterator[tuple[str, bytes]]:
        nonlocal drawn_items
        while True:
            drawn_items += 1
            yield str(drawn_items), b"x\n" * 10_000

    found = sync.search_in("x", endless())
    assert next(found).path == "1"
    first = drawn_items
    assert first <= 64 + 128 + 256 + 512
    for _ in range(1000):
        next(found)
    assert drawn_items == first
    found.close()
    assert len([match async for match in ripwrap.search_in("x", endless(), limit=2)]) == 2
    assert list(sync.search_in("x", endless(), limit=0)) == []


def test_slow_items_are_searched_before_a_batch_is_full() -> None:
    more = iter(range(3))

    def slow() -> Iterator[tuple[str, str]]:
        for number in more:
            time.sleep(0.2)
            yield str(number), "x"

    found = sync.search_in("x", slow())
    assert next(found).path == "0"
    assert next(more, None) == 1  # not drawn yet
    found.close()


@pytest.mark.python
class TestLeaving:
    @pytest.fixture(autouse=True)
    def nothing_is_left(self, leaks_nothing: None) -> None:
        """Check processes and descriptors, besides temporary files."""

    @pytest.mark.anyio
    @pytest.mark.parametrize("source", ["async", "thread"])
    async def test_cancelling_a_stalled_search_leaves_nothing(self, source: str, temporary: Path) -> None:
        stalled = anyio.Event()
        release = False

        async def waiting() -> AsyncIterator[tuple[str, str]]:
            yield "a", "x"
            stalled.set()
            await anyio.sleep_forever()

        def blocking() -> Iterator[tuple[str, str]]:
            yield "a", "x"
            anyio.from_thread.run_sync(stalled.set)
            while not release:
                time.sleep(0.01)
            yield "b", "x"

        async def search() -> None:
            async for _ in ripwrap.search_in("x", waiting() if source == "async" else blocking()):
                pass

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(search)
                await stalled.wait()
                tasks.cancel_scope.cancel()
            assert os.listdir(temporary) == []
        finally:
            release = True

    @pytest.mark.parametrize("how", ["close", "error", "break", "collected"])
    def test_leaving_a_search_leaves_nothing(self, how: str, temporary: Path) -> None:
        items = ((str(number), b"x\n" * 50_000) for number in range(1000))
        found = sync.search_in("x", items)
        next(found)
        assert list(temporary.iterdir())
        if how == "close":
            found.close()
        elif how == "error":
            with pytest.raises(LookupError):
                found.throw(LookupError)
        elif how == "break":
            for _ in found:
                break
        del found

    @pytest.mark.anyio
    async def test_closing_an_async_search_leaves_nothing(self, temporary: Path) -> None:
        found = ripwrap.search_in("x", ((str(number), b"x\n" * 50_000) for number in range(1000)))
        await anext(found)
        assert os.listdir(temporary)
        await found.aclose()

    @pytest.mark.slow
    def test_timeout_keeps_what_was_found(self) -> None:
        def slow() -> Iterator[tuple[str, str]]:
            for number in range(1000):
                time.sleep(0.05)
                yield str(number), "x"

        found: list[str] = []
        with pytest.raises(TimeoutError):
            found.extend(match.path or "" for match in sync.search_in("x", slow(), timeout=1))
        assert sync.grep_in("x", slow(), timeout=0.5).stop_reason == "timeout"

    @pytest.mark.anyio
    async def test_grep_in_stops_at_its_timeout(self) -> None:
        async def stalled() -> AsyncIterator[tuple[str, str]]:
            yield "a", "x"
            await anyio.sleep_forever()

        result = await ripwrap.grep_in("x", stalled(), timeout=0.3)
        assert (result.stop_reason, result.exact) == ("timeout", False)


@pytest.mark.posix
def test_disk_that_is_full_is_one_clear_error() -> None:
    import resource  # only POSIX has it

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))  # a file over 64 KiB cannot be written
    try:
        found = sync.search_in("x", [("a", "x"), ("b", b"x\n" * 100_000)])
        assert next(found).path == "a"
        with pytest.raises(SearchError, match=r"could not write items to a temporary file: .*; set TMPDIR to"):
            next(found)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_directory_for_temporary_files_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(SearchError, match="set TMPDIR"):
        list(sync.search_in("x", [("a", "x")]))


@pytest.mark.python
@pytest.mark.slow
def test_forked_process_does_not_delete_the_files_of_a_search(temporary: Path) -> None:
    found = sync.search_in("x", ((str(number), b"x\n" * 20) for number in range(500)))
    next(found)
    held = list(temporary.rglob("*"))
    pid = os.fork()
    if not pid:
        try:
            found.close()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert list(temporary.rglob("*")) == held
    assert len({match.path for match in found}) == 500


@pytest.mark.slow
@pytest.mark.stress
def test_many_items_are_searched_in_bounded_memory(temporary: Path) -> None:
    count = times(14_000, 100_000)

    def many() -> Iterator[tuple[str, str]]:
        for number in range(count):
            yield f"dir/{number}.py", f"line\nneedle {number}\n"

    me = psutil.Process()
    held = 0
    before = me.memory_info().rss
    for number, match in enumerate(sync.search_in("needle", many())):
        assert match.text == f"needle {number}"
        if number % 5_000 == 0:
            held = max(held, sum(1 for _ in temporary.rglob("*")))
    assert number == count - 1
    assert held < 6 * 2100
    assert me.memory_info().rss - before < count << 10  # a KiB for each

"""Errors in patterns and types, which refer to the caller's arguments; retries of rg with one thread."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripwrap
from ripwrap import CapabilityError, PatternError, SearchError, UnknownTypeError, sync
from ripwrap._ripgrep.pattern_errors import find_error_position
from ripwrap.binary import RgBinary

pytestmark = pytest.mark.rg_matrix


def error_of(rg: RgBinary, folder: Path, pattern: "str | list[str]", **options: Any) -> PatternError:
    with pytest.raises(PatternError) as caught:
        list(sync.search(pattern, cwd=folder, rg=rg, **options))
    return caught.value


@pytest.mark.parametrize(
    ("pattern", "wrong", "offset"),
    [
        ("foo(", "foo(", 3),
        (r"a\(b(c[(]d", r"a\(b(c[(]d", 4),
        ("foo)", "foo)", 3),
        ("é+[z-a]", "é+[z-a]", 3),
        ("a{2,1}", "a{2,1}", 1),
        (r"x\pX", r"x\pX", 1),
        ("(?=x)", "(?=x)", 0),
        (["a", "bé(", "c"], "bé(", 2),
        (["a", "b", "[z-a]"], "[z-a]", 1),
        (["a", "aa*{"], "aa*{", None),
    ],
)
def test_error_offset_points_into_the_callers_pattern(
    rg: RgBinary, folder: Path, pattern: Any, wrong: str, offset: int | None
) -> None:
    error = error_of(rg, folder, pattern)
    assert error.pattern == wrong
    if offset is not None:
        assert error.offset == offset
    assert str(error).endswith(error.hint)


def test_error_offset_is_right_with_word_and_line_regexp(rg: RgBinary, folder: Path) -> None:
    assert error_of(rg, folder, "é+[z-a]", word_regexp=True).offset == 3
    assert error_of(rg, folder, "é+[z-a]", line_regexp=True).offset == 3
    assert error_of(rg, folder, "x(", line_regexp=True).offset == 1


def test_error_in_a_pattern_of_several_lines_has_no_offset(rg: RgBinary, folder: Path) -> None:
    error = error_of(rg, folder, "(?x)\na\n[z-a]", multiline=True)
    assert (error.pattern, error.offset) == ("(?x)\na\n[z-a]", None)


def test_pcre2_byte_offsets_become_character_offsets(rg: RgBinary, folder: Path) -> None:
    if "pcre2" not in rg.features:
        with pytest.raises(CapabilityError, match="PCRE2 is not available"):
            list(sync.search("x", cwd=folder, rg=rg, pcre2=True))
        return
    assert error_of(rg, folder, "éé(b", pcre2=True).offset == 2
    assert error_of(rg, folder, "éé*+*b", pcre2=True).offset in (4, 5)  # PCRE2's offset is after the error
    error = error_of(rg, folder, ["a", "éé*+*b", "c"], pcre2=True)
    assert error.pattern == "éé*+*b" and error.offset in (4, 5)
    # An unclosed group extends to the end of all patterns, so PCRE2 does not report which pattern is wrong.
    error = error_of(rg, folder, ["a(b", "ok"], pcre2=True)
    assert (error.pattern, error.offset) == (None, None)
    assert error_of(rg, folder, "éé(b", pcre2=True, word_regexp=True).offset == 2
    assert error_of(rg, folder, "éé*+*b", pcre2=True, word_regexp=True).offset is None


@given(st.text(max_size=5), st.lists(st.text(max_size=5), max_size=3), st.integers(0, 30))
def test_find_error_position_never_raises_and_returns_valid_offsets(
    shown: str, patterns: list[str], column: int
) -> None:
    for text in (
        f"regex parse error:\n    {shown}\n    {' ' * column}^\nerror: unclosed group",
        f"PCRE2: error compiling pattern at offset {column}: what",
    ):
        pattern, offset = find_error_position(text, patterns, grouped=column % 2 == 0)
        assert pattern is None or pattern in patterns
        assert offset is None or (pattern is not None and 0 <= offset <= len(pattern))


@pytest.mark.anyio
async def test_unknown_type_error_suggests_similar_types(rg: RgBinary, folder: Path, anyio_backend: str) -> None:
    with pytest.raises(UnknownTypeError, match=r"Did you mean .*pythan.* lists the types") as caught:
        await anext(ripwrap.search("x", cwd=folder, rg=rg, type="pythn", type_add="pythan:*.x"))
    assert "pythan" in caught.value.suggestions
    with pytest.raises(UnknownTypeError) as blocking:
        list(sync.files(cwd=folder, rg=rg, type="pythn", type_add="pythan:*.x"))
    assert blocking.value.suggestions == caught.value.suggestions
    with pytest.raises(UnknownTypeError) as unlike:
        list(sync.files(cwd=folder, rg=rg, type_not="qqqqqq"))
    assert unlike.value.suggestions == ()


@pytest.mark.slow
def test_path_that_looks_like_a_thread_panic_causes_no_retry(stand_in: Callable[..., Path], folder: Path) -> None:
    """Let rg report errors about paths whose names look like its panic."""
    body = """
        print("rg: ./failed to spawn thread: Os { code: 11: No such file or directory (os error 2)", file=sys.stderr)
        print("rg: failed to spawn thread: Os {: No such file or directory (os error 2)", file=sys.stderr, flush=True)
        time.sleep(2.5)
        print('{"data":SUMMARY,"type":"summary"}')
        sys.exit(2)
    """
    elapsed = '{"secs":0,"nanos":0,"human":"0s"}'
    numbers = ("searches", "searches_with_match", "bytes_searched", "bytes_printed", "matched_lines", "matches")
    stats = ",".join(f'"{name}":0' for name in numbers)
    summary = f'{{"elapsed_total":{elapsed},"stats":{{"elapsed":{elapsed},{stats}}}}}'
    (message,) = sync.search_messages("x", cwd=folder, rg=stand_in(body.replace("SUMMARY", summary)))
    assert message.type == "summary"
    assert [error.kind for error in message.errors] == ["missing", "missing"]


PANIC = (
    "thread 'main' panicked at /rustc/x/library/std/src/thread/scoped.rs:200:46:\n"
    'failed to spawn thread: Os { code: 11, kind: WouldBlock, message: "Resource temporarily unavailable" }\n'
)
FEW_THREADS = f"""
    if "--threads=1" not in sys.argv:
        sys.stderr.write({PANIC!r})
        sys.stderr.flush()
        HOW
    sys.stdout.buffer.write(b"a\\0")
"""


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("how", ["sys.exit(101)", "time.sleep(60)"])
async def test_rg_that_cannot_start_threads_is_retried_with_one(
    stand_in: Callable[..., Path], folder: Path, how: str, anyio_backend: str
) -> None:
    """Let rg panic, then exit or hang, as it does while its other threads wait for each other (rg-facts 8)."""
    rg = stand_in(FEW_THREADS.replace("HOW", how))
    assert [path async for path in ripwrap.files(cwd=folder, rg=rg)] == ["a"]
    assert list(sync.files(cwd=folder, rg=rg)) == ["a"]
    assert list(sync.files(cwd=folder, rg=rg, threads=8, timeout=30)) == ["a"]


def test_rg_that_cannot_start_threads_is_retried_only_once(
    stand_in: Callable[..., Path], folder: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    rg = stand_in(f"open({str(runs)!r}, 'a').write('x')\nsys.stderr.write({PANIC!r})\nsys.exit(101)")
    with pytest.raises(SearchError, match="threads=1"):
        list(sync.search("x", cwd=folder, rg=rg))
    assert runs.read_text() == "xx"


def test_rg_is_not_retried_after_a_path_was_yielded(stand_in: Callable[..., Path], folder: Path) -> None:
    rg = stand_in(f"sys.stdout.write('a\\0')\nsys.stdout.flush()\nsys.stderr.write({PANIC!r})\nsys.exit(101)")
    listing = sync.files(cwd=folder, rg=rg)
    assert next(listing) == "a"
    with pytest.raises(SearchError, match="threads=1"):
        next(listing)

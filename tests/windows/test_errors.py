"""Errors that only Windows raises: a too long command line, and bytes that are not a valid path."""

from contextlib import suppress
from pathlib import Path

import pytest

from ripwrap import DecodeError, SearchError, sync
from ripwrap._ripgrep.decoder import CountDecoder, MessageDecoder, PathDecoder
from ripwrap._ripgrep.exit_status import path_errors
from ripwrap._ripgrep.page_collector import TermCounts


def test_too_long_pattern_is_not_reported_as_missing_rg(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("needle\n")
    # Windows refuses this command line, and Wine accepts it.
    with suppress(SearchError):
        assert list(sync.search("x" * 40_000, cwd=tmp_path)) == []


def test_many_paths_are_searched_in_several_runs(tmp_path: Path) -> None:
    names = [f"{number:04}-{'ä' * 50}.txt" for number in range(1000)]
    for name in names:
        (tmp_path / name).write_text("needle\n")
    assert sorted(match.path or "" for match in sync.search("needle", cwd=tmp_path, paths=names)) == names


def test_undecodable_path_raises_decode_error() -> None:
    with pytest.raises(DecodeError):
        PathDecoder().feed(b".\\a\xff\0")
    with pytest.raises(DecodeError):
        CountDecoder().feed(b".\\a\xff\x001\n")
    with pytest.raises(DecodeError):
        list(MessageDecoder().feed(b'{"type":"begin","data":{"path":{"bytes":"Yf8="}}}\n'))
    with pytest.raises(DecodeError):
        TermCounts(lambda hit: [hit]).feed(b"a\xff\0word\n\n")


def test_undecodable_path_in_stderr_is_shown() -> None:
    (error,) = path_errors(b"rg: .\\a\xff: Access is denied. (os error 5)\n")
    assert (error.path, error.kind) == ("a\ufffd", "denied")

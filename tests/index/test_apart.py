"""Chunks made in a process of their own: the same ones, and a file that it dies of costs no more than its symbols."""

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from ripwrap._ranking.chunks import chunks_of as windows_of
from ripwrap.index import syntax
from ripwrap.index.apart import Chunker

SAMPLES = Path(__file__).parents[1] / "data" / "sections"
FATAL = "/*\n" * 10_000
"""What the Python grammar takes all memory for, and then dies of."""
SMALL = "def f():\n    1\n    2\n    3\n"


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "apart" in " ".join(child.cmdline())]


def test_the_chunks_are_the_same() -> None:
    with closing(Chunker()) as chunker:
        for path in sorted(SAMPLES.iterdir()):
            text = path.read_text() + "# é \ud800\n"
            assert chunker.chunks_of(path.name, text) == syntax.chunks_of(path.name, text)


def test_one_process_makes_all_and_ends_with_the_block() -> None:
    with closing(Chunker()) as chunker:
        assert chunker.chunks_of("a.txt", "x\n") and children() == []
        chunker.chunks_of("a.py", "x\n")
        before = children()
        chunker.chunks_of("b.py", "x\n")
        assert len(before) == 1 and children() == before
    assert children() == []


def test_a_file_that_the_parser_dies_of_is_cut_into_windows_and_the_next_is_not() -> None:
    with closing(Chunker(seconds=10)) as chunker:
        assert chunker.chunks_of("a.py", FATAL) == list(windows_of(FATAL))
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("sent", ["SIGSTOP", "SIGSEGV"])
def test_a_process_that_hangs_or_dies_costs_one_file_its_symbols(sent: str) -> None:
    with closing(Chunker(seconds=10)) as chunker:
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"
        os.kill(children()[0].pid, signal.Signals[sent])
        assert chunker.chunks_of("a.py", SMALL) == list(windows_of(SMALL))
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_process_has_no_keys_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OLLAMA_HOST", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "not-for-others")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    with closing(Chunker()) as chunker:
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"
        given = Path(f"/proc/{children()[0].pid}/environ").read_bytes()
    names = {entry.partition(b"=")[0] for entry in given.split(b"\0")}
    assert b"not-for-others" not in given
    assert {b"PATH", b"PYTHONPATH", b"LC_ALL"} <= names


def test_without_a_home_it_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name not in ("PATH", "SYSTEMROOT"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with closing(Chunker()) as chunker:
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"
    assert list(tmp_path.rglob("*python*"))  # the grammars are unpacked where this process would have them

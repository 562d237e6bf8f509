"""Chunks from a worker process: equal to those made in process; a crash costs one file its symbols."""

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter")
pytest.importorskip("semble_grammars")

import psutil

from ripwrap._code.treesitter.chunker import syntax_chunks
from ripwrap._code.treesitter.worker import SyntaxChunker
from ripwrap._code.windows import window_chunks

pytestmark = [pytest.mark.extra, pytest.mark.slow]

SAMPLES = Path(__file__).parents[1] / "data" / "sections"
FATAL = "/*\n" * 10_000
"""Text on which the Python grammar takes all memory and crashes."""
SMALL = "def f():\n    1\n    2\n    3\n"


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "treesitter.worker" in " ".join(child.cmdline())]


def test_worker_makes_the_same_chunks_as_in_process() -> None:
    with closing(SyntaxChunker()) as chunker:
        for path in sorted(SAMPLES.iterdir()):
            text = path.read_text() + "# é \ud800\n"
            assert chunker.chunks_of(path.name, text) == syntax_chunks(path.name, text)


def test_one_worker_process_is_reused_and_ends_with_the_block() -> None:
    with closing(SyntaxChunker()) as chunker:
        assert chunker.chunks_of("a.txt", "x\n") and children() == []
        chunker.chunks_of("a.py", "x\n")
        before = children()
        chunker.chunks_of("b.py", "x\n")
        assert len(before) == 1 and children() == before
    assert children() == []


def test_file_that_crashes_the_parser_falls_back_to_windows() -> None:
    with closing(SyntaxChunker(seconds=10)) as chunker:
        assert chunker.chunks_of("a.py", FATAL) == list(window_chunks(FATAL))
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("sent", ["SIGSTOP", "SIGSEGV"])
def test_hung_or_dead_worker_costs_only_one_file_its_symbols(sent: str) -> None:
    with closing(SyntaxChunker(seconds=10)) as chunker:
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"
        os.kill(children()[0].pid, signal.Signals[sent])
        assert chunker.chunks_of("a.py", SMALL) == list(window_chunks(SMALL))
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_worker_inherits_no_keys_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OLLAMA_HOST", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "not-for-others")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    with closing(SyntaxChunker()) as chunker:
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"
        given = Path(f"/proc/{children()[0].pid}/environ").read_bytes()
    names = {entry.partition(b"=")[0] for entry in given.split(b"\0")}
    assert b"not-for-others" not in given
    assert {b"PATH", b"PYTHONPATH", b"LC_ALL"} <= names


def test_worker_runs_without_a_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name not in ("PATH", "SYSTEMROOT"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with closing(SyntaxChunker()) as chunker:
        assert chunker.chunks_of("a.py", SMALL)[0].symbol == "f"
    assert list(tmp_path.rglob("*python*"))  # the grammars are unpacked where this process would unpack them

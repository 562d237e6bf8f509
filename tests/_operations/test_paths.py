"""The argument `paths`: what is missing, what is a link to nothing, and what is too long for one command line."""

import logging
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

import ripwrap
from ripwrap import Summary, sync
from ripwrap.binary import RgBinary

Plant = Callable[..., Path]
pytestmark = [pytest.mark.rg_matrix, pytest.mark.usefixtures("leaks_nothing")]

# Each operation that takes `paths`, with the arguments that it needs.
OPERATIONS: dict[str, tuple[str, ...]] = {
    "search": ("needle",),
    "search_messages": ("needle",),
    "grep": ("needle",),
    "files": (),
    "files_with_matches": ("needle",),
    "files_without_match": ("needle",),
    "count": ("needle",),
    "count_matches": ("needle",),
    "rank": ("needle",),
}


def run(backend: str, operation: str, **options: Any) -> Any:
    """Return the answer of an operation, a list if it is a stream, async or blocking."""
    arguments = OPERATIONS[operation]
    if backend == "sync":
        answer = getattr(sync, operation)(*arguments, **options)
        return list(answer) if hasattr(answer, "close") else answer

    async def collect() -> Any:
        called: AsyncGenerator[Any] | Coroutine[Any, Any, Any] = getattr(ripwrap, operation)(*arguments, **options)
        if isinstance(called, AsyncGenerator):
            async with aclosing(called) as stream:
                return [item async for item in stream]
        return await called

    return anyio.run(collect, backend=backend)


@pytest.mark.parametrize("backend", ["asyncio", "sync"])
@pytest.mark.parametrize("operation", OPERATIONS)
class TestMissingPaths:
    def test_operation_raises_if_every_path_is_missing(
        self, rg: RgBinary, plant: Plant, operation: str, backend: str
    ) -> None:
        """Issue 19, line 4: a search of nothing but missing paths is an error, and not an answer without matches."""
        folder = plant({"a": "needle\n"})
        with pytest.raises(FileNotFoundError, match="no such file or directory; correct paths or cwd") as caught:
            run(backend, operation, cwd=folder, rg=rg, paths="gone")
        assert caught.value.filename == "gone"
        with pytest.raises(FileNotFoundError, match=r"none of the 3 paths exists \(gone, a/b, lost\)") as caught:
            run(backend, operation, cwd=folder, rg=rg, paths=["gone", Path("a/b"), "./lost"])
        assert caught.value.filename == "gone"

    def test_operation_answers_if_one_path_exists(
        self, rg: RgBinary, plant: Plant, operation: str, backend: str
    ) -> None:
        """Issue 19, line 4: if only some paths are missing, the answer has the others."""
        folder = plant({"a": "needle\n", "b": "no\n"})
        assert run(backend, operation, cwd=folder, rg=rg, paths=["gone", "a", "b"])


def test_named_link_to_nothing_is_a_missing_path(rg: RgBinary, folder: Path) -> None:
    """Issue 19, line 4: rg follows a link that is named, so a link to nothing is as good as no path."""
    (folder / "broken").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="'broken'"):
        run("sync", "search", cwd=folder, rg=rg, paths=["broken"], follow=False)


def test_missing_paths_do_not_hide_what_is_wrong_with_the_search(rg: RgBinary, folder: Path) -> None:
    """Issue 19, line 4: rg's own error comes first."""
    with pytest.raises(ripwrap.PatternError):
        list(sync.search("(", cwd=folder, rg=rg, paths="gone"))
    with pytest.raises(ripwrap.GlobError):
        list(sync.files(cwd=folder, rg=rg, paths="gone", glob="a["))


def test_missing_paths_raise_even_if_no_match_is_wanted(rg: RgBinary, folder: Path) -> None:
    """Issue 19, line 4: with `max_count=0` rg itself looks at no path."""
    with pytest.raises(FileNotFoundError):
        list(sync.search("x", cwd=folder, rg=rg, paths="gone", max_count=0))


@pytest.mark.skipif(os.name == "nt", reason="directories have no such permission")
def test_path_that_may_not_be_seen_is_not_missing(unprivileged: Path, plant: Plant) -> None:
    """Issue 19, line 4: a path below a closed directory may exist, so it is data as before."""
    folder = plant({"closed/a": "needle\n"})
    (folder / "closed").chmod(0)
    try:
        *_, summary = sync.search_messages("needle", cwd=folder, rg=unprivileged, paths="closed/a")
    finally:
        (folder / "closed").chmod(0o700)
    assert isinstance(summary, Summary)
    assert [(error.path, error.kind) for error in summary.errors] == [("closed/a", "denied")]


@pytest.mark.parametrize("backend", ["asyncio", "sync"])
class TestLinksToNothing:
    @pytest.fixture
    def linked(self, plant: Plant) -> Path:
        folder = plant({"a": "needle\n", "d/b": "needle\n"})
        (folder / "broken").symlink_to("nowhere")
        (folder / "d" / "broken").symlink_to("nowhere")
        return folder

    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_operation_logs_no_warning(
        self, rg: RgBinary, linked: Path, operation: str, backend: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Issue 19, line 6: links are followed by default, so a link to nothing would give a warning for each call."""
        with caplog.at_level(logging.INFO, "ripwrap"):
            run(backend, operation, cwd=linked, rg=rg, glob=["*"])
        assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []

    def test_answer_lists_the_links_and_its_message_does_not(self, rg: RgBinary, linked: Path, backend: str) -> None:
        """Issue 19, line 6: the links are data of the answer."""
        result: ripwrap.GrepResult = run(backend, "grep", cwd=linked, rg=rg)
        *_, summary = run(backend, "search_messages", cwd=linked, rg=rg)
        assert set(summary.errors) == set(result.errors)
        assert {(error.path, error.kind, error.harmless) for error in result.errors} == {
            ("broken", "broken_link", True),
            ("d/broken", "broken_link", True),
        }
        assert result.message == "2 matches in 2 files."

    def test_link_that_is_named_is_a_missing_path(
        self, rg: RgBinary, linked: Path, backend: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Issue 19, line 6: the caller expects something behind it."""
        *_, summary = run(backend, "search_messages", cwd=linked, rg=rg, paths=["a", "./d/broken"])
        ((error),) = summary.errors
        assert (error.path, error.kind, error.harmless) == ("d/broken", "missing", False)
        assert run(backend, "files", cwd=linked, rg=rg, paths=["a", "d/broken"]) == ["a"]
        assert "d/broken" in caplog.text


@pytest.mark.slow
def test_program_without_logging_prints_no_warning(rg: RgBinary, plant: Plant) -> None:
    """Issue 19, line 6: a library has a `NullHandler`, without which Python prints its warnings on stderr."""
    folder = plant({"a": "needle\n"})
    code = f"from ripwrap import sync; print(list(sync.files(paths=['a', 'gone'], rg={rg.path!r})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("['a']\n", "")

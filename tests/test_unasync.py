"""The generated modules agree with their sources; otherwise, `scripts/unasync.py --check` fails."""

import re
import shutil
from pathlib import Path

import pytest

import ripwrap
import unasync
from ripwrap import sync

SOURCE = Path(ripwrap.__file__).parent


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with generated modules; written without ruff, which some test environments lack."""
    folder = tmp_path_factory.mktemp("generated")
    shutil.copytree(SOURCE, folder / "ripwrap", ignore=shutil.ignore_patterns("__pycache__"))
    run(folder)
    return folder


@pytest.fixture
def root(generated: Path, tmp_path: Path) -> Path:
    """A copy of that copy, which a test may change."""
    return shutil.copytree(generated, tmp_path / "copy")


def run(root: Path, *options: str) -> None:
    unasync.main([*options, f"--root={root}"], formatted=lambda source, path: source)


@pytest.mark.slow
def test_check_passes_until_a_source_changes_and_then_shows_each_difference(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(root, "--check")
    for module, before, after in (
        ("_operations/search.py", "limit: int | None = None", "limit: int | None = 7"),
        ("_operations/grep.py", "Search files and return a page", "Search and return a page"),
        ("_operations/tree.py", "await run_listing(run, request)", "await run_listing(run, request, 1)"),
    ):
        path = root / "ripwrap" / module
        source = path.read_text()
        assert before in source
        path.write_text(source.replace(before, after))
    with pytest.raises(SystemExit, match=r"run python scripts/unasync\.py"):
        run(root, "--check")
    shown = capsys.readouterr().out
    for line in ("limit: int | None = 7", "Search and return a page", "run_listing(run, request, 1)"):
        assert re.search(rf"^\+.*{re.escape(line)}", shown, re.MULTILINE), line


@pytest.mark.slow
def test_phrase_that_no_docstring_has_is_an_error(root: Path) -> None:
    path = root / "ripwrap" / "index" / "core.py"
    source, phrase = path.read_text(), "If it is cancelled, it stops"
    assert phrase in source
    path.write_text(source.replace(phrase, "When cancelled, it stops"))
    with pytest.raises(SystemExit, match=f"index/blocking.py: no docstring has the phrase '{phrase}'"):
        run(root)


@pytest.mark.parametrize("name", [name for name in sync.__all__ if name[0].islower()])
def test_blocking_docstring_has_no_async_words(name: str) -> None:
    text = getattr(sync, name).__doc__
    assert "blocking" not in text.partition("\n")[0]
    assert not {word for word in ("asyncio", "await ", "aclosing", "async ") if word in text}
    if "Args:\n" in text:
        assert "    timeout: " in text

"""What the index's tests share: which extras are here, and nothing that this machine has set for providers."""

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from index.embeddings import Provider, serving

EXTRAS = {
    "test_apart.py": ("tree_sitter", "semble_grammars"),
    "test_syntax.py": ("tree_sitter", "semble_grammars"),
    "test_embed.py": ("numpy", "pydantic_ai", "openai", "google.genai", "tokenizers", "wordllama"),
    "test_hybrid.py": ("numpy", "pydantic_ai", "openai", "tokenizers", "wordllama", "tree_sitter", "semble_grammars"),
    "test_vectors.py": ("numpy", "usearch"),
    "test_watch.py": ("watchfiles",),
}


def _here(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


left_out = {
    test: missing for test, modules in EXTRAS.items() if (missing := [name for name in modules if not _here(name)])
}
collect_ignore = list(left_out)
if left_out and os.environ.get("RIPWRAP_ALL_EXTRAS"):
    raise pytest.UsageError(f"not installed: {left_out}")


def pytest_report_header() -> list[str]:
    return [f"index/{test} LEFT OUT, not installed: {', '.join(names)}" for test, names in left_out.items()]


@pytest.fixture(autouse=True)
def nobody_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no address, no proxy; and whoever asks an Ollama asks one that is not there."""
    for name in list(os.environ):
        if name.endswith(("_KEY", "_TOKEN", "_BASE_URL", "_PROXY", "_proxy")) or name.startswith(("OLLAMA", "COPILOT")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A server on this machine that embeds."""
    with serving(Provider()) as one:
        yield one

"""Fixtures of the index's tests: a local provider of embeddings, and an environment without any other."""

import os
from collections.abc import Iterator

import pytest

from ripwrap.index.embeddings.queries import QUERIES
from support.embeddings import Provider, serving


@pytest.fixture(autouse=True)
def no_provider_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove keys, addresses and proxies from the environment, and point Ollama at a closed port."""
    for name in list(os.environ):
        if name.endswith(("_KEY", "_TOKEN", "_BASE_URL", "_PROXY", "_proxy")) or name.startswith(("OLLAMA", "COPILOT")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


@pytest.fixture(autouse=True)
def no_query_remembered() -> None:
    """Drop the vectors of the queries of other tests."""
    QUERIES.clear()


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Run an embedding server on this machine."""
    with serving(Provider()) as one:
        yield one

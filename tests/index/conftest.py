"""Fixtures of the index's tests: a local provider of embeddings, and an environment without any other."""

import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ripwrap.index.embeddings.storage import QUERIES
from support.embeddings import Provider, serving

if TYPE_CHECKING:
    import trustme


@pytest.fixture(autouse=True)
def no_provider_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove keys, addresses and proxies from the environment, and point Ollama at a closed port."""
    for name in list(os.environ):
        if name.endswith(("_KEY", "_TOKEN", "_BASE_URL", "_PROXY", "_proxy")) or name.startswith(("OLLAMA", "COPILOT")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


@pytest.fixture(scope="session")
def certificate(authority: "trustme.CA", tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("certificate") / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    return file


@pytest.fixture
def one_certificate(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give one certificate to the clients of providers: for each request they read those of the system, for 25 ms."""
    paths = ssl.get_default_verify_paths()._replace(openssl_cafile=str(certificate), openssl_capath="")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


@pytest.fixture(autouse=True)
def no_query_remembered() -> None:
    """Drop the vectors of the queries of other tests."""
    QUERIES.clear()


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Run an embedding server on this machine."""
    with serving(Provider()) as one:
        yield one

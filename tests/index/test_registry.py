"""Choice of an embedder, by its name or by `'auto'`."""

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from ripwrap import EmbeddingError, index, sync
from ripwrap.index import detect, embedder
from ripwrap.index.embeddings.protocol import Destination, describe
from support.cli import run
from support.embeddings import Provider

KEY = "not-a-real-key-0123456789"


@pytest.fixture
def no_google(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the package google-genai, even from modules that are already imported."""
    for name in ("pydantic_ai.providers.google", "pydantic_ai.embeddings.google"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "google.genai", None)


@pytest.fixture
def no_pydantic_ai(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide pydantic-ai, as if the extra `vectors` were not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "pydantic_ai"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)


def test_detect_is_public() -> None:
    """`detect()` returns the choice of `'auto'` and the reasons."""
    assert {"detect", "DetectedProvider"} <= set(index.__all__)
    assert [type(one) for one in detect()] == [index.DetectedProvider] * 4
    assert [(one.provider, one.configured) for one in detect()] == [
        ("github-copilot", False),
        ("openai", False),
        ("google", False),
        ("ollama", False),
    ]


@pytest.mark.usefixtures("no_pydantic_ai")
def test_unknown_embedder_error_names_the_known_ones_without_the_extra() -> None:
    """The error for an unknown name does not ask for a package."""
    with pytest.raises(EmbeddingError) as caught:
        embedder("bogus")
    known = "auto, wordllama, github-copilot, openai, google, ollama, voyageai, cohere"
    assert f"{caught.value}".startswith(f"unknown embedder 'bogus'; known embedders are {known}")
    assert 'pip install "ripwrap[hosted]"' in f"{caught.value}"  # these names need pydantic-ai to be known
    with pytest.raises(EmbeddingError, match="unknown embedder 'opnai:x'; did you mean 'openai'"):
        embedder("opnai:x")
    with pytest.raises(EmbeddingError, match="unknown embedder 'auto:x'"):
        embedder("auto:x")


@pytest.mark.usefixtures("no_pydantic_ai")
@pytest.mark.parametrize(
    ("name", "extra"), [("openai", "hosted"), ("google", "google"), ("ollama:x", "hosted"), ("gemini", "google")]
)
def test_known_provider_without_its_package_names_the_extra(name: str, extra: str) -> None:
    with pytest.raises(
        EmbeddingError, match=rf'cannot be used: a package is missing: pip install "ripwrap\[{extra}\]"$'
    ):
        embedder(name)


@pytest.mark.usefixtures("no_pydantic_ai")
def test_key_of_a_provider_without_its_package_is_detected_and_not_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider needs a key and its package."""
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    found = {one.provider: one for one in detect()}["google"]
    assert (found.embedder, found.configured) == (None, True)
    assert found.why.startswith("GOOGLE_API_KEY is set, but google:gemini-embedding-001 cannot be used")
    assert found.why.endswith('pip install "ripwrap[google]"')


@pytest.mark.extra
@pytest.mark.usefixtures("no_google")
def test_auto_skips_a_provider_without_its_package_and_logs_the_reason(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`'auto'` with GOOGLE_API_KEY and without google-genai takes the next provider."""
    pytest.importorskip("openai")
    pytest.importorskip("pydantic_ai")
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("OLLAMA_HOST", provider.url)
    with caplog.at_level(logging.INFO, "ripwrap"):
        chosen = embedder("auto")
    assert chosen.name == "ollama:nomic-embed-text"
    why = "GOOGLE_API_KEY is set, but google:gemini-embedding-001 cannot be used: a package is missing: "
    why += 'pip install "ripwrap[google]"'
    warned = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert warned == [f"embedder 'auto' does not use google: {why}"]
    assert "embedder 'auto' is ollama:nomic-embed-text: it runs on this machine" in caplog.text
    note = f"Chosen by 'auto': it runs on this machine. Not used: google ({why})."
    assert note in str(describe(chosen))


@pytest.mark.extra
@pytest.mark.usefixtures("no_google")
def test_status_says_why_auto_has_chosen_an_embedder(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status shows the choice with its reason."""
    for package in ("numpy", "openai", "pydantic_ai"):
        pytest.importorskip(package)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("OLLAMA_HOST", provider.url)
    with sync.Index(tmp_path, location=tmp_path / "home", embedder="auto") as found:
        status = found.status()
    assert status.model == "ollama:nomic-embed-text"
    (sent,) = status.sent
    assert "Chosen by 'auto': it runs on this machine. Not used: google (GOOGLE_API_KEY is set, but" in sent
    done = run("index", "status", "--location=home", "--embedder=auto", cwd=tmp_path, code=1)
    assert done.stderr.startswith(b"ripwrap: embedder 'auto' does not use google: GOOGLE_API_KEY is set, but")


def test_copilot_is_chosen_by_auto_only_with_the_address_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub retired GitHub Models; Copilot's API still exists, but is undocumented."""
    monkeypatch.setenv("COPILOT_GITHUB_TOKEN", KEY)
    found = detect()[0]
    assert (found.embedder, found.configured) == (None, False)
    assert "GitHub does not document Copilot's embeddings API" in found.why
    assert "retired" not in found.why


@pytest.mark.parametrize(
    ("told", "leaves_machine", "text"),
    [
        ({}, False, "runs on this machine, in this process; nothing is sent."),
        ({"url": "https://api.example"}, None, "is sent to https://api.example; ripwrap cannot tell if that is "),
        ({"url": "https://api.example", "leaves_machine": True}, True, "https://api.example, which is not this "),
        ({"url": "http://[::1]:99", "leaves_machine": False}, False, "sent to http://[::1]:99, on this machine."),
    ],
)
def test_destination_claims_to_be_this_machine_only_if_that_is_known(
    told: dict[str, Any], leaves_machine: bool | None, text: str
) -> None:
    destination = Destination(name="own:model", **told)
    assert destination.leaves_machine is leaves_machine
    assert text in str(destination)

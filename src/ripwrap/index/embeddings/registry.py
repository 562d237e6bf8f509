"""Find an embedder by its name, by default the offline one; `'auto'` looks for a provider that is set up.

Nothing leaves the machine, unless the caller names a hosted provider, or `'auto'`, which may find one.
"""

import difflib
import os
import re
from importlib.util import find_spec

import httpx
from pydantic import BaseModel

from ripwrap.errors import EmbeddingError
from ripwrap.index.embeddings.hosted import KEYS, RETIRED, Hosted, is_loopback, ollama_url
from ripwrap.index.embeddings.protocol import Embedder, Limits
from ripwrap.index.embeddings.wordllama import WordLlama

MODELS = {
    "github-copilot": "text-embedding-3-small",
    "openai": "text-embedding-3-small",
    "google": "gemini-embedding-001",
    "ollama": "nomic-embed-text",
    "voyageai": "voyage-code-3",
    "cohere": "embed-v4.0",
}
"""Default model of a provider."""

_PROVIDER_ALIASES = {
    "copilot": "github-copilot",
    "gemini": "google",
    "google-gla": "google",
    "google-vertex": "google-cloud",
}
_OTHER_PROVIDERS = ("google-cloud", "azure", "bedrock", "sentence-transformers")
_OLLAMA_TIMEOUT = 0.3  # seconds; a server on this machine lists its models at once
_EMBEDDING_MODEL_NAME = re.compile(r"embed|minilm|(^|/)bge|(^|/)e5|(^|/)gte", re.IGNORECASE)


class Found(BaseModel, frozen=True):
    """Result of looking for a provider.

    Attributes:
        provider: Name of the provider.
        embedder: Name for `embedder()`; `None` if the provider cannot be used.
        why: Reason: what was found, or what is missing.
    """

    provider: str
    embedder: str | None
    why: str


def embedder(named: str | Embedder | None = None, *, limits: Limits | None = None) -> Embedder:
    """Return the embedder of a name.

    Args:
        named: `provider:model`, such as 'openai:text-embedding-3-small' or 'ollama:nomic-embed-text'. A provider alone
            has a default model. 'wordllama' or `None`, the default, needs no network. 'auto' is the first of Copilot,
            OpenAI, Google and an Ollama on this machine that is set up, or else wordllama. An object that is an
            `Embedder` is returned as it is.
        limits: Limits of requests, in place of those of the provider; an object keeps its own.

    Raises:
        EmbeddingError: The name is unknown, or a package or key is missing; the message says which.
        TypeError: The argument is not a name or an `Embedder`.
    """
    if named is not None and not isinstance(named, str):
        if not isinstance(named, Embedder):
            raise TypeError(f"an embedder must be a name or an Embedder, got {type(named).__name__}")
        return named
    name = "wordllama" if named is None else named.strip()
    if name == "auto":
        name = next((found.embedder for found in detect() if found.embedder), "wordllama")
    provider, _, model = name.partition(":")
    provider = _PROVIDER_ALIASES.get(provider.lower(), provider.lower())
    if provider == "wordllama":
        return _make_wordllama(model)
    if find_spec("pydantic_ai") is None:
        how = 'it needs the package pydantic-ai-slim: pip install "ripwrap[vectors]"'
        raise EmbeddingError(f"{name} cannot be used: {how}", provider=provider)
    _check_known(provider, name)
    model = model or MODELS.get(provider, "")
    if not model:
        raise EmbeddingError(f"{name!r} names no model; write '{provider}:MODEL'", provider=provider)
    return Hosted(provider, model, limits=limits)


def detect() -> tuple[Found, ...]:
    """Return which providers can be used, in this order: Copilot, OpenAI, Google, Ollama.

    The environment is read, and an Ollama on this machine is asked for its models, for 0.3 seconds at most. Nothing of
    a project is sent, and no other machine is asked.
    """
    return (_detect_copilot(), _detect_hosted("openai"), _detect_hosted("google"), _detect_ollama())


def _make_wordllama(model: str) -> WordLlama:
    if model not in ("", "l2_supercat_256"):
        raise EmbeddingError(f"wordllama's wheel ships one model, l2_supercat_256, not {model}", provider="wordllama")
    return WordLlama()


def _check_known(provider: str, name: str) -> None:
    """Check that a provider is known.

    Raises:
        EmbeddingError: The provider is unknown.
    """
    from pydantic_ai.providers import infer_provider_class

    try:
        infer_provider_class(provider.removeprefix("gateway/"))
    except ImportError:  # a known provider without its package; `Hosted` names the package
        pass
    except ValueError as error:
        known = ["wordllama", *MODELS, *_OTHER_PROVIDERS]
        close = difflib.get_close_matches(provider, known, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise EmbeddingError(
            f"unknown provider of embeddings {provider!r} in {name!r}; {hint}"
            f"known are {', '.join(known)}, and all of pydantic-ai",
            provider=provider,
        ) from error


def _find_key(provider: str) -> str | None:
    return next((key for key in KEYS[provider] if os.environ.get(key)), None)


def _detect_hosted(provider: str) -> Found:
    key = _find_key(provider)
    if key is None:
        return Found(provider=provider, embedder=None, why=f"not set: {', '.join(KEYS[provider])}")
    return Found(provider=provider, embedder=f"{provider}:{MODELS[provider]}", why=f"{key} is set")


def _detect_copilot() -> Found:
    """Look for Copilot, which works only with the address of another server: GitHub has retired this API."""
    found = _detect_hosted("github-copilot")
    elsewhere = ("GITHUB_COPILOT_BASE_URL", "COPILOT_API_URL", "GITHUB_COPILOT_API_BASE")
    if found.embedder is None or any(os.environ.get(name) for name in elsewhere):
        return found
    return Found(provider=found.provider, embedder=None, why=f"{found.why}, but: {RETIRED}")


def _detect_ollama() -> Found:
    url = ollama_url().removesuffix("/v1")
    if not is_loopback(url):
        return Found(
            provider="ollama", embedder=None, why="OLLAMA_HOST is another machine; name the provider to use it"
        )
    try:
        with httpx.Client(trust_env=False, timeout=_OLLAMA_TIMEOUT) as client:
            listed = client.get(f"{url}/api/tags").raise_for_status().json()["models"]
        names = [str(model["name"]).removesuffix(":latest") for model in listed]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        return Found(provider="ollama", embedder=None, why=f"no answer on this machine ({type(error).__name__})")
    embeds = sorted(
        (name for name in names if _EMBEDDING_MODEL_NAME.search(name)), key=lambda name: name != MODELS["ollama"]
    )
    if not embeds:
        why = f"it has no model that embeds: ollama pull {MODELS['ollama']}"
        return Found(provider="ollama", embedder=None, why=why)
    return Found(provider="ollama", embedder=f"ollama:{embeds[0]}", why="it runs on this machine")

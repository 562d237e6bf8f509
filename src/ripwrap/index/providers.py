"""Which embedder: the one that is named, or the offline default; looking for one only if that is asked for.

Nothing leaves the machine unless a hosted provider was named, or 'auto', which may find one, was.
"""

import difflib
import os
import re
from importlib.util import find_spec

import httpx
from pydantic import BaseModel

from ripwrap.errors import EmbeddingError
from ripwrap.index.embed import Embedder, Limits
from ripwrap.index.hosted import KEYS, RETIRED, Hosted, is_loopback, ollama_url
from ripwrap.index.offline import WordLlama

MODELS = {
    "github-copilot": "text-embedding-3-small",
    "openai": "text-embedding-3-small",
    "google": "gemini-embedding-001",
    "ollama": "nomic-embed-text",
    "voyageai": "voyage-code-3",
    "cohere": "embed-v4.0",
}
"""The model of a provider that is named without one."""

_ALSO = {"copilot": "github-copilot", "gemini": "google", "google-gla": "google", "google-vertex": "google-cloud"}
_OTHERS = ("google-cloud", "azure", "bedrock", "sentence-transformers")
_PATIENCE = 0.3  # Seconds for a server on this machine, which knows its models without thinking.
_EMBEDS = re.compile(r"embed|minilm|(^|/)bge|(^|/)e5|(^|/)gte", re.IGNORECASE)


class Found(BaseModel, frozen=True):
    """A provider that was looked for.

    Attributes:
        provider: Its name.
        embedder: What `embedder()` takes to use it; `None` if it cannot be used.
        why: What was found, or what is missing.
    """

    provider: str
    embedder: str | None
    why: str


def embedder(named: str | Embedder | None = None, *, limits: Limits | None = None) -> Embedder:
    """The embedder of that name.

    Args:
        named: `provider:model` ('openai:text-embedding-3-small', 'ollama:nomic-embed-text', …) or a provider alone, for
            a model that ripwrap chooses; 'wordllama' or `None`, the default, for the one that needs no network;
            'auto' for the first of Copilot, OpenAI, Google and an Ollama on this machine that is set up, or else that
            one; an object that is an `Embedder` comes back as it is.
        limits: How it is asked, instead of its own limits; not for an object.

    Raises:
        EmbeddingError: It is unknown, or a package or key is missing; the message says which.
        TypeError: It is no name and no embedder.
    """
    if named is not None and not isinstance(named, str):
        if not isinstance(named, Embedder):
            raise TypeError(f"an embedder should be a name or an Embedder, not {type(named).__name__}")
        return named
    name = "wordllama" if named is None else named.strip()
    if name == "auto":
        name = next((found.embedder for found in detect() if found.embedder), "wordllama")
    provider, _, model = name.partition(":")
    provider = _ALSO.get(provider.lower(), provider.lower())
    if provider == "wordllama":
        return _offline(model)
    if find_spec("pydantic_ai") is None:
        how = 'it needs the package pydantic-ai-slim: pip install "ripwrap[vectors]"'
        raise EmbeddingError(f"{name} cannot be used: {how}", provider=provider)
    _check_known(provider, name)
    model = model or MODELS.get(provider, "")
    if not model:
        raise EmbeddingError(f"{name!r} names no model; write '{provider}:MODEL'", provider=provider)
    return Hosted(provider, model, limits=limits)


def detect() -> tuple[Found, ...]:
    """What could be used, in order: Copilot, OpenAI, Google, Ollama.

    Reads the environment, and asks an Ollama on this machine, for 0.3 seconds at most, which models it has. Nothing of
    a project is sent, and no other machine is asked.
    """
    return (_copilot(), _hosted("openai"), _hosted("google"), _ollama())


def _offline(model: str) -> WordLlama:
    if model not in ("", "l2_supercat_256"):
        raise EmbeddingError(f"wordllama's wheel ships one model, l2_supercat_256, not {model}", provider="wordllama")
    return WordLlama()


def _check_known(provider: str, name: str) -> None:
    """Refuse a provider that nobody knows.

    Raises:
        EmbeddingError: It is one.
    """
    from pydantic_ai.providers import infer_provider_class

    try:
        infer_provider_class(provider.removeprefix("gateway/"))
    except ImportError:  # known, and its package missing; who makes it says so
        pass
    except ValueError as error:
        known = ["wordllama", *MODELS, *_OTHERS]
        close = difflib.get_close_matches(provider, known, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise EmbeddingError(
            f"There is no provider of embeddings of the name {provider!r} (in {name!r}): {hint}"
            f"Known are {', '.join(known)}, and what pydantic-ai knows.",
            provider=provider,
        ) from error


def _set(provider: str) -> str | None:
    return next((key for key in KEYS[provider] if os.environ.get(key)), None)


def _hosted(provider: str) -> Found:
    key = _set(provider)
    if key is None:
        return Found(provider=provider, embedder=None, why=f"not set: {', '.join(KEYS[provider])}")
    return Found(provider=provider, embedder=f"{provider}:{MODELS[provider]}", why=f"{key} is set")


def _copilot() -> Found:
    """Not used by itself any more, unless the address is that of somebody's server that still has it."""
    found = _hosted("github-copilot")
    elsewhere = ("GITHUB_COPILOT_BASE_URL", "COPILOT_API_URL", "GITHUB_COPILOT_API_BASE")
    if found.embedder is None or any(os.environ.get(name) for name in elsewhere):
        return found
    return Found(provider=found.provider, embedder=None, why=f"{found.why}, but: {RETIRED}")


def _ollama() -> Found:
    url = ollama_url().removesuffix("/v1")
    if not is_loopback(url):
        return Found(
            provider="ollama", embedder=None, why="OLLAMA_HOST is another machine, which is not asked; name it"
        )
    try:
        with httpx.Client(trust_env=False, timeout=_PATIENCE) as client:
            listed = client.get(f"{url}/api/tags").raise_for_status().json()["models"]
        names = [str(model["name"]).removesuffix(":latest") for model in listed]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        return Found(provider="ollama", embedder=None, why=f"no answer on this machine ({type(error).__name__})")
    embeds = sorted((name for name in names if _EMBEDS.search(name)), key=lambda name: name != MODELS["ollama"])
    if not embeds:
        why = f"it has no model that embeds: ollama pull {MODELS['ollama']}"
        return Found(provider="ollama", embedder=None, why=why)
    return Found(provider="ollama", embedder=f"ollama:{embeds[0]}", why="it runs on this machine")

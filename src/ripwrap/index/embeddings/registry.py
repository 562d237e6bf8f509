"""Make an embedder from its name. The default works offline; `'auto'` looks for a provider that is configured.

Nothing leaves the machine unless the caller names a hosted provider, or passes `'auto'`, which may choose a hosted
provider.

The embedder without a network uses the weights of the package `wordllama`, without its code, which has three problems.
`wordllama.WordLlama.load()` looks for the tokenizer in a directory that the wheel does not have, and then downloads the
tokenizer. Importing the package adds a handler to the root logger. The package pads a batch to its longest text, so
that a long text takes gigabytes. An embedding is the mean of token vectors, and this module computes the mean itself. A
test compares the results with the results of the package.
"""

import difflib
import functools
import logging
import os
import re
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx

from ripwrap.errors import EmbeddingError, Hint, HintedText
from ripwrap.index.embeddings.hosted import KEYS, UNDOCUMENTED, Hosted, is_loopback, ollama_url
from ripwrap.index.embeddings.protocol import Destination, Embedder, Limits
from ripwrap.index.models import HintedSentence
from ripwrap.models import Model

if TYPE_CHECKING:
    from ripwrap.index.embeddings.vectors import Matrix


_WEIGHTS_PATH = "weights/l2_supercat_256.safetensors"
_TOKENIZER_PATH = "tokenizers/l2_supercat_tokenizer_config.json"
_LOAD_LOCK = threading.Lock()
_INSTALL = Hint(kind="install", target="ripwrap[vectors]")
_REINSTALL_COMMAND = 'pip install --force-reinstall --no-deps "wordllama>=0.4"'
"""Command that replaces the files of an installed package. Without `--force-reinstall`, pip would keep them."""


class WordLlama:
    """Embedder that runs offline, in this process. It embeds about 1,500 chunks of 1,000 characters a second."""

    name = "wordllama:l2_supercat_256"
    dimension: int | None = 256
    limits: Limits = Limits(concurrency=1, delay=0, tries=1, timeout=600)

    def __init__(self) -> None:
        missing = [name for name in ("wordllama", "tokenizers", "safetensors", "numpy") if find_spec(name) is None]
        if missing:
            raise _unusable_error(f"it needs the packages {', '.join(missing)}: {_INSTALL}")
        self.destination: Destination = Destination(name=self.name)
        self._model: tuple[Any, Any] | None = None

    async def embed(self, texts: Sequence[str], *, query: bool) -> "Matrix":  # noqa: ARG002 - the model embeds queries as documents
        """Return the mean of the token vectors of each text; zeros for a text without tokens."""
        done = threading.Event()
        try:
            return await anyio.to_thread.run_sync(self._embed, list(texts), done, abandon_on_cancel=True)
        finally:
            done.set()

    def _embed(self, texts: list[str], done: threading.Event) -> "Matrix":
        import numpy as np  # late: the import takes a tenth of a second

        with _LOAD_LOCK:
            if self._model is None:
                self._model = load_wordllama()
        tokenizer, weights = self._model
        found = np.zeros((len(texts), weights.shape[1]), np.float32)
        for number, text in enumerate(texts):
            if done.is_set():
                break
            # Encode one text at a time: a batch starts threads, after which each fork of the process logs warnings.
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            if ids:
                found[number] = weights[np.minimum(ids, len(weights) - 1)].mean(axis=0, dtype=np.float32)
        return found


@functools.cache
def load_wordllama() -> tuple[Any, Any]:
    """Load the tokenizer and the weights of wordllama (33 MB of memory); all indexes of a process share them.

    Raises:
        EmbeddingError: The package is damaged, or too old.
    """
    found = find_spec("wordllama")
    folder = Path(found.origin).parent if found and found.origin else Path()
    for name in (_WEIGHTS_PATH, _TOKENIZER_PATH):
        if not (folder / name).is_file():
            raise _unusable_error(f"{folder / name} is missing; install wordllama 0.4 or later: {_REINSTALL_COMMAND}")
    try:
        tokenizer = import_module("tokenizers").Tokenizer.from_file(str(folder / _TOKENIZER_PATH))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        with import_module("safetensors").safe_open(folder / _WEIGHTS_PATH, framework="np", device="cpu") as file:
            weights = file.get_tensor("embedding.weight").astype("float32")
    except Exception as error:  # the packages do not document what they raise
        raise _unusable_error(f"{folder} is damaged ({error}); install it again: {_REINSTALL_COMMAND}") from error
    return tokenizer, weights


def _unusable_error(why: str) -> EmbeddingError:
    return EmbeddingError(f"the offline embedder wordllama cannot be used: {why}", provider="wordllama")


MODELS = {
    "github-copilot": "text-embedding-3-small",
    "openai": "text-embedding-3-small",
    "google": "gemini-embedding-001",
    "ollama": "nomic-embed-text",
    "voyageai": "voyage-code-3",
    "cohere": "embed-v4.0",
}
"""Default model of each provider."""

_PROVIDER_ALIASES = {
    "copilot": "github-copilot",
    "gemini": "google",
    "google-gla": "google",
    "google-vertex": "google-cloud",
}
_OTHER_PROVIDERS = ("google-cloud", "azure", "bedrock", "sentence-transformers")
_OLLAMA_TIMEOUT = 0.3  # seconds; a server on this machine lists its models at once
_EMBEDDING_MODEL_NAME = re.compile(r"embed|minilm|(^|/)bge|(^|/)e5|(^|/)gte", re.IGNORECASE)


_LOGGER = logging.getLogger("ripwrap")


class DetectedProvider(Model, frozen=True):
    """Provider of embeddings that the embedder `'auto'` considers.

    Attributes:
        provider: Name of the provider.
        embedder: Name of the embedder, to pass to `embedder()`; `None` if `'auto'` cannot use the provider.
        configured: True if the environment configures the provider, even if a package is missing.
        why: Reason why the provider can or cannot be used: the setting that was found, or the setting or package that
            is missing.
    """

    provider: str
    embedder: str | None
    configured: bool
    why: HintedSentence


def embedder(named: str | Embedder | None = None, *, limits: Limits | None = None) -> Embedder:
    """Return the embedder for a name.

    Args:
        named: `provider:model`, such as 'openai:text-embedding-3-small' or 'ollama:nomic-embed-text'. A provider
            without a model means the default model of the provider, if ripwrap knows one. 'wordllama' or `None`, the
            default, needs no network. 'auto' is the first provider of `detect()` that can be used or, if there is none,
            wordllama. The choice is logged; a missing package of a configured provider is logged as a warning. An
            object that is an `Embedder` is returned as it is.
        limits: Limits of requests; `None` uses the limits of the provider. Ignored for an `Embedder` and for wordllama.

    Raises:
        EmbeddingError: The name is unknown, or a package or key is missing; the message says which.
        TypeError: `named` is neither a name, nor an `Embedder`, nor `None`.
    """
    if named is not None and not isinstance(named, str):
        if not isinstance(named, Embedder):
            raise TypeError(f"an embedder must be a name or an Embedder, got {type(named).__name__}")
        return named
    name = "wordllama" if named is None else named.strip()
    return _choose(limits) if name == "auto" else _make(name, limits)


def detect() -> tuple[DetectedProvider, ...]:
    """Return the providers that the embedder `'auto'` considers, in this order: Copilot, OpenAI, Google, Ollama.

    A provider can be used if the environment configures it and its package is installed. The environment is read, and
    an Ollama on this machine is asked for its models, for 0.3 seconds at most. No text of a project is sent, and no
    other machine is asked. GitHub does not document Copilot's embeddings API. So `'auto'` uses Copilot only if the
    environment has the address of a server for it, e.g. in `GITHUB_COPILOT_BASE_URL`.
    """
    return (_detect_copilot(), _detect_hosted("openai"), _detect_hosted("google"), _detect_ollama())


def _make(name: str, limits: Limits | None) -> Hosted | WordLlama:
    provider, _, model = name.partition(":")
    provider = _PROVIDER_ALIASES.get(provider.lower(), provider.lower())
    if provider == "wordllama":
        if model not in ("", "l2_supercat_256"):
            only = f"wordllama has only the model l2_supercat_256, got {model}; write 'wordllama'"
            raise EmbeddingError(only, provider="wordllama")
        return WordLlama()
    _check_known(provider, name)
    model = model or MODELS.get(provider, "")
    if not model:
        raise EmbeddingError(f"{name!r} does not name a model; write '{provider}:MODEL'", provider=provider)
    return Hosted(provider, model, limits=limits)


def _choose(limits: Limits | None) -> Hosted | WordLlama:
    """Choose the embedder for `'auto'`; log the reason, and also add it to `destination.note` of the embedder."""
    detected = detect()
    passed = [*takewhile(lambda one: one.embedder is None, detected)]
    if len(passed) < len(detected):
        chosen, why = _make(detected[len(passed)].embedder or "", limits), detected[len(passed)].why
    else:
        chosen, why = _make("wordllama", limits), "no provider can be used"
    _LOGGER.info("embedder 'auto' is %s: %s", chosen.name, why)
    for one in passed:
        level = logging.WARNING if one.configured else logging.INFO
        _LOGGER.log(level, "embedder 'auto' does not use %s: %s", one.provider, one.why)
    unused = ", ".join(f"{one.provider} ({one.why})" for one in passed if one.configured)
    notes = (f"Chosen by 'auto': {why}.", f"Not used: {unused}." if unused else "", chosen.destination.note)
    chosen.destination = chosen.destination.model_copy(update={"note": " ".join(filter(None, notes))})
    return chosen


def _check_known(provider: str, name: str) -> None:
    """Check that ripwrap knows a provider, or that pydantic-ai is installed and knows the provider."""
    known = ["auto", "wordllama", *MODELS, *_OTHER_PROVIDERS]
    if provider in known[2:]:
        return
    others = ", and all providers of pydantic-ai"
    if find_spec("pydantic_ai") is None:
        others += f" once it is installed: {Hint(kind='install', target='ripwrap[hosted]')}"
    elif _is_known_to_pydantic_ai(provider.removeprefix("gateway/")):
        return
    close = difflib.get_close_matches(provider, known, 1)
    hint = f"did you mean {close[0]!r}? " if close and close[0] != provider else ""
    message = f"unknown embedder {name!r}; {hint}known embedders are {', '.join(known)}{others}"
    raise EmbeddingError(message, provider=provider)


def _is_known_to_pydantic_ai(provider: str) -> bool:
    from pydantic_ai.providers import infer_provider_class  # late: an optional package

    try:
        infer_provider_class(provider)
    except ImportError:  # the provider is known, but its package is missing; `Hosted` raises an error that names it
        return True
    except ValueError:
        return False
    return True


def _find_key(provider: str) -> str | None:
    return next((key for key in KEYS[provider] if os.environ.get(key)), None)


def _detect_hosted(provider: str) -> DetectedProvider:
    key = _find_key(provider)
    if key is None:
        return _not_configured(provider, f"not set: {', '.join(KEYS[provider])}")
    return _configured(f"{provider}:{MODELS[provider]}", f"{key} is set")


def _detect_copilot() -> DetectedProvider:
    provider = "github-copilot"
    addresses = ("GITHUB_COPILOT_BASE_URL", "COPILOT_API_URL", "GITHUB_COPILOT_API_BASE")
    key = _find_key(provider)
    if key is None or any(os.environ.get(name) for name in addresses):
        return _detect_hosted(provider)
    return _not_configured(provider, f"{key} is set, but not {' or '.join(addresses)}. {UNDOCUMENTED}")


def _detect_ollama() -> DetectedProvider:
    provider = "ollama"
    url = ollama_url().removesuffix("/v1")
    if not is_loopback(url):
        return _not_configured(
            provider,
            HintedText(
                "OLLAMA_BASE_URL or OLLAMA_HOST names another machine; pass ",
                Hint("embedder", provider),
                " to send texts to that machine",
            ),
        )
    try:
        with httpx.Client(trust_env=False, timeout=_OLLAMA_TIMEOUT) as client:
            listed = client.get(f"{url}/api/tags").raise_for_status().json()["models"]
        names = [str(model["name"]).removesuffix(":latest") for model in listed]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        return _not_configured(provider, f"no answer on this machine ({type(error).__name__})")
    embeds = sorted(
        (name for name in names if _EMBEDDING_MODEL_NAME.search(name)), key=lambda name: name != MODELS[provider]
    )
    if not embeds:
        return _not_configured(provider, f"it has no embedding model: ollama pull {MODELS[provider]}")
    return _configured(f"{provider}:{embeds[0]}", "it runs on this machine")


def _not_configured(provider: str, why: str) -> DetectedProvider:
    return DetectedProvider(provider=provider, embedder=None, configured=False, why=why)


def _configured(name: str, why: str) -> DetectedProvider:
    """Return the `DetectedProvider` for an embedder that the environment configures."""
    provider, _, model = name.partition(":")
    try:
        Hosted(provider, model)
    except EmbeddingError as error:
        return DetectedProvider(provider=provider, embedder=None, configured=True, why=f"{why}, but {error}")
    return DetectedProvider(provider=provider, embedder=name, configured=True, why=why)

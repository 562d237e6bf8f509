"""Embedders of providers, by way of `pydantic_ai.Embedder`: what it raises told in our words, and no request but ours.

A client is made for each request, in an asyncio loop of its own (`errand.py`): 40 ms, beside the hundreds that a
request takes. The clients' own retries are off, because `batches.py` does that, with all the pauses in one hand.
"""

import ipaddress
import math
import os
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from ripwrap.binary.settings import offline, redacted
from ripwrap.errors import EmbeddingError, EmbedReason
from ripwrap.index.embed import Destination, Limits
from ripwrap.index.errand import run_in_asyncio

OLLAMA = "http://127.0.0.1:11434"

LIMITS: dict[str, Limits] = {
    "github-copilot": Limits(concurrency=1, delay=4),
    "openai": Limits(concurrency=3, delay=0.5),
    "google": Limits(concurrency=5, delay=0.2),
    "ollama": Limits(concurrency=5, delay=0, timeout=300),  # the first request loads the model
}
"""How often a provider may be asked; others as `Limits()` says."""

KEYS: dict[str, tuple[str, ...]] = {
    "github-copilot": ("GITHUB_COPILOT_API_KEY", "GITHUB_COPILOT_API_TOKEN", "COPILOT_GITHUB_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "voyageai": ("VOYAGE_API_KEY",),
    "cohere": ("CO_API_KEY",),
}
"""The variables that may have a provider's key."""

RETIRED = "GitHub has retired Copilot's embeddings API; name another provider."

_SECRETS = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")


class Hosted:
    """A provider's model.

    Attributes:
        name: `provider:model`.
        dimension: How many numbers a vector has, as the last answer had them; `None` before the first.
        limits: How it is asked.
        destination: Where texts are sent; as it was when this was made, or nothing is sent.
    """

    def __init__(self, provider: str, model: str, *, limits: Limits | None = None) -> None:
        self.name: str = f"{provider}:{model}"
        self.dimension: int | None = None
        self.limits: Limits = limits or LIMITS.get(provider, Limits())
        self._provider, self._model = provider, model
        self._local = False
        url = self._url(self._made()[1])
        self._local = url is not None and is_loopback(url)
        note = RETIRED if provider == "github-copilot" else ""
        if url is None:
            note = "Its package may fetch the model."
        self.destination: Destination = Destination(
            name=self.name, url=url, leaves_machine=url is not None and not self._local, note=note
        )

    async def embed(self, texts: Sequence[str], *, query: bool) -> Sequence[Sequence[float]]:
        """One request.

        Raises:
            EmbeddingError: There are no vectors, and why.
        """
        if self.destination.leaves_machine and offline():
            raise self._failed("RIPWRAP_OFFLINE is set, so nothing is sent to it", "setup")
        kind: Literal["query", "document"] = "query" if query else "document"
        try:
            found: Sequence[Sequence[float]] = await run_in_asyncio(lambda: self._request(list(texts), kind))
        except EmbeddingError:
            raise
        except Exception as error:  # what providers' packages raise is theirs to choose
            raise self._translated(error) from error
        self.dimension = self._length(found, len(texts)) or self.dimension
        return found

    async def _request(self, texts: list[str], kind: Literal["query", "document"]) -> Any:
        async with AsyncExitStack() as open_until_then:
            if self._local:
                provider, model = self._made(await open_until_then.enter_async_context(_direct_client(self.limits)))
            else:
                provider, model = self._made()
            if self._url(model) != self.destination.url:
                raise self._failed("its address has changed since it was chosen; choose it again", "setup")
            if provider is not None:
                await open_until_then.enter_async_context(provider)
            answer = await import_module("pydantic_ai").Embedder(model).embed(texts, input_type=kind)
            return answer.embeddings

    def _made(self, client: Any = None) -> tuple[Any, Any]:
        """Provider and model, out of what the environment says now."""
        made: list[Any] = []

        def provider(name: str) -> Any:
            arguments: dict[str, Any] = {} if client is None else {"http_client": client}
            if name == "ollama":
                arguments["base_url"] = ollama_url()
            providers = import_module("pydantic_ai.providers")
            one = providers.infer_provider_class(name)(**arguments) if arguments else providers.infer_provider(name)
            made.append(one)
            sdk: Any = getattr(one, "client", None)
            if isinstance(getattr(sdk, "max_retries", None), int):
                sdk.max_retries = 0
            return one

        try:
            embeddings = import_module("pydantic_ai.embeddings")
            model = embeddings.infer_embedding_model(self.name, provider_factory=provider)
        except (ImportError, ValueError, RuntimeError) as error:  # UserError is a RuntimeError
            raise self._not_set_up(error) from error
        return (made[0] if made else None), model

    @staticmethod
    def _url(model: Any) -> str | None:
        url = getattr(model, "base_url", None)
        return redacted(str(url)).rstrip("/") if url else None

    def _length(self, found: object, count: int) -> int | None:
        """How many numbers a vector has; `None` if these are none, from which nothing is learnt."""
        from ripwrap.index import vectors

        try:
            return int(vectors.matrix(found, count).shape[1])
        except ValueError:
            return None

    def _not_set_up(self, error: Exception) -> EmbeddingError:
        if isinstance(error, ImportError):
            extra = re.search(r"pydantic-ai-slim\[[\w-]+\]", str(error))
            packages = f'"ripwrap[vectors]" "{extra[0]}"' if extra else '"ripwrap[vectors]"'
            return self._failed(f"a package is missing: pip install {packages}")
        if isinstance(error, ValueError):
            return self._failed(f"{error}")
        keys = KEYS.get(self._provider)
        if keys and not any(os.environ.get(key) for key in keys):
            return self._failed(f"it needs a key: set {' or '.join(keys)}")
        return self._failed(re.split(r" or pass it via|\. To try", str(error))[0])

    def _translated(self, error: Exception) -> EmbeddingError:
        reason, what = _understood(error)
        after = getattr(error, "retry_after", None)
        status = getattr(error, "status_code", None)
        return self._failed(
            what,
            reason,
            status=status if isinstance(status, int) else None,
            retry_after=float(after) if isinstance(after, int | float) and 0 <= after < math.inf else None,
        )

    def _failed(self, what: str, reason: EmbedReason = "setup", **told: Any) -> EmbeddingError:
        verb = "cannot be used" if reason == "setup" else "failed"
        note = f". {RETIRED}" if self._provider == "github-copilot" else ""
        message = without_secrets(f"{self.name} {verb}: {what}{note}")
        return EmbeddingError(message, provider=self._provider, reason=reason, **told)


def ollama_url() -> str:
    """Ollama's address as `OLLAMA_BASE_URL` or `OLLAMA_HOST` has it, in the words of the server or of its clients.

    A server that listens everywhere, or of which only the port is named, is asked on this machine.
    """
    named = os.environ.get("OLLAMA_BASE_URL") or os.environ.get("OLLAMA_HOST") or OLLAMA
    url = named if "://" in named else f"http://{named}"
    parts = urlsplit(url)
    host = re.sub(r"(^|@)(0\.0\.0\.0|\[::\]|::)?(?=:\d*$|$)", r"\g<1>127.0.0.1", parts.netloc.rstrip(":"))
    if parts.scheme == "http" and not re.search(r":\d+$", host):
        host += ":11434"
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{host}{path if path.endswith('/v1') else path + '/v1'}"


def is_loopback(url: str) -> bool:
    """Whether an address is this machine, without asking anybody."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def without_secrets(text: str) -> str:
    """A text in which nothing stands that the environment calls a key, a token, a secret or a password."""
    for name, value in os.environ.items():
        if _SECRETS.search(name.upper()) and len(value) >= 8:
            text = text.replace(value, "***")
    return redacted(text)


def _direct_client(limits: Limits) -> Any:
    """For this machine alone: no proxy, to which `HTTP_PROXY` would send texts, and no redirection elsewhere."""
    return import_module("httpx2").AsyncClient(trust_env=False, follow_redirects=False, timeout=limits.timeout)


def _understood(error: Exception) -> tuple[EmbedReason, str]:
    """What to do about an error of a provider's package, and what to say."""
    errors = import_module("pydantic_ai.exceptions")
    status = getattr(error, "status_code", None)
    body: Any = getattr(error, "body", None)
    message = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else str(body or "")
    said = _short(message or getattr(error, "message", None) or error)
    if isinstance(status, int):
        what = f"it answered {status}: {said}"
        if isinstance(error, errors.ModelQuotaExceededError):
            return "refused", what
        if status in (408, 425, 429) or status >= 500:
            return "unavailable", what
        return ("rejected" if status in (400, 413, 422) else "refused"), what
    if isinstance(error, errors.ModelConnectionError):
        return "unavailable", f"no connection, or it was lost ({said})"
    if isinstance(error, errors.ModelRateLimitError | errors.ModelServerError | errors.ModelUnavailableError):
        return "unavailable", said
    if isinstance(error, errors.UserError):
        return "setup", said
    return "garbage", f"its answer is none of an embeddings API ({said})"


def _short(said: object) -> str:
    text = " ".join(without_secrets(str(said)).split())  # before it is cut, or a part of one would stay
    return f"{text[:200]}…" if len(text) > 200 else text

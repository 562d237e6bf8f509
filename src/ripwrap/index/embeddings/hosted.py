"""Embedders that use the models of hosted providers, through `pydantic_ai.Embedder`; errors become `EmbeddingError`.

Each request has its own client, in its own asyncio loop. This costs 40 ms; a request takes hundreds of milliseconds.
Retries of the client are turned off: `batching.py` retries, with one rate limit for all requests.
"""

import asyncio
import concurrent.futures
import functools
import ipaddress
import math
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from importlib import import_module
from typing import Any, Literal, TypeVar, cast
from urllib.parse import urlsplit

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.lowlevel import checkpoint_if_cancelled

from ripwrap.binary.cache import offline, redact
from ripwrap.errors import EmbeddingError, EmbedReason, Hint
from ripwrap.index.embeddings.protocol import Destination, Limits

OLLAMA_URL = "http://127.0.0.1:11434"

LIMITS: dict[str, Limits] = {
    "github-copilot": Limits(concurrency=1, delay=4),
    "openai": Limits(concurrency=3, delay=0.5),
    "google": Limits(concurrency=5, delay=0.2),
    "ollama": Limits(concurrency=5, delay=0, timeout=300),  # the first request loads the model
}
"""Limits of requests to each provider; other providers have the default `Limits()`."""

KEYS: dict[str, tuple[str, ...]] = {
    "github-copilot": ("GITHUB_COPILOT_API_KEY", "GITHUB_COPILOT_API_TOKEN", "COPILOT_GITHUB_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "voyageai": ("VOYAGE_API_KEY",),
    "cohere": ("CO_API_KEY",),
}
"""Environment variables that may have the API key of a provider, by provider."""

# Copilot's API is not the API of GitHub Models, which GitHub retired on 2026-07-30
# (https://docs.github.com/en/github-models). Other programs also use Copilot's `/embeddings`
# (https://docs.litellm.ai/docs/providers/github_copilot).
UNDOCUMENTED = "GitHub does not document Copilot's embeddings API for other programs, and may change it."

T = TypeVar("T")

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")


class Hosted:
    """Embedder that uses a model of a hosted provider."""

    def __init__(self, provider: str, model: str, *, limits: Limits | None = None) -> None:
        self.name: str = f"{provider}:{model}"
        self.dimension: int | None = None
        self.limits: Limits = limits or LIMITS.get(provider, Limits())
        self._provider, self._model = provider, model
        self._local = False
        url = self._url(self._make_model()[1])
        self._local = url is not None and is_loopback(url)
        note = UNDOCUMENTED if provider == "github-copilot" else ""
        if url is None:
            note = "Its package may download the model."
        self.destination: Destination = Destination(
            name=self.name, url=url, leaves_machine=url is not None and not self._local, note=note
        )

    async def embed(self, texts: Sequence[str], *, query: bool) -> Sequence[Sequence[float]]:
        """Return a vector for each text, from one request."""
        if self.destination.leaves_machine and offline():
            raise self._make_error("RIPWRAP_OFFLINE is set, so nothing is sent; unset it to send texts", "setup")
        kind: Literal["query", "document"] = "query" if query else "document"
        try:
            found: Sequence[Sequence[float]] = await run_in_asyncio(lambda: self._request(list(texts), kind))
        except EmbeddingError:
            raise
        except Exception as error:  # each provider's package raises errors of other types
            raise self._translate(error) from error
        from ripwrap.index.embeddings import vectors  # late: numpy

        with suppress(ValueError):  # the caller reports that the answer has no vectors
            self.dimension = vectors.to_matrix(found, len(texts)).shape[1]
        return found

    async def _request(self, texts: list[str], kind: Literal["query", "document"]) -> Any:
        asyncio.get_running_loop().set_default_executor(_LookupExecutor())
        async with AsyncExitStack() as stack:
            if self._local:
                provider, model = self._make_model(await stack.enter_async_context(_make_direct_client(self.limits)))
            else:
                provider, model = self._make_model()
            if self._url(model) != self.destination.url:
                changed = "its server's address has changed since the embedder was made; make a new embedder"
                raise self._make_error(changed, "setup")
            if provider is not None:
                await stack.enter_async_context(provider)
            answer = await import_module("pydantic_ai").Embedder(model).embed(texts, input_type=kind)
            return answer.embeddings

    def _make_model(self, client: Any = None) -> tuple[Any, Any]:
        """Make the objects of pydantic-ai for the provider and the model, as the environment configures them now."""
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
            raise self._translate_setup_error(error) from error
        return (made[0] if made else None), model

    @staticmethod
    def _url(model: Any) -> str | None:
        url = getattr(model, "base_url", None)
        return redact(str(url)).rstrip("/") if url else None

    def _translate_setup_error(self, error: Exception) -> EmbeddingError:
        if isinstance(error, ImportError):
            return self._make_error(f"a package is missing: {_install(self._provider, error)}")
        if isinstance(error, ValueError):
            return self._make_error(f"{error}")
        keys = KEYS.get(self._provider)
        if keys and not any(os.environ.get(key) for key in keys):
            return self._make_error(f"it needs a key: set {' or '.join(keys)}")
        return self._make_error(re.split(r" or pass it via|\. To try", str(error))[0])

    def _translate(self, error: Exception) -> EmbeddingError:
        reason, what = _classify_error(error)
        after = getattr(error, "retry_after", None)
        status = getattr(error, "status_code", None)
        return self._make_error(
            what,
            reason,
            status=status if isinstance(status, int) else None,
            retry_after=float(after) if isinstance(after, int | float) and 0 <= after < math.inf else None,
        )

    def _make_error(self, what: str, reason: EmbedReason = "setup", **told: Any) -> EmbeddingError:
        verb = "cannot be used" if reason == "setup" else "failed"
        note = f". {UNDOCUMENTED}" if self._provider == "github-copilot" else ""
        message = remove_secrets(f"{self.name} {verb}: {what}{note}")
        return EmbeddingError(message, provider=self._provider, reason=reason, **told)


async def run_in_asyncio(work: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine in a new asyncio loop, for a caller on asyncio or trio.

    A provider's client belongs to the asyncio loop in which it was first used. The new loop ends with the call. If the
    caller is cancelled, the coroutine is cancelled, and the caller waits until the coroutine has ended.
    """
    cancelled: concurrent.futures.Future[None] = concurrent.futures.Future()
    outcomes: list[concurrent.futures.Future[T]] = []

    def run() -> None:
        with suppress(concurrent.futures.CancelledError), anyio.from_thread.start_blocking_portal("asyncio") as portal:
            outcomes.append(portal.start_task_soon(work))
            cancelled.add_done_callback(lambda _: outcomes[0].cancel())
            # If the future is cancelled, this line raises, and the portal cancels the task and waits for it.
            # `concurrent.futures.wait()` would not work: before anyio 4.16 it never returned after `cancel()`.
            outcomes[0].exception()

    async def cancel_with_caller() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set_result(None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_with_caller)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(run)
        tasks.cancel_scope.cancel()
    await (
        checkpoint_if_cancelled()
    )  # if the thread ends in the moment of a cancellation, the task group does not raise the cancellation
    return outcomes[0].result()


class _LookupExecutor(concurrent.futures.ThreadPoolExecutor):
    """Thread pool for name lookups. A lookup cannot be cancelled, so an event loop that ends does not wait for it."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        super().shutdown(wait=False, cancel_futures=cancel_futures)


def ollama_url() -> str:
    """Return the address of Ollama: `OLLAMA_BASE_URL`, else `OLLAMA_HOST`, else port 11434 on this machine.

    The variables may have any form that the server or the clients of Ollama accept. `0.0.0.0`, or a port without a
    host, means this machine. `/v1` is added if it is missing.
    """
    named = os.environ.get("OLLAMA_BASE_URL") or os.environ.get("OLLAMA_HOST") or OLLAMA_URL
    url = named if "://" in named else f"http://{named}"
    parts = urlsplit(url)
    host = re.sub(r"(^|@)(0\.0\.0\.0|\[::\]|::)?(?=:\d*$|$)", r"\g<1>127.0.0.1", parts.netloc.rstrip(":"))
    if parts.scheme == "http" and not re.search(r":\d+$", host):
        host += ":11434"
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{host}{path if path.endswith('/v1') else path + '/v1'}"


def is_loopback(url: str) -> bool:
    """Return True if the host of an address is this machine: a loopback IP address, `localhost` or `*.localhost`.

    Other names are not looked up.
    """
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def remove_secrets(text: str) -> str:
    """Replace secrets in a text by `***`.

    Two kinds of texts are secrets. The first kind is the value of an environment variable, if the value has at least
    eight characters, and the name ends in KEY, TOKEN, SECRET or PASSWORD. The second kind is the credentials and the
    query of a URL.
    """
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name.upper()) and len(value) >= 8:
            text = text.replace(value, "***")
    return redact(text)


def _install(provider: str, error: ImportError) -> str:
    """Return the command that installs what a provider needs whose package could not be imported."""
    if provider in ("google", "google-cloud"):
        return str(Hint(kind="install", target="ripwrap[google]"))
    command = str(Hint(kind="install", target="ripwrap[hosted]"))
    extra = re.search(r"pydantic-ai-slim\[[\w-]+\]", str(error))
    if extra is not None and extra[0] != "pydantic-ai-slim[openai]":  # the extra `hosted` already installs this one
        command += f' "{extra[0]}"'
    return command


def _make_direct_client(limits: Limits) -> Any:
    """Make an HTTP client for this machine, without a proxy or redirects, so that texts do not leave the machine."""
    client: Callable[..., Any] = import_module("httpx2").AsyncClient
    return client(verify=_tls_context(), trust_env=False, follow_redirects=False, timeout=limits.timeout)


@functools.cache
def _tls_context() -> Any:
    """Return the settings of TLS for this machine; they are cached, because certificates take 25 ms to read."""
    return import_module("httpx2").create_ssl_context(trust_env=False)


def _classify_error(error: Exception) -> tuple[EmbedReason, str]:
    """Return the reason and the message of an `EmbeddingError`, given an error that a provider's package raised."""
    errors = import_module("pydantic_ai.exceptions")
    status = getattr(error, "status_code", None)
    body: Any = getattr(error, "body", None)
    message = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else str(body or "")
    text = _shorten(message or getattr(error, "message", None) or error)
    if isinstance(status, int):
        what = f"the server answered {status}: {text}"
        if isinstance(error, errors.ModelQuotaExceededError):
            return "refused", what
        if status in (408, 425, 429) or status >= 500:
            return "unavailable", what
        return ("rejected" if status in (400, 413, 422) else "refused"), what
    if isinstance(error, errors.ModelConnectionError):
        return "unavailable", f"the connection to the server failed ({text}); check the network and the server"
    if isinstance(error, errors.ModelRateLimitError | errors.ModelServerError | errors.ModelUnavailableError):
        return "unavailable", text
    if isinstance(error, errors.UserError):
        return "setup", text
    return "garbage", f"the server does not answer like an embeddings API ({text}); check its address"


def _shorten(message: object) -> str:
    text = " ".join(
        remove_secrets(str(message)).split()
    )  # remove secrets before the text is cut, because a cut secret would not be recognised
    return f"{text[:200]}…" if len(text) > 200 else text

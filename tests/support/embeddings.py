"""HTTP server with the embedding APIs of OpenAI, Ollama and Google, which misbehaves if a test wants that."""

import base64
import hashlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import anyio.to_thread

from ripwrap.index.embeddings.protocol import Limits

DIMENSION = 8

Behaviour = Callable[[BaseHTTPRequestHandler], None]


def vector(text: str, dimension: int = DIMENSION) -> list[float]:
    """Return this provider's vector of a text."""
    return [byte / 255 - 0.5 for byte in hashlib.sha256(text.encode()).digest()[:dimension]]


@dataclass
class Asked:
    """Received request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float

    @property
    def texts(self) -> list[str]:
        if "requests" in self.body:
            return [part["text"] for one in self.body["requests"] for part in one["content"]["parts"]]
        given = self.body["input"]
        return [given] if isinstance(given, str) else list(given)


@dataclass
class Provider:
    """Provider of embeddings: its behaviour and the requests that it has received.

    Attributes:
        behaviours: Answers to the next requests; later ones are answered normally.
        rejects: Substring of texts that are answered with status 400.
        slowly: Delay before each answer, in seconds.
        dimension: Length of vectors, 32 at most.
        models: Models that it lists.
        asked: Received requests.
        at_once: Largest number of concurrent requests.
        url: Address of the server.
        released: Event that lets `waits()` answer.
        gone: Event that is set when a client closes the connection of `waits()`.
    """

    behaviours: list[Behaviour] = field(default_factory=list)
    rejects: str = ""
    slowly: float = 0.0
    dimension: int = DIMENSION
    models: list[str] = field(default_factory=lambda: ["llama3:latest", "nomic-embed-text:latest"])
    asked: list[Asked] = field(default_factory=list)
    at_once: int = 0
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers.get("Content-Length") or 0)
        raw = request.rfile.read(length)
        if len(raw) < length:  # the client was killed
            return
        asked = Asked(
            request.path,
            {name.lower(): value for name, value in request.headers.items()},
            json.loads(raw or b"{}"),
            time.monotonic(),
        )
        with self._lock:
            self.asked.append(asked)
            behaviour = self.behaviours.pop(0) if self.behaviours else None
            self._now += 1
            self.at_once = max(self.at_once, self._now)
        try:
            if self.slowly:
                self.released.wait(self.slowly)
            (behaviour or self._properly(asked))(request)
        finally:
            with self._lock:
                self._now -= 1

    def _properly(self, asked: Asked) -> Behaviour:
        if asked.path == "/api/tags":
            return say(200, {"models": [{"name": name} for name in self.models]})
        if self.rejects and any(self.rejects in text for text in asked.texts):
            return say(400, {"error": {"message": "this input is too long", "type": "invalid_request_error"}})
        if asked.path.endswith(":batchEmbedContents"):
            return say(200, {"embeddings": [{"values": vector(text, self.dimension)} for text in asked.texts]})
        assert asked.path == "/v1/embeddings", asked.path
        return vectors(
            [vector(text, self.dimension) for text in asked.texts], asked.body.get("encoding_format") == "base64"
        )

    def waits(self, request: BaseHTTPRequestHandler) -> None:
        """Delay the answer until `released` is set, the client hangs up, or ten seconds pass."""
        request.connection.settimeout(0.02)
        for _ in range(500):
            if self.released.is_set():
                return
            try:
                if not request.connection.recv(1):
                    self.gone.set()
                    return
            except TimeoutError:
                continue
            except OSError:
                self.gone.set()
                return


class Plain:
    """Embedder that posts to a provider with the standard library, so that a process with it starts quickly."""

    name = "test:plain"
    dimension: int | None = None
    limits = Limits(concurrency=2, delay=0, batch=2)

    def __init__(self, url: str) -> None:
        self._url = f"{url}/v1/embeddings"

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        """Return the vectors of the provider."""
        return await anyio.to_thread.run_sync(self._post, texts)

    def _post(self, texts: Sequence[str]) -> list[list[float]]:
        request = Request(self._url, json.dumps({"input": texts}).encode())
        with build_opener(ProxyHandler({})).open(request) as answer:
            return [one["embedding"] for one in json.load(answer)["data"]]


def vectors(rows: list[Any], packed: bool = False) -> Behaviour:
    """Answer as OpenAI's API does; `packed` is base64, which OpenAI's client requests and other servers ignore."""
    data: list[Any] = (
        [base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() for row in rows] if packed else rows
    )
    listed = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(data)]
    return say(200, {"object": "list", "data": listed, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}})


def say(status: int, body: object = b"", kind: str = "application/json", **headers: str) -> Behaviour:
    """Answer with a status, a body and headers such as `Retry_After="1"`."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        named = {"Content-Type": kind, "Content-Length": str(len(content)), **headers}
        for name, value in named.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(content)

    return answer


def hang_up(request: BaseHTTPRequestHandler) -> None:
    """Reset the connection before any answer."""
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.close_connection = True
    request.connection.close()


def half_an_answer(request: BaseHTTPRequestHandler) -> None:
    """Close the connection in the middle of an answer."""
    say(200, b'{"object": "list", "da', Content_Length="1000")(request)
    request.close_connection = True


def drips(request: BaseHTTPRequestHandler) -> None:
    """Answer byte by byte while the client reads, up to a limit."""
    request.send_response(200)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", "1000")
    request.end_headers()
    with suppress(OSError):
        for _ in range(1000):
            request.wfile.write(b" ")
            request.wfile.flush()
            if request.server.over.wait(0.02):  # type: ignore[attr-defined]
                break
    request.close_connection = True


@contextmanager
def serving(provider: Provider) -> Iterator[Provider]:
    """Serve on a free port until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            provider.answer(self)

        do_GET = do_CONNECT = do_POST  # noqa: N815 - their names there

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    class Server(ThreadingHTTPServer):
        over = threading.Event()

        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore clients that hang up, as tests do."""

    with Server(("127.0.0.1", 0), Handler) as server:
        provider.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield provider
        finally:
            provider.released.set()
            server.over.set()
            server.shutdown()
            thread.join()

"""Download a file from a mirror (HTTP(S) or `file://`) and verify it, with retries, and one deadline for all tries.

The functions block; async functions call them in a worker thread. httpx reads the settings for proxies and CA bundles
(`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE`, `SSL_CERT_DIR`). An archive is hashed while it is read, and is not used
before its hash is verified. Credentials in an address are sent only to the host in that address, and are never shown.
"""

import hashlib
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import getproxies, url2pathname

import httpx

from ripwrap.binary.cache import redact
from ripwrap.binary.platforms import MAX_ARCHIVE_BYTES
from ripwrap.errors import ChecksumMismatchError, DownloadFailedError, Hint, HintedText

MAX_TRIES = 3
MAX_RETRY_PAUSE_SECONDS = 30.0
"""Maximum pause in seconds before another try, even if a server's Retry-After asks for more."""

SILENCE_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
"""Maximum number of seconds to wait for the next bytes (30), and for a connection (10)."""

ALLOW_MORE_TIME = HintedText("allow more time with ", Hint("timeout"))
"""Advice after a timeout for callers that can set the time limit."""

WATCH_INTERVAL_SECONDS = 0.05
"""Seconds between two checks of the deadline."""

_OTHER_MIRROR = "use another mirror (RIPWRAP_MIRROR, or the mirror that you passed)"
_HEADERS = {"Accept-Encoding": "identity"}
TRANSIENT_STATUSES = {408, 425, 429, 500, 502, 503, 504}
MAX_REDIRECTS = 5
MAX_SIDECAR_BYTES = 64 * 1024
CHUNK_BYTES = 64 * 1024


Trace: TypeAlias = Callable[[str, dict[str, Any]], None]


class _TransientError(DownloadFailedError):
    """Failure after which a retry may succeed."""

    pause: float | None = None


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Downloader of files, with its mirrors and limits."""

    mirrors: Sequence[str]
    deadline: float
    progress: Callable[[int, int | None], None] | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)
    retry_pause: float = 0.5
    advice: HintedText = ALLOW_MORE_TIME

    def check(self, what: str) -> None:
        """Raise an error if the deadline has passed or the call was cancelled."""
        if self.cancelled.is_set():
            raise DownloadFailedError(f"cancelled while waiting for {redact(what)}", url=redact(what))
        if time.monotonic() > self.deadline:
            message = HintedText(f"timed out waiting for {redact(what)}; ", self.advice)
            raise DownloadFailedError(message, url=redact(what))

    def fetch(self, path: str, sha256: str, into: IO[bytes]) -> str:
        """Download the file at `path` into an open file and verify its hash; return its address without credentials."""

        def attempt(url: str) -> str:
            into.seek(0)
            into.truncate()
            digest = hashlib.sha256()
            start = b""
            with closing(self._body(url, MAX_ARCHIVE_BYTES)) as chunks:
                for chunk in chunks:
                    start = start or chunk[:32]
                    digest.update(chunk)
                    into.write(chunk)
            into.flush()
            shown = redact(url)
            if digest.hexdigest() != sha256.lower():
                is_archive = start.startswith((b"\x1f\x8b", b"PK"))
                looks = "" if is_archive else f"; it is not an archive, it starts with {start!r}"
                said = (
                    f"{shown} is not the released file{looks}: expected SHA-256 {sha256}, got {digest.hexdigest()}. "
                    "The file was deleted. A proxy or captive portal may have changed it; try another network or "
                    "RIPWRAP_MIRROR=…"
                )
                raise ChecksumMismatchError(said, url=shown, expected=sha256, actual=digest.hexdigest())
            return shown

        return self._from_any_mirror(path, attempt)

    def published_sha256(self, path: str) -> str:
        """Return the hash that is published beside the file at `path`, in a file of the same name with `.sha256`."""

        def attempt(url: str) -> str:
            return hash_in_sidecar(b"".join(self._body(url, MAX_SIDECAR_BYTES)), url)

        return self._from_any_mirror(f"{path}.sha256", attempt)

    def _from_any_mirror(self, path: str, attempt: Callable[[str], str]) -> str:
        failures: list[DownloadFailedError] = []
        for mirror in self.mirrors:
            try:
                return self._retry(f"{mirror.rstrip('/')}/{path}", attempt)
            except DownloadFailedError as error:
                failures.append(error)
        if not failures:
            raise DownloadFailedError(
                "there is no mirror to download from; pass a mirror, or unset RIPWRAP_MIRROR to use GitHub"
            )
        for earlier in failures[:-1]:
            failures[-1].add_note(f"an earlier mirror failed, too: {earlier}")
        raise failures[-1]

    def _retry(self, url: str, attempt: Callable[[str], str]) -> str:
        mismatches = 0
        for tried in range(1, MAX_TRIES + 1):
            try:
                return attempt(url)
            except ChecksumMismatchError:  # a proxy may have truncated the file: try once more
                mismatches += 1
                if mismatches == 2 or tried == MAX_TRIES:
                    raise
            except _TransientError as error:
                self.check(url)
                pause = error.pause
                if pause is None:
                    pause = self.retry_pause * 2 ** (tried - 1) * random.uniform(1, 1.5)  # noqa: S311 - a jitter
                pause = min(pause, MAX_RETRY_PAUSE_SECONDS)
                if tried == MAX_TRIES or time.monotonic() + pause > self.deadline:
                    raise DownloadFailedError(
                        f"{error} (tried {'once' if tried == 1 else f'{tried} times'}); try again later, or "
                        f"{_OTHER_MIRROR}",
                        url=error.url,
                        status=error.status,
                    ) from error
                self.cancelled.wait(pause)
        raise AssertionError("unreachable: the last try returns or raises")

    def _body(self, url: str, limit: int) -> Generator[bytes]:
        """Yield the bytes of the file at an address, in chunks; close the generator to end the request."""
        shown = redact(url)
        size = 0
        self.check(url)
        # Close the generator explicitly: a traceback would keep it alive, with its connection and its watching thread.
        with closing(self._file(url) if url.startswith("file:") else self._http(url)) as chunks:
            for chunk in chunks:
                size += len(chunk)
                if size > limit:
                    raise DownloadFailedError(
                        f"{shown} has more than {limit} bytes, so it is not a file of a release of rg; check the "
                        "address of the mirror",
                        url=shown,
                    )
                self.check(url)
                yield chunk

    def _file(self, url: str) -> Generator[bytes]:
        path = Path(url2pathname(urlsplit(url).path))
        shown = redact(url)
        try:
            with path.open("rb") as file:
                total, done = path.stat().st_size, 0
                while chunk := file.read(CHUNK_BYTES):
                    done += len(chunk)
                    self._report_progress(done, total)
                    yield chunk
        except OSError as error:
            raise DownloadFailedError(
                f"{shown} cannot be read: {error.strerror}; check the path of the mirror", url=shown
            ) from error

    def _http(self, url: str) -> Generator[bytes]:
        shown = redact(url)
        try:
            with self._cut_at_deadline() as trace, httpx.Client(timeout=SILENCE_TIMEOUT, headers=_HEADERS) as client:
                response = _request(client, url, trace)
                with_length = response.headers.get("Content-Length", "")
                total, done = int(with_length) if re.fullmatch("[0-9]{1,15}", with_length) else None, 0
                for chunk in response.iter_raw():
                    done += len(chunk)
                    self._report_progress(done, total)
                    yield chunk
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise DownloadFailedError(
                f"{shown} is not a valid address to download from: {error}; correct the address of the mirror",
                url=shown,
            ) from error
        except httpx.TransportError as error:
            raise _transport_error(error, shown) from error
        except (ImportError, ValueError, OSError) as error:
            raise DownloadFailedError(
                f"{shown} cannot be requested: {error}. Check the address and the proxy and certificate settings "
                "(HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE, …).",
                url=shown,
            ) from error

    @contextmanager
    def _cut_at_deadline(self) -> Generator[Trace]:
        """Shut down every connection of a request at the deadline, or when the call is cancelled.

        This is needed because httpx has no time limit for a whole request.

        Yield a function for the `trace` extension of httpcore (https://www.encode.io/httpcore/extensions/). httpcore
        calls the function with each connection.
        """
        sockets: list[socket.socket] = []
        done = threading.Event()

        def trace(event: str, info: dict[str, Any]) -> None:
            if event.endswith(("connect_tcp.complete", "start_tls.complete")):
                sockets.append(info["return_value"].get_extra_info("socket"))

        def watch() -> None:
            while not done.wait(WATCH_INTERVAL_SECONDS):
                if self.cancelled.is_set() or time.monotonic() > self.deadline:
                    for connected in sockets:
                        with suppress(OSError):
                            connected.shutdown(socket.SHUT_RDWR)

        watcher = threading.Thread(target=watch, name="ripwrap-download", daemon=True)
        watcher.start()
        try:
            yield trace
        finally:
            done.set()
            watcher.join()

    def _report_progress(self, done: int, total: int | None) -> None:
        if self.progress is not None:
            self.progress(done, total)


def hash_in_sidecar(content: bytes, url: str) -> str:
    """Return the hash in a `.sha256` file, which a Unix tool or CertUtil of Windows has written.

    CertUtil ends lines with CRLF, and its old versions write spaces into the hash.
    """
    text = content.decode("utf-8", "replace")
    found: set[str] = set(re.findall(r"\b[0-9a-fA-F]{64}\b", text)) or {
        hashed.replace(" ", "") for hashed in re.findall(r"^(?:[0-9a-fA-F]{2} ){31}[0-9a-fA-F]{2}", text, re.MULTILINE)
    }
    if len(found) != 1:
        shown = redact(url)
        said = f"{shown} must have one SHA-256, got {len(found)}: {text[:100]!r}; check the mirror, or pass "
        raise DownloadFailedError(HintedText(said, Hint("sha256")), url=shown)
    return found.pop().lower()


def _request(client: httpx.Client, url: str, trace: Trace) -> httpx.Response:
    """Return the response after all redirects; its body is not read yet."""
    address = httpx.URL(url)
    login = httpx.BasicAuth(address.username, address.password) if address.userinfo else None
    request: httpx.Request | None = client.build_request("GET", address)
    for _ in range(MAX_REDIRECTS + 1):
        assert request is not None  # noqa: S101 - for the type checkers; a redirect has a next request
        request.extensions["trace"] = trace
        request.url = request.url.copy_with(userinfo=b"")  # httpx logs addresses
        same_host = (request.url.host, request.url.port) == (address.host, address.port)
        response = client.send(request, stream=True, auth=login if same_host else None)
        if not response.has_redirect_location:
            return _check_status(response)
        secure, request = request.url.scheme == "https", response.next_request
        response.close()
        if secure and request is not None and request.url.scheme != "https":
            shown = redact(str(request.url))
            raise DownloadFailedError(
                f"{redact(url)} redirects from https to {shown}, which is refused; {_OTHER_MIRROR}", url=shown
            )
    raise DownloadFailedError(
        f"{redact(url)} redirects more than {MAX_REDIRECTS} times; {_OTHER_MIRROR}", url=redact(url)
    )


def _check_status(response: httpx.Response) -> httpx.Response:
    status = response.status_code
    if status == 200:
        return response
    url = redact(str(response.url))
    response.close()
    hint = {
        403: f"; a proxy or firewall may forbid it: {_OTHER_MIRROR}",
        404: "; the server does not have this file: check the version and the address of the mirror",
    }.get(status, "")
    message = f"{url} answered {status} {response.reason_phrase}{hint}"
    if status not in TRANSIENT_STATUSES:
        raise DownloadFailedError(message, url=url, status=status)
    error = _TransientError(message, url=url, status=status)
    after = response.headers.get("Retry-After", "")
    error.pause = float(after) if re.fullmatch("[0-9]{1,6}", after) else None
    raise error


def _transport_error(error: httpx.TransportError, url: str) -> DownloadFailedError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return DownloadFailedError(
                f"{url} has a certificate that is not trusted: {cause.verify_message}. If a proxy inspects TLS, set "
                "SSL_CERT_FILE to its CA bundle (Python 3.13 also refuses CAs without a key identifier), or "
                "RIPWRAP_MIRROR to a mirror",
                url=url,
            )
        cause = cause.__cause__ or cause.__context__
    what = redact(str(error)) or type(error).__name__
    if (
        isinstance(error, (httpx.ProxyError, httpx.ConnectError))
        and {urlsplit(url).scheme, "all"} & getproxies().keys()
    ):
        what += "; check the address and password of the proxy in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY"
    return _TransientError(f"{url} could not be fetched: {what}", url=url)

"""A verified file out of a mirror: HTTP(S) or `file://`, one deadline, retries of what is transient, hashed on the way.

Blocking; the asynchronous side runs it in a worker thread. Proxies and CA bundles are httpx's (`HTTPS_PROXY`,
`NO_PROXY`, `SSL_CERT_FILE`, `SSL_CERT_DIR`). Nothing that came is looked into before its hash is right. Credentials
in an address are sent to that host alone, and never shown.
"""

import hashlib
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx

from ripwrap.binary.releases import MAX_ARCHIVE
from ripwrap.binary.settings import redacted
from ripwrap.errors import ChecksumMismatchError, DownloadFailedError

_TRIES = 3
_PAUSE = 0.5  # Seconds before the second try; doubled before each further one.
_MAX_PAUSE = 30.0  # However long a server says Retry-After.
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)  # Seconds without any answer.
_HEADERS = {"Accept-Encoding": "identity"}
_WATCH = 0.05  # Seconds between looks at the clock.
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
_MAX_REDIRECTS = 5
_MAX_SIDECAR = 64 * 1024
_CHUNK = 64 * 1024


Trace: TypeAlias = Callable[[str, dict[str, Any]], None]


class _TransientError(DownloadFailedError):
    """What may be gone at the next try."""

    pause: float | None = None


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Where to fetch from, until when, and who is told.

    Attributes:
        mirrors: Base addresses, tried in order; each holds `{version}/{asset}`, as GitHub's releases do.
        deadline: When to give up, on the clock of `time.monotonic()`.
        progress: Told of every chunk.
        cancelled: Set by another thread when nobody waits any more.
    """

    mirrors: Sequence[str]
    deadline: float
    progress: Callable[[int, int | None], None] | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    def check(self, what: str) -> None:
        """Go on only if there is time, and somebody who waits.

        Raises:
            DownloadFailedError: There is none.
        """
        if self.cancelled.is_set() or time.monotonic() > self.deadline:
            why = "nobody waits for it any more" if self.cancelled.is_set() else "allow it more seconds"
            raise DownloadFailedError(f"{redacted(what)} did not come in time; {why}", url=redacted(what))

    def fetch(self, path: str, sha256: str, into: IO[bytes]) -> None:
        """Fill an open file with the one that has this hash.

        Raises:
            ChecksumMismatchError: What came, twice, has another.
            DownloadFailedError: Nothing came, from the last mirror at least.
        """

        def attempt(url: str) -> None:
            into.seek(0)
            into.truncate()
            digest = hashlib.sha256()
            start = b""
            for chunk in self._body(url, MAX_ARCHIVE):
                start = start or chunk[:32]
                digest.update(chunk)
                into.write(chunk)
            into.flush()
            if digest.hexdigest() != sha256.lower():
                raise _mismatch(url, sha256, digest.hexdigest(), start)

        self._from_any_mirror(path, attempt)

    def published_sha256(self, path: str) -> str:
        """The hash that upstream publishes beside a file; only for what has no pin.

        Raises:
            DownloadFailedError: It is not there, or not exactly one hash is in it.
        """
        found: list[str] = []

        def attempt(url: str) -> None:
            found.append(hash_in_sidecar(b"".join(self._body(url, _MAX_SIDECAR)), url))

        self._from_any_mirror(f"{path}.sha256", attempt)
        return found[-1]

    def _from_any_mirror(self, path: str, attempt: Callable[[str], None]) -> None:
        failures: list[DownloadFailedError] = []
        for mirror in self.mirrors:
            try:
                return self._retrying(f"{mirror.rstrip('/')}/{path}", attempt)
            except DownloadFailedError as error:
                failures.append(error)
        if not failures:
            raise DownloadFailedError("no mirror is named; unset RIPWRAP_MIRROR to download from GitHub")
        for earlier in failures[:-1]:
            failures[-1].add_note(f"before that: {earlier}")
        raise failures[-1]

    def _retrying(self, url: str, attempt: Callable[[str], None]) -> None:
        mismatches = 0
        for tried in range(1, _TRIES + 1):
            try:
                return attempt(url)
            except ChecksumMismatchError:  # Proxies truncate; once is enough to find out.
                mismatches += 1
                if mismatches == 2 or tried == _TRIES:
                    raise
            except _TransientError as error:
                self.check(url)
                pause = error.pause or _PAUSE * 2 ** (tried - 1) * random.uniform(1, 1.5)  # noqa: S311 - a jitter
                pause = min(pause, _MAX_PAUSE)
                if tried == _TRIES or time.monotonic() + pause > self.deadline:
                    raise DownloadFailedError(
                        f"{error} (tried {tried} times)", url=error.url, status=error.status
                    ) from error
                self.cancelled.wait(pause)
        raise AssertionError("unreachable: the last try returns or raises")

    def _body(self, url: str, limit: int) -> Iterator[bytes]:
        """The bytes at an address, of which there may be at most `limit`, before the deadline."""
        shown = redacted(url)
        chunks = self._file(url) if url.startswith("file:") else self._http(url)
        size = 0
        for chunk in chunks:
            size += len(chunk)
            if size > limit:
                raise DownloadFailedError(f"{shown} has more than {limit} bytes, which no release has", url=shown)
            self.check(url)
            yield chunk

    def _file(self, url: str) -> Iterator[bytes]:
        path = Path(url2pathname(urlsplit(url).path))
        shown = redacted(url)
        try:
            with path.open("rb") as file:
                total, done = path.stat().st_size, 0
                while chunk := file.read(_CHUNK):
                    done += len(chunk)
                    self._tell(done, total)
                    yield chunk
        except OSError as error:
            raise DownloadFailedError(f"{shown} cannot be read: {error.strerror}", url=shown) from error

    def _http(self, url: str) -> Iterator[bytes]:
        shown = redacted(url)
        try:
            with self._watching() as trace, httpx.Client(timeout=_TIMEOUT, headers=_HEADERS) as client:
                response = _answer(client, url, trace)
                with_length = response.headers.get("Content-Length", "")
                total, done = int(with_length) if re.fullmatch("[0-9]{1,15}", with_length) else None, 0
                for chunk in response.iter_raw():
                    done += len(chunk)
                    self._tell(done, total)
                    yield chunk
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise DownloadFailedError(f"{shown} is no address to download from: {error}", url=shown) from error
        except httpx.TransportError as error:
            raise _unreachable(error, shown) from error
        except (ImportError, ValueError, OSError) as error:
            raise DownloadFailedError(
                f"{shown} cannot be asked: {error}. Look at the address and at the proxy and certificate settings "
                "(HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE, …).",
                url=shown,
            ) from error

    @contextmanager
    def _watching(self) -> Generator[Trace]:
        """Cut every connection of a request when the time is over: httpx bounds each read, and not their sum.

        What is yielded is httpcore's `trace` extension, which learns of each connection.
        """
        sockets: list[socket.socket] = []
        done = threading.Event()

        def trace(event: str, info: dict[str, Any]) -> None:
            if event.endswith(("connect_tcp.complete", "start_tls.complete")):
                sockets.append(info["return_value"].get_extra_info("socket"))

        def watch() -> None:
            while not done.wait(_WATCH):
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

    def _tell(self, done: int, total: int | None) -> None:
        if self.progress is not None:
            self.progress(done, total)


def hash_in_sidecar(content: bytes, url: str) -> str:
    """The SHA-256 in a `.sha256` file: of Unix, of CertUtil (with CRLF, once with spaces in the hash), or with a path.

    Raises:
        DownloadFailedError: There is none, or more than one.
    """
    text = content.decode("utf-8", "replace")
    found: set[str] = set(re.findall(r"\b[0-9a-fA-F]{64}\b", text)) or {
        hashed.replace(" ", "") for hashed in re.findall(r"^(?:[0-9a-fA-F]{2} ){31}[0-9a-fA-F]{2}", text, re.MULTILINE)
    }
    if len(found) != 1:
        shown = redacted(url)
        raise DownloadFailedError(f"{shown} should name one SHA-256 and names {len(found)}: {text[:100]!r}", url=shown)
    return found.pop().lower()


def _answer(client: httpx.Client, url: str, trace: Trace) -> httpx.Response:
    """The answer behind all redirects, its body unread."""
    address = httpx.URL(url)
    login = httpx.BasicAuth(address.username, address.password) if address.userinfo else None
    request: httpx.Request | None = client.build_request("GET", address)
    for _ in range(_MAX_REDIRECTS + 1):
        assert request is not None  # noqa: S101 - for the type checkers; a redirect has a next request
        request.extensions["trace"] = trace
        request.url = request.url.copy_with(userinfo=b"")  # because httpx logs addresses
        same_host = (request.url.host, request.url.port) == (address.host, address.port)
        response = client.send(request, stream=True, auth=login if same_host else None)
        if not response.has_redirect_location:
            return _checked(response)
        secure, request = request.url.scheme == "https", response.next_request
        response.close()
        if secure and request is not None and request.url.scheme != "https":
            shown = redacted(str(request.url))
            raise DownloadFailedError(f"{redacted(url)} redirects from https to {shown}, which is refused", url=shown)
    raise DownloadFailedError(f"{redacted(url)} redirects more than {_MAX_REDIRECTS} times", url=redacted(url))


def _checked(response: httpx.Response) -> httpx.Response:
    status = response.status_code
    if status == 200:
        return response
    url = redacted(str(response.url))
    response.close()
    hint = {403: "; a proxy or firewall may forbid it", 404: "; there is no such release there"}.get(status, "")
    message = f"{url} answered {status} {response.reason_phrase}{hint}"
    if status not in _TRANSIENT:
        raise DownloadFailedError(message, url=url, status=status)
    error = _TransientError(message, url=url, status=status)
    after = response.headers.get("Retry-After", "")
    error.pause = float(after) if re.fullmatch("[0-9]{1,6}", after) else None
    raise error


def _unreachable(error: httpx.TransportError, url: str) -> DownloadFailedError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return DownloadFailedError(
                f"{url} has a certificate that is not trusted: {cause.verify_message}. If a proxy inspects TLS, name "
                "its CA bundle, SSL_CERT_FILE=… (Python 3.13 also refuses CAs without a key identifier), or a mirror, "
                "RIPWRAP_MIRROR=…",
                url=url,
            )
        cause = cause.__cause__ or cause.__context__
    what = redacted(str(error)) or type(error).__name__
    return _TransientError(f"{url} could not be fetched: {what}", url=url)


def _mismatch(url: str, expected: str, actual: str, start: bytes) -> ChecksumMismatchError:
    shown = redacted(url)
    looks = "" if start.startswith((b"\x1f\x8b", b"PK")) else f"; it is no archive, but starts with {start!r}"
    return ChecksumMismatchError(
        f"{shown} is not what was released{looks}: expected SHA-256 {expected}, got {actual}. It was thrown away. A "
        "proxy or captive portal may have changed it; try another network or RIPWRAP_MIRROR=…",
        url=shown,
        expected=expected,
        actual=actual,
    )

"""Downloads from real HTTP and TLS servers: a verified file or one clear error."""

import io
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import trustme

from ripwrap import ChecksumMismatchError, DownloadFailedError
from ripwrap.binary import cache
from ripwrap.binary.cache import redact
from ripwrap.binary.download import Fetcher, hash_in_sidecar
from ripwrap.binary.platforms import MAX_ARCHIVE_BYTES
from support.mirror import Mirror, downloading, say, serving, sha256, write

CONTENT = b"\x1f\x8b" + bytes(range(256)) * 2000
PATH = "1.0/asset.tar.gz"


pytestmark = pytest.mark.usefixtures("no_rg")


@pytest.fixture
def server() -> Iterator[Mirror]:
    with serving(Mirror()) as mirror:
        mirror.put("1.0", "asset.tar.gz", CONTENT)
        yield mirror


def fetched(
    *mirrors: str,
    expected: str = sha256(CONTENT),
    seconds: float = 30,
    progress: Callable[..., None] | None = None,
    cancelled: threading.Event | None = None,
) -> bytes:
    into = io.BytesIO(b"left over from before" * 100_000)
    fetcher = Fetcher(mirrors, time.monotonic() + seconds, progress, cancelled or threading.Event(), retry_pause=0.001)
    fetcher.fetch(PATH, expected, into)
    return into.getvalue()


def assert_refused(*mirrors: str, says: str, **options: object) -> DownloadFailedError:
    with pytest.raises(DownloadFailedError, match=says) as caught:
        fetched(*mirrors, **options)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.slow
def test_file_is_fetched_over_http_and_from_a_folder(server: Mirror, tmp_path: Path) -> None:
    assert fetched(server.url) == CONTENT
    assert fetched(server.url + "/") == CONTENT
    write(tmp_path, "1.0", "asset.tar.gz", CONTENT)
    assert fetched(tmp_path.as_uri()) == CONTENT


def test_progress_reports_received_and_total_bytes(server: Mirror) -> None:
    told: list[tuple[int, int | None]] = []
    fetched(server.url, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize("status", [403, 404, 410])
def test_final_http_status_is_not_retried(server: Mirror, status: int) -> None:
    server.next(say(status))
    error = assert_refused(server.url, says=f"answered {status}")
    assert (error.status, error.url, len(server.asked)) == (status, f"{server.url}/{PATH}", 1)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_transient_http_status_is_tried_three_times(server: Mirror, status: int) -> None:
    server.next(say(status), say(status))
    assert fetched(server.url) == CONTENT
    server.next(say(status), say(status), say(status))
    assert assert_refused(server.url, says=f"answered {status} .*tried 3 times").status == status
    assert len(server.asked) == 6


def test_retry_after_of_zero_is_honoured(server: Mirror) -> None:
    server.next(say(429, Retry_After="0"))
    into = io.BytesIO()
    Fetcher([server.url], time.monotonic() + 30, retry_pause=60).fetch(PATH, sha256(CONTENT), into)
    assert into.getvalue() == CONTENT


def test_retry_after_is_honoured_and_bounded_by_the_deadline(server: Mirror) -> None:
    slept: list[float | None] = []

    class Recording(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            slept.append(timeout)
            return False

    never = Recording()
    server.next(say(429, Retry_After="7"), say(503, Retry_After="999"))
    assert fetched(server.url, seconds=60, cancelled=never) == CONTENT
    assert slept == [7, 30]
    server.next(say(429, Retry_After="7"))
    assert_refused(server.url, says="429", seconds=5, cancelled=never)
    assert slept == [7, 30]


def cut(request: BaseHTTPRequestHandler) -> None:
    """Send half of the body, then close the connection."""
    request.send_response(200)
    request.send_header("Content-Length", str(len(CONTENT)))
    request.end_headers()
    request.wfile.write(CONTENT[: len(CONTENT) // 2])
    request.wfile.flush()
    request.connection.shutdown(socket.SHUT_RDWR)


def reset(request: BaseHTTPRequestHandler) -> None:
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    request.connection.close()


@pytest.mark.parametrize("behaviour", [cut, reset])
def test_broken_connection_is_retried(server: Mirror, behaviour: Callable[[BaseHTTPRequestHandler], None]) -> None:
    server.next(behaviour)
    assert fetched(server.url) == CONTENT
    server.next(behaviour, behaviour, behaviour)
    assert assert_refused(server.url, says="could not be fetched: .*tried 3 times").status is None


def test_content_length_beyond_the_body_raises(server: Mirror) -> None:
    lying = say(200, CONTENT, Content_Length=str(len(CONTENT) + 1), Connection="close")
    server.next(lying, lying, lying)
    assert_refused(server.url, says="could not be fetched")


def test_truncated_body_raises_checksum_mismatch(server: Mirror) -> None:
    lying = say(200, CONTENT[:-1])
    server.next(lying, lying)
    assert isinstance(assert_refused(server.url, says="not the released file"), ChecksumMismatchError)


def test_slow_body_ends_at_the_deadline(server: Mirror) -> None:
    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(CONTENT)))
        request.end_headers()
        try:
            for start in range(len(CONTENT)):
                request.wfile.write(CONTENT[start : start + 1])
                request.wfile.flush()
                time.sleep(0.01)
        except OSError:
            pass  # the client has hung up

    server.next(drip)
    assert_refused(server.url, says="timed out waiting for", seconds=0.3)
    assert len(server.asked) == 1


def test_silent_server_is_abandoned_at_the_deadline(server: Mirror) -> None:
    server.next(lambda _: time.sleep(1))
    assert_refused(server.url, says="timed out waiting for", seconds=0.3)


def test_checksum_mismatch_is_retried_once_and_names_both_hashes(server: Mirror) -> None:
    error = assert_refused(server.url, says="not the released file", expected="0" * 64)
    assert isinstance(error, ChecksumMismatchError)
    assert (error.expected, error.actual, len(server.asked)) == ("0" * 64, sha256(CONTENT), 2)
    for words in (error.expected, error.actual, server.url, "RIPWRAP_MIRROR"):
        assert words in str(error)


@pytest.mark.parametrize("where", ["headers", "body", "redirects"])
def test_deadline_covers_headers_body_and_redirects(server: Mirror, where: str) -> None:
    def slow(request: BaseHTTPRequestHandler) -> None:
        with suppress(OSError):  # the client hangs up
            if where == "redirects":
                time.sleep(0.15)
                redirect("/again")(request)
                return
            head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"
            if where == "body":
                request.wfile.write(head + b"x")
                time.sleep(3)
            for byte in head * 10:
                request.wfile.write(bytes([byte]))
                time.sleep(0.02)

    server.next(*[slow] * 6)
    assert_refused(server.url, says="timed out waiting for", seconds=0.4)
    assert len(server.asked) < 6  # each redirect takes 0.15 seconds


@pytest.mark.parametrize(
    ("variable", "value"),
    [("ALL_PROXY", "socks5://127.0.0.1:1"), ("HTTP_PROXY", "foo://x"), ("SSL_CERT_FILE", "/nowhere/ca.pem")],
)
def test_invalid_proxy_or_certificate_variable_is_named(
    server: Mirror, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    if variable == "SSL_CERT_FILE":
        assert_refused(
            server.url.replace("http:", "https:"), says="cannot be requested: .*SSL_CERT_FILE|could not be fetched"
        )
    else:
        assert_refused(server.url, says="cannot be requested: .*ALL_PROXY")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:p@ss@h/x", "http://***@h/x"),
        ("http://user:p/ss@h/x", "http://***@h/x"),
        ("at https://h/x?sig=SECRET end", "at https://h/x?*** end"),
        ("https://h:1/x", "https://h:1/x"),
    ],
)
def test_secrets_in_urls_are_redacted(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_comma_in_a_password_does_not_split_a_mirror_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIPWRAP_OFFLINE")
    monkeypatch.setenv("RIPWRAP_MIRROR", "http://u:a,b@h/x, file:///m ,")
    assert cache.mirrors() == ["http://u:a,b@h/x", "file:///m"]


def test_body_that_is_damaged_once_is_downloaded_again(server: Mirror) -> None:
    server.next(say(200, b"garbled"))
    assert fetched(server.url) == CONTENT


def test_captive_portal_is_recognised(server: Mirror) -> None:
    portal = say(200, b"<!DOCTYPE html><html>Please log in", Content_Type="text/html")
    server.next(portal, portal)
    assert_refused(server.url, says=r"not an archive, it starts with b'<!DOCTYPE html>.*captive portal")


def test_upper_case_hash_is_accepted(server: Mirror) -> None:
    assert fetched(server.url, expected=sha256(CONTENT).upper()) == CONTENT


@pytest.mark.slow
def test_too_large_body_is_rejected_without_a_retry(server: Mirror) -> None:
    """The thread that watches the request ends, even if the traceback of the error is kept."""
    server.put("1.0", "asset.tar.gz", bytes(MAX_ARCHIVE_BYTES + 1))
    error = assert_refused(server.url, says=f"more than {MAX_ARCHIVE_BYTES} bytes")
    assert (len(server.asked), downloading(), error.__traceback__ is not None) == (1, [], True)


def test_download_to_a_full_disk_ends_its_request(server: Mirror) -> None:
    """The thread that watches the request ends, even if the traceback of the error is kept."""

    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as caught:
        Fetcher([server.url], time.monotonic() + 30).fetch(PATH, sha256(CONTENT), Full())
    assert (downloading(), caught.tb is not None) == ([], True)


def test_next_mirror_is_tried_after_a_failure(server: Mirror, tmp_path: Path) -> None:
    assert fetched((tmp_path / "none").as_uri(), f"{server.url}/none", server.url) == CONTENT
    assert_refused(server.url + "/none", (tmp_path / "none").as_uri(), says="cannot be read: No such file")
    assert_refused(says="no mirror to download from")


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/x", "nonsense", "http://", "http://127.0.0.1:99999/x", "://"])
def test_invalid_mirror_url_raises_a_clear_error(address: str) -> None:
    assert assert_refused(address, says="to download from|could not be fetched").status is None


def redirect(to: str) -> Callable[[BaseHTTPRequestHandler], None]:
    return say(302, b"", Location=to)


def test_at_most_five_redirects_are_followed(server: Mirror) -> None:
    server.next(redirect("/1.0/asset.tar.gz"), redirect(f"{server.url}/{PATH}"))
    assert fetched(f"{server.url}/moved") == CONTENT
    server.next(*[redirect("/again")] * 6)
    assert_refused(server.url, says="redirects more than 5 times")


def trusting(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))


@pytest.mark.slow
def test_tls_trusts_the_authority_of_ssl_cert_file(
    tls_mirror: Mirror, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tls_mirror.put("1.0", "asset.tar.gz", CONTENT)
    error = assert_refused(tls_mirror.url, says="not trusted: .*SSL_CERT_FILE")
    assert (error.status, tls_mirror.asked) == (None, [])
    trusting(authority, monkeypatch, tmp_path)
    assert fetched(tls_mirror.url) == CONTENT


@pytest.mark.slow
def test_redirect_from_https_to_http_is_rejected(
    tls_mirror: Mirror, server: Mirror, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trusting(authority, monkeypatch, tmp_path)
    tls_mirror.next(redirect(f"{server.url}/{PATH}"))
    assert_refused(tls_mirror.url, says="redirects from https to http")
    assert server.asked == []


def test_proxy_of_the_environment_is_used(server: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    server.files["http://mirror.invalid/1.0/asset.tar.gz"] = CONTENT
    monkeypatch.setenv("HTTP_PROXY", server.url)
    assert fetched("http://mirror.invalid") == CONTENT


def test_refused_proxy_is_named(server: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert_refused("http://mirror.invalid", says="check the address and password of the proxy in HTTPS_PROXY")


def test_credentials_are_sent_only_to_their_host_and_never_shown(
    server: Mirror, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(Mirror()) as other, caplog.at_level(logging.DEBUG):
        other.put("1.0", "asset.tar.gz", CONTENT)
        secret = server.url.replace("://", "://user:s3cret@")
        server.next(redirect(f"{other.url}/{PATH}"))
        assert fetched(secret) == CONTENT
        assert server.headers[0]["Authorization"].startswith("Basic ")
        assert "Authorization" not in other.headers[0]
        server.next(say(404))
        error = assert_refused(secret, says="404")
    for text in (str(error), error.url, caplog.text, redact(secret)):
        assert "s3cret" not in text
    assert redact(secret) == server.url.replace("://", "://***@")


HASH = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "content",
    [
        f"{HASH}  ripgrep-15.2.0-x.tar.gz\n",
        f"SHA256 hash of ripgrep.zip:\r\n{HASH}\r\nCertUtil: -hashfile command completed successfully.\r\n",
        f"{HASH}  deployment/m2/ripgrep-14.1.1-aarch64-apple-darwin.tar.gz",
        f"SHA256 hash of x:\r\n{' '.join(HASH[at : at + 2] for at in range(0, 64, 2))}\r\nCertUtil: done.\r\n",
        HASH.upper(),
    ],
)
def test_hash_is_read_from_every_sidecar_format(content: str) -> None:
    assert hash_in_sidecar(content.encode(), "url") == HASH


@pytest.mark.parametrize("content", ["", "<html>", HASH[:-1], f"{HASH} a\n{HASH[::-1]} b\n", "\udcff"])
def test_sidecar_without_exactly_one_hash_is_rejected(content: str) -> None:
    with pytest.raises(DownloadFailedError, match="must have one SHA-256"):
        hash_in_sidecar(content.encode("utf-8", "surrogateescape"), "http://u:p@h/x.sha256")


def test_published_hash_is_fetched(server: Mirror) -> None:
    server.put("1.0", "asset.tar.gz.sha256", f"{HASH}  asset.tar.gz".encode())
    assert Fetcher([server.url], time.monotonic() + 10).published_sha256(PATH) == HASH
    with pytest.raises(DownloadFailedError, match="404"):
        Fetcher([server.url], time.monotonic() + 10).published_sha256("1.0/other")

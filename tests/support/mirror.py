"""A local mirror of rg's releases: an HTTP(S) server, and archives like those of upstream."""

import hashlib
import io
import ssl
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ripwrap.binary import platforms

VERSION = "15.2.0"
TARGET = platforms.targets(platforms.current(), VERSION)[0]
FOLDER = platforms.folder_name(VERSION, TARGET)
ASSET = platforms.asset_name(VERSION, TARGET)

Behaviour = Callable[[BaseHTTPRequestHandler], None]


def targz(folder: str, rg: bytes) -> bytes:
    """Return an archive as `tar czf` in rg's release workflow makes it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=1) as tar:
        for name, content, mode in (("", None, 0o755), ("/README.md", b"rg", 0o644), ("/rg", rg, 0o755)):
            info = tarfile.TarInfo(folder + name)
            info.mode, info.type = mode, tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            info.size = len(content or b"")
            tar.addfile(info, io.BytesIO(content or b""))
    return made.getvalue()


def zipped(folder: str, rg: bytes) -> bytes:
    """Return an archive as `7z a` makes it for Windows, with fixed timestamps."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in (("README.md", b"rg"), ("rg.exe", rg)):
            member = zipfile.ZipInfo(f"{folder}/{name}")
            member.external_attr = 0o600 << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def packed(folder: str, rg: bytes) -> bytes:
    """Return an archive as upstream makes it for this machine."""
    return (zipped if ASSET.endswith(".zip") else targz)(folder, rg)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Mirror:
    """Mirror: its files and behaviours, and the requests that it has received."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.behaviours: list[Behaviour] = []
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""

    def put(self, version: str, asset: str, content: bytes) -> str:
        """Serve an asset and return its hash."""
        self.files[f"/{version}/{asset}"] = content
        return sha256(content)

    def next(self, *behaviours: Behaviour) -> None:
        """Set the answers to the next requests; later ones are answered normally."""
        self.behaviours += behaviours

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        self.headers.append(dict(request.headers))
        if self.behaviours:
            self.behaviours.pop(0)(request)
        elif request.path in self.files:
            say(200, self.files[request.path])(request)
        else:
            say(404)(request)


def say(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return answer


@contextmanager
def serving(mirror: Mirror, tls: ssl.SSLContext | None = None) -> Iterator[Mirror]:
    """Serve a mirror on a free port until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            mirror.answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore clients that hang up, as tests do."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        mirror.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield mirror
        finally:
            server.shutdown()
            thread.join()


def downloading() -> list[threading.Thread]:
    """Return the threads of this process that watch downloads."""
    return [thread for thread in threading.enumerate() if thread.name == "ripwrap-download"]


def write(folder: Path, version: str, asset: str, content: bytes) -> str:
    """Write an asset to its place in a `file://` mirror, and return its hash."""
    path = folder / version / asset
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return sha256(content)

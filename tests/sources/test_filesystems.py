"""`sources.fs()`: objects are searched through fsspec, and an object that cannot be read ends nothing."""

import builtins
import errno
import gzip
import importlib
import io
import os
import socket
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import RipwrapError, SearchError, sources, sync
from ripwrap.sources import filesystems

fsspec: Any = pytest.importorskip("fsspec")

pytestmark = pytest.mark.extra

FILES = {"a.txt": b"one\nneedle\n", "b.txt": b"nothing\n", "sub/c.py": b"needle c\n"}


@pytest.fixture
def store() -> Iterator[Callable[[dict[str, bytes]], str]]:
    """Return a function that writes objects into memory and returns the URL above them."""
    memory = fsspec.filesystem("memory")

    def write(files: dict[str, bytes]) -> str:
        memory.pipe({f"/store/{name}": content for name, content in files.items()})
        return "memory://store"

    yield write
    memory.rm("/store", recursive=True)


def found(url: Any, pattern: str = "needle", **options: Any) -> list[tuple[str | None, int | None]]:
    return [(match.path, match.line_number) for match in sync.search_in(pattern, sources.fs(url, **options))]


def test_objects_are_searched_in_order_and_named_by_their_urls(store: Callable[..., str]) -> None:
    url = store(FILES)
    source = sources.fs(f"{url}/**")
    result = sync.grep_in("needle", source, context=0)
    assert [file.path for file in result.files] == ["memory:///store/a.txt", "memory:///store/sub/c.py"]
    assert source.bytes_fetched == sum(map(len, FILES.values()))
    assert result.errors == ()
    assert found([f"{url}/sub/*", f"{url}/a.txt"]) == [("memory:///store/sub/c.py", 1), ("memory:///store/a.txt", 2)]


@pytest.mark.anyio
async def test_async_search_reads_objects(store: Callable[..., str]) -> None:
    source = sources.fs(f"{store(FILES)}/**")
    matches = [match.path async for match in ripwrap.search_in("needle", source, type="py")]
    assert matches == ["memory:///store/sub/c.py"]
    assert source.bytes_fetched == len(FILES["sub/c.py"])  # only what the type selects is fetched
    assert (await ripwrap.grep_in("needle", source)).total_matches == 2  # a source can be searched again


def test_search_equals_a_search_of_the_same_files(tmp_path: Path) -> None:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    expected = [
        (str(tmp_path / (match.path or "")), match.lines) for match in sync.search("e", cwd=tmp_path, sort="path")
    ]
    for url in (f"{tmp_path}/**", f"file://{tmp_path}/**"):
        matches = list(sync.search_in("e", sources.fs(url, workers=2)))
        assert [((match.path or "").removeprefix("file://"), match.lines) for match in matches] == expected


def test_members_of_a_zip_have_chained_urls(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    url = f"file://{tmp_path}/x.zip"
    assert found(f"zip://**::{url}") == [(f"zip://a.txt::{url}", 2), (f"zip://sub/c.py::{url}", 1)]
    assert found(url, inside="zip") == [(f"{url}!/a.txt", 2), (f"{url}!/sub/c.py", 1)]


def test_compressed_objects_are_read_if_their_format_is_asked_for(
    store: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    url = store({"log.gz": gzip.compress(b"needle\n"), "bad.gz": gzip.compress(b"needle " * 99)[:5], "z": b"needle"})
    assert found(f"{url}/*", inside="gz") == [("memory:///store/log.gz!/log", 1), ("memory:///store/z", 1)]
    source = sources.fs(f"{url}/*", inside=["gz"])
    assert [error.path for error in sync.grep_in("needle", source).errors] == ["memory:///store/bad.gz!/bad"]
    assert found(f"{url}/*") == [("memory:///store/z", 1)]


def test_fetched_bytes_never_exceed_the_cap(store: Callable[..., str]) -> None:
    url = store({f"{number:02}": b"needle\n" * 100 for number in range(30)})
    for cap in (0, 699, 700, 2000, 30 * 700):
        source = sources.fs(f"{url}/*", max_bytes=cap, workers=7)
        result = sync.grep_in("needle", source, limit=0)
        whole = cap // 700
        assert (result.files_matched, source.bytes_fetched) == (whole, whole * 700)
        assert [error.path for error in result.errors] == [f"memory:///store/{whole:02}"][: whole < 30]
        assert all(f"max_bytes={cap} would be exceeded" in error.message for error in result.errors)


def test_object_of_unknown_size_is_left_out_at_the_cap(store: Callable[..., str]) -> None:
    url = store({"a": b"needle", "b": b"needle" * 10})
    source = sources.fs([f"{url}/a", f"{url}/b"], max_bytes=30)
    result = sync.grep_in("needle", source)
    assert [file.path for file in result.files] == ["memory:///store/a"]
    assert source.bytes_fetched <= 30
    assert [error.path for error in result.errors] == ["memory:///store/b"]


def test_missing_object_is_an_error_beside_the_rest(store: Callable[..., str]) -> None:
    url = store(FILES)
    source = sources.fs([f"{url}/gone", f"{url}/a.txt"])
    result = sync.grep_in("needle", source)
    assert result.total_matches == 1
    assert [(error.path, error.kind) for error in result.errors] == [("memory:///store/gone", "missing")]
    assert result.errors[0].message == os.strerror(errno.ENOENT)


def test_wildcards_that_match_nothing_are_an_error(store: Callable[..., str]) -> None:
    url = store(FILES)
    with pytest.raises(FileNotFoundError, match="no object matches; correct urls"):
        found([f"{url}/*.gz", f"{url}/no/*"])
    with pytest.raises(SearchError, match=r"could not list memory://store/\*\*x: Invalid pattern"):
        found(f"{url}/**x")


@pytest.mark.slow
def test_fetched_objects_wait_in_bounded_memory(store: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystems, "MAX_HELD_BYTES", 10_000)
    url = store({f"{number:03}": b"needle\n" + b"x" * 2_500 for number in range(100)})
    source = sources.fs(f"{url}/*", workers=32)
    items = iter(source)
    for number in range(100):
        assert next(items)[0] == f"memory:///store/{number:03}"
        assert source.bytes_fetched <= (number + 1) * 2_507 + 10_000 + 2_507
    source.close()


def test_object_that_is_too_large_is_left_out(store: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystems, "MAX_OBJECT_BYTES", 5)
    url = store({"a": b"needle", "b": b"need"})
    for urls in (f"{url}/*", [f"{url}/a", f"{url}/b"]):
        source = sources.fs(urls)
        assert sync.grep_in("need", source).files_matched == 1
        assert [error.path for error in source.errors] == ["memory:///store/a"]
        assert "larger than 5 bytes" in source.errors[0].message


@pytest.mark.parametrize(
    ("urls", "options", "text"),
    [
        ("nonsense://x", {}, "fsspec does not know the protocol 'nonsense'; correct urls"),
        ("", {}, "urls must be one or more URLs such as"),
        ([], {}, "urls must be one or more URLs such as"),
        ("memory://x", {"workers": 0}, "workers must be 1 to 256, got 0"),
        ("memory://x", {"max_bytes": -1}, "max_bytes must be 0 or more"),
        ("memory://x", {"stall_seconds": -1}, "stall_seconds must be 0 seconds or more"),
        ("memory://x", {"inside": "rar"}, "inside must be "),
    ],
)
def test_wrong_arguments_are_one_clear_error(urls: Any, options: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        sources.fs(urls, **options)


@pytest.mark.parametrize("url", ["gs://bucket/*", "memory://x::gs://bucket/*"])
def test_missing_package_of_a_protocol_is_one_clear_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without_gcsfs(name: str, *arguments: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "gcsfs":
            raise ImportError(f"no {name}")
        return original(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without_gcsfs)
    with pytest.raises(RipwrapError, match=r"gs:// needs a package that is not installed: .*gcsfs"):
        sources.fs(url)


def test_missing_fsspec_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(RipwrapError, match=r"fs\(\) needs fsspec: pip install \"ripwrap\[fsspec\]\""):
        sources.fs("memory://x")


class _Handler(BaseHTTPRequestHandler):
    """Server of `FILES` with an index page; `/cut` sends a part of what it promises, and `/hang` never answers."""

    hang = threading.Event()

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.wfile.write(self.answer())

    def answer(self) -> bytes:
        name = self.path.strip("/")
        if name == "hang":
            self.hang.wait()
        links = "".join(f'<a href="/{one}">{one}</a>' for one in FILES)
        body = FILES.get(name, b"") or (links.encode() if not name else b"needle\n")
        self.send_response(200 if name in (*FILES, "", "cut", "hang") else 404)
        self.send_header("Content-Length", str(len(body) + (1000 if name == "cut" else 0)))
        self.end_headers()
        return body

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving() -> Iterator[str]:
    _Handler.hang = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        _Handler.hang.set()
        server.shutdown()
        thread.join()
        server.server_close()


class TestHttp:
    @pytest.fixture
    def url(self) -> Iterator[str]:
        pytest.importorskip("aiohttp")
        with serving() as url:
            yield url

    def test_objects_of_a_web_server_are_searched(self, url: str) -> None:
        assert found(f"{url}/*.txt") == [(f"{url}/a.txt", 2)]
        assert found([f"{url}/a.txt", f"{url}/sub/c.py"]) == [(f"{url}/a.txt", 2), (f"{url}/sub/c.py", 1)]

    def test_connection_that_is_cut_is_an_error_of_its_object(self, url: str) -> None:
        source = sources.fs([f"{url}/cut", f"{url}/gone", f"{url}/a.txt"])
        result = sync.grep_in("needle", source)
        assert [file.path for file in result.files] == [f"{url}/a.txt"]
        assert [error.path for error in result.errors] == [f"{url}/cut", f"{url}/gone"]

    def test_server_that_hangs_is_an_error_of_its_object(self, url: str) -> None:
        source = sources.fs([f"{url}/hang", f"{url}/a.txt"], stall_seconds=0.3)
        result = sync.grep_in("needle", source)
        assert [file.path for file in result.files] == [f"{url}/a.txt"]
        (error,) = result.errors
        assert str(error).startswith(f"{url}/hang: the server sent no byte for 0.3 seconds; search again, or pass")

    def test_timeout_of_the_file_system_is_an_error_of_its_object(self, url: str) -> None:
        aiohttp = pytest.importorskip("aiohttp")
        options = {"client_kwargs": {"timeout": aiohttp.ClientTimeout(total=0.3)}}
        source = sources.fs([f"{url}/hang", f"{url}/a.txt"], storage_options=options)
        result = sync.grep_in("needle", source)
        assert [file.path for file in result.files] == [f"{url}/a.txt"]
        assert [error.path for error in result.errors] == [f"{url}/hang"]

    def test_timeout_ends_a_search_of_a_server_that_hangs(self, url: str) -> None:
        result = sync.grep_in("needle", sources.fs([f"{url}/a.txt", f"{url}/hang"]), timeout=1)
        assert result.stop_reason == "timeout"
        with pytest.raises(TimeoutError):
            list(sync.search_in("needle", sources.fs(f"{url}/hang"), timeout=0.3))

    @pytest.mark.anyio
    async def test_leaving_a_search_does_not_wait_for_a_server_that_hangs(self, url: str) -> None:
        source = sources.fs([f"{url}/a.txt", f"{url}/hang"])
        assert (await ripwrap.grep_in("needle", source, timeout=1)).stop_reason == "timeout"

    def test_closed_port_is_an_error_of_each_object(self) -> None:
        pytest.importorskip("aiohttp")
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{held.getsockname()[1]}"
            source = sources.fs([f"{url}/a", f"{url}/b"])
            assert sync.grep_in("x", source).total_matches == 0
            assert [error.path for error in source.errors] == [f"{url}/a", f"{url}/b"]


class _Broken(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        raise PermissionError(13, "Permission denied")


def test_error_while_an_object_is_read_is_data(
    store: Callable[..., str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = store(FILES)
    memory = type(fsspec.filesystem("memory"))
    opened = memory.open

    def broken(self: Any, path: str, mode: str) -> Any:
        return _Broken() if path.endswith("a.txt") else opened(self, path, mode)

    monkeypatch.setattr(memory, "open", broken)
    source = sources.fs(f"{url}/**")
    assert [match.path for match in sync.search_in("needle", source)] == ["memory:///store/sub/c.py"]
    assert [(error.path, error.kind) for error in source.errors] == [("memory:///store/a.txt", "denied")]
    assert "memory:///store/a.txt: " in caplog.text

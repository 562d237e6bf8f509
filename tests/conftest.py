"""What the tests share: the rg matrix, both event loops, small trees, rg stand-ins, and eyes on our children."""

import os
import ssl
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
import trustme
from hypothesis import settings

import fake_rg
import rgs
from mirror import Mirror, serving, targz
from ripwrap import binary, sync
from ripwrap.binary import places, platforms, releases
from ripwrap.binary.settings import NAMES

VERSION = "15.2.0"
TARGET = platforms.targets(platforms.current(), VERSION)[0]
FOLDER = releases.folder_name(VERSION, TARGET)
ASSET = releases.asset_name(VERSION, TARGET)

STRICT = bool(os.environ.get("RIPWRAP_ALL_RGS"))

# Nothing here is about time; and what CI draws is always the same, so that it fails for what was changed alone.
settings.register_profile("ripwrap", deadline=None, derandomize=STRICT)
settings.load_profile("ripwrap")

left_out: dict[str, str] = {}
collect_ignore = [] if find_spec("mcp") else ["test_mcp.py"]  # `nox -s frameworks` has it


def pytest_configure() -> None:
    """Fetch the matrix first; what cannot be had is named in the header, or, if RIPWRAP_ALL_RGS is set, an error."""
    for version in rgs.VERSIONS:
        try:
            rgs.provide(version)
        except rgs.UnavailableError as error:
            if STRICT:
                raise pytest.UsageError(f"rg {version}: {error}") from error
            left_out[version] = str(error)


def versions() -> list[str]:
    """Each rg that is here, or, of those, each that is named in RIPWRAP_RGS, with commas between them."""
    wanted = os.environ.get("RIPWRAP_RGS", "").split(",")
    here = [version for version in rgs.VERSIONS if version not in left_out]
    return [version for version in here if version in wanted] or here


def pytest_report_header() -> list[str]:
    here = versions()
    without = ["MCP: tested by `nox -s frameworks`"] if collect_ignore else []
    named = " (RIPWRAP_RGS)" if os.environ.get("RIPWRAP_RGS") else ""
    return [
        f"rg: {', '.join(here)}{named}",
        *without,
        *(f"rg {version} LEFT OUT: {why}" for version, why in left_out.items()),
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "rg" in metafunc.fixturenames:
        metafunc.parametrize("rg", versions(), indirect=True, scope="session")


@pytest.fixture(scope="session")
def rg(request: pytest.FixtureRequest) -> binary.RgBinary:
    """Each rg of the matrix in turn."""
    return sync.resolve(rgs.provide(request.param))


@pytest.fixture(scope="session", autouse=True)
def nobody_s_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of this process's own, so that nothing is written into that of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("RIPWRAP_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def unprivileged(rg: binary.RgBinary, tmp_path: Path) -> Path:
    """Each rg of the matrix, without root's right to read what it may not."""
    if os.geteuid() != 0:
        return Path(rg.path)
    wrapper = tmp_path / "unprivileged-rg"
    drop = "setpriv --bounding-set=-dac_override,-dac_read_search"
    wrapper.write_text(f'#!/bin/sh\nexec {drop} -- "{rg.path}" "$@"\n')
    wrapper.chmod(0o755)
    return wrapper


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with nothing above it that rg could take for a repository or an ignore file."""
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where an index is, outside of what is indexed."""
    return tmp_path / "home"


@pytest.fixture
def plant(folder: Path) -> Callable[..., Path]:
    r"""Write files: `plant({"src/a.py": "text", b"\\xff": b"bytes"})`; gives the folder."""

    def write(files: dict[str | bytes, str | bytes]) -> Path:
        for name, content in files.items():
            path = folder / os.fsdecode(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    return write


@pytest.fixture
def stand_in(tmp_path: Path) -> Callable[..., Path]:
    """An executable that behaves as a few lines of Python say, which may be one of `fake_rg`'s ways to misbehave."""

    def make(body: str, says: str = "ripgrep 15.2.0") -> Path:
        return fake_rg.write(tmp_path / "stand-in", body, says)

    return make


@pytest.fixture
def children() -> Callable[[], list[psutil.Process]]:
    """The child processes that this process has now, zombies included."""
    return lambda: psutil.Process().children(recursive=True)


@pytest.fixture
def running_in() -> Callable[[Path], list[psutil.Process]]:
    """Every rg, whoever started it, that runs in a folder."""

    def find(folder: Path) -> list[psutil.Process]:
        everything = psutil.process_iter(["name", "cwd"])
        return [running for running in everything if (running.info["name"], running.info["cwd"]) == ("rg", str(folder))]

    return find


@pytest.fixture
def leaks_nothing(children: Callable[[], list[psutil.Process]]) -> Iterator[None]:
    """No child and no file descriptor more than before."""
    me = psutil.Process()
    before = me.num_fds()
    yield
    assert children() == []
    assert me.num_fds() <= before


@pytest.fixture
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No rg anywhere: no variable, no wheel, an empty PATH and cache; and no network unless a test names a mirror."""
    for name in (
        *NAMES,
        "SSL_CERT_FILE",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "ALL_PROXY",
        "https_proxy",
        "http_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RIPWRAP_OFFLINE", "1")
    monkeypatch.setattr(places, "WHEEL", "no-such-distribution")


@pytest.fixture(scope="session")
def program() -> bytes:
    """A real rg."""
    return rgs.provide(VERSION).read_bytes()


@pytest.fixture(scope="session")
def archive(program: bytes) -> bytes:
    """It, as upstream would release it for this machine."""
    return targz(FOLDER, program)


@pytest.fixture
def mirror(archive: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A mirror that has it, and is the one that is named, with a hash that is pinned for this test."""
    with serving(Mirror()) as mirror:
        sha256 = mirror.put(VERSION, ASSET, archive)
        monkeypatch.delenv("RIPWRAP_OFFLINE")
        monkeypatch.setenv("RIPWRAP_MIRROR", mirror.url)
        monkeypatch.setenv("RIPWRAP_SHA256", sha256)
        yield mirror


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """A certificate authority that nobody trusts yet."""
    return trustme.CA()


@pytest.fixture
def tls_mirror(authority: trustme.CA, archive: bytes) -> Iterator[Mirror]:
    """The same mirror behind TLS, as `localhost`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with serving(Mirror(), context) as mirror:
        mirror.put(VERSION, ASSET, archive)
        yield mirror

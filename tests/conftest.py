"""Shared fixtures: the rg matrix, both event loops, small trees, fake rg programs, and checks for leaks."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock

from support import rgs
from support.effort import times
from support.git import require_git

# Slow imports (Hypothesis, psutil, ripwrap) are in the fixtures that need them, so that a pure test file starts fast.
if TYPE_CHECKING:
    import psutil
    import trustme

    from ripwrap import binary
    from support.mirror import Mirror

ROOT = Path(__file__).parent.parent
ALL_EXTRAS = bool(os.environ.get("RIPWRAP_ALL_EXTRAS"))

FEW_CASES = bool(os.environ.get("RIPWRAP_FEW_CASES"))
"""True to run one case of each test, as `nox -s pythons` does."""

SLOW = os.environ.get("RIPWRAP_SLOW")
"""Slow tests to run: the part that `nox -s tests` runs, the rest that `nox -s slow` runs, or all without a value."""

SLOW_CASES = int(os.environ.get("RIPWRAP_SLOW_CASES") or 0)
"""Number of cases of each slow test to run, as CI does; all without a value."""

NEEDS_POSIX = "marked `posix`"
_SLOW_MODULE = re.compile(r"^pytestmark = .*pytest\.mark\.slow\b", re.MULTILINE)


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C interrupt. A shell starts background jobs with SIGINT ignored, and child processes inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _load_profile() -> None:
    """Load a Hypothesis profile without a deadline. In CI it draws the same examples in each run, to avoid flakes.

    So more examples show nothing new in CI; `nox -s stress` draws many.
    """
    from hypothesis import settings

    if settings.get_current_profile_name() != "ripwrap":
        settings.register_profile("ripwrap", deadline=None, derandomize=rgs.ALL_RGS, max_examples=times(12, 200))
        settings.load_profile("ripwrap")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip modules without selected tests, if nox sets the markers: their imports took a fifth of the time."""
    if not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text("utf-8")
    quick = not _SLOW_MODULE.search(text)
    selected = {
        "not slow": quick,
        "not slow or python": quick or "mark.python" in text,
        "slow": "mark.slow" in text or "mark.rg_" in text,
        "extra": "mark.extra" in text,
    }
    return None if selected.get(config.option.markexpr, True) else True


def _compiled_once(collector: pytest.Collector) -> AbstractContextManager[object]:
    """Let the other workers of xdist wait for the one that compiles a module: that takes four times its collection."""
    if not isinstance(collector, pytest.Module) or "PYTEST_XDIST_WORKER" not in os.environ or sys.dont_write_bytecode:
        return nullcontext()
    compiled = collector.path.parent / "__pycache__"
    compiled.mkdir(exist_ok=True)
    return FileLock(compiled / f"{collector.path.stem}.lock", poll_interval=0.01)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Load the Hypothesis profile before a module that uses it is imported, which one worker of xdist does first.

    With RIPWRAP_ALL_EXTRAS, fail if a module needs a package that is not installed.
    """
    if isinstance(collector, pytest.Module) and b"from hypothesis import" in collector.path.read_bytes():
        _load_profile()
    with _compiled_once(collector):
        report = yield
    if ALL_EXTRAS and report.outcome == "skipped" and "could not import" in str(report.longrepr):
        report.outcome = "failed"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail if a test needs a package that is not installed and RIPWRAP_ALL_EXTRAS is set."""
    report = yield
    if ALL_EXTRAS and report.skipped and "could not import" in str(report.longrepr):
        report.outcome = "failed"
    return report


def versions() -> list[str]:
    """Return the versions of rg to test: those in RIPWRAP_RGS, separated by commas, or all."""
    wanted = os.environ.get("RIPWRAP_RGS", "").split(",")
    return [version for version in rgs.VERSIONS if version in wanted] or list(rgs.VERSIONS)


def pytest_report_header() -> str:
    return f"rg: {', '.join(versions())} as the markers `rg_matrix` and `rg_ends` say, {versions()[-1]} elsewhere"


def _of_the_part(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the slow cases that `nox -s tests` runs: with the newest rg, the first of each file; one of the index."""
    seen = set[Path]()
    for item in items:
        parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if (
            item.get_closest_marker("slow") is not None
            and not any(item.get_closest_marker(name) for name in ("extra", "stress", "hypothesis"))
            and (item.path.parent.name != "index" or item.path.name == "test_index.py")
            and parameters.get("rg", rgs.VERSIONS[-1]) == rgs.VERSIONS[-1]
            and item.path not in seen
        ):
            seen.add(item.path)
            yield item


@pytest.hookimpl(trylast=True)  # after the tests are selected by markers and names
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `FEW_CASES`, `SLOW_CASES` and `SLOW` say.

    Of the cases of a test, the middle one is kept, or several at even distances. Tests about Python keep all with
    `FEW_CASES`.
    """
    left = set[int]()
    if SLOW:
        part = set(map(id, _of_the_part(items)))
        slow = {id(item) for item in items if item.get_closest_marker("slow") is not None}
        left = part if SLOW == "rest" else slow - part
    if count := 1 if FEW_CASES else SLOW_CASES:
        cases = defaultdict[str, list[pytest.Item]](list)
        for item in items:
            marked = item.get_closest_marker("python" if FEW_CASES else "slow") is not None
            if id(item) not in left and marked is not FEW_CASES:
                cases[item.nodeid.partition("[")[0]].append(item)
        for all_ in cases.values():
            kept = {id(all_[(2 * place + 1) * len(all_) // (2 * count)]) for place in range(count)}
            left |= set(map(id, all_)) - kept
    if left:
        config.hook.pytest_deselected(items=[item for item in items if id(item) in left])
        items[:] = [item for item in items if id(item) not in left]


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Collect no garbage until all tests are collected: there is hardly any, and looking for it took a tenth."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt modules and collected tests from garbage collection, a fifth of whose time went into them."""
    gc.freeze()
    gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that use the fixture `needs_posix`, also through other fixtures."""
    if isinstance(item, pytest.Function) and "needs_posix" in item.fixturenames:
        item.add_marker(pytest.mark.posix)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test with the marker `posix` on other systems, before its fixtures run."""
    if os.name != "posix" and item.get_closest_marker("posix") is not None:
        pytest.skip(NEEDS_POSIX)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how much of the suite another system than POSIX can run."""
    if os.name != "posix":
        passed, skipped = (len(terminalreporter.getreports(outcome)) for outcome in ("passed", "skipped"))
        posix = sum(NEEDS_POSIX in str(report.longrepr) for report in terminalreporter.getreports("skipped"))
        terminalreporter.write_line(f"{passed} tests pass here; {posix} need POSIX; {skipped - posix} are skipped too")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Unregister the plugin of Hypothesis if no test used it: its summary would import all of Hypothesis."""
    if "hypothesis" not in sys.modules and session.config.pluginmanager.has_plugin("hypothesispytest"):
        session.config.pluginmanager.unregister(name="hypothesispytest")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose event loops and rg: both loops or those of the marker `loops`; the newest rg, and older ones by markers.

    A test with an older rg is slow.
    """
    marker = metafunc.definition.get_closest_marker
    if "anyio_backend" in metafunc.fixturenames:
        loops = marker("loops")
        metafunc.parametrize("anyio_backend", loops.args if loops else ["asyncio", "trio"], indirect=True)
    if "rg" in metafunc.fixturenames:
        *older, newest = versions()
        matrix = [pytest.param(version, marks=pytest.mark.slow) for version in older]
        if marker("rg_matrix") is None:
            matrix = matrix[:1] if marker("rg_ends") else []
        metafunc.parametrize("rg", [*matrix, newest], indirect=True, scope="session")


@pytest.fixture(scope="session")
def rg(request: pytest.FixtureRequest) -> binary.RgBinary:
    """rg of the matrix, fetched when the first test needs it."""
    return _provided(request.param)


def _provided(version: str) -> binary.RgBinary:
    from ripwrap import sync

    return sync.resolve(rgs.provide(version))


@pytest.fixture(scope="session")
def newest() -> binary.RgBinary:
    """Newest rg of the matrix, for tests that do not depend on its version in a module with a marker for rg."""
    return _provided(rgs.VERSIONS[-1])


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder that replaces the user's cache and state in this process, so that tests write nothing into the latter."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("RIPWRAP_CACHE_DIR", str(folder))
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))  # journals of replacements
        yield folder


@pytest.fixture(scope="session", autouse=True)
def from_an_index() -> Iterator[None]:
    """Let hints name ripwrap as if it came from an index: most tests run with a ripwrap from a clone."""
    from ripwrap import errors

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(errors, "_source", str)
        yield


@pytest.fixture(scope="session")
def needs_posix() -> None:
    """Mark a test as `posix`; fixtures that need POSIX use it in place of a marker."""


@pytest.fixture
def unprivileged(needs_posix: None, rg: binary.RgBinary, tmp_path: Path) -> Path:
    """Path of an rg that runs without root's right to read any file."""
    if os.geteuid() != 0:
        return Path(rg.path)
    wrapper = tmp_path / "unprivileged-rg"
    drop = "setpriv --bounding-set=-dac_override,-dac_read_search"
    wrapper.write_text(f'#!/bin/sh\nexec {drop} -- "{rg.path}" "$@"\n')
    wrapper.chmod(0o755)
    return wrapper


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder; no folder above it has a repository or an ignore file."""
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Folder for an index, outside the indexed tree."""
    return tmp_path / "home"


@pytest.fixture
def plant(folder: Path) -> Callable[..., Path]:
    r"""Return a function that writes files, e.g. `plant({"src/a.py": "text", b"\\xff": b"bytes"})`, into `folder`."""
    from ripwrap.testing import write_tree

    return lambda files: write_tree(folder, files)


@pytest.fixture
def stand_in(needs_posix: None, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a program in place of rg, from lines of Python that can use `support.fake_rg`."""
    from support import fake_rg

    def make(body: str, says: str = "ripgrep 15.2.0") -> Path:
        return fake_rg.write(tmp_path / "stand-in", body, says)

    return make


@pytest.fixture(params=["polling", "threads"])
def reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read pipes by polling, and in threads as on Windows."""
    from ripwrap._ripgrep.process import SETTINGS

    monkeypatch.setattr(SETTINGS, "can_await_pipes", request.param == "polling")


@pytest.fixture
def children() -> Callable[[], list[psutil.Process]]:
    """Return a function that lists the processes that the test has started and that still exist, with zombies.

    Older children and their processes do not count: an earlier test has leaked them, and has failed.
    """
    import psutil

    def of(parent: psutil.Process) -> Iterator[psutil.Process]:
        while files := [*Path(f"/proc/{parent.pid}/task").glob("*/children")]:
            with suppress(FileNotFoundError, ProcessLookupError):  # a thread ends, and another gets its children
                for pid in [pid for file in files for pid in file.read_text("ascii").split()]:
                    with suppress(psutil.NoSuchProcess):
                        yield psutil.Process(int(pid))
                return
        with suppress(psutil.NoSuchProcess):
            yield from parent.children()  # this reads the whole process table, for systems without such files

    def find() -> Iterator[psutil.Process]:
        found = [child for child in of(psutil.Process()) if child not in before]
        for child in found:
            yield child
            found += of(child)

    before: set[psutil.Process] = set()
    before = set(find())
    return lambda: list(find())


@pytest.fixture(scope="session")
def fork_server(needs_posix: None) -> None:
    """Start the server of `forks.run()`, so that `leaks_nothing` of a test that uses it does not see its start."""
    from support import forks

    forks.run(["-c"], "", cwd=Path(__file__).parent, env=os.environ)


@pytest.fixture
def running_in() -> Callable[[Path], list[psutil.Process]]:
    """Return a function that finds every rg that searches in a folder, with any parent process."""
    import psutil

    def find(folder: Path) -> list[psutil.Process]:
        return [running for running in psutil.process_iter() if runs_in(running, folder)]

    def runs_in(running: psutil.Process, folder: Path) -> bool:
        with suppress(psutil.Error, OSError):  # psutil lets an OSError of /proc pass if the process is just ending
            # Before the first search, ripwrap runs `rg --version`, also in this folder.
            return (running.name(), running.cwd()) == ("rg", str(folder)) and "--version" not in running.cmdline()
        return False

    return find


@pytest.fixture
def leaks_nothing(children: Callable[[], list[psutil.Process]]) -> Iterator[None]:
    """Fail if a test leaves a child process or a file descriptor that was not there before."""
    import psutil

    from ripwrap._code.treesitter.worker import shared_reader

    me = psutil.Process()
    # On Windows the system and its libraries open handles at any time.
    descriptors = me.num_fds if os.name == "posix" else lambda: 0
    shared_reader().close()  # it ends when it is idle, and would be there or not
    before = descriptors()
    yield
    shared_reader().close()
    assert children() == []
    assert descriptors() <= before


@pytest.fixture
def no_rg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every rg: unset variables, a wheel without rg, an empty PATH and cache, and no network except mirrors."""
    from ripwrap.binary.cache import VARIABLES
    from support import wheel

    for name in (
        *VARIABLES,
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
    wheel.install(monkeypatch, tmp_path / "no-wheel")


@pytest.fixture(scope="session")
def program() -> bytes:
    """Bytes of a real rg."""
    return rgs.provide("15.2.0").read_bytes()


@pytest.fixture(scope="session")
def archive(program: bytes) -> bytes:
    """Release archive of `program` for this machine, as upstream makes it."""
    from support.mirror import FOLDER, packed

    return packed(FOLDER, program)


@pytest.fixture
def mirror(archive: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """Mirror with `archive`; environment variables name the mirror and the hash of the archive."""
    from support.mirror import ASSET, VERSION, Mirror, serving

    with serving(Mirror()) as mirror:
        sha256 = mirror.put(VERSION, ASSET, archive)
        monkeypatch.delenv("RIPWRAP_OFFLINE")
        monkeypatch.setenv("RIPWRAP_MIRROR", mirror.url)
        monkeypatch.setenv("RIPWRAP_SHA256", sha256)
        yield mirror


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """Certificate authority that no client trusts."""
    import trustme

    return trustme.CA()


@pytest.fixture
def tls_mirror(authority: trustme.CA, archive: bytes) -> Iterator[Mirror]:
    """Mirror with `archive`, over TLS; by address, because a system may not know `localhost`."""
    from support.mirror import ASSET, VERSION, Mirror, serving

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with serving(Mirror(), context) as mirror:
        mirror.put(VERSION, ASSET, archive)
        yield mirror


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Directory for temporary files, which must be empty at the end of each test."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    yield path
    assert list(path.iterdir()) == []


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clone of the repository as it is here, with the demo that `scripts/demo.py` makes in it."""
    require_git()
    folder = tmp_path_factory.mktemp("clone") / "ripwrap"
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, folder], check=True)
    new = [["git", "diff", "-z", "--name-only", "HEAD"], ["git", "ls-files", "-z", "--others", "--exclude-standard"]]
    names = b"".join(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout for command in new)
    for name in names.split(b"\0")[:-1]:
        source, target = ROOT / os.fsdecode(name), folder / os.fsdecode(name)
        target.unlink(missing_ok=True)
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for command in (["git", "add", "--all"], [sys.executable, "scripts/demo.py"]):
        subprocess.run(command, cwd=folder, check=True)
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 3 MB."""
    if shutil.which("mount") is None:
        pytest.skip("this system has no mount")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        assert not os.environ.get("CI"), mounted.stderr
        pytest.skip("no right to mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)

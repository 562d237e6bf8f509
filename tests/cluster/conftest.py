"""Roots and executors for the session `cluster`: the standard library, Linux' folders, a process pool and Dask."""

import multiprocessing
import sysconfig
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

import corpora
from ripwrap import Root
from support import rgs

WORKERS = 2
ROOTS = 200


@pytest.fixture(scope="session")
def linux() -> Path:
    return corpora.linux()


@pytest.fixture(scope="session")
def rg() -> str:
    return str(rgs.provide("15.2.0"))


@pytest.fixture(scope="session")
def packages() -> list[Path]:
    """Packages of the standard library."""
    library = Path(sysconfig.get_path("stdlib"))
    return sorted(init.parent for init in library.glob("*/__init__.py"))


@pytest.fixture(scope="session")
def roots(packages: list[Path], linux: Path) -> list[Root]:
    """200 roots: packages of the standard library, and Linux' folders of the second level."""
    folders = sorted(path for path in linux.glob("*/*") if path.is_dir() and not path.is_symlink())
    named = [(f"python/{path.name}", path) for path in packages]
    named += [(f"linux/{path.relative_to(linux)}", path) for path in folders]
    assert len(named) >= ROOTS
    return [Root(name=name, path=str(path)) for name, path in named[:ROOTS]]


def make_pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("forkserver"))


def make_cluster() -> LocalCluster:
    # Port 0: with a fixed port, a second cluster warns, and warnings are errors.
    return LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address="127.0.0.1:0")


@pytest.fixture
def pool() -> Iterator[ProcessPoolExecutor]:
    with make_pool() as executor:
        yield executor


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    with make_cluster() as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def dask(client: Client) -> Executor:
    executor: Executor = client.get_executor(retries=3)
    return executor


@pytest.fixture(params=["here", "pool", "dask"])
def executor(request: pytest.FixtureRequest) -> Executor | None:
    made: Executor | None = None if request.param == "here" else request.getfixturevalue(request.param)
    return made


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Return a function that prints a figure, also if the test passes."""

    def show(text: str) -> None:
        with capsys.disabled():
            print(f"\n    {text}", end="")

    return show

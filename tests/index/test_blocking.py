"""The blocking index: the results of the async one, from scripts and threads, within a timeout."""

import inspect
import os
import sqlite3
import subprocess
import textwrap
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import anyio
import psutil
import pytest
from filelock import FileLock

from ripwrap import RipwrapError, sync
from ripwrap.index import Index, Progress, RefreshResult, maintenance
from ripwrap.index.storage.files import NAME
from support import forks
from support.shop import SHOP, held

Plant = Callable[..., Path]
StandIn = Callable[..., Path]

pytestmark = pytest.mark.slow  # the behaviour depends on SQLite and files, not on the Python version
TWINS = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__"}
"""Methods whose blocking twins have another name."""


@pytest.fixture
def index(plant: Plant, home: Path) -> Generator[sync.Index]:
    with sync.Index(plant(SHOP), location=home) as index:
        yield index


def counts(done: RefreshResult) -> tuple[int, int, int, int]:
    return done.added, done.changed, done.removed, done.unchanged


def paths(index: sync.Index, query: str, *, refresh: bool = True) -> list[str]:
    return [place.path for place in index.search(query, refresh=refresh)]


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")} | (TWINS.keys() & vars(kind).keys())


async def async_function(_: object) -> None: ...


def test_wrong_callback_of_refresh_is_refused_before_the_index_is_rebuilt(index: sync.Index) -> None:
    before = counts(index.refresh())
    wrong: list[Any] = [5, async_function]
    for callback in wrong:
        with pytest.raises(TypeError, match="on_progress must"):
            index.refresh(rebuild=True, on_progress=callback)
    assert counts(index.refresh()) == (0, 0, 0, before[0])


METHODS = sorted(name for name in public(Index) if inspect.isfunction(getattr(Index, name)))


def test_blocking_index_has_the_methods_of_the_async_one() -> None:
    twins = {TWINS.get(name, name) for name in public(Index)}
    assert twins == public(sync.Index) | {"__enter__", "__exit__"}
    assert inspect.signature(sync.Index) == inspect.signature(Index)


@pytest.mark.parametrize("name", METHODS)
def test_blocking_method_has_the_async_signature_and_a_timeout(name: str) -> None:
    twin, blocking = getattr(Index, name), getattr(sync.Index, TWINS.get(name, name))
    assert inspect.getdoc(blocking) or name in TWINS
    parameters = dict(inspect.signature(blocking).parameters)
    if name not in (*TWINS, "grep"):  # grep() has a timeout in both forms
        timeout = parameters.pop("timeout")
        assert (timeout.kind, timeout.default) == (inspect.Parameter.KEYWORD_ONLY, None)
    assert parameters == dict(inspect.signature(twin).parameters)
    gives, given = get_type_hints(blocking)["return"], get_type_hints(twin)["return"]
    if get_origin(given) is AsyncGenerator:
        assert (get_origin(gives), get_args(gives)) == (Generator, get_args(given))
    else:
        assert gives == given


def test_blocking_search_returns_what_async_search_returns(index: sync.Index, home: Path) -> None:
    async def asked(query: str) -> list[str]:
        async with Index(index.root, location=home / "other") as other:
            return [place.model_dump_json() for place in await other.search(query, limit=None)]

    for query in ("where are cookies stored", "Cart", "shop"):
        found = [place.model_dump_json() for place in index.search(query, limit=None)]
        assert found and found == anyio.run(asked, query)


def test_blocking_refresh_reports_counts_and_progress(index: sync.Index, plant: Plant) -> None:
    told: list[Progress] = []
    assert counts(index.refresh(told.append)) == (3, 0, 0, 0)
    assert (told[0].files, told[-1].files, told[-1].chunks) == (0, 3, 3)
    plant({"src/cart.py": "class Basket: pass\n", "new.txt": "new\n"})
    (index.root / "README.md").unlink()
    assert counts(index.refresh()) == (1, 1, 1, 1)

    def enough(_: Progress) -> None:
        raise LookupError("enough")

    plant({"late.txt": "word\n"})
    with pytest.raises(LookupError, match="enough"):
        index.refresh(enough)
    assert "late.txt" not in paths(index, "late", refresh=False)
    assert counts(index.refresh()) == (1, 0, 0, 3)


def test_blocking_search_without_refresh_uses_the_last_refresh(index: sync.Index, plant: Plant) -> None:
    with pytest.raises(RipwrapError, match=r"there is no index of .* yet.*; refresh\(\) makes it"):
        index.search("cookies", refresh=False)
    index.refresh()
    plant({"src/cookies.py": "nothing\n", "new.py": "cookies\n"})
    assert paths(index, "cookies", refresh=False) == ["README.md"]  # src/cookies.py has changed
    assert set(paths(index, "cookies")) == {"new.py", "src/cookies.py", "README.md"}


def test_search_without_refresh_neither_creates_nor_changes_an_index(index: sync.Index, home: Path) -> None:
    """`search(refresh=False)` created an empty index, and emptied an index of another chunker."""
    with pytest.raises(RipwrapError, match="there is no index of "):
        index.search("cookies", refresh=False)
    assert not home.exists()
    index.refresh()
    index.close()
    with sqlite3.connect(home / NAME) as connection:
        connection.execute("UPDATE meta SET value = 'other 1' WHERE key = 'chunker'")
    with pytest.raises(RipwrapError, match=r"there is no index of .* and this chunker; refresh\(\) makes it"):
        index.search("cookies", refresh=False)
    assert connection.execute("SELECT count(*) FROM chunk").fetchone() == (3,)
    connection.close()


def test_missing_root_error_names_the_root(tmp_path: Path) -> None:
    """The error named `cwd`, which `Index` does not have."""
    index = sync.Index(tmp_path / "nowhere", location=tmp_path / "home")
    for call in (index.refresh, partial(index.search, "cookies")):
        with pytest.raises(FileNotFoundError, match=r"root does not exist: '.*/nowhere'"):
            call()


def test_seconds_of_a_refresh_include_the_listing(plant: Plant, home: Path, stand_in: StandIn) -> None:
    """`RefreshResult.seconds` did not include the run of rg."""
    index = sync.Index(plant(SHOP), location=home, rg=stand_in("time.sleep(0.3)"), chunker="windows")
    assert index.refresh().seconds > 0.3


def test_invalid_query_timeout_and_root_raise(index: sync.Index, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no word in the query"):
        index.search("?!")
    with pytest.raises(ValueError, match="timeout must be 0 seconds or more"):
        index.refresh(timeout=-1)
    with pytest.raises(FileNotFoundError), sync.Index(tmp_path / "nowhere", location=tmp_path / "home") as nowhere:
        nowhere.refresh()
    file = tmp_path / "file"
    file.touch()
    for rebuild in (False, True):
        with pytest.raises(NotADirectoryError, match=r"root is not a directory: '.*file'"):
            sync.Index(file, location=tmp_path / "home").refresh(rebuild=rebuild)
    assert not index.location.exists()


def test_prune_removes_views_of_deleted_branches_in_blocking_code(index: sync.Index, plant: Plant) -> None:
    for name in ("gone", "main"):
        plant({".git/HEAD": f"ref: refs/heads/{name}\n", f".git/refs/heads/{name}": "0" * 40, f"{name}.py": "x = 1\n"})
        index.refresh()
        (index.root / f"{name}.py").unlink()
    status = index.status()
    assert (status.built, status.view, {view.name for view in status.views}) == (True, "main", {"gone", "main"})
    (index.root / ".git/refs/heads/gone").unlink()
    collected = index.prune()
    assert (collected.views, collected.blobs) == (("gone",), 1)
    assert index.check().ok


def test_concurrent_threads_get_no_stale_results(index: sync.Index, plant: Plant) -> None:
    def ask(number: int) -> bool:
        (index.root / f"of{number}.py").write_text(f"word{number} = 1\n")
        with sync.Index(index.root, location=index.location) as another:
            return all(paths(one, f"word{number}") == [f"of{number}.py"] for one in (index, another))

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(ask, range(18))) == [True] * 18
    assert index.status().files == len(SHOP) + 18
    assert index.check().ok


@pytest.mark.usefixtures("leaks_nothing")
def test_refresh_and_search_end_a_listing_at_their_timeout(plant: Plant, home: Path, stand_in: StandIn) -> None:
    index = sync.Index(plant(SHOP), location=home, rg=stand_in("time.sleep(FOR_EVER)"))
    for call in (index.refresh, lambda timeout: index.search("cookies", timeout=timeout)):
        with pytest.raises(TimeoutError, match=r"the call took more than timeout=0\.3 seconds"):
            call(timeout=0.3)
    index.close()


def test_timeout_while_another_process_writes_keeps_the_old_state(index: sync.Index, plant: Plant) -> None:
    index.refresh()
    plant({"late.py": "late = 1\n"})
    calls: list[Callable[..., object]] = [
        index.refresh,
        index.prune,
        lambda timeout: index.search("late", timeout=timeout),
    ]
    with held(index.location):
        for call in calls:
            with pytest.raises(TimeoutError, match=r"the call took more than timeout=0\.3 seconds"):
                call(timeout=0.3)
        assert paths(index, "late", refresh=False) == []
    assert paths(index, "late") == ["late.py"]


def test_wait_for_the_lock_of_another_process_ends_at_the_timeout(index: sync.Index, home: Path) -> None:
    home.mkdir()
    with FileLock(home / "index.lock"):
        calls: list[Callable[..., object]] = [
            index.refresh,
            lambda timeout: index.refresh(rebuild=True, timeout=timeout),
        ]
        for call in calls:
            with pytest.raises(TimeoutError, match=r"the call took more than timeout=0\.3 seconds"):
                call(timeout=0.3)
    assert counts(index.refresh()) == (3, 0, 0, 0)


def test_check_does_not_wait_for_a_writer(index: sync.Index) -> None:
    """Check while another process writes; if it waited, it would report that the database is locked."""
    index.refresh()
    with held(index.location):
        assert index.check().ok


def test_timeout_0_raises_and_a_long_timeout_does_not(index: sync.Index) -> None:
    calls: list[Callable[..., object]] = [index.refresh, index.status, index.check, index.prune]
    for call in calls:
        with pytest.raises(TimeoutError):
            call(timeout=0)
    assert not index.location.exists()
    for call in calls:
        assert call(timeout=600)


def test_closed_blocking_index_is_reopened_on_use(index: sync.Index) -> None:
    me = psutil.Process()
    index.refresh()
    index.close()
    before = me.num_fds()
    assert paths(index, "cookies")
    assert me.num_fds() > before
    index.close()
    assert me.num_fds() == before
    assert not (index.location / f"{NAME}-wal").exists()


def ran(program: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    argv, cwd = ["-c", *map(str, arguments)], Path(__file__).parent
    return forks.run(argv, textwrap.dedent(program), cwd=cwd, env=os.environ)


@pytest.mark.posix
def test_unclosed_blocking_index_is_collected_without_a_warning(plant: Plant, home: Path) -> None:
    program = """
        import gc, sys
        from ripwrap import sync
        def once():
            return sync.Index(sys.argv[1], location=sys.argv[2]).search("cookies")[0].path
        print(once())
        gc.collect()
        index = sync.Index(sys.argv[1], location=sys.argv[2])  # which is there until Python ends
        print(index.search("Cart")[0].path)
    """
    done = ran(program, plant(SHOP), home)
    assert (done.stdout.split(), done.stderr) == (["src/cookies.py", "src/cart.py"], "")


INTERRUPTED = """
    import os, signal, sys, time
    import psutil
    from ripwrap import sync
    os.setsid()
    index = sync.Index(sys.argv[1], location=sys.argv[2])
    def tell(progress):
        if progress.files:
            os.killpg(0, signal.SIGINT)  # as a terminal does
            time.sleep(3_600)
    try:
        index.refresh(tell)
    except KeyboardInterrupt:
        print("interrupted", psutil.Process().children(), index.check().ok)
"""


@pytest.mark.posix
def test_ctrl_c_during_a_refresh_keeps_the_old_state_and_leaves_no_process(
    index: sync.Index, plant: Plant, home: Path
) -> None:
    index.refresh()
    root = plant({f"more/{number}.py": f"def f{number}():\n    return {number}\n" for number in range(200)})
    done = ran(INTERRUPTED, root, home)
    assert (done.stdout, done.stderr) == ("interrupted [] True\n", "")
    assert paths(index, "f70", refresh=False) == []
    assert paths(index, "f70")[0] == "more/70.py"


ENDED = """
    import os, signal, sys, threading
    from ripwrap import sync
    index = sync.Index(sys.argv[1], location=sys.argv[2])
    index.refresh()
    def read(database):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        database.execute("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT sum(x) FROM n").fetchone()
    for call in (index._store.run, index._store.read_only):
        try:
            call(read)
        except KeyboardInterrupt:
            print("interrupted")
"""


@pytest.mark.posix
def test_ctrl_c_during_a_statement_raises_keyboard_interrupt(plant: Plant, home: Path) -> None:
    done = ran(ENDED, plant(SHOP), home)
    assert (done.stdout.split(), done.stderr) == (["interrupted"] * 2, "")


def test_ctrl_c_is_not_mistaken_for_a_busy_database(index: sync.Index) -> None:
    def interrupt() -> bool:
        raise KeyboardInterrupt

    def compact(database: sqlite3.Connection) -> None:
        database.execute("INSERT INTO vec VALUES (x'00', 'model', zeroblob(4000000))")
        database.execute("DELETE FROM vec")
        database.set_progress_handler(interrupt, 100)
        maintenance._compact(database)

    index.refresh()
    with pytest.raises(KeyboardInterrupt):
        index._store.run(compact)
    index.close()
    assert index.check().ok


@pytest.mark.posix
def test_index_is_for_its_user_only(plant: Plant, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with sync.Index(plant(SHOP), location=tmp_path / "made" / "too" / "index", chunker="windows") as index:
            index.refresh()
    finally:
        os.umask(before)
    made = [tmp_path / "made", tmp_path / "made" / "too", tmp_path / "made" / "too" / "index"]
    assert [oct(one.stat().st_mode & 0o777) for one in made] == ["0o700"] * 3

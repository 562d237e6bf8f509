"""Limits of the system (setrlimit(2)): each is named, is not taken for damage, and leaves an index that works later."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from ripwrap import RipwrapError, sync
from support import forks

Plant = Callable[..., Path]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has all these limits")

_READ = "+dac_override,+dac_read_search"
COUNTED = (
    (
        *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
        *(f"--inh-caps=-all,{_READ}", f"--ambient-caps={_READ}"),
    )
    if os.geteuid() == 0
    else ()
)
"""Launcher for a program whose processes are counted, which root's are not; it still reads the same files as root."""

LIMITED = """
import logging, os, resource, sqlite3, sys
from pathlib import Path
from ripwrap import RipwrapError, sync
sys.dont_write_bytecode = True
root, home, rg, name, value, when = *map(Path, sys.argv[1:3]), *sys.argv[3:7]
said = []
logging.Handler.emit = lambda self, record: said.append(record.getMessage())
logging.getLogger("ripwrap").addHandler(logging.Handler())
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
def make():
    return sync.Index(root, location=home, chunker="windows", rg=rg, workers=0)
with make() as index:
    if when == "later":
        index.refresh()
        (root / "new.py").write_text("cookies and more\\n")
    kind = getattr(resource, f"RLIMIT_{name}")
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (int(value) + used * (name == "AS"), before[1]))
    for call in (lambda: index._store.run(lambda database: None), index.refresh, lambda: index.grep("cookies")):
        try:
            call()
        except RipwrapError as error:
            said.append(f"{type(error).__name__} {error}")
    resource.setrlimit(kind, before)
    made = {one.name for one in home.glob("postings-*")} | {one.name for one in home.glob("trigrams-*")}
    with sqlite3.connect(home / "index.sqlite3") as database:
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")} & {"postings", "trigrams"}
        named = {row[0] for table in tables for row in database.execute(f"SELECT folder FROM {table}")}
    database.close()
    print(*said, sorted(made - named), sep=chr(10))
    print([found.path for found in index.search("cookies")], len(index.grep("cookies").matches), index.check().ok)
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """Yield a directory that each user may enter, as access(2) asks; pytest's own are this user's."""
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["first", "later"])
@pytest.mark.parametrize(
    ("name", "values", "flag"),
    [
        ("NPROC", (0, 1), "-u"),
        ("AS", (50_000_000, 200_000_000, 400_000_000), "-v"),
        ("NOFILE", (4, 5, 6, 7, 9), "-n"),
        ("FSIZE", (0, 1_000, 30_000), "-f"),
    ],
)
def test_limit_is_named_and_an_index_works_when_it_is_gone(
    shared: Path, name: str, values: tuple[int, ...], flag: str, when: str
) -> None:
    rg = sync.resolve().path
    for value in values:
        root, home = shared / f"root-{value}", shared / f"home-{value}"
        root.mkdir()
        (root / "a.py").write_text("def cookies(): ...\n")
        argv = ["-c", *map(str, (root, home, rg, name, value, when))]
        env = {**os.environ, "RUST_BACKTRACE": "0"}
        done = forks.run(argv, LIMITED, cwd=root, env=env, launcher=COUNTED)
        assert done.returncode == 0, (value, done.stdout, done.stderr)
        *errors, left, after = done.stdout.splitlines()
        assert errors or when == "later", value
        for error in errors:
            named = f"(ulimit {flag}) is reached; raise the limit, or" in error
            assert named or error.startswith("SearchError could not start"), (value, error)
        assert left == "[]", value
        assert after == ("['a.py'] 1 True" if when == "first" else "['a.py', 'new.py'] 2 True"), value


def _words(chance: Random, count: int) -> str:
    return "cookies\n" + "\n".join(f"{chance.randrange(10**9):x}" for _ in range(count))


@pytest.mark.slow
@pytest.mark.parametrize(("filled", "files"), [("other", 8), ("index", 60)])
def test_index_works_again_when_a_full_disk_has_room(
    plant: Plant, small_disk: Path, caplog: pytest.LogCaptureFixture, filled: str, files: int
) -> None:
    """Files of others fill the disk, or the index itself does; nothing is rebuilt, and nothing takes the room."""
    root, chance = plant({"a.txt": "cookies\n"}), Random(files)
    with sync.Index(root, location=small_disk / "home", chunker="windows", workers=0) as index:
        for free in (0, 40_000, 120_000):
            index.search("cookies")
            before = len(index.grep("cookies").matches)
            filler = small_disk / "filler"
            if filled == "other":
                filler.write_bytes(bytes(max(shutil.disk_usage(small_disk).free - free, 0)))
            for number in range(files):
                words = _words(chance, 8_000 if filled == "other" else 4_000)
                (root / f"new-{free}-{number}.txt").write_text(words)
            for call in (index.refresh, partial(index.grep, "cookies"), partial(index.search, "cookies")):
                with suppress(RipwrapError):
                    call()
            filler.unlink(missing_ok=True)
            for file in root.glob("new-*"):
                file.unlink()
            (root / f"later-{free}.txt").write_text(f"cookies and more {free}\n")
            assert index.refresh().added == 1
            assert len(index.grep("cookies").matches) == before + 1
            assert f"later-{free}.txt" in {found.path for found in index.search(f"cookies {free}")}
            assert index.check().ok
        assert shutil.disk_usage(small_disk).free > 2_000_000
    assert caplog.records == []

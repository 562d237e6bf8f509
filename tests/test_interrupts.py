"""Ctrl-C at any moment: a call raises `KeyboardInterrupt`, and leaves no descriptor, lock or temporary file."""

import gc
import inspect
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from types import FrameType

import pytest

import ripwrap
from ripwrap import sync
from ripwrap._system.concurrency import CANCELLED, poll_intervals
from ripwrap._system.overlay import active_overlay
from ripwrap.places import Items
from support.effort import times

pytestmark = [
    pytest.mark.posix,
    pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the descriptors of this process are in /proc"),
    # What nobody holds any more is closed with a warning.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

PACKAGE = os.path.dirname(ripwrap.__file__)


def descriptors() -> dict[int, str]:
    """Return the open descriptors of this process and what they lead to."""
    found: dict[int, str] = {}
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return found


def left(root: Path, before: dict[int, str]) -> list[str]:
    """Return what a call has left: descriptors that were not open before it, and temporary files."""
    found: list[str] = []
    for pause in poll_intervals(5):  # threads that still run end later
        gc.collect()
        found = [path for number, path in descriptors().items() if number not in before]
        found += [name for _, _, names in os.walk(root) for name in names if name.endswith(".tmp")]
        found += os.listdir(root.parent / "tmp")
        if not found:
            break
        time.sleep(pause)
    found += ["an overlay"] if active_overlay() else []
    return found + (["a time limit"] if CANCELLED.get().timeout is not None else [])


def read_file(root: Path) -> None:
    sync.Workspace(root).read_file("a/b/one.py")


def read_bytes(root: Path) -> None:
    sync.Workspace(root).read_bytes("a/b/one.py")


def apply(root: Path) -> None:
    """Change files and change them back, with one journal."""
    plan = sync.replace("one|two", "two", cwd=root)
    plan.apply(journals=root.parent / "journals")
    sync.undo(cwd=root, journals=root.parent / "journals")


def search(root: Path) -> None:
    with closing(sync.search("o", cwd=root)) as found:
        next(found, None)


def items(root: Path) -> None:
    list(sync.search("o", where=Items([("x", "one\n"), ("y", "two\n")])))


def inside(root: Path) -> None:
    list(sync.search("o", cwd=root, inside="gz"))


def overlay(root: Path) -> None:
    with ripwrap.overlay({"a/b/one.py": "one = 2\n"}, cwd=root):
        list(sync.search("one", cwd=root))


def rank(root: Path) -> None:
    list(sync.rank("one", cwd=root))


def refresh(root: Path) -> None:
    pytest.importorskip("tantivy")
    (root / "a" / "b" / "three.py").write_text(f"three = {time.monotonic_ns()}\n")
    with sync.Index(root, location=root.parent / "index", chunker="windows") as index:
        index.refresh()


CALLS: dict[str, Callable[[Path], None]] = {
    one.__name__: one for one in (read_file, read_bytes, apply, search, items, inside, overlay, rank, refresh)
}

NAMES = [pytest.param(one, marks=[pytest.mark.extra] if one == "refresh" else []) for one in CALLS]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    folder = tmp_path / "root" / "a" / "b"
    folder.mkdir(parents=True)
    for name in ("one", "three"):
        (folder / f"{name}.py").write_text(f"{name} = one + two\n")
    return tmp_path / "root"


def interrupted_at(number: int, call: Callable[[], None]) -> int:
    """Call a function, and press Ctrl-C at the `number`-th call or return of a function of ripwrap or of the system.

    Python looks for signals at these places. Return how many there were until then.
    """
    seen = 0

    def press(frame: FrameType, event: str, _: object) -> None:
        nonlocal seen
        name = frame.f_code.co_filename
        if event not in ("call", "c_return") or not (name.startswith(PACKAGE) or name in NEAR):
            return
        if event == "call" and frame.f_code.co_flags & inspect.CO_GENERATOR:
            return  # Python looks for signals within a generator that goes on; here, it would never have gone on
        seen += 1
        if seen == number:
            sys.setprofile(None)
            pressed.append(f"{event} in {frame.f_code.co_qualname} of {name}:{frame.f_lineno}")
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(press)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return seen


pressed: list[str] = []

NEAR = frozenset({tempfile.__file__, sys.modules["contextlib"].__file__})


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_at_any_place_leaves_nothing(root: Path, name: str) -> None:
    """At each place where Python looks for signals, in turn; in `nox -s stress` at all of them."""
    assert threading.current_thread() is threading.main_thread()
    call = CALLS[name]
    for _ in range(2):  # a second time, the index is not made
        call(root)
    places = interrupted_at(0, lambda: call(root))
    before, handler = descriptors(), signal.getsignal(signal.SIGINT)
    step = 1 if times(0, 1) else max(1, places // 25)
    for place in range(random.randrange(step) + 1, places + 1, step):
        interrupted_at(place, lambda: call(root))
        assert left(root, before) == [], f"place {place} of {places}: {pressed[-1]}"
        assert signal.getsignal(signal.SIGINT) is handler
    call(root)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_at_random_times_leaves_nothing(root: Path, name: str) -> None:
    """From another thread, so that it comes also within calls of the system."""
    call, main = CALLS[name], threading.get_ident()
    for _ in range(2):
        call(root)
    begun = time.monotonic()
    call(root)
    seconds, before = time.monotonic() - begun, descriptors()
    random.seed(name)
    for _ in range(times(15, 500)):
        pressing = threading.Timer(random.uniform(0, seconds), signal.pthread_kill, (main, signal.SIGINT))
        with suppress(KeyboardInterrupt):
            pressing.start()
            call(root)
            pressing.join()
        pressing.join()
        assert left(root, before) == []
    call(root)

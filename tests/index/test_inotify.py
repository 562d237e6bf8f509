"""The journal of a folder: it notes every change that matters, and leaves no descriptor behind."""

import gc
import mmap
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap._concurrency import CANCELLED, Cancellation
from ripwrap.index.inotify import InotifyJournal, _type_of, is_local
from support.counting import inotify_instances

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has inotify")

Change = Callable[[Path], object]


@pytest.fixture(autouse=True)
def no_instance_leaks() -> Iterator[None]:
    if inotify_instances():
        gc.collect()  # what other tests left
    yield
    if inotify_instances():
        gc.collect()
    assert inotify_instances() == 0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Repository with a nested folder; another folder is beside it."""
    root = tmp_path / "above" / "root"
    for folder in (root / "deep" / "er", root / ".git" / "info", tmp_path / "beside" / "below"):
        folder.mkdir(parents=True)
    for file in (root / "a.py", root / "deep" / "er" / "b.py", root / ".git" / "HEAD", tmp_path / "beside" / "c.py"):
        file.write_text("content\n")
    return root


@pytest.fixture
def journal(root: Path) -> Iterator[InotifyJournal]:
    with closing(InotifyJournal(root, re.compile(r"own/.*|own\.db"))) as journal:
        yield journal


def beside(root: Path) -> Path:
    return root.parent.parent / "beside"


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("more\n")


def write_mapped(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:1] = b"C"


CHANGES: dict[str, Change] = {
    "write": lambda root: (root / "a.py").write_text("other\n"),
    "write the same": lambda root: (root / "deep/er/b.py").write_text("content\n"),
    "append": lambda root: append(root / "deep/er/b.py"),
    "truncate": lambda root: os.truncate(root / "a.py", 0),
    "map": lambda root: write_mapped(root / "a.py"),
    "touch": lambda root: os.utime(root / "a.py", ns=(1, 1)),
    "chmod": lambda root: (root / "a.py").chmod(0),
    "chmod a folder": lambda root: (root / "deep").chmod(0o700),
    "create": lambda root: (root / "new.py").touch(),
    "create in a hidden folder": lambda root: (root / ".hidden").mkdir(),
    "delete": lambda root: (root / "a.py").unlink(),
    "delete a tree": lambda root: shutil.rmtree(root / "deep"),
    "rename": lambda root: (root / "a.py").rename(root / "z.py"),
    "move away": lambda root: (root / "a.py").rename(beside(root) / "a.py"),
    "move here": lambda root: (beside(root) / "c.py").rename(root / "c.py"),
    "replace": lambda root: (beside(root) / "c.py").replace(root / "a.py"),
    "move a folder here": lambda root: (beside(root) / "below").rename(root / "below"),
    "link": lambda root: (root / "link").symlink_to("a.py"),
    "hard link": lambda root: os.link(beside(root) / "c.py", root / "c.py"),
    "name that is not UTF-8": lambda root: Path(os.fsdecode(os.fsencode(root) + b"/\xff")).touch(),
    "ignore file": lambda root: (root / ".gitignore").write_text("a.py\n"),
    "ignore file above": lambda root: (root.parent / ".ignore").write_text("a.py\n"),
    "exclude file of git": lambda root: (root / ".git/info/exclude").write_text("a.py\n"),
    "root moved away": lambda root: root.rename(root.parent / "other"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_change_is_noted_before_the_call_that_makes_it_returns(
    root: Path, journal: InotifyJournal, change: Change
) -> None:
    before = journal.position()
    assert before is not None and journal.position() == before
    change(root)
    assert journal.position() != before


def test_change_of_a_global_ignore_file_is_noted(
    root: Path, journal: InotifyJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that `core.excludesFile` names, git's own default, and the settings that name them."""
    settings, named = tmp_path / "settings", tmp_path / "ignores"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / ".config" / "git").mkdir(parents=True)
    changes: list[Callable[[], object]] = [
        lambda: settings.write_text("[core]\nexcludesFile = ~/ignores\n"),
        lambda: named.write_text("a.py\n"),
        lambda: append(named),
        lambda: (tmp_path / ".gitconfig").write_text(f"[core]\nexcludesfile = {tmp_path}/others\n"),
        lambda: (tmp_path / "others").write_text("a.py\n"),  # named by the file that rg before 15.2 reads
        lambda: (tmp_path / ".config" / "git" / "ignore").write_text("a.py\n"),
        settings.unlink,
    ]
    for change in changes:
        before = journal.position()
        assert before is not None and journal.position() == before
        change()
        assert journal.position() != before


def test_reading_files_notes_no_change(root: Path, journal: InotifyJournal) -> None:
    before = journal.position()
    assert [match.path for match in sync.search("content", cwd=root)]
    assert list(sync.files(cwd=root))
    (root / "a.py").read_text()
    (root / ".git" / "index").write_text("x\n")
    assert journal.position() == before


def test_changes_of_the_index_files_are_not_noted(root: Path, journal: InotifyJournal) -> None:
    before = journal.position()
    (root / "own").mkdir()
    (root / "own" / "x").write_text("x\n")
    (root / "own.db").write_text("x\n")
    assert journal.position() == before
    (root / "own2").mkdir()
    assert journal.position() != before


def replace_folder(root: Path) -> None:
    shutil.rmtree(root / "deep")
    (root / "deep").mkdir()


NEW_FOLDERS: dict[str, tuple[Change, str]] = {
    "made": (lambda root: (root / "new" / "deep").mkdir(parents=True), "new/deep"),
    "moved here": (lambda root: beside(root).rename(root / "beside"), "beside/below"),
    "renamed": (lambda root: (root / "deep").rename(root / "other"), "other/er"),
    "replaced": (replace_folder, "deep"),
    "made repository": (lambda root: (root / "deep/.git/info").mkdir(parents=True), "deep"),
}


@pytest.mark.parametrize(("change", "folder"), NEW_FOLDERS.values(), ids=NEW_FOLDERS)
def test_changes_in_new_folders_are_noted(root: Path, journal: InotifyJournal, change: Change, folder: str) -> None:
    journal.position()
    change(root)
    for name in ("x.py", "y.py"):
        before = journal.position()
        assert journal.position() == before
        (root / folder / name).touch()
        assert journal.position() != before


def test_exclude_file_of_a_nested_repository_is_noted(root: Path, journal: InotifyJournal) -> None:
    journal.position()
    shutil.copytree(root / ".git", root / "deep" / ".git")
    before = journal.position()
    (root / "deep/.git/info/exclude").write_text("x\n")
    assert journal.position() != before


@pytest.mark.parametrize("above", [False, True], ids=["itself", "with the folder above it"])
def test_root_that_is_replaced_is_watched_again(root: Path, journal: InotifyJournal, above: bool) -> None:
    journal.position()
    replaced = root.parent if above else root
    old = replaced.rename(replaced.parent / "old")
    shutil.copytree(old, replaced)
    before = journal.position()
    assert before is not None
    append(old / root.relative_to(replaced) / "a.py")
    assert journal.position() == before
    append(root / "deep" / "er" / "b.py")
    assert journal.position() != before


def test_folder_that_becomes_readable_is_watched(root: Path, journal: InotifyJournal) -> None:
    (root / "deep" / "er").chmod(0)
    if os.access(root / "deep" / "er", os.R_OK):
        pytest.skip("this user may read any folder")
    journal.position()
    (root / "deep" / "er").chmod(0o700)
    before = journal.position()
    append(root / "deep" / "er" / "b.py")
    assert journal.position() != before


@pytest.mark.slow
def test_folders_made_while_events_overflow_are_watched(root: Path, journal: InotifyJournal) -> None:
    (root / "z.py").touch()
    journal.position()
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(limit):  # equal events in succession would be merged
        os.utime(root / ("a.py" if number % 2 else "z.py"))
    (root / "deep" / "late").mkdir()
    before = journal.position()
    assert before is not None
    (root / "deep" / "late" / "x.py").touch()
    assert journal.position() != before


def test_journals_share_an_instance_and_do_not_disturb_each_other(root: Path) -> None:
    with closing(InotifyJournal(root, None)) as one, closing(InotifyJournal(root / "deep", None)) as other:
        positions = one.position(), other.position()
        assert inotify_instances() == 1
        (root / "a.py").write_text("x\n")
        assert other.position() == positions[1]
        assert one.position() != positions[0]
        one.close()
        (root / "deep" / "x.py").touch()
        assert other.position() != positions[1]
        assert inotify_instances() == 1
        before = one.position()  # starts the closed journal again
        assert before is not None
        (root / "deep" / "y.py").touch()
        assert one.position() != before
    abandoned = InotifyJournal(root, None)
    abandoned.position()
    assert inotify_instances() == 1
    del abandoned


def test_positions_differ_between_journals_and_after_a_close(root: Path, journal: InotifyJournal) -> None:
    before = journal.position()
    journal.close()
    assert journal.position() != before
    with closing(InotifyJournal(root, None)) as one, closing(InotifyJournal(root, None)) as other:
        assert one.position() != other.position()


def test_folder_that_cannot_be_watched_is_tried_again_after_a_while(tmp_path: Path) -> None:
    now = 100.0
    root = tmp_path / "later"
    with closing(InotifyJournal(root, None, clock=lambda: now)) as journal:
        assert journal.position() is None
        root.mkdir()
        now += 200
        assert journal.position() is None
        now += 200
        assert journal.position() is not None


def test_start_of_a_journal_is_repeated_after_a_cancellation(root: Path, journal: InotifyJournal) -> None:
    cancelled = Cancellation()
    cancelled.set()
    token = CANCELLED.set(cancelled)
    try:
        with pytest.raises(TimeoutError):
            journal.position()
    finally:
        CANCELLED.reset(token)
    before = journal.position()
    assert before is not None
    append(root / "deep" / "er" / "b.py")
    assert journal.position() != before


FORK = """
import os, sys
from pathlib import Path
from ripwrap.index.inotify import InotifyJournal as Journal

root = Path(sys.argv[1])
journal = Journal(root, None)
before = journal.position()
(root / "a.py").write_text("x\\n")
child = os.fork()
if not child:
    first = journal.position()
    (root / "a.py").write_text("y\\n")
    os._exit(first == before or journal.position() == first)
assert os.waitpid(child, 0)[1] == 0
assert journal.position() != before
"""


@pytest.mark.python
@pytest.mark.slow
def test_forked_child_has_its_own_journal(root: Path) -> None:
    subprocess.run([sys.executable, "-c", FORK, root], check=True, timeout=60)


LIMIT = """
import resource, sys
from pathlib import Path
from ripwrap.index.inotify import InotifyJournal as Journal

journal = Journal(Path(sys.argv[1]), None)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
assert journal.position() is None
"""


@pytest.mark.slow
def test_journal_without_free_descriptors_raises_nothing(root: Path) -> None:
    subprocess.run([sys.executable, "-c", LIMIT, root], check=True, timeout=60)


def mounts(*points: tuple[str, str]) -> str:
    return "".join(f"36 35 98:0 / {point} rw,noatime master:1 - {kind} /dev/x rw\n" for point, kind in points)


@pytest.mark.parametrize(
    ("points", "local"),
    [
        ([("/", "ext4")], True),
        ([("/", "overlay"), ("/home", "nfs4")], True),
        ([("/", "ext4"), ("/src", "nfs4")], False),
        ([("/", "nfs4"), ("/src", "xfs")], True),
        ([("/", "ext4"), ("/src/my\\040code", "fuse.sshfs")], False),
        ([("/", "ext4"), ("/src/my\\040code/vendor", "9p")], False),
        ([("/", "ext4"), ("/src/my\\040codes", "9p")], True),
        ([("/", "ext4"), ("/src", "xfs"), ("/src", "virtiofs")], False),
        ([("/", "virtiofs"), ("/", "ext4")], True),
        ([], False),
    ],
)
def test_network_file_systems_are_recognised(points: list[tuple[str, str]], local: bool) -> None:
    assert is_local("/src/my code", mounts(*points)) is local


@pytest.mark.parametrize(
    ("points", "own", "local"),
    [
        ([], "ext4", True),
        ([("/proc", "proc")], "overlay", True),
        ([("/srcs", "9p")], "xfs", True),
        ([("/src/vendor", "tmpfs")], "btrfs", True),
        ([("/src/vendor", "9p")], "ext4", False),
        ([("/proc", "proc")], "", False),
        ([("/", "nfs4")], "ext4", False),
    ],
)
def test_root_of_a_chroot_that_is_no_mount_point_is_asked_for_its_type(
    points: list[tuple[str, str]], own: str, local: bool
) -> None:
    """In a chroot, the list has no mount above the directory, and no directory was watched."""
    assert is_local("/src", mounts(*points), lambda: own) is local


def test_type_of_a_local_file_system_is_its_name_in_the_list_of_mounts(tmp_path: Path) -> None:
    with open("/proc/self/mountinfo") as lines:
        kinds = {line.split()[4]: line.partition(" - ")[2].split()[0] for line in lines}
    points = [
        point for point in kinds if os.path.ismount(point) and kinds[point] in ("ext4", "overlay", "tmpfs", "xfs")
    ]
    assert {point: _type_of(point) for point in points} == {point: kinds[point] for point in points}
    assert _type_of("/proc") == _type_of(str(tmp_path / "none")) == ""


def test_mounts_below_the_root_folder_are_considered() -> None:
    assert is_local("/", mounts(("/", "ext4"), ("/home", "xfs")))
    assert not is_local("/", mounts(("/", "ext4"), ("/home", "nfs")))

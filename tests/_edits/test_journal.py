"""Applying and undoing a plan: all files or none, whatever happens meanwhile."""

import errno
import os
import pickle
import random
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import ripwrap
from ripwrap import AppliedEdits, ConflictError, DiskFullError, FileEdits, sync
from ripwrap._edits.journal import Journal, JournalFile, JournalFolder, Journals, apply_edits, undo_edits
from ripwrap._edits.planning import FileChange, Found, plan_files
from ripwrap._system.safe_write import Disk
from ripwrap.testing import write_tree
from support import forks, killed
from support.effort import times

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")

OLD = {"a.txt": b"one foo\r\ntwo", "b/b.txt": b"foo foo", "b/c/c": b"\xfffoo\n\x80", "d": b"x\n" * 500 + b"foo\n"}
NEW = {name: content.replace(b"foo", b"longer") for name, content in OLD.items()}


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    return tmp_path / "journals"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def modes(folder: Path) -> dict[str, tuple[int, int]]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): (stat.S_IMODE(path.stat().st_mode), path.stat().st_mtime_ns) for path in files}


def planned(folder: Path, old: bytes = b"foo", new: bytes = b"longer") -> tuple[FileEdits, ...]:
    """Return a plan that was found without rg."""
    found: list[Found] = []
    for name, content in contents(folder).items():
        starts = [at for at in range(len(content)) if content.startswith(old, at)]
        found.append(Found(name, [FileChange(at, at + len(old), old, new) for at in starts], decoded=False))
    return plan_files(str(folder), found)[0]


class FailingDisk(Disk):
    """Disk that fails before one of its operations, as a full disk does."""

    def __init__(self, number: int, error: BaseException | None = None) -> None:
        self.steps = 0
        self._number = number
        self._error = error or OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def step(self, name: str, path: str) -> None:
        self.steps += 1
        if self.steps == self._number:
            raise self._error


def test_apply_then_undo_is_the_identity_on_bytes_modes_and_times(plant: Plant, journals: Path) -> None:
    folder = plant(OLD)
    if os.name == "posix":
        for mode, name in zip((0o755, 0o600, 0o444, 0o2640), OLD, strict=True):
            (folder / name).chmod(mode)
            os.utime(folder / name, ns=(10**18 + 1, 10**18 + 7))
    before = modes(folder)
    files = planned(folder)
    applied = apply_edits(str(folder), files, journals)
    assert contents(folder) == NEW
    assert sorted(applied.files) == sorted(str(folder / name) for name in OLD)
    after = modes(folder)
    assert {path: mode for path, (mode, _) in after.items()} == {path: mode for path, (mode, _) in before.items()}
    assert all(after[path][1] != before[path][1] for path in after)
    assert undo_edits(applied.journal, "", None).undone
    assert contents(folder) == OLD
    assert modes(folder) == before


def test_a_plan_can_be_applied_again_after_undo_and_after_apply(plant: Plant, journals: Path) -> None:
    folder = plant(OLD)
    files = planned(folder)
    for _ in range(2):
        apply_edits(str(folder), files, journals)
        apply_edits(str(folder), files, journals)
        assert contents(folder) == NEW
        undo_edits(None, folder, journals)
        assert contents(folder) == OLD
    with pytest.raises(FileNotFoundError, match=r"no replacement to undo in .* has no journal for this directory"):
        undo_edits(None, folder, journals)


@pytest.mark.slow
@pytest.mark.parametrize("error", [None, KeyboardInterrupt()], ids=["full disk", "Ctrl-C"])
def test_failure_at_any_step_leaves_all_files_old(plant: Plant, journals: Path, error: BaseException | None) -> None:
    folder = plant(OLD)
    files = planned(folder)
    counting = FailingDisk(0)
    apply_edits(str(folder), files, journals / "counting", disk=counting)
    undo_edits(None, folder, journals / "counting")
    assert counting.steps > 8
    for number in range(1, counting.steps + 1):
        with pytest.raises((DiskFullError, KeyboardInterrupt)):
            apply_edits(str(folder), files, journals, disk=FailingDisk(number, error))
        assert contents(folder) == OLD, number
        assert [one.state for one in Journals(journals).all()] in ([], ["undone"])
    apply_edits(str(folder), files, journals)
    assert contents(folder) == NEW


@pytest.mark.slow
def test_failure_at_any_step_of_undo_leaves_all_files_new(plant: Plant, journals: Path) -> None:
    folder = plant(OLD)
    applied = apply_edits(str(folder), planned(folder), journals)
    counting = FailingDisk(0)
    undo_edits(applied.journal, "", None, disk=counting)
    for number in range(1, counting.steps + 1):
        apply_edits(str(folder), planned(folder), journals)
        with pytest.raises(DiskFullError, match=r"nothing was written, because the disk is full; .* undo again"):
            undo_edits(applied.journal, "", None, disk=FailingDisk(number))
        assert contents(folder) == NEW
        undo_edits(applied.journal, "", None)
        assert contents(folder) == OLD


@pytest.mark.parametrize(
    ("number", "raises", "says"),
    [
        (errno.EACCES, PermissionError, "denied"),
        (errno.ENOSPC, DiskFullError, "not all files were restored, because the disk is full"),
        (errno.EDQUOT, DiskFullError, "not all files were restored, because the quota of the disk is used up"),
    ],
)
def test_failed_rollback_says_so_and_undo_completes_it(
    plant: Plant, journals: Path, number: int, raises: type[OSError], says: str
) -> None:
    """A directory that became read-only, or is full: the second rename fails, and so does the rollback of the first."""

    class Failing(Disk):
        def step(self, name: str, path: str) -> None:
            if (name, path) != ("write", "") and self.renamed > 1:
                raise OSError(number, os.strerror(number), path)
            self.renamed += name == "replace"

        renamed = 0

    folder = plant(OLD)
    with pytest.raises(raises, match=says) as raised:
        apply_edits(str(folder), planned(folder), journals, disk=Failing())
    (note,) = raised.value.__notes__
    assert "could not be rolled back" in note
    assert contents(folder) not in (OLD, NEW)
    (journal,) = Journals(journals).all()
    assert str(journal.path) in note
    undo_edits(journal.path, "", None)
    assert contents(folder) == OLD


@pytest.mark.posix
def test_disk_that_is_full_in_the_middle_of_a_file_leaves_all_files_old(plant: Plant, journals: Path) -> None:
    import resource  # Windows has none

    folder = plant({"a": b"foo", "b": b"foo" + b"x" * 200_000})
    files = planned(folder)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: '.*b'"):
            apply_edits(str(folder), files, journals)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert contents(folder) == {"a": b"foo", "b": b"foo" + b"x" * 200_000}


@pytest.mark.parametrize("full", ["files", "journals", "both"])
@pytest.mark.parametrize("undone", [False, True], ids=["apply", "undo"])
def test_full_disk_is_an_error_of_ripwrap_that_says_that_nothing_was_written(
    plant: Plant, small_disk: Path, tmp_path: Path, full: str, undone: bool
) -> None:
    """The disk has from 0 to 400 kB left, so that it becomes full at different steps; with room, the call succeeds."""
    content = {f"{number}.txt": b"foo\n" + b"x" * 30_000 for number in range(8)}
    folder = write_tree(small_disk / "tree" if full != "journals" else tmp_path / "tree", content)
    journals = small_disk / "journals" if full != "files" else tmp_path / "journals"
    plan = sync.replace("foo", "other foo", cwd=folder)
    if undone:
        plan.apply(journals=journals)
    run = plan.undo if undone else plan.apply
    before, failed = contents(folder), list[DiskFullError]()
    for tried, free in enumerate((0, 4_096, 8_192, 40_000, 80_000, 200_000, 400_000), 1):
        filler = small_disk / "filler"
        filler.write_bytes(bytes(max(shutil.disk_usage(small_disk).free - free, 0)))
        try:
            run(journals=journals)
        except DiskFullError as error:
            failed.append(error)
        filler.unlink()
        assert (contents(folder) == before) is (len(failed) == tried)
        if contents(folder) != before:
            break
    for one in failed:
        assert isinstance(one, ripwrap.RipwrapError) and isinstance(one, OSError) and one.errno == errno.ENOSPC
        assert str(one).startswith("[Errno 28] nothing was written, because the disk is full; free some space and ")
        assert str(one.filename).startswith(str(small_disk))
    assert failed and contents(folder) != before
    assert pickle.loads(pickle.dumps(DiskFullError(errno.ENOSPC, "full", "a"))).filename == "a"


def test_conflict_names_all_changed_files_and_writes_nothing(plant: Plant, journals: Path) -> None:
    folder = plant(OLD)
    files = planned(folder)
    plant({"b/b.txt": b"foo"})
    (folder / "d").unlink()
    before = contents(folder)
    with pytest.raises(ConflictError, match=r"nothing was written.*b\.txt.*search again") as raised:
        apply_edits(str(folder), files, journals)
    assert raised.value.reason == "changed"
    assert {Path(path).name for path in raised.value.paths} == {"b.txt", "d"}
    assert contents(folder) == before
    assert Journals(journals).all() == []


@pytest.mark.parametrize("replaced", ["b", "b/b.txt"])
def test_directory_and_file_in_place_of_each_other_are_conflicts(plant: Plant, journals: Path, replaced: str) -> None:
    folder = plant({"a": b"foo", "b/b.txt": b"foo"})
    other = write_tree(folder.parent, {"other/a": b"foo"}) / "other"
    files = planned(folder)
    shutil.rmtree(folder / "b")
    (folder / replaced).mkdir(parents=True) if replaced == "b/b.txt" else (folder / replaced).write_bytes(b"foo")
    with pytest.raises(ConflictError) as raised:
        apply_edits(str(folder), files, journals)
    assert (raised.value.reason, raised.value.paths) == ("changed", (str(folder / "b/b.txt"),))
    assert (folder / "a").read_bytes() == b"foo"
    apply_edits(str(other), planned(other), journals)
    assert (other / "a").read_bytes() == b"longer"


def test_journal_that_cannot_be_marked_as_finished_leaves_all_files_old(plant: Plant, journals: Path) -> None:
    class Vanishing(Disk):
        def step(self, name: str, path: str) -> None:
            if name == "replace" and journals.exists():
                journals.rename(journals.with_name("gone"))

    folder = plant(OLD)
    with pytest.raises(FileNotFoundError):
        apply_edits(str(folder), planned(folder), journals, disk=Vanishing())
    assert contents(folder) == OLD
    gone = journals.with_name("gone")
    undo_edits(None, folder, gone)
    apply_edits(str(folder), planned(folder), gone)
    assert contents(folder) == NEW


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["empty", "missing"])
def test_journal_that_a_crash_has_damaged_does_not_stop_other_changes(
    plant: Plant, journals: Path, damage: str
) -> None:
    folder = plant(OLD)
    torn = Path(apply_edits(str(folder), planned(folder), journals).journal)
    undo_edits(torn, "", None)
    (torn / "state").write_text("preparing")
    (torn / "journal.json").write_text("") if damage == "empty" else (torn / "journal.json").unlink()
    apply_edits(str(folder), planned(folder, new=b"other"), journals)
    os.utime(torn / "state")  # the last one
    undo_edits(None, folder, journals)
    assert contents(folder) == OLD


def test_real_paths_are_checked_before_they_are_written(plant: Plant, journals: Path, needs_posix: None) -> None:
    folder = plant({"a": b"foo"})
    (folder.parent / "outside").write_bytes(b"foo")
    files = planned(folder)
    (folder / "a").unlink()
    (folder / "a").symlink_to("../outside")
    with pytest.raises(ConflictError) as raised:
        apply_edits(str(folder), files, journals, holds=lambda path: path.startswith(f"{folder}{os.sep}"))
    assert raised.value.paths == ("a",)
    assert (folder.parent / "outside").read_bytes() == b"foo"


def test_file_that_changes_just_before_its_rename_rolls_back(plant: Plant, journals: Path) -> None:
    class Racing(Disk):
        def step(self, name: str, path: str) -> None:
            if name == "replace" and path.endswith("d") and not written:
                written.append(Path(path).write_bytes(b"of another program"))

    written: list[int] = []
    folder = plant(OLD)
    with pytest.raises(ConflictError) as raised:
        apply_edits(str(folder), planned(folder), journals, disk=Racing())
    assert raised.value.paths == (str(folder / "d"),)
    assert contents(folder) == {**OLD, "d": b"of another program"}


def test_undo_is_refused_where_a_file_has_changed_since(plant: Plant, journals: Path) -> None:
    folder = plant(OLD)
    applied = apply_edits(str(folder), planned(folder), journals)
    plant({"d": b"changed"})
    with pytest.raises(ConflictError) as raised:
        undo_edits(applied.journal, "", None)
    assert str(raised.value) == (
        f"nothing was written, because these files have changed since the replacement: {folder / 'd'}; revert these "
        "changes and undo again, or restore the files from version control or a backup"
    )
    assert contents(folder) == {**NEW, "d": b"changed"}
    plant({"d": NEW["d"]})
    undo_edits(applied.journal, "", None)
    assert contents(folder) == OLD


@pytest.mark.posix
def test_hard_link_is_refused_unless_it_may_be_broken(plant: Plant, journals: Path) -> None:
    folder = plant({"a": b"foo"})
    os.link(folder / "a", folder.parent / "other")
    files = planned(folder)
    with pytest.raises(ConflictError, match=r"several hard links.*break_hard_links=True") as raised:
        apply_edits(str(folder), files, journals)
    assert (raised.value.reason, raised.value.paths) == ("hard_links", (str(folder / "a"),))
    assert contents(folder) == {"a": b"foo"}
    apply_edits(str(folder), files, journals, break_hard_links=True)
    assert contents(folder) == {"a": b"longer"}
    assert (folder.parent / "other").read_bytes() == b"foo"


@pytest.mark.posix
def test_undo_of_a_file_with_a_new_hard_link_names_no_option_that_undo_lacks(plant: Plant, journals: Path) -> None:
    folder = plant({"a": b"foo"})
    applied = apply_edits(str(folder), planned(folder), journals)
    os.link(folder / "a", folder.parent / "other")
    with pytest.raises(ConflictError, match=r"several hard links: .*a; delete the other links and undo again$"):
        undo_edits(applied.journal, "", None)
    (folder.parent / "other").unlink()
    undo_edits(applied.journal, "", None)
    assert contents(folder) == {"a": b"foo"}


@pytest.mark.posix
def test_symbolic_link_stays_and_its_target_is_changed_once(plant: Plant, journals: Path) -> None:
    folder = plant({"real": b"foo"})
    (folder / "link").symlink_to("real")
    plan = sync.replace("foo", "bar", cwd=folder, follow=True)
    assert len(plan) == 1
    plan.apply(journals=journals)
    assert (folder / "link").is_symlink()
    assert (folder / "real").read_bytes() == b"bar"


@pytest.mark.posix
def test_directory_that_becomes_a_link_is_not_followed(plant: Plant, journals: Path, tmp_path: Path) -> None:
    folder = plant({"sub/a": b"foo"})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a").write_bytes(b"foo")

    class Swapping(Disk):
        def step(self, name: str, path: str) -> None:
            if name == "replace":
                (folder / "sub").rename(folder / "gone")
                (folder / "sub").symlink_to(tmp_path / "elsewhere")

    plan = planned(folder)
    with pytest.raises(OSError, match=r"directory|symbolic"):
        apply_edits(str(folder), plan, journals, disk=Swapping())
    assert (tmp_path / "elsewhere/a").read_bytes() == b"foo"
    assert (folder / "gone/a").read_bytes() == b"foo"
    # The temporary file is in the directory that was moved. It is in the way of no later change, which removes it.
    shutil.copytree(folder / "gone", tmp_path / "copy")
    (folder / "sub").unlink()
    (folder / "gone").rename(folder / "sub")
    for place in (journals, tmp_path / "other journals"):
        shutil.copytree(tmp_path / "copy", folder / "sub", dirs_exist_ok=True)
        apply_edits(str(folder), plan, place)
        assert (folder / "sub/a").read_bytes() == b"longer"
    shutil.rmtree(journals)
    shutil.copytree(tmp_path / "copy", folder / "sub", dirs_exist_ok=True)
    apply_edits(str(folder), plan, journals)
    assert contents(folder) == {"sub/a": b"longer"}


@pytest.mark.parametrize("moment", range(1, 14))
def test_same_change_with_other_journals_meanwhile_is_a_conflict_or_done(
    plant: Plant, journals: Path, moment: int
) -> None:
    class Meeting(FailingDisk):
        def step(self, name: str, path: str) -> None:
            self.steps += 1
            if self.steps == moment:
                apply_edits(str(folder), files, journals / "other")

    folder = plant(OLD)
    files, disk = planned(folder), Meeting(0)
    try:
        apply_edits(str(folder), files, journals / "own", disk=disk)
    except ConflictError as error:
        assert error.reason == "changed"  # noqa: PT017 - either outcome is right
    assert disk.steps >= moment
    assert contents(folder) in (OLD, NEW)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has extended attributes")
def test_extended_attributes_are_kept(plant: Plant, journals: Path) -> None:
    folder = plant({"a": b"foo"})
    os.setxattr(folder / "a", "user.note", b"kept")
    applied = apply_edits(str(folder), planned(folder), journals)
    assert os.getxattr(folder / "a", "user.note") == b"kept"
    undo_edits(applied.journal, "", None)
    assert os.getxattr(folder / "a", "user.note") == b"kept"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files to others")
def test_owner_is_kept(plant: Plant, journals: Path) -> None:
    folder = plant({"a": b"foo"})
    os.chown(folder / "a", 1234, 5678)
    apply_edits(str(folder), planned(folder), journals)
    state = (folder / "a").stat()
    assert (state.st_uid, state.st_gid) == (1234, 5678)


def test_second_apply_waits_for_the_first_and_sees_its_changes(plant: Plant, journals: Path) -> None:
    folder = plant(OLD)
    first, second = planned(folder), planned(folder, new=b"other")
    inside, go = threading.Event(), threading.Event()

    class Slow(Disk):
        def step(self, name: str, path: str) -> None:
            inside.set()
            assert go.wait(30)

    thread = threading.Thread(target=lambda: apply_edits(str(folder), first, journals, disk=Slow()))
    thread.start()
    try:
        assert inside.wait(30)
        refused: list[str] = []

        def apply_second() -> None:
            try:
                apply_edits(str(folder), second, journals)
            except ConflictError as error:
                refused.append(error.reason)

        other = threading.Thread(target=apply_second)
        other.start()
    finally:
        go.set()
        thread.join()
    other.join()
    assert refused == ["changed"]
    assert contents(folder) == NEW


def test_other_plan_is_refused_while_an_interrupted_one_is_unfinished(plant: Plant, journals: Path) -> None:
    folder = plant(OLD)
    applied = apply_edits(str(folder), planned(folder), journals)
    plant({"a.txt": OLD["a.txt"]})
    JournalFolder(Path(applied.journal)).mark("turning")  # as after a kill
    other = planned(folder, old=b"two", new=b"2")
    with pytest.raises(ConflictError, match=r"undo it first: undo\(journal='") as raised:
        apply_edits(str(folder), other, journals)
    assert (raised.value.reason, raised.value.journal) == ("unfinished", applied.journal)
    undo_edits(None, folder, journals)
    assert contents(folder) == OLD
    apply_edits(str(folder), other, journals)


@pytest.mark.slow
def test_old_journals_are_deleted(plant: Plant, journals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripwrap._edits.journal.KEPT_JOURNALS", 3)
    folder = plant({"a": b"1"})
    for number in range(1, 6):
        apply_edits(str(folder), planned(folder, b"%d" % number, b"%d" % (number + 1)), journals)
    kept = Journals(journals).all()
    assert len(kept) == 3
    os.utime(kept[1].path / "state", (1, 1))
    apply_edits(str(folder), planned(folder, b"6", b"7"), journals)
    assert kept[1] not in Journals(journals).all()


def replace_and_apply(folder: Path, old: str, new: str, journals: Path) -> AppliedEdits:
    return sync.replace(old, new, cwd=folder).apply(journals=journals)


def test_failed_undo_of_an_older_change_does_not_make_it_the_last(plant: Plant, journals: Path) -> None:
    """The last change is the one that was applied last, whatever was done with journals since."""
    folder = plant({"a": "foo", "b": "foo"})
    first = replace_and_apply(folder, "foo", "bar", journals)
    replace_and_apply(folder, "bar", "baz", journals)
    for _ in range(2):
        with pytest.raises(ConflictError):
            sync.undo(first.journal)
    sync.undo(cwd=folder, journals=journals)
    assert contents(folder) == {"a": b"bar", "b": b"bar"}
    sync.undo(cwd=folder, journals=journals)
    assert contents(folder) == {"a": b"foo", "b": b"foo"}


@pytest.mark.parametrize("when", [1, 10**9, 10**11])
def test_clock_does_not_decide_what_is_undone(plant: Plant, journals: Path, when: int) -> None:
    """A clock stepped back, or was wrong by years, when the second plan was applied."""
    folder = plant({"a": "foo", "b": "one"})
    replace_and_apply(folder, "foo", "bar", journals)
    second = replace_and_apply(folder, "one", "two", journals)
    third = replace_and_apply(folder, "two", "three", journals)
    os.utime(Path(second.journal) / "state", (when, when))
    os.utime(Path(third.journal) / "state", (when - 1, when - 1))
    for expected in ("two", "one"):
        sync.undo(cwd=folder, journals=journals)
        assert contents(folder) == {"a": b"bar", "b": expected.encode()}
    sync.undo(cwd=folder, journals=journals)
    assert contents(folder) == {"a": b"foo", "b": b"one"}


@pytest.mark.parametrize(("searched", "undone"), [("link", "folder"), ("folder", "link"), ("link/b", "folder/b/")])
def test_undo_finds_the_directory_by_each_of_its_paths(
    plant: Plant, journals: Path, searched: str, undone: str, needs_posix: None
) -> None:
    """The directory was searched through a link, or is named through one."""
    folder = plant({"a": "foo", "b/b": "foo"})
    (folder.parent / "link").symlink_to(folder.name)
    searched, undone = (name.replace("folder", folder.name) for name in (searched, undone))
    sync.replace("foo", "bar", cwd=folder.parent / searched).apply(journals=journals)
    with pytest.raises(FileNotFoundError, match="no replacement to undo"):
        sync.undo(cwd=folder.parent, journals=journals)
    sync.undo(cwd=f"{folder.parent}/{undone}", journals=journals)
    assert contents(folder) == {"a": b"foo", "b/b": b"foo"}


@pytest.mark.parametrize("name", ["shopb", "no/such", ""])
def test_undo_of_a_directory_says_how_to_pass_it(name: str, plant: Plant, journals: Path, monkeypatch: Any) -> None:
    """The first argument of `undo()` is a journal, and not the directory that was searched."""
    monkeypatch.chdir(plant({"shopb/a": "foo"}))
    with pytest.raises(FileNotFoundError, match=rf"pass the path in AppliedEdits\.journal, or cwd='{name}'"):
        sync.undo(name, journals=journals)


@pytest.mark.parametrize("count", [3, 6])
def test_equal_changes_are_undone_one_by_one(plant: Plant, journals: Path, count: int) -> None:
    """Foo→bar, bar→foo, foo→bar are three changes, although two of them have the same edits."""
    folder = plant({"a": "foo x", "b": "foo"})
    pairs = [("foo", "bar"), ("bar", "foo")] * 3
    applied = [replace_and_apply(folder, *pair, journals) for pair in pairs[:count]]
    assert len({one.journal for one in applied}) == count
    for old, _ in reversed(pairs[:count]):
        assert sync.undo(cwd=folder, journals=journals).undone
        assert contents(folder) == {"a": f"{old} x".encode(), "b": old.encode()}
    with pytest.raises(FileNotFoundError, match="no replacement to undo"):
        sync.undo(cwd=folder, journals=journals)


def test_plan_without_edits_is_undone_without_a_journal(plant: Plant, journals: Path) -> None:
    plan = sync.replace("none of them", "", cwd=plant(OLD))
    assert plan.apply(journals=journals).files == ()
    undone = plan.undo(journals=journals)
    assert (undone.undone, undone.files, undone.root) == (True, (), plan.root)
    assert not journals.exists()


def test_plan_undoes_its_last_change(plant: Plant, journals: Path) -> None:
    """Equal plans undo their changes from the last to the first, also if another program restored it."""
    folder = plant({"a": "foo"})
    plan = sync.replace("foo", "bar", cwd=folder)
    first = plan.apply(journals=journals).journal
    plant({"a": "foo"})  # another program restores the file
    second = plan.apply(journals=journals).journal
    assert plan.apply(journals=journals).journal == second
    assert plan.undo(journals=journals).journal == second
    plant({"a": "bar"})
    assert plan.undo(journals=journals).journal == first
    assert contents(folder) == {"a": b"foo"}
    assert plan.apply(journals=journals).journal in (first, second)
    assert plan.undo(journals=journals).undone


def test_change_that_is_completed_after_an_interruption_is_the_last(plant: Plant, journals: Path) -> None:
    """Another change was applied between the interruption and the completion."""
    folder = plant({"a": "foo", "b": "foo", "c": "one"})
    plan = sync.replace("foo", "bar", cwd=folder)
    interrupted = plan.apply(journals=journals)
    JournalFolder(Path(interrupted.journal)).mark("turning")  # as after a kill
    plant({"a": "foo"})
    replace_and_apply(folder, "one", "two", journals)
    plan.apply(journals=journals)
    sync.undo(cwd=folder, journals=journals)
    assert contents(folder) == {"a": b"foo", "b": b"foo", "c": b"two"}


@pytest.mark.parametrize("again", [False, True], ids=["new plan", "undone plan"])
def test_change_that_is_being_prepared_is_the_last(plant: Plant, journals: Path, again: bool) -> None:
    """After a kill, `undo()` takes the plan that was being applied, and not the one before."""

    class Watching(Disk):
        def step(self, name: str, path: str) -> None:
            last.append((Journals(journals).last(str(folder)).path.name, Journals(journals).all()[0].state))

    last: list[tuple[str, str | None]] = []
    folder = plant({"a": "foo", "c": "one"})
    files = planned(folder)
    if again:
        undo_edits(apply_edits(str(folder), files, journals).journal, "", None)
    replace_and_apply(folder, "one", "two", journals)
    applied = apply_edits(str(folder), files, journals, disk=Watching())
    assert {state for _, state in last} == {"preparing", "turning"}
    assert {name for name, _ in last} == {Path(applied.journal).name}


def test_journals_of_earlier_versions_have_no_number(plant: Plant, journals: Path) -> None:
    """Their changes come before all others, in the order of their times."""
    folder = plant({"a": "one"})
    for at, (old, new) in enumerate((("one", "two"), ("two", "three"), ("three", "four"))):
        state = Path(replace_and_apply(folder, old, new, journals).journal) / "state"
        if at < 2:
            state.write_text("applied")
            os.utime(state, (10**10 + at, 10**10 + at))
    for expected in (b"three", b"two", b"one"):
        sync.undo(cwd=folder, journals=journals)
        assert contents(folder) == {"a": expected}


def test_damaged_journal_is_a_clear_error(plant: Plant, journals: Path) -> None:
    folder = plant({"a": b"foo"})
    applied = apply_edits(str(folder), planned(folder), journals)
    (Path(applied.journal) / "journal.json").write_text("{}")
    with pytest.raises(ValueError, match="is damaged, or from a later version"):
        undo_edits(applied.journal, "", None)
    for other in (journals / "none", folder):
        with pytest.raises(FileNotFoundError, match="there is no journal"):
            undo_edits(other, "", None)
    assert not (folder.parent / "lock").exists()


@pytest.mark.slow
@pytest.mark.anyio
async def test_cancelled_apply_rolls_back_before_the_first_rename(plant: Plant, journals: Path) -> None:
    folder = plant(OLD)
    plan = await ripwrap.replace("foo", "longer", cwd=folder, text=True)
    with anyio.move_on_after(0) as scope:
        await plan.apply(journals=journals)
    assert scope.cancelled_caught
    assert contents(folder) == OLD
    applied = await plan.apply(journals=journals)
    assert contents(folder) == NEW
    undone = await plan.undo(journals=journals)
    assert (undone.journal, contents(folder)) == (applied.journal, OLD)


@pytest.mark.anyio
async def test_apply_that_is_cancelled_during_the_renames_completes(
    plant: Plant, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = plant(OLD)
    plan = await ripwrap.replace("foo", "longer", cwd=folder, text=True)
    scope = anyio.CancelScope()

    def step(_: Disk, name: str, path: str) -> None:
        if name == "replace":
            anyio.from_thread.run_sync(scope.cancel)

    monkeypatch.setattr(Disk, "step", step)
    with scope:
        await plan.apply(journals=journals)
    assert scope.cancelled_caught
    assert contents(folder) == NEW


def test_timeout_of_the_blocking_twin_changes_nothing(plant: Plant, journals: Path) -> None:
    folder = plant(OLD)
    plan = sync.replace("foo", "longer", cwd=folder, text=True)
    error = "the call took more than timeout=0 seconds, and no file was changed; allow more time"
    with pytest.raises(TimeoutError, match=f"^{error}$"):
        plan.apply(journals=journals, timeout=0)
    assert contents(folder) == OLD
    done = plan.apply(journals=journals)
    with pytest.raises(TimeoutError, match=f"^{error}$"):
        sync.undo(done.journal, journals=journals, timeout=0)
    assert contents(folder) == NEW


def run_killed(action: str, plan: Path, journals: Path, number: int) -> int:
    """Run `support/killed.py`, and return the number of events, or 0 if it was killed."""
    ended = plan.parent / "ended"
    ended.unlink(missing_ok=True)
    arguments = ["-c", action, *map(str, (plan, journals, number, ended))]
    done = forks.run(arguments, Path(killed.__file__).read_text("utf-8"), cwd=plan.parent, env=os.environ)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return int(ended.read_text()) if ended.exists() else 0


def moments(events: int, number: int) -> Iterator[int]:
    """Yield numbers of events from all parts of a run, and two from the part with the renames, near the end."""
    spread = {1 + (events - 1) * step // (number - 1) for step in range(number)}
    yield from sorted({*spread, events * 85 // 100, events * 92 // 100})


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.usefixtures("fork_server")
@pytest.mark.parametrize("action", ["apply", "undo"])
def test_killed_at_any_moment_the_tree_becomes_wholly_old_or_wholly_new(
    plant: Plant, tmp_path: Path, action: str
) -> None:
    folder, journals, saved = plant(OLD), tmp_path / "journals", tmp_path / "plan.json"
    plan = sync.replace("foo", "longer", cwd=folder, text=True)
    saved.write_text(plan.model_dump_json())
    if action == "undo":
        plan.apply(journals=journals)
    for _ in range(2):  # the first run finds no older journal, so it has fewer events than the others
        events = run_killed(action, saved, journals, 0)
        (plan.undo if action == "apply" else plan.apply)(journals=journals)
    assert events > 40
    mixed = 0
    for number in moments(events, times(4, 100)):
        then = "apply" if number % 2 else "undo"
        (plan.undo if action == "apply" else plan.apply)(journals=journals)
        assert run_killed(action, saved, journals, number) == 0
        held = contents(folder)
        mixed += any(held[name] == OLD[name] for name in OLD) and any(held[name] == NEW[name] for name in NEW)
        assert all(held[name] in (OLD[name], NEW[name]) for name in OLD)
        (plan.apply if then == "apply" else plan.undo)(journals=journals)
        assert contents(folder) == (NEW if then == "apply" else OLD), number
    assert mixed


def test_generated_trees_are_the_same_after_apply_and_undo(plant: Plant, tmp_path: Path, journals: Path) -> None:
    pieces = [b"foo", b"bar", b"\n", b"\r\n", b" ", b"\xff", "é".encode(), b"f", b"\t"]
    for seed in range(times(8, 1000)):
        draw = random.Random(seed)
        folder = tmp_path / str(seed)
        for number in range(draw.randint(1, 6)):
            path = folder / "/".join(draw.choice(["x", "ü", "a b"]) for _ in range(draw.randint(1, 3))) / str(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            mark = draw.choice([b"", b"", b"\xef\xbb\xbf"])
            path.write_bytes(mark + b"".join(draw.choices(pieces, k=draw.randint(0, 60))))
            path.chmod(draw.choice([0o644, 0o755, 0o400, 0o666]) if os.name == "posix" else 0o666)
        old, before = contents(folder), modes(folder)
        new = draw.choice(["", "FOO", "$0$0", "[$1]", "a\nb"])
        plan = sync.replace("f(oo)", new, cwd=folder)
        plan.apply(journals=journals)
        text = new.replace("$0", "foo").replace("$1", "oo").encode()
        assert contents(folder) == {name: content.replace(b"foo", text) for name, content in old.items()}
        assert sync.ReplacePlan.model_validate_json(plan.model_dump_json()) == plan
        plan.undo(journals=journals) if plan else None
        assert contents(folder) == old
        assert modes(folder) == before


def forged(journals: Path, applied: AppliedEdits, path: str, root: str = "") -> Path:
    """Write a journal as an attacker would write it: a journal of these edits, but of another file."""
    known = JournalFolder(Path(applied.journal)).load()
    files = tuple(file.model_copy(update={"path": path}) for file in known.files)
    made = known.model_copy(update={"files": files, "root": root or known.root})
    folder = Journals(journals).folder(made.id)
    folder.save(made, "applied")
    return folder.path


@pytest.mark.parametrize("by_path", [False, True])
@pytest.mark.parametrize("spelling", ["absolute", "dots", "relative", "link"])
def test_undo_of_a_foreign_journal_stays_in_its_directory(
    spelling: str, by_path: bool, plant: Plant, journals: Path, needs_posix: None
) -> None:
    folder, outside = plant({"a": b"foo", "b/c": b"foo"}), journals.parent / "outside"
    applied = apply_edits(str(folder), planned(folder)[:1], journals)
    outside.mkdir()
    (outside / "x").write_bytes(b"longer")
    (folder / "link").symlink_to(outside)
    path = {
        "absolute": str(outside / "x"),
        "dots": f"{folder}/b/../../outside/x",
        "relative": os.path.relpath(outside / "x"),
        "link": str(folder / "link/x"),
    }[spelling]
    hostile = journals.parent / "hostile"
    journal = forged(hostile, applied, path)
    with pytest.raises(PermissionError, match="names a file outside of"):
        undo_edits(journal if by_path else None, folder, hostile)
    assert (outside / "x").read_bytes() == b"longer"
    assert not [*outside.glob(".ripwrap-*")]


def test_files_outside_of_the_searched_directory_can_be_restored(
    plant: Plant, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = plant({"in/a": b"x", "out/b": b"foo\n"})
    plan = sync.replace("foo", "bar", cwd=folder / "in", paths=folder / "out")
    applied = plan.apply(journals=journals)
    with pytest.raises(PermissionError, match="pass a directory above it as cwd="):
        sync.undo(applied.journal)
    sync.undo(applied.journal, cwd=folder)
    plan.apply(journals=journals)
    plan.undo(journals=journals)
    monkeypatch.setenv("XDG_STATE_HOME", str(journals.parent / "state"))
    monkeypatch.setenv("LOCALAPPDATA", str(journals.parent / "state"))
    plan.apply()
    sync.undo(cwd=folder / "in")
    assert (folder / "out/b").read_bytes() == b"foo\n"


@pytest.mark.parametrize("forward", [True, False])
def test_journal_with_other_edits_than_its_name_says_is_damaged(plant: Plant, journals: Path, forward: bool) -> None:
    folder = plant({"a": b"foo", "b": b"longer"})
    files = planned(folder)
    applied = apply_edits(str(folder), files, journals)
    text = (Path(applied.journal) / "journal.json").read_text()
    (Path(applied.journal) / "journal.json").write_text(text.replace(str(folder / "a"), str(folder / "b")))
    with pytest.raises(ValueError, match="is damaged"):
        apply_edits(str(folder), files, journals) if forward else undo_edits(applied.journal, folder, None)
    assert (folder / "b").read_bytes() == b"longer"


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a file belong to another user."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)


@pytest.mark.posix
@pytest.mark.parametrize("owned", [".", "..", "{id}", "{id}/journal.json", "{id}/state"])
@pytest.mark.parametrize("how", ["owner", "others"])
def test_journals_that_another_user_could_write_are_refused(
    how: str, owned: str, plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, journals = plant({"a": b"foo"}), tmp_path / "above/journals"
    files = planned(folder)
    applied = apply_edits(str(folder), files, journals)
    path = journals / owned.format(id=Path(applied.journal).name)
    if how == "owner":
        give_away(path, monkeypatch)
    else:
        path.chmod(0o777)
    with pytest.raises(PermissionError, match="another user could have written them"):
        undo_edits(applied.journal, folder, None)
    with pytest.raises(PermissionError, match="another user could have written them"):
        apply_edits(str(folder), files, journals)
    with pytest.raises((PermissionError, FileNotFoundError), match=r"another user could have|no replacement to undo"):
        undo_edits(None, folder, journals)
    assert (folder / "a").read_bytes() == b"longer"


@pytest.mark.posix
def test_journals_behind_a_link_of_another_user_are_refused(plant: Plant, journals: Path) -> None:
    folder = plant({"a": b"foo"})
    applied = apply_edits(str(folder), planned(folder), journals)
    store = journals.parent / "store"
    store.mkdir(mode=0o700)
    (store / Path(applied.journal).name).symlink_to(applied.journal)
    with pytest.raises(PermissionError, match="it is a link"):
        undo_edits(store / Path(applied.journal).name, folder, None)
    with pytest.raises(FileNotFoundError, match="no replacement to undo"):
        undo_edits(None, folder, store)
    assert (folder / "a").read_bytes() == b"longer"


@pytest.mark.posix
def test_directory_behind_a_link_is_not_deleted_as_an_old_journal(plant: Plant, journals: Path) -> None:
    folder, victim = plant({"a": b"foo"}), journals.parent / "victim"
    journals.mkdir(mode=0o700)
    victim.mkdir()
    (victim / "state").write_text("applied")
    (victim / "work").write_text("mine")
    os.utime(victim / "state", (1, 1))
    (journals / "old").symlink_to(victim)
    apply_edits(str(folder), planned(folder), journals)
    assert (victim / "work").read_text() == "mine"


@pytest.mark.posix
@pytest.mark.parametrize(
    ("named", "root", "removed"),
    [
        ("{folder}/a", "{folder}", True),
        ("{folder}/b/c", "/", True),
        ("{outside}/x", "{folder}", False),
        ("{outside}/x", "{outside}", False),
        ("{outside}/x", "/", False),
        ("{folder}/../outside/x", "{folder}", False),
        ("{folder}/link/x", "{folder}", False),
        ("{folder}/link/x", "{outside}", False),
        ("{folder}side/x", "{folder}", False),
        ("outside/x", "{folder}", False),
    ],
)
def test_apply_removes_no_temporary_file_that_another_journal_names_elsewhere(
    plant: Plant, journals: Path, named: str, root: str, removed: bool
) -> None:
    """Whoever made the directory of the journals may have put a journal there of a change that was never finished."""
    folder, outside = plant({"a": b"foo", "b/c": b"foo"}), journals.parent / "outside"
    beside = folder.with_name(f"{folder.name}side")
    for one in (outside, beside):
        one.mkdir()
        (one / "x").write_bytes(b"foo")
    (folder / "link").symlink_to(outside)
    places = {"folder": folder, "outside": outside}
    path = named.format(**places)
    journal = Journal(root=root.format(**places), created=0, files=(JournalFile(path=path, old="0", edits=()),))
    foreign = Journals(journals).folder(journal.id)
    journals.mkdir(mode=0o700)
    foreign.save(journal, "preparing", 1)
    victim = (journals.parent / path).parent / foreign.temporary(0)
    victim.write_bytes(b"")
    apply_edits(str(folder), planned(folder), journals)
    assert victim.exists() is not removed
    assert foreign.exists is not removed


@pytest.mark.posix
@pytest.mark.timeout(10)
def test_pipe_in_place_of_a_file_does_not_block_a_change(plant: Plant, journals: Path) -> None:
    folder = plant({"a": b"foo", "b": b"foo"})
    files = planned(folder)
    (folder / "b").unlink()
    os.mkfifo(folder / "b")
    with pytest.raises(ConflictError):
        apply_edits(str(folder), files, journals)
    assert (folder / "a").read_bytes() == b"foo"

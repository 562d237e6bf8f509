"""Write changed files all or none, with a journal on disk that says how to complete or undo an interrupted change.

A change gives each of its files a new content. The journal stores the hashes of the old and the new content, and the
edits between them. So ripwrap can tell if a file is old (has the old content), is new (has the new content), or was
changed by another program. `Turn` makes all files new, or all files old:

1. With the lock held, read each file. If a file needs its other content, write this content to a temporary file in the
   same directory. If any file is neither old nor new, remove the temporary files and raise; no file was changed.
2. Sync the temporary files and the journal.
3. Rename each temporary file to its target. On an error, restore the files that were already renamed.
4. Sync the directories, and mark the journal as finished.

If the process is killed at any moment, each file is either old or new. A second run of `Turn`, in either direction,
makes all files new, or all files old. It also removes the temporary files, whose names follow from the journal.
"""

import errno
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypeAlias

from pydantic import ValidationError

from ripwrap._system.concurrency import CANCELLED, ProcessLock, defer_interrupts, hold_lock, opened, replace_file
from ripwrap._system.safe_write import GONE, Disk, FileState
from ripwrap._system.windows import IS_WINDOWS
from ripwrap._text import FsPath, named, plural, shown
from ripwrap.binary.cache import why_untrusted, why_writable
from ripwrap.edits import AppliedEdits, FileEdits
from ripwrap.errors import ConflictError, ConflictReason, DiskFullError, Hint, HintedText
from ripwrap.models import Model
from ripwrap.options import StrPath

JournalProgress: TypeAlias = Literal["preparing", "turning", "applied", "undone"]
"""State of a journal: `preparing` (no file has changed yet), `turning` (some files may have the new content, and other
files the old content), `applied` (all files have the new content) or `undone` (all files have the old content)."""

UNDOABLE = ("applied", "turning", "preparing")
"""States of a journal that can be undone."""

KEPT_JOURNALS = 50
"""Maximum number of finished journals that are kept. After each change, the oldest finished journals are deleted."""

KEPT_SECONDS = 30 * 24 * 3600.0
"""Maximum age of a finished journal, in seconds. After each change, finished journals of a higher age are deleted."""

_JOURNAL = "journal.json"
_STATE = "state"


class JournalFile(Model, frozen=True, ser_json_bytes="base64", val_json_bytes="base64"):
    """File that a journal describes."""

    path: FsPath
    old: str
    new: str = ""
    times: tuple[int, int] = (0, 0)
    edits: tuple[tuple[int, bytes, bytes], ...]

    def apply(self, content: bytes, *, forward: bool) -> bytes:
        """Return the new content, given the old content."""
        pieces: list[bytes] = []
        done = shift = 0
        for start, old, new in self.edits:
            before, after = (old, new) if forward else (new, old)
            at = start if forward else start + shift
            pieces += content[done:at], after
            done = at + len(before)
            shift += len(new) - len(old)
        return b"".join((*pieces, content[done:]))


class Journal(Model, frozen=True):
    """Journal of a change of several files, from which the change can be completed or undone."""

    version: Literal[1] = 1
    root: FsPath
    created: float
    files: tuple[JournalFile, ...]

    @classmethod
    def of(cls, root: str, files: Sequence[FileEdits]) -> Self:
        """Return a new journal, for these edits of files below `root`."""
        return cls(
            root=root,
            created=time.time(),
            files=tuple(
                JournalFile(
                    path=os.path.realpath(os.path.join(root, file.path)),
                    old=file.sha256,
                    edits=tuple((edit.start, file.encode(edit.before), file.encode(edit.after)) for edit in file.edits),
                )
                for file in files
            ),
        )

    @property
    def id(self) -> str:
        """Hash of the change; the same edits of the same files have the same hash."""
        known = hashlib.sha256()
        with defer_interrupts():  # pydantic would raise another error in its place
            for file in self.files:
                known.update(file.model_copy(update={"new": "", "times": (0, 0)}).model_dump_json().encode())
        return known.hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class JournalFolder:
    """Directory of a journal."""

    path: Path

    def temporary(self, number: int) -> str:
        """Return the name of the temporary file for the file with this number; no other journal has the same name."""
        known = hashlib.sha256(os.fsencode(os.path.realpath(self.path))).hexdigest()
        return f".ripwrap-{known[:12]}-{number}.tmp"

    @property
    def exists(self) -> bool:
        """True if the directory has a journal."""
        return (self.path / _JOURNAL).is_file()

    @property
    def state(self) -> JournalProgress | None:
        """State of the journal; `None` if there is no journal. `turning` also if the file with the state is damaged."""
        try:
            text = (self.path / _STATE).read_text("ascii").partition(" ")[0]
        except (FileNotFoundError, NotADirectoryError):
            return None
        states: tuple[JournalProgress, ...] = ("preparing", "turning", "applied", "undone")
        for state in states:
            if text == state:
                return state
        return "turning"  # the file is damaged; assume that files were renamed

    @property
    def number(self) -> int:
        """Number of the change, which is higher for a later change; 0 if the file with the state does not tell it."""
        with suppress(OSError, ValueError):
            return int((self.path / _STATE).read_text("ascii").partition(" ")[2] or 0)
        return 0

    def load(self) -> Journal:
        """Return the journal."""
        for path in (self.path, self.path / _JOURNAL, self.path / _STATE):
            if reason := why_writable(path):
                raise _untrusted_error(reason, path)
        raw = (self.path / _JOURNAL).read_bytes()
        try:
            known = Journal.model_validate_json(raw)
        except ValidationError as error:
            raise self._damaged(plural(error.error_count(), "error")) from error
        if known.id != self.path.name.partition("-")[0]:
            raise self._damaged("its edits are not those that its name stands for")
        return known

    def _damaged(self, what: str) -> ValueError:
        return ValueError(
            f"the journal {shown(str(self.path))} is damaged, or from a later version of ripwrap ({what}); update "
            "ripwrap, or restore the files from a backup"
        )

    def save(self, journal: Journal, state: JournalProgress, number: int | None = None, *, sync: bool = True) -> None:
        """Write the journal and then its state; with `sync`, wait until both are on the disk."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with defer_interrupts():  # as in `Journal.id`
            self._write(_JOURNAL, journal.model_dump_json().encode(), sync=sync)
        self.mark(state, number, sync=sync)

    def mark(self, state: JournalProgress, number: int | None = None, *, sync: bool = True) -> None:
        """Write the state and the number of the change; with `sync`, wait until they are on the disk."""
        self._write(_STATE, f"{state} {self.number if number is None else number}".encode(), sync=sync)
        if sync and not IS_WINDOWS:
            with opened(lambda: os.open(self.path, os.O_RDONLY)) as folder:
                os.fsync(folder)

    def _write(self, name: str, content: bytes, *, sync: bool) -> None:
        with defer_interrupts():
            descriptor, temporary = tempfile.mkstemp(prefix=name, dir=self.path)
            try:
                with open(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    if sync:
                        os.fsync(descriptor)
            except OSError as error:  # the error for a full disk has no path
                with suppress(OSError):
                    os.unlink(temporary)
                error.filename = error.filename or temporary
                raise
            replace_file(Path(temporary), self.path / name)

    def delete(self) -> None:
        """Delete the journal; files that cannot be deleted stay."""
        # Delete the state first: a directory without this file does not count as a journal.
        with suppress(OSError):
            for name in (_STATE, *os.listdir(self.path)):
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()


class Journals:
    """Directory of the journals of a user."""

    def __init__(self, path: StrPath | None = None) -> None:
        """Set the directory; `None` is `ripwrap/replace` in the user's state directory."""
        self.path: Path = _default_place() if path is None else Path(os.path.abspath(path))

    @property
    def is_default(self) -> bool:
        """True for `ripwrap/replace` in the user's state directory."""
        return self.path == _default_place()

    def check(self) -> None:
        """Check that only this user can add journals."""
        if reason := why_untrusted(self.path):
            raise _untrusted_error(reason, self.path)

    def folder(self, name: str) -> JournalFolder:
        """Return the directory of the journal with this id."""
        return JournalFolder(self.path / name)

    def all(self) -> list[JournalFolder]:
        """Return the directories of all journals of this user; that of the last change is first.

        The order is that of the numbers, because a clock can step back, and a refused `undo()` writes the state of an
        older change.
        """
        with suppress(FileNotFoundError):
            aged: list[tuple[int, int, JournalFolder]] = []
            for entry in os.scandir(self.path):
                with suppress(OSError):
                    if why_writable(Path(entry.path)) or why_writable(Path(entry.path, _STATE)):
                        continue
                    folder, state = JournalFolder(Path(entry.path)), os.stat(os.path.join(entry.path, _STATE))
                    aged.append((folder.number, state.st_mtime_ns, folder))
            return [folder for *_, folder in sorted(aged, key=lambda one: one[:2], reverse=True)]
        return []

    def latest(self, name: str) -> JournalFolder:
        """Return the directory of the last of the changes with this id that can be undone, or otherwise of the last."""
        known = [self.folder(name), *(self.folder(f"{name}-{number}") for number in self._repeats(name))]
        return max(known, key=lambda one: (one.state in UNDOABLE, one.number))

    def new(self, name: str) -> JournalFolder:
        """Return a directory for another change with this id."""
        return self.folder(f"{name}-{max(self._repeats(name), default=1) + 1}")

    def _repeats(self, name: str) -> list[int]:
        with suppress(FileNotFoundError):
            found = (one.removeprefix(f"{name}-") for one in os.listdir(self.path) if one.startswith(f"{name}-"))
            return [int(one) for one in found if one.isdecimal()]
        return []

    def last(self, root: str) -> JournalFolder:
        """Return the journal of the last change that can be undone, for the searched directory `root`."""
        real = os.path.realpath(root)
        for folder in self.all():
            with suppress(OSError, ValueError):  # skip a damaged journal; it may belong to another directory
                if folder.state in UNDOABLE and os.path.realpath(folder.load().root) == real:
                    return folder
        place = shown(str(self.path))
        raise FileNotFoundError(
            f"there is no replacement to undo in {shown(root)}: {place} has no journal for this directory that can be "
            "undone; pass the directory that was searched"
        )

    def prune(self) -> None:
        """Delete finished journals older than `KEPT_SECONDS`; of the others, keep the latest `KEPT_JOURNALS`."""
        oldest = time.time() - KEPT_SECONDS
        finished = [folder for folder in self.all() if folder.state in ("applied", "undone")]
        for number, folder in enumerate(finished):
            modified = oldest
            with suppress(OSError):
                modified = (folder.path / _STATE).stat().st_mtime
            if number >= KEPT_JOURNALS or modified < oldest:
                folder.delete()


def _default_place() -> Path:
    from platformdirs import user_state_path  # imported late, because searches do not need it

    return Path(os.path.abspath(user_state_path("ripwrap", appauthor=False) / "replace"))


def _untrusted_error(reason: str, path: Path) -> PermissionError:
    text = HintedText(
        f"the journals are not used, because another user could have written them ({reason}); pass a directory of your "
        "own as ",
        Hint("journals"),
    )
    return PermissionError(errno.EPERM, text, str(path))


def apply_edits(
    root: str,
    files: Sequence[FileEdits],
    journals: StrPath | None,
    *,
    break_hard_links: bool = False,
    holds: Callable[[str], bool] | None = None,
    disk: Disk | None = None,
) -> AppliedEdits:
    """Write the new contents of files, all or none. Without files, write nothing, not even a journal."""
    if not files:
        return AppliedEdits(journal="", root=root, files=())
    store, disk = Journals(journals), disk or Disk()
    journal = Journal.of(root, files)
    # Check the real paths, because these are written. Links in them are not followed later.
    if holds and (led := [one.path for one, file in zip(files, journal.files, strict=True) if not holds(file.path)]):
        raise _changed_error(led, forward=True)
    with _full_disk_told("apply the plan"), _locked(store):
        folder = store.latest(journal.id)
        if folder.state == "applied" and _is_reverted(folder.load(), disk):  # by another change, which comes between
            folder = store.new(journal.id)
        _check_unfinished(store, folder, journal, disk)
        if folder.state is not None:  # the same edits were applied before, perhaps only to some files
            journal = folder.load()
        number = max((folder.number for folder in store.all()), default=0) + 1
        Turn(folder, journal, disk, forward=True, number=number, break_hard_links=break_hard_links).run()
        store.prune()
    return _result(folder, journal, undone=False)


def journal_path(root: str, files: Sequence[FileEdits], journals: StrPath | None) -> str:
    """Return the path of the journal of these edits: of the last change by them that can be undone; empty for none."""
    return str(Journals(journals).latest(Journal.of(root, files).id).path) if files else ""


def undo_edits(
    journal: StrPath | None,
    cwd: StrPath | None,
    journals: StrPath | None,
    *,
    planned: bool = False,
    disk: Disk | None = None,
) -> AppliedEdits:
    """Restore the old contents of the files of a journal, all or none.

    A journal says which files to write. So a journal that is not in the user's state directory may only name files
    below the directory that was searched, or below `cwd`.
    """
    cwd = os.curdir if cwd is None else cwd
    if planned and not journal:
        return AppliedEdits(journal="", root=os.fspath(cwd), files=(), undone=True)
    store = Journals(os.path.dirname(os.path.abspath(journal)) if journal is not None else journals)
    if journal is not None and not JournalFolder(Path(journal)).exists:
        name = os.fspath(journal)
        said = f"there is no journal {shown(name)}; pass the path in AppliedEdits.journal"
        raise FileNotFoundError(
            HintedText(said, (", or ", Hint("cwd", name), " to undo the last replacement in a directory"))
        )
    with _full_disk_told("undo"), _locked(store):
        folder = store.last(os.path.abspath(cwd)) if journal is None else JournalFolder(Path(os.path.abspath(journal)))
        known = folder.load()
        if not (planned or store.is_default):
            _check_inside(folder, known, known.root, cwd)
        if _is_complete(known):
            Turn(folder, known, disk or Disk(), forward=False).run()
        else:  # no file was renamed, so no file has a new content
            _clean(folder, known, disk or Disk())
            folder.delete()
    return _result(folder, known, undone=True)


def _check_inside(folder: JournalFolder, journal: Journal, *roots: StrPath) -> None:
    """Raise `PermissionError` if a journal names a file outside of these directories."""
    trees = [Path(os.path.realpath(tree)) for tree in roots]
    for file in journal.files:
        # The path is real, as in a journal of ripwrap, so no link leads out of the tree; `Disk` follows none, either.
        if file.path != os.path.realpath(file.path) or not any(map(Path(file.path).is_relative_to, trees)):
            said = (
                f"nothing was written, because the journal {shown(str(folder.path))} names a file outside of "
                f"{shown(journal.root)}; if the file was replaced there, pass a directory above it as "
            )
            raise PermissionError(errno.EPERM, HintedText(said, Hint("cwd")), file.path)


def _result(folder: JournalFolder, journal: Journal, *, undone: bool) -> AppliedEdits:
    files = tuple(file.path for file in journal.files)
    return AppliedEdits(journal=str(folder.path), root=journal.root, files=files, undone=undone)


@contextmanager
def _full_disk_told(again: str) -> Generator[None]:
    """Raise `DiskFullError` if the disk is full; `again` names what to do again when it has room."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        notes: list[str] = getattr(error, "__notes__", [])
        written = "not all files were restored" if notes else "nothing was written"
        why = "the disk is full" if error.errno == errno.ENOSPC else "the quota of the disk is used up"
        text = f"{written}, because {why}; free some space and {again} again"
        told = DiskFullError(error.errno, text, error.filename)
        for note in notes:
            told.add_note(note)
        raise told from error


@contextmanager
def _locked(store: Journals) -> Generator[None]:
    """Hold the lock of all journals, so that only one process writes files at a time."""
    store.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    store.check()
    with hold_lock(ProcessLock(store.path / "lock"), _check_cancelled):
        yield


def _check_cancelled() -> None:
    CANCELLED.get().check(", and no file was changed")


def _check_unfinished(store: Journals, own: JournalFolder, change: Journal, disk: Disk) -> None:
    """Remove the temporary files of other changes that were interrupted before their first rename.

    A journal in a directory that the caller chose may name any file, so there only those below the root are removed.
    The caller holds the lock, so the processes that wrote the unfinished journals have ended.
    """
    paths = {file.path for file in change.files}
    for folder in store.all():
        state = folder.state
        if folder.path == own.path or state not in ("preparing", "turning"):
            continue
        try:
            journal = folder.load()
        except (OSError, ValueError):  # the system crashed before the journal was synced, so no file was renamed
            continue
        if not _is_complete(journal):
            with suppress(OSError):  # the next change tries again
                if not store.is_default:
                    _check_inside(folder, journal, change.root)
                _clean(folder, journal, disk)
                folder.delete()
        elif both := sorted(paths & {file.path for file in journal.files}):
            said = f"an interrupted replacement may have changed some of these files: {named(both)}; undo it first"
            raise ConflictError(
                HintedText(said, (": ", Hint("journal", str(folder.path), kind="call", target="undo"))),
                paths=both,
                reason="unfinished",
                journal=str(folder.path),
            )


def _is_reverted(journal: Journal, disk: Disk) -> bool:
    """Return True if a file has its old content again."""
    for file in journal.files:
        with suppress(OSError):
            if hashlib.sha256(disk.read(file.path)[0]).hexdigest() == file.old:
                return True
    return False


def _is_complete(journal: Journal) -> bool:
    """Return True if the journal has the hashes of all new contents. Before it has them, no file is renamed."""
    return all(file.new for file in journal.files)


def _clean(folder: JournalFolder, journal: Journal, disk: Disk) -> None:
    """Remove all temporary files of a journal."""
    for number, file in enumerate(journal.files):
        disk.remove_beside(file.path, folder.temporary(number))


class Turn:
    """One run that writes the new or the old contents of all files of a journal.

    On an error, all files get back the contents that they had before the run.
    """

    def __init__(
        self,
        folder: JournalFolder,
        journal: Journal,
        disk: Disk,
        *,
        forward: bool,
        number: int | None = None,
        break_hard_links: bool = False,
    ) -> None:
        """Set the journal and the direction."""
        self.journal: Journal = journal
        self._folder = folder
        self._disk = disk
        self._forward = forward
        self._number = number
        self._break_hard_links = break_hard_links
        self._files = [*journal.files]
        self._pending: list[tuple[int, FileState]] = []

    def run(self) -> None:
        """Write all files, or raise what `apply_edits()` raises."""
        folder, before = self._folder, self._folder.state
        try:
            if before is None:
                folder.save(self.journal, "preparing", self._number, sync=False)
            elif before == "undone":
                folder.mark("preparing", self._number, sync=False)
            elif before != "turning":
                folder.mark("turning", sync=False)
            self._prepare()
            if self._pending:
                _check_cancelled()
                folder.save(self.journal, "turning", self._number)
        except BaseException:
            with suppress(OSError):  # the next change tries again
                _clean(folder, self.journal, self._disk)
                if before is None:
                    folder.delete()
                else:
                    folder.mark(before)
            raise
        try:
            for number, state in self._pending:
                file = self._files[number]
                times = None if self._forward else file.times
                self._disk.replace(file.path, folder.temporary(number), state, times=times)
            self._disk.sync_folders(self._files[number].path for number, _ in self._pending)
            folder.mark("applied" if self._forward else "undone")
        except BaseException as error:
            self._roll_back(error)
            if isinstance(error, InterruptedError):
                raise _changed_error([str(error.filename)], forward=self._forward) from error
            raise

    def _prepare(self) -> None:
        """Write the temporary files, and add the hashes of the new contents to the journal."""
        refused: dict[ConflictReason, list[str]] = {}
        for number, file in enumerate(self._files):
            _check_cancelled()
            # Of a run that ended, whose journal may be lost, or could not reach the directory.
            self._disk.remove_beside(file.path, self._folder.temporary(number))
            reason = self._take(number, file, write=not refused)
            if reason is not None:
                refused.setdefault(reason, []).append(file.path)
        for reason, paths in sorted(refused.items()):  # 'changed' sorts first, so it is raised first
            refuse = _changed_error if reason == "changed" else _linked_error
            raise refuse(paths, forward=self._forward)
        self.journal = self.journal.model_copy(update={"files": tuple(self._files)})
        self._disk.sync_files(
            os.path.join(os.path.dirname(self._files[number].path), self._folder.temporary(number))
            for number, _ in self._pending
        )

    def _take(self, number: int, file: JournalFile, *, write: bool) -> ConflictReason | None:
        """Write the temporary file for one file, if `write` is True and the file does not have the content to write."""
        try:
            content, state = self._disk.read(file.path)
        except OSError as error:
            if error.errno not in GONE:
                raise
            return "changed"
        source, target = _hashes(file, forward=self._forward)
        known = hashlib.sha256(content).hexdigest()
        if known == target:
            return None
        if known != source:
            return "changed"
        if state.status.st_nlink > 1 and not self._break_hard_links:
            return "hard_links"
        if write:
            self._write(number, file, content, state)
        return None

    def _write(self, number: int, file: JournalFile, content: bytes, state: FileState) -> None:
        made = file.apply(content, forward=self._forward)
        known = hashlib.sha256(made).hexdigest()
        if self._forward:
            times = (state.status.st_atime_ns, state.status.st_mtime_ns)
            self._files[number] = file.model_copy(update={"new": known, "times": times})
        elif known != file.old:
            raise ValueError(
                f"the journal {shown(str(self._folder.path))} is damaged and cannot restore its files; "
                "restore them from version control or a backup"
            )
        self._disk.write_beside(file.path, self._folder.temporary(number), made, state)
        self._pending.append((number, state))

    def _roll_back(self, error: BaseException) -> None:
        """Restore the content that each file had before the run. If that fails, add a note to the error."""
        failed: list[OSError] = []
        for number, file in enumerate(self._files):
            try:
                self._disk.remove_beside(file.path, self._folder.temporary(number))
                content, state = self._disk.read(file.path)
                if hashlib.sha256(content).hexdigest() == _hashes(file, forward=self._forward)[1]:
                    old, times = file.apply(content, forward=not self._forward), file.times if self._forward else None
                    self._disk.overwrite(file.path, self._folder.temporary(number), old, state, times=times)
            except OSError as second:
                if second.errno not in GONE:
                    failed.append(second)
        if not failed:
            # If the state cannot be written, the next change of these files asks for `undo()`. It finds nothing to do.
            with suppress(OSError):
                self._folder.mark("undone" if self._forward else "applied")
            return
        side = "new" if self._forward else "old"
        error.add_note(
            f"{plural(len(failed), 'file')} could not be rolled back and may have the {side} content ({failed[0]}). "
            f"Fix the cause, then call undo({str(self._folder.path)!r})."
        )


def _hashes(file: JournalFile, *, forward: bool) -> tuple[str, str]:
    """Return the hashes of the content to replace and of the content to write."""
    return (file.old, file.new) if forward else (file.new, file.old)


def _changed_error(paths: Sequence[str], *, forward: bool) -> ConflictError:
    if forward:
        message = f"these files have changed since the search: {named(paths)}; search again"
    else:
        message = (
            f"these files have changed since the replacement: {named(paths)}; revert these changes and undo again, or "
            "restore the files from version control or a backup"
        )
    return ConflictError(f"nothing was written, because {message}", paths=paths)


def _linked_error(paths: Sequence[str], *, forward: bool) -> ConflictError:
    advice = (
        ("; ", Hint("break_hard_links", value=True), " changes these paths and makes each a separate file")
        if forward
        else "; delete the other links and undo again"
    )
    said = f"nothing was written, because these files have several hard links: {named(paths)}"
    return ConflictError(HintedText(said, advice), paths=paths, reason="hard_links")

"""Write changed files all or none, with a journal on disk that says how to complete or undo an interrupted change.

Each file of a change has an old and a new content. The journal has the hashes of both, and the edits that lead from one
to the other. So it is known whether a file is old, new, or changed by another program. `Turn` takes all files from one
side to the other:

1. Take the lock, and read each file. A file on the wrong side gets its other content in a temporary file beside it. If
   any file is neither old nor new, remove the temporary files and raise; nothing was written.
2. Sync the temporary files and the journal.
3. Rename each temporary file to its target. On an error, take the files that were renamed back to the first side.
4. Sync the directories, and mark the journal as finished.

A process that is killed at any moment leaves each file old or new. A second turn, to either side, takes all files there
and removes the temporary files, whose names follow from the journal.
"""

import hashlib
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ripwrap._concurrency import CANCELLED, ProcessLock, hold_lock
from ripwrap._operations.journal_store import Folder, Journal, JournalFile, Journals, Progress
from ripwrap._safe_write import GONE, Disk, FileState
from ripwrap._text import plural, shown
from ripwrap.edits import AppliedEdits, FileEdits
from ripwrap.errors import ConflictError, ConflictReason, Hint, HintedText
from ripwrap.options import StrPath

MAX_NAMED_PATHS = 10
"""Maximum number of paths in a message; `ConflictError.paths` has all."""


def apply_edits(
    root: str,
    files: Sequence[FileEdits],
    journals: StrPath | None,
    *,
    break_hard_links: bool = False,
    holds: Callable[[str], bool] | None = None,
    disk: Disk | None = None,
) -> AppliedEdits:
    """Write the new contents of files, all or none.

    Args:
        root: Directory that was searched.
        files: Edits.
        journals: Directory of all journals; `None` is the user's.
        break_hard_links: Change a file that has several names, too.
        holds: Function that returns True for a real path that may be written; `None` allows all.
        disk: Disk to write to.

    Raises:
        ConflictError: A file has changed since, or has several hard links, or an interrupted replacement has changed
            one. Nothing was written.
        OSError: A file cannot be written. All files have their old contents.
        TimeoutError: The call was cancelled before the first rename. All files have their old contents.
    """
    if not files:
        return AppliedEdits(journal="", root=root, files=())
    store, disk = Journals(journals), disk or Disk()
    journal = Journal.of(root, files)
    # The real paths are those that are written; no link in them is followed.
    if holds and (led := [one.path for one, file in zip(files, journal.files, strict=True) if not holds(file.path)]):
        raise _changed_error(led)
    folder = store.folder(journal.id)
    with _locked(store):
        _check_unfinished(store, folder, {file.path for file in journal.files}, disk)
        if folder.state is not None:  # the same edits were applied before, perhaps not to the end
            journal = folder.load()
        Turn(folder, journal, disk, forward=True, break_hard_links=break_hard_links).run()
        store.prune()
    return _result(folder, journal, undone=False)


def journal_path(root: str, files: Sequence[FileEdits], journals: StrPath | None) -> str:
    """Return the path of the journal for a choice of edits."""
    return str(Journals(journals).folder(Journal.of(root, files).id).path)


def undo_edits(
    journal: StrPath | None, cwd: StrPath, journals: StrPath | None, *, disk: Disk | None = None
) -> AppliedEdits:
    """Write the old contents of the files of a journal, all or none.

    Args:
        journal: Path of the journal; `None` is the newest one of `cwd` that is not undone yet.
        cwd: Directory that was searched.
        journals: Directory of all journals; `None` is the user's.
        disk: Disk to write to.

    Raises:
        FileNotFoundError: There is no such journal.
        ConflictError: A file has changed since; nothing was written.
        OSError: A file cannot be written; all files have their new contents.
    """
    store = Journals(os.path.dirname(os.path.abspath(journal)) if journal is not None else journals)
    if journal is not None and not Folder(Path(journal)).exists:
        raise FileNotFoundError(f"there is no journal {shown(os.fspath(journal))}; AppliedEdits.journal names it")
    with _locked(store):
        folder = store.last(os.path.abspath(cwd)) if journal is None else Folder(Path(os.path.abspath(journal)))
        known = folder.load()
        if _is_complete(known):
            Turn(folder, known, disk or Disk(), forward=False).run()
        else:  # no file was renamed
            _clean(folder, known, disk or Disk())
            folder.delete()
    return _result(folder, known, undone=True)


def _result(folder: Folder, journal: Journal, *, undone: bool) -> AppliedEdits:
    files = tuple(file.path for file in journal.files)
    return AppliedEdits(journal=str(folder.path), root=journal.root, files=files, undone=undone)


@contextmanager
def _locked(store: Journals) -> Generator[None]:
    """Hold the lock of all journals, so that one process at a time writes."""
    store.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with hold_lock(ProcessLock(store.path / "lock"), _check_cancelled):
        yield


def _check_cancelled() -> None:
    if CANCELLED.get().is_set():
        raise TimeoutError("the call was cancelled; no file was changed")


def _check_unfinished(store: Journals, own: Folder, paths: set[str], disk: Disk) -> None:
    """Remove the temporary files of changes that were interrupted before their first rename; raise for other changes.

    The lock is held, so the process of an unfinished journal has ended.
    """
    for folder in store.all():
        state = folder.state
        if folder.path == own.path or state not in ("preparing", "turning"):
            continue
        try:
            journal = folder.load()
        except (OSError, ValueError):  # the system crashed before the journal was synced, so no file was renamed
            continue
        if not _is_complete(journal):
            with suppress(OSError):  # the next change tries it again
                _clean(folder, journal, disk)
                folder.delete()
        elif both := sorted(paths & {file.path for file in journal.files}):
            raise ConflictError(
                HintedText(
                    f"an interrupted replacement has changed some of these files: {_names(both)}; undo it first",
                    (": ", Hint("journal", str(folder.path), kind="call", target="undo")),
                ),
                paths=both,
                reason="unfinished",
                journal=str(folder.path),
            )


def _is_complete(journal: Journal) -> bool:
    """Return True if the journal was complete, so that files may have been renamed."""
    return all(file.new for file in journal.files)


def _clean(folder: Folder, journal: Journal, disk: Disk) -> None:
    """Remove all temporary files of a journal."""
    for number, file in enumerate(journal.files):
        disk.remove_beside(file.path, folder.temporary(number))


def _names(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED_PATHS} more" if len(paths) > MAX_NAMED_PATHS else ""
    return ", ".join(map(shown, paths[:MAX_NAMED_PATHS])) + more


class Turn:
    """One run that takes all files of a journal to one side, or leaves them as they are.

    Attributes:
        journal: Journal, with what is known so far.
    """

    def __init__(
        self, folder: Folder, journal: Journal, disk: Disk, *, forward: bool, break_hard_links: bool = False
    ) -> None:
        """Set what to do.

        Args:
            folder: Directory of the journal.
            journal: Journal.
            disk: Disk to write to.
            forward: True to write new contents, False for old ones.
            break_hard_links: Replace a file with several names, too.
        """
        self.journal: Journal = journal
        self._folder = folder
        self._disk = disk
        self._forward = forward
        self._break_hard_links = break_hard_links
        self._files = [*journal.files]
        self._pending: list[tuple[int, FileState]] = []

    def run(self) -> None:
        """Write all files, or raise what `apply_edits()` raises."""
        folder, before = self._folder, self._folder.state
        try:
            if before is None:
                folder.save(self.journal, "preparing", sync=False)
            elif before != "turning":
                folder.mark("preparing" if before == "undone" else "turning", sync=False)
            self._prepare(clean=before is not None)
            if self._pending:
                _check_cancelled()
                folder.save(self.journal, "turning")
        except BaseException:
            with suppress(OSError):  # the next change tries it again
                _clean(folder, self.journal, self._disk)
                if before is None:
                    folder.delete()
                else:
                    folder.mark(before)
            raise
        try:
            self._rename()
            folder.mark(self._side(forward=self._forward))
        except BaseException as error:
            self._roll_back(error)
            if isinstance(error, InterruptedError):
                raise _changed_error([str(error.filename)]) from error
            raise

    def _side(self, *, forward: bool) -> Progress:
        return "applied" if forward else "undone"

    def _prepare(self, *, clean: bool) -> None:
        """Write the temporary files, and complete the journal.

        Args:
            clean: True if an earlier run may have left temporary files.
        """
        refused: dict[ConflictReason, list[str]] = {}
        for number, file in enumerate(self._files):
            _check_cancelled()
            if clean:
                self._disk.remove_beside(file.path, self._folder.temporary(number))
            reason = self._take(number, file, write=not refused)
            if reason is not None:
                refused.setdefault(reason, []).append(file.path)
        for reason, paths in sorted(refused.items()):  # 'changed' first
            raise _changed_error(paths) if reason == "changed" else _linked_error(paths)
        self.journal = self.journal.model_copy(update={"files": tuple(self._files)})
        self._disk.sync_files(
            os.path.join(os.path.dirname(self._files[number].path), self._folder.temporary(number))
            for number, _ in self._pending
        )

    def _take(self, number: int, file: JournalFile, *, write: bool) -> ConflictReason | None:
        """Write the temporary file for a file; return the reason if the file cannot be changed."""
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
                f"the journal {shown(str(self._folder.path))} is damaged; restore the files by other means"
            )
        self._disk.write_beside(file.path, self._folder.temporary(number), made, state)
        self._pending.append((number, state))

    def _rename(self) -> None:
        for number, state in self._pending:
            file = self._files[number]
            times = None if self._forward else file.times
            self._disk.replace(file.path, self._folder.temporary(number), state, times=times)
        self._disk.sync_folders(self._files[number].path for number, _ in self._pending)

    def _roll_back(self, error: BaseException) -> None:
        """Give all files the content that they had before. If that fails, add a note to the error."""
        failed: list[OSError] = []
        for number, file in enumerate(self._files):
            try:
                self._disk.remove_beside(file.path, self._folder.temporary(number))
                self._restore(number, file)
            except OSError as second:
                if second.errno not in GONE:
                    failed.append(second)
        if not failed:
            with suppress(OSError):  # a later change of the files asks for `undo()` first, which finds nothing to do
                self._folder.mark(self._side(forward=not self._forward))
            return
        side = "new" if self._forward else "old"
        error.add_note(
            f"{plural(len(failed), 'file')} may have the {side} content, because it could not be rolled back "
            f"({failed[0]}). When the cause is gone, call undo({str(self._folder.path)!r})."
        )

    def _restore(self, number: int, file: JournalFile) -> None:
        content, state = self._disk.read(file.path)
        if hashlib.sha256(content).hexdigest() != _hashes(file, forward=self._forward)[1]:
            return
        name = self._folder.temporary(number)
        self._disk.write_beside(file.path, name, file.apply(content, forward=not self._forward), state)
        self._disk.sync_files([os.path.join(os.path.dirname(file.path), name)])
        self._disk.replace(file.path, name, state, times=file.times if self._forward else None)


def _hashes(file: JournalFile, *, forward: bool) -> tuple[str, str]:
    """Return the hashes of the content to replace and of the content to write."""
    return (file.old, file.new) if forward else (file.new, file.old)


def _changed_error(paths: Sequence[str]) -> ConflictError:
    return ConflictError(
        f"nothing was written, because these files have changed since: {_names(paths)}; search again", paths=paths
    )


def _linked_error(paths: Sequence[str]) -> ConflictError:
    return ConflictError(
        HintedText(
            f"nothing was written, because these files have several hard links: {_names(paths)}",
            ("; ", Hint("break_hard_links", value=True), " makes each of these names a separate file"),
        ),
        paths=paths,
        reason="hard_links",
    )

"""Journals of changes to files. Each journal has its own directory, by default below the user's state directory.

A journal has the hashes of the old and the new content of each file, and the edits between the two contents.
`journal.py` writes the files that a journal describes. A journal says what to write into which file, so it is read only
if no other user could have written it.
"""

import errno
import hashlib
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypeAlias

from pydantic import ValidationError

from ripwrap._concurrency import defer_interrupts, opened, replace_file
from ripwrap._text import FsPath, plural, shown
from ripwrap._windows import IS_WINDOWS
from ripwrap.binary.cache import why_untrusted, why_writable
from ripwrap.edits import FileEdits
from ripwrap.errors import Hint, HintedText
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
        """Return the new content, given the old content.

        With `forward=False`, return the old content, given the new content.
        """
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
        """Write the state and the number of the change; with `sync`, wait until they are on the disk.

        `None` keeps the number.
        """
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

    def next_number(self) -> int:
        """Return the number for a new change; the caller holds the lock."""
        return max((folder.number for folder in self.all()), default=0) + 1

    def latest(self, name: str) -> JournalFolder:
        """Return the directory of the last of the changes with this id that can be undone, or otherwise of the last.

        If there is no such change, return the directory for it.
        """
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
            if number >= KEPT_JOURNALS or _modified(folder) < oldest:
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


def _modified(folder: JournalFolder) -> float:
    try:
        return (folder.path / _STATE).stat().st_mtime
    except OSError:
        return time.time()

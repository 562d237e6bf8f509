"""Plan the changes of configuration files, show them as a diff, and write them."""

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from ripwrap._agents import json_text
from ripwrap._agents.clients import ClientName, Target
from ripwrap._agents.json_text import TakenError, TextBlock
from ripwrap._system.safe_write import Disk, FileState, refuse_protected
from ripwrap._text import cut_text

MAX_BYTES = 16 << 20
"""Largest configuration file that is read; a longer one is refused."""

_MAX_LINE = 400
_BOM = b"\xef\xbb\xbf"
_MARKS = json_text.MARK, json_text.BLOCK_MARK
"""Texts of which one is in each file that install has written."""


class RefusedError(ValueError):
    """A file cannot be edited, so nothing is written; the message names the file and what to do."""


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Planned change of a file."""

    client: ClientName
    path: str
    real: str
    old: bytes | None
    new: bytes | None
    state: FileState | None
    folders: tuple[Path, ...] = ()

    @property
    def what(self) -> str:
        """What is done: 'create', 'change', 'delete' or 'keep'."""
        if self.old == self.new:
            return "keep"
        return "create" if self.old is None else "delete" if self.new is None else "change"

    def diff(self) -> str:
        """Return a unified diff with one line of context."""
        old, new = (_lines(side or b"") for side in (self.old, self.new))
        start = _equal(old, new)
        end = _equal(old[start:][::-1], new[start:][::-1])
        changed = [*_marked("-", old[start : len(old) - end]), *_marked("+", new[start : len(new) - end])]
        first = max(start - 1, 0)
        context = old[first:start], old[len(old) - end :][:1]
        sizes = (len(lines) - end - start + len(context[0]) + len(context[1]) for lines in (old, new))
        head = " ".join(f"{sign}{first + bool(size)},{size}" for sign, size in zip("-+", sizes, strict=True))
        names = ("/dev/null" if side is None else self.path for side in (self.old, self.new))
        body = [*_marked(" ", context[0]), *changed, *_marked(" ", context[1])]
        return "".join(("--- {}\n+++ {}\n".format(*names), f"@@ {head} @@\n", *body))


def plan_install(targets: Iterable[Target]) -> list[ConfigChange]:
    """Return the changes that write ripwrap into files."""
    return [_planned(target, install=True) for target in targets]


def plan_uninstall(targets: Iterable[Target]) -> list[ConfigChange]:
    """Return the changes that take what install wrote out of files."""
    return [_planned(target, install=False) for target in targets if os.path.lexists(target.path)]


def state_of(target: Target) -> str:
    """Return 'installed', 'yours' for what install did not write, 'absent', or 'broken: ' and the reason."""
    if not os.path.lexists(target.path):
        return "absent"
    try:
        content, _ = _read(os.path.realpath(target.path))
        text = content.removeprefix(_BOM).decode()
        if target.edit.remove(text).text != text:
            return "installed"
    except (ValueError, RecursionError, OSError) as error:
        return f"broken: {_reason(error)}"
    try:
        return "yours" if target.edit.add(text, "") == text else "absent"
    except ValueError as error:
        return "yours" if isinstance(error, TakenError) else "absent"


def write(changes: Iterable[ConfigChange], disk: Disk) -> None:
    """Write changes. Each file is replaced in one step, and only if it has not changed since it was read."""
    todo = [change for change in changes if change.what != "keep"]
    for change in todo:
        _write(change, disk)
    for change in todo:
        for folder in change.folders:
            with suppress(OSError):  # it has other files
                folder.rmdir()


def _planned(target: Target, *, install: bool) -> ConfigChange:
    path = target.path
    real = os.path.realpath(path)
    shown = str(path.relative_to(target.base)) if path.is_relative_to(target.base) else str(path)
    if real != os.path.join(os.path.realpath(target.base), shown):
        shown = f"{shown} (a link to {real})"
    try:
        _check_link(target, real)
        if not os.path.lexists(path):
            made = _made(target, path)
            refuse_protected(real)
            return ConfigChange(target.client, shown, real, None, target.edit.add(None, made).encode(), None)
        content, state = _read(real)
        refuse_protected(real)
        if not install and not any(mark.encode() in content for mark in _MARKS):  # it may be broken, or another's
            return ConfigChange(target.client, shown, real, content, content, state)
        bom = _BOM if content.startswith(_BOM) else b""
        text = content.removeprefix(bom).decode()
        if install:
            new: str | None = target.edit.add(text, "")
            folders: tuple[Path, ...] = ()
        else:
            new, made = target.edit.remove(text)
            folders = _folders(target, path, made) if new is None else ()
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{shown} is left unchanged, and nothing was written: {_reason(error)}") from error
    return ConfigChange(
        target.client, shown, real, content, None if new is None else bom + new.encode(), state, folders
    )


def _reason(error: BaseException) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _read(real: str) -> tuple[bytes, FileState]:
    if not os.path.lexists(real):
        raise ValueError("it is a link to a file that does not exist; remove the link, or make the file")
    content, state = Disk().read(real, MAX_BYTES)
    if state.status.st_nlink > 1:
        raise ValueError("it has several names (hard links), of which only one would change; make it one file")
    return content, state


def _check_link(target: Target, real: str) -> None:
    """Refuse to write text to a file outside of the project: a link in a project may lead to any file.

    An entry is added only to a file that parses as a configuration, so links to such files are followed.
    """
    inside = Path(real).is_relative_to(os.path.realpath(target.base))
    if not inside and target.base != Path.home() and isinstance(target.edit, TextBlock):
        raise ValueError(f"it leads out of the project, to {real}")


def _made(target: Target, path: Path) -> str:
    """Return the name of the first directory that must be made for a file, with a slash; or the name of the file."""
    outermost, folder = path, path.parent
    while not os.path.lexists(folder):
        outermost, folder = folder, folder.parent
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a directory")
    if not outermost.is_relative_to(target.base):
        return path.name
    name = outermost.relative_to(target.base).as_posix()
    return name if outermost == path else f"{name}/"


def _folders(target: Target, path: Path, made: str) -> tuple[Path, ...]:
    """Return the directories that install has made for a file, the innermost first; none if `made` names none."""
    outermost = target.base / made
    if not made.endswith("/") or ".." in outermost.parts or target.base not in outermost.parents:
        return ()
    return tuple(folder for folder in path.parents if folder.is_relative_to(outermost))


def _write(change: ConfigChange, disk: Disk) -> None:
    if change.state is None:
        os.makedirs(os.path.dirname(change.real), exist_ok=True)
        disk.create(change.real, change.new or b"")
        return
    if change.new is None:
        disk.delete(change.real, change.state)
        return
    name = f".ripwrap-{os.urandom(8).hex()}"
    try:
        disk.overwrite(change.real, name, change.new, change.state)
    except BaseException:
        disk.remove_beside(change.real, name)
        raise


def _equal(old: list[str], new: list[str]) -> int:
    """Return how many lines are equal at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _lines(content: bytes) -> list[str]:
    return [*io.StringIO(content.decode(errors="replace"), newline="\n")]


def _marked(sign: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        text = cut_text(line.rstrip("\r\n"), _MAX_LINE)
        yield f"{sign}{text}\n" if line.endswith("\n") else f"{sign}{text}\n\\ No newline at end of file\n"

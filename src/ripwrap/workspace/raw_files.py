"""Raw access to files, for backends of frameworks: the bytes of a file and the entries of a directory."""

import errno
import io
import os
import stat
from contextlib import suppress
from datetime import UTC, datetime

from ripwrap._ripgrep.protocols import Runner
from ripwrap._system.safe_open import open_regular_file
from ripwrap._system.windows import IS_WINDOWS
from ripwrap._text import as_utf8, byte_order_mark, plural, shown_path
from ripwrap.errors import AccessDeniedError
from ripwrap.places.where import refuse_places
from ripwrap.workspace.dispatch import MAX_READ_BYTES, ToolMethods
from ripwrap.workspace.redact import Redaction, key_lines
from ripwrap.workspace.results import FileInfo
from ripwrap.workspace.sandbox import RootLocation, Sandbox
from ripwrap.workspace.scope import Settings
from ripwrap.workspace.text_files import Deadline


async def run_read_bytes(run: Runner, settings: Settings, path: str, max_bytes: int | None) -> bytes:
    """Return the bytes of a whole file, with secrets masked if the workspace masks them."""
    if max_bytes is not None and max_bytes < 0:
        raise ValueError(f"max_bytes must be 0 or more, got {max_bytes}")
    try:
        content = await run.call(lambda: _read_bytes(settings.sandbox, path, max_bytes))
        masking = settings.redact
        return content if masking is None else await run.call(lambda: _masked(masking, content, settings.timeout))
    except MemoryError:
        raise ValueError(f"reading {shown_path(path)} needs too much memory; pass a smaller max_bytes") from None


def _read_bytes(sandbox: Sandbox, path: str, max_bytes: int | None) -> bytes:
    location = sandbox.locate(path)
    if not location.is_file:
        raise IsADirectoryError(f"{shown_path(location.name)} is a directory; list_directory() lists its entries")
    with open_regular_file(location.cwd, location.paths[0], follow=False) as file:
        size = os.fstat(file.fileno()).st_size
        # Read one byte more than allowed: if it exists, the file is too large, even if it has grown since `fstat()`.
        most = -1 if max_bytes is None else max_bytes + 1
        content = b"" if max_bytes is not None and size > max_bytes else file.read(most)
    if max_bytes is not None and max(size, len(content)) > max_bytes:
        much = plural(max(size, len(content)), "byte")
        has = f"{shown_path(location.name)} has {much}, more than max_bytes={max_bytes}"
        raise ValueError(f"{has}; read a part with read_file, or pass a larger max_bytes")
    return content


def _masked(redact: Redaction, content: bytes, timeout: float | None) -> bytes:
    """Mask the secrets in the content of a file. All other bytes stay the same, but U+FFFD replaces invalid UTF-16."""
    mark, encoding = byte_order_mark(content)
    errors = "surrogateescape" if encoding == "utf-8" else "replace"
    deadline = Deadline(timeout, "the secrets in the file were not masked", "read a part with read_file")
    text = content[len(mark) :].decode(encoding, errors)
    found = redact(text, keys=key_lines(io.BytesIO(content)), check=deadline.check)
    return mark + found.text.encode(encoding, errors) if found.masks else content


def info_of(location: RootLocation) -> FileInfo:
    """Return a file's or directory's kind, size, and time of the last change; blocking."""
    target = os.path.normpath(os.path.join(location.cwd, *(() if location.several else location.paths[:1])))
    return _info(location.name, as_utf8(os.path.basename(target)), os.stat(target))


def info_of_entry(location: RootLocation, path: str) -> FileInfo:
    """Return what `info_of()` does about a path that a listing of a location prints; a link is not followed."""
    return _info(location.shown(path), as_utf8(os.path.basename(path)), os.lstat(os.path.join(location.cwd, path)))


def _info(path: str, name: str, state: os.stat_result) -> FileInfo:
    is_dir = stat.S_ISDIR(state.st_mode)
    size, time = None if is_dir else state.st_size, None
    with suppress(OverflowError, OSError, ValueError):  # file systems can store years after 9999
        time = datetime.fromtimestamp(state.st_mtime, UTC)
    mode = stat.filemode(state.st_mode)
    return FileInfo(path=path, name=name, is_dir=is_dir, size=size, modified_at=time, mode=mode)


def entries_of(sandbox: Sandbox, path: str, deadline: Deadline) -> tuple[FileInfo, ...]:
    """Return the entries of a directory, sorted by name; blocking."""
    location = sandbox.locate(path)
    if location.several:
        return tuple(info_of(sandbox.locate(root, exact=True)) for root in sandbox.roots)
    if location.is_file:
        raise NotADirectoryError(f"{shown_path(location.name)} is a file; pass the directory that contains it")
    folder = os.path.join(location.cwd, location.paths[0])
    found: list[FileInfo] = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            deadline.check()
            relative = os.path.normpath(os.path.join(location.paths[0], entry.name))
            shown_as, name = location.shown(relative), as_utf8(entry.name)
            if entry.is_symlink() or IS_WINDOWS:  # on Windows, it may be a junction
                info = _linked(sandbox, os.path.join(folder, entry.name), name, shown_as)
            else:
                info = _plain_entry(sandbox, entry, relative, name, shown_as)
            found += [] if info is None else [info]
    return tuple(found)


def _plain_entry(
    sandbox: Sandbox, entry: "os.DirEntry[str]", relative: str, name: str, shown_as: str
) -> FileInfo | None:
    """Return an entry that is no link, without looking up its real path; `None` if denied, or no file or directory."""
    try:
        state = entry.stat(follow_symlinks=False)
    except OSError:
        return FileInfo(path=shown_as, name=name, is_dir=False)
    known = stat.S_ISDIR(state.st_mode) or stat.S_ISREG(state.st_mode)
    if not known or sandbox.deny.glob_of(relative, folder=stat.S_ISDIR(state.st_mode)):
        return None
    return _info(shown_as, name, state)


def _linked(sandbox: Sandbox, path: str, name: str, shown_as: str) -> FileInfo | None:
    """Return an entry that is a link; `None` if tools may not use it, e.g. because it leads out of the roots."""
    try:
        located = info_of(sandbox.locate(path, exact=True))
    except AccessDeniedError:
        return FileInfo(path=shown_as, name=name, is_dir=False) if _is_link_loop(path) else None
    except ValueError:  # neither a file nor a directory, such as a pipe, or a name that is not UTF-8
        return None
    except OSError:
        return FileInfo(path=shown_as, name=name, is_dir=False)
    return located.model_copy(update={"path": shown_as, "name": name})


def _is_link_loop(path: str) -> bool:
    """Return True for a link that leads back to itself. The sandbox refuses it, because it leads to no file."""
    try:
        os.stat(path)
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


class RawFileMethods(ToolMethods):
    """Methods that are not tools, but for backends of frameworks."""

    async def read_bytes(self, path: str, *, max_bytes: int | None = MAX_READ_BYTES) -> bytes:
        """Return the bytes of a file. This method is not a tool, but for backends of frameworks; it needs no rg.

        With `redact`, keys, tokens and passwords are masked, as in answers.
        """
        return await run_read_bytes(self._tools.runner(None), self._tools.settings, path, max_bytes)

    async def file_info(self, path: str = ".") -> FileInfo:
        """Return a file's or directory's kind, size, and time of the last change. This is not a tool."""
        refuse_places("file_info()")
        return await self._tools.runner(None).call(lambda: info_of(self._tools.settings.sandbox.locate(path)))

    async def list_directory(self, path: str = ".") -> tuple[FileInfo, ...]:
        """Return the entries of one directory, sorted by name, with hidden and ignored entries. This is not a tool.

        Denied entries, links that lead out of the roots, and entries that are neither files nor directories (e.g.
        pipes) are not returned. If there are several roots, the entries of `.` are the roots.

        Raises:
            AccessDeniedError: `path` is outside of the roots, or denied.
            FileNotFoundError: `path` does not exist.
            NotADirectoryError: `path` is a file.
            PermissionError: The directory cannot be read.
            TimeoutError: The entries were not listed in time.
        """
        refuse_places("list_directory()")
        settings, late = self._tools.settings, "not all entries of the directory were listed"
        deadline = Deadline(settings.timeout, late, "list it with ls or find_files")
        return await self._tools.runner(None).call(lambda: entries_of(settings.sandbox, path, deadline))

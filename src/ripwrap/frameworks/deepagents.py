"""Backend of deepagents that reads and searches the files of a workspace; needs the extra `deepagents`.

It implements `BackendProtocol` of deepagents 0.7, whose docstrings define what a backend returns. The methods of a
backend raise no exceptions. Each result has an `error`: a text for the model, or `None`.
"""

import base64
import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import PurePath

from ripwrap.frameworks import missing_framework

try:
    from deepagents.backends.protocol import (
        FILE_NOT_FOUND,
        INVALID_PATH,
        IS_DIRECTORY,
        PERMISSION_DENIED,
        BackendProtocol,
        EditResult,
        FileData,
        FileDownloadResponse,
        FileInfo,
        FileUploadResponse,
        GlobResult,
        GrepMatch,
        GrepResult,
        LsResult,
        ReadResult,
        WriteResult,
    )
    from deepagents.backends.utils import compile_grep_include_glob, normalize_read_bounds
except ImportError as _error:
    raise missing_framework("deepagents", "deepagents 0.7.13", _error) from _error

from ripwrap import sync
from ripwrap._text import byte_order_mark, is_binary
from ripwrap.workspace.arguments import TOOL_ERRORS

__all__ = ["RipwrapBackend"]

MAX_MATCHES = 10_000
"""Number of matches that `grep()` asks for if the caller sets no limit. Usually fewer fit into the workspace's
`max_chars`.
"""
MAX_PAGES = 20
"""Maximum number of pages of `find_files` that `glob()` reads."""
MAX_TEXT_BYTES = 32_000_000
"""Maximum size in bytes of a text file of which `read()` shows lines."""
MAX_BINARY_BYTES = 500 * 1024
"""Maximum size in bytes of a binary file that `read()` returns, as in the sandboxes of deepagents."""

_PLAIN_GLOB = re.compile(r"(?:[^!,\\{}\[]|\{[^!\\{}\[]*\})+")
"""Regular expression for globs that have the same meaning in rg and in deepagents.

Such a glob has no nested `{}`, no comma outside of `{}`, no `!`, no backslash and no `[]`, which in rg is a class of
bytes.
"""


class _RelativePathError(ValueError):
    """Error for a path that is not absolute."""


class RipwrapBackend(BackendProtocol):
    """Read-only backend for the files of a workspace.

        agent = create_deep_agent(model=model, backend=RipwrapBackend(sync.Workspace("src")))

    `grep()` and `glob()` skip files that ignore files exclude. `ls()` and `read()` do not skip them. `glob()` and
    `ls()` also return hidden files. `write()`, `edit()` and `upload_files()` return an error. `grep()` returns as many
    matches as fit into `max_chars` of the workspace, with lines of at most `max_line` characters. `truncated` is True
    if there are more matches.

    deepagents itself writes files, such as results that are too long for the context. So route only one directory to
    this backend: `CompositeBackend(default=StateBackend(), routes={"/code/": RipwrapBackend(workspace)})`.

    Attributes:
        workspace: Workspace that reads and searches.
        virtual: True if `/` is the root of the workspace; False if paths are paths of the system.
        hidden: True if every `grep()` searches hidden files; False if only a `grep()` with a `glob` does.
    """

    def __init__(self, workspace: sync.Workspace, *, virtual: bool = True, hidden: bool = False) -> None:
        """Set the workspace and the form of paths.

        Args:
            workspace: Workspace that reads and searches.
            virtual: Use `/` for the root of the workspace. If False, use paths of the system, for example for an agent
                that also has a shell.
            hidden: Search hidden files in every `grep()`. If False, search them only in a `grep()` with a `glob`.

        Raises:
            ValueError: `virtual` is True, and the workspace has several roots.
        """
        if virtual and len(workspace.roots) > 1:
            raise ValueError(
                f"the workspace has {len(workspace.roots)} roots, but / can be the path of only one; pass virtual=False"
            )
        self.workspace = workspace
        self.virtual = virtual
        self.hidden = hidden

    def ls(self, path: str) -> LsResult:
        """List the entries of one directory, including hidden and ignored entries."""
        try:
            entries = self.workspace.list_directory(self._inside(path))
        except TOOL_ERRORS as error:
            return LsResult(error=self._error("Path", path, error))
        return LsResult(
            entries=[self._info(entry.path, entry.is_dir, entry.size, entry.modified_at) for entry in entries]
        )

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Return lines of a text file, or a binary file in base64.

        For a text file larger than `MAX_TEXT_BYTES`, or a binary file larger than `MAX_BINARY_BYTES`, return an error.
        Lines are split as in ripgrep, so lines have the same numbers as in `grep()`.
        """
        try:
            content = self.workspace.read_bytes(self._inside(file_path), max_bytes=MAX_TEXT_BYTES)
        except TOOL_ERRORS as error:
            return ReadResult(error=self._error("File", file_path, error))
        if not is_binary(content):
            return _lines(content, *normalize_read_bounds(offset, limit))
        if len(content) > MAX_BINARY_BYTES:
            most = f"Binary file exceeds maximum preview size of {MAX_BINARY_BYTES} bytes"
            return ReadResult(error=f"File '{file_path}': {most}")
        return ReadResult(file_data=FileData(content=base64.b64encode(content).decode("ascii"), encoding="base64"))

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        regex: bool = False,
    ) -> GrepResult:
        """Search the contents of files.

        Args:
            pattern: Text to search for.
            path: File or directory to search; `None` is everything.
            glob: Search only files that this glob matches, as in `glob()`.
            max_count: Maximum number of matches; `None` is as many as the workspace shows, up to `MAX_MATCHES`.
            regex: Search for a regular expression. The protocol searches for plain text only, so the agent's tool
                `grep` never sets this.
        """
        where, wanted = path or "/", max(MAX_MATCHES if max_count is None else max_count, 0)
        try:
            inside = self._inside(where)
            allowed = self._filter(glob, inside) if glob else None
            found = self.workspace.grep_content_result(
                pattern,
                inside,
                context_lines=0,
                max_matches=max(wanted, 1),
                file_pattern=_coarse(glob or "*"),
                fixed_strings=not regex,
                include_hidden=self.hidden or bool(glob),
            )
        except TOOL_ERRORS as error:
            return GrepResult(error=self._error("Path", where, error))
        matches = [
            GrepMatch(path=self._outside(match.file), line=match.line, text=match.match)
            for match in found.matches
            if allowed is None or allowed(match.file)
        ]
        matches.sort(key=lambda match: (match["path"], match["line"]))
        return GrepResult(matches=matches[:wanted], truncated=found.truncated or len(matches) > wanted)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find files by name, with the globs of deepagents: see `BackendProtocol.glob()`."""
        where = path or "/"
        try:
            inside = self._inside(where)
            allowed = self._filter(pattern, inside)
            names, complete = self._find(_coarse(pattern), inside)
        except TOOL_ERRORS as error:
            return GlobResult(error=self._error("Path", where, error))
        found = [self._info(name, is_dir=False) for name in sorted(filter(allowed, names))]
        return GlobResult(matches=found, truncated=not complete, truncation_reason=None if complete else "budget")

    def write(self, file_path: str, content: str) -> WriteResult:  # noqa: ARG002 - the protocol's name
        """Return an error, because this backend only reads."""
        return WriteResult(error=_refusal(file_path))

    def edit(
        self,
        file_path: str,
        old_string: str,  # noqa: ARG002 - the protocol's name
        new_string: str,  # noqa: ARG002 - the protocol's name
        replace_all: bool = False,  # noqa: ARG002 - the protocol's name
    ) -> EditResult:
        """Return an error, because this backend only reads."""
        return EditResult(error=_refusal(file_path))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Return an error for each file, because this backend only reads."""
        return [FileUploadResponse(path=path, error=PERMISSION_DENIED) for path, _ in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Return the bytes of each file, or an error for a file that cannot be read or is larger than 32 MiB."""
        found: list[FileDownloadResponse] = []
        for path in paths:
            try:
                content = self.workspace.read_bytes(self._inside(path))
                found.append(FileDownloadResponse(path=path, content=content))
            except TOOL_ERRORS as error:
                found.append(FileDownloadResponse(path=path, error=_code(error) or self.workspace.error_text(error)))
        return found

    def _find(self, pattern: str, inside: str) -> tuple[list[str], bool]:
        """Return the files that a glob matches, and True if the list is complete."""
        names: list[str] = []
        for _ in range(MAX_PAGES):
            page = self.workspace.find_files_result(
                pattern, inside, limit=MAX_MATCHES, offset=len(names), include_hidden=True
            )
            names += page.files
            if page.next_offset is None:
                return names, page.exact
        return names, False

    def _filter(self, glob: str, inside: str) -> Callable[[str], bool]:
        """Return a function that takes a path of the workspace, and returns True if a glob of deepagents matches it."""
        matches = compile_grep_include_glob(glob)
        info = self.workspace.file_info(inside)
        start = info.path if info.is_dir else os.path.dirname(info.path) or os.curdir
        return lambda name: matches(PurePath(os.path.relpath(name, start)).as_posix())

    def _inside(self, path: str) -> str:
        """Return a path of deepagents as a path of the workspace."""
        if not path.startswith("/"):
            raise _RelativePathError(f"the path {path!r} is not absolute; begin it with /")
        if self.virtual:
            return f".{path}"
        return "." if path == "/" else path

    def _outside(self, name: str) -> str:
        """Return a path of the workspace as a path of deepagents: absolute, with slashes."""
        if self.virtual:
            return f"/{PurePath(name).as_posix()}" if name != os.curdir else "/"
        return os.path.normpath(os.path.join(self.workspace.roots[0], name))

    def _info(self, name: str, is_dir: bool, size: int | None = None, modified_at: datetime | None = None) -> FileInfo:
        info = FileInfo(path=self._outside(name), is_dir=is_dir)
        if size is not None:
            info["size"] = size
        if modified_at is not None:
            info["modified_at"] = modified_at.isoformat()
        return info

    def _error(self, noun: str, path: str, error: Exception) -> str:
        """Return the text of an error: with deepagents' code if it is about a path, else as the workspace writes it."""
        code = _code(error)
        return f"{noun} '{path}': {code}" if code else self.workspace.error_text(error)


_CODES: dict[type[Exception], str] = {
    FileNotFoundError: FILE_NOT_FOUND,
    IsADirectoryError: IS_DIRECTORY,
    NotADirectoryError: "not_a_directory",
    PermissionError: PERMISSION_DENIED,
    _RelativePathError: INVALID_PATH,
}


def _code(error: Exception) -> str | None:
    """Return deepagents' code for an error about a path; `None` for any other error."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), None)


def _coarse(glob: str) -> str:
    """Return a glob of rg that matches at least all files that a glob of deepagents matches."""
    is_plain = _PLAIN_GLOB.fullmatch(glob) and "//" not in glob  # deepagents reads `//` as `/`
    return glob.replace("?", "*") if is_plain else "*"  # in ripgrep, `?` is one byte


def _lines(content: bytes, offset: int, limit: int) -> ReadResult:
    """Return `limit` lines after the first `offset` lines, decoded as by ripgrep; invalid bytes become U+FFFD."""
    mark, encoding = byte_order_mark(content)
    text = content[len(mark) :].decode(encoding, "replace")
    if not text.strip():
        return ReadResult(file_data=FileData(content=text, encoding="utf-8"))
    if limit == 0:
        return ReadResult(file_data=FileData(content="", encoding="utf-8"), no_lines_requested=True)
    total = text.count("\n") + (not text.endswith("\n"))
    if offset >= total:
        return ReadResult(error=f"Line offset {offset} exceeds file length ({total} lines)")
    # Not `splitlines()`: a list of millions of lines takes much more memory than their text.
    end = min(offset + limit, total)
    start = _after_lines(text, 0, offset)
    window = text[start : _after_lines(text, start, end - offset)]
    return ReadResult(
        file_data=FileData(content=window.replace("\r\n", "\n").removesuffix("\n"), encoding="utf-8"),
        total_lines=total,
        start_line=offset + 1,
        end_line=end,
        next_offset=end if end < total else None,
    )


def _after_lines(text: str, start: int, count: int) -> int:
    """Return the position after `count` lines of a text."""
    for _ in range(count):
        start = text.find("\n", start) + 1 or len(text)
    return start


def _refusal(path: str) -> str:
    return f"{PERMISSION_DENIED}: '{path}' cannot be changed, since this backend only reads"

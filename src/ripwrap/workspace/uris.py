"""Addresses of files, `file:///PATH`, as clients of MCP name their roots and resources; no I/O."""

import os
from urllib.parse import unquote_to_bytes, urlsplit

from ripwrap._windows import IS_WINDOWS, is_foreign_path


def file_path(uri: str) -> tuple[str, str]:
    """Return the absolute path and the query of a file:// address.

    Raises:
        ValueError: The address is not a file:// address of this machine.
    """
    parts = urlsplit(uri)
    path = _windows_path(parts.path) if IS_WINDOWS else os.fsdecode(unquote_to_bytes(parts.path))
    if (
        parts.scheme != "file"
        or parts.netloc not in ("", "localhost")
        or not os.path.isabs(path)
        or (IS_WINDOWS and is_foreign_path(path))
    ):
        raise ValueError("it is not a file:// address of this machine")
    return path, parts.query


def _windows_path(path: str) -> str:
    from urllib.request import url2pathname  # late: it imports the clients of HTTP

    return url2pathname(path)

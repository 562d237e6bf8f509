"""Overlays: texts that are searched in place of files on disk, such as unsaved editor buffers and proposed edits."""

import errno
import io
import os
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import TypeVar, cast

from ripwrap._system.concurrency import defer_interrupts
from ripwrap._text import raw_bytes, shown
from ripwrap.options import StrPath

P = TypeVar("P", bound=StrPath)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OverlayTexts:
    """Texts that replace the contents of files."""

    texts: Mapping[str, bytes | None]

    def exists(self, path: str) -> bool | None:
        """Return True if the overlay has a text for an absolute path, or for a file below it."""
        real = os.path.realpath(path)
        if real in self.texts:
            return self.texts[real] is not None
        inside = os.path.join(real, "")
        return any(one.startswith(inside) and text is not None for one, text in self.texts.items()) or None

    def is_file(self, path: str) -> bool:
        """Return True if an absolute path leads to a file with a text in the overlay."""
        return self.texts.get(os.path.realpath(path)) is not None

    def open(self, path: str) -> io.BufferedReader | None:
        """Open the text for an absolute path; `None` if the overlay does not have the path."""
        real = os.path.realpath(path)
        if real not in self.texts:
            return None
        text = self.texts[real]
        if text is None:
            raise FileNotFoundError(errno.ENOENT, "deleted in the overlay", path)
        with tempfile.TemporaryFile() as file:
            file.write(text)
            file.seek(0)
            return open(os.dup(file.fileno()), "rb")


_ACTIVE: ContextVar[OverlayTexts | None] = ContextVar("ripwrap_overlay", default=None)
active_overlay: Callable[[], OverlayTexts | None] = _ACTIVE.get
"""Function that returns the overlay of the running task or thread; `None` without an overlay."""


def with_overlay(overlay: OverlayTexts | None, work: Callable[[], T]) -> T:
    """Call a function while this overlay, or none, is the active one, and return its result."""
    context = copy_context()
    context.run(_ACTIVE.set, overlay)
    return context.run(work)


@contextmanager
def overlay(texts: Mapping[P, str | bytes | None], *, cwd: StrPath = ".") -> Generator[None]:
    r"""Search texts, such as unsaved editor buffers or proposed edits, in place of files on disk.

    In the `with` block, results are as if the texts had been written to the disk: new files are found, and globs, file
    types, ignore files and `hidden` apply to them. If a link that the search follows leads to a file with a text, the
    text is searched under the path of the link, too. Searches in a revision of git are not affected.

    In the block, a function that cannot use the texts, such as `rank()` or `replace()`, raises a `ValueError`. The
    section *Unsaved buffers and proposed edits* of the documentation lists the functions that use the texts, and the
    functions that raise.

    The overlay applies to the current task (or thread) and to tasks that are started in the block. A generator uses the
    overlay that was active when the function that returned it was called. Blocks may be nested; if two blocks mention
    the same file, the inner block decides.

    ```python
    import ripwrap
    from ripwrap import sync

    texts = {"shop/till.py": "def pay():  # TODO: coins\n", "shop/new.py": "# TODO: new\n"}
    with ripwrap.overlay(texts, cwd="demo"):
        for match in sync.search("TODO", cwd="demo", type="py", sort="path"):
            print(match.path, match.text)
    ```

    ```text
    shop/cart.py     # TODO: taxes
    shop/new.py # TODO: new
    shop/till.py def pay():  # TODO: coins
    ```

    Args:
        texts: Map from paths, relative to `cwd` or absolute, to texts. A `str` is encoded as UTF-8. `None` treats the
            file as deleted.
        cwd: Directory that relative paths start from.

    Raises:
        ValueError: Two paths lead to the same file, a path is below another path that has a text, `None` is given for
            a link, or a path is empty or has a NUL.
        IsADirectoryError: A path is a directory.
        NotADirectoryError: A path is below a file on the disk.
        TypeError: `texts` is not a mapping, or a path or text has a wrong type.

    If the overlay mentions a `.gitignore`, `.ignore`, `.rgignore` or `.git/info/exclude`, a search in the block raises
    `ValueError`, unless `no_ignore` is set. If the overlay mentions a file that the search gets as `ignore_file`, the
    search raises `ValueError`, unless `no_ignore_files` is set. In the block, searches can be sorted only by `path`.
    """
    if not isinstance(texts, Mapping):
        raise TypeError(f"an overlay is a mapping of paths to texts, got {type(texts).__name__}")
    outer = _ACTIVE.get()
    merged = OverlayTexts(merge_texts(texts, os.path.abspath(cwd), outer.texts if outer else {}))
    token = None
    try:
        with defer_interrupts():
            token = _ACTIVE.set(merged)
        yield
    finally:
        if token is not None:
            _ACTIVE.reset(token)


def merge_texts(
    texts: Mapping[P, str | bytes | None], cwd: str, outer: Mapping[str, bytes | None]
) -> dict[str, bytes | None]:
    """Return the texts by their real paths, with the texts of an outer overlay that they do not replace."""
    merged = {**outer, **dict(_real_texts(texts, cwd))}
    for path, text in merged.items():
        above = os.path.dirname(path)
        while text is not None and above != os.path.dirname(above):
            if merged.get(above) is not None:
                both = f"{shown(above)} is a file of the overlay, and {shown(path)} is below it"
                raise ValueError(f"{both}; leave one of them out")
            above = os.path.dirname(above)
    return merged


def _real_texts(texts: Mapping[P, str | bytes | None], cwd: str) -> Generator[tuple[str, bytes | None]]:
    """Check the arguments of `overlay()`, and yield the real path and the bytes of each text."""
    names: dict[str, str] = {}
    for path, text in texts.items():
        name = os.fspath(cast("StrPath", path))
        if not isinstance(name, str) or not (text is None or isinstance(text, (str, bytes))):
            raise TypeError(
                "an overlay maps a path to a str, bytes or None, "
                f"got a key of type {type(path).__name__} and a value of type {type(text).__name__}"
            )
        if not name or "\0" in name:
            raise ValueError(f"a path of the overlay must not be empty or have a NUL byte, got {name!r}")
        full = os.path.join(cwd, name)
        real = os.path.realpath(full)
        if os.path.isdir(real):
            raise IsADirectoryError(errno.EISDIR, "a path of the overlay is a directory; pass the path of a file", name)
        if text is None and os.path.islink(full):
            raise ValueError(f"an overlay cannot delete the link {shown(name)}; pass the path that it leads to")
        above = os.path.dirname(real)
        while not os.path.lexists(above):
            above = os.path.dirname(above)
        if not os.path.isdir(above):
            wrong = f"a path of the overlay is below the file {shown(above)}; correct the path"
            raise NotADirectoryError(errno.ENOTDIR, wrong, name)
        if real in names:
            both = f"{shown(names[real])} and {shown(name)}"
            raise ValueError(f"two paths of the overlay lead to the same file: {both}; leave one of them out")
        names[real] = name
        yield real, raw_bytes(text) if isinstance(text, str) else text

"""Texts that count in place of the files on disk, such as unsaved buffers of an editor and edits that are proposed."""

import errno
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar, cast

from ripwrap._text import raw_bytes, shown
from ripwrap.options import StrPath

P = TypeVar("P", bound=StrPath)


@dataclass(frozen=True, slots=True)
class Overlay:
    """Texts of files.

    Attributes:
        texts: Texts by the real path of the file; `None` for a file that counts as deleted.
    """

    texts: Mapping[str, bytes | None]

    def exists(self, path: str) -> bool | None:
        """Return whether a path exists, by its absolute path; `None` if the overlay does not change that."""
        real = os.path.realpath(path)
        if real in self.texts:
            return self.texts[real] is not None
        inside = os.path.join(real, "")
        return any(one.startswith(inside) and text is not None for one, text in self.texts.items()) or None

    def is_file(self, path: str) -> bool:
        """Return whether an absolute path is that of a text."""
        return self.texts.get(os.path.realpath(path)) is not None

    def open(self, path: str) -> int | None:
        """Open the text of a file, by its absolute path, and return the descriptor; `None` if the file has no text.

        Raises:
            FileNotFoundError: The file counts as deleted.
        """
        real = os.path.realpath(path)
        if real not in self.texts:
            return None
        text = self.texts[real]
        if text is None:
            raise FileNotFoundError(errno.ENOENT, "deleted in the overlay", path)
        with tempfile.TemporaryFile() as file:
            file.write(text)
            file.seek(0)
            return os.dup(file.fileno())


_ACTIVE: ContextVar[Overlay | None] = ContextVar("ripwrap_overlay", default=None)


def active_overlay() -> Overlay | None:
    """Return the overlay of the running task or thread; `None` if there is none."""
    return _ACTIVE.get()


def refuse_overlay(what: str) -> None:
    """Raise `ValueError` if there is an overlay, for an operation that cannot follow it.

    Args:
        what: Operation, as the beginning of a sentence.
    """
    if _ACTIVE.get() is not None:
        raise ValueError(
            f"{what} reads only files on disk, and not the texts of overlay(); call it outside of overlay()"
        )


@contextmanager
def overlay(texts: Mapping[P, str | bytes | None], *, cwd: StrPath = ".") -> Generator[None]:
    r"""Let texts count in place of the files on disk: unsaved buffers of an editor, or edits that are proposed.

    In the block, answers are those about a tree in which the texts were written: new files are found, and globs, file
    types, ignore files and `hidden` choose among them as among other files. This holds for `search()`,
    `search_messages()`, `grep()`, `files()`, `tree()`, `expand()`, the counts, and the tools of `Workspace` that use
    them. The text of a file counts wherever links lead to the file. In the block, `rank()`, `coverage()`, `why()`,
    `replace()`, `scan()`, indexes, `Repositories`, other hosts and searches inside of files raise a `ValueError`. The
    block does not change revisions.

    The overlay belongs to the running task (or thread), and to tasks that are started in the block. A generator keeps
    the overlay of its call. Blocks may be nested; the inner text counts.

    ```python
    import ripwrap
    from ripwrap import sync

    texts = {"shop/till.py": "def pay():  # TODO: coins\n", "shop/new.py": "# TODO: new\n"}
    with ripwrap.overlay(texts, cwd="docs/demo"):
        for match in sync.search("TODO", cwd="docs/demo", type="py", sort="path"):
            print(match.path, match.text)
    ```

    ```text
    shop/cart.py     # TODO: taxes
    shop/new.py # TODO: new
    shop/till.py def pay():  # TODO: coins
    ```

    Args:
        texts: Texts by path, relative to `cwd` or absolute. A `str` counts as UTF-8. `None` deletes the file.
        cwd: Directory that relative paths are relative to.

    Raises:
        ValueError: Two paths are the same file, one is a file and the other below it, or `None` would delete a link.
        IsADirectoryError, NotADirectoryError: A path is that of a directory, or below a file.
        TypeError: `texts` is not a mapping, or a path or text has another type.

    A search that reads ignore files raises `ValueError` if a text is that of an ignore file. `sort` can only be `path`.
    """
    if not isinstance(texts, Mapping):
        raise TypeError(f"an overlay is a mapping of paths to texts, got {type(texts).__name__}")
    outer = _ACTIVE.get()
    own = dict(_real_texts(texts, os.path.abspath(cwd)))
    if len(own) < len(texts):
        raise ValueError("two paths of the overlay are the same file; leave one of them out")
    merged = {**(outer.texts if outer else {}), **own}
    for path, text in merged.items():
        above = os.path.dirname(path)
        while text is not None and above != os.path.dirname(above):
            if merged.get(above) is not None:
                raise ValueError(f"{shown(above)} is a file of the overlay, and {shown(path)} is below it; correct one")
            above = os.path.dirname(above)
    token = _ACTIVE.set(Overlay(merged))
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def _real_texts(texts: Mapping[P, str | bytes | None], cwd: str) -> Generator[tuple[str, bytes | None]]:
    """Yield each text with the real path of its file."""
    for path, text in texts.items():
        name = os.fspath(cast("StrPath", path))
        if not isinstance(name, str) or not (text is None or isinstance(text, (str, bytes))):
            raise TypeError(
                f"an overlay maps a path to a str, bytes or None, got {type(path).__name__} to {type(text).__name__}"
            )
        if not name or "\0" in name:
            raise ValueError(f"a path of the overlay is empty or has a NUL: {name!r}")
        full = os.path.join(cwd, name)
        real = os.path.realpath(full)
        if os.path.isdir(real):
            raise IsADirectoryError(errno.EISDIR, "the path of the overlay is a directory; name a file", name)
        if text is None and os.path.islink(full):
            raise ValueError(f"{shown(name)} is a link, which an overlay cannot delete; name the file that it leads to")
        above = os.path.dirname(real)
        while not os.path.lexists(above):
            above = os.path.dirname(above)
        if not os.path.isdir(above):
            raise NotADirectoryError(errno.ENOTDIR, f"the path of the overlay is below {shown(above)}, a file", name)
        yield real, raw_bytes(text) if isinstance(text, str) else text

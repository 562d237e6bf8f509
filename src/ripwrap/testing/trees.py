"""Write small trees of files."""

import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath


@contextmanager
def tree(files: Mapping[str, str | bytes]) -> Generator[Path]:
    r"""Write files into a temporary directory, and remove the directory at the end of the block.

    The directory is in the system's directory for temporary files, so normally no repository and no ignore file above
    it affects a search.

    ```python
    from ripwrap import sync, testing

    with testing.tree({"src/a.py": "# TODO\n", "b.txt": "TODO\n", ".gitignore": "*.txt\n"}) as root:
        print([match.path for match in sync.search("TODO", cwd=root)])
    ```

    ```text
    ['src/a.py']
    ```

    Args:
        files: Text of each file, by its relative path, with slashes. A `str` is written as UTF-8, without changes to
            line ends.

    Yields:
        Absolute path of the directory, with symbolic links resolved.

    Raises:
        ValueError: A path is absolute, is empty, or leads out of the directory.
        TypeError: A text is neither a str nor bytes.
    """
    with tempfile.TemporaryDirectory(prefix="ripwrap-", ignore_cleanup_errors=os.name == "nt") as directory:
        yield write_tree(os.path.realpath(directory), files)


def write_tree(directory: str | os.PathLike[str], files: Mapping[str, str | bytes]) -> Path:
    """Write files into a directory, and return its path; existing files are replaced.

    Args:
        directory: Directory, which must exist.
        files: See `tree()`.

    Raises:
        ValueError: A path is absolute, is empty, or leads out of the directory. Nothing is written.
        TypeError: A text is neither a str nor bytes. Nothing is written.
        OSError: A file cannot be written.
    """
    root = Path(directory)
    contents = [(_relative(path), _content(path, text)) for path, text in files.items()]
    for path, content in contents:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return root


def _content(path: str, text: str | bytes) -> bytes:
    """Return the bytes of a file in a tree."""
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"the text of {path!r} must be a str or bytes, got {type(text).__name__}")
    return text.encode() if isinstance(text, str) else text


def _relative(path: str) -> PurePath:
    """Check the path of a file in a tree, and return it."""
    checked = PurePath(os.fsdecode(path))
    if not checked.name or checked.anchor or os.pardir in checked.parts:
        raise ValueError(f"a path must be relative and lead to a file in the tree, such as 'src/a.py', got {path!r}")
    return checked

"""Make results, trees and assertions for tests, which set only the fields that they need."""

import os
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Unpack

import ripwrap  # its names are loaded when they are used
from ripwrap import sync
from ripwrap.errors import named_paths

if TYPE_CHECKING:
    from ripwrap.binary.resolver import Rg
    from ripwrap.options import StrPath


def match(
    text: str = "TODO\n",
    *,
    path: str = "a.py",
    line_number: int | None = 1,
    absolute_offset: int = 0,
    of: str | None = None,
) -> "ripwrap.Match":
    r"""Return a match as `search()` yields it.

    ```python
    from ripwrap import testing

    print(testing.match("x = 1  # TODO\n", of="TODO").spans())
    ```

    ```text
    [(9, 13)]
    ```

    Args:
        text: The line, or lines that match together, with the line end.
        path: Path of the file.
        line_number: Number of the first line, from 1; `None`, as in a search with `no_line_number`.
        absolute_offset: Offset of the line in the file, in bytes.
        of: Text that matched: each occurrence in `text` is a submatch. `None` is the whole `text` without its line end.

    Raises:
        ValueError: `of` is empty or not in `text`.
    """
    matched = text.rstrip("\n") if of is None else of
    if of is not None and (not of or of not in text):
        raise ValueError(f"of= must be a part of the text {text!r}, and not empty; got {of!r}")
    submatches = list[ripwrap.Submatch]()
    before, *others = text.split(matched) if matched else [text]
    start = len(before.encode())
    for after in others:
        end = start + len(matched.encode())
        submatches.append(ripwrap.Submatch(match=matched, start=start, end=end))
        start = end + len(after.encode())
    return ripwrap.Match(
        path=path, lines=text, line_number=line_number, absolute_offset=absolute_offset, submatches=tuple(submatches)
    )


def grep_result(*matches: "ripwrap.Match", query: str = "TODO", root: str = "/project") -> "ripwrap.GrepResult":
    """Return a complete result of `grep()`: all matches are on one page, without lines of context.

    Args:
        *matches: Matches, in the order of the result; the matches of a file must follow one another.
        query: Pattern, for `GrepResult.query`.
        root: Directory that was searched.
    """
    from ripwrap._text import plural  # late: it imports Pydantic

    files = list[ripwrap.FileMatches]()
    for path, group in groupby(matches, key=lambda one: one.path):
        shown = tuple(ripwrap.GrepMatch.model_validate(one.model_dump()) for one in group)
        files.append(ripwrap.FileMatches(path=path, matches=shown, total_matches=len(shown)))
    counted = f"{plural(len(matches), 'match', 'es')} in {plural(len(files), 'file')}"
    return ripwrap.GrepResult(
        root=root,
        query=query,
        files=tuple(files),
        total_matches=len(matches),
        files_matched=len(files),
        exact=True,
        truncated=False,
        next_offset=None,
        stop_reason="end",
        errors=(),
        dropped_records=0,
        message=f"{counted}." if matches else "No matches found.",
    )


_MAX_SHOWN = 10
"""Maximum number of matches that a failure shows."""


@named_paths
def assert_absent(
    pattern: str | Sequence[str],
    *,
    cwd: "StrPath" = ".",
    paths: "StrPath | Iterable[StrPath]" = (),
    rg: "Rg" = None,
    **options: "Unpack[ripwrap.SearchOptions]",
) -> None:
    """Assert that no line matches, and that the search read at least one file.

    A search that reads no file, because of a wrong glob or directory, also finds nothing. Then the assertion fails.

    ```python
    from ripwrap import testing

    testing.assert_absent("print(", fixed_strings=True, cwd="demo", glob="*.py")
    ```

    Args:
        pattern: Regular expression of rg, or several.
        cwd: Directory to search in.
        paths: Files and directories to search; all of `cwd` by default.
        rg: Path or name of the rg to run; `None` finds one.
        **options: rg's flags; see `SearchOptions`.

    Raises:
        AssertionError: A line matches, no file was searched, or a file could not be read.

    It also raises what `ripwrap.sync.search_messages()` raises.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    found, total, unread = list[str](), 0, list[str]()
    for message in sync.search_messages(pattern, cwd=cwd, paths=paths, rg=rg, **options):
        if isinstance(message, ripwrap.Match):
            total += 1
            if total <= _MAX_SHOWN:
                found.append(f"{message.path}:{message.line_number}: {message.text.rstrip()}")
        elif isinstance(message, ripwrap.Summary):
            unread += [str(error) for error in message.errors if not error.harmless]
    if total > _MAX_SHOWN:
        found.append(f"and {total - _MAX_SHOWN} more")
    if found:
        raise AssertionError(_lines(f"{pattern!r} must not match, but matches:", found))
    if unread:
        raise AssertionError(_lines("the search could not read these paths:", unread))
    with closing(sync.files_without_match(pattern, cwd=cwd, paths=paths, rg=rg, **options)) as searched:
        if next(searched, None) is None:
            raise AssertionError(f"no file was searched for {pattern!r}; check cwd, paths and the options")


def _lines(heading: str, lines: Iterable[str]) -> str:
    return "\n  ".join((heading, *lines))


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
    contents = [_checked(path, text) for path, text in files.items()]
    for path, content in contents:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return root


def _checked(path: str, text: str | bytes) -> tuple[PurePath, bytes]:
    """Check the path and the text of a file in a tree, and return the path and the bytes."""
    checked = PurePath(os.fsdecode(path))
    if not checked.name or checked.anchor or os.pardir in checked.parts:
        raise ValueError(f"a path must be relative and lead to a file in the tree, such as 'src/a.py', got {path!r}")
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"the text of {path!r} must be a str or bytes, got {type(text).__name__}")
    return checked, text.encode() if isinstance(text, str) else text

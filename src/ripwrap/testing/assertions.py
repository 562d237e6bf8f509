"""Assertion that a search finds nothing."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Unpack

import ripwrap
from ripwrap import sync
from ripwrap.errors import named_paths

if TYPE_CHECKING:
    from ripwrap.binary.resolver import Rg
    from ripwrap.options import StrPath

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

"""Functions that make results with defaults, so that a test sets only the fields that it needs."""

from itertools import groupby

import ripwrap  # its names are loaded when they are used


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
        path=path,
        lines=text,
        line_number=line_number,
        absolute_offset=absolute_offset,
        submatches=tuple(submatches),
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

"""Commands of operations that can search a place besides the files on a disk."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from ripwrap._ripgrep.command import Command, search_command
from ripwrap._ripgrep.query import Mode
from ripwrap.errors import Hint, combination_error
from ripwrap.options import SearchOptions, StrPath


def place_command(
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    options: SearchOptions,
    mode: Mode = "json",
    *,
    sorts: bool = True,
    inside: str | Iterable[str] = (),
    **known: Any,
) -> Command:
    """Return the command of a search, with the place in which it searches; see `search_command()`.

    Args:
        pattern: See `search_command()`.
        cwd: See `search_command()`.
        paths: See `search_command()`.
        options: Options of the search. `encoding` may be `detect`.
        mode: See `search_command()`.
        sorts: True if the results keep the order of rg's output, so that the runs of rg cannot be sorted together.
        inside: Formats of archives, notebooks and documents to search inside, too.
        known: Further arguments of `search_command()`.

    Raises:
        RipwrapError: A package is not installed that the place needs.
        ValueError: An option cannot be combined with the place.

    Raises what `search_command()` raises, too.
    """
    if inside:
        from ripwrap._places.inside import in_files  # late: few searches need it

        refuse_with_detect(options, "inside")
        if known.get("on") is not None:
            raise combination_error("on", Hint("inside"))
        return in_files(search_command(pattern, cwd, paths, options, mode, **known), inside)
    if options.get("encoding") != "detect":
        return search_command(pattern, cwd, paths, options, mode, **known)
    from ripwrap._places.detection import detecting  # late: few searches need it

    for name in ("sort", "sortr") if sorts else ():
        if options.get(name) not in (None, "none"):
            raise combination_error(name, Hint("encoding", "detect"))
    if known.get("on") is not None:
        raise combination_error("on", Hint("encoding", "detect"))
    plain = cast("SearchOptions", {name: value for name, value in options.items() if name != "encoding"})
    return detecting(search_command(pattern, cwd, paths, plain, mode, **known))


def refuse_with_detect(options: SearchOptions, name: str) -> None:
    """Raise `ValueError` if the options have `encoding="detect"`, which cannot be combined with the argument `name`."""
    if options.get("encoding") == "detect":
        raise combination_error(name, Hint("encoding", "detect"))

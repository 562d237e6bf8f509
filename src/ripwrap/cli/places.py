"""Flags that say where a command looks: the same group for each command that reads files, and standard input."""

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, cast

from ripwrap._text import plural
from ripwrap.cli.command import STDIN, Option, Texts
from ripwrap.cli.flags import parse_host
from ripwrap.errors import Hint, RipwrapError, combination_error
from ripwrap.options import FileOptions, SearchOptions

if TYPE_CHECKING:
    from ripwrap.places.where import PlacedSearchOptions, PlaceOptions

PLACES = "Options for places"

MAX_STDIN_BYTES = 1 << 30
"""Maximum number of bytes of standard input, which is read into memory."""


@dataclass(frozen=True)
class PlaceFlags:
    """Flags `--rev`, `--repository`, `--inside` and `--on`: the options `PlaceOptions` of the library."""

    rev: Annotated[str | None, Option("Read this revision of git, e.g. main~3", PLACES, "REV")] = None
    repository: Annotated[
        Texts | None, Option("With a revision, refuse repositories outside of DIR", PLACES, "DIR")
    ] = None
    inside: Annotated[str, Option("Read inside of files: zip,tar,gz,ipynb,pdf,docx,xlsx,…", PLACES, "FORMATS")] = ""
    search_zip: Annotated[
        bool, Option("Read inside of gz, bz2, xz and zst files", PLACES, short="z", off=("--no-search-zip",))
    ] = False
    on: Annotated[
        str | None, Option("Host: ssh:HOST[:DIR], docker:NAME[:DIR] or podman:NAME[:DIR]", PLACES, "HOST")
    ] = None

    def options(self) -> "PlaceOptions":
        """Return the options of the library."""
        if self.repository is not None and self.rev is None:
            raise ValueError("--repository needs a revision; add --rev, or leave --repository out")
        formats = (
            *(one.strip() for one in (self.inside.split(",") if self.inside else ())),
            *(_compressions() if self.search_zip else ()),
        )
        given = {"rev": self.rev, "repositories": self.repository, "inside": formats or None, "on": parse_host(self.on)}
        return cast("PlaceOptions", {name: value for name, value in given.items() if value is not None})

    def of(self, paths: Sequence[str], options: SearchOptions) -> "tuple[Sequence[str], PlacedSearchOptions]":
        """Return the paths of a search and all of its options; the path `-` is standard input.

        As in rg, options that choose files have no effect on standard input.
        """
        if STDIN not in paths:
            return paths, {**options, **self.options()}
        if len(paths) > 1:
            raise combination_error("standard input (-)", Hint("paths"), "a file with the name - is ./-")
        for name in (name for name in ("rev", "on") if getattr(self, name) is not None):
            raise combination_error("standard input (-)", Hint(name))
        from ripwrap.places.where import Items  # late: few searches need it

        plain = {name: value for name, value in options.items() if name not in FileOptions.__annotations__}
        given = {**plain, "where": Items([("<stdin>", _read_stdin())]), **self.options()}
        return (), cast("PlacedSearchOptions", given)


@dataclass(frozen=True)
class HistoryFlags:
    """Flags `--history` and `--since`, which read all versions of files."""

    history: Annotated[bool, Option("Read all versions of files, up to --rev", PLACES)] = False
    since: Annotated[str | None, Option("With --history, only commits since DATE", PLACES, "DATE")] = None

    def asked(self) -> bool:
        """Return True if `--history` was given; raise `ValueError` if `--since` was given without it."""
        if self.since is not None and not self.history:
            raise ValueError("--since needs --history; add --history, or leave --since out")
        return self.history


FILES, NO_HISTORY = PlaceFlags(), HistoryFlags()


def placed(
    place: PlaceFlags, history: HistoryFlags, paths: Sequence[str], options: SearchOptions
) -> "tuple[Sequence[str], PlacedSearchOptions]":
    """Return the paths of a search and all of its options, as `PlaceFlags.of()`, also for a history."""
    if not history.asked():
        return place.of(paths, options)
    from ripwrap.places.where import History  # late: few searches need it

    inside = PlaceFlags(inside=place.inside)
    where = History(**history_options(replace(place, inside=""), history, paths))
    return paths, {**options, "where": where, **inside.options()}


def refuse_together(what: str, others: Mapping[str, object]) -> None:
    """Raise `ValueError` if an option was given with which the library has no such operation."""
    for name, value in others.items():
        if value:
            raise combination_error(name, Hint(what))


def history_options(place: PlaceFlags, history: HistoryFlags, paths: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of the library's search in a history."""
    refuse_together("history", {"where": STDIN in paths, "inside": place.inside, "on": place.on})
    rev = "HEAD" if place.rev is None else place.rev
    return {"rev": rev, "since": history.since, "repositories": place.repository}


def stdin_is_pipe() -> bool:
    """Return True if standard input is a pipe, a file or a socket, which rg searches if it is given no PATH.

    `is_readable_stdin()` of rg (`crates/cli/src/lib.rs`) decides in the same way.
    """
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # there is no stdin, or it is closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _compressions() -> tuple[str, ...]:
    """Return the formats of compressed files that this Python reads; rg leaves out those that it cannot read, too."""
    from ripwrap.sources.archives import check_inside  # late: few searches need it

    with suppress(RipwrapError):
        return check_inside(("gz", "bz2", "xz", "zst"))
    return "gz", "bz2", "xz"


def _read_stdin() -> bytes:
    """Return the content of standard input; a closed one is empty, as for rg."""
    content = bytearray()
    if sys.stdin is None:  # Python found it closed
        return b""
    while chunk := sys.stdin.buffer.read(1 << 20):
        content += chunk
        if len(content) > MAX_STDIN_BYTES:
            raise ValueError(
                f"standard input has more than {plural(MAX_STDIN_BYTES, 'byte')}; save it in a file, and search that"
            )
    return bytes(content)

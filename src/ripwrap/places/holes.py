"""Combinations that are not possible, each with its reason: the one table from which errors and a page are made."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

from ripwrap._overlay import active_overlay
from ripwrap.errors import Hint, combination_error

PLACES: Mapping[str, Hint] = {
    "overlay": Hint("overlay()", kind="omit"),
    "rev": Hint("rev"),
    "history": Hint("where"),
    "inside": Hint("inside"),
    "detect": Hint("encoding", "detect"),
    "host": Hint("on"),
    "items": Hint("where"),
    "place": Hint("where"),
}
"""Kinds of places, each as the caller names it.

`history` is `History`, `items` are pairs in memory, and `place` is a place of the caller.
"""

_CHANGES = {
    "overlay": "the files on the disk would be changed, not the texts",
    "rev": "a revision cannot be changed",
    "history": "a history cannot be changed",
    "inside": "what is inside of archives and documents cannot be changed",
    "detect": "a wrong guess would change wrong bytes",
    "host": "files of another machine cannot be changed",
    "items": "items cannot be changed",
    "place": "only files on the disk can be changed",
}
_SYNTAX = dict.fromkeys(PLACES, "the parser reads files from the disk") | {
    "detect": "source code is read as UTF-8",
    "host": "the parser reads files of this machine",
}
_DISK = dict.fromkeys(PLACES, "it reads files from the disk") | {
    "detect": "it reads the bytes of files",
    "host": "it reads files of this machine",
}

HOLES: Mapping[str, Mapping[str, str]] = {
    "replace()": _CHANGES,
    "replace_code()": _CHANGES,
    "search_code()": _SYNTAX,
    "rank()": _DISK,
    "coverage": _DISK,
    "coverage()": _DISK,
    "why()": _DISK,
    "watch()": _DISK,
    "Repositories": {"overlay": _DISK["overlay"]},
    "an index": {
        "overlay": "it has the files on the disk",
        "rev": "it has the files on the disk",
        "history": "it has the files on the disk",
        "inside": "it has the files on the disk",
        "detect": "its words are those of UTF-8",
        "host": "it has files of this machine",
        "place": "it has the files on the disk",
    },
    "file_info()": {"overlay": _DISK["overlay"]},
    "list_directory()": {"overlay": _DISK["overlay"]},
    "ls without rg": {"overlay": _DISK["overlay"]},
    "host": {
        "overlay": "the texts are on this machine",
        "inside": "archives and documents are read on this machine",
        "detect": "encodings are guessed on this machine",
    },
    "history": {"overlay": "a text would replace all versions of a file"},
    "place": {
        "overlay": "ripwrap does not know how the place names its files",
        "inside": "ripwrap does not know how the place reads its files",
    },
    "async": {
        "overlay": "an async iterable of items is read in the event loop; pass an iterable",
        "inside": "an async iterable of items is read in the event loop; pass an iterable",
    },
}
"""For each operation, or kind of place, the kinds of places that do not go with it, with the reasons."""

_WORDS = {
    "items": "`Items`",
    "history": "`History`",
    "place": "a place of your own",
    "async": "`Items` of an async iterable",
    "detect": '`encoding="detect"`',
    "coverage": "`grep(coverage=True)`",
    "an index": "an index",
    "ls without rg": "the tool `ls` without rg",
}
"""Names of operations and places in the table of the documentation, if they are not those of the errors."""


def refuse(what: str, kinds: Iterable[str]) -> None:
    """Raise `ValueError` if an operation, or a kind of place, does not go with one of the kinds of places."""
    known = HOLES.get(what, {})
    for kind in kinds:
        if kind in known:
            wrong = PLACES.get(what, what)
            raise combination_error(wrong, PLACES[kind], known[kind])


def refuse_pairs(kinds: Iterable[str]) -> None:
    """Raise `ValueError` if two of the kinds of places do not go together."""
    for one, other in combinations(kinds, 2):
        refuse(one, (other,))
        refuse(other, (one,))


def refuse_places(operation: str, options: Mapping[str, Any] | None = None) -> None:
    """Raise `ValueError` if a call names a place, or is in a block of `overlay()`, for an operation without places."""
    options = options or {}
    given = {
        "overlay": active_overlay() is not None,
        "rev": options.get("rev") is not None,
        "inside": options.get("inside"),
        "detect": options.get("encoding") == "detect",
        "host": options.get("on") is not None,
        "place": options.get("where") is not None,
    }
    refuse(operation, (kind for kind, is_given in given.items() if is_given))


def table() -> str:
    """Return the table of the documentation: operations and places that do not go together, with the reasons."""
    rows = ["| what | with | why not |", "|---|---|---|"]
    for what, kinds in HOLES.items():
        for reason in dict.fromkeys(kinds.values()):
            with_ = ", ".join(_named(kind) for kind, why in kinds.items() if why == reason)
            rows.append(f"| {_named(what)} | {with_} | {reason} |")
    return "\n".join(rows)


def _named(what: str) -> str:
    return _WORDS.get(what) or f"`{PLACES.get(what, what)}`"

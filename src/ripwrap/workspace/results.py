"""Results of tools: frozen models, whose `str()` a model reads, and their JSON, which fits into the same budget."""

import json
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias, cast

from ripwrap._text import cut_text, plural, shown, shown_path
from ripwrap.models import Model

Values: TypeAlias = dict[str, Any]

_KEPT_CHARS = (1000, 300, 100, 30)
"""Maximum lengths of strings, tried in this order, in an answer that is too long even with one entry."""

_PATHS = frozenset({"path", "root", "file", "files", "denied", "entries"})
"""Names of fields that have paths."""


def json_chars(values: Values) -> int:
    """Return the length of values as `json.dumps()` writes them; other writers need less."""
    return len(json.dumps(values))


def shown_values(value: Any, show: Callable[..., str] = shown) -> Any:
    """Return JSON values with all strings and keys as `shown()` shows them: they reach a model, as the text does.

    Paths are as `shown_path()` shows them.
    """
    if isinstance(value, str):
        return show(value, lines=True)
    if isinstance(value, dict):
        return {
            show(key, lines=True): shown_values(one, shown_path if key in _PATHS else show)
            for key, one in cast("Values", value).items()
        }
    if isinstance(value, list):
        entries: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [shown_values(one, show) for one in entries]
    return value


def first_entries(values: Values, names: Iterable[str], count: int) -> Values:
    """Return values with only the first `count` entries of the lists and maps that have these names."""
    few = {name: _first(values[name], count) for name in names if name in values}
    return values | few


def _first(entries: Any, count: int) -> Any:
    if isinstance(entries, dict):
        return dict([*cast("Values", entries).items()][:count])
    return entries[:count]


def fit(values: Values, max_chars: int, most: int, fewer: Callable[[int], Values]) -> Values:
    """Return values that fit into `max_chars` characters of JSON: whole, with fewer entries or shorter strings."""
    if json_chars(values) <= max_chars:
        return values
    made = values
    for length in _KEPT_CHARS:

        def cut(count: int, length: int = length) -> Values:
            # The pattern that a caller gave, the message and notes are cut before entries are left out.
            few = fewer(count)
            note = f"These values were cut to max_chars={max_chars}: they have {count} of {most} entries of the text."
            few |= {"truncated": True, "notes": [note, *few.get("notes", ())][:5]}
            return {
                name: _cut(one, length, deep=name == "notes" or length < _KEPT_CHARS[0]) for name, one in few.items()
            }

        fits = bisect_left(range(1, most + 1), True, key=lambda count: json_chars(cut(count)) > max_chars)
        made = cut(fits)
        if json_chars(made) <= max_chars and (fits or not most):
            break
    return made


def _cut(value: Any, length: int, *, deep: bool) -> Any:
    """Return values with strings of at most `length` characters; if `deep` is False, entries are not cut."""
    if isinstance(value, str):
        return cut_text(value, length)
    if isinstance(value, dict) and deep:
        return {name: _cut(one, length, deep=deep) for name, one in cast("Values", value).items()}
    if isinstance(value, list) and deep:
        entries: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [_cut(one, length, deep=deep) for one in entries]
    return value  # pyright: ignore[reportUnknownVariableType]


MAX_CHARS = 20_000
"""Default of `max_chars`, the maximum length of an answer in characters."""

MAX_NAME_CHARS = 300
"""Maximum number of characters of a path in a message or note."""

ListingEngine: TypeAlias = Literal["rg", "python"]


class ToolResult(Model, ABC, frozen=True):
    """Base class of the results of all tools.

    Attributes:
        root: Absolute path of the directory to which paths in the answer are relative; with several roots, paths are
            absolute.
        path: File or directory that was searched or listed.
        truncated: True if there is more than the answer shows.
        next_offset: Value of `offset` for the next page (for `read_file()`, value of `start_line`); `None` if there is
            no next page, or if `offset` cannot reach it.
        message: Summary of what was found and what was left out, and how to get the rest.
        notes: Further sentences, for example about time limits and about paths that could not be read.
        engine: `python` if Python code listed the files: in `ls()` if rg cannot be used, and in `find_files()` if
            it looks for directories, too, or if `path` is a file. Otherwise `rg`.
    """

    root: str
    path: str
    truncated: bool = False
    next_offset: int | None = None
    message: str
    notes: tuple[str, ...] = ()
    engine: ListingEngine = "rg"

    _entries: ClassVar[tuple[str, ...]] = ()
    """Names of the fields whose entries `structured()` leaves out if there is no room for all."""

    def __str__(self) -> str:
        """Return the text for a language model: the lines, then `message` and `notes` in parentheses."""
        said = " ".join((self.message, *self.notes))
        body = "\n".join(self._body())
        return shown(f"{body}\n\n({said})" if body else said, lines=True)

    def structured(self, max_chars: int = MAX_CHARS) -> dict[str, Any]:
        """Return the result as plain JSON values for MCP, without fields that have their default values.

        `structured_schema()` returns the JSON schema of these values. Some lists have a shorter form than in
        `model_dump()`, e.g. paths instead of objects. Control characters are escaped as in `str()`. If the JSON is too
        long, entries at the end are left out, then strings are cut; `truncated` and a note say so.
        """
        values = shown_values(self._values())
        return fit(values, max_chars, self._count(), lambda count: self._fewer(values, count))

    def _values(self) -> dict[str, Any]:
        """Return the whole result as JSON values."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def _count(self) -> int:
        """Return the number of entries that `_fewer()` can leave out."""
        return max((len(getattr(self, name)) for name in self._entries), default=0)

    def _fewer(self, values: dict[str, Any], count: int) -> dict[str, Any]:
        """Return values with only the first `count` entries, and with `next_offset` for the rest, if that is known."""
        return first_entries(values, self._entries, count) | ({} if count == self._count() else {"next_offset": None})

    @classmethod
    def structured_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of `structured()`; the schema also accepts `model_dump(mode="json")`."""
        return cls.model_json_schema(mode="validation")

    @abstractmethod
    def _body(self) -> Iterator[str]:
        """Yield the lines of the text, without `message` and `notes`."""


class FileHits(Model, frozen=True):
    """File with matches.

    Attributes:
        path: Path of the file.
        count: Number of matching lines, or with `multiline`, number of matches; in `replace_content()`, number of
            replacements. `None` if nothing was counted.
    """

    path: str
    count: int | None = None


def next_offset_after(result: ToolResult, count: int, page: Sequence[object], total: int) -> dict[str, Any]:
    """Return the `next_offset` after the first `count` entries of a page that lists a total number of entries."""
    end = total if result.next_offset is None else result.next_offset
    return {"next_offset": result.next_offset if count == len(page) else end - len(page) + count if count else None}


def shown_start(text: str) -> str:
    """Return a text on one line, with control characters escaped, and with at most `MAX_NAME_CHARS` characters."""
    return shown_path(text)[:MAX_NAME_CHARS]


class FileInfo(Model, frozen=True):
    """File or directory of a workspace.

    Attributes:
        path: Path as in answers of tools: relative to the root, or absolute if there are several roots.
        name: Last part of the path.
        is_dir: True for a directory, or a link to a directory.
        size: Size of the file in bytes; `None` for a directory, and for a path that cannot be read, such as a broken
            link.
        modified_at: Time of the last change; `None` if it cannot be read, or if Python does not support the year.
        mode: Kind and permissions as `ls -l` shows them, such as `-rw-r--r--`; empty if they cannot be read.
    """

    path: str
    name: str
    is_dir: bool
    size: int | None = None
    modified_at: datetime | None = None
    mode: str = ""

    @property
    def details(self) -> str:
        """Mode, size and time as a text such as `-rw-r--r--, 12 bytes, 2026-03-01T12:00:00Z`."""
        size = None if self.size is None else plural(self.size, "byte")
        time = None if self.modified_at is None else f"{self.modified_at:%Y-%m-%dT%H:%M:%SZ}"
        return ", ".join(filter(None, (self.mode, size, time)))

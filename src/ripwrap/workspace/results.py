"""Results of tools: the base class of frozen models, whose `str()` is the text that a language model reads."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias

from ripwrap._text import shown, shown_path
from ripwrap.models import Model
from ripwrap.workspace.structured import first_entries, fit, shown_values

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
        return fit(values, max_chars, self._count(), partial(self._fewer, values))

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
    """

    path: str
    name: str
    is_dir: bool
    size: int | None = None
    modified_at: datetime | None = None

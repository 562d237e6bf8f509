"""Items to search, and the base class of sources, which read items from processes, files or object stores."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping
from typing import Literal, Self, TypeAlias

from ripwrap.models import Location, PathError

Item: TypeAlias = tuple[str, bytes | str]
"""Name and content of something to search; rg searches a `str` as UTF-8.

A `Source` of ripwrap may yield a large content as a file that is open for reading bytes, until the next item is read.
"""

ItemIterable: TypeAlias = Iterable[Item]
AnyItems: TypeAlias = ItemIterable | AsyncIterable[Item]

SEPARATOR = "!/"
"""Separator between the path of an archive or document and the name of its member or part: `a.zip!/dir/b.py`."""

InsideFormat: TypeAlias = Literal[
    "zip", "tar", "gz", "bz2", "xz", "zst", "ipynb", "ipynb-outputs", "pdf", "docx", "xlsx"
]
"""Built-in formats of archives, compressed files, notebooks and documents."""

Adapter: TypeAlias = Callable[[bytes], Iterable[tuple[Location, str | Exception]]]
"""Function that reads a document: for each part, it yields the location and the text, or the location and an error."""


class NamedItem(str):
    """Name of an item that is inside of another one, or whose matches have fields besides those that rg writes."""

    outer: str | None = None

    def fields(self, text: Callable[[str], object]) -> Mapping[str, object]:
        """Return the further fields of each match, as JSON; `text` converts a text to JSON."""
        return self.outer.fields(text) if isinstance(self.outer, NamedItem) else {}


def as_formats(inside: str | Iterable[str]) -> tuple[str, ...]:
    """Return the formats of `inside`; a value that is no format is returned, too, for an error that shows it."""
    return tuple(inside) if isinstance(inside, Iterable) and not isinstance(inside, str) else (inside,)


def inner_name(outer: str, name: str) -> NamedItem:
    """Return the name of a member of an archive, whose matches have the further fields of the archive."""
    member = NamedItem(f"{outer}{SEPARATOR}{name}")
    member.outer = outer
    return member


class LocatedName(NamedItem):
    """Name of an item that is a part of a document."""

    location: Location

    @classmethod
    def of(cls, document: str, location: Location) -> Self:
        """Return the name of a part of a document, such as `report.pdf!/page 3`."""
        name = cls(f"{document}{SEPARATOR}{location}")
        name.location = location
        name.outer = document
        return name

    def fields(self, text: Callable[[str], object]) -> Mapping[str, object]:
        """Return the location of the match in the document, and the fields of the document."""
        return {**super().fields(text), "location": self.location.model_dump(mode="json")}


class Source(ABC):
    """Source that reads items from processes, files or object stores. When a search ends, the search closes its source.

    Attributes:
        errors: Errors for items that could not be read; complete after the iteration.
        deadline: Time, as `time.monotonic()` gives it, after which the iteration raises `TimeoutError`; `None` is no
            limit.
    """

    def __init__(self) -> None:
        self.errors: list[PathError] = []
        self.deadline: float | None = None
        self.selects: Callable[[str], bool] = lambda name: True  # noqa: ARG005
        """Function that takes the name of an item and returns True if the item is to be read."""

    @abstractmethod
    def __iter__(self) -> Iterator[Item]:
        """Yield the selected items. The search iterates in a thread of its own."""

    @abstractmethod
    def close(self) -> None:
        """End processes and close files. An iteration in another thread ends early."""


class NamedSource(Source):
    """Source that knows the names of its items before it reads them."""

    @abstractmethod
    def names(self) -> Iterator[str]:
        """Yield the names of the selected items."""

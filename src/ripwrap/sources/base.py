"""Items to search, and the base class of sources that read items from processes or files."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from typing import Literal, Self, TypeAlias

from ripwrap.models import Location, PathError

Item: TypeAlias = tuple[str, bytes | str]
"""Name and content of something to search; a `str` is searched as UTF-8."""

Items: TypeAlias = Iterable[Item]
AnyItems: TypeAlias = Items | AsyncIterable[Item]

SEPARATOR = "!/"
"""Text between the path of an archive or document and the name of what is in it, as in `a.zip!/dir/b.py`."""

Inside: TypeAlias = Literal["zip", "tar", "gz", "bz2", "xz", "zst", "ipynb", "ipynb-outputs", "pdf", "docx", "xlsx"]
"""Formats of archives, compressed files, notebooks and documents."""

Adapter: TypeAlias = Callable[[bytes], Iterable[tuple[Location, str | Exception]]]
"""Function that reads a document: it yields its parts, each with its text, or with an error if it cannot be read."""


class LocatedName(str):
    """Name of an item that is a part of a document.

    Attributes:
        location: The part.
    """

    location: Location

    @classmethod
    def of(cls, document: str, location: Location) -> Self:
        """Return the name of a part of a document."""
        name = cls(f"{document}{SEPARATOR}{location}")
        name.location = location
        return name


class Source(ABC):
    """Items that are read from processes or files. They are closed at the end of a search.

    Attributes:
        errors: Items that could not be read; complete after the iteration.
        deadline: Time of `time.monotonic()` at which an iteration that waits ends with a `TimeoutError`; `None` is no
            limit.
    """

    def __init__(self) -> None:
        self.errors: list[PathError] = []
        self.deadline: float | None = None
        self.selects: Callable[[str], bool] = lambda name: True  # noqa: ARG005
        """Function that takes the name of an item, and returns True if the item must be read."""

    @abstractmethod
    def __iter__(self) -> Iterator[Item]:
        """Read the items that are selected, in a thread."""

    @abstractmethod
    def close(self) -> None:
        """End processes and close files. If another thread iterates, its iteration ends early."""


class NamedSource(Source):
    """Source that knows the names of its items before it reads them."""

    @abstractmethod
    def names(self) -> Iterator[str]:
        """Yield the names of the selected items."""

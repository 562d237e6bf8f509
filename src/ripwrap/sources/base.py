"""Items, and the base of the sources that hold processes or files."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from typing import Literal, TypeAlias

from ripwrap.models import PathError

Item: TypeAlias = tuple[str, bytes | str]
"""Name and content of something to search; a `str` is searched as UTF-8."""

Items: TypeAlias = Iterable[Item]
AnyItems: TypeAlias = Items | AsyncIterable[Item]

Inside: TypeAlias = Literal["zip", "tar", "gz", "bz2", "xz", "zst"]
"""Formats of archives and compressed files."""


class Source(ABC):
    """Items that are read from processes or files, which the end of a search closes.

    Attributes:
        errors: Items that could not be read; complete after the iteration.
    """

    def __init__(self) -> None:
        self.errors: list[PathError] = []
        self.selects: Callable[[str], bool] = lambda name: True  # noqa: ARG005
        """Function that returns whether to read the item with a name."""

    @abstractmethod
    def __iter__(self) -> Iterator[Item]:
        """Read the items that are selected, in a thread."""

    @abstractmethod
    def close(self) -> None:
        """End processes and close files, also while another thread iterates; the iteration then ends early."""


class NamedSource(Source):
    """Source that knows the names of its items before it reads them."""

    @abstractmethod
    def names(self) -> Iterator[str]:
        """Yield the names of the selected items."""

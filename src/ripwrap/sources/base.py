"""Items to search, and the base class of sources, which read items from processes, files or object stores."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Self, TypeAlias, cast

from ripwrap.errors import Hint, HintedText, RipwrapError
from ripwrap.models import Location, PathError

Item: TypeAlias = tuple[str, bytes | str]
"""Name and content of something to search; rg searches a `str` as UTF-8.

A `Source` of ripwrap may yield a large content as a file that is open for reading bytes, until the next item is read.
"""

ItemIterable: TypeAlias = Iterable[Item]
AnyItems: TypeAlias = ItemIterable | AsyncIterable[Item]

SEPARATOR = "!/"
"""Separator between the path of an archive or document and the name of its member or part: `a.zip!/dir/b.py`."""

SUFFIXES: dict[str, tuple[str, ...]] = {
    "zip": (".zip", ".whl", ".jar", ".war", ".egg", ".nupkg", ".vsix", ".apk"),
    "tar": (
        *(".tar", ".tgz", ".taz", ".tbz", ".tbz2", ".tb2", ".tz2", ".txz", ".tlz", ".tzst", ".crate", ".gem"),
        *(f".tar.{one}" for one in ("gz", "bz2", "bz", "xz", "lzma", "zst", "z", "lz", "lzo", "lz4")),
    ),
    "gz": (".gz",),
    "bz2": (".bz2", ".bz"),
    "xz": (".xz", ".lzma"),
    "zst": (".zst",),
}
"""File extensions of each format of archives, in lower case."""

UNPACKED = ("zip", "tar")
"""Formats of archives whose bytes may have the text of a member as it is."""

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


GROUP = "ripwrap.inside"
_EXTRA = "ripwrap[documents]"
_REVISION = 2
"""Number that is raised when built-in adapters read other texts, so that texts in the cache are not used."""


@dataclass(frozen=True, slots=True)
class Format:
    """File format of notebooks or documents."""

    name: str
    suffix: str
    target: str
    package: str = ""
    distribution: str = ""

    @property
    def version(self) -> str:
        """Target of the adapter, and version of its distribution. Cached texts from another version are not used."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            return f"{self.target} {_REVISION} {version(self.distribution) if self.distribution else ''}"
        except PackageNotFoundError:
            return self.target

    def load(self) -> Adapter:
        """Import the adapter."""
        from importlib.metadata import EntryPoint

        return cast("Adapter", EntryPoint(self.name, self.target, GROUP).load())


_BUILT_IN = {
    one.name: one
    for one in (
        Format("ipynb-outputs", ".ipynb", "ripwrap.sources.notebooks:read_cells_and_outputs"),
        Format("ipynb", ".ipynb", "ripwrap.sources.notebooks:read_cells"),
        Format("pdf", ".pdf", "ripwrap.sources.documents:read_pdf", "pypdf", "pypdf"),
        Format("docx", ".docx", "ripwrap.sources.documents:read_docx", "docx", "python-docx"),
        Format("xlsx", ".xlsx", "ripwrap.sources.documents:read_xlsx", "python_calamine", "python-calamine"),
    )
}


def find_format(name: str) -> Format | None:
    """Return the format with this name; `None` if no built-in format or entry point has this name."""
    return _BUILT_IN.get(name) or (None if name.startswith(".") else _added().get(name))


def format_of(name: str, inside: Sequence[str]) -> str | None:
    """Return the format in `inside` that has the extension of a file name; `None` if there is no such format."""
    lower = name.lower()
    for kind in sorted(inside, key=lambda kind: kind != "tar"):
        document = None if kind in SUFFIXES else find_format(kind)
        if lower.endswith(SUFFIXES.get(kind, ()) if document is None else document.suffix):
            return kind
    return None


def installed_formats() -> Iterator[str]:
    """Yield the names of the formats that entry points add, in alphabetical order."""
    yield from sorted(_added().keys() - _BUILT_IN.keys())


@cache
def _added() -> dict[str, Format]:
    """Return the formats that entry points add, by name."""
    from importlib.metadata import entry_points

    found = entry_points(group=GROUP)
    owners = {one.name: "" if one.dist is None else one.dist.name for one in found}
    return {one.name: Format(one.name, f".{one.name.lower()}", one.value, "", owners[one.name]) for one in found}


def check_installed(wanted: Format) -> None:
    """Raise `RipwrapError` if the package that a format needs is not installed."""
    if wanted.package and find_spec(wanted.package) is None:
        said = f"{wanted.name!r} needs the package {wanted.distribution}: "
        raise RipwrapError(HintedText(said, Hint(kind="install", target=_EXTRA)))

"""Formats of notebooks and documents, each with the adapter that reads it: our own, and those of entry points.

A package adds a format with an entry point of the group `ripwrap.inside`: its name is the format, and the end of the
names of files (`pptx` reads `*.pptx`); its value is an `Adapter`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from typing import cast

from ripwrap.errors import Hint, HintedText
from ripwrap.sources.base import Adapter

GROUP = "ripwrap.inside"
_EXTRA = "ripwrap[documents]"


@dataclass(frozen=True, slots=True)
class Format:
    """Format of documents.

    Attributes:
        name: Name of the format.
        suffix: End of the names of its files, in lower case.
        target: Module and function of the adapter, as in an entry point: `package.module:function`.
        package: Name of the package that the adapter needs; empty for the standard library.
        distribution: Name of the distribution that has the package or the adapter; empty for the standard library.
    """

    name: str
    suffix: str
    target: str
    package: str = ""
    distribution: str = ""

    @property
    def version(self) -> str:
        """Text that changes whenever another version of the adapter may read other texts."""
        try:
            return f"{self.target} {version(self.distribution) if self.distribution else ''}"
        except PackageNotFoundError:
            return self.target

    def load(self) -> Adapter:
        """Import the adapter.

        Raises:
            ImportError, AttributeError: There is none.
        """
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
    """Return the format of documents with a name; `None` if there is none."""
    return _BUILT_IN.get(name) or (None if name.startswith(".") else _added().get(name))


def installed_formats() -> Iterator[str]:
    """Yield the names of the formats that entry points add."""
    yield from sorted(_added().keys() - _BUILT_IN.keys())


@cache
def _added() -> dict[str, Format]:
    """Return the formats of entry points, by name."""
    found = entry_points(group=GROUP)
    return {one.name: Format(one.name, f".{one.name.lower()}", one.value, "", _owner(one)) for one in found}


def _owner(point: EntryPoint) -> str:
    return "" if point.dist is None else point.dist.name


def check_installed(wanted: Format) -> None:
    """Raise `ValueError` if the package for a format is not there."""
    if wanted.package and find_spec(wanted.package) is None:
        raise ValueError(
            HintedText(
                f"{wanted.name!r} needs the package {wanted.distribution}: ", Hint(kind="install", target=_EXTRA)
            )
        )

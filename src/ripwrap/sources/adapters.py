"""Formats of notebooks and documents: built-in formats, and formats that other packages add.

Each format has an adapter, a function that reads files of this format. A package adds a format with an entry point in
the group `ripwrap.inside`. The name of the entry point is both the name of the format and the file extension, without
the dot: `pptx` is for `*.pptx`. The entry point refers to the adapter (see `Adapter`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from ripwrap.errors import Hint, HintedText, RipwrapError
from ripwrap.sources.base import Adapter

# `importlib.metadata` imports the package `email`, which takes 8 ms. So it is imported where it is used.
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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


def installed_formats() -> Iterator[str]:
    """Yield the names of the formats that entry points add, in alphabetical order."""
    yield from sorted(_added().keys() - _BUILT_IN.keys())


@cache
def _added() -> dict[str, Format]:
    """Return the formats that entry points add, by name."""
    from importlib.metadata import entry_points

    found = entry_points(group=GROUP)
    return {one.name: Format(one.name, f".{one.name.lower()}", one.value, "", _owner(one)) for one in found}


def _owner(point: "EntryPoint") -> str:
    return "" if point.dist is None else point.dist.name


def check_installed(wanted: Format) -> None:
    """Raise `RipwrapError` if the package that a format needs is not installed."""
    if wanted.package and find_spec(wanted.package) is None:
        raise RipwrapError(
            HintedText(
                f"{wanted.name!r} needs the package {wanted.distribution}: ", Hint(kind="install", target=_EXTRA)
            )
        )

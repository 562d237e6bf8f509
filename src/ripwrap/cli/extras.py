"""Extras of ripwrap: which are installed, and which commands need one that is not."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, requires

NEEDED: dict[str, tuple[str, ...]] = {
    "mcp": ("mcp",),
    "watch": ("watch",),
    "code": ("structure",),
    "outline, refs, expand": ("code",),
    "index build, index search": ("index",),
    "index watch": ("index", "watch"),
    "index build --embedder=wordllama": ("vectors",),
    "search --encoding=detect": ("detect",),
    "search --inside=pdf,docx,xlsx": ("documents",),
    "search --dask": ("cluster",),
}
"""Extras that a command, or a flag of a command, needs."""

_REQUIREMENT = re.compile(r"([\w.-]+).*;.*\bextra == [\"']([\w-]+)[\"']")


def version() -> str:
    """Return the version of ripwrap."""
    try:
        return distribution("ripwrap").version
    except PackageNotFoundError:  # run from its sources, without an installation
        return "of unknown version"


def missing_packages(extra: str) -> tuple[str, ...]:
    """Return the packages of an extra that are not installed."""
    return tuple(name for name, one in _requirements() if one == extra and not _is_installed(name))


def needed_packages(extra: str) -> tuple[str, ...]:
    """Return the missing packages without which an extra is of no use: an index works without `code` and `watch`."""
    useful = {name for name, one in _requirements() if extra == "index" and one in ("code", "watch")}
    return tuple(name for name in missing_packages(extra) if name not in useful)


def extras() -> tuple[str, ...]:
    """Return the names of all extras."""
    return tuple(dict.fromkeys(extra for _, extra in _requirements()))


@cache
def _requirements() -> tuple[tuple[str, str], ...]:
    """Return the package and the extra of each requirement; the metadata of ripwrap has no extra within an extra."""
    try:
        stated = requires("ripwrap") or []
    except PackageNotFoundError:
        stated = []
    return tuple((found[1], found[2]) for found in map(_REQUIREMENT.match, stated) if found)


@cache
def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True

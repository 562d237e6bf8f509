"""Commands `ripwrap doctor` and `ripwrap install`: show and install rg, and tell which extras are installed."""

import re
import sys
import sysconfig
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, requires
from typing import Annotated, Any

from ripwrap import binary, sync
from ripwrap._text import shown
from ripwrap.binary.platforms import current, describe
from ripwrap.binary.probe import format_version
from ripwrap.binary.resolver import how_to_install
from ripwrap.cli.command import SETUP_EXIT_CODES, Command, Option, Texts
from ripwrap.cli.flags import RgPath, parse_host
from ripwrap.cli.terminal import FAILED, FOUND, DownloadBar, complain, shows_color, styled
from ripwrap.errors import Hint, combination_error

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


@Command(
    examples=("ripwrap doctor", "ripwrap doctor --rg ./rg"),
    exit_codes=SETUP_EXIT_CODES,
)
def doctor(*, rg: RgPath = None) -> int:
    """Show which rg is used and why, and which extras are installed.

    The exit code is 2 if there is no rg; missing extras do not change it.
    """
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    python = sys.implementation.name, tuple(sys.version_info[:2])
    print(describe(current(), *python, free_threaded=free_threaded))
    there = [extra for extra in extras() if not missing_packages(extra)]
    print(f"{_styled('ripwrap', 'bold')} {_styled(version(), 'bold green')}, extras: {', '.join(there)}")
    for command, needed in NEEDED.items():
        if missing := [name for extra in needed for name in needed_packages(extra)]:
            install = Hint(kind="install", target=f"ripwrap[{','.join(needed)}]")
            mark, named = _styled("✗", "dim"), _styled(f"ripwrap {command}", "bold")
            print(f"{mark} {named} needs {', '.join(dict.fromkeys(missing))}: {install}")
    places = binary.explain(rg)
    for place in places:
        mark = _styled("✓", "green") if place.usable else _styled("✗", "dim")
        print(f"{mark} {_styled(place.source, 'bold')} {shown(place.path)}: {shown(place.reason)}")
    if places[-1].source == "download" and not any(place.usable for place in places):
        # rg would be downloaded at the first search; `doctor` does not download it.
        complain(
            "there is no rg yet; `ripwrap install` downloads one. "
            f"Or install it yourself, for instance:\n{how_to_install()}"
        )
        return FAILED
    found = sync.resolve(rg)
    features = ", ".join(sorted(found.features)) or "none"
    release = _styled(format_version(found.version), "bold green")
    print(f"{_styled('rg', 'bold')} {release}, features: {features}\n{shown(found.path)}")
    return FOUND


def _styled(text: str, style: str) -> str:
    return styled(text, style, colored=shows_color("auto"))


@Command(
    "[VERSION]",
    examples=("ripwrap install", "ripwrap install 15.2.0 --dest /usr/local/bin", "ripwrap install --on ssh:build-7"),
    exit_codes=SETUP_EXIT_CODES,
)
def install(
    version: Annotated[str | None, Option("Release, e.g. 15.2.0 [default: the newest known]")] = None,
    /,
    *,
    dest: Annotated[str | None, Option("Directory to put rg into [default: ripwrap's cache]", value="DIR")] = None,
    on: Annotated[str | None, Option("Host to put rg on: ssh:HOST, docker:NAME or podman:NAME", value="HOST")] = None,
    mirror: Annotated[Texts, Option("Base address in place of GitHub's; may be repeated", value="URL")] = (),
    sha256: Annotated[
        str | None, Option("SHA-256 of your own archive, in place of ripwrap's hash", value="HASH")
    ] = None,
    allow_unpinned: Annotated[
        bool, Option("If ripwrap has no hash, trust the published .sha256 file", off=("--no-allow-unpinned",))
    ] = False,
    timeout: Annotated[float, Option("Maximum number of seconds for the whole installation", value="SECONDS")] = 120.0,
) -> int:
    """Download rg, check its hash, and install it."""
    if dest is not None and on is not None:
        raise combination_error("dest", Hint("on", kind="omit"), "it is a directory of this machine")
    host, mirrors = parse_host(on), mirror or None
    with DownloadBar() as progress:
        given: Any = {"mirrors": mirrors, "sha256": sha256, "allow_unpinned": allow_unpinned, "timeout": timeout}
        if host is None:
            found = sync.install(version, dest=dest, progress=progress, **given)
        else:
            found = host.install_blocking(version, progress=progress, **given)
    state = "installed" if found.source == "download" else "is already installed"
    place = "" if host is None else f"{host.name}: "
    print(f"rg {format_version(found.version)} {state}: {place}{shown(found.path)}")
    return FOUND

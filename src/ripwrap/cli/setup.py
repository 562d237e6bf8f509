"""Commands `ripwrap doctor` and `ripwrap install`: show and install rg."""

import sys
import sysconfig
from functools import partial
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from ripwrap import binary, sync
from ripwrap._text import shown
from ripwrap.binary.platforms import current, describe
from ripwrap.binary.probe import format_version
from ripwrap.binary.resolver import how_to_install
from ripwrap.cli.bars import DownloadBar
from ripwrap.cli.errors import FAILED, FOUND, complain
from ripwrap.cli.extras import NEEDED, extras, missing_packages, version
from ripwrap.cli.flags import RgPath, parse_host
from ripwrap.cli.help import SETUP_EXIT_CODES, epilogue
from ripwrap.cli.terminal import styled_console
from ripwrap.errors import Hint, combination_error

doctor: App = App(
    name="doctor",
    usage="ripwrap doctor [OPTIONS]",
    help_epilogue=epilogue("ripwrap doctor", "ripwrap doctor --rg ./rg", after=SETUP_EXIT_CODES),
)


@doctor.default
def run_doctor(*, rg: RgPath = None) -> int:
    """Show which rg is used and why, and which extras are installed.

    The exit code is 2 if there is no rg; missing extras do not change it.
    """
    console = styled_console()
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    python = sys.implementation.name, tuple(sys.version_info[:2])
    console.print(describe(current(), *python, free_threaded=free_threaded))
    _print_extras(console)
    places = binary.explain(rg)
    for place in places:
        mark = Text("✓ " if place.usable else "✗ ", "green" if place.usable else "dim")
        console.print(Text.assemble(mark, (place.source, "bold"), " ", shown(place.path), ": ", shown(place.reason)))
    if places[-1].source == "download" and not any(place.usable for place in places):
        # rg would be downloaded at the first search; `doctor` does not download it.
        complain(
            "there is no rg yet; `ripwrap install` downloads one. "
            f"Or install it yourself, for instance:\n{how_to_install()}"
        )
        return FAILED
    found = sync.resolve(rg)
    features = ", ".join(sorted(found.features)) or "none"
    console.print(
        Text.assemble(
            ("rg ", "bold"),
            (format_version(found.version), "bold green"),
            f", features: {features}\n{shown(found.path)}",
        )
    )
    return FOUND


def _print_extras(console: Console) -> None:
    """Print the version, the extras that are installed, and the commands for which a package is missing."""
    there = [extra for extra in extras() if not missing_packages(extra)]
    console.print(Text.assemble(("ripwrap ", "bold"), (version(), "bold green"), f", extras: {', '.join(there)}"))
    for command, needed in NEEDED.items():
        if missing := [name for extra in needed for name in missing_packages(extra)]:
            install = Hint(kind="install", target=f"ripwrap[{','.join(needed)}]")
            mark, named = Text("✗ ", "dim"), (f"ripwrap {command}", "bold")
            console.print(Text.assemble(mark, named, f" needs {', '.join(dict.fromkeys(missing))}: {install}"))


install: App = App(
    name="install",
    usage="ripwrap install [OPTIONS] [VERSION]",
    help_epilogue=epilogue(
        "ripwrap install",
        "ripwrap install 15.2.0 --dest /usr/local/bin",
        "ripwrap install --on ssh:build-7",
        after=SETUP_EXIT_CODES,
    ),
)


@install.default
def run_install(
    version: str | None = None,
    /,
    *,
    dest: Annotated[str | None, Parameter(metavar="DIR")] = None,
    on: Annotated[str | None, Parameter(metavar="HOST")] = None,
    mirror: Annotated[list[str] | None, Parameter(metavar="URL", negative=())] = None,
    sha256: Annotated[str | None, Parameter(metavar="HASH")] = None,
    allow_unpinned: Annotated[bool, Parameter(show_default=False)] = False,
    timeout: Annotated[float, Parameter(metavar="SECONDS")] = 120.0,
) -> int:
    """Download rg, check its hash, and install it.

    Parameters
    ----------
    version
        Release, e.g. 15.2.0 [default: the newest known]
    dest
        Directory to put rg into [default: ripwrap's cache]
    on
        Host to put rg on: ssh:HOST, docker:NAME or podman:NAME
    mirror
        Base address in place of GitHub's; may be repeated
    sha256
        SHA-256 of your own archive, in place of ripwrap's hash
    allow_unpinned
        If ripwrap has no hash, trust the published .sha256 file
    timeout
        Maximum number of seconds for the whole installation
    """
    if dest is not None and on is not None:
        raise combination_error("dest", Hint("on", kind="omit"), "it is a directory of this machine")
    host = parse_host(on)
    call = partial(sync.install, dest=dest) if host is None else host.install_blocking
    with DownloadBar() as progress:
        found = call(
            version,
            mirrors=mirror,
            sha256=sha256,
            allow_unpinned=allow_unpinned,
            timeout=timeout,
            progress=progress,
        )
    state = "installed" if found.source == "download" else "is already installed"
    place = "" if host is None else f"{host.name}: "
    print(f"rg {format_version(found.version)} {state}: {place}{shown(found.path)}")
    return FOUND

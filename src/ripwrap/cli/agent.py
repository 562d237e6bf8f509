"""Command `ripwrap agent`: put ripwrap into the configuration of agents, take it out, and list where it is."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from ripwrap._agents.plan import CLIENTS, ClientName, ConfigChange, Target, is_used, planned, state_of, targets, write
from ripwrap._system.safe_write import Disk
from ripwrap._text import shown
from ripwrap.cli.command import SETUP_EXIT_CODES, Command, CommandGroup, Option
from ripwrap.cli.flags import Color, Cwd
from ripwrap.cli.setup import missing_packages
from ripwrap.cli.terminal import FOUND, colored_diff, complain, shows_color
from ripwrap.errors import Hint

User = Annotated[bool, Option("Edit the user's files, not those of the project")]
DryRun = Annotated[bool, Option("Show the changes, and write nothing")]

_LOSSES = {"mcp": "the server does not start", "code": "its tools find no definitions"}
"""What the server lacks without an extra."""


@Command(
    "[CLIENT]...",
    examples=(
        "ripwrap agent install claude cursor",
        "ripwrap agent install codex --user --dry-run",
        "ripwrap agent install claude --hook",
    ),
    exit_codes=SETUP_EXIT_CODES,
)
def install(
    *client: Annotated[ClientName, Option("Agents to set up [default: those in use]")],
    user: User = False,
    hook: Annotated[bool, Option("Also send Claude Code's Grep and Glob to ripwrap")] = False,
    dry_run: DryRun = False,
    cwd: Cwd = ".",
    color: Color = "auto",
) -> int:
    """Add ripwrap's MCP server, and a guide to it, to agents.

    CLIENT is claude, codex, cursor, gemini, vscode or opencode.

    All changes are shown as a diff, then written. If a file cannot be edited, none is.
    """
    project = Path(os.path.abspath(cwd))
    chosen = client or tuple(name for name in CLIENTS if is_used(name, project))
    if not chosen:
        raise ValueError(f"no agent is in use here; name one of {', '.join(CLIENTS)}")
    if hook and "claude" not in chosen:
        raise ValueError("--hook is for claude alone; leave it out, or name claude")
    changes = [planned(one, install=True) for one in _targets(chosen, project, user=user, hook=hook)]
    if shutil.which("ripwrap") is None:
        complain(
            "the program ripwrap is not in PATH, so clients may not find it; install it, e.g. with pipx or uv tool"
        )
    for extra, effect in _LOSSES.items():
        if missing_packages(extra):
            complain(f"without the extra {extra}, {effect}: {Hint(kind='install', target=f'ripwrap[{extra}]')}")
    return _finish(changes, "already installed", color, dry_run=dry_run)


@Command(
    "[CLIENT]...",
    examples=("ripwrap agent uninstall claude", "ripwrap agent uninstall --user --dry-run"),
    exit_codes=SETUP_EXIT_CODES,
)
def uninstall(
    *client: Annotated[ClientName, Option("Agents to remove ripwrap from [default: all]")],
    user: User = False,
    dry_run: DryRun = False,
    cwd: Cwd = ".",
    color: Color = "auto",
) -> int:
    """Remove what `ripwrap agent install` has written."""
    found = _targets(client or CLIENTS, Path(os.path.abspath(cwd)), user=user, hook=True)
    for target in found:
        if state_of(target) == "yours":
            complain(f"{target.client}: {target.path}: install did not write this, so it stays")
    changes = [planned(one, install=False) for one in found if os.path.lexists(one.path)]
    return _finish(changes, "nothing is installed", color, dry_run=dry_run)


@Command(examples=("ripwrap agent list",), exit_codes=SETUP_EXIT_CODES)
def list_agents(*, cwd: Cwd = ".") -> int:
    """List the files of agents, and whether ripwrap is in them."""
    project = Path(os.path.abspath(cwd))
    for user in (False, True):
        for target in _targets(CLIENTS, project, user=user, hook=True):
            scope = "user" if user else "project"
            print(f"{target.client:9} {scope:8} {shown(state_of(target)):10} {shown(str(target.path))}")
    return FOUND


def _targets(clients: Iterable[ClientName], project: Path, *, user: bool, hook: bool) -> list[Target]:
    if not project.is_dir():
        raise ValueError(f"--cwd must be a directory, got {project}")
    found = (targets(client, None if user else project, hook=hook) for client in dict.fromkeys(clients))
    return [target for each in found for target in each]


def _finish(changes: list[ConfigChange], nothing: str, color: Color, *, dry_run: bool) -> int:
    """Show the changes, write them, and return the exit code."""
    todo = [change for change in changes if change.what != "keep"]
    for change in todo:
        print(colored_diff(change.diff(), colored=shows_color(color)), end="")
    if not todo:
        complain(nothing)
    elif dry_run:
        complain("nothing was written; without --dry-run these changes are written")
    else:
        write(todo, Disk())
        for change in todo:
            verb = {"create": "created", "change": "changed", "delete": "deleted"}[change.what]
            print(f"{change.client}: {verb} {shown(change.path)}")
    return FOUND


agent: CommandGroup = CommandGroup(
    "Set up agents to search with ripwrap, or undo that.",
    {"install": install, "uninstall": uninstall, "list": list_agents},
    examples=("ripwrap agent install claude --dry-run", "ripwrap agent list", "ripwrap agent uninstall claude"),
    exit_codes=SETUP_EXIT_CODES,
)

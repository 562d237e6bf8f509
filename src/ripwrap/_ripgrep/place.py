"""Plan the runs of rg that a command needs: one run, or several whose output is changed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripwrap._ripgrep.change import Change
    from ripwrap._ripgrep.command import Command
    from ripwrap._ripgrep.exit_status import Exit
    from ripwrap._ripgrep.runner import Runner


@dataclass(frozen=True, slots=True)
class Part:
    """Run of rg that is a part of a search.

    Attributes:
        command: Command, without an overlay.
        change: Change of rg's output; `None` if the output is taken as it is.
    """

    command: "Command"
    change: "Change | None" = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Runs of rg that a search needs.

    Attributes:
        parts: Runs, in order; empty if there is an `end`.
        end: Exit of an rg that was stopped at the time limit while the plan was made; `None` if all was planned.
    """

    parts: tuple[Part, ...]
    end: "Exit | None" = None


async def plan(command: "Command", run: "Runner", seconds: float | None) -> Plan:
    """Return the runs of rg that a command needs; the command itself if it searches the files on the disk."""
    if command.overlay is not None:
        from ripwrap._ripgrep import overlaid  # late: few searches need it

        return await overlaid.plan(command, run, seconds)
    return Plan((Part(command),))

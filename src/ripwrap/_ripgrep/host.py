"""Interface to a host: another machine, or a container, on which rg runs. `ripwrap.remote` implements it."""

from collections.abc import Sequence
from typing import Protocol

from ripwrap.binary.probe import RgBinary
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, HintedText, RemoteError

STARTED = b"\0ripwrap\n"
"""Bytes that a host writes to stdout and stderr right before it starts rg.

Bytes before them come from other programs. For example, bash reads `.bashrc` for each command of ssh, and `.bashrc` may
print text.
"""

HOST_ROOM_BYTES = 96 * 1024
"""Maximum size of the arguments of one command on a host, in bytes.

ssh gets all of them in one argument, which Linux limits to 128 KiB (execve(2)).
"""

INSTALL_THERE = Hint(kind="call", target="host.install")
"""Hint to call `host.install()`, which puts a current rg on the host."""


def host_start_error(error: OSError, argv: tuple[str, ...]) -> RemoteError:
    """Return the error for a local program, such as ssh, that could not be started."""
    other = (", or pass the path of another one to ssh() or docker() as ", Hint("program"))
    return RemoteError(HintedText(f"could not start {argv[0]}: {error.strerror}; install it", other), argv=argv)


class RgHost(Protocol):
    """Host on which rg runs, in place of this machine.

    Hosts are immutable and hashable. `command_line()` returns the command line of a program on this machine, such as
    ssh, which runs rg on the host. When the stdin of this program is closed, rg on the host is ended. So rg also ends
    when this Python process ends.
    """

    def path(self, cwd: str) -> str:
        """Return the path of a directory on the host, given the `cwd` that a caller passed."""
        ...

    def cost(self, argument: str) -> int:
        """Return the number of bytes that an argument of rg takes in the command line of the local program."""
        ...

    def find(self, rg: Rg, *, timeout: float | None = None) -> RgBinary:
        """Return the rg to run on the host; blocking. The result is cached for each value of `rg`."""
        ...

    def command_line(self, argv: Sequence[str], cwd: str) -> tuple[str, ...]:
        """Return the command line of a local program that runs rg in a directory on the host, and ends when rg ends."""
        ...

    def returncode(self, code: int) -> int | None:
        """Convert the exit code of the local program to the exit code of rg; `None` if rg did not end by itself."""
        ...

    def failure(self, argv: tuple[str, ...], cwd: str, code: int, stderr: bytes) -> Exception:
        """Return the error for a local program whose exit code is not the exit code of rg."""
        ...

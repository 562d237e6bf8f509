"""A host for `on=` that is this machine: rg runs in a directory of its own, without a shell."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from ripwrap.binary import RgBinary
from ripwrap.binary.resolver import Rg, find
from ripwrap.errors import RemoteError

SCRIPT = r"""printf '\000ripwrap\n'; printf '\000ripwrap\n' >&2; cd "$1" && shift && exec "$@" """


@dataclass(frozen=True)
class ThisMachine:
    """Host whose directories begin at `root`."""

    root: str

    def __str__(self) -> str:
        return "this machine"

    def path(self, cwd: str) -> str:
        return os.path.join(self.root, cwd)

    def cost(self, argument: str) -> int:
        return len(argument) + 1

    def find(self, rg: Rg, *, timeout: float | None = None) -> RgBinary:
        return find(rg, timeout=timeout)

    def command_line(self, argv: Sequence[str], cwd: str) -> tuple[str, ...]:
        return ("sh", "-c", SCRIPT, "sh", os.path.normpath(cwd), *argv)

    def returncode(self, code: int) -> int | None:
        return code

    def failure(self, argv: tuple[str, ...], cwd: str, code: int, stderr: bytes) -> Exception:
        return RemoteError(subprocess.list2cmdline(argv))

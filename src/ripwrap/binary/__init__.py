"""Where is rg? `resolve()` answers, `install()` brings one, `explain()` says why it is the one."""

from ripwrap.binary.probe import RgBinary, Source
from ripwrap.binary.resolver import Candidate, explain, install, resolve

__all__ = ["Candidate", "RgBinary", "Source", "explain", "install", "resolve"]

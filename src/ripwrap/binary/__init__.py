"""Where is rg? `resolve()` answers, `install()` brings one, `explain()` says why it is the one."""

from ripwrap.binary.places import Candidate
from ripwrap.binary.probe import RgBinary, Source
from ripwrap.binary.resolver import explain, install, resolve

__all__ = ["Candidate", "RgBinary", "Source", "explain", "install", "resolve"]

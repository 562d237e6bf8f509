"""Find and install rg: `resolve()` finds it, `install()` downloads it, `explain()` lists every candidate."""

from ripwrap.binary.probe import RgBinary, Source
from ripwrap.binary.resolver import Candidate, explain, install, resolve

__all__ = ["Candidate", "RgBinary", "Source", "explain", "install", "resolve"]

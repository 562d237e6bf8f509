"""Find and install rg: `resolve()` finds it, `install()` downloads it, `explain()` lists every candidate."""

from ripwrap.binary.candidates import Candidate
from ripwrap.binary.probe import RgBinary, Source
from ripwrap.binary.resolver import explain, install, resolve

__all__ = ["Candidate", "RgBinary", "Source", "explain", "install", "resolve"]

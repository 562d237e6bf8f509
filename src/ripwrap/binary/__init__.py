"""Where is rg? `find()` answers; `explain()` says why."""

from ripwrap.binary.resolver import Candidate, RgBinary, Source, explain, find

__all__ = ["Candidate", "RgBinary", "Source", "explain", "find"]

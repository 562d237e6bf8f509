"""Command line `ripwrap`: rg's flags, and results as lines or as JSON; it can also start an MCP server.

Each command is in a module, which is imported when the command is used. The modules of `search`, `files`, `tree`,
`types` and `rank` import Pydantic only when the command runs, after its arguments are read. With an earlier import,
cyclopts would use Pydantic to check each argument (20 ms), and `--help` would take 80 ms more.

A plain command line of `search`, `files` or `mcp` is run without cyclopts (`plain.py`), because cyclopts takes more
time than the search of a small directory: 60 ms for its import, and 60 ms to assemble the flags.
"""

from ripwrap.cli.program import run

__all__ = ["run"]

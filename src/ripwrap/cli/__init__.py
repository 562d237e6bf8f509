"""Command line `ripwrap`: rg's flags, and results as lines or as JSON; it can also start an MCP server.

Each command is in a module, which is imported when the command is used. The modules of `search`, `files`, `tree`,
`types` and `rank` import Pydantic only when the command runs, after its arguments are read. With an earlier import,
cyclopts would use Pydantic to check each argument (20 ms), and `--help` would take 80 ms more.
"""

from ripwrap.cli.app import run

__all__ = ["run"]

"""Command line `ripwrap`: rg's flags, and results as lines or as JSON; it can also start an MCP server.

Each command is in a module, which is imported when the command is used. The modules of `search`, `files`, `tree`,
`types` and `rank` import Pydantic only when the command runs: `--help` would take 80 ms more.
"""

from ripwrap.cli.commands import run

__all__ = ["run"]

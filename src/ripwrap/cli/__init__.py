"""Command line `ripwrap`: rg's flags, and results as lines or as JSON; it can also start an MCP server."""

from ripwrap.cli.app import run

__all__ = ["run"]

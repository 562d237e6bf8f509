"""The command line, `ripwrap`: ripgrep's own flags, with answers as lines, JSON or an MCP server."""

from ripwrap.cli.app import run

__all__ = ["run"]

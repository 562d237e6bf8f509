"""Command line `ripwrap`: rg's flags, and results as lines or as JSON. The module of a command is imported when it is used."""

from ripwrap.cli.commands import run

__all__ = ["run"]

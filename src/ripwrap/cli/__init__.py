"""Command line `ripwrap`: rg's flags, and results as lines or JSON. A command's module is imported when it is used."""

from ripwrap.cli.commands import run

__all__ = ["run"]

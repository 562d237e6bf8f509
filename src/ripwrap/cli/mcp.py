"""Command `ripwrap mcp`: serve tools to agents, over MCP."""

from cyclopts import App

from ripwrap.cli.help import SETUP_EXIT_CODES, epilogue
from ripwrap.cli.run_mcp import run_mcp

mcp: App = App(
    name="mcp",
    usage="ripwrap mcp [OPTIONS]",
    help_epilogue=epilogue(
        "ripwrap mcp --root .", "ripwrap mcp --root src --root docs --http --port 8080", after=SETUP_EXIT_CODES
    ),
)
mcp.default(run_mcp)

"""Table of the commands, without cyclopts.

The module of a command is imported when the command is used, and has the usage and the options of the command. The list
of all commands also needs one line about each command, so these lines are here.
"""

COMMANDS: dict[str, str] = {
    "search:search": "Search files for a regular expression.",
    "files:files": "List the files that a search would read.",
    "files:tree": "Show files as a tree, shortened to --limit entries.",
    "files:types": "List the file types that --type accepts, with their globs.",
    "files_matching:files-matching": "List the files that match several patterns.",
    "watch:watch": "Search again each time files change.",
    "read:read": "Read lines of a file, with their numbers.",
    "read:expand": "Print the definition or block around a line.",
    "rank:rank": "Find code by words or a name, best first.",
    "refs:refs": "Find the definitions and uses of a name.",
    "outline:outline": "List the definitions of a file, with their lines.",
    "index:index": "Keep an index of a directory, and search with it.",
    "scan:scan": "Search for texts that match rules, e.g. secrets.",
    "why:why": "Show why a search reads a file, or does not.",
    "replace:replace": "Show a diff of replacements, or write them with --apply.",
    "code:code": "Search code by its syntax, or replace it.",
    "replace:undo": "Undo the last replacement in a directory.",
    "setup:doctor": "Show which rg is used, and what is missing.",
    "setup:install": "Download rg, check its hash, and install it.",
    "mcp:mcp": "Serve tools to agents, over MCP.",
    "agent:agent": "Set up agents to search with ripwrap, or undo that.",
}
"""Map the module and name of each command to the line about it."""

NAMES: tuple[str, ...] = tuple(one.partition(":")[2] for one in COMMANDS)

FIRST_FLAGS = ("--help", "-h", "--version", "-V", "--install-completion")
"""Flags that a command line may have in place of a command."""

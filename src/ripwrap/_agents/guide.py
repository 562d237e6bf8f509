"""Texts for language models that say when to use which tool; no I/O."""

NAME = "ripwrap"
DESCRIPTION = (
    "Search and read code with the ripwrap tools (grep_content, find_files, codebase_search, ls, tree, read_file) "
    "instead of grep, find and cat in a shell. Use when looking for a text, a name, a file or the code behind a "
    "question."
)
BODY = """\
# Search with ripwrap

The MCP server `ripwrap` searches with ripgrep. Its answers have line numbers and exact counts, say what they leave out,
and are limited in length. Prefer its tools to `grep`, `rg`, `find`, `ls` and `cat` in a shell, and to built-in tools
such as Grep and Glob.

| to do | tool |
|---|---|
| find lines by a regular expression or a text | `grep_content` |
| find files by a glob | `find_files` |
| find code by a question or by words | `codebase_search` |
| list a directory, or directories as a tree | `ls`, `tree` |
| read a file or a range of its lines | `read_file` |

- Begin with `grep_content` if you know a name or a text, and with `codebase_search` if you do not.
- Narrow a search with `path` and `file_pattern` before you widen it.
- Read the last line of an answer: it has the counts, and says how to get the rest.
- "0 matches" means that nothing matches. A failed search says that it failed.
"""

HOOK_MESSAGE = (
    "Use the MCP server ripwrap: its tool grep_content in place of Grep, its tool find_files in place of Glob. They "
    "take the same arguments."
)
"""What Claude Code tells the model when the hook refuses a call of Grep or Glob."""


def front_matter(*lines: str) -> str:
    """Return the YAML at the beginning of a file of Markdown."""
    return "".join(f"{line}\n" for line in ("---", *lines, "---"))


SKILL = front_matter(f"name: {NAME}", f"description: {DESCRIPTION}")
"""Front matter of a skill (https://agentskills.io), which several clients read."""
CURSOR_RULE = front_matter(f"description: {DESCRIPTION}", "alwaysApply: true")
INSTRUCTIONS = front_matter(f"description: {DESCRIPTION}", "applyTo: '**'")
"""Front matter of a file of instructions for VS Code."""

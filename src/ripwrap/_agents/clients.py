"""The agents that install knows: their configuration files, what is written into each, and the texts for models.

The formats are those of the clients' documentation in November 2026; `docs/how-to/mcp.md` shows them.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import platformdirs

from ripwrap._agents.json_text import MADE, MARK, JsonEntry, TextBlock, TomlEntry, is_object

NAME = "ripwrap"
DESCRIPTION = (
    "Search and read code with the ripwrap tools (grep_content, find_files, codebase_search, find_references, ls, "
    "tree, read_file) instead of grep, find and cat in a shell. Use when looking for a text, a name, a file or the "
    "code behind a question."
)
BODY = """\
# Search with ripwrap

The MCP server `ripwrap` searches with ripgrep. Its answers have line numbers and counts, say what they leave out,
and are limited in length. Prefer its tools to `grep`, `rg`, `find`, `ls` and `cat` in a shell, and to built-in tools
such as Grep and Glob.

| to do | tool |
|---|---|
| find lines by a regular expression or a text | `grep_content` |
| find files by a glob | `find_files` |
| find code by a question or by words | `codebase_search` |
| find the definitions and uses of a name | `find_references` |
| list a directory, or directories as a tree | `ls`, `tree` |
| read a file or a range of its lines | `read_file` |
| see the definitions of a file, before you read a long one | `read_file` with `outline` |

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


ClientName: TypeAlias = Literal["claude", "codex", "cursor", "gemini", "vscode", "opencode"]
CLIENTS: tuple[ClientName, ...] = get_args(ClientName)
FileEdit: TypeAlias = JsonEntry | TomlEntry | TextBlock
"""What install writes into a file."""


@dataclass(frozen=True, slots=True)
class Target:
    """File that install edits."""

    client: ClientName
    base: Path
    paths: tuple[str, ...]
    edit: FileEdit

    @property
    def path(self) -> Path:
        """The file: the one with our mark, or the first that exists, or the first name."""
        there = [path for name in self.paths if os.path.lexists(path := self.base / name)]
        marked = filter(_is_marked, there if len(there) > 1 else ())
        return next(marked, (there or [self.base / self.paths[0]])[0])


def targets(client: ClientName, project: Path | None, *, hook: bool) -> tuple[Target, ...]:
    """Return the files of a client."""
    base = project or Path.home()
    found = [Target(client, base, paths, edit) for paths, edit in _files(client, is_project=project is not None)]
    return tuple(found if hook else found[:2])


def is_used(client: ClientName, project: Path) -> bool:
    """Return True if a project or the user's home has files of a client."""
    places = [target for place in (project, None) for target in targets(client, place, hook=False)[:1]]
    return any(
        os.path.lexists(target.path) or (target.path.parent != target.base and target.path.parent.is_dir())
        for target in places
    )


def program_missing() -> bool:
    """Return True if the program `ripwrap`, which the clients start, is not in PATH."""
    return shutil.which(NAME) is None


def _files(client: ClientName, *, is_project: bool) -> tuple[tuple[tuple[str, ...], FileEdit], ...]:
    """Return the names of the files of a client in a project, or of its user, and what is written into each."""
    here, workspace = _arguments("."), _arguments("${workspaceFolder}")
    skill, skill_file = TextBlock(BODY, SKILL), f"skills/{NAME}/SKILL.md"

    def folder(name: str, variable: str) -> str:
        return name if is_project else os.environ.get(variable) or name

    match client:
        case "claude":
            server = ".mcp.json" if is_project else f"{folder('.', 'CLAUDE_CONFIG_DIR')}/.claude.json"
            own = folder(".claude", "CLAUDE_CONFIG_DIR")
            return (
                ((server,), _server("mcpServers", {"type": "stdio", **here}, comments=False)),
                ((f"{own}/{skill_file}",), skill),
                ((f"{own}/settings.json",), _HOOK),
            )
        case "codex":
            return ((f"{folder('.codex', 'CODEX_HOME')}/config.toml",), _CODEX), ((f".agents/{skill_file}",), skill)
        case "cursor":
            rule = (f".cursor/rules/{NAME}.mdc",), TextBlock(BODY, CURSOR_RULE)
            server = ".cursor/mcp.json"
            guide = rule if is_project else ((f".cursor/{skill_file}",), skill)
            return ((server,), _server("mcpServers", workspace)), guide
        case "gemini":
            server, context = ".gemini/settings.json", "GEMINI.md" if is_project else ".gemini/GEMINI.md"
            return ((server,), _server("mcpServers", {**here, "cwd": "."})), ((context,), TextBlock(BODY))
        case "vscode":
            code = f"{platformdirs.user_config_path('Code', appauthor=False, roaming=True)}/User"
            server, guides = (".vscode", ".github/instructions") if is_project else (code, f"{code}/prompts")
            return (
                ((f"{server}/mcp.json",), _server("servers", {"type": "stdio", **workspace})),
                ((f"{guides}/{NAME}.instructions.md",), TextBlock(BODY, INSTRUCTIONS)),
            )
        case "opencode":
            config = ".opencode" if is_project else f"{folder('.config', 'XDG_CONFIG_HOME')}/opencode"
            names = (f"{config}/opencode.json", f"{config}/opencode.jsonc")
            command = [here["command"], *here["args"]]
            value = {"type": "local", "command": command, "environment": {MARK: MADE}}
            return (
                (
                    ("opencode.json", "opencode.jsonc", *names) if is_project else names,
                    JsonEntry(_opencode_keys, NAME, value),
                ),
                ((f"{config}/{skill_file}",), skill),
            )


def _arguments(root: str) -> dict[str, Any]:
    return {"command": NAME, "args": ["mcp", "--root", root]}


def _server(key: str, value: dict[str, Any], *, comments: bool = True) -> JsonEntry:
    return JsonEntry(_keys(key), NAME, {**value, "env": {MARK: MADE}}, comments)


def _keys(*keys: str) -> Callable[[Any], tuple[str, ...]]:
    return lambda _: keys


def _opencode_keys(config: dict[str, Any]) -> tuple[str, ...]:
    """Return the keys of the servers: opencode 2 reads `mcp.servers.NAME`, and also `mcp.NAME`, as opencode 1 does."""
    mcp = config.get("mcp")
    servers = mcp.get("servers") if is_object(mcp) and NAME not in mcp else None
    is_server = is_object(servers) and bool(servers.keys() & {"type", "command", "url", "enabled"})
    return ("mcp", "servers") if is_object(servers) and not is_server else ("mcp",)


def _is_marked(path: Path) -> bool:
    try:
        return path.is_file() and MARK.encode() in path.read_bytes()
    except OSError:
        return False


_HOOK = JsonEntry(
    _keys("hooks", "PreToolUse"),
    None,
    {
        "matcher": "Grep|Glob",
        # Exit code 2 refuses the call, and the model reads stderr. The comment is for uninstall.
        "hooks": [{"type": "command", "command": f"echo '{HOOK_MESSAGE}' >&2; exit 2 # {MARK} {MADE}"}],
    },
    comments=False,
)
_CODEX = TomlEntry(
    "mcp_servers",
    NAME,
    TextBlock(f'[mcp_servers.{NAME}]\ncommand = "{NAME}"\nargs = ["mcp", "--root", "."]\n', comment=("# ", "")),
)

"""The agents that install knows: their configuration files, and what is written into each.

The formats are those of the clients' documentation in November 2026; `docs/how-to/mcp.md` shows them.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

import platformdirs

from ripwrap._agents.blocks import Block, TomlEntry
from ripwrap._agents.guide import BODY, CURSOR_RULE, HOOK_MESSAGE, INSTRUCTIONS, NAME, SKILL
from ripwrap._agents.json_text import MADE, MARK, JsonEntry, Removed

ClientName: TypeAlias = Literal["claude", "codex", "cursor", "gemini", "vscode", "opencode"]
CLIENTS: tuple[ClientName, ...] = get_args(ClientName)


class FileEdit(Protocol):
    """What install writes into a file: `JsonEntry`, `TomlEntry` or `Block`."""

    def add(self, text: str | None, made: str) -> str: ...
    def remove(self, text: str) -> Removed: ...
    def state(self, text: str) -> str: ...
    def snippet(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Target:
    """File that install edits.

    Attributes:
        client: Name of the client.
        base: Directory that exists: the project, or the user's home.
        paths: Names that the file may have, relative to `base`; the first is the name of a new file.
        edit: What install writes into the file.
    """

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
    """Return the files of a client.

    Args:
        client: Name of the client.
        project: Directory of the project; `None` for the files of the user.
        hook: True to include the settings with the hook of Claude Code.
    """
    base = project or Path.home()
    files = _PROJECT_FILES[client] if project else _user_files(client)
    found = [Target(client, base, paths, edit) for paths, edit in zip(files, _edits(client, project), strict=True)]
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


_SKILL_FILE = f"skills/{NAME}/SKILL.md"
_PROJECT_FILES: dict[ClientName, tuple[tuple[str, ...], ...]] = {
    "claude": ((".mcp.json",), (f".claude/{_SKILL_FILE}",), (".claude/settings.json",)),
    "codex": ((".codex/config.toml",), (f".agents/{_SKILL_FILE}",)),
    "cursor": ((".cursor/mcp.json",), (f".cursor/rules/{NAME}.mdc",)),
    "gemini": ((".gemini/settings.json",), ("GEMINI.md",)),
    "vscode": ((".vscode/mcp.json",), (f".github/instructions/{NAME}.instructions.md",)),
    "opencode": (
        ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
        (f".opencode/{_SKILL_FILE}",),
    ),
}


def _user_files(client: ClientName) -> tuple[tuple[str, ...], ...]:
    match client:
        case "claude":
            folder = os.environ.get("CLAUDE_CONFIG_DIR")
            settings = f"{folder or '.claude'}/"
            server = f"{folder}/.claude.json" if folder else ".claude.json"
            return (server,), (f"{settings}{_SKILL_FILE}",), (f"{settings}settings.json",)
        case "codex":
            return (f"{os.environ.get('CODEX_HOME') or '.codex'}/config.toml",), (f".agents/{_SKILL_FILE}",)
        case "cursor":
            return (".cursor/mcp.json",), (f".cursor/{_SKILL_FILE}",)
        case "gemini":
            return (".gemini/settings.json",), (".gemini/GEMINI.md",)
        case "vscode":
            folder = f"{platformdirs.user_config_path('Code', appauthor=False, roaming=True)}/User"
            return (f"{folder}/mcp.json",), (f"{folder}/prompts/{NAME}.instructions.md",)
        case "opencode":
            folder = f"{os.environ.get('XDG_CONFIG_HOME') or '.config'}/opencode"
            return (f"{folder}/opencode.json", f"{folder}/opencode.jsonc"), (f"{folder}/{_SKILL_FILE}",)


def _edits(client: ClientName, project: Path | None) -> tuple[FileEdit, ...]:
    here, workspace = _arguments("."), _arguments("${workspaceFolder}")
    skill = Block(BODY, SKILL)
    match client:
        case "claude":
            return _server("mcpServers", {"type": "stdio", **here}, comments=False), skill, _HOOK
        case "codex":
            return _CODEX, skill
        case "cursor":
            return _server("mcpServers", workspace), Block(BODY, CURSOR_RULE) if project else skill
        case "gemini":
            return _server("mcpServers", {**here, "cwd": "."}), Block(BODY)
        case "vscode":
            return _server("servers", {"type": "stdio", **workspace}), Block(BODY, INSTRUCTIONS)
        case "opencode":
            command = [here["command"], *here["args"]]
            value = {"type": "local", "command": command, "environment": {MARK: MADE}}
            return JsonEntry(_opencode_keys, NAME, value), skill


def _arguments(root: str) -> dict[str, Any]:
    return {"command": NAME, "args": ["mcp", "--root", root]}


def _server(key: str, value: dict[str, Any], *, comments: bool = True) -> JsonEntry:
    return JsonEntry(_keys(key), NAME, {**value, "env": {MARK: MADE}}, comments)


def _keys(*keys: str) -> Callable[[Any], tuple[str, ...]]:
    return lambda _: keys


def _opencode_keys(config: dict[str, Any]) -> tuple[str, ...]:
    """Return the keys of the servers: opencode 2 reads `mcp.servers.NAME`, and also `mcp.NAME`, as opencode 1 does."""
    mcp = config.get("mcp")
    servers = mcp.get("servers") if isinstance(mcp, dict) and NAME not in mcp else None
    is_server = isinstance(servers, dict) and bool(servers.keys() & {"type", "command", "url", "enabled"})
    return ("mcp", "servers") if isinstance(servers, dict) and not is_server else ("mcp",)


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
    ("mcp_servers", NAME),
    _arguments("."),
    Block(f'[mcp_servers.{NAME}]\ncommand = "{NAME}"\nargs = ["mcp", "--root", "."]\n', comment=("# ", "")),
)

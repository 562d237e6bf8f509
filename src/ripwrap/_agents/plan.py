"""Plan the changes of agents' configuration files, show them as a diff, and write them; what each agent gets."""

import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import platformdirs

from ripwrap._agents import json_text
from ripwrap._agents.json_text import MADE, MARK, JsonEntry, TakenError, TextBlock, TomlEntry, is_object
from ripwrap._system.safe_write import Disk, FileState, refuse_protected
from ripwrap._text import cut_text

NAME = "ripwrap"
DESCRIPTION = (
    "Search and read code with the ripwrap tools (grep_content, find_files, codebase_search, find_references, ls, "
    "tree, read_file, history) instead of grep, find, cat and git log in a shell. Use when looking for a text, a name, "
    "a file, the code behind a question, or the commit that changed it."
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
| see which commits changed a file, text or lines, and what a commit changed | `history` |
| see the definitions of a file, before you read a long one | `read_file` with `outline` |

- Begin with `grep_content` if you know a name or a text, and with `codebase_search` if you do not.
- Narrow a search with `path` and `file_pattern` before you widen it.
- Read the last line of an answer: it has the counts, and says how to get the rest.
- "No matches found" means that nothing matches. A failed search begins with "Error:".
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


MAX_BYTES = 16 << 20
"""Largest configuration file that is read; a longer one is refused."""

_MAX_LINE = 400
_BOM = b"\xef\xbb\xbf"
_MARKS = json_text.MARK, json_text.BLOCK_MARK
"""Texts of which one is in each file that install has written."""


class RefusedError(ValueError):
    """A file cannot be edited, so nothing is written; the message names the file and what to do."""


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Planned change of a file."""

    client: ClientName
    path: str
    real: str
    old: bytes | None
    new: bytes | None
    state: FileState | None
    folders: tuple[Path, ...] = ()

    @property
    def what(self) -> str:
        """What is done: 'create', 'change', 'delete' or 'keep'."""
        if self.old == self.new:
            return "keep"
        return "create" if self.old is None else "delete" if self.new is None else "change"

    def diff(self) -> str:
        """Return a unified diff with one line of context."""
        old, new = (_lines(side or b"") for side in (self.old, self.new))
        start = _equal(old, new)
        end = _equal(old[start:][::-1], new[start:][::-1])
        changed = [*_marked("-", old[start : len(old) - end]), *_marked("+", new[start : len(new) - end])]
        first = max(start - 1, 0)
        context = old[first:start], old[len(old) - end :][:1]
        sizes = (len(lines) - end - start + len(context[0]) + len(context[1]) for lines in (old, new))
        head = " ".join(f"{sign}{first + bool(size)},{size}" for sign, size in zip("-+", sizes, strict=True))
        names = ("/dev/null" if side is None else self.path for side in (self.old, self.new))
        body = [*_marked(" ", context[0]), *changed, *_marked(" ", context[1])]
        return "".join(("--- {}\n+++ {}\n".format(*names), f"@@ {head} @@\n", *body))


def state_of(target: Target) -> str:
    """Return 'installed', 'yours' for what install did not write, 'absent', or 'broken: ' and the reason."""
    if not os.path.lexists(target.path):
        return "absent"
    try:
        content, _ = _read(os.path.realpath(target.path))
        text = content.removeprefix(_BOM).decode()
        if target.edit.remove(text).text != text:
            return "installed"
    except (ValueError, RecursionError, OSError) as error:
        return f"broken: {_reason(error)}"
    try:
        return "yours" if target.edit.add(text, "") == text else "absent"
    except ValueError as error:
        return "yours" if isinstance(error, TakenError) else "absent"


def write(changes: Iterable[ConfigChange], disk: Disk) -> None:
    """Write changes. Each file is replaced in one step, and only if it has not changed since it was read."""
    todo = [change for change in changes if change.what != "keep"]
    for change in todo:
        _write(change, disk)
    for change in todo:
        for folder in change.folders:
            with suppress(OSError):  # it has other files
                folder.rmdir()


def planned(target: Target, *, install: bool) -> ConfigChange:
    """Return the change that writes ripwrap into a file, or takes what install wrote out of it."""
    path = target.path
    real = os.path.realpath(path)
    shown = str(path.relative_to(target.base)) if path.is_relative_to(target.base) else str(path)
    if real != os.path.join(os.path.realpath(target.base), shown):
        shown = f"{shown} (a link to {real})"
    try:
        # A link in a project may lead to any file, so no text is written outside of the project. An entry is added only
        # to a file that parses as a configuration, so links to such files are followed.
        inside = Path(real).is_relative_to(os.path.realpath(target.base))
        if not inside and target.base != Path.home() and isinstance(target.edit, TextBlock):
            raise ValueError(f"it leads out of the project, to {real}")
        if not os.path.lexists(path):
            made = _made(target, path)
            refuse_protected(real)
            return ConfigChange(target.client, shown, real, None, target.edit.add(None, made).encode(), None)
        content, state = _read(real)
        refuse_protected(real)
        if not install and not any(mark.encode() in content for mark in _MARKS):  # it may be broken, or another's
            return ConfigChange(target.client, shown, real, content, content, state)
        bom = _BOM if content.startswith(_BOM) else b""
        text = content.removeprefix(bom).decode()
        if install:
            new: str | None = target.edit.add(text, "")
            folders: tuple[Path, ...] = ()
        else:
            new, made = target.edit.remove(text)
            folders = _folders(target, path, made) if new is None else ()
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{shown} is left unchanged, and nothing was written: {_reason(error)}") from error
    return ConfigChange(
        target.client, shown, real, content, None if new is None else bom + new.encode(), state, folders
    )


def _reason(error: BaseException) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _read(real: str) -> tuple[bytes, FileState]:
    if not os.path.lexists(real):
        raise ValueError("it is a link to a file that does not exist; remove the link, or make the file")
    content, state = Disk().read(real, MAX_BYTES)
    if state.status.st_nlink > 1:
        raise ValueError("it has several names (hard links), of which only one would change; make it one file")
    return content, state


def _made(target: Target, path: Path) -> str:
    """Return the name of the first directory that must be made for a file, with a slash; or the name of the file."""
    outermost, folder = path, path.parent
    while not os.path.lexists(folder):
        outermost, folder = folder, folder.parent
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a directory")
    if not outermost.is_relative_to(target.base):
        return path.name
    name = outermost.relative_to(target.base).as_posix()
    return name if outermost == path else f"{name}/"


def _folders(target: Target, path: Path, made: str) -> tuple[Path, ...]:
    """Return the directories that install has made for a file, the innermost first; none if `made` names none."""
    outermost = target.base / made
    if not made.endswith("/") or ".." in outermost.parts or target.base not in outermost.parents:
        return ()
    return tuple(folder for folder in path.parents if folder.is_relative_to(outermost))


def _write(change: ConfigChange, disk: Disk) -> None:
    if change.state is None:
        os.makedirs(os.path.dirname(change.real), exist_ok=True)
        disk.create(change.real, change.new or b"")
        return
    if change.new is None:
        disk.delete(change.real, change.state)
        return
    name = f".ripwrap-{os.urandom(8).hex()}"
    try:
        disk.overwrite(change.real, name, change.new, change.state)
    except BaseException:
        disk.remove_beside(change.real, name)
        raise


def _equal(old: list[str], new: list[str]) -> int:
    """Return how many lines are equal at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _lines(content: bytes) -> list[str]:
    return [*io.StringIO(content.decode(errors="replace"), newline="\n")]


def _marked(sign: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        text = cut_text(line.rstrip("\r\n"), _MAX_LINE)
        yield f"{sign}{text}\n" if line.endswith("\n") else f"{sign}{text}\n\\ No newline at end of file\n"

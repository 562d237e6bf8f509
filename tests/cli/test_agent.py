"""`ripwrap agent`: files of six clients in their documented formats, and what is left of them after uninstall."""

import json
import os
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ripwrap import Workspace
from ripwrap._agents.plan import BODY, CLIENTS, DESCRIPTION, SKILL
from support.cli import output, run

REPOSITORY = Path(__file__).parents[2]

CLAUDE_MCP = """\
{
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/",
      "headers": { "Authorization": "Bearer ${GITHUB_TOKEN}" }
    },
    "memory": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "env": {} }
  }
}
"""
CLAUDE_SETTINGS = """\
{
  "$schema": "https://json.schemastore.org/claude-code-settings.json",
  "permissions": { "allow": ["Bash(npm run test:*)"], "deny": ["Read(./.env)"] },
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [{ "type": "command", "command": "\\"$CLAUDE_PROJECT_DIR\\"/.claude/hooks/guard.sh" }]
      }
    ],
    "Stop": []
  }
}
"""
CODEX = """\
# Settings of Codex
model = "gpt-5.2-codex"
approval_policy = "on-request"

[sandbox_workspace_write]
network_access = false

[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]

[mcp_servers.context7.env]
MY_ENV_VAR = "MY_ENV_VALUE"

[[skills.config]]
path = "/home/me/skill"
"""
CURSOR = """\
{
  "mcpServers": {
    "server-name": {
      "command": "npx",
      "args": ["-y", "mcp-server"],
      "env": { "API_KEY": "${env:API_KEY}" }
    }
  }
}
"""
GEMINI = """\
{
  // Looks
  "ui": { "theme": "GitHub" },
  "context": { "fileName": ["GEMINI.md", "AGENTS.md"] },
  "mcpServers": {
    /* for pull requests */
    "github": { "httpUrl": "https://api.githubcopilot.com/mcp/", "timeout": 5000 }
  }
}
"""
VSCODE = """\
{
  // Ask once for the key, and keep it.
  "inputs": [
    { "type": "promptString", "id": "key", "description": "API key", "password": true },
  ],
  "servers": { // all of them
    "playwright": { "command": "npx", "args": ["-y", "@playwright/mcp@latest"] },
    "perplexity": { "type": "stdio", "command": "npx", "env": { "KEY": "${input:key}" } }, // a trailing comma
  },
}
"""
OPENCODE = """\
{
  "$schema": "https://opencode.ai/config.json",
  "model": "anthropic/claude-sonnet-5",
  // servers
  "mcp": {
    "everything": { "type": "local", "command": ["npx", "-y", "server-everything"], "enabled": true },
  },
}
"""
GEMINI_CONTEXT = "# Project\n\nUse tabs.\n\n@./docs/style.md\n"

FILES: dict[str, dict[str, str]] = {
    "claude": {".mcp.json": CLAUDE_MCP, ".claude/settings.json": CLAUDE_SETTINGS},
    "codex": {".codex/config.toml": CODEX},
    "cursor": {".cursor/mcp.json": CURSOR, ".cursor/rules/style.mdc": "---\nalwaysApply: true\n---\nUse tabs.\n"},
    "gemini": {".gemini/settings.json": GEMINI, "GEMINI.md": GEMINI_CONTEXT},
    "vscode": {".vscode/mcp.json": VSCODE, ".vscode/settings.json": "{}"},
    "opencode": {"opencode.jsonc": OPENCODE},
}
EMPTY: dict[str, dict[str, str]] = {
    "claude": {".mcp.json": '{"mcpServers":{}}', ".claude/settings.json": "{}"},
    "codex": {".codex/config.toml": ""},
    "cursor": {".cursor/mcp.json": '{\n  "mcpServers": {\n  }\n}\n'},
    "gemini": {".gemini/settings.json": "{\n}\n", "GEMINI.md": ""},
    "vscode": {".vscode/mcp.json": '{ "servers": { /* none */ } }'},
    "opencode": {"opencode.json": "{ }\n"},
}
LAYOUTS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "BOM": lambda text: f"\ufeff{text}",
    "no final newline": lambda text: text.removesuffix("\n"),
    "no final newline, CRLF": lambda text: text.removesuffix("\n").replace("\n", "\r\n"),
    "tabs": lambda text: text.replace("  ", "\t"),
    "four spaces": lambda text: text.replace("  ", "    "),
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the clients an empty home."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def plant(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def everything(folder: Path) -> dict[str, bytes | str | None]:
    """Return the content of each file below a directory, the target of each link, and `None` for each directory."""
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


def command(name: str, client: str, *arguments: str) -> tuple[str, ...]:
    hook = ("--hook",) if (name, client) == ("install", "claude") else ()
    return "agent", name, client, *hook, *arguments


def round_trip(client: str, project: Path, home: Path, *arguments: str) -> str:
    """Install twice and uninstall twice; check that the project and the home are as before; return the diff."""
    before = everything(project), everything(home)
    diff = output(*command("install", client, "--dry-run", *arguments), cwd=project)
    assert (everything(project), everything(home)) == before
    assert output(*command("install", client, *arguments), cwd=project).startswith(diff)
    installed = everything(project), everything(home)
    assert installed != before
    again = run(*command("install", client, *arguments), cwd=project)
    assert (again.stdout, again.stderr.splitlines()[-1]) == (b"", b"ripwrap: already installed")
    assert (everything(project), everything(home)) == installed
    listed = [line.split() for line in output("agent", "list", cwd=project).splitlines()]
    scope = "user" if "--user" in arguments else "project"
    assert {tuple(line[:2]) for line in listed if line[2] == "installed"} == {(client, scope)}
    assert not any(line[2] == "broken:" for line in listed)
    output(*command("uninstall", client, *arguments), cwd=project)
    assert (everything(project), everything(home)) == before
    nothing = run(*command("uninstall", client, *arguments), cwd=project)
    assert (nothing.stdout, nothing.stderr) == (b"", b"ripwrap: nothing is installed\n")
    return diff


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_restores_every_byte(client: str, layout: str, project: Path, home: Path) -> None:
    plant(project, {name: LAYOUTS[layout](text) for name, text in FILES[client].items()})
    round_trip(client, project, home)


@pytest.mark.parametrize("client", CLIENTS)
def test_files_without_servers_are_restored(client: str, project: Path, home: Path) -> None:
    plant(project, EMPTY[client])
    round_trip(client, project, home)


@pytest.mark.parametrize("arguments", [(), ("--user",), ("--cwd=../project",)])
@pytest.mark.parametrize("client", CLIENTS)
def test_files_and_directories_that_install_made_are_deleted(
    client: str, arguments: tuple[str, ...], project: Path, home: Path
) -> None:
    round_trip(client, project, home, *arguments)


def test_all_clients_together(project: Path, home: Path) -> None:
    for client in CLIENTS:
        plant(project, FILES[client])
    before = everything(project)
    output("agent", "install", cwd=project)
    listed = output("agent", "list", cwd=project)
    assert listed.count("project  installed ") == 12 and listed.count("user     installed ") == 0
    output("agent", "uninstall", cwd=project)
    assert everything(project) == before and not everything(home)


def test_entries_are_those_that_the_clients_document(project: Path) -> None:
    output("agent", "install", *CLIENTS, "--hook", cwd=project)
    server: dict[str, Any] = json.loads((project / ".mcp.json").read_text())["mcpServers"]["ripwrap"]
    assert server["type"] == "stdio" and [server["command"], *server["args"]] == ["ripwrap", "mcp", "--root", "."]
    codex = tomllib.loads((project / ".codex/config.toml").read_text())["mcp_servers"]["ripwrap"]
    assert codex == {"command": "ripwrap", "args": ["mcp", "--root", "."]}
    vscode = json.loads((project / ".vscode/mcp.json").read_text())["servers"]["ripwrap"]
    cursor = json.loads((project / ".cursor/mcp.json").read_text())["mcpServers"]["ripwrap"]
    assert vscode["args"] == cursor["args"] == ["mcp", "--root", "${workspaceFolder}"]
    assert json.loads((project / ".gemini/settings.json").read_text())["mcpServers"]["ripwrap"]["cwd"] == "."
    opencode = json.loads((project / "opencode.json").read_text())["mcp"]["ripwrap"]
    assert (opencode["type"], opencode["command"]) == ("local", ["ripwrap", "mcp", "--root", "."])
    [hook] = json.loads((project / ".claude/settings.json").read_text())["hooks"]["PreToolUse"]
    assert hook["matcher"] == "Grep|Glob" and hook["hooks"][0]["type"] == "command"
    assert (project / ".cursor/rules/ripwrap.mdc").read_text().startswith("---\ndescription: ")


@pytest.mark.posix
def test_hook_refuses_the_call_and_names_the_tools(project: Path) -> None:
    output("agent", "install", "claude", "--hook", cwd=project)
    [hook] = json.loads((project / ".claude/settings.json").read_text())["hooks"]["PreToolUse"]
    command = ["sh", "-c", hook["hooks"][0]["command"]]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "grep_content in place of Grep" in done.stderr and "find_files in place of Glob" in done.stderr


def test_guide_names_the_tools_that_the_server_has() -> None:
    for tool in Workspace(".").tools:
        assert f"`{tool.__name__}`" in BODY and tool.__name__ in DESCRIPTION


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude", ".mcp.json", '{"mcpServers": {'),
        ("claude", ".mcp.json", CLAUDE_MCP.replace("}\n}", "},\n}")),
        ("claude", ".mcp.json", '{"mcpServers": []}'),
        ("claude", ".mcp.json", ""),
        ("claude", ".mcp.json", '{"mcpServers": {"ripwrap": {"command": "mine"}}}'),
        ("claude", ".claude/settings.json", "// hooks\n{}"),
        ("claude", ".claude/skills/ripwrap/SKILL.md", "mine\n"),
        ("codex", ".codex/config.toml", CODEX + "[mcp_servers\n"),
        ("codex", ".codex/config.toml", 'mcp_servers = {x = {command = "x"}}\n'),
        ("codex", ".codex/config.toml", '[mcp_servers.ripwrap]\ncommand = "mine"\n'),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"a": {}} "b"}'),
        ("cursor", ".cursor/rules/ripwrap.mdc", "mine"),
        ("gemini", ".gemini/settings.json", "{ /* no end"),
        ("vscode", ".vscode/mcp.json", '{"servers": {"ripwrap": {"type": "http", "url": "https://x"}}}'),
        ("opencode", "opencode.json", "[" * 50_000),
    ],
)
def test_file_that_cannot_be_edited_is_one_error_and_unchanged(
    client: str, name: str, text: str, dry: tuple[str, ...], project: Path
) -> None:
    plant(project, {name: text})
    before = everything(project)
    done = run(*command("install", client, *dry), cwd=project, code=2)
    errors = [line for line in done.stderr.decode().splitlines() if "is not in PATH" not in line]
    assert errors[0].startswith(f"ripwrap: {Path(name)} is left unchanged, and nothing was written: ")
    assert done.stdout == b"" and everything(project) == before
    assert ("without loss" in errors[0] and "[mcp_servers.ripwrap]" in errors[1:]) or len(errors) == 1


@pytest.mark.parametrize("content", [b"\xff{}", b"{\x00}", '{"a": 1}'.encode("utf-16")])
def test_bytes_that_are_no_text_are_refused(content: bytes, project: Path) -> None:
    (project / ".mcp.json").write_bytes(content)
    assert b"is left unchanged" in run("agent", "install", "claude", cwd=project, code=2).stderr
    assert (project / ".mcp.json").read_bytes() == content


def test_nothing_is_written_if_one_of_several_files_is_broken(project: Path) -> None:
    plant(project, {".mcp.json": CLAUDE_MCP, ".cursor/mcp.json": "{"})
    before = everything(project)
    run("agent", "install", "claude", "cursor", cwd=project, code=2)
    assert everything(project) == before
    assert "cursor    project  broken: " in output("agent", "list", cwd=project)


def test_uninstall_needs_no_file_to_be_whole_that_has_nothing_of_install(project: Path) -> None:
    plant(project, {".cursor/mcp.json": "{", ".codex/config.toml": 'mcp_servers = {x = {command = "x"}}\n'})
    before = everything(project)
    output("agent", "install", "claude", cwd=project)
    assert "codex     project  absent " in output("agent", "list", cwd=project)
    output("agent", "uninstall", cwd=project)
    assert everything(project) == before


def test_file_that_was_broken_after_install_is_left_by_uninstall(project: Path) -> None:
    output("agent", "install", "claude", "codex", cwd=project)
    for name in (".mcp.json", ".codex/config.toml"):
        with (project / name).open("a") as file:
            file.write("}")
    before = everything(project)
    done = run("agent", "uninstall", "claude", cwd=project, code=2)
    assert done.stderr.startswith(b"ripwrap: .mcp.json is left unchanged, and nothing was written: Extra data")
    assert b"config.toml is left unchanged" in run("agent", "uninstall", "codex", cwd=project, code=2).stderr
    assert everything(project) == before


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_equal_entry_that_the_user_wrote_stays(client: str, project: Path) -> None:
    server = {"type": "stdio", "command": "ripwrap", "args": ["mcp", "--root", "."]}
    table = '[mcp_servers.ripwrap]\ncommand = "ripwrap"\nargs = ["mcp", "--root", "."]\n'
    plant(project, {".mcp.json": json.dumps({"mcpServers": {"ripwrap": server}}), ".codex/config.toml": table})
    before = everything(project)
    output("agent", "install", client, cwd=project)
    assert before.items() <= everything(project).items()
    assert b"install did not write this, so it stays" in run("agent", "uninstall", client, cwd=project).stderr
    assert everything(project) == before


def test_edits_of_the_user_after_install_are_kept(project: Path) -> None:
    plant(project, FILES["claude"] | FILES["codex"] | FILES["gemini"])
    output("agent", "install", "claude", "codex", "gemini", "--hook", cwd=project)
    later: dict[str, tuple[str, str]] = {
        ".mcp.json": ('"memory"', '"later"'),
        ".claude/settings.json": ('"Stop": []', '"Stop": [],\n    "Start": []'),
        ".codex/config.toml": ("network_access = false", "network_access = true"),
        "GEMINI.md": ("Use tabs.", "Use spaces."),
    }
    for name, (old, new) in later.items():
        (project / name).write_text((project / name).read_text().replace(old, new))
    with (project / ".codex/config.toml").open("a") as file:
        file.write("\n[tui]\nnotifications = true\n")
    output("agent", "uninstall", cwd=project)
    expected = {**FILES["claude"], **FILES["codex"], **FILES["gemini"]}
    for name, (old, new) in later.items():
        expected[name] = expected[name].replace(old, new)
    expected[".codex/config.toml"] += "\n[tui]\nnotifications = true\n"
    assert {name: text for name, text in everything(project).items() if text is not None} == {
        str(Path(name)): text.encode() for name, text in expected.items()
    }


def test_file_of_install_stays_with_what_the_user_added(project: Path) -> None:
    output("agent", "install", "cursor", "gemini", cwd=project)
    config = project / ".cursor/mcp.json"
    servers = json.loads(config.read_text())
    servers["mcpServers"]["mine"] = {"command": "x"}
    config.write_text(json.dumps(servers, indent=4))
    (project / "GEMINI.md").write_text("mine\n\n" + (project / "GEMINI.md").read_text() + "and mine\n")
    output("agent", "uninstall", cwd=project)
    assert json.loads(config.read_text()) == {"mcpServers": {"mine": {"command": "x"}}}
    assert everything(project).keys() == {".cursor", str(Path(".cursor/mcp.json")), "GEMINI.md"}
    assert (project / "GEMINI.md").read_text() == "mine\nand mine\n"


@pytest.mark.posix
@pytest.mark.parametrize("client", CLIENTS)
def test_linked_files_stay_links(client: str, project: Path, home: Path, tmp_path: Path) -> None:
    dotfiles = project / "dotfiles"
    plant(dotfiles, FILES[client])
    for name in FILES[client]:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).symlink_to(dotfiles / name)
    round_trip(client, project, home)


@pytest.mark.posix
def test_link_out_of_the_project_is_followed_to_a_configuration_alone(project: Path, tmp_path: Path) -> None:
    plant(tmp_path, {"servers.json": CLAUDE_MCP, "profile": "export A=1\n"})
    (project / ".mcp.json").symlink_to(tmp_path / "servers.json")
    (project / "GEMINI.md").symlink_to(tmp_path / "profile")
    assert f".mcp.json (a link to {tmp_path / 'servers.json'})" in output("agent", "install", "claude", cwd=project)
    assert "ripwrap" in json.loads((tmp_path / "servers.json").read_text())["mcpServers"]
    assert b"it leads out of the project" in run("agent", "install", "gemini", cwd=project, code=2).stderr
    assert (tmp_path / "profile").read_text() == "export A=1\n"


def make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 32)


@pytest.mark.posix
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.symlink_to("gone"), b"it is a link to a file that does not exist"),
        (lambda path: path.mkdir(), b"it is not a regular file"),
        (os.mkfifo, b"it is not a regular file"),
        (lambda path: (path.write_text("{}"), path.with_name("other").hardlink_to(path)), b"hard links"),
        (make_huge, b"File too large"),
    ],
)
def test_odd_file_is_refused(make: Callable[[Path], object], says: bytes, project: Path) -> None:
    make(project / ".mcp.json")
    assert says in run("agent", "install", "claude", cwd=project, code=2).stderr
    assert not (project / ".claude").exists()
    assert "claude    project  broken: " in output("agent", "list", cwd=project)


@pytest.mark.posix
def test_link_to_a_file_of_version_control_is_refused(project: Path) -> None:
    """Programs run what is in such a file, so nothing is written there, although it is in the project."""
    plant(project, {".git/settings.json": "{}", ".claude/other": ""})
    (project / ".claude/settings.json").symlink_to("../.git/settings.json")
    before = everything(project)
    done = run("agent", "install", "claude", "--hook", cwd=project, code=2)
    assert b"nothing is written to or below .git" in done.stderr
    assert everything(project) == before  # the other files come first, and are not written either


@pytest.mark.posix
def test_mode_of_a_file_is_kept(project: Path) -> None:
    plant(project, FILES["codex"])
    (project / ".codex/config.toml").chmod(0o600)
    output("agent", "install", "codex", cwd=project)
    assert (project / ".codex/config.toml").stat().st_mode & 0o777 == 0o600


def test_mark_of_somebody_else_removes_no_directory_above(project: Path) -> None:
    for made in ("../", "./", "/", "../project/", "x/../../"):
        plant(
            project, {".mcp.json": json.dumps({"mcpServers": {"ripwrap": {"env": {"RIPWRAP_AGENT": f"made {made}"}}}})}
        )
        output("agent", "uninstall", cwd=project)
        assert everything(project) == {} and project.is_dir()


def test_no_client_is_in_use(project: Path, tmp_path: Path) -> None:
    done = run("agent", "install", cwd=project, code=2)
    assert done.stderr.decode() == f"ripwrap: no agent is in use here; name one of {', '.join(CLIENTS)}\n"
    assert b"--cwd must be a directory" in run("agent", "list", "--cwd=gone", cwd=project, code=2).stderr
    assert b"--hook is for claude alone" in run("agent", "install", "codex", "--hook", cwd=project, code=2).stderr
    assert b"CLIENT" in run("agent", "install", "emacs", cwd=project, code=2).stderr


def test_clients_in_use_are_found(project: Path, home: Path) -> None:
    (project / ".cursor").mkdir()
    (home / ".codex").mkdir()
    output("agent", "install", cwd=project)
    assert {name.split(os.sep)[0] for name in everything(project)} == {".cursor", ".codex", ".agents"}


def test_config_directories_of_the_environment(
    project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, folder in (("CODEX_HOME", "codex"), ("CLAUDE_CONFIG_DIR", "claude"), ("XDG_CONFIG_HOME", "xdg")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    output("agent", "install", "claude", "codex", "opencode", "--user", cwd=project)
    for name in (
        "codex/config.toml",
        "claude/.claude.json",
        "claude/skills/ripwrap/SKILL.md",
        "xdg/opencode/opencode.json",
    ):
        assert (tmp_path / name).is_file()
    output("agent", "uninstall", "--user", cwd=project)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


SERVER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "minLength": 3, "maxLength": 200},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "maxLength": 255},
        "packages": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/package"}},
    },
    "$defs": {
        "package": {
            "type": "object",
            "required": ["registryType", "identifier", "version", "transport"],
            "additionalProperties": False,
            "properties": {
                "registryType": {"const": "pypi"},
                "identifier": {"const": "ripwrap"},
                "version": {"type": "string", "minLength": 1, "not": {"const": "latest"}},
                "runtimeHint": {"const": "uvx"},
                "transport": {"const": {"type": "stdio"}},
                "runtimeArguments": {"type": "array", "items": {"$ref": "#/$defs/argument"}},
                "packageArguments": {"type": "array", "items": {"$ref": "#/$defs/argument"}},
                "environmentVariables": {
                    "type": "array",
                    "items": {"allOf": [{"$ref": "#/$defs/input"}, {"required": ["name"]}]},
                },
            },
        },
        "argument": {
            "allOf": [{"$ref": "#/$defs/input"}],
            "required": ["type"],
            "oneOf": [
                {
                    "properties": {"type": {"const": "positional"}},
                    "anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}],
                },
                {"properties": {"type": {"const": "named"}}, "required": ["name"]},
            ],
        },
        "input": {
            "type": "object",
            "properties": {
                "description": {"type": "string"},
                "isRequired": {"type": "boolean"},
                "isRepeated": {"type": "boolean"},
                "format": {"enum": ["string", "number", "boolean", "filepath"]},
            },
        },
    },
}
"""The parts of the registry's schema of 2025-12-11 that `server.json` uses."""


def version() -> str:
    return str(tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"])


def test_server_json_is_valid_for_the_registry() -> None:
    server = json.loads((REPOSITORY / "server.json").read_text())
    jsonschema.validate(server, SERVER_SCHEMA)
    [package] = server["packages"]
    assert server["version"] == package["version"] == version()
    assert f"<!-- mcp-name: {server['name']} -->" in (REPOSITORY / "README.md").read_text()
    assert package["packageArguments"][0] == {"type": "positional", "value": "mcp"}


def test_plugin_of_claude_is_valid() -> None:
    plugin = REPOSITORY / "plugins/claude-code"
    manifest = json.loads((plugin / ".claude-plugin/plugin.json").read_text())
    assert manifest["name"] == "ripwrap" and manifest["version"] == version() and manifest["license"] == "MIT"
    assert manifest.keys() <= {"name", "version", "description", "author", "license", "keywords", "mcpServers"}
    server = manifest["mcpServers"]["ripwrap"]
    assert [server["command"], *server["args"]] == ["ripwrap", "mcp", "--root", "."]
    assert (plugin / "skills/ripwrap/SKILL.md").read_text() == SKILL + BODY
    assert (
        0 < len(DESCRIPTION) <= 1024 and ": " not in DESCRIPTION and " #" not in DESCRIPTION
    )  # a plain scalar of YAML


@pytest.mark.parametrize(
    ("package", "said"),
    [
        ("mcp", "ripwrap: without the extra mcp, the server does not start: "),
        ("semble-grammars", "ripwrap: without the extra code, its tools find no definitions: "),
        ("tree-sitter", "ripwrap: without the extra code, its tools find no definitions: "),
    ],
)
def test_install_names_the_extras_that_the_server_lacks(
    package: str, said: str, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("agent", "install", "claude", "--dry-run")
    monkeypatch.setattr("ripwrap.cli.setup._is_installed", lambda name: True)
    assert "extra" not in run(*arguments, cwd=project).stderr.decode()
    monkeypatch.setattr("ripwrap.cli.setup._is_installed", lambda name: name != package)
    (line,) = [one for one in run(*arguments, cwd=project).stderr.decode().splitlines() if "extra" in one]
    assert line.startswith(said) and "pip install" in line

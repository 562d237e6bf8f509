"""Hostile calls of every tool of workspaces that deny files: `python hostile_deny.py tools ROOT RG INDEX COPY`.

`python hostile_deny.py resources ROOT RG` reads the same files as resources of an MCP server.
"""

import json
import os
import sys
import unicodedata
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio

from ripwrap import sync
from support import hostile, hostile_calls, strace
from support.effort import STRESS, times
from support.hostile import BEGIN, END

GLOBS = ("**/.env*", "*.pem", "id_*", "secrets/", "/config/private/**", "Ä*.geheim", "a b/{c,d}.key")

PASSWORD = "hunter2"
"""Word in each denied file, and in no other."""

INNER = "innermost"
"""Part of the names below denied directories."""

DENIED = (
    *(".env", ".ENV", ".env.local", "sub/.env", "sub/deep/.Env.Prod", ".envrc", ".env.d/innermost.txt"),
    *("key.pem", "sub/KEY.PEM", "sub/chain.pem", "id_rsa", "sub/id_ed25519", "ID_DSA"),
    *("secrets/innermost.py", "sub/secrets/innermost.py", "sub/SECRETS/innermost.py"),
    "sub/secrets/deep/innermost.txt",
    *("config/private/innermost.toml", "config/private/deep/innermost.toml", "Ä1.geheim", "ä2.geheim"),
    "A\u03083.geheim",
    *("a b/c.key", "A B/D.key", "secrets/innermost.zip", "sub/secrets/deep/innermost.ipynb"),
)  # fmt: skip

LINKS = {
    "plain": ".env",
    "notes.txt": "sub/chain.pem",
    "open": "secrets",
    "way": "sub/secrets/deep",
    "chain": "plain",
    "chain2": "sub/up/chain",
    "sub/up": "..",
    "link.pem": "README.md",
    "sub/.env.link": "deep",
    "docs/secrets": "../sub",
    "back": "secrets/back",
    "broken": "sub/.env.gone",
    "abroad": "../beside/.env",
}
"""Links to denied files, links with denied names, and links on the way."""

PATHS = (
    *DENIED,
    *LINKS,
    *("./.env", ".//.env", "sub/../.env", "sub/./.env", "sub/up/.env", "sub/up/sub/up/.env", ".env/"),
    *(".env/.", ".env/.."),
    *(".env/x", ".env/../.env", "secrets", "secrets/", "secrets/.", "secrets/..", "secrets/../README.md"),
    "./secrets/deep",
    *("sub/up/secrets", "open/innermost.py", "open/../secrets/innermost.py", "way/innermost.txt"),
    "way/../innermost.py",
    *("back/README.md", "docs/secrets/ok.py", "docs/secrets/.env", "docs/../open/innermost.py", "chain/"),
    *("chain/..", "open/"),
    *("sub/.env.link/x", "sub/.env.link/../ok.py", ".Env", ".eNv", ".ENV.LOCAL", "Key.Pem", "Id_Rsa"),
    *("SECRETS", "Secrets/x"),
    *("Config/Private", "config/private", "config/private/", "config/./private/deep"),
    *("config/../config/private", "CONFIG"),
    *("\u00c41.geheim", "A\u03081.geheim", "\u00e41.geheim", "a\u03081.GEHEIM", "\u00c42.GEHEIM"),
    *("a b/C.KEY", "A B/d.key"),
    *("missing/.env", "missing/secrets/x", "sub/missing.pem", "id_missing", "README.md/.env"),
    *("secrets/missing", ".env.x/y"),
    *(".env ", " .env", ".env\t", ".env\n", ".env\0", "\ufeff.env", ".env\u200b", ".e\u006ev", ".env#"),
    *(".env?", "*.pem", "**/.env"),
    *(".env:stream", ".env::$DATA", "ENV~1", "SECRET~1", ".env.", "secrets.", "secrets "),
    *("secrets\\innermost.py", ".\\.env"),
    *("~/.env", "~/secrets", "$PWD/.env", "file://.env", "%2eenv", ".%65nv", "sub%2f.env", "..//root/.env"),
    "../root/.env",
    *("../root/secrets/innermost.py", "/proc/self/cwd/.env", "/proc/self/root", "sub/up/../root/.env", "-"),
    *("--", "@.env"),
    *("sub", "sub/deep", "docs", "config", "a b", "A B", ".", "", "..", "README.md", "sub/ok.py"),
)  # fmt: skip

PATTERNS = (
    *(PASSWORD, "hunter", "h.nter2", "(?i)HUNTER2", ".", "^", ".*", "(?s).*", "\\w+", "[a-z]+\\d"),
    *("a|hunter2", "(", "\\x68unter2"),
    *(".env", "**/.env", "*.env*", "{.env,x}", "[.]env", "\\.env", ".e?v", "?env", "*", "**", "**/*"),
    *("!README.md", "!*.md", "!x"),
    *(".env,README.md", "*.pem", "*.PEM", "key.{pem,x}", "sub/*.pem", "sub/**", "secrets/**"),
    *("**/secrets/**", "/secrets/*"),
    *("secrets", "secrets/", "**/secrets/", "config/private/*", "config/**", "!!.env", "!*", "id_*"),
    *("id_rsa", "*geheim", "\u00c4*"),
    *("a b/*", "*.key", "innermost*", "**/innermost.*", "*.txt", "*.py", "*.toml", ".*", ".*/**", "plain"),
    *("open/*", "way/*"),
    *("docs/secrets/*", "chain*", "*link*", "../root/.env", "/.env", "./.env", "sub/../.env"),
    *("*.{env,pem,key}", "[!x]*"),
)  # fmt: skip

TEMPLATE = "file:///{+path}{?start_line,end_line,ranges}"
"""Template of the addresses of the server's resources."""

DENIED_NAMES = {name.lower() for path in DENIED for name in path.split("/")} - {"sub", "deep", "config", "a b"}
"""Names that no completion has, in lower case."""

TYPES = ("all", "txt", "py", "toml", "md", "sh", "config", "make", "")

REVISIONS = (
    *("HEAD", "main", "HEAD:", "HEAD:secrets", "HEAD:sub", "HEAD:.env", "HEAD:config/private", "main~0", "HEAD^{tree}"),
    *("@", ":", ":/", ":.env", ":0:.env", "HEAD:./secrets", "HEAD:sub/../secrets", "refs/heads/main", "HEAD^{/all}"),
)  # fmt: skip

TABLE: hostile_calls.Values = {
    **hostile.TABLE,
    "path": PATHS,
    "like": PATHS,
    "pattern": PATTERNS,
    "file_pattern": PATTERNS,
    "ignore": PATTERNS,
    "query": PATTERNS,
    "file_type": (*TYPES, *hostile.TYPES),
    "rev": REVISIONS,
    "commit": REVISIONS,
    "anchor": tuple(f"{path}#{line}\u00b7k7q" for path in PATHS for line in (1, 2)),
}
"""Hostile values of the arguments that are texts, by the name of the argument."""


def furnish(yard: Path) -> Path:
    """Write denied files and others into a root, and return the root."""
    root = yard / "root"
    for name in DENIED:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        _write_denied(root / name)
    for name in (
        "README.md",
        "a/b/file.py",
        "sub/ok.py",
        "sub/deep/ok.txt",
        "docs/ok.md",
        "config/ok.toml",
        "a b/ok.txt",
        "env.txt",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("def ok():\n    return 'hunter'\n")
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    (root / "secrets" / "back").symlink_to("..")
    # Rules that bring back what is hidden or ignored.
    for name in (".gitignore", ".ignore", ".rgignore"):
        (root / name).write_text("!.env\n!*.pem\n!secrets/\n!**\n")
    (root / "sub" / ".ignore").write_text("!.env\n!secrets/**\nok.py\n")
    beside = yard / "beside"
    beside.mkdir()
    (beside / ".env").write_text(f"password = {PASSWORD}\n")
    hostile.commit(root)
    return root


def _write_denied(file: Path) -> None:
    text = f"password = {PASSWORD}\ndef innermost_secret(): pass\n"
    if file.suffix == ".zip":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("ok.txt", text)
    elif file.suffix == ".ipynb":
        cell = {"cell_type": "markdown", "metadata": {}, "source": text}
        file.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    else:
        file.write_text(text)


def calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield tools and the arguments to send to them."""
    every = {"include_hidden": True, "include_ignored": True}
    for path in PATHS:
        yield "grep_content", {"pattern": "o", "path": path, "sections": True, **every}
        yield "grep_content", {"pattern": PASSWORD, "path": path, "output_mode": "count"}
        yield "find_files", {"path": path, "entry_type": "any", **every}
        yield "ls", {"path": path, **every}
        yield "tree", {"path": path, **every}
        yield "codebase_search", {"query": "innermost_secret password", "path": path}
        yield "codebase_search", {"like": path}
        yield "read_file", {"path": path}
    for pattern in PATTERNS:
        yield "grep_content", {"pattern": pattern, **every}
        yield "grep_content", {"pattern": pattern, "output_mode": "count"}
        yield "grep_content", {"pattern": "o", "file_pattern": pattern, "output_mode": "files_with_matches", **every}
        yield "grep_content", {"pattern": PASSWORD, "file_pattern": pattern, "context_lines": 9}
        yield "find_files", {"pattern": pattern, **every}
        yield "find_files", {"pattern": pattern, "entry_type": "directory", "sort": "newest", "include_hidden": True}
        yield "ls", {"ignore": [pattern], **every}
        yield "codebase_search", {"query": f"{pattern} innermost_secret"}
    for kind in TYPES:
        yield "grep_content", {"pattern": "o|hunter2", "file_type": kind, **every}
        yield "grep_content", {"pattern": PASSWORD, "file_type": kind}
    yield from hostile_calls.calls(TABLE, times(10, 1))  # `walk` leaves out most of them, too


def check(name: str, arguments: dict[str, Any], text: str, *, named: bool) -> None:
    """Check that an answer shows nothing of a denied file."""
    where = (name, arguments, text)
    given = json.dumps(arguments, ensure_ascii=False)
    for word in (PASSWORD, INNER):
        assert text.count(word) <= given.count(word) * 6, where
    if not text.startswith("Error: "):
        shown = {line.strip().removeprefix("File: ").removeprefix("- ") for line in text.splitlines()}
        denied = {os.path.basename(path) for path in DENIED if INNER not in path}
        if named:
            shown = {line for line in shown if not line.endswith(" [denied]")}
        assert denied.isdisjoint(os.path.basename(line.partition(":")[0]) for line in shown), where


def walk(root: str, rg: str, index: str, copy: str) -> int:
    """Send every 17th call to one workspace, or in `nox -s stress` all to each; return the number of answers.

    The first call with each argument of each tool is always sent.
    """
    plain = sync.Workspace(root, rg=rg, deny=GLOBS, anchors=True)
    named = sync.Workspace(root, rg=rg, deny=GLOBS, show_denied="name")
    counted = sync.Workspace(root, os.path.join(root, os.pardir, "beside"), rg=rg, deny=GLOBS, show_denied="count")
    indexed = sync.Workspace(root, rg=rg, deny=GLOBS, index=index)
    without = sync.Workspace(root, rg="/no/such/rg", deny=GLOBS)
    writer = sync.Workspace(copy, rg=rg, deny=GLOBS, write=True)
    listing = {"find_files", "ls", "tree"}
    offers = {
        plain: {*listing, "grep_content", "codebase_search", "find_references", "read_file", "history", "resolve"},
        named: listing,
        counted: {*listing, "grep_content", "find_references", "read_file"},
        indexed: {"grep_content", "codebase_search", "index_codebase", "index_status", "index_health_check"},
        without: {"ls", "read_file"},
        writer: {"replace_content"},
    }
    assert set().union(*offers.values()) == set(hostile_calls.SCHEMAS)
    for workspace in offers:  # import what is imported on first use
        workspace.ls()
        workspace.find_files("x")
        workspace.read_file("ok.py")
        workspace.grep_content("(", sections=True)
        workspace.codebase_search("ok")
    answers = 0
    strace.mark(BEGIN)
    indexed.index_codebase()
    sent: set[tuple[str, str]] = set()
    for number, (name, arguments) in enumerate(calls()):
        new = {(name, argument) for argument in arguments or ("",)} - sent
        if number % times(34, 1) and not new:
            continue
        sent |= new
        able = [workspace for workspace, tools in offers.items() if name in tools]
        for workspace in able if STRESS else [able[number // 34 % len(able)]]:
            for text in hostile.answers(workspace, name, arguments):
                check(name, arguments, text, named=workspace is named)
            answers += 1
    strace.mark(END)
    indexed.close()
    return answers


def addresses(root: str, path: str) -> Iterator[str]:
    """Yield addresses of a file, as a client may spell them."""
    plain = quote(path, safe="/")
    every = "".join(f"%{byte:02x}" for byte in os.fsencode(path))
    yield f"file://{root}/{plain}"
    yield f"file://{root}/{every}"
    yield f"file://{root}/{every.upper()}?ranges=1-2,4-"
    yield f"FILE://localhost{root}/./{plain}?start_line=1&end_line=9#L1"
    yield f"file://{quote(root, safe='')}%2f{quote(path, safe='')}"
    yield f"file://{root}//{quote(plain)}"
    yield f"file:///{root}/sub/../{plain}"
    yield f"file:{root}/{path}"
    yield f"file:///proc/self/cwd/{plain}"
    yield f"file:////localhost{root}/{plain}"
    yield f"file://{root.upper()}/{plain.upper()}"
    yield f"file://{root}/{quote(unicodedata.normalize('NFD', path), safe='/')}"
    yield f"file://{root}/{path}"
    yield path


async def walk_resources(root: str, rg: str) -> int:
    """Read every tenth path as a resource and complete it, or all in `nox -s stress`; return the number of answers."""
    import mcp
    from mcp import types

    from ripwrap.mcp import server

    prompt, template = types.PromptReference(name="find"), types.ResourceTemplateReference(uri=TEMPLATE)
    answers = 0
    async with mcp.Client(server(root, rg=rg, deny=GLOBS)) as client:
        await client.read_resource(f"file://{root}/README.md")
        await client.complete(prompt, {"name": "path", "value": ""})
        strace.mark(BEGIN)
        for number, path in islice(enumerate(PATHS), 0, None, times(10, 1)):
            every = list(addresses(root, path))
            for address in every if STRESS else every[number % 3 :: 3]:
                try:
                    read = (await client.read_resource(address)).contents
                    text = "".join(one.text for one in read if isinstance(one, types.TextResourceContents))
                except mcp.MCPError as error:
                    text = f"Error: {error}"
                check("resources/read", {"path": path, "address": address}, text, named=False)
                answers += 1
            for reference, start in ((prompt, ""), (template, f"{root}/".removeprefix("/"))):
                for begun in {path, path[:1], path[:-1], os.path.dirname(path) + "/"}:
                    argument = {"name": "path", "value": f"{start}{begun}".encode("utf-8", "replace").decode()}
                    values = (await client.complete(reference, argument)).completion.values
                    names = {os.path.basename(value.rstrip("/")).lower() for value in values}
                    assert names.isdisjoint(DENIED_NAMES), (argument, values)
                    answers += 1
        strace.mark(END)
    return answers


if __name__ == "__main__":
    what, root, rg, *rest = sys.argv[1:]
    print(walk(root, rg, *rest) if what == "tools" else anyio.run(walk_resources, root, rg))

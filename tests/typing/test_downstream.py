"""Code of a program that uses ripwrap, as mypy, pyright, pyrefly and ty check it in `nox -s types`.

It has no check for `None`, no cast and no comment for a type checker.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import ripwrap
from ripwrap import sync
from ripwrap.index import Index
from ripwrap.workspace import Tool


def places(pattern: str) -> list[tuple[str, int]]:
    return [(match.path, match.line_number) for match in sync.search(pattern, ignore_case=True)]


def lines_by_file(pattern: str) -> dict[Path, list[int]]:
    result = sync.grep(pattern, context=1)
    found: dict[Path, list[int]] = {}
    for match in result.matches:
        found.setdefault(match.file(result.root), []).append(match.line_number + len(match.before))
    return found


def last(pattern: str) -> tuple[str, int]:
    match = sync.grep(pattern).matches[-1]
    return match.path.removesuffix(".py"), match.line_number


async def first(pattern: str) -> str:
    async for match in ripwrap.search(pattern, type="py", hidden=False, captures=True):
        path: str = match.path
        line: int = match.line_number
        groups: tuple[str | None, ...] = match.groups
        return f"{path.upper()}:{line + 1}:{groups}"
    return ""


async def messages(pattern: str) -> list[str]:
    found: list[str] = []
    async for message in ripwrap.search_messages(pattern, rev="HEAD"):
        if message.type == "match" or message.type == "context":
            found.append(f"{message.path}:{message.line_number + 0}")
        elif message.type == "begin" or message.type == "end":
            found.append(message.path)
    return found


def others(folder: Path) -> list[tuple[str, int]]:
    found = [(hit.path, hit.line_number) for hit in sync.scan({"todo": "TODO"}, cwd=folder)]
    found += [(hit.path, hit.line_number) for hit in sync.search_history("TODO", cwd=folder)]
    for hit in sync.search_code("f($A)", lang="python", cwd=folder):
        if hit.type == "match":
            found.append((hit.path, hit.line_number))
    for one in sync.Repositories(folder).search("TODO"):
        if one.type == "match":
            found.append((one.root + one.path, one.line_number))
    return found


async def indexed(index: Index) -> list[tuple[str, int]]:
    return [(match.path, match.line_number) for match in (await index.grep("TODO")).matches]


def with_a_check(match: ripwrap.Match) -> int:
    return 0 if match.line_number is None else match.line_number


async def tools(workspace: ripwrap.Workspace) -> dict[str, str]:
    return {tool.__name__: await tool("TODO", path=".") for tool in workspace.tools}


def blocking_tools(workspace: sync.Workspace) -> dict[str, str]:
    return {tool.__name__: tool("TODO", path=".") for tool in workspace.tools}


def registered(tool: Callable[..., Awaitable[str]]) -> Callable[..., Awaitable[str]]:
    return tool


def passed_on(workspace: ripwrap.Workspace) -> list[Callable[..., Awaitable[str]]]:
    tools: tuple[Tool[Awaitable[str]], ...] = workspace.tools
    return [registered(tool) for tool in tools]


def test_tools_have_names_and_are_called() -> None:
    assert "grep_content" in blocking_tools_names(sync.Workspace("."))


def blocking_tools_names(workspace: sync.Workspace) -> list[str]:
    return [tool.__name__ for tool in workspace.tools]

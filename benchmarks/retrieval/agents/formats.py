"""Formats of the answers of other tools: each function writes the matches, paths or lines that it is given.

They were written from descriptions of these tools, and have none of their code. `SOURCES` names the file that has the
format of each tool. The limits of these tools, and their notes about what is left out, are not imitated. If the first
argument is a str, it is the pattern that was searched for.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

HOME = "/home/user/project"
"""Directory that was searched, for tools that answer with absolute paths."""


@dataclass(frozen=True)
class Row:
    """Line of a file that a search shows.

    Attributes:
        path: Path of the file, relative to the directory.
        number: Number of the line, from 1.
        text: Text of the line.
        column: Number of the first character that matches, from 1; 0 for a line of context.
    """

    path: str
    number: int
    text: str
    column: int

    @property
    def is_match(self) -> bool:
        """True for a match, False for a line of context."""
        return self.column > 0


@dataclass(frozen=True)
class Entry:
    """File or directory in a listing.

    Attributes:
        path: Path, relative to the listed directory.
        is_dir: True for a directory.
    """

    path: str
    is_dir: bool

    @property
    def depth(self) -> int:
        """Number of directories between the entry and the listed directory."""
        return self.path.count("/")

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]


Rows = Sequence[Row]
Entries = Sequence[Entry]


def _files(rows: Rows) -> Iterator[tuple[str, list[Row]]]:
    yield from ((path, [*lines]) for path, lines in groupby(rows, lambda row: row.path))


def _blocks(rows: Rows) -> Iterator[list[Row]]:
    """Yield blocks of consecutive lines of a file."""
    block: list[Row] = []
    for row in rows:
        if block and row.number != block[-1].number + 1:
            yield block
            block = []
        block.append(row)
    yield block


def _count(rows: Rows) -> int:
    return sum(row.is_match for row in rows)


def rg_lines(_: str, rows: Rows) -> str:
    """Write matches as rg does: path, number and text in each line."""
    blocks = [block for _, lines in _files(rows) for block in _blocks(lines)]
    texts = [
        "\n".join(f"{row.path}{mark}{row.number}{mark}{row.text}" for row in block for mark in ":-"[not row.is_match])
        for block in blocks
    ]
    with_context = any(not row.is_match for row in rows)
    return ("\n--\n" if with_context else "\n").join(texts)


def opencode(_: str, rows: Rows) -> str:
    """Write matches below the absolute path of their file, with a blank line between files."""
    texts = [
        "\n".join([f"{HOME}/{path}:", *(f"  Line {row.number}: {row.text}" for row in lines)])
        for path, lines in _files(rows)
    ]
    return "\n".join([f"Found {_count(rows)} matches", "\n\n".join(texts)])


def gemini_cli(pattern: str, rows: Rows) -> str:
    """Write the pattern, then matches below the path of their file, with `---` between files."""
    texts = [
        "\n".join([f"File: {path}", *(f"L{row.number}{':-'[not row.is_match]} {row.text.rstrip()}" for row in lines)])
        for path, lines in _files(rows)
    ]
    said = f'Found {_count(rows)} matches for pattern "{pattern}" in path ".":'
    return "\n---\n".join([said, *texts, ""]).rstrip()


def crush(_: str, rows: Rows) -> str:
    """Write matches with their columns and without indentation, below the absolute path of their file."""
    texts = [
        "\n".join(
            [f"{HOME}/{path}:", *(f"  Line {row.number}, Char {row.column}: {row.text.strip()}" for row in lines)]
        )
        for path, lines in _files(rows)
    ]
    return "\n".join([f"Found {_count(rows)} matches", "\n\n".join(texts)])


def langchain(_: str, rows: Rows) -> str:
    """Write path, number and text of each match in one line; paths begin with a slash."""
    return "\n".join(f"/{row.path}:{row.number}:{row.text}" for row in rows)


def deepagents(_: str, rows: Rows) -> str:
    """Write matches below the path of their file, with `--` between lines that are not consecutive."""
    texts: list[str] = []
    with_context = any(not row.is_match for row in rows)
    for path, lines in _files(rows):
        texts.append(f"/{path}:")
        for number, block in enumerate(_blocks(lines)):
            if number and with_context:
                texts.append("  --")
            texts += (f"  {row.number}{':-'[not row.is_match]} {row.text}" for row in block)
    return "\n".join(texts)


def roo(_: str, rows: Rows) -> str:
    """Write blocks of lines below the path of their file; matches are not marked."""
    texts: list[str] = []
    count = 0
    for path, lines in _files(rows):
        texts.append(f"# {path}")
        for block in _blocks(lines):
            count += 1
            texts += (f"{row.number:3} | {row.text.rstrip()}" for row in block)
            texts.append("----")
        texts.append("")
    return "\n".join([f"Found {count} results.", "", *texts]).rstrip()


def fs_mcp(_: str, rows: Rows) -> str:
    """Write a block for each match, with its path and number."""
    return "\n\n".join(
        f"File: {row.path}, Line: {row.number} (section end hint: EOF)\n---\n{row.text}\n---" for row in rows
    )


def codex_files(_: str, paths: Sequence[str]) -> str:
    """Write absolute paths."""
    return "\n".join(f"{HOME}/{path}" for path in paths)


def langchain_files(_: str, paths: Sequence[str]) -> str:
    """Write paths that begin with a slash."""
    return "\n".join(f"/{path}" for path in paths)


def gemini_files(pattern: str, paths: Sequence[str]) -> str:
    """Write the pattern, then paths."""
    said = f'Found {len(paths)} files with matches for pattern "{pattern}" in path ".":'
    return "\n".join([said, *paths])


def openhands_files(pattern: str, paths: Sequence[str]) -> str:
    """Write the pattern, then absolute paths."""
    said = f"Found {len(paths)} file(s) containing pattern '{pattern}' in {HOME}:"
    return "\n".join([said, *(f"{HOME}/{path}" for path in paths)])


def langchain_counts(_: str, counts: Mapping[str, int]) -> str:
    """Write path and count; paths begin with a slash."""
    return "\n".join(f"/{path}:{count}" for path, count in counts.items())


def crush_listing(entries: Entries) -> str:
    """Write an indented list with a dash before each name, and a slash after each directory."""
    rows = (f"{'  ' * (entry.depth + 1)}- {entry.name}{'/' * entry.is_dir}" for entry in entries)
    return "\n".join([f"- {HOME}/", *rows])


def opencode_listing(entries: Entries) -> str:
    """Write an indented list without dashes."""
    rows = (f"{'  ' * (entry.depth + 1)}{entry.name}{'/' * entry.is_dir}" for entry in entries)
    return "\n".join([f"{HOME}/", *rows])


def opencode_tree(entries: Entries) -> str:
    """Write names indented by tabs."""
    return "\n".join("\t" * entry.depth + entry.name + "/" * entry.is_dir for entry in entries)


def mcp_listing(entries: Entries) -> str:
    """Write a JSON tree, as `directory_tree` does."""
    root: list[dict[str, object]] = []
    children: dict[str, list[dict[str, object]]] = {"": root}
    for entry in entries:
        node: dict[str, object] = {"name": entry.name, "type": "directory" if entry.is_dir else "file"}
        children[entry.path.rpartition("/")[0]].append(node)
        if entry.is_dir:
            node["children"] = children[entry.path] = []
    return json.dumps(root, indent=2)


def codex_read(rows: Rows) -> str:
    """Write lines with their numbers, as `L12: text`."""
    return "\n".join(f"L{row.number}: {row.text}" for row in rows)


def crush_read(rows: Rows) -> str:
    """Write lines with numbers that are six characters wide."""
    return "\n".join(f"{row.number:6}|{row.text}" for row in rows)


def opencode_read(rows: Rows) -> str:
    """Write lines with numbers of five digits, between tags."""
    return "\n".join(["<file>", *(f"{row.number:05}| {row.text}" for row in rows), "</file>"])


def cat_read(rows: Rows) -> str:
    """Write lines as `cat -n` does."""
    return "\n".join(f"{row.number:6}\t{row.text}" for row in rows)


MatchFormat = Callable[[str, Rows], str]
PathFormat = Callable[[str, Sequence[str]], str]

MATCHES: Mapping[str, MatchFormat] = {
    "rg, Claude Code, mcp-ripgrep": rg_lines,
    "opencode": opencode,
    "gemini-cli": gemini_cli,
    "crush": crush,
    "LangChain": langchain,
    "deepagents": deepagents,
    "Roo": roo,
    "fs-mcp 1": fs_mcp,
}
"""Formats of matches with their lines, by the names of tools."""

SHOW_CONTEXT = frozenset({"rg, Claude Code, mcp-ripgrep", "gemini-cli", "deepagents", "Roo"})
"""Formats that show lines of context."""

PATHS: Mapping[str, PathFormat] = {
    "codex": codex_files,
    "LangChain": langchain_files,
    "gemini-cli": gemini_files,
    "OpenHands": openhands_files,
}
"""Formats of paths of files with matches."""

COUNTS: Mapping[str, Callable[[str, Mapping[str, int]], str]] = {"LangChain": langchain_counts}

LISTINGS: Mapping[str, Callable[[Entries], str]] = {
    "crush": crush_listing,
    "opencode (older)": opencode_listing,
    "MCP filesystem, `directory_tree`": mcp_listing,
}
TREES: Mapping[str, Callable[[Entries], str]] = {"opencode (older)": opencode_tree}
READS: Mapping[str, Callable[[Rows], str]] = {
    "codex": codex_read,
    "crush": crush_read,
    "opencode (older)": opencode_read,
    "Claude Code": cat_read,
}

SOURCES: Mapping[str, str] = {
    "rg, Claude Code, mcp-ripgrep": "output of rg; Claude Code's public schema of `Grep` has rg's options",
    "opencode": "`packages/core/src/tool/plugin/grep.ts`",
    "opencode (older)": "`packages/opencode/src/file/ripgrep.ts`, `tool/ls.ts` and `tool/read.ts`",
    "gemini-cli": "`packages/core/src/tools/grep-utils.ts`",
    "crush": "`internal/agent/tools/grep.go`, `view.go` and `ls.go`",
    "LangChain": "`libs/langchain_v1/langchain/agents/middleware/file_search.py`",
    "deepagents": "`libs/deepagents/deepagents/backends/utils.py`",
    "Roo": "`src/services/ripgrep/index.ts`",
    "fs-mcp 1": "`src/fs_mcp/server.py`",
    "codex": "`codex-rs/core/src/tools/handlers/grep_files.rs` and `read_file.rs`",
    "OpenHands": "`openhands-tools/openhands/tools/grep/impl.py`",
    "MCP filesystem, `directory_tree`": "`src/filesystem/` of the reference servers",
    "Claude Code": "public description of `Read`: the format of `cat -n`",
}
"""Source of the facts about each format."""


def names() -> Iterable[str]:
    """Return the names of all formats."""
    return {*MATCHES, *PATHS, *COUNTS, *LISTINGS, *TREES, *READS}

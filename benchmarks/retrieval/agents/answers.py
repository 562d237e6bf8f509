"""Ask the tools, and write what they found in the formats of other tools."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from retrieval.agents import formats
from retrieval.agents.formats import Entry, Row
from retrieval.agents.measures import tokens_of
from retrieval.agents.policies import patterns_of
from retrieval.agents.questions import Folder, Question
from ripwrap.sync import Workspace
from ripwrap.workspace import GrepContentResult, ListResult, ReadFileResult

OURS = "ripwrap"
READ_LINES = 100
"""Number of lines of a file that are read, from the first relevant line on."""


@dataclass(frozen=True)
class Answered:
    """One answer of a tool, in the formats of all tools that have such an answer.

    Attributes:
        tool: Call of ripwrap, as in the table.
        tokens: Number of tokens by the name of the format; the first format is that of ripwrap.
    """

    tool: str
    tokens: Mapping[str, float]


def rows_of(result: GrepContentResult) -> list[Row]:
    """Return the lines of the matches of an answer, with their context."""
    pattern = re.compile(result.query, re.IGNORECASE)
    return [
        Row(match.file, number, text, _column(pattern, text) if mark == ":" else 0)
        for match in result.matches
        for number, mark, text in match.lines()
    ]


def _column(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return found.start() + 1 if found else 1  # rg matches letters that Python does not, such as the Kelvin sign


def entries_of(result: ListResult) -> list[Entry]:
    """Return the files and directories of a listing."""
    return [Entry(entry.path, entry.is_dir) for entry in result.entries if not entry.truncated]


def lines_of(result: ReadFileResult) -> list[Row]:
    """Return the lines of a file that were read."""
    return [
        Row(result.path, number, text, 1)
        for block in result.blocks
        for number, text in enumerate(block.lines, block.start_line)
    ]


def answers_to(workspace: Workspace, question: Question) -> Iterable[Answered]:
    """Yield the answers of each tool to a question; leave out `grep_content` if it finds nothing."""
    pattern = patterns_of(question.text)[-1]
    if workspace.grep_content_result(pattern, case_insensitive=True).files_matched:
        yield from _searches(workspace, pattern)
    yield _answered("`codebase_search`", workspace.codebase_search(question.text), {})
    path, number = min(question.lines)
    read = workspace.read_file_result(path, number, number + READ_LINES - 1)
    lines = lines_of(read)
    shown = {name: write(lines) for name, write in formats.READS.items()}
    yield _answered(f"`read_file`, up to {READ_LINES} lines", str(read), shown)


def _searches(workspace: Workspace, pattern: str) -> Iterable[Answered]:
    """Yield the answers of `grep_content` in its modes."""
    for context in (0, 2):
        result = workspace.grep_content_result(pattern, case_insensitive=True, context_lines=context)
        rows = rows_of(result)
        yield _answered(
            f"`grep_content`, {context} lines of context",
            str(result),
            {
                name: write(pattern, rows)
                for name, write in formats.MATCHES.items()
                if not context or name in formats.SHOW_CONTEXT
            },
        )
    result = workspace.grep_content_result(pattern, case_insensitive=True, expand="definition")
    yield _answered('`grep_content(expand="definition")`', str(result), {})
    result = workspace.grep_content_result(pattern, case_insensitive=True, output_mode="files_with_matches")
    paths = [file.path for file in result.files]
    named = {name: write(pattern, paths) for name, write in formats.PATHS.items()}
    yield _answered("`grep_content`, paths", str(result), named)
    result = workspace.grep_content_result(pattern, case_insensitive=True, output_mode="count")
    counts = {file.path: file.count or 0 for file in result.files}
    counted = {name: write(pattern, counts) for name, write in formats.COUNTS.items()}
    yield _answered("`grep_content`, counts", str(result), counted)


def listings_of(workspace: Workspace) -> Iterable[Answered]:
    """Yield the answers of each tool that lists a folder."""
    found = workspace.find_files_result()
    yield _answered("`find_files`", str(found), {"LangChain": formats.langchain_files("", found.files)})
    listed = workspace.ls_result()
    entries = entries_of(listed)
    yield _answered("`ls`", str(listed), {name: write(entries) for name, write in formats.LISTINGS.items()})
    tree = workspace.tree_result()
    entries = entries_of(tree)
    yield _answered("`tree`", str(tree), {name: write(entries) for name, write in formats.TREES.items()})


def _answered(tool: str, ours: str, others: Mapping[str, str]) -> Answered:
    return Answered(tool, {name: tokens_of(text) for name, text in {OURS: ours, **others}.items()})


def answers_in(folder: Folder) -> Iterable[Answered]:
    """Yield the answers of all tools in a folder, with the limits that a workspace has without arguments."""
    workspace = Workspace(folder.root)
    yield from listings_of(workspace)
    for question in folder.questions:
        yield from answers_to(workspace, question)


def tokens_by_tool(answers: Iterable[Answered]) -> dict[str, dict[str, list[float]]]:
    """Return the tokens of all answers, by call of ripwrap and by name of the format."""
    tokens: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        for name, count in answer.tokens.items():
            tokens[answer.tool][name].append(count)
    return tokens

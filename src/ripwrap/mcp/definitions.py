"""What a client lists before a tool is called: definitions of the tools, and prompts.

`python scripts/tool_definitions.py` writes the file after a change of a tool.
"""

import functools
import json
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcp import MCPError, types

from ripwrap._text import shown
from ripwrap.mcp.clients import ServerContext
from ripwrap.workspace.tool_names import Needed


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """Definition of a tool, for clients; `ripwrap.workspace.tool.ToolSpec` describes the names that both have."""

    name: str
    title: str
    description: str
    arguments: dict[str, Any]
    result: dict[str, Any]
    needs: Needed | None
    aliases: Sequence[str]
    writes: Literal["nothing", "index", "files"]
    counts: str
    rare: Sequence[str]


@functools.cache
def definitions() -> dict[str, ToolDefinition]:
    """Return the definitions of all tools by name, in the order of the tools of a workspace."""
    return parse(pkgutil.get_data(__name__, "definitions.json") or b"")


def parse(text: str | bytes) -> dict[str, ToolDefinition]:
    """Return the definitions in the text of the file."""
    return {one["name"]: ToolDefinition(**one) for one in json.loads(text)}


PATH = types.PromptArgument(name="path", description="Directory or file to search; empty is everything", required=False)


@dataclass(frozen=True, slots=True)
class _Prompt:
    """Prompt that the server offers."""

    title: str
    description: str
    text: str
    calls: tuple[str, ...]
    arguments: tuple[types.PromptArgument, ...] = ()

    def lacks(self, context: ServerContext) -> list[str]:
        """Return the tools that the text names and the server does not offer."""
        return [name for name in self.calls if name not in context.lifespan_context.offer.tools]


PROMPTS: Mapping[str, _Prompt] = {
    "search": _Prompt(
        "Search by question",
        "Answer a question about the code, with the files and lines that answer it.",
        "Answer this question about the code: {query}\n\n"
        "Call codebase_search with the question{where}. Read the lines that matter with read_file, and follow names "
        "with grep_content. Give the file and line of each fact. If nothing answers it, say what you searched.",
        ("codebase_search", "read_file", "grep_content"),
        (types.PromptArgument(name="query", description="Question in words, or a name", required=True), PATH),
    ),
    "find": _Prompt(
        "Find a name or text",
        "List where a name or text is defined and used.",
        "Find where {text} is defined and used.\n\n"
        "Call grep_content with pattern={text}, fixed_strings=true and sections=true{where}; the answer says how to "
        "get more matches. If it finds nothing, try case_insensitive=true, and find_files for files of that name. List "
        "the definitions first, then the uses, each with its file, line and enclosing definition.",
        ("grep_content", "find_files"),
        (types.PromptArgument(name="text", description="Name or text, taken literally", required=True), PATH),
    ),
    "index": _Prompt(
        "Make or refresh the index",
        "Make the index, or bring it up to date, and report the changes.",
        "Call index_codebase. Then say how many files changed, and what could not be indexed or embedded, if anything.",
        ("index_codebase",),
    ),
    "status": _Prompt(
        "Show what is indexed",
        "Report whether the index is up to date, and what was sent where.",
        "Call index_status. Then say whether the index is built and up to date, how large it is, which model makes "
        "embeddings, where texts are sent, and how much was sent so far. If the answer says what to do, repeat that.",
        ("index_status",),
    ),
}


async def list_prompts(context: ServerContext, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    """Return the prompts that the server has."""
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(name=name, title=one.title, description=one.description, arguments=list(one.arguments))
            for name, one in PROMPTS.items()
            if not one.lacks(context)
        ]
    )


async def get_prompt(context: ServerContext, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """Return a prompt as a message of the user, with the arguments in its text."""
    prompt = PROMPTS.get(params.name)
    if prompt is None:
        offered = [name for name, one in PROMPTS.items() if not one.lacks(context)]
        raise _invalid(f"there is no prompt {params.name!r}; the prompts are {', '.join(offered)}")
    if lacking := prompt.lacks(context):
        start = "--tools" if definitions()[lacking[0]].needs is None else "--index"
        raise _invalid(f"the prompt {params.name} needs the tool {lacking[0]}; start the server with it ({start})")
    given = {name: value.strip() for name, value in (params.arguments or {}).items() if value.strip()}
    known = [one.name for one in prompt.arguments]
    for name in given:
        if name not in known:
            takes = f"takes {' and '.join(known)}" if known else "takes no argument"
            raise _invalid(f"unknown argument {name!r}; the prompt {params.name} {takes}")
    for one in prompt.arguments:
        if one.required and one.name not in given:
            raise _invalid(f"the prompt {params.name} needs the argument {one.name}")
    path = given.pop("path", "")
    quoted = {name: json.dumps(value, ensure_ascii=False) for name, value in given.items()}
    text = prompt.text.format(**quoted, where=f" and path={json.dumps(path, ensure_ascii=False)}" if path else "")
    message = types.PromptMessage(role="user", content=types.TextContent(text=shown(text, lines=True)))
    return types.GetPromptResult(description=prompt.description, messages=[message])


def _invalid(text: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, shown(text, lines=True))

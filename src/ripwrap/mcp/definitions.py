"""What a client lists before a tool is called: definitions of the tools, and prompts.

`python scripts/tool_definitions.py` writes the file after a change of a tool.
"""

import functools
import json
import os
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl

from mcp import MCPError, types

from ripwrap._text import shown
from ripwrap.mcp.clients import Params, ServerContext
from ripwrap.workspace.arguments import TOOL_ERRORS, Needed
from ripwrap.workspace.sandbox import file_path

if TYPE_CHECKING:
    from ripwrap.workspace import Workspace


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


TEMPLATE = "file:///{+path}{?start_line,end_line,ranges}"
"""Template for the URIs of files (RFC 6570); the query of a URI may have `start_line`, `end_line` and `ranges`."""

RANGES = ("start_line", "end_line", "ranges")
MAX_COMPLETIONS = 100
"""Maximum number of values in a completion, set by the protocol."""

MAX_ENTRIES = 1000
"""Maximum number of entries of a directory from which a completion is chosen."""


class ReadParams(Params):
    """Parameters of `resources/read`."""

    uri: str


async def list_resources(_: ServerContext, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    """Return an empty list: files are not listed, but `list_templates()` returns a template for their URIs."""
    return types.ListResourcesResult(resources=[])


async def list_templates(
    _: ServerContext, __: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    """Return the one resource template, for the URIs of files."""
    template = types.ResourceTemplate(
        uri_template=TEMPLATE,
        name="file",
        title="File",
        description=(
            "Numbered lines of a text file in the directories of the server, as read_file shows them. The last line "
            "says how to get the lines that were left out."
        ),
        mime_type="text/plain",
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(
    context: ServerContext, params: ReadParams
) -> types.ReadResourceResult | types.InputRequiredResult:
    """Return the lines of a file, as the tool `read_file` returns them.

    In protocol 2026-07-28, the answer may be a question that asks the client for its roots.
    """
    try:
        path, query = file_path(params.uri)
        ranges = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise _unreadable(params.uri, f"cannot read {params.uri!r}: {error}") from None
    if unknown := [name for name in ranges if name not in RANGES]:
        takes = f"the query of an address may have only {', '.join(RANGES[:-1])} and {RANGES[-1]}; got {unknown[0]!r}"
        raise _unreadable(params.uri, f"{takes}. If the question mark is a part of the file's name, write it as %3F")
    try:
        workspace = await context.lifespan_context.workspace(context, params)
    except TOOL_ERRORS as error:
        raise _unreadable(params.uri, str(error)) from None
    if isinstance(workspace, types.InputRequiredResult):
        return workspace
    try:
        text = workspace.text(await workspace.call_result("read_file", {**ranges, "path": path}))
    except TOOL_ERRORS as error:
        raise _unreadable(params.uri, workspace.error_text(error).removeprefix("Error: ")) from None
    contents = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=shown(text, lines=True))
    return types.ReadResourceResult(contents=[contents])


def _unreadable(uri: str, text: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, shown(text, lines=True), {"uri": shown(uri)})


async def complete(context: ServerContext, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Propose values for the argument `path` of a prompt or of the resource template; none for other arguments."""
    ref = params.ref
    if isinstance(ref, types.PromptReference):
        absolute = False
        has_path = ref.name in PROMPTS and PATH in PROMPTS[ref.name].arguments
    else:
        absolute = has_path = ref.uri == TEMPLATE
    values: list[str] = []
    if has_path and params.argument.name == PATH.name:
        try:
            workspace = await context.lifespan_context.workspace(context, Params())
            if not isinstance(workspace, types.InputRequiredResult):
                values = await _paths(workspace, params.argument.value, absolute=absolute)
        except TOOL_ERRORS:  # the path is outside of the roots, or not a directory: nothing to propose
            pass
    completion = types.Completion(
        values=values[:MAX_COMPLETIONS], total=len(values), has_more=len(values) > MAX_COMPLETIONS
    )
    return types.CompleteResult(completion=completion)


async def _paths(workspace: "Workspace", begun: str, *, absolute: bool) -> list[str]:
    """Return the files and directories whose paths begin with a text; paths of directories end in a slash.

    If absolute paths are returned, and the path of a root begins with the text, return only such roots. Otherwise,
    list one directory: the part of the text before its last slash. At most `MAX_ENTRIES` of its entries are listed.
    """
    slash = "/" if absolute and os.sep == "/" else ""
    if absolute or len(workspace.roots) > 1:
        roots = [f"{PurePath(root).as_posix().removeprefix(slash)}/" for root in workspace.roots]
        if above := [shown(root) for root in roots if root.startswith(begun) and root != begun]:
            return above
    from ripwrap.workspace.listing import ListResult  # late: the tools are loaded before the first call

    folder, _, name = begun.rpartition("/")
    options = {"max_depth": 1, "limit": MAX_ENTRIES, "include_hidden": name.startswith(".")}
    found = await workspace.call_result("ls", {"path": f"{slash}{folder}" or ".", **options})
    if not isinstance(found, ListResult):
        return []
    inside = [one for one in found.entries if one.depth == 0 and not one.truncated and one.path != found.path]
    prefix = f"{folder}/" if folder else ""
    return [shown(f"{prefix}{one.name}{'/' if one.is_dir else ''}") for one in inside if one.name.startswith(name)]

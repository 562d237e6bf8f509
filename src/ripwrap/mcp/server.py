"""MCP server with the tools of a workspace, prompts, resources and completions."""

import functools
import json
import os
import pkgutil
from base64 import b64encode
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, Unpack
from urllib.parse import parse_qsl

import anyio
from mcp import MCPError, types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession

from ripwrap._signature import lists_options
from ripwrap._system.concurrency import in_thread
from ripwrap._text import shown
from ripwrap.errors import Hint, HintedText
from ripwrap.mcp.clients import (
    UNCHECKED,
    Client,
    Offer,
    OwnRoots,
    Params,
    ServerContext,
    WorkspaceOptions,
    load_tools_soon,
    may_send_texts,
)
from ripwrap.options import StrPath
from ripwrap.workspace.arguments import TOOL_ERRORS, Needed, comma_separated, find_tool, implied_arguments, tool_names
from ripwrap.workspace.deny import DenyRules
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
    """Return the lines of a file, as `read_file` does; from protocol 2026-07-28 on, perhaps a question for roots."""
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
    """Return the files and directories whose paths begin with a text; paths of directories end in a slash."""
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


INSTRUCTIONS = (
    (("grep_content",), "Search with grep_content first."),
    (("codebase_search",), "If you do not know the names in the code, search with codebase_search."),
    (("find_references",), "find_references lists the definitions and uses of a name."),
    (("read_file",), "Read only the lines that you need with read_file."),
    (("history",), "history shows the commits that changed a file, a text or lines, and their changes."),
    (("find_files", "ls", "tree"), "find_files, ls and tree show which files there are."),
    (
        ("grep_content",),
        "If a search finds too much, narrow it with path, file_pattern or file_type, and do not ask for more matches.",
    ),
    ((), "An answer that was cut says so, and gives the offset of the next page."),
)
"""Sentences for the model, each with the tools that it names: without one of them, the sentence is left out."""

CORE = ("grep_content", "read_file", "find_files")
"""Tools of `tools="core"`: an agent that has them can search and read, for few tokens of definitions."""

ICON = "data:image/svg+xml;base64," + b64encode(
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="#b7410e" stroke-width="2">'
    b'<circle cx="7" cy="7" r="5"/><path d="M11 11l4 4M4 7h6"/></svg>'
).decode("ascii")

UNCHANGED = CacheHint(ttl_ms=3_600_000)
"""Hint that a client may keep a list for an hour (SEP-2549): it does not change while the server runs."""

READ_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
WRITES_CACHE = READ_ONLY.model_copy(update={"read_only_hint": False})
"""Annotations of a tool that writes the index: in the user's cache, or with `index="project"` in the project."""
SENDS_TEXTS = WRITES_CACHE.model_copy(update={"open_world_hint": True})
"""Annotations of a tool that sends texts to another machine, to be embedded."""
CHANGES_FILES = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
)
"""Annotations of the tool that changes files."""

_INDEX = {"nothing": READ_ONLY, "index": WRITES_CACHE, "elsewhere": SENDS_TEXTS}

PROGRESS_INTERVAL = 0.5
"""Seconds between two notifications of progress."""


class _Call(Params):
    """Parameters of `tools/call`."""

    name: str
    arguments: dict[str, Any] | None = None


@lists_options()
def server(
    *roots: StrPath,
    structured: bool = False,
    tools: Literal["core"] | Sequence[str] | None = None,
    **options: Unpack[WorkspaceOptions],
) -> Server[Any]:
    """Return a `Server` of the SDK, to run over any transport or to pass to a `Client` of the SDK.

    Args:
        roots: Directories that may be searched. If there are none, the server uses the roots that the client names, but
            not over HTTP.
        structured: If True, answers also have structured content, and tools an output schema. Many clients pass only
            the structured content to the model if there is any. It has no line numbers and is up to three times as
            long as the text, which was made for models.
        tools: Names of the tools to offer; `"core"` is `grep_content`, `read_file` and `find_files`. Their definitions
            are short: the first sentences, and only the arguments that models use most. A call may have all arguments.
            `None` offers all tools, fully defined.
        options: Options of the `Workspace`.

    Raises:
        OSError: A root is not an existing directory.
        ValueError: There is no such tool without another option, or an option of the `Workspace` is invalid.
        EmbeddingError: The embedder is unknown, or its package or key is missing.
    """
    if (deny := options.get("deny", ())) not in UNCHECKED["deny"]:
        DenyRules(deny)  # raise for an invalid glob now, and not only when the client names its roots
    named, weight = options.get("embedder"), options.get("hybrid_weight")
    if named is not None or weight is not None:
        from ripwrap.workspace.index_tools import check_index_options  # late: it imports SQLite

        # A wrong name fails at the start.
        options = {**options, "embedder": check_index_options(options.get("index", False), named, weight)}
    own = OwnRoots(roots, options) if roots else None
    has_index = options.get("index", False) is not False
    has = {"index": has_index, "anchors": options.get("anchors", False), "write": options.get("write", False)}
    names = tool_names(definitions(), **has)
    elsewhere = has_index and may_send_texts(options.get("embedder"))
    writes: Literal["nothing", "index", "elsewhere"] = "elsewhere" if elsewhere else "index" if has_index else "nothing"
    offer = Offer(names if tools is None else _chosen(tools, names), tools is not None, structured, writes)

    @asynccontextmanager
    async def lifespan(_: Server[Client]) -> AsyncGenerator[Client]:
        client = Client(own, options, offer)
        try:
            yield client
        finally:
            await client.aclose()

    made = Server(
        "ripwrap",
        version=metadata.version("ripwrap"),
        title="ripwrap",
        icons=[types.Icon(src=ICON, mime_type="image/svg+xml", sizes=["any"])],
        instructions=" ".join(text for named, text in INSTRUCTIONS if {*named} <= {*offer.tools}),
        cache_hints={"tools/list": UNCHANGED, "prompts/list": UNCHANGED},
        lifespan=lifespan,
        on_list_tools=_list,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_completion=complete,
    )
    made.add_request_handler("tools/call", _Call, _call)
    made.add_request_handler("resources/read", ReadParams, read_resource)
    made.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, _forget)
    return made


async def _list(context: ServerContext, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    listed = types.ListToolsResult(tools=_definitions(context.lifespan_context.offer))
    load_tools_soon()  # so that the first call need not wait for the import
    return listed


@functools.cache
def _definitions(offer: Offer) -> list[types.Tool]:
    """Return the definitions of the tools that a server offers."""
    annotations = {"nothing": READ_ONLY, "index": _INDEX[offer.writes], "files": CHANGES_FILES}
    found: list[types.Tool] = []
    for tool in map(definitions().__getitem__, offer.tools):
        description, arguments = tool.description, tool.arguments
        if offer.brief:
            description, arguments = description.partition("\n\n")[0], _without(arguments, tool.rare)
        found.append(
            types.Tool(
                name=tool.name,
                title=tool.title,
                description=description,
                input_schema=arguments,
                output_schema=tool.result if offer.structured else None,
                annotations=annotations[tool.writes],
            )
        )
    return found


def _chosen(tools: Literal["core"] | Sequence[str], made: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the chosen tools, in the order of all tools."""
    every = definitions()
    asked = CORE if tools == "core" else comma_separated(tools) if isinstance(tools, str) else tools
    chosen = {find_tool(name, every.values()).name for name in asked}
    if lacking := sorted(chosen.difference(made)):
        option = every[lacking[0]].needs
        raise ValueError(HintedText(f"the tool {lacking[0]} is only there with ", Hint(f"{option}", True)))
    if not chosen:
        raise ValueError(HintedText("no tool is named; name one in ", Hint("tools"), ", or leave it out for all"))
    return tuple(name for name in made if name in chosen)


def _without(arguments: Mapping[str, Any], rare: Collection[str]) -> dict[str, Any]:
    """Return a schema without the rare arguments. It does not forbid them, because a call may have them."""
    kept = {name: about for name, about in arguments["properties"].items() if name not in rare}
    return {key: value for key, value in arguments.items() if key != "additionalProperties"} | {"properties": kept}


async def _forget(context: ServerContext, _: types.NotificationParams) -> None:
    context.lifespan_context.forget()


async def _call(context: ServerContext, call: _Call) -> types.CallToolResult | types.InputRequiredResult:
    tools = definitions()
    try:
        offered = [tools[name] for name in context.lifespan_context.offer.tools]
        tool = find_tool(call.name, offered, call.arguments)
    except ValueError as error:
        raise MCPError(types.INVALID_PARAMS, shown(str(error), lines=True)) from None
    try:
        workspace = await context.lifespan_context.workspace(context, call)
    except TOOL_ERRORS as error:
        return _error_result(f"Error: {error}")
    if isinstance(workspace, types.InputRequiredResult):
        return workspace
    under_way = _RunningCall(tool.counts, structured=context.lifespan_context.offer.structured)
    async with anyio.create_task_group() as group:
        group.start_soon(under_way.report, context.session)
        await under_way.run(workspace, tool.name, {**implied_arguments(call.name), **(call.arguments or {})})
        group.cancel_scope.cancel()
    return under_way.result


def _error_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=_content(text), is_error=True)


def _content(text: str) -> list[types.ContentBlock]:
    # A message with a lone surrogate would end the server.
    return [types.TextContent(text=shown(text, lines=True))]


class _RunningCall:
    """State of a running call: the number of matches or files so far, the noun for that number, and the result."""

    def __init__(self, noun: str, *, structured: bool) -> None:
        self.found = 0
        self._noun = noun
        self._structured = structured
        self.result = types.CallToolResult(content=[])

    async def run(self, workspace: "Workspace", name: str, arguments: dict[str, Any]) -> None:
        try:
            result = await workspace.call_result(name, arguments, progress=self._note_found)
            text = _content(workspace.text(result))
            # In a thread, because the values may have megabytes before they are cut.
            values = await in_thread(lambda: workspace.structured(result)) if self._structured else None
            self.result = types.CallToolResult(content=text, structured_content=values)
        except TOOL_ERRORS as error:
            self.result = _error_result(workspace.error_text(error))

    async def report(self, session: ServerSession) -> None:
        """Report progress until cancelled. In the protocol, each number must be larger than the number before it."""
        reported = -1
        while True:
            await anyio.sleep(PROGRESS_INTERVAL)
            if self.found > reported:
                reported = self.found
                await session.report_progress(reported, message=f"{reported:,} {self._noun}")

    def _note_found(self, found: int) -> None:
        self.found = found

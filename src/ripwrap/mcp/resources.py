"""Resources: the files that the server may read, as `read_file` shows them, and completion of their paths.

A client that attaches a file sends the URI of the file. There are too many files to list, so there is a template for
their URIs, and completion proposes paths. Files are read with the tool `read_file`, and paths come from the tool `ls`.
So a client gets only what these tools show.
"""

import os
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from mcp import MCPError, types

from ripwrap._text import shown
from ripwrap.mcp.clients import Params, ServerContext
from ripwrap.mcp.definitions import PATH, PROMPTS
from ripwrap.workspace.sandbox import file_path
from ripwrap.workspace.tool_names import TOOL_ERRORS

if TYPE_CHECKING:
    from ripwrap.workspace import Workspace

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

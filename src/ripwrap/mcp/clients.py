"""Make the `Workspace` of a client, with the directories of the server, or with the directories that the client names.

In MCP, the directories that a client names are called the roots of the client.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import anyio
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from pydantic import BaseModel
from typing_extensions import TypedDict

from ripwrap._system.concurrency import in_thread
from ripwrap.binary.resolver import Rg
from ripwrap.options import Directories, ShowDenied, StrPath
from ripwrap.workspace.deny import SECRET_FILES
from ripwrap.workspace.sandbox import Sandbox, file_path

if TYPE_CHECKING:
    from ripwrap._scan.rules import Rule
    from ripwrap.index.embeddings.protocol import Embedder
    from ripwrap.workspace import Workspace
else:
    Embedder = Rule = Any  # annotations can be evaluated without loading the index and the rules

NO_ROOTS_MESSAGE = (
    "No directory may be searched: start the server with directories (`ripwrap mcp --root DIR`, or `roots` in Python), "
    "or have the client name its roots."
)
"""Message for a client. The client cannot know if a command or a Python program has started the server."""

TOOLS = "ripwrap.workspace.core"
"""Module that imports the tools."""

LOAD_AFTER = 0.05
"""Seconds from the list of the tools to their import in a thread, which would slow down the answer with the list."""

ROOTS_TIMEOUT = 30.0
"""Seconds that a client may take to name its roots."""


_LOGGER = logging.getLogger("ripwrap")


class WorkspaceOptions(TypedDict, total=False):
    """Options of a `Workspace` besides its roots."""

    follow: bool
    outer_ignore: bool
    guard: bool
    timeout: float | None
    max_chars: int
    max_line: int
    rg: Rg
    index: bool | StrPath
    anchors: bool
    embedder: "str | Embedder | None"
    hybrid_weight: float | None
    deny: str | Sequence[str]
    show_denied: ShowDenied
    redact: bool | Mapping[str, str] | Iterable[Rule]
    write: bool
    repositories: Directories


UNCHECKED: Mapping[str, tuple[object, ...]] = {
    "rg": (None,),
    "index": (False,),
    "embedder": (None,),
    "hybrid_weight": (None,),
    "anchors": (False, True),
    "deny": ((), SECRET_FILES),
    "show_denied": ("hide",),
    "redact": (False, True),
    "write": (False, True),
    "repositories": ((),),
}
"""Values of options that are known to be valid, so that a server can start without a `Workspace` that checks them."""


class NoRootsError(ValueError):
    """Error of a call when neither the server nor the client names a directory."""


class _AllowedRoot(BaseModel):
    uri: str  # the SDK's model has a `FileUrl`, which rejects all roots if one is not a file:// address


class _Roots(BaseModel):
    roots: list[_AllowedRoot]


class Params(types.RequestParams):
    """Parameters of a request that needs the workspace.

    From protocol 2026-07-28 on, a server cannot send a request to the client. Instead, it answers with questions, and
    the client repeats its request with the answers in `input_responses` (see `Client.workspace()`). The SDK does not
    validate these answers.
    """

    input_responses: dict[str, Any] | None = None


class Offer(NamedTuple):
    """What a server offers."""

    tools: tuple[str, ...]
    brief: bool
    structured: bool
    writes: Literal["nothing", "index", "elsewhere"]


class OwnRoots:
    """Directories of the server, for all of its clients; the first call makes their `Workspace`."""

    def __init__(self, roots: Sequence[StrPath], options: WorkspaceOptions) -> None:
        """Check the directories; with options other than `UNCHECKED`, also make the workspace, which checks these.

        The errors of `Workspace()` are raised.
        """
        checked = all(value in UNCHECKED.get(name, ()) for name, value in options.items())
        self.workspace: Workspace | None = None if checked else _make(roots, options)
        self._roots = Sandbox(roots).roots if self.workspace is None else ()
        self._options = options

    async def get_workspace(self) -> "Workspace":
        """Return the workspace; make it if it has not been made."""
        if self.workspace is None:
            await in_thread(load_tools)
        if self.workspace is None:  # no other call has made it meanwhile
            self.workspace = _make(self._roots, self._options)
        return self.workspace


def _make(roots: Sequence[StrPath], options: WorkspaceOptions) -> "Workspace":
    from ripwrap.workspace import Workspace  # late: see `load_tools()`

    return Workspace(*roots, **options)


def load_tools() -> None:
    """Import the tools, which takes about a fifth of a second; clients get the list of the tools before that."""
    import_module(TOOLS)


def load_tools_soon() -> None:
    """Import the tools in a thread, after the answer that a client waits for, if they are not imported."""
    if TOOLS not in sys.modules:
        threading.Timer(LOAD_AFTER, load_tools).start()


class Client:
    """Connection to one client. The first call that needs the client's `Workspace` creates this workspace."""

    def __init__(self, own: OwnRoots | None, options: WorkspaceOptions, offer: Offer) -> None:
        self.offer: Offer = offer
        self._own = own
        self._options = options
        self._read: Workspace | None = None
        self._made: tuple[list[str], Workspace] | None = None
        self._changes = 0
        self._asking = anyio.Lock()

    async def aclose(self) -> None:
        """Close the indexes."""
        for workspace in (self._own.workspace if self._own else None, self._made and self._made[1]):
            if workspace is not None:
                await workspace.aclose()

    def forget(self) -> None:
        """Forget the roots, so that the next request that needs roots asks the client for them again."""
        self._read = None
        self._changes += 1

    async def workspace(self, context: "ServerContext", params: Params) -> "Workspace | types.InputRequiredResult":
        """Return the workspace; first ask the client for its roots if they are needed and not known."""
        if self._own is not None:
            return await self._own.get_workspace()
        capabilities = context.session.client_capabilities
        if context.request is not None or capabilities is None or capabilities.roots is None:
            raise NoRootsError(NO_ROOTS_MESSAGE)
        if context.session.can_send_request:
            async with self._asking:
                while self._read is None:
                    changes = self._changes
                    try:
                        roots = await context.session.send_request(types.ListRootsRequest(), _Roots, ROOTS_TIMEOUT)
                    except (MCPError, ValueError) as error:
                        why = str(error).partition("\n")[0]
                        raise NoRootsError(f"The client did not name its roots: {why}. {NO_ROOTS_MESSAGE}") from error
                    made = await self._of(roots)
                    if changes == self._changes:
                        self._read = made
                return self._read
        # From protocol 2026-07-28 on, a server sends no requests. It answers with a request for input, and the client
        # then repeats the call with that input.
        if params.input_responses is None:
            return types.InputRequiredResult(input_requests={"roots": types.ListRootsRequest()})
        return await self._of(_Roots.model_validate(params.input_responses.get("roots") or {"roots": []}))

    async def _of(self, named: _Roots) -> "Workspace":
        folders = list(_folders(root.uri for root in named.roots))
        if not folders:
            raise NoRootsError(NO_ROOTS_MESSAGE)
        await in_thread(load_tools)
        if self._made is None or self._made[0] != folders:
            self._made = (folders, _make(folders, self._options))
        return self._made[1]


ServerContext: TypeAlias = ServerRequestContext[Client, Any]


def may_send_texts(embedder: "str | Embedder | None") -> bool:
    """Return True unless it is certain that the index sends no texts to another machine."""
    if embedder is None or isinstance(embedder, str):  # `server()` replaces a name by an embedder
        return embedder is not None
    from ripwrap.index.embeddings.protocol import describe  # late: it imports SQLite

    return describe(embedder).leaves_machine is not False


def _folders(uris: Iterable[str]) -> Iterable[str]:
    for uri in uris:
        try:
            folder, _ = file_path(uri)
            if not os.path.isdir(folder):
                raise ValueError("it is not an existing directory")
        except ValueError as error:
            _LOGGER.warning("the client's root %s is not used: %s", uri, error)
        else:
            yield folder

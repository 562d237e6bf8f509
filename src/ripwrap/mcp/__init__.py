"""MCP server that offers the tools of a workspace over stdio or streamable HTTP; needs the extra `mcp`.

The server searches the directories that it was started with. If there are none, it searches the roots of the client:
directories that the client names. It asks the client for its roots when they are first needed. After the client has
said that its roots have changed, the server asks again at the next call that needs them. In protocol 2026-07-28, it
asks at every call. Over HTTP, the server never asks, because any program that connects could name any directory. So it
must be started with directories.

Besides tools, the server has prompts, and a resource template for the files in the directories.
"""

try:
    from ripwrap.mcp.clients import WorkspaceOptions
    from ripwrap.mcp.server import server
    from ripwrap.mcp.transports import Transport, serve
except ImportError as _error:
    from ripwrap.errors import missing_extra

    raise missing_extra(_error, "the MCP server", "mcp")  # noqa: B904 - it has its cause, or is the error itself

__all__ = ["Transport", "WorkspaceOptions", "serve", "server"]

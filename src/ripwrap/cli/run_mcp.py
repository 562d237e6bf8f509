"""What `ripwrap mcp` does, without cyclopts; `ripwrap.cli.mcp` has the command."""

from typing import Annotated, Any

from ripwrap.cli.declarations import Parameter
from ripwrap.cli.errors import FOUND
from ripwrap.cli.flags import EmbedderName, HybridWeight, RgPath
from ripwrap.options import ShowDenied
from ripwrap.workspace.deny import SECRET_FILES


def run_mcp(
    *,
    root: Annotated[list[str] | None, Parameter(metavar="DIR", negative=())] = None,
    http: Annotated[bool, Parameter(show_default=False)] = False,
    host: Annotated[str, Parameter(metavar="HOST")] = "127.0.0.1",
    port: Annotated[int, Parameter(metavar="PORT")] = 8000,
    allowed_host: Annotated[list[str] | None, Parameter(metavar="HOST", negative=())] = None,
    max_sessions: Annotated[int, Parameter(metavar="N")] = 1000,
    session_timeout: Annotated[float, Parameter(metavar="SECONDS")] = 1800.0,
    max_request_bytes: Annotated[int, Parameter(metavar="N")] = 4_194_304,
    structured: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    tools: Annotated[str | None, Parameter(metavar="NAMES")] = None,
    index: Annotated[bool, Parameter(show_default=False)] = False,
    index_location: Annotated[str | None, Parameter(metavar="DIR")] = None,
    embedder: EmbedderName = None,
    hybrid_weight: HybridWeight = None,
    anchors: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    deny: Annotated[list[str] | None, Parameter(metavar="GLOB", negative=())] = None,
    no_deny: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    show_denied: Annotated[ShowDenied, Parameter(metavar="HOW", show_choices=False)] = "hide",
    redact: Annotated[bool, Parameter(negative="--no-redact", show_default="on")] = True,
    redact_rules: Annotated[str | None, Parameter(metavar="FILE")] = None,
    write: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    repository: Annotated[list[str] | None, Parameter(metavar="DIR", negative=())] = None,
    rg: RgPath = None,
) -> int:
    """Serve tools to agents, over MCP.

    Parameters
    ----------
    root
        Directory to search; may be repeated [default: client roots]
    http
        Serve HTTP at http://HOST:PORT/mcp instead of stdio
    host
        Address to listen at
    port
        Port to listen at
    allowed_host
        Another host name to accept in requests; may be repeated
    max_sessions
        Refuse a further client over HTTP at N open sessions
    session_timeout
        End a session over HTTP after SECONDS without a request
    max_request_bytes
        Refuse larger requests over HTTP
    structured
        Also send structured content and output schemas
    tools
        Offer only these tools (`core`: the three main ones)
    index
        Offer the tools of an index, kept in the user's cache
    index_location
        Keep the index in DIR; `project` means ROOT/.ripwrap
    anchors
        Show line hashes, and offer a tool that finds lines by them
    deny
        Deny files that match, as in .gitignore; may be repeated
    no_deny
        Deny only the files of --deny, not the usual secrets
    show_denied
        Denied files in listings: hide, count or name them
    redact
        Mask keys, tokens and passwords in answers
    redact_rules
        Also mask what the rules in FILE find, as `ripwrap scan`
    write
        Offer the tool replace_content, which changes files
    repository
        A directory that git may also read; may be repeated
    """
    from ripwrap import mcp as server  # late: it needs the extra `mcp`

    masked: Any = redact
    if redact and redact_rules is not None:
        from ripwrap._scan.gitleaks import load_rules  # late: few servers have rules of their own
        from ripwrap._scan.secrets import SECRET_RULES

        masked = (*SECRET_RULES, *load_rules(redact_rules))
    server.serve(
        root or (),
        transport="http" if http else "stdio",
        host=host,
        port=port,
        allowed_hosts=allowed_host or (),
        max_sessions=max_sessions,
        session_timeout=session_timeout,
        max_request_bytes=max_request_bytes,
        structured=structured,
        tools=tools,
        rg=rg,
        index=index_location or index,
        embedder=embedder,
        hybrid_weight=hybrid_weight,
        anchors=anchors,
        deny=(*(() if no_deny else SECRET_FILES), *(deny or ())),
        show_denied=show_denied,
        redact=masked,
        write=write,
        repositories=repository or (),
    )
    return FOUND

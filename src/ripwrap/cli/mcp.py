"""Command `ripwrap mcp`: serve tools to agents, over MCP."""

from typing import Annotated, Any

from ripwrap.cli.command import SETUP_EXIT_CODES, Command, Option, Texts
from ripwrap.cli.flags import EmbedderName, HybridWeight, RgPath
from ripwrap.cli.terminal import FOUND
from ripwrap.options import ShowDenied
from ripwrap.workspace.deny import SECRET_FILES


@Command(
    examples=("ripwrap mcp --root .", "ripwrap mcp --root src --root docs --http --port 8080"),
    exit_codes=SETUP_EXIT_CODES,
)
def mcp(
    *,
    root: Annotated[Texts, Option("Directory to search; may be repeated [default: client roots]", value="DIR")] = (),
    http: Annotated[bool, Option("Serve HTTP at http://HOST:PORT/mcp instead of stdio", off=("--no-http",))] = False,
    host: Annotated[str, Option("Address to listen at", value="HOST")] = "127.0.0.1",
    port: Annotated[int, Option("Port to listen at", value="PORT")] = 8000,
    allowed_host: Annotated[
        Texts, Option("Another host name to accept in requests; may be repeated", value="HOST")
    ] = (),
    max_sessions: Annotated[int, Option("Refuse a further client over HTTP at N open sessions", value="N")] = 1000,
    session_timeout: Annotated[
        float, Option("End a session over HTTP after SECONDS without a request", value="SECONDS")
    ] = 1800.0,
    max_request_bytes: Annotated[int, Option("Refuse larger requests over HTTP", value="N")] = 4_194_304,
    structured: Annotated[bool, Option("Also send structured content and output schemas")] = False,
    tools: Annotated[str | None, Option("Offer only these tools (`core`: the three main ones)", value="NAMES")] = None,
    index: Annotated[
        bool, Option("Offer the tools of an index, kept in the user's cache", off=("--no-index",))
    ] = False,
    index_location: Annotated[
        str | None, Option("Keep the index in DIR; `project` means ROOT/.ripwrap", value="DIR")
    ] = None,
    embedder: EmbedderName = None,
    hybrid_weight: HybridWeight = None,
    anchors: Annotated[bool, Option("Show line hashes, and offer a tool that finds lines by them")] = False,
    deny: Annotated[Texts, Option("Deny files that match, as in .gitignore; may be repeated", value="GLOB")] = (),
    no_deny: Annotated[bool, Option("Deny only the files of --deny, not the usual secrets")] = False,
    show_denied: Annotated[
        ShowDenied, Option("Denied files in listings: hide, count or name them", value="HOW")
    ] = "hide",
    redact: Annotated[bool, Option("Mask keys, tokens and passwords in answers", off=("--no-redact",))] = True,
    redact_rules: Annotated[
        str | None, Option("Also mask what the rules in FILE find, as `ripwrap scan`", value="FILE")
    ] = None,
    write: Annotated[bool, Option("Offer the tool replace_content, which changes files")] = False,
    repository: Annotated[Texts, Option("A directory that git may also read; may be repeated", value="DIR")] = (),
    rg: RgPath = None,
) -> int:
    """Serve tools to agents, over MCP."""
    from ripwrap import mcp as server  # late: it needs the extra `mcp`

    masked: Any = redact
    if redact and redact_rules is not None:
        from ripwrap._scan.rules import load_rules
        from ripwrap._scan.secrets import SECRET_RULES  # late: few servers have rules of their own

        masked = (*SECRET_RULES, *load_rules(redact_rules))
    server.serve(
        root,
        transport="http" if http else "stdio",
        host=host,
        port=port,
        allowed_hosts=allowed_host,
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
        deny=(*(() if no_deny else SECRET_FILES), *deny),
        show_denied=show_denied,
        redact=masked,
        write=write,
        repositories=repository,
    )
    return FOUND

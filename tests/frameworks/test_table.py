"""Each row of the table of frameworks holds for the installed version: what its schemas have, and one call.

A row's test runs the last block of the section that the row links to, takes the tools that the block has made as the
framework gives them to a model, and calls one of them through the framework.
"""

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import chdir
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from frameworks.blocks import PAGE, import_or_skip, run_last_block
from frameworks.conftest import counted
from ripwrap import Workspace
from support.offers import Offer, check

# Frameworks import deprecated parts of their dependencies, or leave an event loop open; LlamaIndex reads deprecated
# attributes.
pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

FIND: tuple[str, dict[str, Any]] = ("find_files", {"pattern": "till.py"})
FOUND = "shop/till.py"

Space = dict[str, Any]
"""Names that the block of a section has defined."""


class Row(NamedTuple):
    """Row of the table.

    Attributes:
        title: Title of the section.
        package: Name of the package on PyPI.
        version: Version that is tested, as far as the table names it.
        defaults: True if the schemas have defaults.
        bounds: True if the schemas have bounds.
    """

    title: str
    package: str
    version: str
    defaults: bool
    bounds: bool


def rows() -> list[Row]:
    found = re.findall(
        r"^\| \[(.+?)\]\(.+?\) \| `(.+?)` ([\d.]+) \| .+? \| (yes|no).*? \| (yes|no) \| .+? \|$", PAGE, re.MULTILINE
    )
    return [Row(title, package, version, a == "yes", b == "yes") for title, package, version, a, b in found]


ROWS = rows()


def offers_and_answer(functions: list[dict[str, Any]], answer: object) -> tuple[list[Offer], str]:
    """Return tools in OpenAI's format as offers, and an answer."""
    made = [one.get("function", one) for one in functions]
    return [Offer(one["name"], one["description"], one["parameters"]) for one in made], str(answer)


def pydantic_ai(space: Space) -> tuple[list[Offer], str]:
    from pydantic_ai import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    told: list[Any] = []

    def model(messages: list[Any], info: Any) -> ModelResponse:
        told.append(info.function_tools)
        return ModelResponse([ToolCallPart(*FIND) if len(messages) == 1 else TextPart("done")])

    messages = asyncio.run(space["agent"].run("find it", model=FunctionModel(model))).all_messages()
    return [Offer(one.name, one.description, one.parameters_json_schema) for one in told[0]], str(messages[2].parts[0])


def langchain(space: Space) -> tuple[list[Offer], str]:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    tools = space["tools"]
    return offers_and_answer([*map(convert_to_openai_tool, tools.values())], tools[FIND[0]].invoke(FIND[1]))


def deepagents(space: Space) -> tuple[list[Offer], str]:
    """Return the tools of the adapter for LangChain over the files of the backend; the backend itself has no tools."""
    from ripwrap.frameworks.langchain import WorkspaceToolkit

    tools = {one.name: one for one in WorkspaceToolkit(workspace=space["files"].workspace).get_tools()}
    (found,) = space["backend"].glob("till.py", "/code").matches
    offers, _ = langchain({"tools": tools})
    return offers, str(found["path"])


def openai_api(space: Space) -> tuple[list[Offer], str]:
    from openai.types.responses import ResponseFunctionToolCall

    tools, (name, arguments) = space["tools"], FIND
    call = ResponseFunctionToolCall(type="function_call", call_id="1", name=name, arguments=json.dumps(arguments))
    (output,) = asyncio.run(tools.outputs([call]))
    return offers_and_answer(tools.responses, output["output"])


def openai_agents(space: Space) -> tuple[list[Offer], str]:
    from agents.tool_context import ToolContext

    made = [Offer(one.name, one.description, one.params_json_schema) for one in space["tools"]]
    (tool,) = (one for one in space["tools"] if one.name == FIND[0])
    arguments = json.dumps(FIND[1])
    context = ToolContext(None, tool_name=tool.name, tool_call_id="1", tool_arguments=arguments)
    return made, asyncio.run(tool.on_invoke_tool(context, arguments))


def llama_index(space: Space) -> tuple[list[Offer], str]:
    tools = {one.metadata.name: one for one in space["tools"]}
    refused = str(asyncio.run(tools[FIND[0]].acall(colour="red")))
    assert refused.startswith("Error: unknown argument 'colour'")
    told = [one.metadata.to_openai_tool() for one in tools.values()]
    return offers_and_answer(told, asyncio.run(tools[FIND[0]].acall(**FIND[1])))


def haystack(space: Space) -> tuple[list[Offer], str]:
    tools = {one.name: one for one in space["tools"]}
    answer = asyncio.run(tools[FIND[0]].invoke_async(**FIND[1]))
    return offers_and_answer([one.tool_spec for one in tools.values()], answer)


def autogen(space: Space) -> tuple[list[Offer], str]:
    from autogen_core import CancellationToken

    tools = {one.name: one for one in space["tools"]}
    answer = asyncio.run(tools[FIND[0]].run_json(FIND[1], CancellationToken()))
    return offers_and_answer([one.schema for one in tools.values()], answer)


def google_adk(space: Space) -> tuple[list[Offer], str]:
    from google.adk.tools.tool_context import ToolContext

    tools = {one.name: one for one in asyncio.run(space["agent"].canonical_tools())}
    told = [one._get_declaration() for one in tools.values()]
    answer = asyncio.run(tools[FIND[0]].run_async(args=FIND[1], tool_context=ToolContext.__new__(ToolContext)))
    return [Offer(one.name, one.description, one.parameters_json_schema) for one in told], answer


def smolagents(space: Space) -> tuple[list[Offer], str]:
    from smolagents.models import get_tool_json_schema

    tools = {one.name: one for one in space["tools"]}
    return offers_and_answer([get_tool_json_schema(one) for one in tools.values()], tools[FIND[0]](**FIND[1]))


def strands(space: Space) -> tuple[list[Offer], str]:
    from strands import Agent
    from strands.models import BedrockModel

    agent = Agent(BedrockModel.__new__(BedrockModel), tools=space["tools"])
    told = agent.tool_registry.get_all_tool_specs()
    answer = agent.tool.find_files(**FIND[1])
    refused = agent.tool.find_files(limit=-1)
    assert (answer["status"], refused["status"]) == ("success", "error")
    made = [Offer(one["name"], one["description"], one["inputSchema"]["json"]) for one in told]
    return made, answer["content"][0]["text"]


def crewai(space: Space) -> tuple[list[Offer], str]:
    from crewai.utilities.agent_utils import convert_tools_to_openai_schema

    functions, available, _ = convert_tools_to_openai_schema(space["tools"])
    return offers_and_answer(functions, available[FIND[0]](**FIND[1]))


def semantic_kernel(space: Space) -> tuple[list[Offer], str]:
    from semantic_kernel.connectors.ai.function_calling_utils import kernel_function_metadata_to_function_call_format
    from semantic_kernel.functions import KernelArguments

    kernel, (name, arguments) = space["kernel"], FIND
    told = [
        kernel_function_metadata_to_function_call_format(one)["function"]
        for one in kernel.get_full_list_of_function_metadata()
    ]
    call = kernel.invoke(plugin_name="ripwrap", function_name=name, arguments=KernelArguments(**arguments))
    made = [one | {"name": one["name"].removeprefix("ripwrap-")} for one in told]
    return offers_and_answer(made, asyncio.run(call))


def agno(space: Space) -> tuple[list[Offer], str]:
    from agno.tools.function import FunctionCall

    tools = {one.name: one for one in space["tools"]}
    done = asyncio.run(FunctionCall(function=tools[FIND[0]], arguments=FIND[1]).aexecute())
    assert done.status == "success"
    return offers_and_answer([one.to_dict() for one in tools.values()], done.result)


def dspy(space: Space) -> tuple[list[Offer], str]:
    tools = {name: one for name, one in space["agent"].tools.items() if name != "finish"}
    told = [one.format_as_litellm_function_call() for one in tools.values()]
    return offers_and_answer(told, asyncio.run(tools[FIND[0]].acall(**FIND[1])))


def ag2(space: Space) -> tuple[list[Offer], str]:
    from ag2.events import ToolCallEvent, ToolResultsEvent
    from ag2.testing import TestConfig, TrackingConfig

    model = TrackingConfig(TestConfig(ToolCallEvent(name=FIND[0], arguments=json.dumps(FIND[1])), "done"))

    async def run() -> str:
        reply = await space["agent"].ask("find it", config=model)
        (results,) = (one for one in await reply.history.get_events() if isinstance(one, ToolResultsEvent))
        return str(results.results[0].result.parts[0].content)

    answer = asyncio.run(run())
    told = [one.function for one in model.calls[0].tools]
    return [Offer(one.name, one.description, one.parameters) for one in told], answer


def ollama(space: Space) -> tuple[list[Offer], str]:
    """Return the tools in the requests of ollama's client, and the answer in its second request."""
    import httpx
    from ollama import AsyncClient

    asked: list[Any] = []
    call = {"function": {"name": FIND[0], "arguments": FIND[1]}}

    def serve(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        message = {"role": "assistant", "content": "done"} | ({"tool_calls": [call]} if len(asked) == 1 else {})
        return httpx.Response(200, json={"model": "m", "message": message, "done": True})

    client = AsyncClient(transport=httpx.MockTransport(serve))
    assert asyncio.run(space["search"](client, "m", [{"role": "user", "content": "find it"}])) == "done"
    return offers_and_answer(asked[0]["tools"], asked[1]["messages"][-1]["content"])


def fastmcp(space: Space) -> tuple[list[Offer], str]:
    from fastmcp import Client

    async def run() -> tuple[list[Offer], str]:
        async with Client(space["proxy"]) as client:
            tools = await client.list_tools()
            assert all(one.annotations and one.annotations.read_only_hint for one in tools)
            found = await client.call_tool(f"code_{FIND[0]}", FIND[1])
        made = [Offer(one.name.removeprefix("code_"), one.description or "", one.input_schema) for one in tools]
        return made, found.content[0].text

    return asyncio.run(run())


def claude_agent_sdk(space: Space) -> tuple[list[Offer], str]:
    from claude_agent_sdk import query

    from frameworks.claude_cli import ScriptedCli

    async def run() -> list[Any]:
        cli = ScriptedCli(FIND)
        async for _ in query(prompt="find it", options=space["options"], transport=cli):
            pass
        return cli.answers

    _, listed, called = asyncio.run(run())
    made = [Offer(one["name"], one["description"], one["inputSchema"]) for one in listed["tools"]]
    return made, called["content"][0]["text"]


READERS: dict[str, tuple[str, Callable[[Space], tuple[list[Offer], str]]]] = {
    "pydantic-ai-slim": ("pydantic_ai", pydantic_ai),
    "langchain-core": ("langchain_core", langchain),
    "deepagents": ("deepagents", deepagents),
    "openai": ("openai", openai_api),
    "openai-agents": ("agents", openai_agents),
    "claude-agent-sdk": ("claude_agent_sdk", claude_agent_sdk),
    "llama-index-core": ("llama_index.core", llama_index),
    "haystack-ai": ("haystack", haystack),
    "autogen-core": ("autogen_core", autogen),
    "google-adk": ("google.adk", google_adk),
    "smolagents": ("smolagents", smolagents),
    "strands-agents": ("strands", strands),
    "crewai": ("crewai", crewai),
    "semantic-kernel": ("semantic_kernel", semantic_kernel),
    "agno": ("agno", agno),
    "dspy": ("dspy", dspy),
    "ag2": ("ag2", ag2),
    "ollama": ("ollama", ollama),
    "fastmcp": ("fastmcp", fastmcp),
}
"""The module of each package, and a function that returns its tools and the answer of one call."""


def test_each_row_of_the_table_has_a_test() -> None:
    assert {row.package for row in ROWS} == {*READERS}
    assert len(ROWS) == len(re.findall(r"^\| \[", PAGE, re.MULTILINE))


@pytest.mark.parametrize("row", ROWS, ids=[row.package for row in ROWS])
def test_framework_gives_the_schemas_of_its_row_and_calls_a_tool(row: Row, clone: Path) -> None:
    module, read = READERS[row.package]
    import_or_skip(module)
    version = metadata.version(row.package)
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    assert numbers >= [*map(int, row.version.split("."))], "the table names a later version than the tested one"
    with chdir(clone):
        offers, answer = read(run_last_block(row.title, clone))
    properties = [schema for offer in offers for schema in offer.parameters["properties"].values()]
    with_keys = {
        what: sum(any(key in json.dumps(schema) for key in keys) for schema in properties)
        for what, keys in {
            "descriptions": ('"description"',),
            "defaults": ('"default"',),
            "enums": ('"enum"',),
            "bounds": ('"minimum"', '"maximum"'),
        }.items()
    }
    counted.append((row.package, version, len(properties), with_keys))
    assert FOUND in answer
    workspace = Workspace(clone / "demo")
    assert [offer.name for offer in offers] == [method.__name__ for method in workspace.tools]
    assert with_keys["descriptions"] == len(properties)
    assert (with_keys["defaults"] > 0, with_keys["bounds"] > 0) == (row.defaults, row.bounds)
    assert with_keys["enums"] > 0
    if row.package != "openai":  # its strict schemas have other rules: test_openai_api.py
        for offer in offers:
            method, strict = getattr(workspace, offer.name), row.package == "crewai"
            check(method, offer, defaults=row.defaults, bounds=row.bounds, strict=strict)


def test_strands_takes_the_methods_themselves(clone: Path) -> None:
    """It raised `NotImplementedError` for a `Field` in an annotation."""
    import_or_skip("strands")
    from strands import Agent, tool
    from strands.models import BedrockModel

    workspace = Workspace(clone / "demo")
    tools = [tool(method) for method in workspace.tools]
    for one in tools:
        told = one.tool_spec
        method = getattr(workspace, one.tool_name)
        check(method, Offer(told["name"], told["description"], told["inputSchema"]["json"]), bounds=False)
    agent = Agent(BedrockModel.__new__(BedrockModel), tools=tools)
    assert FOUND in agent.tool.find_files(**FIND[1], colour="red")["content"][0]["text"]

"""Tools with strict schemas for OpenAI's APIs, and answers to the calls of a model; needs the extra `openai`."""

from collections.abc import Iterable, Iterator
from typing import Any

from ripwrap.frameworks import missing_framework, tool_schemas

try:
    from openai.types.chat import (
        ChatCompletionFunctionToolParam,
        ChatCompletionMessageFunctionToolCall,
        ChatCompletionToolMessageParam,
    )
    from openai.types.responses import FunctionToolParam, ResponseFunctionToolCall
    from openai.types.responses.response_input_param import FunctionCallOutput
    from openai.types.shared_params import FunctionDefinition
except ImportError as _error:
    raise missing_framework("openai", "openai 1.99.2", _error) from _error

from ripwrap import Workspace, sync

__all__ = ["BlockingStrictTools", "StrictTools"]


class _Offers:
    """Tools of a workspace in the formats of OpenAI's Responses API and Chat Completions API.

    The schemas of the tools are strict (https://platform.openai.com/docs/guides/function-calling#strict-mode). All
    arguments are required; an argument with a default may be null; unknown arguments are not allowed.
    """

    def __init__(self, workspace: Workspace | sync.Workspace) -> None:
        self._offered = tool_schemas(workspace, strict=True)

    @property
    def responses(self) -> list[FunctionToolParam]:
        """Tools for `client.responses.create(tools=…)`."""
        return [
            FunctionToolParam(type="function", name=name, description=description, parameters=arguments, strict=True)
            for name, (description, arguments) in self._offered.items()
        ]

    @property
    def chat(self) -> list[ChatCompletionFunctionToolParam]:
        """Tools for `client.chat.completions.create(tools=…)`."""
        functions = [
            FunctionDefinition(name=name, description=description, parameters=arguments, strict=True)
            for name, (description, arguments) in self._offered.items()
        ]
        return [ChatCompletionFunctionToolParam(type="function", function=function) for function in functions]

    def _response_calls(self, items: Iterable[Any]) -> Iterator[ResponseFunctionToolCall]:
        for item in items:
            if isinstance(item, ResponseFunctionToolCall) and item.name in self._offered:
                yield item

    def _chat_calls(self, calls: Iterable[Any] | None) -> Iterator[ChatCompletionMessageFunctionToolCall]:
        for call in calls or ():
            if isinstance(call, ChatCompletionMessageFunctionToolCall) and call.function.name in self._offered:
                yield call


class StrictTools(_Offers):
    """Tools of a workspace for OpenAI's Responses and Chat Completions APIs, with strict schemas.

        tools = StrictTools(Workspace("src"))
        response = await client.responses.create(model="gpt-5", input=items, tools=tools.responses)
        items += [*response.output, *await tools.outputs(response.output)]

    Attributes:
        workspace: Workspace of the tools.
    """

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.workspace = workspace

    async def outputs(self, items: Iterable[Any]) -> list[FunctionCallOutput]:
        """Call the tools that the items of a response ask for, and return their answers as items for the next input.

        If the model made a mistake, the answer says what to do. Calls of functions that are not tools of the workspace
        are ignored; the caller must answer them.
        """
        calls = self._response_calls(items)
        return [_output(call, await self.workspace.call(call.name, call.arguments)) for call in calls]

    async def messages(self, calls: Iterable[Any] | None) -> list[ChatCompletionToolMessageParam]:
        """Call the tools that `message.tool_calls` of Chat Completions asks for, and return their answers as messages.

        Add these messages to the conversation, after the message of the model. Calls of functions that are not tools of
        the workspace are ignored, as in `outputs()`.
        """
        asked = [(call, call.function) for call in self._chat_calls(calls)]
        return [_message(call, await self.workspace.call(each.name, each.arguments)) for call, each in asked]


class BlockingStrictTools(_Offers):
    """Blocking twin of `StrictTools`, for a `sync.Workspace`.

    Attributes:
        workspace: Workspace of the tools.
    """

    def __init__(self, workspace: sync.Workspace) -> None:
        super().__init__(workspace)
        self.workspace = workspace

    def outputs(self, items: Iterable[Any]) -> list[FunctionCallOutput]:
        """Call the tools and return their answers as items for the next input; see `StrictTools.outputs()`."""
        calls = self._response_calls(items)
        return [_output(call, self.workspace.call(call.name, call.arguments)) for call in calls]

    def messages(self, calls: Iterable[Any] | None) -> list[ChatCompletionToolMessageParam]:
        """Call the tools and return their answers as messages; see `StrictTools.messages()`."""
        asked = [(call, call.function) for call in self._chat_calls(calls)]
        return [_message(call, self.workspace.call(each.name, each.arguments)) for call, each in asked]


def _output(call: ResponseFunctionToolCall, text: str) -> FunctionCallOutput:
    return FunctionCallOutput(type="function_call_output", call_id=call.call_id, output=text)


def _message(call: ChatCompletionMessageFunctionToolCall, text: str) -> ChatCompletionToolMessageParam:
    return ChatCompletionToolMessageParam(role="tool", tool_call_id=call.id, content=text)

"""Parts of a tool for agents: its specification, and the call that its function gets.

The module of a tool has its arguments, its result, its specification and the class with its methods. `Workspace`
inherits from this class. The names that `call()` accepts, the schemas, what the MCP server shows and the blocking twin
follow. (`resolve.py` is a short example. If the work of a tool imports much, a module of its own does the work.)
"""

import inspect
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from ripwrap._ripgrep.protocols import Runner
from ripwrap.workspace.arguments import ToolArguments
from ripwrap.workspace.memory import Memory
from ripwrap.workspace.results import ToolResult
from ripwrap.workspace.scope import ReportProgress, Settings
from ripwrap.workspace.tool_names import Needed

if TYPE_CHECKING:
    from ripwrap.workspace.history import CommitHistory
    from ripwrap.workspace.index_tools import Indexes

ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)
AnswerT_co = TypeVar("AnswerT_co", covariant=True)
ResultT_co = TypeVar("ResultT_co", bound=ToolResult, covariant=True)


class Tool(Protocol[AnswerT_co]):
    """Method of a workspace that a framework can call as a tool; it returns a text, or an awaitable of it."""

    @property
    def __name__(self) -> str:
        """Name of the tool."""
        ...

    def __call__(self, *args: Any, **kwargs: Any) -> AnswerT_co:
        """Call the tool; each tool has a signature and a docstring of its own."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Call of a tool, for the function that runs the tool."""

    run: Runner
    untimed: Runner
    settings: Settings
    indexes: "Callable[[], Indexes | None]"
    required_indexes: "Callable[[], Indexes]"
    memory: Memory
    history: "Callable[[], CommitHistory]"
    progress: ReportProgress | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec(Generic[ArgumentsT, ResultT_co]):
    """Specification of a tool. Its description, and those of its arguments, are in the docstring of its method."""

    name: str
    arguments: type[ArgumentsT]
    result: type[ResultT_co]
    run: Callable[[ToolCall, ArgumentsT], Awaitable[ResultT_co]] | str
    title: str
    needs: Needed | None = None
    aliases: tuple[str, ...] = ()
    writes: Literal["nothing", "index", "files"] = "nothing"
    counts: str = "found so far"
    rare: frozenset[str] = frozenset()

    def function(self) -> Callable[[ToolCall, ArgumentsT], Awaitable[ResultT_co]]:
        """Return the function that runs the tool."""
        function: Callable[[ToolCall, ArgumentsT], Awaitable[ResultT_co]] = (
            pkgutil.resolve_name(self.run) if isinstance(self.run, str) else self.run
        )
        return function


AnyTool: TypeAlias = ToolSpec[Any, ToolResult]


def tools_of(workspace: type) -> dict[str, AnyTool]:
    """Return the tools of a class of workspaces by name, in the order of its base classes."""
    return {tool.name: tool for base in inspect.getmro(workspace) for tool in vars(base).get("_offers", ())}

"""Parts of a tool for agents: its specification, and the call that its function gets.

The module of a tool has its arguments, its result, its work, its specification and the class with its methods.
`Workspace` inherits from this class. The names that `call()` accepts, the schemas, what the MCP server shows and the
blocking twin follow. (`resolve.py` is a short example.)
"""

import inspect
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from ripwrap._ripgrep.protocols import Runner
from ripwrap.workspace.arguments import Needed, ToolArguments
from ripwrap.workspace.results import ToolResult
from ripwrap.workspace.scope import ReportProgress, Settings

if TYPE_CHECKING:
    from ripwrap.workspace.commit_messages import CommitHistory
    from ripwrap.workspace.index_tools import Indexes


MAX_CALLS = 1_000
"""Maximum number of calls that are remembered; the oldest are forgotten."""

MIN_CHARS = 300
"""Minimum length of an answer that is not shown again, in characters; a shorter one costs little."""


class Remembered(NamedTuple):
    """Value that an earlier call has left, and the seconds since then."""

    value: Hashable
    seconds: float


class Memory:
    """Values by calls, in memory as long as the workspace; any thread may use it."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, tuple[Hashable, float]] = OrderedDict()
        self._lock = threading.Lock()

    def exchange(self, call: Hashable, value: Hashable) -> Remembered | None:
        """Remember a value for a call, and return the value that was remembered before; `None` if there is none."""
        now = time.monotonic()
        with self._lock:
            before = self._values.pop(call, None)
            self._values[call] = before if before is not None and before[0] == value else (value, now)
            if len(self._values) > MAX_CALLS:
                self._values.popitem(last=False)
        return None if before is None else Remembered(before[0], now - before[1])


def page_note(memory: Memory, arguments: ToolArguments, offset: int, counts: tuple[int | None, ...]) -> str:
    """Return a sentence if the counts of all results are others than on the page before; empty if they are the same."""
    before = memory.exchange(arguments.model_copy(update={"offset": 0}), counts)
    if not offset or before is None or before.value == counts:
        return ""
    return "Files have changed since the page before, so results may be missing or shown twice; offset=0 begins anew."


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
    required_indexes: "Callable[[str], Indexes]"
    memory: Memory
    history: "Callable[[], CommitHistory]"
    progress: ReportProgress | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec(Generic[ArgumentsT, ResultT_co]):
    """Specification of a tool. Its description, and those of its arguments, are in the docstring of its method."""

    name: str
    arguments: type[ArgumentsT]
    result: type[ResultT_co]
    run: Callable[[ToolCall, ArgumentsT], Coroutine[Any, Any, ResultT_co]]
    title: str
    needs: Needed | None = None
    aliases: tuple[str, ...] = ()
    writes: Literal["nothing", "index", "files"] = "nothing"
    counts: str = "found so far"
    rare: frozenset[str] = frozenset()


AnyTool: TypeAlias = ToolSpec[Any, ToolResult]


def tools_of(workspace: type) -> dict[str, AnyTool]:
    """Return the tools of a class of workspaces by name, in the order of its base classes."""
    return {tool.name: tool for base in inspect.getmro(workspace) for tool in vars(base).get("_offers", ())}

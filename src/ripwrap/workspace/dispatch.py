"""Run tools, for the async and the blocking workspace: check the arguments, run the tool, return its text."""

import copy
import inspect
import logging
import os
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn, TypeVar, get_args

from typing_extensions import deprecated

from ripwrap._ripgrep.protocols import Lock, Runner, Step
from ripwrap._ripgrep.runner import AsyncRunner, BlockingRunner, C, RgTimeoutError, T
from ripwrap._scan.rules import Rule
from ripwrap._signature import lists_options
from ripwrap._system.concurrency import OVERDUE, countdown, refuse_copy
from ripwrap._text import cut_text, shown
from ripwrap.binary.resolver import Rg, how_to_install
from ripwrap.errors import BinaryError, BinaryNotFoundError, DownloadFailedError, named_paths, spell_error
from ripwrap.options import Directories, ShowDenied, StrPath, check_timeout
from ripwrap.sources.repository import real_directories
from ripwrap.workspace.arguments import (
    TOOL_ERRORS,
    ArgumentSchema,
    as_mapping,
    find_tool,
    implied_arguments,
    parameter_descriptions,
    spell_as_argument,
    tool_names,
)
from ripwrap.workspace.deny import SECRET_FILES
from ripwrap.workspace.redact import redaction_of
from ripwrap.workspace.results import MAX_CHARS, ToolResult
from ripwrap.workspace.sandbox import Sandbox
from ripwrap.workspace.scope import ReportProgress, Settings
from ripwrap.workspace.tool import AnyTool, Memory, ToolCall, tools_of

if TYPE_CHECKING:
    from ripwrap.index.embeddings.protocol import Embedder
    from ripwrap.workspace.commit_messages import CommitHistory
    from ripwrap.workspace.index_tools import Indexes
else:
    Embedder = Any  # annotations can be evaluated without loading the index


R = TypeVar("R", bound=ToolResult)

# Defaults of arguments of `Workspace`, and the smallest values that it accepts.
TIMEOUT = 10.0
MAX_LINE = 500
MAX_READ_BYTES = 32 << 20
"""Default of `max_bytes` in `read_bytes()`. Masked with `redact`, a file of this size takes up to ten times as much."""

MIN_MAX_CHARS = 1000
MIN_MAX_LINE = 40
RETRY_DOWNLOAD_AFTER = 60.0
"""Number of seconds after a failed download of rg in which a workspace does not try the download again."""

GRACE = 0.7
"""Number of seconds after the time limit of a call in which its results are made an answer."""

_LOGGER = logging.getLogger("ripwrap")

_FAILED: dict[frozenset[tuple[str, str]], tuple[BinaryError, float]] = {}
"""The last failed download of rg: the environment, which names mirrors and directories; the error; and the time, as of
`time.monotonic()`, before which no workspace of this process downloads rg in this environment again."""


class MissingRg:
    """Error of a failed download of rg, kept for the next calls of a workspace, and of new workspaces."""

    def __init__(self) -> None:
        self._error: BinaryError | None = None
        self._retry_at = 0.0
        self._logged = False

    async def collect(self, runner: Runner, step: Step[C]) -> C:
        """Run rg; raise the error that is kept, unless an rg is installed."""
        remembered = self._remembered()
        try:
            found = await runner.collect(step if remembered is None else replace(step, install=False))
        except RgTimeoutError as error:
            failed = DownloadFailedError(str(error))
            self._remember(failed)
            raise failed from error
        except BinaryError as error:
            if remembered is not None and isinstance(error, BinaryNotFoundError):
                raise copy.copy(remembered).with_traceback(None) from None
            if step.install:
                self._remember(error)
            raise
        self._error = None
        self._logged = False
        return found

    def log(self, text: str) -> None:
        """Log the reason why there is no rg. After that, log nothing more until a search finds rg."""
        if not self._logged:
            _LOGGER.warning(shown(text, lines=True))
        self._logged = True

    def _remembered(self) -> BinaryError | None:
        now = time.monotonic()
        if self._error is not None and now < self._retry_at:
            return self._error
        error, until = _FAILED.get(frozenset(os.environ.items()), (None, 0.0))
        return error if now < until else None

    def _remember(self, error: BinaryError) -> None:
        self._error = error
        now = time.monotonic()
        if isinstance(error, DownloadFailedError) and now >= self._retry_at:
            self._retry_at = now + RETRY_DOWNLOAD_AFTER
            _FAILED.clear()
            _FAILED[frozenset(os.environ.items())] = error, self._retry_at


class CallRunner:
    """Runner of one call of a tool: all steps of the call together end in the time limit, with what they have found.

    No step after the time limit is started with rg, but work that makes an answer of the results has `GRACE` more.
    """

    def __init__(self, runner: Runner, seconds: float | None, missing_rg: MissingRg) -> None:
        self._runner = runner
        self._seconds = seconds
        self._missing_rg = missing_rg
        self._left = countdown(seconds)

    async def collect(self, step: Step[C]) -> C:
        """Run rg; see `Runner`."""
        return await self._missing_rg.collect(self._runner, replace(step, timeout=self._sooner(step.timeout)))

    async def call(self, work: Callable[[], T], *, seconds: float | None = None, lock: "Lock | None" = None) -> T:
        """Call a function that blocks; see `Runner`."""
        with self._named():
            return await self._runner.call(work, seconds=self._sooner(seconds, GRACE), lock=lock)

    async def call_to_end(self, work: Callable[[], T], *, seconds: float | None = None) -> T:
        """Call a function that blocks, and wait until it has ended, even after a cancellation; see `Runner`."""
        with self._named():
            return await self._runner.call_to_end(work, seconds=self._sooner(seconds, GRACE))

    async def wait(self, work: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Call a function that returns an awaitable, and await it; see `Runner`."""
        with self._named():
            return await self._runner.wait(work, seconds=self._sooner(seconds, GRACE))

    async def checkpoint(self) -> None:
        """Let other tasks run."""
        await self._runner.checkpoint()

    def _sooner(self, seconds: float | None, grace: float = 0.0) -> float | None:
        left = self._left()
        return seconds if left is None else left + grace if seconds is None else min(left + grace, seconds)

    @contextmanager
    def _named(self) -> Generator[None]:
        """Name the time limit of the call in an error of a step that was stopped at this limit."""
        try:
            yield
        except TimeoutError as error:
            if self._left() == 0 and (not str(error) or str(error).startswith(OVERDUE)):
                raise TimeoutError(f"{OVERDUE} timeout={self._seconds} seconds; search fewer files") from error
            raise


class ToolDispatcher:
    """Tools of a workspace, by name."""

    def __init__(
        self,
        tools: Mapping[str, AnyTool],
        settings: Settings,
        index: bool | StrPath,
        runner: Runner,
        *,
        embedder: "str | Embedder | None",
        hybrid_weight: float | None,
    ) -> None:
        """Check the settings and the options of the index; `tools` are all that a workspace may offer, by name."""
        if settings.max_chars < MIN_MAX_CHARS:
            raise ValueError(f"max_chars must be at least {MIN_MAX_CHARS}, got {settings.max_chars}")
        if settings.max_line < MIN_MAX_LINE:
            raise ValueError(f"max_line must be at least {MIN_MAX_LINE}, got {settings.max_line}")
        if settings.show_denied not in get_args(ShowDenied):
            raise ValueError(f"show_denied must be 'hide', 'count' or 'name', got {settings.show_denied!r}")
        self.settings = settings
        self.missing_rg: MissingRg = MissingRg()
        self._rg_runner = runner
        self._memory = Memory()
        self._history: CommitHistory | None = None
        self._has_index = index is not False
        self._tools = tools
        self.names: tuple[str, ...] = tool_names(
            tools, index=self._has_index, anchors=settings.anchors, write=settings.write
        )
        self._index_location = None if isinstance(index, bool) else index
        self._indexes: Indexes | None = None
        self._embedder: Embedder | None = None
        self._hybrid_weight = hybrid_weight
        if embedder is not None or hybrid_weight is not None:
            from ripwrap.workspace.index_tools import check_index_options

            self._embedder = check_index_options(index, embedder, hybrid_weight)

    def find(self, name: str, given: Mapping[str, Any] | str) -> tuple[AnyTool, Mapping[str, Any]]:
        """Return a tool that the workspace offers, given its name or that of other programs, and the arguments."""
        tool = self._tools.get(name)
        if tool is not None and tool.needs == "index":
            self.required_indexes(name)
        given = as_mapping(given)
        tool = find_tool(name, [self._tools[one] for one in self.names], given)
        return tool, given if name in self._tools else {**implied_arguments(name), **given}

    def runner(self, seconds: float | None) -> CallRunner:
        """Return a runner for a call that may take so many seconds."""
        return CallRunner(self._rg_runner, seconds, self.missing_rg)

    def begin(self, progress: ReportProgress | None = None) -> ToolCall:
        """Return a call of a tool, all steps of which together end in its time limit."""
        return ToolCall(
            self.runner(self.settings.timeout),
            self.runner(None),
            self.settings,
            self.indexes,
            self.required_indexes,
            self._memory,
            self.history,
            progress,
        )

    def indexes(self) -> "Indexes | None":
        """Return the indexes of the roots, or None for a workspace without an index."""
        if self._has_index and self._indexes is None:
            from ripwrap.workspace.index_tools import Indexes  # late: it imports SQLite

            self._indexes = Indexes(
                self.settings, self._index_location, self._embedder, self._hybrid_weight, self.history()
            )
        return self._indexes

    def history(self) -> "CommitHistory":
        """Return the commits of the roots."""
        if self._history is None:
            from ripwrap.workspace.commit_messages import CommitHistory  # late: it imports the reader of git

            allowed = (*self.settings.sandbox.roots, *self.settings.repositories)
            self._history = CommitHistory(allowed, self.settings.timeout)
        return self._history

    def required_indexes(self, tool: str) -> "Indexes":
        """Return the indexes of the roots."""
        indexes = self.indexes()
        if indexes is None:
            raise ValueError(f"{tool} needs an index, but this workspace has none; make the workspace with index=True")
        return indexes

    def close(self) -> None:
        """Close the indexes; a later call opens them again."""
        if self._indexes is not None:
            self._indexes.close()


def _accepting(method: Callable[..., Any], tool: str, other: str) -> Callable[..., Any]:
    """Return a method of a tool that passes names of arguments in other programs to the method `other`.

    The method that returns a text (`other` is `call`) returns an error as a text, too.
    """
    caught = TOOL_ERRORS if other == "call" else ()
    known = inspect.signature(method).parameters.keys() - {"self"}
    order = [*inspect.signature(method).parameters][1:]

    def called(workspace: "ToolMethods", args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        if given.keys() <= known:
            return method(workspace, *args, **given)
        return getattr(workspace, other)(tool, {**dict(zip(order, args, strict=False)), **given})

    @wraps(method)
    def blocking(self: "ToolMethods", *args: Any, **given: Any) -> Any:
        try:
            return called(self, args, given)
        except caught as error:
            return self.error_text(error)

    @wraps(method)
    async def awaits(self: "ToolMethods", *args: Any, **given: Any) -> Any:
        try:
            return await called(self, args, given)
        except caught as error:
            return self.error_text(error)

    return awaits if inspect.iscoroutinefunction(method) else blocking


class ToolMethods:
    """Base class of the classes from which `Workspace` inherits the methods of its tools.

    A subclass names its tools, as in `class ResolveMethods(ToolMethods, offers=(RESOLVE,))`. For each, it has a
    method with the name of the tool, which returns a text, and a method whose name ends in `_result`.
    """

    _tools: ToolDispatcher
    _offers: tuple[AnyTool, ...] = ()

    def __init_subclass__(cls, *, offers: tuple[AnyTool, ...] = (), **options: Any) -> None:
        """Copy the descriptions of arguments from the docstrings of the tools into annotations, with their bounds.

        Many frameworks read only annotations. autogen, haystack, semantic-kernel and strands read the first item of
        `Annotated`, which must be a string; the others make a JSON schema with Pydantic, and read `ArgumentSchema`. The
        methods have no decorator, because smolagents would warn.
        """
        super().__init_subclass__(**options)
        cls._offers = offers
        for tool in offers:
            method = getattr(cls, tool.name)
            for name, text in parameter_descriptions(method).items():
                about = ArgumentSchema(text, tool.arguments.model_fields[name])
                method.__annotations__[name] = Annotated[method.__annotations__[name], text, about]
            fields = tool.arguments.model_fields.items()
            typed = lists_options({name: field.default for name, field in fields})(getattr(cls, f"{tool.name}_result"))
            setattr(cls, tool.name, _accepting(method, tool.name, "call"))
            setattr(cls, f"{tool.name}_result", _accepting(typed, tool.name, "call_result"))

    def text(self, result: ToolResult) -> str:
        """Return the text that the tool itself would return for a result of its `…_result` method."""
        return cut_text(str(result), self._tools.settings.max_chars)

    def error_text(self, error: Exception) -> str:
        """Return the text `Error: …` that the tool itself would return for an error of its `…_result` method."""
        if isinstance(error, BinaryError):
            said = without_rg(error)
            self._tools.missing_rg.log(said)
        elif isinstance(error, MemoryError):
            said = "the call needed too much memory; narrow it, e.g. with path"
        else:
            said = "\n".join((spell_error(error, spell_as_argument), *getattr(error, "__notes__", ())))
        return cut_text(f"Error: {shown(said, lines=True)}", self._tools.settings.max_chars)


def without_rg(error: BinaryError) -> str:
    """Return the reason why no rg can be used, and commands that install rg on this platform."""
    ways = f"Install it, for instance:\n{how_to_install()}\nThen try again."
    if type(error) is BinaryError:  # the error is about an rg that the caller named, or that does not run
        return f"{spell_error(error, spell_as_argument)}\n{ways}"
    reason = "" if isinstance(error, BinaryNotFoundError) else f" ({str(error).splitlines()[0].rstrip(':;')})"
    return f"ripgrep (rg) was not found{reason}. {ways}"


class BaseWorkspace(ToolMethods):
    """Roots, limits and options of a workspace, and the texts of its answers."""

    _runner_type: ClassVar[type[AsyncRunner] | type[BlockingRunner]]

    SECRETS: ClassVar[tuple[str, ...]] = SECRET_FILES

    def __reduce__(self) -> NoReturn:
        refuse_copy(self)

    @named_paths
    def __init__(
        self,
        *roots: StrPath,
        follow: bool = False,
        outer_ignore: bool = False,
        guard: bool = True,
        timeout: float | None = TIMEOUT,
        max_chars: int = MAX_CHARS,
        max_line: int = MAX_LINE,
        rg: Rg = None,
        index: bool | StrPath = False,
        anchors: bool = False,
        embedder: "str | Embedder | None" = None,
        hybrid_weight: float | None = None,
        deny: str | Sequence[str] = (),
        show_denied: ShowDenied = "hide",
        redact: bool | Mapping[str, str] | Iterable[Rule] = False,
        write: bool = False,
        repositories: Directories = (),
    ) -> None:
        """Set the directories that the tools may use, and the limits of their answers.

        Args:
            *roots: One or more directories. With one root, paths in answers are relative to that root; with several
                roots, paths are absolute.
            follow: Follow symbolic links. rg may then read files outside of the roots, but no answer shows them.
            outer_ignore: Also apply ignore files above the roots, and git's global ignore file, as rg does.
            guard: Limit the search to one file system, a few levels and 5 or 10 seconds in `/`, in the home directory
                and the directories above it, in `/proc` and similar directories, and on network file systems of Linux.
                The answer then names these limits.
            timeout: Time limit in seconds for a call; `None` is no limit. At the limit, rg is stopped, and the answer
                has the results found so far. Making the answer may take 0.7 seconds more; if it takes longer, the
                answer is an error. A refresh of an index, and a listing for a glob with a slash, may take half of the
                limit. `index_codebase` has no time limit.
            max_chars: Maximum length of an answer, in characters; at least 1,000.
            max_line: Maximum length of a line in an answer, in characters; at least 40.
            rg: The rg to run: a path, or a bare name to find in PATH; with `None`, ripwrap finds an rg.
            index: Location of an index: True for the user's cache, `"project"` for a directory in each root, or the
                path of a directory. False is no index. The first call of `index_codebase` makes the index.
            anchors: Show a short hash of each line after its number, as in `42·k7q`, and offer the tool `resolve`,
                which finds the line of such an anchor after the file has changed.
            embedder: The embedding model of the index, as for `ripwrap.index.Index`: `"wordllama"` on this machine,
                `"provider:model"`, or an `Embedder`. Tools send texts and queries only to this provider. `"auto"` is
                refused, because it lets the environment choose a provider. With `None`, only words are searched, and
                nothing is sent.
            hybrid_weight: Weight of embeddings in the score, from 0 to 1; `None` is 0.34.
            deny: Globs of files and directories that no tool opens. They are as in `.gitignore`, but ignore case:
                `["*.pem", "**/.env*", "secrets/"]`. `Workspace.SECRETS` has globs for the usual files with secrets.
            show_denied: Treatment of denied files in `ls`, `tree` and `find_files`: `"hide"` them, `"count"` them in a
                note, or `"name"` them. Their contents and sizes are never shown.
            redact: Mask keys, tokens and passwords in the lines of all answers, as `[redacted: github-token]`. True
                masks what the built-in rules (`ripwrap.SECRET_RULES`) find. Rules, as for `scan()`, mask what these
                rules find, and private keys; their `path` and `keywords` do not matter, and a rule that may span lines
                is tried on each line.
            write: Offer the tool `replace_content`, which changes files in the roots. Denied files are never changed.
                `ripwrap.undo()` restores the files, with the journals in the user's state directory.
            repositories: Further directories from which git may read with `rev`, such as `["../main/.git"]` for a
                worktree, or the `.git` above a root that is a subdirectory of its repository. Without them, git reads
                only repositories whose directories are all inside the roots; any other repository is refused, because
                the `.git` of a downloaded tree may lead to a repository that the tools must not show.

        Raises:
            FileNotFoundError, NotADirectoryError: A root does not exist, or is not a directory.
            ValueError: There is no root, a root or a directory of `repositories` is an empty string, a number is too
                small or out of range, a glob in `deny` is invalid, `show_denied` is unknown, `embedder` is `"auto"` or
                given without `index`, `hybrid_weight` is given without `embedder`, or a rule in `redact` cannot mask
                secrets, because its pattern may take too long, or is not one of Python.
            TypeError: A glob in `deny` is not a string, or another argument has a wrong type.
            EmbeddingError: The embedder is unknown, or its package or key is missing.
        """
        settings = Settings(
            Sandbox(roots, deny=deny),
            follow,
            outer_ignore,
            guard,
            check_timeout(timeout),
            max_chars,
            max_line,
            show_denied=show_denied,
            redact=redaction_of(redact),
            anchors=anchors,
            write=write,
            repositories=real_directories(repositories),
        )
        self._tools = ToolDispatcher(
            tools_of(type(self)), settings, index, self._runner_type(rg), embedder=embedder, hybrid_weight=hybrid_weight
        )

    @property
    def roots(self) -> tuple[str, ...]:
        """Real paths of the directories that the tools may use."""
        return self._tools.settings.sandbox.roots

    def structured(self, result: ToolResult) -> dict[str, Any]:
        """Return the JSON values of a result of a `…_result` method, at most `max_chars` characters of JSON."""
        return result.structured(self._tools.settings.max_chars)

    @deprecated("complaint() was renamed to error_text()")
    def complaint(self, error: Exception) -> str:
        """Return `error_text(error)`. Deprecated."""
        return self.error_text(error)

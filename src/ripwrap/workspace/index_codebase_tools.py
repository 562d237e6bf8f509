"""Tools `index_codebase`, `index_status` and `index_health_check`; the work is in `workspace/index_tools.py`."""

from ripwrap.workspace.arguments import ToolArguments
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.index_results import IndexCodebaseResult, IndexHealthResult, IndexStatusResult
from ripwrap.workspace.tool import ToolCall, ToolSpec


class NoArguments(ToolArguments, frozen=True):
    """Model without fields, because these tools take no arguments."""


async def run_index_codebase(call: ToolCall, _: NoArguments) -> IndexCodebaseResult:
    """Make or refresh the index of each root, without a time limit."""
    return await call.required_indexes("index_codebase").index_codebase(call.untimed, call.progress)


async def run_index_status(call: ToolCall, _: NoArguments) -> IndexStatusResult:
    """Return the status of the index of each root."""
    return await call.required_indexes("index_status").index_status(call.untimed)


async def run_index_health_check(call: ToolCall, _: NoArguments) -> IndexHealthResult:
    """Check the index of each root."""
    return await call.required_indexes("index_health_check").index_health_check(call.untimed)


INDEX_CODEBASE = ToolSpec(
    "index_codebase",
    NoArguments,
    IndexCodebaseResult,
    run_index_codebase,
    title="Make or refresh the index",
    needs="index",
    writes="index",
    counts="files and embedded texts done",
)
INDEX_STATUS = ToolSpec(
    "index_status",
    NoArguments,
    IndexStatusResult,
    run_index_status,
    title="Show what is indexed",
    needs="index",
)
INDEX_HEALTH_CHECK = ToolSpec(
    "index_health_check",
    NoArguments,
    IndexHealthResult,
    run_index_health_check,
    title="Check the index",
    needs="index",
)


class IndexMethods(ToolMethods, offers=(INDEX_CODEBASE, INDEX_STATUS, INDEX_HEALTH_CHECK)):
    """Methods of the tools that need an index."""

    async def index_codebase(self) -> str:
        """Make the index that speeds up codebase_search and grep_content, or refresh it.

        The first call may take a minute in a large codebase; later calls read only files that changed. The index is a
        cache: no file of the codebase is changed.
        """
        return self.text(await self.index_codebase_result())

    async def index_codebase_result(self) -> IndexCodebaseResult:
        """Return the answer of `index_codebase()` as an `IndexCodebaseResult`."""
        return await run_index_codebase(self._tools.begin(), NoArguments())

    async def index_status(self) -> str:
        """Show whether there is an index, its size, and the time of its last change; the index is not refreshed."""
        return self.text(await self.index_status_result())

    async def index_status_result(self) -> IndexStatusResult:
        """Return the answer of `index_status()` as an `IndexStatusResult`.

        The errors of `index_codebase_result()` are raised.
        """
        return await run_index_status(self._tools.begin(), NoArguments())

    async def index_health_check(self) -> str:
        """Check whether the index is sound, and show what to do if it is not; this reads the whole index."""
        return self.text(await self.index_health_check_result())

    async def index_health_check_result(self) -> IndexHealthResult:
        """Return the answer of `index_health_check()` as an `IndexHealthResult`.

        The errors of `index_codebase_result()` are raised.
        """
        return await run_index_health_check(self._tools.begin(), NoArguments())

"""Find an rg that can run a query, and ask it for its file types."""

import functools
import time
from contextlib import suppress

import anyio

from ripwrap._concurrency import in_thread
from ripwrap._ripgrep.decoder import FileTypes, decode_types
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.host import INSTALL_THERE
from ripwrap._ripgrep.page_collector import refuse_failure
from ripwrap._ripgrep.process import AsyncChild, BlockingChild, check_cwd
from ripwrap._ripgrep.query import Query
from ripwrap.binary.probe import RgBinary, format_version
from ripwrap.binary.resolver import Rg, find, find_installed, resolve
from ripwrap.errors import CapabilityError, DownloadFailedError, Hint, HintedText, SearchError

SUGGESTION_SECONDS = 2.0
"""Time limit in seconds for listing the file types, for the suggestions in an error about an unknown type."""


FIND_SECONDS = 0.2
"""Seconds for finding an rg, even if a call has less time."""


class RgTimeoutError(TimeoutError):
    """Error for an rg that was not found or installed in the time limit of a call."""


async def find_usable_rg(query: Query, rg: Rg, seconds: float | None = None) -> RgBinary:
    """Return an rg that can run the query; raise what `stream()` raises, and `RgTimeoutError` after `seconds`."""
    if query.on is not None:
        binary = await in_thread(functools.partial(query.on.find, rg, timeout=seconds))
    else:
        check_cwd(query.cwd)
        # An rg that is there is found, however short the time limit is.
        found: RgBinary | None = None
        with anyio.move_on_after(None if seconds is None else max(seconds, FIND_SECONDS)):
            found = await resolve(rg)
        if found is None:
            raise _late(seconds or 0)
        binary = found
    if query.needs:
        await in_thread(functools.partial(_check_needs, query, binary))
    return binary


def find_usable_rg_blocking(query: Query, rg: Rg, timeout: float | None) -> RgBinary:
    """Return an rg that can run the query, blocking; raise `RgTimeoutError` if installing rg takes too long."""
    if query.on is not None:
        binary = query.on.find(rg, timeout=timeout)
    else:
        check_cwd(query.cwd)
        binary = _find_blocking(rg, timeout)
    _check_needs(query, binary)
    return binary


def find_installed_rg(query: Query, rg: Rg) -> RgBinary:
    """Return an rg of this machine that can run the query; blocking, but for the time of a look-up only."""
    check_cwd(query.cwd)
    binary = find_installed(rg)
    _check_needs(query, binary)
    return binary


def _find_blocking(rg: Rg, timeout: float | None) -> RgBinary:
    begun = time.monotonic()
    try:
        return find(rg, timeout=timeout)
    except DownloadFailedError as error:
        if timeout is not None and time.monotonic() - begun >= timeout:
            raise _late(timeout) from error
        raise


def _late(seconds: float) -> RgTimeoutError:
    return RgTimeoutError(
        f"rg was not installed within timeout={seconds:.4g} seconds; allow more time, or install rg first"
    )


async def with_suggestions(end: Exit, binary: RgBinary) -> SearchError:
    """Return the error for an unknown type, with similar types if rg lists its types within `SUGGESTION_SECONDS`."""
    types: FileTypes = {}
    with suppress(SearchError), anyio.move_on_after(SUGGESTION_SECONDS):
        async with AsyncChild(binary, end.query.types()) as child:
            chunks: list[bytes] = []
            while chunk := await child.read():
                chunks.append(chunk)
            types = _types(chunks, await child.wait())
    return end.failure(types)


def with_suggestions_blocking(end: Exit, binary: RgBinary) -> SearchError:
    """Return the error for an unknown type, blocking; see `with_suggestions()`."""
    types: FileTypes = {}
    query, begun = end.query.types(), time.monotonic()
    with suppress(SearchError, TimeoutError), BlockingChild(binary, query, SUGGESTION_SECONDS, begun) as child:
        types = _types(list(iter(child.read, b"")), child.wait())
    return end.failure(types)


def _types(chunks: list[bytes], end: Exit) -> FileTypes:
    refuse_failure(end)
    return decode_types(b"".join(chunks))


def _check_needs(query: Query, binary: RgBinary) -> None:
    place = "" if query.on is None else f"on {query.on}, "
    for option, since in query.needs:
        if binary.version < since:
            function = option.removesuffix("()") if option.endswith("()") else None
            leave_out = ("Leave ", Hint(option, kind="omit"), " out, or use a newer rg: ")
            raise CapabilityError(
                HintedText(
                    Hint(option, kind="correct") if function is None else Hint(kind="call", target=function),
                    f" needs rg {format_version(since)} or later: {place}{binary.path} is "
                    f"{format_version(binary.version)}",
                ),
                hint=HintedText(
                    *(leave_out if function is None else ("Use a newer rg: ",)),
                    Hint(kind="install", target="ripwrap[bin]") if query.on is None else INSTALL_THERE,
                    ".",
                ),
            )

"""Run one contestant in one case, in a separate process: `python contestants.py JSON` prints its figures as JSON.

This module runs in the environments of all contestants, so it imports only the standard library. Each contestant
imports its library before the clock starts.
"""

import asyncio
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

Case: TypeAlias = dict[str, Any]
Items: TypeAlias = Iterator[Any] | AsyncIterator[Any]

_CHUNK = 64 * 1024
_TAIL = 4096  # bytes at the end of rg's output, which include its summary
_MATCH = b'{"type":"match"'


class Raw:
    """Contestant that runs the same rg command as ripwrap and discards the output; ratios compare others with it."""

    def __init__(self, case: Case) -> None:
        self._command = case["command"]

    def search(self, cwd: str, **_: Any) -> Iterator[int]:
        """Yield 0 for each chunk, and at the end the number of matching lines in rg's summary."""
        tail = b""
        for chunk in self._read(cwd):
            tail = chunk[-_TAIL:] if len(chunk) >= _TAIL else (tail + chunk)[-_TAIL:]
            yield 0
        *_files, summary = re.findall(rb'"matched_lines":(\d+)', tail)
        yield int(summary)

    def limit(self, cwd: str, limit: int, **_: Any) -> Iterator[int]:
        """Yield `limit` when that many matches have been read; the time until rg ends is not measured."""
        seen = 0
        for chunk in self._read(cwd):
            seen += chunk.count(_MATCH)
            if seen >= limit:
                yield limit
                return

    grep = search

    def files(self, cwd: str, **_: Any) -> Iterator[int]:
        """Yield the number of paths in each chunk."""
        for chunk in self._read(cwd):
            yield chunk.count(b"\0")

    def tiny(self, cwd: str, times: int, **_: Any) -> Iterator[int]:
        """Run rg `times` times, and yield the number of matches of each run."""
        for _time in range(times):
            done = subprocess.run(self._command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=True)
            yield done.stdout.count(_MATCH)

    def _read(self, cwd: str) -> Iterator[bytes]:
        rg = subprocess.Popen(self._command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)
        assert rg.stdout
        with rg.stdout:
            while chunk := rg.stdout.read(_CHUNK):
                yield chunk
        rg.wait()


def _search_once(rg: Any) -> None:
    from ripwrap import sync

    with tempfile.TemporaryDirectory() as folder:
        list(sync.search_messages("x", cwd=folder, rg=rg))


class Ripwrap:
    """Contestant that uses the async functions of ripwrap."""

    def __init__(self, case: Case) -> None:
        import anyio.lowlevel

        import ripwrap

        self._api: Any = ripwrap
        # One-time work is done before the clock starts: rg's version is read, lazy imports and validators are made.
        self._rg = ripwrap.sync.resolve(case["command"][0])
        _search_once(self._rg)
        self._search = ripwrap.search
        anyio.run(anyio.lowlevel.checkpoint)

    def search(self, pattern: str, cwd: str, **_: Any) -> AsyncIterator[Any]:
        """Yield each match, typed."""
        return self._search(pattern, cwd=cwd, rg=self._rg)

    def limit(self, pattern: str, cwd: str, limit: int, **_: Any) -> AsyncIterator[Any]:
        """Yield the first `limit` matches; rg has then ended."""
        return self._search(pattern, cwd=cwd, limit=limit, rg=self._rg)

    async def grep(self, pattern: str, cwd: str, limit: int, context: int = 0) -> AsyncIterator[int]:
        """Yield the number of all matches, after a page of matches in path order."""
        found = await self._api.grep(pattern, cwd=cwd, limit=limit, context=context, rg=self._rg)
        yield found.total_matches

    def files(self, cwd: str, **_: Any) -> AsyncIterator[Any]:
        """Yield each path."""
        files: AsyncIterator[Any] = self._api.files(cwd=cwd, rg=self._rg)
        return files

    def tree(self, cwd: str, limit: int | None, **_: Any) -> AsyncIterator[Any]:
        """Yield each entry."""
        tree: AsyncIterator[Any] = self._api.tree(cwd=cwd, limit=limit, rg=self._rg)
        return tree

    async def tiny(self, pattern: str, cwd: str, times: int, **_: Any) -> AsyncIterator[int]:
        """Search `times` times in one event loop; each search also finds rg."""
        for _time in range(times):
            async for _match in self._search(pattern, cwd=cwd):
                yield 1


class Blocking:
    """Contestant that uses `ripwrap.sync`."""

    def __init__(self, case: Case) -> None:
        from ripwrap import sync

        self._api = sync
        self._rg = sync.resolve(case["command"][0])
        _search_once(self._rg)
        if case["kind"] == "rank":
            sync.rank("import", cwd=Path(__file__).parent, rg=self._rg)  # imports the modules of ranked search

    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[Any]:
        """Yield each match, typed."""
        return self._api.search(pattern, cwd=cwd, rg=self._rg)

    def limit(self, pattern: str, cwd: str, limit: int, **_: Any) -> Iterator[Any]:
        """Yield the first `limit` matches; rg has then ended."""
        return self._api.search(pattern, cwd=cwd, limit=limit, rg=self._rg)

    def grep(self, pattern: str, cwd: str, limit: int, context: int = 0) -> Iterator[int]:
        """Yield the number of all matches, after a page of matches in path order."""
        yield self._api.grep(pattern, cwd=cwd, limit=limit, context=context, rg=self._rg).total_matches

    def files(self, cwd: str, **_: Any) -> Iterator[Any]:
        """Yield each path."""
        return self._api.files(cwd=cwd, rg=self._rg)

    def tree(self, cwd: str, limit: int | None, **_: Any) -> Iterator[Any]:
        """Yield each entry."""
        return iter(self._api.tree(cwd=cwd, limit=limit, rg=self._rg))

    def rank(self, queries: list[str], glob: list[str], cwd: str, **_: Any) -> Iterator[int]:
        """Yield the number of results of each query."""
        for query in queries:
            yield len(self._api.rank(query, cwd=cwd, glob=glob, rg=self._rg))

    def tiny(self, pattern: str, cwd: str, times: int, **_: Any) -> Iterator[Any]:
        """Search `times` times; each search also finds rg."""
        for _time in range(times):
            yield from self._api.search(pattern, cwd=cwd)


class BlockingColumns(Blocking):
    """Contestant that uses `ripwrap.sync.search_columns()`."""

    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[int]:
        """Yield the number of matches in each batch."""
        return map(len, self._api.search_columns(pattern, cwd=cwd, rg=self._rg))


class OneRun(Blocking):
    """Contestant that uses `ripwrap.sync`, but collects each page in one run of rg."""

    def grep(self, pattern: str, cwd: str, limit: int, context: int = 0) -> Iterator[int]:
        """Yield the number of all matches, after a page of matches in path order."""
        from ripwrap._operations.grep import grep_request, run_grep
        from ripwrap._operations.pagination import Density
        from ripwrap._ripgrep.runner import BlockingRunner, run_blocking

        request = grep_request(pattern, cwd, (), limit, None, 0, None, {"context": context}, explain=False)
        result = run_blocking(run_grep(BlockingRunner(self._rg), request, Density(matches=sys.maxsize)))
        yield result.total_matches


class _Peer(ABC):
    """Contestant that uses another library."""

    module: str

    def __init__(self, _: Case) -> None:
        self._api = import_module(self.module)

    @abstractmethod
    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[Any]:
        """Yield all matches; an integer counts as that many items."""

    def tiny(self, pattern: str, cwd: str, times: int, **_: Any) -> Iterator[Any]:
        """Search `times` times."""
        for _time in range(times):
            yield from self.search(pattern, cwd)


class Rpygrep(_Peer):
    """Contestant that uses rpygrep, blocking, with the rg of its environment."""

    module = "rpygrep"

    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[int]:
        """Yield the number of matches of each file; rpygrep returns typed files."""
        search = self._api.RipGrepSearch(working_directory=Path(cwd)).add_pattern(pattern)
        for file in search.add_directory(Path()).run():
            yield len(file.matches)

    def files(self, cwd: str, **_: Any) -> Iterator[Any]:
        """Yield each path."""
        paths: Iterator[Any] = self._api.RipGrepFind(working_directory=Path(cwd)).run()
        return paths


class Ripgrepy(_Peer):
    """Contestant that uses ripgrepy with the rg of its environment. It waits until rg ends and returns dictionaries."""

    module = "ripgrepy"

    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[int]:
        """Yield each match as a dictionary."""
        yield from self._api.Ripgrepy(pattern, cwd).json().run().as_dict


class PythonRipgrep(_Peer):
    """Contestant that uses python-ripgrep: rg's crates in this process, and a string for each file."""

    module = "python_ripgrep"

    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[int]:
        """Yield the number of lines in the text of each file."""
        for text in self._api.search(patterns=[pattern], paths=[cwd], heading=False, line_number=True):
            yield text.count("\n")

    def files(self, cwd: str, **_: Any) -> Iterator[Any]:
        """Yield the number of paths."""
        yield len(self._api.files(patterns=[""], paths=[cwd]))


class Rgapi(_Peer):
    """Contestant that uses rgapi: rg's crates in this process, and typed rows."""

    module = "rgapi"

    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[Any]:
        """Yield each row when it is found."""
        rows: Iterator[Any] = self._api.rg_iter(pattern, cwd, case_sensitive=True)
        return rows

    def limit(self, pattern: str, cwd: str, limit: int, **_: Any) -> Iterator[Any]:
        """Yield the first `limit` rows."""
        yield from itertools.islice(self._api.rg_iter(pattern, cwd, case_sensitive=True), limit)

    def files(self, cwd: str, **_: Any) -> Iterator[Any]:
        """Yield each path."""
        paths: Iterator[Any] = self._api.fd_iter(None, cwd)
        return paths


class Start:
    """Contestant that imports something, or runs a command of `ripwrap`, in a new interpreter."""

    def __init__(self, case: Case) -> None:
        name = case["contestant"]
        self._arguments = ["-m", *name.split()] if name.startswith("ripwrap ") else ["-c", name]

    def imports(self, cwd: str, **_: Any) -> Iterator[int]:
        """Run the statement or command, and yield 1."""
        subprocess.run([sys.executable, *self._arguments], cwd=cwd, stdout=subprocess.DEVNULL, check=True)
        yield 1


class Server:
    """Contestant that starts an MCP server over stdio: that of ripwrap, or one of the SDK with one tool."""

    def __init__(self, case: Case) -> None:
        own = ("-m", "ripwrap", "mcp", "--root", ".")
        self._arguments = own if case["contestant"].startswith("ripwrap ") else ("-c", _SDK_SERVER)

    def list_tools(self, cwd: str, **_: Any) -> Iterator[int]:
        """Start the server, and yield 1 when it has listed its tools."""
        pipe, argv = subprocess.PIPE, [sys.executable, *self._arguments]
        with subprocess.Popen(argv, cwd=cwd, stdin=pipe, stdout=pipe, text=True, bufsize=1) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            for request in _REQUESTS:
                server.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
                answer = server.stdout.readline() if "id" in request else ""
            assert json.loads(answer)["result"]["tools"]
            yield 1
            server.stdin.close()


_REQUESTS: tuple[dict[str, Any], ...] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)
_SDK_SERVER = """
import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def list_tools(context, params):
    return types.ListToolsResult(tools=[types.Tool(name="x", input_schema={"type": "object"})])

async def main():
    server = Server("x", on_list_tools=list_tools)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""

CONTESTANTS: dict[str, Callable[[Case], Any]] = {
    "raw rg": Raw,
    "ripwrap": Ripwrap,
    "ripwrap.sync": Blocking,
    "ripwrap.sync, columns": BlockingColumns,
    "ripwrap.sync, one run": OneRun,
    "rpygrep": Rpygrep,
    "ripgrepy": Ripgrepy,
    "python-ripgrep": PythonRipgrep,
    "rgapi": Rgapi,
    "ripwrap mcp": Server,
    "a server of the SDK": Server,
}


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def peak_memory() -> int:
    """Return the peak of this process's resident memory so far, in bytes."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    # On Linux, `ru_maxrss` starts with the memory of the parent process.
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def peak_memory_of_child() -> int:
    """Return the peak of the resident memory of the largest child that has ended, in bytes."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measure(items: Callable[[], Items]) -> dict[str, float]:
    """Consume all items, and return seconds, bytes and the number of items; an integer counts as that many items."""
    count, first = 0, 0.0

    async def drain(asynchronous: AsyncIterator[Any]) -> None:
        nonlocal count, first
        async for item in asynchronous:
            first = first or time.perf_counter()
            count += item if isinstance(item, int) else 1

    memory, own, of_children = peak_memory(), _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    iterator = items()
    if isinstance(iterator, AsyncIterator):
        asyncio.run(drain(iterator))
    else:
        for item in iterator:
            first = first or time.perf_counter()
            count += item if isinstance(item, int) else 1
    ended = time.perf_counter()
    return {
        "wall": ended - start,
        "first": first - start if first else 0.0,
        "cpu": _cpu(resource.RUSAGE_SELF) - own,
        "child_cpu": _cpu(resource.RUSAGE_CHILDREN) - of_children,
        "memory": peak_memory() - memory,
        "count": count,
    }


def main() -> None:
    """Run the contestant, and print its figures."""
    case = json.loads(sys.argv[1])
    contestant = CONTESTANTS.get(case["contestant"], Start)(case)
    kind, given = case["kind"], case["given"]
    os.environ.pop("RIPGREP_CONFIG_PATH", None)
    print(json.dumps(measure(lambda: getattr(contestant, kind)(**given))))


if __name__ == "__main__":
    main()

"""One contestant in one case, in a process of its own: `python contestants.py JSON` prints what it took as JSON.

It runs in every environment, so that it needs nothing but the standard library; each contestant brings its own imports,
which are done before the clock starts.
"""

import asyncio
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

Case: TypeAlias = dict[str, Any]
Items: TypeAlias = Iterator[Any] | AsyncIterator[Any]

_CHUNK = 64 * 1024
_TAIL = 4096  # bytes at the end of rg's output in which its summary is found
_MATCH = b'{"type":"match"'


class Raw:
    """The command that ripwrap runs, its output read and thrown away: what everything else is compared with."""

    def __init__(self, case: Case) -> None:
        self._command = case["command"]

    def search(self, cwd: str, **_: Any) -> Iterator[int]:
        """The number of matching lines, at the end, as rg's summary has it."""
        tail = b""
        for chunk in self._read(cwd):
            tail = chunk[-_TAIL:] if len(chunk) >= _TAIL else (tail + chunk)[-_TAIL:]
            yield 0
        *_files, summary = re.findall(rb'"matched_lines":(\d+)', tail)
        yield int(summary)

    def limit(self, cwd: str, limit: int, **_: Any) -> Iterator[int]:
        """As many matches; what it takes to end rg is not counted here."""
        seen = 0
        for chunk in self._read(cwd):
            seen += chunk.count(_MATCH)
            if seen >= limit:
                yield limit
                return

    grep = search

    def files(self, cwd: str, **_: Any) -> Iterator[int]:
        """The number of paths."""
        for chunk in self._read(cwd):
            yield chunk.count(b"\0")

    def tiny(self, cwd: str, times: int, **_: Any) -> Iterator[int]:
        """`subprocess.run`, again and again."""
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


class Ripwrap:
    """ripwrap, asynchronous."""

    def __init__(self, case: Case) -> None:
        import anyio.lowlevel

        import ripwrap

        self._api: Any = ripwrap
        # What a process does once is done before the clock starts: rg is looked at, lazy imports are made.
        self._rg = ripwrap.sync.resolve(case["command"][0])
        self._search = ripwrap.search
        anyio.run(anyio.lowlevel.checkpoint)

    def search(self, pattern: str, cwd: str, **_: Any) -> AsyncIterator[Any]:
        """Each match, typed."""
        return self._search(pattern, cwd=cwd, rg=self._rg)

    def limit(self, pattern: str, cwd: str, limit: int, **_: Any) -> AsyncIterator[Any]:
        """As many matches, and rg reaped."""
        return self._search(pattern, cwd=cwd, limit=limit, rg=self._rg)

    async def grep(self, pattern: str, cwd: str, limit: int, **_: Any) -> AsyncIterator[int]:
        """A page of matches in path order, all of them counted."""
        found = await self._api.grep(pattern, cwd=cwd, limit=limit, context=0, rg=self._rg)
        yield found.total_matches

    def files(self, cwd: str, **_: Any) -> AsyncIterator[Any]:
        """Each path."""
        files: AsyncIterator[Any] = self._api.files(cwd=cwd, rg=self._rg)
        return files

    def tree(self, cwd: str, limit: int | None, **_: Any) -> AsyncIterator[Any]:
        """Each entry."""
        tree: AsyncIterator[Any] = self._api.tree(cwd=cwd, limit=limit, rg=self._rg)
        return tree

    async def tiny(self, pattern: str, cwd: str, times: int, **_: Any) -> AsyncIterator[int]:
        """A search again and again, in one loop; it finds its rg by itself."""
        for _time in range(times):
            async for _match in self._search(pattern, cwd=cwd):
                yield 1


class Blocking:
    """ripwrap's blocking twin."""

    def __init__(self, case: Case) -> None:
        from ripwrap import sync

        self._api = sync
        self._rg = sync.resolve(case["command"][0])

    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[Any]:
        """Each match, typed."""
        return self._api.search(pattern, cwd=cwd, rg=self._rg)

    def limit(self, pattern: str, cwd: str, limit: int, **_: Any) -> Iterator[Any]:
        """As many matches, and rg reaped."""
        return self._api.search(pattern, cwd=cwd, limit=limit, rg=self._rg)

    def grep(self, pattern: str, cwd: str, limit: int, **_: Any) -> Iterator[int]:
        """A page of matches in path order, all of them counted."""
        yield self._api.grep(pattern, cwd=cwd, limit=limit, context=0, rg=self._rg).total_matches

    def files(self, cwd: str, **_: Any) -> Iterator[Any]:
        """Each path."""
        return self._api.files(cwd=cwd, rg=self._rg)

    def tree(self, cwd: str, limit: int | None, **_: Any) -> Iterator[Any]:
        """Each entry."""
        return iter(self._api.tree(cwd=cwd, limit=limit, rg=self._rg))

    def tiny(self, pattern: str, cwd: str, times: int, **_: Any) -> Iterator[Any]:
        """A search again and again; it finds its rg by itself."""
        for _time in range(times):
            yield from self._api.search(pattern, cwd=cwd)


class _Peer(ABC):
    """A library that has a search."""

    module: str

    def __init__(self, _: Case) -> None:
        self._api = import_module(self.module)

    @abstractmethod
    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[Any]:
        """Everything that it finds."""

    def tiny(self, pattern: str, cwd: str, times: int, **_: Any) -> Iterator[Any]:
        """A search again and again."""
        for _time in range(times):
            yield from self.search(pattern, cwd)


class Rpygrep(_Peer):
    """rpygrep, blocking, with the rg of its own environment."""

    module = "rpygrep"

    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[int]:
        """Each file's matches, typed."""
        search = self._api.RipGrepSearch(working_directory=Path(cwd)).add_pattern(pattern)
        for file in search.add_directory(Path()).run():
            yield len(file.matches)

    def files(self, cwd: str, **_: Any) -> Iterator[Any]:
        """Each path."""
        paths: Iterator[Any] = self._api.RipGrepFind(working_directory=Path(cwd)).run()
        return paths


class Ripgrepy(_Peer):
    """ripgrepy, which waits for rg's end and gives dictionaries; with the rg of its own environment."""

    module = "ripgrepy"

    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[int]:
        """Each match, as a dictionary."""
        yield from self._api.Ripgrepy(pattern, cwd).json().run().as_dict


class PythonRipgrep(_Peer):
    """python-ripgrep, rg's crates in this process; gives a text for each file."""

    module = "python_ripgrep"

    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[int]:
        """The text of each file; counted by its lines."""
        for text in self._api.search(patterns=[pattern], paths=[cwd], heading=False, line_number=True):
            yield text.count("\n")

    def files(self, cwd: str, **_: Any) -> Iterator[Any]:
        """Each path."""
        yield len(self._api.files(patterns=[""], paths=[cwd]))


class Rgapi(_Peer):
    """rgapi, rg's crates in this process; typed rows."""

    module = "rgapi"

    def search(self, pattern: str, cwd: str, **_: Any) -> Iterator[Any]:
        """Each row, as it is found."""
        rows: Iterator[Any] = self._api.rg_iter(pattern, cwd, case_sensitive=True)
        return rows

    def limit(self, pattern: str, cwd: str, limit: int, **_: Any) -> Iterator[Any]:
        """As many rows."""
        yield from itertools.islice(self._api.rg_iter(pattern, cwd, case_sensitive=True), limit)

    def files(self, cwd: str, **_: Any) -> Iterator[Any]:
        """Each path."""
        paths: Iterator[Any] = self._api.fd_iter(None, cwd)
        return paths


class Import:
    """An import in a fresh interpreter."""

    def __init__(self, case: Case) -> None:
        self._statement = case["contestant"]

    def imports(self, **_: Any) -> Iterator[int]:
        """One interpreter, started and ended."""
        subprocess.run([sys.executable, "-c", self._statement], check=True)
        yield 1


CONTESTANTS: dict[str, Callable[[Case], Any]] = {
    "raw rg": Raw,
    "ripwrap": Ripwrap,
    "ripwrap.sync": Blocking,
    "rpygrep": Rpygrep,
    "ripgrepy": Ripgrepy,
    "python-ripgrep": PythonRipgrep,
    "rgapi": Rgapi,
}


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _peak() -> int:
    """The most memory that this process has had so far, in bytes."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    # Not `ru_maxrss`, which here starts with what the parent had.
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def measure(items: Callable[[], Items]) -> dict[str, float]:
    """Take all items and say what that took: seconds, bytes, and how many there were; a number stands for so many."""
    count, first = 0, 0.0

    async def drain(asynchronous: AsyncIterator[Any]) -> None:
        nonlocal count, first
        async for item in asynchronous:
            first = first or time.perf_counter()
            count += item if isinstance(item, int) else 1

    memory, own, of_children = _peak(), _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    iterator = items()
    if isinstance(iterator, AsyncIterator):
        asyncio.run(drain(iterator))
    else:
        for item in iterator:
            first = first or time.perf_counter()
            count += item if isinstance(item, int) else 1
    ended = time.perf_counter()
    return {
        "wall": ended - begun,
        "first": first - begun if first else 0.0,
        "cpu": _cpu(resource.RUSAGE_SELF) - own,
        "child_cpu": _cpu(resource.RUSAGE_CHILDREN) - of_children,
        "memory": _peak() - memory,
        "count": count,
    }


def main() -> None:
    """See the module's docstring."""
    case = json.loads(sys.argv[1])
    contestant = CONTESTANTS.get(case["contestant"], Import)(case)
    kind, given = case["kind"], case["given"]
    os.environ.pop("RIPGREP_CONFIG_PATH", None)
    print(json.dumps(measure(lambda: getattr(contestant, kind)(**given))))


if __name__ == "__main__":
    main()

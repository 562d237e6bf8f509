"""Stalls of the event loop, time and memory of each tool, with hostile files, depths and arguments.

`main()` prints a table in `nox -s stress`; `python -m support.stalls SECONDS` sends calls for another time.
"""

import asyncio
import gc
import random
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ripwrap
from ripwrap import sync
from ripwrap.workspace.arguments import TOOL_ERRORS
from support import bombs, hostile, hostile_calls

STALL = 0.05
"""Maximum time in seconds for which a call may block the event loop."""

TIMEOUT = 3.0
GRACE = 1.0
"""Time in seconds after the timeout in which a call must have returned."""

UNLIMITED = ("index_codebase",)
"""Tools without a time limit."""

MEMORY = 512
"""Maximum memory in MiB of this process."""

_TRIES = 3
"""Number of times that a call is tried until it is quick enough: other programs of this machine delay the loop, too."""


@dataclass
class Worst:
    """Worst values of a tool; `calls` is the number of calls."""

    calls: int = 0
    stall: float = 0.0
    seconds: float = 0.0
    memory: int = 0
    arguments: str = ""


def furnish(yard: Path) -> Path:
    """Make a root with hostile links, archives, ignore files, depths and lines; return it."""
    root = hostile.furnish(yard)
    (root / "rules").mkdir()
    (root / "rules/.gitignore").write_text("".join(f"*a{number}*b*c[!x]\n" for number in range(30_000)))
    (root / "sparse").mkdir()
    bombs.sparse(root / "sparse/.rgignore", 64 << 20)  # rg itself reads all of it
    for folder in ("rules", "sparse"):
        (root / folder / "file.py").write_text("secret = 1\n")
    deep = root / "d"
    for _ in range(200):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "file.py").write_text("secret = 1\n")
    bombs.one_line(root / "long.txt", 4 << 20, "secret password=hunter2hunter2 ", "-----" + "BEGIN PRIVATE KEY-----")
    bombs.zip_directory(root / "directory.zip", 200_000)
    return root


MORE: tuple[hostile_calls.Call, ...] = tuple(
    (tool, {**hostile_calls.BASES[tool], "path": path})
    for path in ("rules", "sparse", "/".join("d" * 201), "long.txt", "rules/file.py")
    for tool in (
        *("grep_content", "find_files", "ls", "tree", "codebase_search", "find_references", "read_file"),
        "replace_content",
    )
)
"""Calls for the hostile files and depths."""


async def _tick(worst: list[float]) -> None:
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0.001)
        worst[0] = max(worst[0], time.perf_counter() - begun - 0.001)


async def _measure(workspace: ripwrap.Workspace, tool: str, arguments: dict[str, Any]) -> tuple[float, float]:
    """Return the longest stall of a call, and its time, both in seconds."""
    stall = [0.0]
    ticking = asyncio.create_task(_tick(stall))
    await asyncio.sleep(0.002)
    begun = time.perf_counter()
    with suppress(*TOOL_ERRORS):
        await workspace.call(tool, arguments)
    seconds = time.perf_counter() - begun
    await asyncio.sleep(0.002)
    ticking.cancel()
    return stall[0], seconds


def _peak() -> int:
    """Return the largest memory of this process since the last call, in MiB; 0 except on Linux."""
    if sys.platform != "linux":
        return 0
    text = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    return int(text.partition("VmHWM:")[2].split()[0]) >> 10


def chosen(seed: int = 7) -> list[hostile_calls.Call]:
    """Return the calls: those for the hostile files and depths, then the others in an order that mixes the tools."""
    others = list(hostile_calls.calls(hostile.TABLE, 1))
    random.Random(seed).shuffle(others)
    first = {tool: (tool, arguments) for tool, arguments in others}
    return [*MORE, *first.values(), *others]


async def measured(yard: Path, seconds: float) -> dict[str, Worst]:
    """Send calls for so many seconds, and return the worst values of each tool."""
    root, copy = furnish(yard), furnish(yard / "copy")
    index = yard / "index"
    workspaces = [
        ripwrap.Workspace(root, timeout=TIMEOUT, deny=["**/.env*", "secrets/"], redact=True, anchors=True, index=index),
        ripwrap.Workspace(copy, timeout=TIMEOUT, redact=True, write=True),
    ]
    rows: dict[str, Worst] = {}
    for tool, arguments in hostile_calls.BASES.items():  # import what is imported on first use
        await workspaces[tool == "replace_content"].call(tool, dict(arguments))
    gc.collect()
    gc.freeze()
    ending = time.monotonic() + seconds
    for tool, arguments in chosen():
        if time.monotonic() > ending and len(rows) == len(hostile_calls.SCHEMAS):
            break
        workspace = workspaces[tool == "replace_content"]
        row = rows.setdefault(tool, Worst())
        _peak()
        tries = [await _measure(workspace, tool, arguments)]
        while tries[-1][0] > STALL and len(tries) < _TRIES:
            tries.append(await _measure(workspace, tool, arguments))
        stall, lasted = min(tries)
        row.calls += 1
        row.memory = max(row.memory, _peak())
        if tool not in UNLIMITED:
            row.seconds = max(row.seconds, lasted)
        if stall > row.stall:
            row.stall, row.arguments = stall, repr(arguments)[:150]
    return rows


def blocking_seconds(yard: Path) -> float:
    """Return the longest time of a blocking call for the hostile files and depths."""
    longest = 0.0
    with sync.Workspace(furnish(yard), timeout=TIMEOUT, redact=True, write=True) as workspace:
        for tool, arguments in MORE:
            begun = time.perf_counter()
            with suppress(*TOOL_ERRORS):
                workspace.call(tool, arguments)
            longest = max(longest, time.perf_counter() - begun)
    return longest


def main(seconds: float = 240.0) -> int:
    """Print the table, and return 1 if a limit is exceeded."""
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(measured(Path(folder, "yard"), seconds))
        blocking = blocking_seconds(Path(folder, "blocking"))
    print(f"{'tool':<20} {'calls':>6} {'worst stall':>11} {'longest':>8} {'memory':>8}  arguments of the worst stall")
    for tool, row in rows.items():
        print(
            f"{tool:<20} {row.calls:>6} {row.stall * 1000:>8.0f} ms {row.seconds:>6.1f} s {row.memory:>4} MiB", end=""
        )
        print(f"  {row.arguments}")
    print(f"the longest blocking call took {blocking:.1f} s; the limit is {TIMEOUT + GRACE} s")
    longest = max(blocking, *(row.seconds for row in rows.values()))
    return int(
        any(row.stall > STALL or row.memory > MEMORY for row in rows.values())
        or longest > TIMEOUT + GRACE
        or set(rows) != set(hostile_calls.SCHEMAS)
    )


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))

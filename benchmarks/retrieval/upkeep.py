"""Measure the upkeep of an index: the build, refreshes, queries, and its size."""

import os
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Literal

import anyio

from ripwrap.index import Index

CONFIGURATIONS: dict[str, tuple[Literal["syntax", "windows"], str | None]] = {
    "windows": ("windows", None),
    "syntax": ("syntax", None),
    "syntax, wordllama": ("syntax", "wordllama"),
}
"""Chunker and embedder of an index, by the name of the row in the table."""

COLUMNS = ("build", "MB/s per core", "no-op", "one file", "branch", "query p50", "on disk")
_EDITED = "argparse.py"


@dataclass(frozen=True)
class UpkeepFigures:
    """Figures of one configuration; times are wall time in seconds, sizes are in bytes.

    Attributes:
        build: Time of the first refresh.
        cpu: CPU time of the first refresh, including that of the parser's process.
        text: Size of the indexed files.
        unchanged: Time of a refresh without a change.
        edit: Time of a refresh after a line was added to one file.
        branch: Time of a refresh after a switch to a branch in the index, on which that file differs.
        query: Time of a query without a refresh.
        size: Size of the index on disk.
    """

    build: float
    cpu: float
    text: int
    unchanged: float
    edit: float
    branch: float
    query: float
    size: int


def measure_upkeep(library: Path, configuration: str, queries: Sequence[str], rounds: int) -> UpkeepFigures:
    """Measure one configuration on a copy of the standard library; times are medians, except for the build."""
    chunker, embedder = CONFIGURATIONS[configuration]
    with TemporaryDirectory() as folder:
        root = Path(folder, "library")
        shutil.copytree(library, root)
        _switch(root, "main")
        text = sum(file.stat().st_size for file in root.rglob("*") if file.suffix in (".py", ".txt", ".pyi"))
        index = Index(root, location=Path(folder, "index"), chunker=chunker, embedder=embedder)
        time.sleep(0.1)  # a refresh reads files again that were written a moment before
        before = os.times()
        build = _seconds(index.refresh)
        anyio.run(index.aclose)  # CPU time of the parser's process counts only after its end
        cpu = sum(os.times()[:4]) - sum(before[:4])
        anyio.run(index.refresh)
        size = anyio.run(index.status).bytes
        unchanged = median(_seconds(index.refresh) for _ in range(rounds))
        edit = median(_seconds(index.refresh, partial(_edit, root, number)) for number in range(rounds))
        _switch(root, "other")
        _edit(root, rounds)
        anyio.run(index.refresh)
        branch = median(
            _seconds(index.refresh, partial(_change, root, ("main", "other")[number % 2], number % 2))
            for number in range(2 * rounds)
        )
        calls = [partial(index.search, query, refresh=False) for query in queries]
        anyio.run(calls[0])
        query = median(_seconds(call) for call in calls for _ in range(rounds))
        anyio.run(index.aclose)
        return UpkeepFigures(build, cpu, text, unchanged, edit, branch, query, size)


def _seconds(call: Callable[[], Awaitable[object]], first: Callable[[], object] = lambda: None) -> float:
    async def timed() -> float:
        begun = time.perf_counter()
        await call()
        return time.perf_counter() - begun

    first()
    time.sleep(0.1)
    return anyio.run(timed)


def _edit(root: Path, number: int) -> None:
    file = root / _EDITED
    file.write_text(f"{file.read_text()}\n# edited {number}\n")


def _change(root: Path, name: str, lines: int) -> None:
    """Switch to a branch, and give a file the content that it has on this branch."""
    _switch(root, name)
    file = root / _EDITED
    file.write_text(file.read_text().rstrip("#\n") + "\n" + "#\n" * lines)


def _switch(root: Path, name: str) -> None:
    (root / ".git/refs/heads").mkdir(parents=True, exist_ok=True)
    (root / ".git/refs/heads" / name).write_text("0" * 40 + "\n")
    (root / ".git/HEAD").write_text(f"ref: refs/heads/{name}\n")


def table(figures: dict[str, UpkeepFigures]) -> str:
    """Return the figures as a Markdown table."""
    lines = [f"| chunks | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    for configuration, one in figures.items():
        cells = [f"{one.build:.1f} s", f"{one.text / 1e6 / one.cpu:.1f}"]
        cells += [f"{seconds * 1000:.0f} ms" for seconds in (one.unchanged, one.edit, one.branch, one.query)]
        lines.append(f"| {configuration} | {' | '.join([*cells, f'{one.size / 1e6:.0f} MB'])} |")
    lines.append("| *budget, for windows* | | *≥ 5* | *≤ 60 ms* | *≤ 100 ms* | *≤ 100 ms* | *≤ 20 ms* | |")
    return "\n".join(lines)

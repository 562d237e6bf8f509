"""What an index costs: made, refreshed with nothing to do, after an edit and after a branch switch, and asked."""

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

WAYS: dict[str, tuple[Literal["syntax", "windows"], str | None]] = {
    "windows": ("windows", None),
    "syntax": ("syntax", None),
    "syntax, wordllama": ("syntax", "wordllama"),
}
"""By the name that the table has: what cuts files, and what embeds."""

COLUMNS = ("build", "MB/s per core", "no-op", "one file", "branch", "query p50", "on disk")
_EDITED = "argparse.py"


@dataclass(frozen=True)
class Kept:
    """The figures of one way, in seconds and bytes.

    Attributes:
        build: A first refresh, by the clock.
        processor: What it took of the processors, the parser's process included.
        text: How much there was to index.
        nothing: A refresh with nothing to do.
        edit: A refresh after one file has another line.
        branch: A refresh after a switch to a branch that was indexed before, where that file differs.
        query: A question, without a refresh.
        size: Of the index on disk.
    """

    build: float
    processor: float
    text: int
    nothing: float
    edit: float
    branch: float
    query: float
    size: int


def kept(library: Path, way: str, queries: Sequence[str], rounds: int) -> Kept:
    """Measure one way, on a copy of the standard library; medians but of the build."""
    chunker, embedder = WAYS[way]
    with TemporaryDirectory() as folder:
        root = Path(folder, "library")
        shutil.copytree(library, root)
        _switch(root, "main")
        text = sum(file.stat().st_size for file in root.rglob("*") if file.suffix in (".py", ".txt", ".pyi"))
        index = Index(root, location=Path(folder, "index"), chunker=chunker, embedder=embedder)
        time.sleep(0.1)  # what was written a moment ago is read again
        before = os.times()
        build = _seconds(index.refresh)
        anyio.run(index.aclose)  # the parser's process counts once it has ended
        processor = sum(os.times()[:4]) - sum(before[:4])
        anyio.run(index.refresh)
        size = anyio.run(index.status).bytes
        nothing = median(_seconds(index.refresh) for _ in range(rounds))
        edit = median(_seconds(index.refresh, partial(_edit, root, number)) for number in range(rounds))
        _switch(root, "other")
        _edit(root, rounds)
        anyio.run(index.refresh)
        branch = median(
            _seconds(index.refresh, partial(_change, root, ("main", "other")[number % 2], number % 2))
            for number in range(2 * rounds)
        )
        ask = [partial(index.search, query, refresh=False) for query in queries]
        anyio.run(ask[0])
        query = median(_seconds(one) for one in ask for _ in range(rounds))
        anyio.run(index.aclose)
        return Kept(build, processor, text, nothing, edit, branch, query, size)


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
    """Another branch, on which a file has other content than on this one."""
    _switch(root, name)
    file = root / _EDITED
    file.write_text(file.read_text().rstrip("#\n") + "\n" + "#\n" * lines)


def _switch(root: Path, name: str) -> None:
    (root / ".git/refs/heads").mkdir(parents=True, exist_ok=True)
    (root / ".git/refs/heads" / name).write_text("0" * 40 + "\n")
    (root / ".git/HEAD").write_text(f"ref: refs/heads/{name}\n")


def table(figures: dict[str, Kept]) -> str:
    """The figures, as Markdown."""
    lines = [f"| chunks | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    for way, one in figures.items():
        cells = [f"{one.build:.1f} s", f"{one.text / 1e6 / one.processor:.1f}"]
        cells += [f"{seconds * 1000:.0f} ms" for seconds in (one.nothing, one.edit, one.branch, one.query)]
        lines.append(f"| {way} | {' | '.join([*cells, f'{one.size / 1e6:.0f} MB'])} |")
    lines.append("| *budget, for windows* | | *≥ 5* | *≤ 60 ms* | *≤ 100 ms* | *≤ 100 ms* | *≤ 20 ms* | |")
    return "\n".join(lines)

"""Compare `search_code()` with ast-grep on five packages: the same matches, and times.

    python benchmarks/structure.py DIR

pip downloads the packages from PyPI into DIR, and the script unpacks them there. Each pattern is searched by ripwrap,
by ast-grep-py in every file, and by the program `ast-grep`, which has a thread for each CPU, if it is installed (`pip
install ast-grep-cli`). The script prints two times, each the shortest of three runs: seconds of CPU of this process and
of the processes that it has started, and seconds of a clock. Seconds of CPU depend less on other programs. The matches
are compared by path, start and end.
"""

import json
import math
import resource
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ast_grep_py import SgRoot

from ripwrap import CodeMatch, sync

PACKAGES = ("aiohttp==3.13.2", "django==5.2.8", "flask==3.1.2", "pydantic==2.12.4", "requests==2.32.5")
PATTERNS = {
    "rare": ("hashlib.md5($$$A)", "asyncio.shield($A)", "requests.get($URL, $$$)"),
    "common": ("isinstance($A, $B)", "super().__init__($$$A)", "warnings.warn($$$A)", "raise $E from None"),
    "none": ("$A == $B", "lambda $A: $B"),
}
"""Patterns, grouped by the number of files that have the names in a pattern."""

RUNS = 3

Hit: TypeAlias = tuple[str, int, int]


def unpack(folder: Path) -> Path:
    """Download and unpack the packages if they are missing; return the directory with their files."""
    tree = folder / "tree"
    if not tree.exists():
        pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*pip, f"--dest={folder}", *PACKAGES], check=True)
        for wheel in sorted(folder.glob("*.whl")):
            with zipfile.ZipFile(wheel) as opened:
                opened.extractall(tree)
    return tree


def by_ripwrap(tree: Path, pattern: str) -> list[Hit]:
    """Return what `search_code()` finds."""
    hits = (hit for hit in sync.search_code(pattern, lang="python", cwd=tree) if isinstance(hit, CodeMatch))
    found: list[Hit] = []
    for hit in hits:
        (submatch,) = hit.submatches
        start = hit.absolute_offset
        found.append((hit.path or "", start + submatch.start, start + submatch.end))
    return sorted(found)


def by_ast_grep_py(tree: Path, pattern: str) -> list[Hit]:
    """Return what ast-grep-py finds in every file, with offsets in characters of texts in ASCII."""
    found: list[Hit] = []
    for path in (path for extension in ("py", "pyi") for path in tree.rglob(f"*.{extension}")):
        text = path.read_text("utf-8")
        name = str(path.relative_to(tree))
        for node in SgRoot(text, "python").root().find_all(pattern=pattern):
            start, end = (len(text[: place.index].encode()) for place in (node.range().start, node.range().end))
            found.append((name, start, end))
    return sorted(found)


def by_program(program: str, tree: Path, pattern: str) -> list[Hit]:
    """Return what the program `ast-grep` finds."""
    argv = [program, "run", "--json=stream", "--lang=python", f"--pattern={pattern}", "."]
    done = subprocess.run(argv, cwd=tree, capture_output=True, check=False)
    matches = map(json.loads, done.stdout.splitlines())
    places = ((one["file"].removeprefix("./"), one["range"]["byteOffset"]) for one in matches)
    return sorted((path, place["start"], place["end"]) for path, place in places)


class Times(NamedTuple):
    """Seconds of a run, of CPU and of a clock."""

    cpu: float
    wall: float

    def row(self, others: "Times | None" = None) -> str:
        """Return the text of a table cell; if `others` are given, the text also has their ratio to these times."""
        ratio = "" if others is None else f", ratio {others.cpu / self.cpu:.2f} ({others.wall / self.wall:.2f})"
        return f"{self.cpu:.2f} s ({self.wall:.2f} s){ratio}"


def measure(work: Callable[[], list[Hit]]) -> tuple[list[Hit], Times]:
    """Return what a function finds, and its shortest times."""
    cpu, wall, found = math.inf, math.inf, list[Hit]()
    for _ in range(RUNS):
        cpu_before, begun = cpu_seconds(), time.perf_counter()
        found = work()
        cpu, wall = min(cpu, cpu_seconds() - cpu_before), min(wall, time.perf_counter() - begun)
    return found, Times(cpu, wall)


def cpu_seconds() -> float:
    """Return the seconds of CPU of this process, and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Print the table."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tree = unpack(folder)
    program = shutil.which("ast-grep", path=sysconfig.get_path("scripts"))
    print("| names | pattern | matches | same | ripwrap: CPU (clock) | ast-grep-py | `ast-grep` |")
    print("|---|---|---:|---|---|---|---|")
    for kind, patterns in PATTERNS.items():
        for pattern in patterns:
            found, own = measure(partial(by_ripwrap, tree, pattern))
            expected, others = measure(partial(by_ast_grep_py, tree, pattern))
            same, row = found == expected, f"{own.row()} | {others.row(own)}"
            if program is not None:
                printed, others = measure(partial(by_program, program, tree, pattern))
                same, row = same and found == printed, f"{row} | {others.row(own)}"
            print(f"| {kind} | `{pattern}` | {len(found):,} | {same} | {row} |", flush=True)


if __name__ == "__main__":
    main()

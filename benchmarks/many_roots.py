"""Fit the cost of a search over many roots: `python benchmarks/many_roots.py` prints the cost for 1, 2 and 4 workers.

Roots are the directories of the second level in the Linux sources, in the page cache. Workers are processes on this
machine. CPU seconds, which other load hardly changes, are fitted as `a * roots + b * MB`, by least squares of the
relative errors over sets of small and of large roots. The wall time of each set is printed, too.
"""

import multiprocessing
import os
import resource
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

import corpora
from ripwrap import Root, sync

PATTERN = r"\bkmalloc\w*"
WORKERS = (1, 2, 4)
SMALL, LARGE = 200, 40
ROUNDS = 3


class Cost(NamedTuple):
    """Seconds of a search: wall time, CPU of this process, and CPU of the workers with their rg."""

    wall: float
    here: float
    workers: float


def size(folder: Path) -> float:
    """Return the size of all files in a folder, in MB."""
    files = (os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return sum(os.lstat(path).st_size for path in files) / 1e6


def sets(sizes: dict[Path, float]) -> list[list[Path]]:
    """Return sets of roots: few and many small roots, few and many large roots, and all of them."""
    order = sorted(sizes, key=lambda path: sizes[path])
    small, large = order[-SMALL - LARGE : -LARGE], order[-LARGE:]
    return [small[::8], small[::4], small[::2], small, large[::4], large[::2], large, small + large]


def cpu(pids: Sequence[int]) -> float:
    """Return the CPU seconds of processes and of their children that have ended."""
    return sum(sum(psutil.Process(pid).cpu_times()[:4]) for pid in pids)


def cost(paths: Sequence[Path], pool: ProcessPoolExecutor) -> Cost:
    """Return the lowest cost of a search in a few rounds."""
    repositories = sync.Repositories(*(Root(name=str(path), path=str(path)) for path in paths), executor=pool)
    costs: list[Cost] = []
    for _ in range(ROUNDS):
        pids = [child.pid for child in psutil.Process().children(recursive=True)]
        wall, here, workers = time.perf_counter(), time.process_time(), cpu(pids)
        failed = [one for one in repositories.count(PATTERN) if one.type == "error"]
        costs.append(Cost(time.perf_counter() - wall, time.process_time() - here, cpu(pids) - workers))
        if failed:
            raise SystemExit(f"a root failed: {failed[0]}")
    return Cost(*(min(values) for values in zip(*costs, strict=True)))


def fit(rows: Sequence[tuple[float, ...]], values: Sequence[float]) -> tuple[list[float], float]:
    """Return the factors of the columns that give the smallest relative errors, and the largest relative error."""
    scaled = np.array(rows) / np.array(values)[:, None]
    factors = np.linalg.lstsq(scaled, np.ones(len(values)), rcond=None)[0]
    return [float(factor) for factor in factors], float(np.abs(scaled @ factors - 1).max())


def main() -> None:
    """Measure, fit and print."""
    linux = corpora.linux()
    sizes = {path: size(path) for path in linux.glob("*/*") if path.is_dir() and not path.is_symlink()}
    chosen = sets(sizes)
    columns = [(float(len(paths)), sum(sizes[path] for path in paths)) for paths in chosen]
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.0f}, largest set: {columns[-1][0]:.0f} roots, ", end="")
    print(f"{columns[-1][1]:.0f} MB")
    for number in WORKERS:
        with ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("forkserver")) as pool:
            cost(chosen[0], pool)  # starts the workers
            costs = [cost(paths, pool) for paths in chosen]
        (root, mb), off = fit(columns, [one.workers for one in costs])
        (here,), _ = fit([(roots,) for roots, _ in columns], [one.here for one in costs])
        print(f"{number} workers: {root * 1000:.2f} ms of CPU a root + {mb * 1000:.2f} ms a MB, error up to {off:.0%}")
        print(f"  here {here * 1000:.2f} ms a root; wall time " + ", ".join(f"{one.wall:.2f}" for one in costs) + " s")
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main()

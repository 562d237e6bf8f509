"""Measure an index of the Linux sources: `python benchmarks/retrieval/large.py` prints the figures as JSON.

CPU time includes that of child processes: rg and the parser.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import TypeVar

from pydantic import TypeAdapter

sys.path.append(str(Path(__file__).parent.parent))

from corpora import linux
from retrieval.clock import Timing, percentile, timed
from ripwrap import sync
from ripwrap._system.subprocess.worker import usable_cpus
from ripwrap.results import GrepResult

QUERIES = (
    "how are page faults handled",
    "TCP cubic congestion control",
    "ext4 journal commit",
    "where is task_struct defined",
    "spinlock implementation on x86",
    "reset the port of a USB hub",
    "copy on write of anonymous pages",
    "kernel samepage merging",
    "timeout of connection tracking in netfilter",
    "btrfs scrub of a device",
    "nested virtualization vmx entry",
    "i2c bus recovery",
    "do_sys_open",
    "warn when an RCU grace period stalls",
    "bluetooth pairing with the security manager",
    "apply a device tree overlay",
    "power management of an audio codec",
    "gather entropy for random numbers",
    "allocate a tag of the multi queue block layer",
    "schedule_timeout_interruptible",
)
PATTERNS = (
    "do_fsync",
    "ksys_fallocate",
    r"copy_from_user_nofault\(",
    r"EXPORT_SYMBOL_GPL\(kvm_\w+_dirty",
    r"static int xhci_\w+_probe",
    r"spin_lock_irqsave\(&chip->reg_lock",
    r"^struct btrfs_scrub\w*",
    "(?i)deprecated ioctl",
    "rcu_read_lock_sched_held",
    r"pr_warn_once\(.CPU",
    "tcp_cubic|bictcp_cwnd_event",
    r"\bmutex_lock_io_nested\b",
)
"""Patterns with a rare literal; one pattern has alternatives with a literal each."""
_ROUNDS = 3
_MAX_AGE = 3_600
"""Seconds for which `Index.grep()` does not list the files again."""
_MB = 1_000_000

T = TypeVar("T")


@dataclass(frozen=True)
class Figures:
    """Figures of an index of a large tree; times in seconds, sizes in bytes.

    Attributes:
        files: Files with text in the index.
        chunks: Chunks of these files.
        text: Size of all listed files.
        build: First refresh.
        memory: Peak memory of the process that built the index, plus that of the largest child for each process that
            split files.
        disk: Size of the index after the build.
        refresh: Refresh without a change.
        query: Queries without a refresh, median and 95th percentile.
        refreshed: Queries that refresh first, median.
        trigrams: First `Index.grep()`, which adds trigrams to the index.
        trigrams_disk: Size of the trigrams.
        grep: `grep()` of each pattern.
        index_grep: `Index.grep()` of each pattern, which has listed the files before.
        candidates: Number of files that `Index.grep()` let rg search, for each pattern.
    """

    files: int
    chunks: int
    text: int
    build: Timing
    memory: int
    disk: int
    refresh: Timing
    query: tuple[Timing, Timing]
    refreshed: Timing
    trigrams: Timing
    trigrams_disk: int
    grep: tuple[Timing, ...]
    index_grep: tuple[Timing, ...]
    candidates: tuple[int, ...]


def measure(root: Path, queries: Sequence[str] = QUERIES, patterns: Sequence[str] = PATTERNS) -> Figures:
    """Measure an index of a folder, whose chunks are windows of lines."""
    from contestants import peak_memory, peak_memory_of_child  # POSIX only, and tests import this module everywhere

    text = sum((root / path).lstat().st_size for path in sync.files(cwd=root))
    with TemporaryDirectory() as folder, sync.Index(root, location=folder, chunker="windows") as index:
        _, build = timed(index.refresh)
        memory = peak_memory() + usable_cpus() * peak_memory_of_child()
        status = index.status()
        _, refresh = _median(index.refresh)
        index.search(queries[0], refresh=False)  # the first query imports modules and opens files
        queried = [_median(partial(index.search, query, refresh=False))[1] for query in queries]
        refreshed = [timed(partial(index.search, query))[1] for query in queries[:5]]
        _, trigrams = timed(partial(index.grep, patterns[0]))
        trigrams_disk = index.status().bytes - status.bytes
        plain = [_median(partial(sync.grep, pattern, cwd=root, hidden=False, follow=False)) for pattern in patterns]
        found: list[tuple[GrepResult, Timing]] = [
            _median(partial(index.grep, pattern, max_age=_MAX_AGE)) for pattern in patterns
        ]
    for pattern, (one, _), (other, _) in zip(patterns, plain, found, strict=True):
        if one != other.model_copy(update={"candidates": None, "files_total": None}):
            raise SystemExit(f"Index.grep({pattern!r}) and grep({pattern!r}) have different results")
    return Figures(
        files=status.files,
        chunks=status.chunks,
        text=text,
        build=build,
        memory=memory,
        disk=status.bytes,
        refresh=refresh,
        query=(percentile(queried), percentile(queried, 0.95)),
        refreshed=percentile(refreshed),
        trigrams=trigrams,
        trigrams_disk=trigrams_disk,
        grep=tuple(one for _, one in plain),
        index_grep=tuple(one for _, one in found),
        candidates=tuple(one.candidates or 0 for one, _ in found),
    )


def budgets(figures: Figures) -> list[tuple[str, bool]]:
    """Return the text of each budget, and True if it is met."""
    speed, per_core = figures.text / _MB / figures.build.wall, figures.text / _MB / figures.build.cpu
    return [
        ("build ≥ 10 MB/s", speed >= 10),
        ("build ≥ 6 MB/s per CPU second", per_core >= 6),
        ("memory of the build ≤ 600 MB", figures.memory <= 600 * _MB),
        ("disk ≤ 0.35 of the size of the text", figures.disk <= 0.35 * figures.text),
        ("refresh without a change ≤ 0.4 s of CPU", figures.refresh.cpu <= 0.4),
        ("query p50 ≤ 40 ms of CPU without a refresh", figures.query[0].cpu <= 0.04),
        ("query p50 ≤ 0.5 s of CPU with a refresh", figures.refreshed.cpu <= 0.5),
        ("Index.grep(max_age=…) p50 ≤ 80 ms", percentile(figures.index_grep).wall <= 0.08),
    ]


def section(figures: Figures) -> str:
    """Return the figures and budgets as Markdown."""
    text = figures.text / _MB
    rows = [
        ("build", figures.build),
        ("refresh without a change", figures.refresh),
        ("query without a refresh, p50", figures.query[0]),
        ("query without a refresh, p95", figures.query[1]),
        ("query after a refresh, p50", figures.refreshed),
        ("first `Index.grep()`, which adds trigrams", figures.trigrams),
        ("`ripwrap.grep()`, without an index, p50", percentile(figures.grep)),
        ("`Index.grep(max_age=…)`, p50", percentile(figures.index_grep)),
        ("`Index.grep(max_age=…)`, p95", percentile(figures.index_grep, 0.95)),
    ]
    disk, trigrams = figures.disk / figures.text, figures.trigrams_disk / figures.text
    summary = (
        f"Index of the sources of Linux 6.1, with chunks of lines: {figures.files:,} files, {figures.chunks:,} chunks, "
        f"{text:,.0f} MB of text. The index has {disk:.2f} times the size of the text; the trigrams, which the first "
        f"`Index.grep()` adds, have a further {trigrams:.2f}. The build indexed "
        f"{text / figures.build.wall:.1f} MB/s and {text / figures.build.cpu:.1f} MB per CPU second, with at most "
        f"{figures.memory / _MB:,.0f} MB of memory. For patterns with a rare literal, `Index.grep()` let rg search a "
        f"median of {_median_count(figures.candidates):,} files. The table has wall times and CPU times."
    )
    table = "\n".join(
        ["| Linux 6.1 | wall | CPU |", "|---|---:|---:|"]
        + [f"| {name} | {_shown(one.wall)} | {_shown(one.cpu)} |" for name, one in rows]
    )
    verdicts = "\n".join(f"- {'met' if met else '**MISSED**'}: {budget}" for budget, met in budgets(figures))
    return f"{fill(summary, 100)}\n\n{table}\n\nGoals for the Linux sources:\n\n{verdicts}"


def _shown(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _median_count(counts: Sequence[int]) -> int:
    """Return the median of counts."""
    return sorted(counts)[len(counts) // 2]


def parse_figures(text: str) -> Figures:
    """Parse the JSON that this module prints."""
    return TypeAdapter(Figures).validate_json(text)


def main() -> None:
    """Measure a tree and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="tree to index [default: the Linux sources]")
    root = parser.parse_args().folder or linux()
    print(json.dumps(asdict(measure(root))))


def _median(call: Callable[[], T]) -> tuple[T, Timing]:
    done, first = timed(call)
    return done, percentile([first, *(timed(call)[1] for _ in range(_ROUNDS - 1))])


if __name__ == "__main__":
    main()

"""Measure the search of a history: `python benchmarks/history.py [COMMITS]` prints MB/s of ripwrap, rg and git.

The repository is generated: 5,000 commits, each of which changes one or two files of text. MB is the size of all
contents in the history, each counted once. rg searches the same contents in files. Every search is run three times, one
after another, and the fastest time counts.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ripwrap import sync

WORDS = [f"{a}{b}" for a in ("alpha", "needle", "parse", "token", "index", "search") for b in range(200)]
NEEDLE = "needle77"
ROUNDS = 3


def git(folder: Path, *arguments: str, data: bytes | None = None) -> bytes:
    """Return the output of git."""
    done = subprocess.run(["git", *arguments], cwd=folder, input=data, capture_output=True, check=False)
    return done.stdout


def generate(folder: Path, commits: int) -> None:
    """Make a repository by `git fast-import`."""
    chance = random.Random(1)  # noqa: S311
    files = {f"src/d{number % 12}/f{number}.txt": [line(chance) for _ in range(200)] for number in range(200)}
    out: list[bytes] = []
    for number in range(commits):
        names = list(files) if not number else chance.sample(sorted(files), chance.choice([1, 1, 2]))
        out.append(b"commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata 1\nx\n" % (1_600_000_000 + number * 60))
        for name in names:
            files[name][chance.randrange(len(files[name]))] = line(chance)
            content = "\n".join(files[name]).encode()
            out.append(b"M 100644 inline %b\ndata %d\n%b\n" % (name.encode(), len(content), content))
    git(folder, "init", "--quiet", "--initial-branch=main", ".")
    git(folder, "fast-import", "--quiet", data=b"".join(out))
    git(folder, "gc", "--quiet")


def line(chance: random.Random) -> str:
    """Return a line of words."""
    return " ".join(chance.choices(WORDS, k=8))


def extract(folder: Path, target: Path) -> int:
    """Write each content of the history into a file of its own, and return the number of bytes."""
    listed = git(folder, "cat-file", "--batch-all-objects", "--batch-check")
    oids = [oid for oid, kind, _ in map(str.split, listed.decode().splitlines()) if kind == "blob"]
    output = git(folder, "cat-file", "--batch", "--buffer", data="".join(f"{oid}\n" for oid in oids).encode())
    at = size = 0
    for oid in oids:
        end = output.index(b"\n", at)
        length = int(output[at:end].split()[2])
        at = end + 1 + length + 1
        (target / oid).write_bytes(output[end + 1 : at - 1])
        size += length
    return size


def seconds(call: Callable[[], object]) -> float:
    """Return the fastest time of some calls."""
    times: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return min(times)


def main() -> None:
    """Print a table."""
    commits = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with tempfile.TemporaryDirectory() as top:
        folder, contents = Path(top, "repository"), Path(top, "contents")
        folder.mkdir()
        contents.mkdir()
        generate(folder, commits)
        size = extract(folder, contents) / 1e6
        rg = sync.resolve().path
        revisions = git(folder, "rev-list", "HEAD").decode().split()

        def grep_all() -> None:
            for start in range(0, len(revisions), 1000):  # the length of a command line is limited
                git(folder, "grep", "-I", "-c", NEEDLE, *revisions[start : start + 1000])

        searches: dict[str, Callable[[], object]] = {
            "rg, the same contents in files": lambda: subprocess.run(
                [rg, "--no-config", "--json", NEEDLE, str(contents)], capture_output=True, check=False
            ),
            "search_history()": lambda: sum(1 for _ in sync.search_history(NEEDLE, cwd=folder)),
            "git log -S": lambda: git(folder, "log", "--oneline", f"-S{NEEDLE}"),
            "git log -G": lambda: git(folder, "log", "--oneline", f"-G{NEEDLE}"),
            "git grep, all commits": grep_all,
        }
        print(f"{commits} commits, {len(list(contents.iterdir()))} contents, {size:.1f} MB")
        for name, search in searches.items():
            took = seconds(search) if not name.startswith("git grep") else _once(search)
            print(f"{name:32} {took:8.2f} s {size / took:9.1f} MB/s")


def _once(search: Callable[[], object]) -> float:
    begun = time.perf_counter()
    search()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()

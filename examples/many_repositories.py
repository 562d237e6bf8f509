"""Search many repositories at once: `python examples/many_repositories.py PATTERN [DIR…] [--limit N] [--trio]`.

If DIR is not a repository, the repositories directly below it are searched, or DIR itself if it has none. The first
matches of each repository are printed as they are found, and at the end their numbers (`5+` is more than 5). The exit
code is 0; 1 if nothing was found; 2 if a directory could not be searched. Unreadable files are logged.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectSendStream

import ripwrap

DEMO = "demo"
FAILURES = (OSError, ripwrap.RipwrapError)

Item: TypeAlias = tuple[str, ripwrap.Match | Exception]
"""Repository, and a match in it or the error of its search."""


def repositories(folders: Sequence[str]) -> list[str]:
    """Return the folders to search, without duplicates."""
    found: list[str] = []
    for folder in map(Path, folders):
        below = [] if (folder / ".git").exists() else [git.parent for git in sorted(folder.glob("*/.git"))]
        found += map(str, below or [folder])
    return list(dict.fromkeys(found))


async def search(
    pattern: str, repository: str, limit: int, slots: anyio.CapacityLimiter, results: MemoryObjectSendStream[Item]
) -> None:
    """Search one repository, and send up to `limit + 1` matches; the additional match tells that there are more."""
    async with results, slots:
        try:
            # However this task ends, `aclosing` ends rg before the slot is released.
            async with aclosing(ripwrap.search(pattern, cwd=repository, limit=limit + 1, follow=False)) as matches:
                async for match in matches:
                    await results.send((repository, match))
        except FAILURES as error:
            await results.send((repository, error))


def printable(path: str) -> str:
    """Return a path in which bytes that are not UTF-8 are replaced."""
    return os.fsencode(path).decode(errors="replace")


def shown(repository: str, match: ripwrap.Match) -> str:
    """Format a match as one line."""
    path = printable(os.path.join(repository, match.path))
    return f"{path}:{match.line_number}: {match.text.strip()}"


async def search_all(pattern: str, found: Sequence[str], limit: int, at_once: int) -> int:
    """Search all repositories, print the matches, and return the exit code."""
    counts = Counter[str]()
    failures: dict[str, list[str]] = {}
    slots = anyio.CapacityLimiter(at_once)
    send, receive = anyio.create_memory_object_stream[Item](0)
    async with anyio.create_task_group() as group:
        async with send:
            for repository in found:
                group.start_soon(search, pattern, repository, limit, slots, send.clone())
        async with receive:
            async for repository, item in receive:
                if isinstance(item, Exception):
                    failures.setdefault(str(item), []).append(repository)
                    continue
                counts[repository] += 1
                if counts[repository] <= limit:
                    print(shown(repository, item), flush=True)
    print()
    failed = {repository for several in failures.values() for repository in several}
    for repository in found:
        count = counts[repository]
        more = "+" if count > limit or repository in failed else ""  # a failed search may have had more
        print(f"{min(count, limit)}{more} in {printable(repository)}" + (" (failed)" if repository in failed else ""))
    for message, several in failures.items():
        print(f"error: {', '.join(map(printable, several))}: {message}", file=sys.stderr)
    return 2 if failures else 0 if counts else 1


def positive(text: str) -> int:
    """Parse an integer of at least 1."""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def main() -> int:
    """Parse the command line, and search."""
    parser = argparse.ArgumentParser(description="Search many repositories at once.")
    parser.add_argument("pattern")
    parser.add_argument("folders", nargs="*", default=[DEMO], metavar="DIR")
    parser.add_argument("--limit", type=positive, default=5, help="matches of each repository to show")
    parser.add_argument("--at-once", type=positive, default=4, help="rg processes at a time")
    parser.add_argument("--trio", action="store_true", help="run on trio instead of asyncio")
    given = parser.parse_args()
    missing = [folder for folder in given.folders if not Path(folder).is_dir()]
    if missing:
        print(f"error: no such folder: {', '.join(missing)}", file=sys.stderr)
        return 2
    arguments = (given.pattern, repositories(given.folders), given.limit, given.at_once)
    try:
        return anyio.run(search_all, *arguments, backend="trio" if given.trio else "asyncio")
    except LookupError as error:  # trio is not installed
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

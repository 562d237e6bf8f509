"""Check searches, lists, ranking and an index once, on platforms where the tests do not run.

`python scripts/smoke.py` needs only ripwrap and an rg. It also searches on trio if trio is installed.
"""

import asyncio
import importlib.util
import platform
import sys
import tempfile
from pathlib import Path

import ripwrap
from ripwrap import sync

FOUND = ["a.py", str(Path("b", "c.txt"))]


async def search(folder: Path) -> list[str]:
    """Return the paths of all matches."""
    return sorted([match.path or "" async for match in ripwrap.search("needle", cwd=folder)])


def check(name: str, got: object, expected: object) -> None:
    """Print one result, or end with an error."""
    if got != expected:
        raise SystemExit(f"{name}: expected {expected!r}, got {got!r}")
    print(f"ok: {name}")


def main() -> None:
    """Run all checks."""
    print(f"{platform.platform()}, {platform.machine()}, {sys.implementation.name} {platform.python_version()}")
    rg = sync.resolve()
    print(f"rg {'.'.join(map(str, rg.version))} from {rg.source}: {rg.path}")
    with tempfile.TemporaryDirectory() as named:
        folder = Path(named, "tree")
        (folder / "b").mkdir(parents=True)
        (folder / "a.py").write_text("def needle():\n    pass\n")
        (folder / "b" / "c.txt").write_text("needle needle\n")
        check("files", sorted(sync.files(cwd=folder)), FOUND)
        check("search, blocking", sorted(match.path or "" for match in sync.search("needle", cwd=folder)), FOUND)
        check("search, asyncio", asyncio.run(search(folder)), FOUND)
        if importlib.util.find_spec("trio"):
            import trio

            check("search, trio", trio.run(search, folder), FOUND)
        check("rank", [chunk.path for chunk in sync.rank("needle", cwd=folder)], FOUND)
        check("tools", sync.Workspace(folder).grep_content_result("needle").total_matches, 2)
        for _ in range(50):  # leave each search after its first match
            next(iter(sync.search("needle", cwd=folder)))
        print("ok: search, left early")
        if importlib.util.find_spec("tantivy") is None:
            print("not run: index, because tantivy is not installed")
            return
        with sync.Index(folder, location=Path(named, "index"), chunker="windows") as index:
            check("index, new", index.refresh().added, 2)
            (folder / "d.md").write_text("another needle\n")
            check("index, changed", index.refresh().added, 1)
            check("index, rebuilt", index.refresh(rebuild=True).added, 3)
            check("index, search", len(index.search("needle")), 3)


if __name__ == "__main__":
    main()

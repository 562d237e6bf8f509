"""Resolve ripwrap's extras beside agent frameworks with uv; fail if one holds back others than its page names.

`python scripts/resolve.py [FRAMEWORK ...]` prints a table. Packages are resolved but not installed, from PyPI alone. An
extra holds back a framework if there is no solution with it and the version that the framework gets alone. `all` may
hold back none; for the other extras, the table 'holds back' of `docs/reference/extras.md` must name just these.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "extras.md"
FRAMEWORKS = (
    "ag2",
    "agno",
    "atomic-agents",
    "autogen-agentchat",
    "browser-use",
    "camel-ai",
    "claude-agent-sdk",
    "crewai",
    "deepagents",
    "dspy",
    "fastmcp",
    "google-adk",
    "haystack-ai",
    "instructor",
    "langchain",
    "langgraph",
    "langroid",
    "litellm",
    "llama-index",
    "mcp",
    "ollama",
    "openai-agents",
    "pydantic-ai",
    "semantic-kernel",
    "smolagents",
    "strands-agents",
)
OPTIONS = ("--quiet", "--no-annotate", "--no-header", f"--python-version={sys.version_info[0]}.{sys.version_info[1]}")
SECONDS = 300
"""Time limit of one resolution; most take a second."""


class Resolved(NamedTuple):
    """Version of a framework alone, and the extras of ripwrap that hold it back.

    Attributes:
        name: Name of the framework on PyPI.
        alone: Version that it gets alone.
        held: Extras that hold it back, with uv's reason.
    """

    name: str
    alone: str
    held: dict[str, str]


def requirements(project: dict[str, list[str]], extra: str) -> Iterator[str]:
    """Yield the packages of an extra, and those of the extras that it names."""
    for requirement in project[extra]:
        if named := re.fullmatch(r"ripwrap\[([\w,-]+)\]", requirement):
            for one in named[1].split(","):
                yield from requirements(project, one)
        else:
            yield requirement


def compile_requirements(*wanted: str) -> tuple[dict[str, str], str]:
    """Return the version of each package that uv chooses, or nothing and uv's reason."""
    command = ["uv", "pip", "compile", *OPTIONS, "-"]
    text = "\n".join(wanted)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        return {}, done.stderr.strip()
    return dict(re.findall(r"^([a-z0-9._-]+)(?:\[.*?\])?==([^\s;]+)", done.stdout, re.MULTILINE)), ""


def resolve(name: str, needs: list[str], extras: dict[str, list[str]]) -> Resolved:
    """Return the versions of a framework; `needs` are the packages of ripwrap, and those of each extra.

    Raises:
        RuntimeError: The framework has no solution alone.
    """
    alone, failed = compile_requirements(name)
    if failed:
        raise RuntimeError(f"{name} cannot be resolved alone: {failed}")

    def reason(names: Iterable[str]) -> str:
        packages = (package for extra in names for package in extras[extra])
        return compile_requirements(f"{name}=={alone[name]}", *needs, *packages)[1]

    held = {extra: why for extra in extras if (why := reason([extra]))} if reason(extras) else {}
    return Resolved(name, alone[name], held)


def named_on_page() -> dict[str, set[str]]:
    """Return the frameworks that the page says each extra holds back."""
    _, _, table = PAGE.read_text("utf-8").partition("| extras | holds back |")
    rows = (
        re.findall(r"`([\w.-]+)`", cell) for row in table.partition("\n\n")[0].splitlines() for cell in row.split("|")
    )
    cells = [cell for cell in rows if cell]
    return {extra: {*held} for extras, held in zip(cells[::2], cells[1::2], strict=True) for extra in extras}


def main(names: list[str]) -> None:
    """Print a table of the frameworks, and exit with the differences from the page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    inside = set(re.findall(r"[\w-]+", optional["all"][0]))
    extras = {extra: [*requirements(optional, extra)] for extra in optional if extra not in inside or extra == "all"}
    page, held = named_on_page(), dict[str, set[str]]()
    with ThreadPoolExecutor(4) as pool:
        for one in pool.map(lambda name: resolve(name, project["dependencies"], extras), names or FRAMEWORKS):
            print(f"{one.name:20}{one.alone:14}{'held back by ' if one.held else ''}{', '.join(one.held)}", flush=True)
            for extra, why in one.held.items():
                held.setdefault(extra, set()).add(one.name)
                if one.name not in page.get(extra, ()):
                    print(f"  {extra}: {why}".replace("\n", "\n  "))
    asked = {*(names or FRAMEWORKS)}
    named = {extra: page.get(extra, set()) & asked for extra in extras}
    wrong = [
        f"{extra} holds back {sorted(held.get(extra, ()))}; the page says {sorted(named[extra])}"
        for extra in extras
        if held.get(extra, set()) != named[extra]
    ]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(sys.argv[1:])

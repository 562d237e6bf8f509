"""Resolve `ripwrap[all]` beside agent frameworks with uv; fail if one gets an older release than it gets alone.

`python scripts/resolve.py [FRAMEWORK ...]` prints a table. Packages are resolved but not installed, from PyPI alone.
"""

import functools
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
FRAMEWORKS = (
    "agno",
    "autogen-agentchat",
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
    "litellm",
    "llama-index",
    "mcp",
    "openai-agents",
    "pydantic-ai",
    "semantic-kernel",
    "smolagents",
    "strands-agents",
)
OPTIONS = ("--quiet", "--no-annotate", "--no-header", f"--python-version={sys.version_info[0]}.{sys.version_info[1]}")
SECONDS = 300
"""Time limit of one resolution; most take ten seconds."""


class Resolved(NamedTuple):
    """Versions of a framework: alone, and beside ripwrap.

    Attributes:
        name: Name of the framework on PyPI.
        alone: Version that it gets alone.
        extras: Extras of ripwrap that were resolved beside it.
        beside: Version that it gets beside ripwrap; empty if there is no solution.
        reason: Why uv cannot choose `alone` beside ripwrap; empty if it chose the same minor version.
    """

    name: str
    alone: str
    extras: str
    beside: str
    reason: str


def compile_requirements(*requirements: str) -> tuple[dict[str, str], str]:
    """Return the version of each package that uv chooses, or nothing and uv's reason."""
    command = ["uv", "pip", "compile", *OPTIONS, "-"]
    text = "\n".join(requirements)
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, timeout=SECONDS, check=False)
    if done.returncode:
        return {}, done.stderr.strip()
    return dict(re.findall(r"^([a-z0-9._-]+)(?:\[.*?\])?==([^\s;]+)", done.stdout, re.MULTILINE)), ""


def all_extras() -> list[str]:
    """Return the extras that `all` names."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    return re.findall(r"[\w-]+", re.sub(r"\bripwrap\b", "", " ".join(extras["all"])))


def resolve(name: str) -> Resolved:
    """Return the versions of a framework.

    A framework that needs version 1 of MCP's SDK is resolved beside all extras but `mcp`, which needs version 2.

    Raises:
        RuntimeError: The framework has no solution alone.
    """
    alone, failed = compile_requirements(name)
    if failed:
        raise RuntimeError(f"{name} cannot be resolved alone: {failed}")
    old_sdk = name != "mcp" and alone.get("mcp", "").startswith("1.")
    extras = ",".join(extra for extra in all_extras() if extra != "mcp") if old_sdk else "all"
    beside, failed = compile_requirements(f".[{extras}]", name)
    if not failed and minor(beside[name]) == minor(alone[name]):
        return Resolved(name, alone[name], extras, beside[name], "")
    _, reason = compile_requirements(f".[{extras}]", f"{name}=={alone[name]}")
    return Resolved(name, alone[name], extras, beside.get(name, ""), reason or failed or "uv chose another version")


def minor(version: str) -> str:
    """Return the major and the minor version."""
    return ".".join(version.split(".")[:2])


def main(names: list[str]) -> None:
    """Print a table of the frameworks, and exit with the names of those that are held back."""
    row = functools.partial("{:20}{:14}{:14}{}".format)
    print(row("framework", "alone", "with ripwrap", "extras of ripwrap"))
    held_back = []
    with ThreadPoolExecutor(4) as pool:
        for one in pool.map(resolve, names or FRAMEWORKS):
            extras = "all" if one.extras == "all" else "all but mcp"
            print(row(one.name, one.alone, one.beside or "none", extras), flush=True)
            if one.reason:
                held_back.append(one.name)
                print(f"  {one.reason}".replace("\n", "\n  "))
    if held_back:
        sys.exit(f"held back: {', '.join(held_back)}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Count the calls and characters that an agent needs for thirty tasks: `python benchmarks/agent_tasks.py`.

Each task is about one of three packages, in a repository with two of its releases. It has calls as an agent makes
them, in order: the first one as its habits are, with the arguments of other programs, and with places as answers print
them; each later one only if no answer so far has the result. No language model chooses the calls.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

sys.path.append(str(Path(__file__).parent))

from retrieval.packages import releases
from ripwrap import sync

Call = tuple[str, Mapping[str, object]]

REPOSITORIES = {
    "starlette": ("starlette==0.41.0", "starlette==1.10.0"),
    "werkzeug": ("werkzeug==3.0.0", "werkzeug==3.1.9"),
    "urllib3": ("urllib3==2.0.2", "urllib3==2.8.0"),
}
"""Releases of each repository: an old one, which has a tag such as `v3.0.0`, and the one of the files on the disk."""


class Task(NamedTuple):
    """What an agent wants to know, its calls, and what an answer with the result has."""

    repository: str
    wants: str
    calls: Sequence[Call]  # of a tool with its arguments; `{root}` in one stands for the repository
    result: str


TASKS = [Task(**one) for one in json.loads(Path(__file__).with_suffix(".json").read_text())]


def checkout(name: str, folder: Path) -> Path:
    """Make a repository with a commit and a tag for each release of a package, and return its directory."""
    root = folder / name
    root.mkdir()
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    for pin, source in zip(REPOSITORIES[name], releases(*REPOSITORIES[name]), strict=True):
        subprocess.run([*git, "rm", "-rfq", "--ignore-unmatch", "."], check=True)
        subprocess.run(["cp", "-R", f"{source}/.", str(root)], check=True)
        subprocess.run([*git, "add", "-A", "-f"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", pin.replace("==", " ")], check=True)
        subprocess.run([*git, "tag", f"v{pin.partition('==')[2]}"], check=True)
    return root


def attempt(task: Task, root: Path) -> tuple[int, int, str]:
    """Return the number of calls until an answer has the result, or one more than there are; characters; the last."""
    workspace, characters, answer = sync.Workspace(root), 0, ""
    for number, (tool, arguments) in enumerate(task.calls, 1):
        given = {
            name: value.replace("{root}", str(root)) if isinstance(value, str) else value
            for name, value in arguments.items()
        }
        answer = workspace.call(tool, given)
        characters += len(answer)
        if re.search(task.result, answer) and not answer.startswith("Error: "):
            return number, characters, answer
    return len(task.calls) + 1, characters, answer


def main() -> int:
    """Run all tasks, and print the figures as a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--answers", action="store_true", help="show the beginning of each answer that lacks the result"
    )
    shows = parser.parse_args().answers
    print("| repository | the agent wants | tool | calls | characters |\n|---|---|---|---:|---:|")
    figures: list[tuple[int, int]] = []
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        roots = {name: checkout(name, Path(folder)) for name in REPOSITORIES}
        for task in TASKS:
            calls, characters, answer = attempt(task, roots[task.repository])
            missed = calls > len(task.calls)
            failed += missed
            figures.append((calls, characters))
            said = "not found" if missed else str(calls)
            print(f"| {task.repository} | {task.wants} | {task.calls[0][0]} | {said} | {characters:,} |")
            if missed and shows:
                print(f"{answer[:600]}\n")
    mean_calls, mean_characters = (fmean(column) for column in zip(*figures, strict=True))
    means = f"{mean_calls:.2f} calls, {mean_characters:,.0f} characters"
    print(f"\n{len(TASKS)} tasks, {failed} without a result; mean: {means}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

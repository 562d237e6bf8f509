"""Measure the tools for agents: `python benchmarks/retrieval/agents/run.py [DIR]`, where DIR has annotated queries.

Without DIR, only questions about ripwrap itself are asked. The annotations are those of the benchmark of ranked search.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from textwrap import fill

sys.path.append(str(Path(__file__).parents[2]))

from retrieval.agents.answers import OURS, answers_in, tokens_by_tool
from retrieval.agents.formats import SOURCES
from retrieval.agents.measures import BUDGETS, Lines, count_lines, mean
from retrieval.agents.policies import CUT, POLICIES
from retrieval.agents.questions import Folder, folders
from retrieval.measures import CHARS_PER_TOKEN
from retrieval.packages import UnavailableError
from ripwrap import sync
from ripwrap.workspace.results import MAX_CHARS

Coverage = Mapping[str, Mapping[str, Mapping[int, Sequence[Lines]]]]
"""Figures of all questions, by name of the folder, policy and budget."""

_HEAD = Path(__file__).with_name("head.md")
_ALL = "all"
_WIDTH = 100


def measure_folder(folder: Folder) -> dict[str, dict[int, list[Lines]]]:
    """Answer all questions of a folder with each policy, within each budget."""
    return {name: {budget: measure_policy(folder, name, budget) for budget in BUDGETS} for name in POLICIES}


def measure_policy(folder: Folder, name: str, budget: int) -> list[Lines]:
    """Answer all questions of a folder with one policy; `max_chars` is the budget, except for the policy `CUT`."""
    max_chars = MAX_CHARS if name == CUT else budget * CHARS_PER_TOKEN
    workspace = sync.Workspace(folder.root, max_chars=max_chars)
    return [count_lines(POLICIES[name](workspace, one.text), one, budget) for one in folder.questions]


def coverage_table(coverage: Coverage) -> str:
    """Return the means of each folder and of all questions as a Markdown table."""
    columns = "".join(f" | lines in {budget:,} | tokens | calls" for budget in BUDGETS)
    rows = [f"| directory | tools{columns} |", f"|---|---|{'---:|' * 3 * len(BUDGETS)}"]
    for folder, policies in {**coverage, _ALL: _joined(coverage)}.items():
        for policy, budgets in policies.items():
            cells = [folder, policy]
            for budget in BUDGETS:
                figures = mean(budgets[budget])
                cells += [f"{figures.share:.1%}", f"{figures.tokens:,.0f}", f"{figures.calls:.1f}"]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _joined(coverage: Coverage) -> dict[str, dict[int, list[Lines]]]:
    return {
        policy: {budget: [one for folder in coverage.values() for one in folder[policy][budget]] for budget in BUDGETS}
        for policy in POLICIES
    }


def token_table(tokens: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return the mean tokens of the answers of each tool, in each format, as a Markdown table."""
    rows = ["| answer | format | tokens | relative to ripwrap |", "|---|---|---:|---:|"]
    for tool, by_format in tokens.items():
        ours = fmean(by_format[OURS])
        for name, counts in by_format.items():
            mean_count = fmean(counts)
            relative = "" if name == OURS else f"{mean_count / ours:.2f}"
            rows.append(f"| {tool} | {name} | {mean_count:,.0f} | {relative} |")
    return "\n".join(rows)


def report(folders_measured: Sequence[Folder], coverage: Coverage, tokens: str) -> str:
    """Return all figures as Markdown."""
    sizes = ", ".join(
        f"{folder.name} ({len(folder.questions)} questions, {sum(len(one.lines) for one in folder.questions):,} lines)"
        for folder in folders_measured
    )
    version = ".".join(map(str, sync.resolve().version))
    sources = "\n".join(
        f"- {name}: {source}" for name, source in sorted(SOURCES.items(), key=lambda one: one[0].lower())
    )
    return "\n\n".join(
        [
            "## Relevant lines",
            fill(
                f"rg {version}. Directories, with numbers of relevant lines: {sizes}. In each row, the first three "
                f"figures are for the first {BUDGETS[0]:,} tokens, and the last three for the first {BUDGETS[1]:,}: "
                "the share of the relevant lines that were in these tokens, the number of tokens that were read (fewer "
                "if the answers end earlier), and the number of calls. Each figure is a mean over the questions of the "
                f"directory, and in the rows `{_ALL}` over all questions.",
                _WIDTH,
                break_on_hyphens=False,
            ),
            coverage_table(coverage),
            "## Tokens of answers",
            fill(
                "The table has the mean number of tokens of an answer to the same questions, or for `find_files`, `ls` "
                "and `tree` of a listing of each directory. For each format, the matches, paths or lines of ripwrap's "
                "answer were written as another tool writes them, so the answers have the same content in each format. "
                "ripwrap's text also says how many matches there are, what was left out, and in which other files "
                "there are matches; the other formats have no such notes here. The other tools may find, sort or limit "
                "matches in other ways. The rows `paths` and `counts` are answers with the paths of the files alone, "
                "and with a number of matches for each file. The last column is the number of tokens divided by that "
                "of ripwrap's format.",
                _WIDTH,
            ),
            tokens,
            "The formats were written from these sources:",
            sources,
        ]
    )


def main() -> int:
    """Run the benchmark, print the figures, and write the page if its name is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", metavar="DIR", help="folder of the annotations")
    parser.add_argument("--page", type=Path, metavar="FILE", help="file to write as Markdown")
    arguments = parser.parse_args()
    measured: list[Folder] = []
    coverage: dict[str, dict[str, dict[int, list[Lines]]]] = {}
    try:
        for folder in folders(arguments.folder):
            print(f"{folder.name}: {len(folder.questions)} questions", file=sys.stderr, flush=True)
            measured.append(folder)
            coverage[folder.name] = measure_folder(folder)
    except UnavailableError as error:
        parser.error(str(error))
    tokens = tokens_by_tool(answer for folder in measured for answer in answers_in(folder))
    text = report(measured, coverage, token_table(tokens))
    print(text)
    if arguments.page:
        arguments.page.write_text(f"{_HEAD.read_text()}\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

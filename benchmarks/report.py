"""Write the figures of the benchmark as tables, a plot and a page of the documentation.

`python benchmarks/report.py` makes the plot and the page from the stored figures.
"""

import argparse
import json
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import Any

from cases import BUDGETS, DECODING, IMPORT, INSTRUCTIONS, LINUX, SMALL, STDLIB, TITLES, Budget, Case

FILES = {STDLIB.name: "standard-library.json", LINUX.name: "linux.json"}
FOLDER = Path(__file__).parent.parent / "docs/benchmarks"
PLOT = "benchmarks.svg"
_HEAD = Path(__file__).parent / "head.md"

_CASES = {
    STDLIB.name: (*STDLIB.cases(), SMALL, IMPORT),
    LINUX.name: LINUX.cases(),
}
_LEAST = {"wall": 0.0, "first": 0.001, "cpu": 0.01, "child_cpu": 0.01, "memory": 1e6}
"""Smallest figures, in seconds or bytes, for which the table has a ratio."""

_COLUMNS = ("case", "who", "items", "wall", "first", "CPU", "rg's CPU", "memory", "budget")


@dataclass(frozen=True)
class Measured:
    """Figures of a corpus, as `bench.py` stores them."""

    corpus: str
    about: dict[str, Any]
    runs: dict[str, dict[str, list[dict[str, float]]]]
    instructions: dict[str, int]

    def value(self, case: str, contestant: str, metric: str) -> list[float]:
        """Return the figure of each round; the list is empty if it was not measured."""
        rounds = self.runs.get(case, {}).get(contestant, [])
        if metric == "all_cpu":
            return [one["cpu"] + one["child_cpu"] for one in rounds]
        return [one[metric] for one in rounds]


@dataclass(frozen=True)
class Verdict:
    """Budget with the figure that it limits."""

    budget: Budget
    figure: float

    @property
    def met(self) -> bool:
        """True if the budget is met by the figure as printed, which is rounded."""
        return round(self.figure, _digits(self.budget)) <= self.budget.limit

    def __str__(self) -> str:
        digits, unit = _digits(self.budget), self.budget.unit
        compared = "≤" if self.met else ">"
        figures = f"{self.figure:.{digits}f}{unit} {compared} {self.budget.limit:g}{unit}"
        return f"{'met' if self.met else 'MISSED'}: {self.budget.text} {figures}"


def _digits(budget: Budget) -> int:
    return 2 if budget.unit == "x" else 1


def load(folder: Path) -> list[Measured]:
    """Load the figures that `bench.py` has stored in a directory, for each measured corpus."""
    stored = [(corpus, folder / name) for corpus, name in FILES.items() if (folder / name).exists()]
    loaded = [(corpus, json.loads(path.read_text())) for corpus, path in stored]
    return [Measured(corpus, data["about"], data["runs"], data.get("instructions", {})) for corpus, data in loaded]


def verdict(measured: Measured, budget: Budget) -> Verdict | None:
    """Compare a budget with the median of the rounds; a ratio is that of two runs of the same round."""
    if budget.corpus not in (None, measured.corpus):
        return None
    figures = measured.value(budget.case, budget.contestant, budget.metric)
    if budget.to is not None:
        other = measured.value(budget.to_case or budget.case, budget.to, budget.to_metric or budget.metric)
        pairs = zip(figures, other, strict=False)
        figures = [mine - its if budget.minus else mine / its for mine, its in pairs]
    return Verdict(budget, median(figures) * budget.factor) if figures else None


def verdicts(measured: Measured) -> list[Verdict]:
    """Compare every budget with its figures; skip those that were not measured."""
    judged = (verdict(measured, budget) for budget in BUDGETS)
    return [one for one in judged if one]


def _title(case: Case) -> str:
    return TITLES[case.name].format(under=case.under, **case.given)


def _rows(measured: Measured) -> Iterator[tuple[str, ...]]:
    judged = verdicts(measured)
    for case in _CASES[measured.corpus]:
        title = _title(case)
        for contestant, rounds in measured.runs.get(case.name, {}).items():
            # The interpreter that imports is a child of the one that measures.
            shown = (
                ("wall", "", "child_cpu", "", "") if case is IMPORT else ("wall", "first", "cpu", "child_cpu", "memory")
            )
            own = [str(one) for one in judged if (one.budget.case, one.budget.contestant) == (case.name, contestant)]
            yield (
                title,
                contestant,
                f"{median(one['count'] for one in rounds):,.0f}",
                *(_cell(measured, case, contestant, metric) if metric else "" for metric in shown),
                "; ".join(own),
            )
            title = ""
    title = "instructions for each decoded match"
    for contestant, count in measured.instructions.items():
        ours = contestant == "ripwrap"
        budget = f"{'met' if count <= INSTRUCTIONS else 'MISSED'}: {count:,} of {INSTRUCTIONS:,}" if ours else ""
        yield (title, contestant, f"{count:,}", *[""] * 5, budget)
        title = ""


def _cell(measured: Measured, case: Case, contestant: str, metric: str) -> str:
    """Return the median, and in brackets the ratio to the baseline if both are large enough."""
    figures, base = measured.value(case.name, contestant, metric), measured.value(case.name, case.baseline, metric)
    figure = f"{median(figures) / 1e6:,.0f} MB" if metric == "memory" else _seconds(median(figures))
    if contestant == case.baseline or min(base) < _LEAST[metric] or min(figures) < _LEAST[metric]:
        return figure
    return f"{figure} ({median(mine / its for mine, its in zip(figures, base, strict=True)):.2f})"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def table(measured: Measured) -> str:
    """Return all figures as an aligned Markdown table."""
    rows = [_COLUMNS, *_rows(measured)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = range(2, len(_COLUMNS) - 1)
    ruler = tuple("-" * (width - 1) + (":" if place in right else "-") for place, width in enumerate(widths))
    return "\n".join(
        "| "
        + " | ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in (rows[0], ruler, *rows[1:])
    )


def printed(folder: Path, corpora: Container[str]) -> str:
    """Return the tables of these corpora as text."""
    return "\n\n".join(
        f"{measured.corpus}: {_about(measured)}\n\n{table(measured)}"
        for measured in load(folder)
        if measured.corpus in corpora
    )


def _about(measured: Measured) -> str:
    about = measured.about
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    environment = f"{about['date']}, commit {about['commit']}; {about['machine']}; {about['python']}; rg {about['rg']}"
    without = "".join(f" SKIPPED: {peer} ({why})." for peer, why in about.get("left_out", {}).items())
    return f"{environment}; {about['rounds']} rounds; {versions}.{without}"


def page(folder: Path) -> str:
    """Return the text of `docs/benchmarks.md`."""
    everything = load(folder)
    parts = [_HEAD.read_text().rstrip()]
    for measured in everything:
        parts += [f"## {measured.corpus}", _wrapped(_about(measured)), table(measured)]
    missed = [line for measured in everything for line in _missed(measured)]
    parts += ["## Missed budgets, and what was tried", "\n".join(map(_wrapped, missed)) or "None."]
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str) -> str:
    """Wrap a paragraph or list item. No line begins with `>`, which would be a quotation in Markdown."""
    glued = re.sub(r" (?=[>≤%])|(?<=[>≤]) ", "\0", text)
    indent = "  " if text.startswith("- ") else ""
    lines = fill(glued, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")


def _missed(measured: Measured) -> Iterator[str]:
    for one in verdicts(measured):
        if not one.met:
            where = f"{measured.corpus}, {_title(_case(measured, one.budget.case))}, `{one.budget.contestant}`"
            yield f"- {where}: {one}. {one.budget.tried}"
    count = measured.instructions.get("ripwrap", 0)
    if count > INSTRUCTIONS:
        yield f"- {count:,} instructions for each decoded match, budget {INSTRUCTIONS:,}. {DECODING}"


def _case(measured: Measured, name: str) -> Case:
    return next(case for case in _CASES[measured.corpus] if case.name == name)


def write(folder: Path) -> None:
    """Write the plot into the directory, and the page beside it."""
    _plot(load(folder), folder / PLOT)
    folder.with_suffix(".md").write_text(page(folder))


def _plot(everything: list[Measured], path: Path) -> None:
    """Plot the dense search: CPU of the process and of its rg as bars, wall time as a mark."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ripwrap", "font.size": 9})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(everything), figsize=(5 * len(everything), 3), squeeze=False)
    for axis, measured in zip(axes[0], everything, strict=True):
        runs = measured.runs["dense"]
        names = list(reversed(runs))
        middle = {
            metric: [median(measured.value("dense", name, metric)) for name in names]
            for metric in ("cpu", "child_cpu", "wall")
        }
        axis.barh(names, middle["cpu"], color="#4477aa", label="CPU of the process")
        axis.barh(names, middle["child_cpu"], left=middle["cpu"], color="#bbccee", label="CPU of its rg")
        axis.plot(middle["wall"], names, "D", color="#222222", markersize=4, label="wall time")
        pattern = _case(measured, "dense").given["pattern"]
        axis.set_title(f"{measured.corpus}, {pattern!r}: seconds", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][-1].legend(frameon=False, fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    """Write the plot and the page from the figures in a directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    write(parser.parse_args().folder)


if __name__ == "__main__":
    main()

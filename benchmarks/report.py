"""Write the figures of the benchmark as tables, plots and a page of the documentation.

`python benchmarks/report.py` makes the plots and the page from the stored figures.
"""

import argparse
import json
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import Any

from cases import ALONE, BUDGETS, LINUX, QUESTIONS, STDLIB, SUBPROCESS, TITLES, Budget, Case, Question

FILES = {STDLIB.name: "standard-library.json", LINUX.name: "linux.json"}
FOLDER = Path(__file__).parent.parent / "docs/benchmarks"
_HEAD = Path(__file__).parent / "head.md"

_CASES = {
    STDLIB.name: (*STDLIB.cases(), *ALONE),
    LINUX.name: LINUX.cases(),
}
_LEAST = 0.001
"""Shortest wall time, in seconds, for which the table has a ratio."""

_COLUMNS = ("contestant", "items", "wall", "spread", "ratio", "first", "CPU", "rg's CPU", "memory")
_JUDGED = ("case", "contestant", "figure", "limit", "today", "spread", "before", "")


@dataclass(frozen=True)
class Measured:
    """Figures of a corpus, as `bench.py` stores them.

    Attributes:
        corpus: Name of the corpus.
        about: Date, commit, machine and versions.
        runs: Figures of each round, by case and contestant.
        before: Date, commit and figure of each budget of the commit that was measured before this one; may be empty.
    """

    corpus: str
    about: dict[str, Any]
    runs: dict[str, dict[str, list[dict[str, float]]]]
    before: dict[str, Any]

    def value(self, case: str, contestant: str, metric: str) -> list[float]:
        """Return the figure of each round; the list is empty if it was not measured."""
        rounds = self.runs.get(case, {}).get(contestant, [])
        if metric == "all_cpu":
            return [one["cpu"] + one["child_cpu"] for one in rounds]
        return [one[metric] for one in rounds if metric in one]


@dataclass(frozen=True)
class Verdict:
    """Budget with the figures that it limits, one of each round."""

    budget: Budget
    rounds: tuple[float, ...]

    @property
    def figure(self) -> float:
        """Median of the rounds."""
        return median(self.rounds)

    @property
    def met(self) -> bool:
        """True if the budget is met by the figure as printed, which is rounded."""
        return round(self.figure, _digits(self.budget)) <= self.budget.limit

    def __str__(self) -> str:
        compared = "≤" if self.met else ">"
        figures = f"{_printed(self.budget, self.figure)} {compared} {_limit(self.budget)}"
        return f"{'met' if self.met else 'MISSED'}: {self.budget.text} {figures}"


def _digits(budget: Budget) -> int:
    return {"x": 2, "": 0}.get(budget.unit, 1)


def _printed(budget: Budget, figure: float) -> str:
    return f"{figure:,.{_digits(budget)}f}{budget.unit}"


def _limit(budget: Budget) -> str:
    return f"{budget.limit:,g}{budget.unit}"


def load(folder: Path) -> list[Measured]:
    """Load the figures that are stored in a directory, for each measured corpus."""
    return [_load(folder, corpus) for corpus, name in FILES.items() if (folder / name).exists()]


def _load(folder: Path, corpus: str) -> Measured:
    data = json.loads((folder / FILES[corpus]).read_text())
    return Measured(corpus, data["about"], data["runs"], data["before"])


def store(folder: Path, corpus: str, about: dict[str, Any], runs: dict[str, dict[str, list[dict[str, float]]]]) -> None:
    """Store the figures of a corpus, together with the figures of the budgets that were stored before.

    If the same commit is measured again, the figures of the commit before it stay.
    """
    path, before = folder / FILES[corpus], dict[str, Any]()
    if path.exists():
        old = _load(folder, corpus)
        figures = {one.budget.name: one.figure for one in verdicts(old)}
        again = old.about["commit"] == about["commit"]
        before = old.before if again else {**{name: old.about[name] for name in ("date", "commit")}, "figures": figures}
    path.write_text(json.dumps({"about": about, "before": before, "runs": runs}, indent=1) + "\n")


def verdict(measured: Measured, budget: Budget) -> Verdict | None:
    """Compare a budget with the figures of the rounds; a ratio compares two runs of the same round."""
    if budget.corpus not in (None, measured.corpus):
        return None
    figures = measured.value(budget.case, budget.contestant, budget.metric)
    if budget.to is not None:
        other = measured.value(budget.to_case or budget.case, budget.to, budget.to_metric or budget.metric)
        pairs = zip(figures, other, strict=False)
        figures = [mine - its if budget.minus else mine / its for mine, its in pairs]
    return Verdict(budget, tuple(one * budget.factor for one in figures)) if figures else None


def verdicts(measured: Measured) -> list[Verdict]:
    """Compare every budget with its figures; skip those that were not measured."""
    judged = (verdict(measured, budget) for budget in BUDGETS)
    return [one for one in judged if one]


def _title(case: Case) -> str:
    return TITLES[case.name].format(under=case.under, **case.given)


def _case(measured: Measured, name: str) -> Case:
    return next(case for case in _CASES[measured.corpus] if case.name == name)


def budgets(measured: Measured) -> str:
    """Return a Markdown table of the budgets, with today's figures and those before."""
    figures = measured.before.get("figures", {})
    order = [name for question in QUESTIONS for name in question.cases]
    rows = [
        (
            _title(_case(measured, one.budget.case)),
            f"`{one.budget.contestant}`",
            one.budget.text,
            _limit(one.budget),
            _printed(one.budget, one.figure),
            _spread([_printed(one.budget, edge) for edge in (min(one.rounds), max(one.rounds))]),
            _printed(one.budget, figures[one.budget.name]) if one.budget.name in figures else "",
            "met" if one.met else "MISSED",
        )
        for one in sorted(verdicts(measured), key=lambda one: order.index(one.budget.case))
    ]
    return _aligned(_JUDGED, rows, right=range(3, 7))


def table(measured: Measured, case: Case) -> str:
    """Return the figures of a case as an aligned Markdown table; columns without figures are left out."""
    rows = [_COLUMNS, *_rows(measured, case)]
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    first, *others = zip(*columns, strict=True)
    return _aligned(first, others, right=range(1, len(first)))


def _rows(measured: Measured, case: Case) -> Iterator[tuple[str, ...]]:
    base = measured.value(case.name, case.baseline, case.metric)
    for contestant in measured.runs.get(case.name, {}):

        def middle(metric: str, contestant: str = contestant) -> str:
            figures = measured.value(case.name, contestant, metric)
            return _figure(metric, median(figures)) if figures else ""

        main = measured.value(case.name, contestant, case.metric)
        compared = contestant != case.baseline and min(*base, *main) >= _LEAST
        yield (
            f"`{contestant}`",
            middle("count"),
            middle(case.metric),
            _spread([_figure(case.metric, edge) for edge in (min(main), max(main))]),
            f"{median(mine / its for mine, its in zip(main, base, strict=True)):.2f}x" if compared else "",
            *map(middle, ("first", "cpu", "child_cpu", "memory")),
        )


def _figure(metric: str, figure: float) -> str:
    if metric in ("count", "instructions"):
        return f"{figure:,.0f}"
    if metric == "memory":
        return f"{figure / 1e6:,.0f} MB"
    return f"{figure:.2f} s" if figure >= 1 else f"{figure * 1000:.0f} ms"


def _spread(edges: Sequence[str]) -> str:
    """Return the lowest and highest figure, with one unit if both have the same."""
    low, high = edges
    (number, _, unit), (_, _, same) = low.partition(" "), high.partition(" ")
    low = number if unit == same else low.removesuffix("x")
    return "" if low.removesuffix("x") == high.removesuffix("x") else f"{low} to {high}"


def _aligned(head: tuple[str, ...], body: Iterable[tuple[str, ...]], right: Container[int]) -> str:
    """Return a Markdown table; the columns in `right` are aligned to the right."""
    rows = [head, *body]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
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


def _sections(question: Question, everything: Iterable[Measured]) -> Iterator[str]:
    for measured in everything:
        for case in _of(question, measured):
            yield f"### {measured.corpus}: {_title(case)}"
            yield table(measured, case)


def _of(question: Question, measured: Measured) -> list[Case]:
    """Return the measured cases of a question."""
    named = {case.name: case for case in _CASES[measured.corpus]}
    return [named[name] for name in question.cases if name in named and measured.runs.get(name)]


def printed(folder: Path, corpora: Container[str]) -> str:
    """Return the tables of these corpora as text."""
    everything = [measured for measured in load(folder) if measured.corpus in corpora]
    parts = [part for question in QUESTIONS for part in _sections(question, everything)]
    for measured in everything:
        parts += [f"{measured.corpus}: {_about(measured)}", budgets(measured)]
    return "\n\n".join(parts)


def _about(measured: Measured) -> str:
    about = measured.about
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    environment = f"{about['date']}, commit {about['commit']}; {about['machine']}; {about['python']}; rg {about['rg']}"
    without = "".join(f" SKIPPED: {peer} ({why})." for peer, why in about.get("left_out", {}).items())
    before = "; before: {date}, commit {commit}".format_map(measured.before) if measured.before else ""
    return f"{environment}; {about['rounds']} rounds; {versions}{before}.{without}"


def page(folder: Path) -> str:
    """Return the text of `docs/benchmarks.md`."""
    everything = load(folder)
    opening, method = _HEAD.read_text().split("\n## Method\n")
    parts = [opening.strip()]
    for question in QUESTIONS:
        parts.append(f"## {question.title}")
        if question.about:
            parts.append(_wrapped(question.about))
        parts.append(f"![{question.title}](benchmarks/{question.name}.svg)")
        parts += _sections(question, everything)
    parts.append("## Budgets")
    for measured in everything:
        met = sum(one.met for one in verdicts(measured))
        parts += [
            f"### {measured.corpus}: {met} of {len(verdicts(measured))} budgets are met",
            _wrapped(_about(measured)),
            budgets(measured),
        ]
    missed = [line for measured in everything for line in _missed(measured)]
    parts += ["### Missed budgets, and what was tried", "\n".join(map(_wrapped, missed)) or "None."]
    parts += ["## Method", method.strip()]
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str) -> str:
    """Wrap a paragraph or list item. No line begins with `>`, which would be a quotation in Markdown."""
    glued = re.sub(r" (?=[>≤%])|(?<=[>≤]) ", "\0", text)
    indent = "  " if text.startswith("- ") else ""
    lines = fill(glued, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")


def _missed(measured: Measured) -> Iterator[str]:
    """Yield one item for each explanation, with all budgets that it explains."""
    explained: dict[str, list[str]] = {}
    for one in verdicts(measured):
        if not one.met:
            where = f"{_title(_case(measured, one.budget.case))}, `{one.budget.contestant}`"
            explained.setdefault(one.budget.tried, []).append(f"{where}: {str(one).removeprefix('MISSED: ')}")
    for tried, budgets_ in explained.items():
        yield f"- {measured.corpus}: {'; '.join(budgets_)}. {tried}"


def write(folder: Path) -> None:
    """Write the plots into the directory, and the page beside it."""
    everything = load(folder)
    for question in QUESTIONS:
        _plot(question, everything, folder / f"{question.name}.svg")
    folder.with_suffix(".md").write_text(page(folder))


def _plot(question: Question, everything: list[Measured], path: Path) -> None:
    """Plot the median of each contestant as a bar, and the lowest and highest round as its error bar."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ripwrap", "font.size": 9})
    from matplotlib import pyplot

    columns = [(measured, _of(question, measured)) for measured in everything]
    columns = [(measured, cases) for measured, cases in columns if cases]
    heights = [
        max(len(measured.runs[cases[row].name]) for measured, cases in columns if row < len(cases))
        for row in range(max(len(cases) for _measured, cases in columns))
    ]
    figure, axes = pyplot.subplots(
        len(heights),
        len(columns),
        figsize=(5 * len(columns), 0.25 * sum(heights) + 0.7 * len(heights)),
        height_ratios=heights,
        squeeze=False,
    )
    for column, (measured, cases) in enumerate(columns):
        for row, axis in enumerate(axes[:, column]):
            if row >= len(cases):
                axis.set_axis_off()
                continue
            case = cases[row]
            names = list(reversed(measured.runs[case.name]))
            rounds = [measured.value(case.name, name, case.metric) for name in names]
            middle = [median(one) for one in rounds]
            ends = [[mid - min(one) for mid, one in zip(middle, rounds, strict=True)]]
            ends.append([max(one) - mid for mid, one in zip(middle, rounds, strict=True)])
            axis.barh(names, middle, xerr=ends, color=list(map(_color, names)), ecolor="#222222", capsize=2)
            unit = "" if case.metric == "instructions" else ", seconds"
            axis.set_title(f"{measured.corpus}: {_title(case).replace('`', '')}{unit}", fontsize=8)
            axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _color(contestant: str) -> str:
    """Return a dark color for ripwrap, gray for raw rg, and a light color for others."""
    if "ripwrap" in contestant:
        return "#4477aa"
    return "#999999" if contestant in SUBPROCESS else "#bbccee"


def main() -> None:
    """Write the plots and the page from the figures in a directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    write(parser.parse_args().folder)


if __name__ == "__main__":
    main()

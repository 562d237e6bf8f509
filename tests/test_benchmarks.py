"""Benchmarks: contestants that find the same items, budgets, and the generated page."""

import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import cases
import contestants
import decode
import peers
import report
from bench import Bench, _check
from cases import COLUMNS, ONE_RUN, SMALL, SUBPROCESS, Budget, Case, Corpus
from conftest import versions
from report import Measured
from support import rgs

pytestmark = pytest.mark.slow

SHOP = Corpus("shop", sparse="needle", dense="hay", very_dense="a", queries=("needle",))
BY_KIND = {case.kind: case for case in (*SHOP.cases(), SMALL)}  # cases of one kind run the same code
FEW = {"limit": 4, "times": 2}
FASTER = Budget("dense", "ripwrap", "cpu", 1.5, "CPU", "", to="raw rg")


@pytest.fixture
def bench() -> Bench:
    """A benchmark of one round, with the newest rg that is installed."""
    return Bench(
        dict.fromkeys((*SUBPROCESS, COLUMNS, ONE_RUN), sys.executable), str(rgs.provide(versions()[-1])), rounds=1
    )


def took(*figures: float) -> list[dict[str, float]]:
    return [{"wall": one, "first": one, "cpu": one, "child_cpu": 1.0, "memory": 1e6, "count": 7.0} for one in figures]


def measured(**dense: list[dict[str, float]]) -> Measured:
    runs = {"dense": {name.replace("_", " "): rounds for name, rounds in dense.items()}}
    return Measured("shop", {}, runs, {})


SECTIONS = [
    (one, case)
    for one in report.load(report.FOLDER)
    for case in (*(cases.LINUX if one.corpus == cases.LINUX.name else cases.STDLIB).cases(), *cases.ALONE)
    if case.name in one.runs
]


@pytest.fixture
def hay(tmp_path: Path) -> Path:
    """A folder with three files of different texts, each with one line of needle and two of hay."""
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(f"hay\nneedle\nhay {number}\n")
    return tmp_path


def test_figures_of_each_contestant_come_from_a_process_of_its_own(bench: Bench, hay: Path) -> None:
    runs = bench.run_case(replace(BY_KIND["files"], contestants=("raw rg", "ripwrap.sync", *cases.PEERS)), hay)
    assert runs.keys() == {"raw rg", "ripwrap.sync"}  # the peers have no Python here
    for (one,) in runs.values():
        assert one["count"] == 3
        assert 0 < one["first"] <= one["wall"]


@pytest.mark.parametrize("case", BY_KIND.values(), ids=BY_KIND)
def test_every_ripwrap_contestant_finds_what_rg_finds(
    case: Case, bench: Bench, hay: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that import ripwrap run in this process; the test above starts one as the benchmark does."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    given = {**case.given, **{name: few for name, few in FEW.items() if name in case.given}}
    command, ours_given = bench._command(case), {"cwd": str(hay), **given}
    raw, *ours = (*SUBPROCESS, COLUMNS, ONE_RUN)
    names = [name for name in ours if name in case.contestants]
    assert names
    expected = {"search": 6, "limit": 4, "grep": 6, "tiny": 6}.get(case.kind, 3)
    if raw in case.contestants:
        (one,) = bench.run_case(replace(case, given=given, contestants=(raw,)), hay)[raw]
        assert one["count"] == expected
    for name in names:
        contestant = contestants.CONTESTANTS[name]({"command": command, "kind": case.kind})
        one = contestants.measure(partial(getattr(contestant, case.kind), **ours_given))
        assert one["count"] == expected
        assert 0 < one["first"] <= one["wall"]


def test_case_with_unequal_results_is_not_measured(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="numbers of items differ"):
        bench.run_case(replace(SHOP.cases()[0], contestants=("raw rg",)), tmp_path)  # nothing is found
    fewer = {**took(1)[0], "count": 6.0}
    two = replace(SHOP.cases()[0], contestants=SUBPROCESS[:2])
    with pytest.raises(SystemExit, match="numbers of items differ"):
        _check(two, {"raw rg": took(1, 1), "ripwrap": [*took(1), fewer]})
    _check(two, {"raw rg": took(1, 1), "ripwrap": took(1, 1)})


def test_peers_that_cannot_be_imported_are_listed_with_the_error() -> None:
    """The environment of the tests has none of the other libraries."""
    errors = peers.import_errors(sys.executable)
    assert errors.keys() == set(cases.PEERS)
    assert errors["python-ripgrep"] == "ModuleNotFoundError: No module named 'python_ripgrep'"


def test_budget_compares_figures_of_the_same_round() -> None:
    rounds = measured(raw_rg=took(1, 10, 1), ripwrap=took(1.2, 12, 9))
    assert str(report.verdict(rounds, FASTER)) == "met: CPU 1.20x ≤ 1.5x"
    assert str(report.verdict(rounds, replace(FASTER, limit=1.1))) == "MISSED: CPU 1.20x > 1.1x"
    difference = replace(FASTER, minus=True, factor=1000, unit=" ms", limit=200)
    assert str(report.verdict(rounds, difference)) == "MISSED: CPU 2,000.0 ms > 200 ms"
    alone = replace(FASTER, to=None, metric="all_cpu", limit=3)
    assert str(report.verdict(rounds, alone)) == "MISSED: CPU 10.00x > 3x"


def test_budget_without_figures_has_no_verdict() -> None:
    assert report.verdict(measured(ripwrap=took(1)), FASTER) is None
    assert report.verdict(measured(raw_rg=took(1)), FASTER) is None
    both = measured(raw_rg=took(1), ripwrap=took(1))
    assert report.verdict(both, replace(FASTER, corpus="Linux")) is None
    assert report.verdict(both, FASTER)


def test_every_budget_refers_to_a_measured_case() -> None:
    measured = (*cases.STDLIB.cases(), *cases.LINUX.cases(), *cases.ALONE)
    by_name = {case.name: case for case in measured}
    for budget in cases.BUDGETS:
        assert budget.contestant in by_name[budget.case].contestants
        assert budget.to is None or budget.to in by_name[budget.to_case or budget.case].contestants
    assert by_name.keys() == cases.TITLES.keys()
    assert sorted(by_name) == sorted(name for question in cases.QUESTIONS for name in question.cases)
    assert len({(budget.name, budget.corpus) for budget in cases.BUDGETS}) == len(cases.BUDGETS)


def test_decoded_record_is_250_bytes_long() -> None:
    assert {len(decode.record(number)) for number in range(decode.PER_CHUNK)} == {250}
    chunk = b"".join(map(decode.record, range(decode.PER_CHUNK)))
    assert decode.ripwrap(iter([chunk, chunk])) == 2 * decode.PER_CHUNK


def test_every_budget_has_a_verdict_on_the_latest_figures() -> None:
    for one in report.load(report.FOLDER):
        judged = [verdict.budget for verdict in report.verdicts(one)]
        assert judged == [b for b in cases.BUDGETS if b.case in one.runs and b.corpus in (None, one.corpus)]
        assert all(budget.tried for budget in judged)
        rows = [
            line for line in report.budgets(one).splitlines() if line.endswith(("| met    |", "| MISSED |", "| met |"))
        ]
        assert len(rows) == len(judged)


def test_every_case_is_measured_and_in_a_section() -> None:
    assert {case.name for _, case in SECTIONS} == cases.TITLES.keys()
    text = report.page(report.FOLDER)
    for one, case in SECTIONS:
        rows = report.table(one, case).splitlines()
        assert len(rows) == 2 + len(one.runs[case.name])
        assert "\n".join(rows) in text


def test_figures_of_the_commit_before_are_kept(tmp_path: Path) -> None:
    def store(commit: str, figure: float) -> Measured:
        runs = {"tiny": {"raw rg": took(1), "ripwrap": took(figure), "ripwrap.sync": took(figure)}}
        report.store(tmp_path, cases.STDLIB.name, {"commit": commit, "date": "2026-01-01"}, runs)
        return report.load(tmp_path)[0]

    name = "tiny, ripwrap: wall relative to `subprocess.run`"
    assert store("a", 1.25).before == {}
    first = store("b", 1.5)
    assert (first.before["commit"], first.before["figures"][name]) == ("a", 1.25)
    again = store("b", 2)  # measured once more: still the figures of the commit before
    assert again.before == first.before
    row = next(line for line in report.budgets(again).splitlines() if "`ripwrap`" in line)
    assert [cell.strip() for cell in row.strip("|").split("|")][3:] == ["1.5x", "2.00x", "", "1.25x", "MISSED"]


def test_page_equals_the_report_of_the_figures() -> None:
    """`python benchmarks/report.py` writes the page."""
    assert report.page(report.FOLDER) == report.FOLDER.with_suffix(".md").read_text()

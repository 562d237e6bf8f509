"""The benchmark of ranked search: its measures, its verdicts and its methods."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path, PurePosixPath

import pytest

from retrieval.clock import Took
from retrieval.judged import Corpus, Judged, UnavailableError, _complete, _judged, docstrings
from retrieval.large import budgets, loaded, measure, section
from retrieval.measures import BUDGETS, CHARACTERS, TOKENS, measured, row, verdicts
from retrieval.methods import METHODS, Place
from retrieval.run import ask, table

ROOT = Path(__file__).parents[2]
NO_TIME = Took(0, 0)


def place(path: str, text: str = "") -> Place:
    return Place(path, text, ())


def asked(*answers: str) -> Judged:
    return Judged("q", answers, "")


def test_ndcg_is_1_for_the_best_order_and_less_for_a_later_rank() -> None:
    shown = [place("a"), place("a"), place("b"), place("c")]
    assert measured(shown, asked("a"), NO_TIME).ndcg == 1
    assert measured(shown, asked("a", "b"), NO_TIME).ndcg == pytest.approx(1)  # a file counts when it first comes
    assert measured(shown, asked("b"), NO_TIME).ndcg == pytest.approx(1 / math.log2(3))
    assert measured(shown, asked("b", "x"), NO_TIME).ndcg == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert measured([], asked("a"), NO_TIME).ndcg == 0


def test_hits_and_reciprocal_ranks_count_files() -> None:
    shown = [place(str(number)) for number in range(9)]
    assert (measured(shown, asked("4"), NO_TIME).hit, measured(shown, asked("4"), NO_TIME).rr) == (1, 1 / 5)
    assert (measured(shown, asked("5"), NO_TIME).hit, measured(shown, asked("5"), NO_TIME).rr) == (0, 1 / 6)
    assert measured(shown, asked("x"), NO_TIME).rr == 0


def test_recall_counts_only_the_first_tokens() -> None:
    half = "x" * (TOKENS * CHARACTERS // 2)
    assert measured([place("a", half), place("b", half), place("c", "x")], asked("b", "c"), NO_TIME).recall == 0.5
    assert measured([place("a", half + half + "x"), place("b")], asked("a", "b"), NO_TIME).recall == 0


def test_recall_of_lines_counts_the_lines_that_are_read() -> None:
    """Issue 20, item 6."""
    query = Judged("q", ("a", "b"), "", {"a": (3, 6)})
    shown = [Place("a", "x", range(5, 9)), Place("b", "x", range(3, 4)), Place("a", "x" * 8_000, range(1, 9))]
    assert measured(shown, query, NO_TIME).lines == 0.5
    assert measured(shown, asked("a"), NO_TIME).lines is None
    assert row([measured(shown, query, NO_TIME), measured(shown, asked("a"), NO_TIME)])["lines"] == 0.5
    assert math.isnan(row([measured(shown, asked("a"), NO_TIME)])["lines"])


def test_row_has_mean_measures_and_time_percentiles() -> None:
    results = [measured([place("a")], asked("a" if number else "b"), Took(number / 100, 0.5)) for number in range(20)]
    figures = row(results)
    assert figures["NDCG@10"] == figures["Hit@5"] == pytest.approx(0.95)
    assert (figures["p50"], figures["p95"], figures["CPU p50"]) == (0.09, 0.18, 0.5)


def test_verdicts_check_budgets_and_methods_below_rg() -> None:
    good = {"NDCG@10": 0.9, "recall": 0.97, "CPU p50": 0.007}
    bad = {"NDCG@10": 0.4, "recall": 0.9, "CPU p50": 0.3}
    rows = {"rg-words": {"all": {"NDCG@10": 0.5}}}
    for figures in (good, bad):
        ours = {
            name: {"cpython": figures, "docstrings": figures, "all": figures} for name in METHODS if name != "rg-words"
        }
        judged = verdicts({**rows, **ours})
        assert [kept for _, kept in judged] == [figures is good] * (len(BUDGETS) + len(ours))
    assert judged[3][0] == "index-free: CPU p50 on cpython ≤ 150 ms"
    recall = {said for said, _ in judged if "recall" in said}
    assert recall == {f"{name}: recall ≥ 0.96" for name in ours}


def test_annotated_files_are_relative_to_their_root_and_must_exist(tmp_path: Path) -> None:
    annotation = {
        "query": "q",
        "relevant": ["src/click/a.py", {"path": "src/click/b.py", "start_line": 1, "end_line": 9}],
        "secondary": ["src/click/a.py"],
        "category": "symbol",
    }
    query = _judged(annotation, PurePosixPath("src/click"))
    assert query == Judged("q", ("a.py", "b.py"), "symbol", {"b.py": (1, 9)})
    (tmp_path / "a.py").write_text("")
    with pytest.raises(UnavailableError, match=r"click has no b\.py"):
        _complete(Corpus("click", tmp_path, (query,)))


def test_benchmark_has_these_methods() -> None:
    assert METHODS.keys() == {"rg-words", "index-free", "index", "index+syntax", "hybrid"}


@pytest.mark.parametrize("method", ["rg-words", "index-free", "index"])  # the others: `index/test_hybrid.py`
def test_every_method_ranks_the_relevant_file_first(method: str, plant: Callable[..., Path]) -> None:
    root = plant({"jar.py": "class Jar:\n    cookie = 1\n", "b.py": "cookie = 1\n", "c.py": "x = 1\n"})
    _, (first, nothing) = ask(
        Corpus("shop", root, (Judged("cookie jar", ("jar.py",), ""), Judged("zebra", ("b.py",), ""))), method, rounds=1
    )
    assert (first.ndcg, first.hit, first.rr, first.recall) == (1, 1, 1, 1)
    assert (nothing.ndcg, nothing.recall) == (0, 0)
    assert "| shop | method | 1.000 |" in table({"method": {"shop": row([first])}})


@pytest.mark.slow
def test_benchmark_names_missing_packages_and_files(tmp_path: Path) -> None:
    (tmp_path / "repos.json").write_text(json.dumps([{"name": "none", "benchmark_root": "x"}]))
    (tmp_path / "cpython.tsv").write_text("parse arguments\tnone.py\n")
    run = [sys.executable, str(ROOT / "benchmarks/retrieval/run.py"), str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False, env={"XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 2
    assert "LEFT OUT: none: no package of it is known" in done.stderr
    assert "cpython has no none.py" in done.stderr


def test_docstrings_are_asked_of_modules_without_them(tmp_path: Path) -> None:
    """Issue 20, item 1: the second check is beside the benchmark, so that nothing is tuned to one."""
    library, kept = tmp_path / "library", tmp_path / "kept"
    modules = {
        "jar.py": '"""Keep all cookies\nof the shop.  Not biscuits.\n\nMore."""\n\nx = 1\n',
        "short.py": "'''Too short.'''\ny = 1\n",
        "shop/__init__.py": '"""A package is not asked for."""\n',
        "shop/none.py": "z = 1\n",
        "test/test_jar.py": '"""No answer, as a test of the jar."""\n',
        "broken.py": "def (\n",
    }
    for path, text in modules.items():
        (library / path).parent.mkdir(parents=True, exist_ok=True)
        (library / path).write_text(text)
    for _ in range(2):
        corpus = docstrings(library, kept)
        assert (corpus.root, corpus.queries) == (
            kept,
            (Judged("Keep all cookies of the shop.", ("jar.py",), "docstrings"),),
        )
    found = {file.relative_to(kept).as_posix(): file.read_text() for file in kept.rglob("*.py")}
    assert found == {
        "jar.py": "\nx = 1\n",
        "short.py": "y = 1\n",
        "shop/__init__.py": "",
        "shop/none.py": "z = 1\n",
        "broken.py": "def (\n",
    }


@pytest.mark.extra  # watches the tree
def test_large_tree_is_measured_and_judged(plant: Callable[..., Path]) -> None:
    """Issue 20, item 6."""
    root = plant({f"{number}.py": f"def name{number}():\n    return 'cookie'\n" for number in range(20)})
    figures = measure(root, queries=["name7", "cookie"], patterns=["name7", "name[78]"])
    assert (figures.files, figures.chunks) == (20, 20)
    assert figures.candidates[0] == 1
    assert loaded(json.dumps(asdict(figures))) == figures
    said = section(figures)
    assert said.count("met: ") + said.count("**MISSED**: ") == len(budgets(figures))
    assert "20 files, 20 chunks" in said

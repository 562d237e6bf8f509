"""The benchmark of ranked search: its measures, budgets and methods."""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path, PurePosixPath

import pytest

from retrieval.clock import Timing
from retrieval.large import budgets, measure, parse_figures, section
from retrieval.measures import BUDGETS, CHARS_PER_TOKEN, MAX_TOKENS, PEERS, row, score, verdicts
from retrieval.methods import METHODS, Result
from retrieval.packages import UnavailableError
from retrieval.queries import (
    Corpus,
    Query,
    _check_answers,
    _follow_definitions,
    _parse_query,
    docstrings,
)
from retrieval.run import main, measure_method, table

ROOT = Path(__file__).parents[2]
NO_TIME = Timing(0, 0)


def result(path: str, text: str = "") -> Result:
    return Result(path, text, ())


def query(*answers: str) -> Query:
    return Query("q", answers, "")


def test_ndcg_is_1_for_the_best_order_and_less_for_a_later_rank() -> None:
    shown = [result("a"), result("a"), result("b"), result("c")]
    assert score(shown, query("a"), NO_TIME).ndcg == 1
    assert score(shown, query("a", "b"), NO_TIME).ndcg == pytest.approx(1)  # b ranks second: a file counts once
    assert score(shown, query("b"), NO_TIME).ndcg == pytest.approx(1 / math.log2(3))
    assert score(shown, query("b", "x"), NO_TIME).ndcg == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert score([], query("a"), NO_TIME).ndcg == 0


def test_hit_and_reciprocal_rank_depend_on_ranks_of_files() -> None:
    shown = [result(str(number)) for number in range(9)]
    assert (score(shown, query("4"), NO_TIME).hit, score(shown, query("4"), NO_TIME).rr) == (1, 1 / 5)
    assert (score(shown, query("5"), NO_TIME).hit, score(shown, query("5"), NO_TIME).rr) == (0, 1 / 6)
    assert score(shown, query("x"), NO_TIME).rr == 0


def test_recall_considers_only_the_first_2000_tokens() -> None:
    half = "x" * (MAX_TOKENS * CHARS_PER_TOKEN // 2)
    assert score([result("a", half), result("b", half), result("c", "x")], query("b", "c"), NO_TIME).recall == 0.5
    assert score([result("a", half + half + "x"), result("b")], query("a", "b"), NO_TIME).recall == 0


def test_recall_of_lines_considers_only_the_first_2000_tokens() -> None:
    with_lines = Query("q", ("a", "b"), "", {"a": (3, 6)})
    shown = [Result("a", "x", range(5, 9)), Result("b", "x", range(3, 4)), Result("a", "x" * 8_000, range(1, 9))]
    assert score(shown, with_lines, NO_TIME).lines == 0.5
    assert score(shown, query("a"), NO_TIME).lines is None
    assert row([score(shown, with_lines, NO_TIME), score(shown, query("a"), NO_TIME)])["lines"] == 0.5
    assert math.isnan(row([score(shown, query("a"), NO_TIME)])["lines"])


def test_table_row_has_mean_scores_and_percentiles_of_times() -> None:
    scores = [score([result("a")], query("a" if number else "b"), Timing(number / 100, 0.5)) for number in range(20)]
    figures = row(scores)
    assert figures["NDCG@10"] == figures["Hit@5"] == pytest.approx(0.95)
    assert (figures["p50"], figures["p95"], figures["CPU p50"]) == (0.09, 0.18, 0.5)


def test_verdicts_report_missed_budgets_and_methods_worse_than_rg() -> None:
    good = {"NDCG@10": 0.9, "recall": 0.97, "CPU p50": 0.007}
    bad = {"NDCG@10": 0.4, "recall": 0.9, "CPU p50": 0.3}
    rows = {"rg-words": {"all": {"NDCG@10": 0.5}}}
    for figures in (good, bad):
        ours = {
            name: {"cpython": figures, "docstrings": figures, "all": figures} for name in METHODS if name not in PEERS
        }
        judged = verdicts({**rows, **ours, "semble": ours["index"]})
        assert [met for _, met in judged] == [figures is good] * (len(BUDGETS) + len(ours))
    assert judged[3][0] == "index-free: CPU p50 on cpython ≤ 150 ms"
    recall = {text for text, _ in judged if "recall" in text}
    assert recall == {f"{name}: recall ≥ 0.96" for name in ours}


def test_paths_of_annotated_files_are_relative_to_the_corpus_and_must_exist(tmp_path: Path) -> None:
    annotation = {
        "query": "q",
        "relevant": ["src/click/a.py", {"path": "src/click/b.py", "start_line": 1, "end_line": 9}],
        "secondary": ["src/click/a.py"],
        "category": "symbol",
    }
    parsed = _parse_query(annotation, PurePosixPath("src/click"))
    assert parsed == Query("q", ("a.py", "b.py"), "symbol", {"b.py": (1, 9)})
    (tmp_path / "a.py").write_text("")
    with pytest.raises(UnavailableError, match=r"click has no b\.py"):
        _check_answers(Corpus("click", tmp_path, (parsed,)))


def test_annotated_lines_of_a_name_follow_its_definition(plant: Callable[..., Path]) -> None:
    """The packages are newer than the revisions whose lines are annotated."""
    shop = plant({"shop/till.py": "import shop.jar\n\n\nclass Till:\n    def close(self):\n        return 1\n"})
    old = Query("Till", ("shop/till.py",), "symbol", {"shop/till.py": (1, 2)})
    long = Query("Till", ("shop/till.py",), "symbol", {"shop/till.py": (1, 90)})
    words = Query("close the till", ("shop/till.py",), "semantic", {"shop/till.py": (1, 2)})
    moved = _follow_definitions(Corpus("shop", shop, (old, long, words))).queries
    assert [dict(query.lines) for query in moved] == [{"shop/till.py": span} for span in [(4, 5), (4, 6), (1, 2)]]


def test_benchmark_has_these_methods() -> None:
    assert METHODS.keys() == {"rg-words", "index-free", "index", "index+syntax", "hybrid", "semble"}


@pytest.mark.parametrize("method", ["rg-words", "index-free", "index"])  # the others: `index/test_hybrid.py`
def test_every_method_ranks_the_relevant_file_first(method: str, plant: Callable[..., Path]) -> None:
    root = plant({"jar.py": "class Jar:\n    cookie = 1\n", "b.py": "cookie = 1\n", "c.py": "x = 1\n"})
    _, (found, not_found) = measure_method(
        Corpus("shop", root, (Query("cookie jar", ("jar.py",), ""), Query("zebra", ("b.py",), ""))), method, rounds=1
    )
    assert (found.ndcg, found.hit, found.rr, found.recall) == (1, 1, 1, 1)
    assert (not_found.ndcg, not_found.recall) == (0, 0)
    assert "| shop | method | 1.000 |" in table({"method": {"shop": row([found])}})


@pytest.mark.slow
def test_benchmark_reports_missing_packages_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "repos.json").write_text(json.dumps([{"name": "none", "benchmark_root": "x"}]))
    (tmp_path / "cpython.tsv").write_text("parse arguments\tnone.py\n")
    monkeypatch.setattr("retrieval.queries.CACHE", tmp_path / "cache")
    monkeypatch.setattr(sys, "argv", ["run.py", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert "SKIPPED: none: its package is not known" in said
    assert "cpython has no none.py" in said


def test_docstring_queries_search_modules_without_docstrings(tmp_path: Path) -> None:
    """Ranking is not tuned to one set of queries only."""
    library, copy = tmp_path / "library", tmp_path / "copy"
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
        corpus = docstrings(library, copy)
        assert (corpus.root, corpus.queries) == (
            copy,
            (Query("Keep all cookies of the shop.", ("jar.py",), "docstrings"),),
        )
    found = {file.relative_to(copy).as_posix(): file.read_text() for file in copy.rglob("*.py")}
    assert found == {
        "jar.py": "\nx = 1\n",
        "short.py": "y = 1\n",
        "shop/__init__.py": "",
        "shop/none.py": "z = 1\n",
        "broken.py": "def (\n",
    }


@pytest.mark.posix
@pytest.mark.extra  # needs watchfiles
def test_benchmark_of_a_large_tree_reports_figures_and_budgets(plant: Callable[..., Path]) -> None:
    pytest.importorskip("watchfiles")
    root = plant({f"{number}.py": f"def name{number}():\n    return 'cookie'\n" for number in range(20)})
    figures = measure(root, queries=["name7", "cookie"], patterns=["name7", "name[78]"])
    assert (figures.files, figures.chunks) == (20, 20)
    assert figures.candidates[0] == 1
    assert parse_figures(json.dumps(asdict(figures))) == figures
    text = section(figures)
    assert text.count("met: ") + text.count("**MISSED**: ") == len(budgets(figures))
    assert "20 files, 20 chunks" in text

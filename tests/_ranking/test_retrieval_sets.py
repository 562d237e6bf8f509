"""The sets of queries of the benchmark of ranked search that are made from packages and from a repository."""

import ast
import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from retrieval.clock import Timing
from retrieval.history import commits
from retrieval.issues.broken import break_node, ways_to_break
from retrieval.issues.corpus import ELSEWHERE, IN_TRACEBACK, ISSUES, RECIPES, TESTS, failures_of, find_test, run_tests
from retrieval.issues.text import text_of
from retrieval.measures import row, score
from retrieval.methods import Result
from retrieval.needles import evenly, needles_of
from retrieval.packages import SDISTS, UnavailableError
from retrieval.queries import Corpus, Query
from retrieval.sets import report, rows_of, table

NO_TIME = Timing(0, 0)

SHOP = '''\
def put(jar, cookie):
    """Put a cookie into the jar, at the end.

    More.
    """
    jar.append(cookie)
    if len(jar) > 9:
        jar.pop()
    return jar


class Till:
    def close(self, day):
        """Count :class:`~shop.Coin` objects of the ``day`` for the owner."""
        coins = day.coins
        total = sum(coins)
        return total

    def short(self):
        """A sentence that describes a function of one line."""
        return 1

    def one(self): """Docstring in the same line as the function, kept as it is."""; return 1


def again(jar):
    """Empty the jar before the shop opens again."""
    a = 1
    b = 2
    return a + b


def twice(jar):
    """Empty the jar before the shop opens again."""
    a = 1
    b = 2
    return a + b
'''


def test_needles_are_descriptions_of_functions_whose_docstrings_are_removed(plant: Callable[..., Path]) -> None:
    sources = plant({"shop/a.py": SHOP, "shop/tests/test_a.py": SHOP})
    copy = sources.parent / "copy"
    for _ in range(2):
        corpus = needles_of("shop", sources / "shop", copy)
        assert corpus.queries == (
            Query("Put a cookie into the jar, at the end.", ("shop/a.py",), "needles", {"shop/a.py": (1, 5)}),
            Query(
                "Count shop.Coin objects of the day for the owner.", ("shop/a.py",), "needles", {"shop/a.py": (9, 12)}
            ),
        )
    text = (copy / "shop/a.py").read_text()
    assert not (copy / "shop/tests").exists()
    assert text.count('"""') == 2
    assert "Docstring in the same line" in text
    assert text.split("\n")[8] == "    def close(self, day):"
    ast.parse(text)


def test_queries_are_chosen_at_even_distances() -> None:
    queries = [Query(str(number), ("a",), "") for number in range(10)]
    assert [query.text for query in evenly(queries, 4)] == ["0", "2", "5", "7"]
    assert evenly(queries, 99) == tuple(queries)
    assert evenly([], 4) == ()


def test_place_of_a_needle_is_the_first_result_with_the_line_of_its_definition() -> None:
    needle = Query("q", ("a",), "", {"a": (5, 9)})
    results = [Result("b", "", range(1, 9)), Result("a", "", range(6, 9)), Result("a", "", range(1, 6))]
    assert score(results, needle, NO_TIME).place == 3
    assert score(results[:2], needle, NO_TIME).place == 0
    assert score(results, Query("q", ("a",), ""), NO_TIME).place is None
    figures = row([score(results, needle, NO_TIME), score(results[:2], needle, NO_TIME)])
    assert (figures["line@5"], figures["line@10"]) == (0.5, 0.5)
    assert math.isnan(row([score(results, Query("q", ("a",), ""), NO_TIME)])["line@5"])


def test_hits_count_files_up_to_a_rank() -> None:
    shown = [Result(str(number), "", ()) for number in range(10)]
    figures = row([score(shown, Query("q", (str(answer),), ""), NO_TIME) for answer in (0, 4, 9, 99)])
    assert (figures["Hit@1"], figures["Hit@5"], figures["Hit@10"]) == (0.25, 0.5, 0.75)


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True)


def test_commits_ask_an_older_tree_for_the_files_that_they_changed(
    plant: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = plant({"src/jar.py": "a = 1\n", "src/till.py": "b = 1\n", "tests/test_jar.py": "c = 1\n"})
    monkeypatch.setattr("retrieval.history.CACHE", tmp_path / "cache")
    git(root, "init", "-q")
    for subject, files in {
        "begin": (),
        "Keep all cookies of the jar (#12)": ("src/jar.py", "tests/test_jar.py"),
        "Too short": ("src/jar.py",),
        "Only tests of the jar changed": ("tests/test_jar.py",),
        "Add a file that is new": ("src/new.py",),
        "Release of a new version today": ("src/jar.py",),
    }.items():
        for file in files:
            with (root / file).open("a") as text:
                text.write("# more\n")
        git(root, "add", ".")
        git(root, "commit", "-q", "--allow-empty", "-m", subject)
    for _ in range(2):
        corpus = commits(root, "shop", "HEAD~5", "HEAD")
        assert corpus.queries == (Query("Keep all cookies of the jar", ("src/jar.py",), "commits"),)
        assert (corpus.root / "src/jar.py").read_text() == "a = 1\n"
    with pytest.raises(UnavailableError, match="cannot read the history"):
        commits(root, "shop", "0000001", "HEAD")


def test_each_way_to_break_a_function_changes_its_code() -> None:
    source = "def f(a, b):\n    if a and b:\n        a.c = g(a, b)\n    h(a < b)\n    return a\n"
    ways = list(ways_to_break(ast.parse(source)))
    broken = set()
    for way in ways:
        tree = ast.parse(source)
        break_node(tree, way)
        broken.add(ast.unparse(tree))
    assert broken == {
        source.strip().replace("a and b", "not (a and b)"),
        source.strip().replace("a and b", "a or b"),
        source.strip().replace("a.c = g", "_ = g"),
        source.strip().replace("g(a, b)", "g(b, a)"),
        source.strip().replace("h(a < b)", "None"),
        source.strip().replace("a < b", "a >= b"),
        source.strip().replace("return a", "return None"),
    }


JAR = """\
class Jar:
    def __init__(self):
        self.cookies = []

    def put(self, cookie):
        count = len(self.cookies)
        if count > 9:
            raise OverflowError("the jar is full")
        self.cookies.append(cookie)
        return count


def fill(jar, number):
    for one in range(number):
        jar.put(one)
    return jar
"""
TEST_JAR = '''\
from jar import Jar, fill


class TestJar:
    def test_fill_a_large_jar(self):
        """A jar has room for ten."""
        jar = Jar()
        fill(jar, 3)
        assert len(jar.cookies) == 3, jar.cookies

    def test_other(self):
        assert Jar().cookies == []
'''


@pytest.mark.posix
@pytest.mark.slow
def test_issues_are_texts_about_tests_that_fail_because_a_function_is_broken(
    plant: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = plant({"shop/jar.py": JAR, "shop/tests/test_jar.py": TEST_JAR}) / "shop"
    monkeypatch.setitem(TESTS, "shop", ("tests", "."))
    monkeypatch.setitem(SDISTS, "shop", "shop==1.5")
    test = "tests/test_jar.py::TestJar::test_fill_a_large_jar"
    function = ast.parse(JAR).body[0].body[1]  # type: ignore[attr-defined]
    negated, dropped = (
        next(n for n in ways_to_break(function) if isinstance(list(ast.walk(function))[n], kind))
        for kind in (ast.If, ast.Expr)
    )
    recipes = [
        {"path": "jar.py", "name": "Jar.put", "line": 5, "node": node, "test": test} for node in (negated, dropped)
    ]
    names = root.parent / "recipes.json"
    names.write_text(json.dumps([*recipes, {**recipes[0], "name": "Jar.none"}]))
    texts = {}
    for _ in range(2):
        found = run_tests("shop", root, ["tests"], {"RIPWRAP_RECIPES": str(names)})
        assert "frames" not in found[2]
        failures = [failure for _, failure in failures_of("shop", root, found)]
        texts[tuple(map(text_of, failures))] = [failure.in_traceback for failure in failures]
    ((shown, in_traceback),) = texts.items()
    assert in_traceback == [True, False][: len(in_traceback)]
    assert "OverflowError: the jar is full" in shown[0]
    assert 'site-packages/jar.py", line 8, in put' in shown[0]
    assert "from jar import Jar, fill" in shown[0]
    assert str(root) not in "".join(shown)


def test_recipes_make_a_hundred_issues_of_known_packages() -> None:
    recipes = json.loads(RECIPES.read_text())
    assert recipes.keys() <= TESTS.keys() <= SDISTS.keys()
    assert len(recipes) >= 8
    assert sum(map(len, recipes.values())) >= 100


def test_a_test_is_found_by_the_names_of_its_classes() -> None:
    module = ast.parse(TEST_JAR)
    found = find_test(module, ["TestJar", "test_other"])
    assert found is not None
    assert found.name == "test_other"
    assert find_test(module, ["TestJar", "test_inherited"]) is None
    assert find_test(module, ["TestJar"]) is None


def test_table_of_sets_has_a_row_for_each_kind_of_issue() -> None:
    queries = tuple(Query("q", ("a",), category, {"a": (1, 2)}) for category in (IN_TRACEBACK, ELSEWHERE))
    corpus = Corpus("issues/shop", Path(), queries, ISSUES)
    scores = [score([Result("a", "", range(1, 3))], queries[0], NO_TIME), score([], queries[1], NO_TIME)]
    rows: dict[str, list[object]] = {}
    for name, one in rows_of(corpus, scores):
        rows.setdefault(name, []).append(one)
    text = table({"index": rows})  # type: ignore[dict-item]
    assert "| issues | 2 | index | 0.500 | 0.500 | 0.500 | 0.500 | 0.500 | 0.500 | 0 ms |" in text
    assert "| issues, file in the traceback | 1 | index | 1.000 |" in text
    assert "| issues, file not in the traceback | 1 | index | 0.000 |" in text
    assert "0.250 in 2,000 tokens" in " ".join(report({}, {2_000: [0.5, 0.0], 8_000: [1.0]}).split())

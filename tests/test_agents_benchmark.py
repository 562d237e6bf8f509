"""The benchmark of the tools for agents: questions, rules, counting and formats."""

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from retrieval.agents import formats
from retrieval.agents.answers import OURS, answers_in, entries_of, lines_of, rows_of, tokens_by_tool
from retrieval.agents.formats import HOME, Entry, Row
from retrieval.agents.measures import Lines, count_lines, mean, tokens_of
from retrieval.agents.policies import (
    POLICIES,
    ShownLine,
    grep_and_read,
    order_hits,
    patterns_of,
    shown_lines,
    words_of,
)
from retrieval.agents.questions import (
    ANNOTATIONS,
    SOURCES,
    Folder,
    Question,
    folders,
    repository_questions,
    with_lines,
)
from retrieval.agents.run import coverage_table, measure_folder, report, token_table
from retrieval.packages import UnavailableError
from retrieval.queries import Corpus, Query, find_definition
from ripwrap.sync import Workspace
from support.paths import native

ROOT = Path(__file__).parents[1]
SHOP = {
    "shop/till.py": "import shop.jar\n\n\nclass Till:\n    def close(self):\n        return 'cookie jar'\n",
    "shop/jar.py": "def open_jar(jar):\n    # the cookie\n    return jar\n",
    "a.py": "".join(f"cookie = {number}\n" for number in range(120)),
}
JAR, TILL = native("shop/jar.py"), native("shop/till.py")
ROWS = [
    Row("a/b.py", 9, "    before", 0),
    Row("a/b.py", 10, "    x = 1", 5),
    Row("a/b.py", 20, "x", 1),
    Row("c.py", 3, "y", 1),
]
MATCHES = [row for row in ROWS if row.is_match]


@pytest.fixture
def shop(plant: Callable[..., Path]) -> Path:
    return plant(SHOP)


@pytest.mark.slow
def test_every_question_about_ripwrap_has_its_definitions() -> None:
    """Python's own parser finds the same lines as the outline."""
    questions = repository_questions(ANNOTATIONS, SOURCES)
    assert len(questions) >= 20
    assert len({one.text for one in questions}) == len(questions)
    for question, annotation in zip(questions, json.loads(ANNOTATIONS.read_text()), strict=True):
        parsed = {
            (path, number)
            for path, names in annotation["answers"].items()
            for name in names
            for number in lines_by_parser(SOURCES / path, name)
        }
        assert question.lines == parsed, question.text


def lines_by_parser(file: Path, name: str) -> range:
    """Return the lines of a definition, with decorators."""
    nodes: list[ast.stmt] = ast.parse(file.read_text()).body
    for part in name.split("."):
        (node,) = (
            node
            for node in nodes
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == part
        )
        nodes = node.body
    assert node.end_lineno is not None
    return range(min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.end_lineno + 1)


def test_a_definition_that_is_gone_or_ambiguous_is_an_error(shop: Path) -> None:
    (shop / "two.py").write_text("def pay():\n    pass\n\n\ndef pay():\n    pass\n")
    assert find_definition(shop / "shop/till.py", "Till.close") == (5, (5, 6))
    with pytest.raises(UnavailableError, match=r"till\.py has 0 definitions of Till\.open, expected 1"):
        find_definition(shop / "shop/till.py", "Till.open")
    with pytest.raises(UnavailableError, match=r"two\.py has 2 definitions of pay"):
        find_definition(shop / "two.py", "pay")
    annotations = shop / "questions.json"
    annotations.write_text(json.dumps([{"question": "q", "answers": {"shop/jar.py": ["gone"]}}]))
    with pytest.raises(UnavailableError, match="0 definitions of gone"):
        repository_questions(annotations, shop)


def test_only_queries_with_annotated_lines_are_questions(shop: Path) -> None:
    queries = (Query("q", ("a.py",), "", {"a.py": (2, 3)}), Query("r", ("a.py",), ""))
    assert with_lines(Corpus("shop", shop, queries)) == (Question("q", frozenset({("a.py", 2), ("a.py", 3)})),)


def test_folders_begin_with_ripwrap_itself() -> None:
    (own,) = folders(None)
    assert (own.name, own.root) == ("ripwrap", ROOT / "src")


def test_words_of_a_question_are_without_stop_words() -> None:
    assert words_of("how is the Jar of app.render opened?") == ("Jar", "app.render", "opened")
    assert words_of("how is it") == ("how", "is", "it")


def test_patterns_ask_for_two_words_first() -> None:
    assert patterns_of("open the app.render jar")[1] == r"open|app\.render|jar"
    assert patterns_of("cookie jar") == ("cookie.*jar|jar.*cookie", "cookie|jar")
    assert patterns_of("CookieJar") == ("CookieJar",)


def test_hits_with_most_words_and_definitions_come_first() -> None:
    texts = ["import jar", "cookie jar", "def jar():", "def cookie_jar():", "exports.jar = function () {"]
    ordered = order_hits([ShownLine("a", 1, text) for text in texts], ("cookie", "jar"))
    assert [hit.text for hit in ordered] == [texts[3], texts[1], texts[2], texts[4], texts[0]]


def test_shown_lines_are_found_in_answers_of_all_tools(shop: Path) -> None:
    workspace = Workspace(shop)
    read = workspace.read_file(JAR, 2, 3)
    assert [*shown_lines(read)] == [
        ShownLine(JAR, 2, "    # the cookie"),
        ShownLine(JAR, 3, "    return jar"),
    ]
    found = [*shown_lines(workspace.grep_content("cookie", "shop", context_lines=1))]
    assert [(line.path, line.number, line.is_match) for line in found] == [
        (JAR, 1, False),
        (JAR, 2, True),
        (JAR, 3, False),
        (TILL, 5, False),
        (TILL, 6, True),
    ]
    ranked = {(line.path, line.number) for line in shown_lines(workspace.codebase_search("open the jar"))}
    assert {(JAR, number) for number in (1, 2, 3)} <= ranked
    grown = {
        (line.path, line.number) for line in shown_lines(workspace.grep_content("cookie jar", expand="definition"))
    }
    assert grown == {(TILL, 5), (TILL, 6)}


def test_agent_reads_around_matches_and_skips_lines_that_it_has_read(shop: Path) -> None:
    answers = [*grep_and_read(Workspace(shop), "cookies in the cookie jar")]
    read = [answer for answer in answers if "\n\n(Lines " in answer or "\n\n(All " in answer]
    lines = [[(line.path, line.number) for line in shown_lines(answer)] for answer in read]
    assert [(one[0], one[-1][1]) for one in lines] == [
        ((TILL, 1), 6),
        ((JAR, 1), 3),
        (("a.py", 1), 81),
        (("a.py", 82), 120),
    ]
    assert answers.index(read[0]) == 1  # the only line with two words comes first


def answers(*texts: str) -> Iterator[str]:
    yield from texts
    raise AssertionError("the budget has ended before")


def test_lines_count_only_within_the_budget() -> None:
    question = Question("q", frozenset({("a", 1), ("a", 2), ("a", 3), ("b", 3)}))
    text = "File: a\n  1: x\n  2: yyyy"  # 24 characters
    assert count_lines([text], question, 100) == Lines(0.5, 6, 1)
    assert count_lines(answers(text), question, 6) == Lines(0.5, 6, 1)
    assert count_lines(answers(text), question, 5) == Lines(0.25, 5, 1)
    assert count_lines([text, text, "File: b\n  3: z"], question, 100).share == 0.75
    assert count_lines([], question, 100) == Lines(0, 0, 0)
    assert mean([Lines(0.5, 10, 1), Lines(1, 20, 4)]) == Lines(0.75, 15, 2.5)
    assert tokens_of("12345678") == 2


@pytest.mark.slow
def test_every_policy_finds_the_lines_of_a_small_folder(shop: Path) -> None:
    question = Question("cookie jar", frozenset({("shop/till.py", 6)}))
    folder = Folder("shop", shop, (question, Question("zebra", frozenset({("a.py", 1)}))))
    figures = measure_folder(folder)
    assert figures.keys() == POLICIES.keys()
    for budgets in figures.values():
        assert [[one.share for one in of_budget] for of_budget in budgets.values()] == [[1, 0], [1, 0]]
    table = coverage_table({"shop": figures})
    assert table.count("| 50.0% |") == 4 * len(POLICIES)  # two budgets, for the folder and for all
    tokens = tokens_by_tool(answers_in(folder))
    assert {next(iter(by_format)) for by_format in tokens.values()} == {OURS}
    assert all(min(counts) > 0 for by_format in tokens.values() for counts in by_format.values())
    text = report([folder], {"shop": figures}, token_table(tokens))
    assert "shop (2 questions, 2 lines)" in text
    assert "| `tree` | opencode (older) |" in text


def test_formats_of_other_tools() -> None:
    assert formats.rg_lines("x", MATCHES) == "a/b.py:10:    x = 1\na/b.py:20:x\nc.py:3:y"
    assert formats.rg_lines("x", ROWS) == "a/b.py-9-    before\na/b.py:10:    x = 1\n--\na/b.py:20:x\n--\nc.py:3:y"
    assert formats.opencode("x", MATCHES) == (
        f"Found 3 matches\n{HOME}/a/b.py:\n  Line 10:     x = 1\n  Line 20: x\n\n{HOME}/c.py:\n  Line 3: y"
    )
    assert formats.gemini_cli("x", ROWS) == (
        'Found 3 matches for pattern "x" in path ".":\n---\nFile: a/b.py\nL9-     before\nL10:     x = 1\nL20: x\n'
        "---\nFile: c.py\nL3: y\n---"
    )
    assert formats.crush("x", MATCHES) == (
        f"Found 3 matches\n{HOME}/a/b.py:\n  Line 10, Char 5: x = 1\n  Line 20, Char 1: x\n\n"
        f"{HOME}/c.py:\n  Line 3, Char 1: y"
    )
    assert formats.langchain("x", MATCHES) == "/a/b.py:10:    x = 1\n/a/b.py:20:x\n/c.py:3:y"
    assert formats.deepagents("x", ROWS) == (
        "/a/b.py:\n  9-     before\n  10:     x = 1\n  --\n  20: x\n/c.py:\n  3: y"
    )
    assert formats.deepagents("x", MATCHES) == "/a/b.py:\n  10:     x = 1\n  20: x\n/c.py:\n  3: y"
    assert formats.roo("x", ROWS) == (
        "Found 3 results.\n\n# a/b.py\n  9 |     before\n 10 |     x = 1\n----\n 20 | x\n----\n\n# c.py\n  3 | y\n----"
    )
    assert formats.fs_mcp("x", MATCHES[2:]) == "File: c.py, Line: 3 (section end hint: EOF)\n---\ny\n---"


def test_formats_of_paths_and_counts() -> None:
    paths = ["a/b.py", "c.py"]
    assert formats.codex_files("x", paths) == f"{HOME}/a/b.py\n{HOME}/c.py"
    assert formats.langchain_files("x", paths) == "/a/b.py\n/c.py"
    assert formats.gemini_files("x", paths) == ('Found 2 files with matches for pattern "x" in path ".":\na/b.py\nc.py')
    assert formats.openhands_files("x", paths) == (
        f"Found 2 file(s) containing pattern 'x' in {HOME}:\n{HOME}/a/b.py\n{HOME}/c.py"
    )
    assert formats.langchain_counts("x", {"a/b.py": 2, "c.py": 1}) == "/a/b.py:2\n/c.py:1"


def test_formats_of_listings_and_files() -> None:
    entries = [Entry("a", True), Entry("a/b.py", False), Entry("c.py", False)]
    assert formats.crush_listing(entries) == f"- {HOME}/\n  - a/\n    - b.py\n  - c.py"
    assert formats.opencode_listing(entries) == f"{HOME}/\n  a/\n    b.py\n  c.py"
    assert formats.opencode_tree(entries) == "a/\n\tb.py\nc.py"
    assert json.loads(formats.mcp_listing(entries)) == [
        {"name": "a", "type": "directory", "children": [{"name": "b.py", "type": "file"}]},
        {"name": "c.py", "type": "file"},
    ]
    lines = [Row("a", 9, "x", 1), Row("a", 10, "  y", 1)]
    assert formats.codex_read(lines) == "L9: x\nL10:   y"
    assert formats.crush_read(lines) == "     9|x\n    10|  y"
    assert formats.opencode_read(lines) == "<file>\n00009| x\n00010|   y\n</file>"
    assert formats.cat_read(lines) == "     9\tx\n    10\t  y"


def test_every_format_has_a_source() -> None:
    assert set(formats.names()) == formats.SOURCES.keys()
    assert set(formats.MATCHES) >= formats.SHOW_CONTEXT


def test_other_formats_get_the_lines_that_an_answer_has(shop: Path) -> None:
    workspace = Workspace(shop)
    rows = rows_of(workspace.grep_content_result("COOKIE", "shop", context_lines=1, case_insensitive=True))
    assert rows == [
        Row(JAR, 1, "def open_jar(jar):", 0),
        Row(JAR, 2, "    # the cookie", 11),
        Row(JAR, 3, "    return jar", 0),
        Row(TILL, 5, "    def close(self):", 0),
        Row(TILL, 6, "        return 'cookie jar'", 17),
    ]
    assert entries_of(workspace.tree_result("shop")) == [Entry(JAR, False), Entry(TILL, False)]
    assert [entry.path for entry in entries_of(workspace.ls_result())][:2] == ["shop", JAR]
    assert lines_of(workspace.read_file_result(JAR, 2, 2)) == [Row(JAR, 2, "    # the cookie", 1)]

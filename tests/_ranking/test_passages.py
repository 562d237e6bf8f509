"""Tests for passages: the definitions of a file that answer a query, in place of windows of 800 characters."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ripwrap import sync
from ripwrap._code.treesitter.merge import MAX_CHUNK_CHARS, Chunk
from ripwrap._operations.rank import RankingDeadline
from ripwrap._ranking import passages as _passages
from ripwrap._ranking.bm25 import _find_stems, count_stems
from ripwrap._ranking.document import SourceText
from ripwrap._ranking.passages import BROAD, DEEP, MAX_TEXT_CHARS, Choice, Depth, _units, best_passages, show_passages
from ripwrap._ranking.scoring import ChunkCandidate, RankedCandidate, TextContent
from ripwrap._ranking.word_query import parse_query, stems_of
from ripwrap.binary import RgBinary
from ripwrap.index import search as _search

Plant = Callable[..., Path]

BODY = "".join(f"        step_{number} = prepare(rows, {number})\n" for number in range(30))
PYTHON = f"""\
import os


class Orders:
    limit = 10

    def load(self):
{BODY}
    # The invoice of a customer.
    @cached
    def send(self):
        return self.invoice, self.customer


class Carts:
    def send(self):
        return 1


def total(prices):
    return sum(prices)
"""
CODE = {
    "python": (PYTHON, "sum of the prices in total", "def total(prices):\n    return sum(prices)\n"),
    "go": (
        "package shop\n\n"
        + "// filler\n" * 100
        + "\nfunc (o *Order) Load() {\n\treturn\n}\n\nfunc Total(x int) int {\n\treturn x\n}\n",
        "total",
        "func Total(x int) int {\n\treturn x\n}\n",
    ),
    "javascript": (
        "// filler\n" * 100
        + "\nconst load = () => {\n  return 1;\n};\n\nexport function total(prices) {\n  return 2;\n}\n",
        "total of prices",
        "export function total(prices) {\n  return 2;\n}\n",
    ),
    "c": (
        "/* filler */\n" * 80 + "\nstatic int load(void) {\n    return 1;\n}\n\nint total(int a) {\n    return a;\n}\n",
        "total",
        "int total(int a) {\n    return a;\n}\n",
    ),
}


SUFFIXES = {"python": "py", "go": "go", "javascript": "js", "c": "c"}


def source(text: str, path: str = "a.py") -> SourceText:
    return SourceText(path, text, exact=True)


def shown(query: str, text: str, path: str = "a.py") -> list[str]:
    parsed = parse_query(query)
    best = best_passages(parsed, text, source(text, path).code)
    return [text[chunk.start : chunk.end] for chunk, *_ in best]


@pytest.mark.parametrize("language", CODE)
def test_best_passage_is_the_definition(language: str) -> None:
    text, query, passage = CODE[language]
    assert shown(query, text, f"a.{SUFFIXES[language]}")[0] == passage


@pytest.mark.parametrize("word", ["FTS5", "BM25", "PCRE2", "APIs", "getURLs", "HTTPServer2", "sha256", "naïveFTS5"])
def test_definition_has_a_word_in_the_form_in_which_a_query_has_it(word: str) -> None:
    """`FTS5` was counted as `fts` and `5`, but searched as `fts5`."""
    text = f"def send():\n    return 1\n\n\ndef load():\n    return {word}\n"
    query = parse_query(f"how are rows of {word} read")
    (best,) = best_passages(query, text, source(text).code)
    assert text[best.chunk.start :].startswith("def load")


def test_decorators_and_comments_belong_to_the_definition_below_them() -> None:
    assert shown("invoice of a customer", PYTHON)[0].startswith(
        "    # The invoice of a customer.\n    @cached\n    def send"
    )


def test_method_is_named_with_its_class() -> None:
    assert shown("carts send", PYTHON)[0].startswith("    def send(self):\n        return 1\n")
    assert shown("orders send", PYTHON)[0].startswith("    # The invoice")


def test_long_definition_is_shown_from_its_beginning_or_where_the_words_are() -> None:
    text = PYTHON.replace("step_29", "discount_of_voucher")
    assert shown("load orders", text)[0].startswith("    def load(self):\n")
    inner = shown("discount of a voucher", text)[0]
    assert "discount_of_voucher" in inner and len(inner) <= MAX_CHUNK_CHARS


@pytest.mark.parametrize("query", ["load", "where is load defined"])
def test_a_name_asks_for_all_parts_of_a_long_definition(query: str) -> None:
    begin, end = PYTHON.index("    def load"), PYTHON.index("    # The invoice")
    parts = list(takewhile(PYTHON[begin:end].__contains__, shown(query, PYTHON)))
    assert "".join(parts).split() == PYTHON[begin:end].split() and len(parts) > 1
    assert len([one for one in shown("load the orders", PYTHON) if "step_" in one]) == 1


def test_words_of_the_title_may_be_left_out() -> None:
    body = "\n".join(f"`rareword{number}` " * 4 for number in range(40))
    query = parse_query(f"add get data\n\n{body}")
    assert not {*query.title} & {*query.words}
    assert shown(query.text, "def get_data():\n    return rareword1\n")


SHELF = "class Shelf:\n    sorted_books = by_title\n\n    def rows(self):\n        return sorted_books, by_title\n\n\n"
MACRO = "def macro_body(frame):\n    return frame\n\n\ndef dump_macro(frame):\n    return definition_of(frame)\n"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("sorted books by their title", "    def rows"),  # the class has the words, too, in fewer lines
        ("shelf", "class Shelf"),
        ("Shelf", "class Shelf"),
        ("where is Shelf defined", "class Shelf"),
        ("dump the definition of a macro in the frame by macro_body", "def dump_macro"),
        ("macro_body", "def macro_body"),
    ],
)
def test_a_name_asks_for_its_definition_and_a_description_for_a_function(query: str, first: str) -> None:
    assert shown(query, f"{SHELF}{MACRO}")[0].startswith(first)


def test_definition_of_a_symbol_comes_first() -> None:
    text = PYTHON + "\n" + "".join(f"print(Carts, carts_{n}, Carts)\n" for n in range(40))
    assert shown("Carts", text)[0].startswith("class Carts:\n")


@given(st.text(st.sampled_from("\n \tdef class(){}x=#@é中"), max_size=3_000) | st.text(max_size=500))
def test_each_line_with_text_is_in_one_passage(text: str) -> None:
    chunks = [chunk for unit in _units(text, source(text).code) for chunk in unit.passages]
    assert all(one.end <= two.start and one.end_line < two.start_line for one, two in pairwise(chunks))
    lines = {number for chunk in chunks for number in range(chunk.start_line, chunk.end_line + 1)}
    assert {number for number, line in enumerate(text.split("\n"), 1) if line.strip()} <= lines
    for chunk in chunks:
        piece = text[chunk.start : chunk.end]
        assert text.count("\n", 0, chunk.start) + 1 == chunk.start_line
        assert chunk.end_line - chunk.start_line + 1 == len(piece.removesuffix("\n").split("\n"))
        assert len(piece) <= MAX_CHUNK_CHARS or "\n" not in piece.removesuffix("\n")


def candidate(path: str, text: str, line: int = 1) -> ChunkCandidate:
    return ChunkCandidate(path, line, line + text.count("\n"), TextContent(text), 1.0)


@pytest.mark.parametrize("depth", [BROAD, DEEP, Depth((1,), 1.0)])
def test_more_definitions_are_shown_of_better_files(depth: Depth) -> None:

    def text(file: int) -> str:
        return "".join(f"def send_{number}(rows_{file}):\n{BODY}\n" for number in range(11))

    texts = {f"{number}.py": text(number) for number in range(8)}
    ranked = [RankedCandidate(candidate(path, "import os\n"), 9.0 - place) for place, path in enumerate(texts)]
    query = parse_query("send")

    def places(limit: int | None) -> list[tuple[str, int, float]]:
        found = show_passages(query, ranked, lambda one: source(texts[one.path]), limit, depth)
        return [(one.candidate.path, one.candidate.start_line, one.score) for one in found]

    found = places(None)
    numbers = Counter(path for path, _, _ in found)
    expected = [depth.definitions[min(place, len(depth.definitions) - 1)] for place in range(8)]
    assert [numbers[path] for path in texts] == expected
    assert [score for _, _, score in found] == sorted((score for _, _, score in found), reverse=True)
    for limit in range(1, len(found)):
        assert places(limit) == found[:limit]


def test_a_deep_answer_lowers_further_definitions_less() -> None:
    ranked = [RankedCandidate(candidate("a.py", "import os\n"), 3.0)]
    query = parse_query("invoice of a customer send")
    (_, broad), (_, deep) = (
        [one.score / 3.0 for one in show_passages(query, ranked, lambda _: source(PYTHON), 2, depth)]
        for depth in (BROAD, DEEP)
    )
    assert 0 < broad < deep < 1
    assert deep == pytest.approx(broad ** (DEEP.power / BROAD.power))


def test_further_definitions_are_shown_once_and_only_definitions() -> None:
    head, copied = "# send rows\n" * 80, f"def send_copied(rows):\n{BODY}"
    texts = {f"{name}.py": f"{head}\ndef send_{name}(rows):\n    send(rows)\n\n{copied}" for name in ("a", "b", "c")}
    ranked = [RankedCandidate(candidate(path, "import os\n"), 9.0 - place) for place, path in enumerate(texts)]
    found = show_passages(parse_query("send"), ranked, lambda one: source(texts[one.path]), None, DEEP)
    lines = [(one.candidate.path, one.candidate.content.text() or "") for one in found]
    assert sum("def send_copied" in text for _, text in lines) == 1
    assert {path for path, text in lines if "def send_" in text and "copied" not in text} == {*texts}
    assert not any("# send" in text for _, text in lines)


def test_a_definition_of_less_value_comes_behind_better_files() -> None:
    texts = {"a.py": PYTHON + "# filler\n" * 100, "b.py": PYTHON}
    ranked = [RankedCandidate(candidate(path, "import os\n"), 3.0 - place) for place, path in enumerate(texts)]
    query = parse_query("invoice of a customer send")
    found = show_passages(query, ranked, lambda one: source(texts[one.path]), None)
    assert [one.candidate.path for one in found][:2] == ["a.py", "b.py"]
    assert found[0].candidate.content.text() == found[1].candidate.content.text()


def test_a_class_and_its_first_method_are_one_result() -> None:
    ranked = [RankedCandidate(candidate("a.py", "import os\n"), 3.0)]
    query = parse_query("carts send")
    found = show_passages(query, ranked, lambda _: source(PYTHON), None)
    carts = "class Carts:\n    def send(self):\n        return 1\n\n\n"
    assert [carts in (one.candidate.content.text() or "") for one in found] == [True, *[False] * (len(found) - 1)]
    assert sum("        return 1" in (one.candidate.content.text() or "") for one in found) == 1


HEAD = "class Basket:\n    size = 1\n\n"


def methods(number: int, lines: int) -> list[str]:
    """Return methods of some lines each."""
    body = "".join(f"        basket_{line}()\n" for line in range(lines))
    return [f"    def part_{one}(self):\n{body}" for one in range(number)]


def file_of(inner: Sequence[str]) -> str:
    """Return a file with a class of methods, behind a function that makes the file long."""
    return "".join(("def filler():\n", "    pass  # filler\n" * 60, "\n\n", HEAD, *inner))


@pytest.mark.parametrize(("number", "lines"), [(2, 3), (20, 3), (3, 30)])
def test_class_is_shown_with_the_methods_that_fit(number: int, lines: int) -> None:
    inner = methods(number, lines)
    fitting = [HEAD + "".join(inner[:count]) for count in range(number + 1)]
    assert shown("basket", file_of(inner))[0] == [one for one in fitting if len(one) <= MAX_CHUNK_CHARS][-1]


def results(query: str, text: str) -> list[str | None]:
    ranked = [RankedCandidate(candidate("a.py", "import os\n"), 3.0)]
    parsed = parse_query(query)
    found = show_passages(parsed, ranked, lambda _: source(text), None)
    return [one.candidate.content.text() for one in found]


def test_method_inside_of_the_shown_class_is_no_second_result() -> None:
    inner = methods(2, 3)
    assert shown("basket", file_of(inner))[1] in inner
    assert results("basket", file_of(inner)) == [HEAD + "".join(inner)]


def test_neighbours_that_are_long_together_are_two_results() -> None:
    inner = methods(2, 30)
    assert len("".join(inner)) > MAX_CHUNK_CHARS
    assert sorted(map(str, results("part", file_of(inner)))) == inner


@pytest.mark.parametrize("text", ["x\n", "", "x = 1\n" * (MAX_TEXT_CHARS // 6 + 1), None])
def test_short_very_long_and_unreadable_files_keep_their_chunks(text: str | None) -> None:
    ranked = [RankedCandidate(candidate("a.py", "x\n"), 1.0)]
    assert show_passages(parse_query("x"), ranked, lambda _: text if text is None else source(text), None) == ranked


def test_rank_and_index_show_the_same_definitions(plant: Plant, rg: RgBinary) -> None:
    folder = plant({"orders.py": PYTHON, "other.py": "import shop\n"})
    with sync.Index(folder, location=folder.parent / "index", rg=rg.path) as index:
        for query in ("sum of the prices", "carts send", "invoice of a customer"):
            ranked, indexed = sync.rank(query, cwd=folder, rg=rg.path), index.search(query)
            assert [(one.start_line, one.end_line, one.symbol) for one in ranked[:1]] == [
                (one.start_line, one.end_line, one.symbol) for one in indexed[:1]
            ]
            assert shown(query, PYTHON)[0] in ranked[0].text == indexed[0].text


def test_results_reach_the_limit_although_some_chunks_overlap(plant: Plant, rg: RgBinary) -> None:
    methods = "".join(f"def load_{n}(rows):\n" + f"    rows.step_{n}(order)\n" * (5 * n) + "\n" for n in range(1, 9))
    folder = plant({"orders.py": methods, "small.py": "import rows\n"})
    with sync.Index(folder, location=folder.parent / "index", rg=rg.path) as index:
        for search in (partial(sync.rank, cwd=folder, rg=rg.path), index.search):
            every = search("load rows", limit=None)
            assert len(every) > 5
            for limit in range(1, len(every) + 1):
                assert search("load rows", limit=limit) == every[:limit]


def test_texts_are_read_only_for_results() -> None:
    read: list[str] = []

    def source_of(one: ChunkCandidate) -> SourceText:
        read.append(one.path)
        return source(PYTHON)

    ranked = (RankedCandidate(candidate(f"{number}.py", "x\n"), 9.0 - number) for number in range(9))
    assert len(show_passages(parse_query("send"), ranked, source_of, 2)) == 2
    assert {*read} == {"0.py", "1.py"}  # as many as results, although the first one has two of them


@pytest.mark.parametrize("indexed", [False, True])
def test_deadline_is_checked_before_each_file_is_split(
    plant: Plant, rg: RgBinary, monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    folder = plant({f"{number}.py": f"{PYTHON}send = {number}\n" for number in range(4)})
    calls: list[str] = []

    def check(self: RankingDeadline | None = None) -> None:
        calls.append("check")

    def best(*_: object) -> list[Choice]:
        assert calls[-1:] == ["check"]
        calls.append("best")
        return []

    monkeypatch.setattr(_passages, "best_passages", best)
    if indexed:
        with sync.Index(folder, location=folder.parent / "index", rg=rg.path) as index:
            index.refresh()
            monkeypatch.setattr(_search, "check", check)
            index.search("send")
    else:
        monkeypatch.setattr(RankingDeadline, "check", check)
        sync.rank("send", cwd=folder, rg=rg.path)
    assert calls.count("best") == 4


WORDS = st.lists(
    st.sampled_from(["parse", "Parsing", "pars", "HTTPServer_v2", "xparse", "sendMail", "größe", "İİİ", "é_parse"])
    | st.text("aAbZ9_.é中 \n", max_size=6)
)


@example(["İ" * 9, "pars"], {"pars"})
@given(WORDS, st.sets(st.sampled_from(["pars", "http", "v2", "send", "größ", "a", "ab", "中文", "x", "server"])))
def test_stems_are_found_as_if_every_word_were_split(words: list[str], stems: set[str]) -> None:
    text = " ".join(words)
    every = [
        (found.start(), stem) for found in re.finditer(r"\w+", text) for stem in stems_of(found[0]) if stem in stems
    ]
    assert _find_stems(text, stems) == every


@pytest.mark.parametrize(
    ("text", "stem", "number"),
    [
        ("CookieJar(cookie_jar, MyCookieJars.HTTPCookieJar)", "_cookie_jar_", 3),
        ("written in C++, c++ and cpp, not vec++", "cpp", 3),
        ("用户会话过期, 会", "会", 2),
        ("用户会话过期", "会话", 1),
        ("na\u00efve nai\u0308ve na\u00efves", "na\u00efv", 3),
        ("हिन्दी में हिन्दी", "हिन्दी", 2),
    ],
)
def test_words_of_any_script_and_spelling_are_counted(text: str, stem: str, number: int) -> None:
    filler = "x " * 30
    chunks = [Chunk(0, 60, 1, 1), Chunk(60, 60 + len(text), 1, 1)]
    assert count_stems(filler + text, chunks, {stem, "jar"})[1][stem] == number
    assert not count_stems(filler + text, chunks, {stem})[0]


def test_very_long_words_are_not_kept() -> None:
    before = stems_of.cache_info().currsize
    assert _find_stems("parse_" * 50_000, {"pars"}) == [(0, "pars")] * 50_000
    assert stems_of.cache_info().currsize == before


def test_file_with_very_many_definitions_has_no_passages() -> None:
    assert shown("total", "def total(): ...\n" * 5_000)
    assert not shown("total", "def total(): ...\n" * 5_001)


def test_very_long_words_and_names_are_left_out() -> None:
    long = "x" * 201
    text = f"def {long}(a, {long}):\n    {long[1:]}\n"
    (unit,) = _units(text, source(text).code)
    assert unit.names == []
    assert [stem for _, stem in _find_stems(text, {"def", "a", long, long[1:]})] == ["def", "a", long[1:]]

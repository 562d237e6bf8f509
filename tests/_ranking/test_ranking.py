"""Ranking of chunks without files or a database: query words, chunks, paths and scores."""

import math
import re
import sqlite3
import unicodedata
from collections.abc import Collection, Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ripwrap._code.treesitter.merge import MAX_CHUNK_CHARS, window_chunks
from ripwrap._operations.rank import (
    DEFINITION_TERM,
    MAX_FILES_READ,
    NAME_TERM,
    choose_files,
    file_pattern,
    matched_stems,
    query_stems,
)
from ripwrap._ranking.bm25 import best_rows, bm25
from ripwrap._ranking.document import SourceText, to_ranked_chunk
from ripwrap._ranking.paths import PathWords, match_path, path_penalty, path_weight
from ripwrap._ranking.scoring import (
    DEFINES,
    DEFINES_ASKED,
    EXACT_NAME,
    FOLDER_WORDS,
    MANY_CHUNKS,
    NAME_SHARE,
    NEAR_WORDS,
    PATH_WORDS,
    POOL_SIZE,
    ChunkCandidate,
    RankedCandidate,
    TextContent,
    most_relevant_lines,
    word_worths,
)
from ripwrap._ranking.scoring import rank_candidates as _rank_candidates
from ripwrap._ranking.word_query import (
    MAX_WORD_CHARS,
    STOP_WORDS,
    WordQuery,
    fts_text,
    identifier_parts,
    parse_query,
    rough_stem,
    split_camel_case,
)

QUERY = parse_query("cookie storage")
OTHER_CODE = "a test, an example or vendored code"


class OwnText(TextContent):
    """Text that counts as different from equal texts of other chunks, which would be left out."""

    @property
    def key(self) -> str:
        return f"{id(self)}"


def chunk(path: str = "x.py", text: str = "", bm25: float = 1.0, line: int = 1) -> ChunkCandidate:
    names = [name for _, name in SourceText("x.py", text, exact=True).code.names]
    return ChunkCandidate(path, line, line, OwnText(text, names), bm25)


def rank_candidates(query: WordQuery, pool: Sequence[ChunkCandidate], **options: Any) -> list[RankedCandidate]:
    return list(_rank_candidates(query, pool, **options))


def order(query: str, *pool: ChunkCandidate) -> list[str]:
    return [entry.candidate.path for entry in rank_candidates(parse_query(query), pool)]


def only(query: str, candidate: ChunkCandidate) -> RankedCandidate:
    """Rank a candidate together with a better one of another file, and return its entry."""
    rival = chunk("rival", bm25=1.0)
    (entry,) = (one for one in rank_candidates(parse_query(query), [candidate, rival]) if one.candidate is candidate)
    return entry


def value(query: str, candidate: ChunkCandidate) -> float:
    """Return the score of a candidate, before scaling, when ranked together with a better one."""
    return parts(only(query, candidate))


def parts(entry: RankedCandidate) -> float:
    """Return the sum of the parts of a score."""
    return entry.score - 1 if entry.score >= 1 else math.log(entry.score)


# Words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("how are cookies stored", ("cookies", "stored")),
        ("The getHTTPResponse of HTTPServer_v2", ("get", "http", "response", "server", "v2")),
        ("read, write; READ!", ("read", "write")),
        ("OAuth2PasswordBearer", ("auth2", "password", "bearer")),
        ("URLs and IDs", ("urls", "ids")),
        ("naïve Größe", ("naïve", "größe")),
        ("is it the", ("is", "it", "the")),
        ("a function's arguments, the class\u2019s name", ("function", "arguments", "class", "name")),
        ("x", ("x",)),
    ],
)
def test_query_words_are_lower_case_without_stop_words(text: str, words: tuple[str, ...]) -> None:
    assert parse_query(text).words == words


@pytest.mark.parametrize("text", ["", "  ", "?!", "__", "→"])
def test_query_without_a_word_raises(text: str) -> None:
    with pytest.raises(ValueError, match="there is no word in the query"):
        parse_query(text)


def test_long_query_prefers_names_to_short_and_numeric_words_and_counts_the_rest() -> None:
    prose = [f"word{number}" for number in range(100, 1000)]
    query = parse_query(" ".join(["a title\n7", *prose, "by 20261122 expireSessions or a serializer"]))
    assert query.words == ("title", *prose[:13], "expire", "sessions")
    assert query.left_out == len(prose) - 13 + 3
    assert query.remark == ""
    assert parse_query(" ".join(prose[:32])).words == tuple(prose[:16])
    assert parse_query(" ".join(prose[:20])).words == tuple(prose[:20])
    many = parse_query(" ".join(f"get_x{number}" for number in range(40)))
    assert (len(many.symbols), len(many.words), many.left_out) == (32, 16, 8 + 25)


def test_too_long_query_words_are_left_out_and_counted() -> None:
    query = parse_query("cookie " + "x" * 100_000 + "Y()")
    assert (query.words, query.symbols, query.left_out) == (("cookie",), (), 2)
    assert query.remark.startswith("2 words and names of the query are not searched: ")
    assert parse_query("cookie " + "x" * 201).remark.startswith("1 word or name of the query is not searched: ")
    assert parse_query("x" * MAX_WORD_CHARS).words == ("x" * MAX_WORD_CHARS,)
    with pytest.raises(
        ValueError, match=r"^each word of the query 'x{100}…' has more than 200 characters; use shorter"
    ):
        parse_query("x" * 100_000)
    with pytest.raises(ValueError, match=r"^there is no word in the query '[?]{100}…'; use words"):
        parse_query("?" * 1_000_000)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("会话过期", ("会话", "话过", "过期")),
        ("会话 expired過期v2", ("会话", "expired", "過期", "v2")),
        ("会", ("会",)),
        ("セッションの期限", ("セッ", "ッシ", "ショ", "ョン", "ンの", "の期", "期限")),
        ("한국어", ("한국", "국어")),
        ("ภาษา", ("ภา", "าษ", "ษา")),
        ("हिन्दी भाषा", ("हिन्दी", "भाषा")),
        ("\U00020000\U00020001", ("\U00020000\U00020001",)),
    ],
)
def test_scripts_without_spaces_are_split_into_character_pairs(text: str, words: tuple[str, ...]) -> None:
    query = parse_query(text)
    assert query.words == words
    assert not query.symbolic


def test_name_in_a_script_without_spaces_is_a_symbol() -> None:
    query = parse_query("where is 会话过期 defined?")
    assert (query.symbols, query.symbolic) == (("会话过期",), True)


def test_composed_and_decomposed_accents_are_equal() -> None:
    assert parse_query("nai\u0308ve").words == parse_query("na\u00efve").words == ("na\u00efve",)
    assert match_path("src/nai\u0308ve.py", ("na\u00efve",)).stem == ("na\u00efve",)
    assert most_relevant_lines("z\nnai\u0308ve\n", parse_query("na\u00efve x_y")) == [1]


@pytest.mark.parametrize(
    ("text", "symbols", "symbolic"),
    [
        ("CookieJar", ("CookieJar",), True),
        ("response", ("response",), True),
        ("where is CookieJar defined?", ("CookieJar",), True),
        ("Where is the class CookieJar defined", ("CookieJar",), True),
        ("definition of http.cookies.Morsel", ("Morsel",), True),
        ("class CookieJar", ("CookieJar",), True),
        ("def set_cookie", ("set_cookie",), True),
        ("res.send()", ("send",), True),
        ("std::vec::Vec", ("Vec",), True),
        ("how set_cookie makes a CookieJar", ("set_cookie", "CookieJar"), False),
        ("what use() mounts", ("use",), False),
        ("cookies are stored where", (), False),
        ("the HTTP API", (), False),
    ],
)
def test_identifiers_in_a_query_are_symbols(text: str, symbols: tuple[str, ...], symbolic: bool) -> None:
    query = parse_query(text)
    assert (query.symbols, query.symbolic) == (symbols, symbolic)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("getHTTPResponse(x)", "get HTTP Response(x)"),
        ("parseURLs", "parse URLs"),
        ("snake_case and UPPER_CASE", "snake_case and UPPER_CASE"),
        ("aB2cD", "a B2c D"),
        ("", ""),
    ],
)
def test_camel_case_is_split(text: str, split: str) -> None:
    assert split_camel_case(text) == split


@given(st.text())
def test_splitting_camel_case_adds_only_spaces(text: str) -> None:
    assert split_camel_case(text).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "spread_out"),
    [
        ("getHTTPResponse", "get HTTP Response"),
        ("setÜber", "setÜber"),
        ("nai\u0308ve", "na\u00efve"),
        ("用户会话已过期。", "用户 户会 会话 话已 已过 过期 期 。"),
        ("v2版 x", "v2 版 x"),
    ],
)
def test_indexed_text_is_split_as_queries_are(text: str, spread_out: str) -> None:
    assert fts_text(text).split() == spread_out.split()


@pytest.mark.parametrize(
    "family",
    [
        ("parse", "parses", "parsing", "parser", "parsed"),
        ("serialize", "serializes", "serializer", "serialization", "serialise"),
        ("validate", "validation", "validators", "validating"),
        ("query", "queries"),
        ("map", "mapping", "mapped", "mapper"),
    ],
)
def test_forms_of_a_word_have_one_stem(family: tuple[str, ...]) -> None:
    assert len({rough_stem(word) for word in family}) == 1


@given(st.text(min_size=1))
def test_stem_is_a_prefix_of_its_word(word: str) -> None:
    assert word.startswith(rough_stem(word))
    assert rough_stem(word)


@given(st.text())
def test_any_text_is_a_query_or_raises_that_it_has_no_word(text: str) -> None:
    try:
        query = parse_query(text)
    except ValueError as error:
        assert "there is no word" in str(error)  # noqa: PT017 - or it is a query
        return
    assert query.words
    for word in query.words:
        assert all(one.isalnum() or one == "_" or unicodedata.category(one).startswith("M") for one in word)


# Chunks


LINES = st.lists(
    st.one_of(
        st.text(alphabet=st.characters(exclude_characters="\n"), max_size=80),
        st.sampled_from(["", "", "    return x", "def f():", "class A:", "@decorated", "# note", "\r", "x" * 1500]),
    ),
    max_size=120,
)


@given(LINES, st.booleans())
@example([""], True)
@example(["x" * 3000, "y"], False)
def test_window_chunks_cover_every_line_once_in_order(lines: list[str], ended: bool) -> None:
    text = "\n".join(lines) + ("\n" if ended else "")
    at, line = 0, 1
    for piece in window_chunks(text):
        assert (piece.start, piece.start_line) == (at, line)
        assert piece.end > piece.start
        assert piece.end == len(text) or text[piece.end - 1] == "\n"
        body = text[piece.start : piece.end]
        assert len(body) <= MAX_CHUNK_CHARS or body.rstrip("\n").count("\n") == 0
        assert piece.end_line == line + body.removesuffix("\n").count("\n")
        at, line = piece.end, piece.end_line + 1
    assert at == len(text)


@given(st.binary(max_size=5000))
def test_any_bytes_become_window_chunks(raw: bytes) -> None:
    text = raw.decode("utf-8", "surrogateescape")
    assert "".join(text[piece.start : piece.end] for piece in window_chunks(text)) == text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_window_ends_before_the_comments_and_decorators_of_a_definition(newline: str) -> None:
    body = newline.join(["    x = 1"] * 40)
    text = newline.join(["def first():", body, "", "x = 2", "", "# Why.", "@decorated", "def second():", body, body])
    first, second, *_ = window_chunks(text)
    assert text[first.end :].startswith("# Why.")
    assert second.start_line == text[: first.end].count("\n") + 1


def test_window_without_definitions_ends_after_a_blank_line() -> None:
    text = "\n".join(["a = 1"] * 100) + "\n\n" + "\n".join(["b = 2"] * 100)
    first = next(window_chunks(text))
    assert text[first.start : first.end].endswith("a = 1\n\n")


# Names


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("src/http/cookies.py", ["cookie", "http"]),
        ("src/CookieJar.js", ["cookie"]),
        ("cookie/deep/er.py", []),
        ("src/cookies_in_storage_test.go", ["cookie", "storage"]),
        ("a/b/HTTPAdapter.java", ["http"]),
        ("unrelated.py", []),
    ],
)
def test_query_words_match_file_and_folder_names_in_any_form(path: str, words: list[str]) -> None:
    asked = ("cookie", "storage", "http")
    for one in (path, path.replace("/", "\\")):
        found = match_path(one, asked)
        assert [word for word in asked if word in (*found.folder, *found.stem)] == words


@pytest.mark.parametrize(
    ("path", "weight"),
    [
        ("src/cookies.py", 1.0),
        ("tests/cookies.py", 0.3),
        ("src/test_cookies.py", 0.3),
        ("src/cookies_test.go", 0.3),
        ("src/cookies.spec.ts", 0.3),
        ("src/CookieTest.java", 0.3),
        ("examples/cookies.py", 0.3),
        ("test-data/unit/cookies.py", 0.3),
        ("packages/dts-test/cookies.tsx", 0.3),
        ("testing/cookies.py", 0.3),
        ("src/pip/_vendor/cookies.py", 0.3),
        ("third_party/cookies.c", 0.3),
        ("astropy/extern/cookies.py", 0.3),
        ("node_modules/cookies/lib.js", 0.3),
        ("src/__init__.py", 0.5),
        ("tests/__init__.py", 0.15),
        ("src/latest/attest.py", 1.0),
        ("contest/cookies.py", 1.0),
        ("vendors/cookies.py", 1.0),
        ("internal/cookies.go", 1.0),
        ("src/external_data/cookies.py", 1.0),
    ],
)
def test_tests_examples_vendored_code_and_init_files_have_less_weight(path: str, weight: float) -> None:
    assert path_weight(path, QUERY) == pytest.approx(weight)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("tests of cookies", "tests/cookies.py"),
        ("an example of cookies", "examples/cookies.py"),
        ("cookies of the vendored library", "vendor/cookies.py"),
        ("what the package exports", "cookies/__init__.py"),
    ],
)
def test_tests_and_examples_have_full_weight_if_the_query_asks_for_them(query: str, path: str) -> None:
    assert path_weight(path, parse_query(query)) == 1.0
    assert path_penalty(path, parse_query(query)) == (0, ())


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("src/cookies.py", ()),
        ("tests/cookies.py", (OTHER_CODE,)),
        ("cookies/__init__.py", ("a package's __init__",)),
        ("docs/cookies.md", ("text or data",)),
        ("cookies.YML", ("text or data",)),
        ("tests/legacy/cookies.json", (OTHER_CODE, "text or data")),
        ("_vendor/cookies/test_jar.py", (OTHER_CODE,)),
        ("examples/__init__.py", (OTHER_CODE, "a package's __init__")),
    ],
)
def test_each_kind_of_file_that_the_query_does_not_ask_for_lowers_the_score(path: str, kinds: tuple[str, ...]) -> None:
    """Penalties are added, one for each kind."""
    penalty, named = path_penalty(path, QUERY)
    assert named == kinds
    assert penalty < 0 if kinds else penalty == 0
    assert path_penalty(path.replace("/", "\\"), QUERY) == (penalty, named)


@pytest.mark.parametrize(
    ("query", "path"), [("cookie config", "cookies.yml"), ("readme", "README.md"), ("package json", "package.json")]
)
def test_text_and_data_files_have_full_weight_if_the_query_asks_for_them(query: str, path: str) -> None:
    assert path_penalty(path, parse_query(query)) == (0, ())


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("other/x.py", PathWords(parts=2)),
        ("src/media_type.py", PathWords(("media", "type"), (), ("media", "type"), exact=True, parts=3)),
        ("src/MediaTypes.js", PathWords(("media", "type"), (), ("media", "type"), exact=True, parts=3)),
        ("src/parsing.py", PathWords(("parse",), (), ("parse",), exact=True, parts=2)),
        ("parser/media/text_type.py", PathWords(("parse", "media", "type"), ("media",), ("type",), parts=4)),
        ("type_media.py", PathWords(("media", "type"), (), ("media", "type"), parts=2)),
    ],
)
def test_query_words_in_file_name_folder_and_path_are_distinguished(path: str, words: PathWords) -> None:
    """Also whether the file name consists only of words of the query."""
    assert match_path(path, ("parse", "media", "type")) == words
    assert match_path(path.replace("/", "\\"), ("parse", "media", "type")) == words


# Scores


def test_bm25_decides_without_other_signals() -> None:
    assert order("cookie storage", chunk("a", bm25=1.0), chunk("b", bm25=3.0), chunk("c", bm25=2.0)) == ["b", "c", "a"]


def test_defining_chunk_scores_higher_if_its_file_has_the_name() -> None:
    text = "class CookieJar:\n"
    plain = only("CookieJar", chunk("shop.py", text, bm25=0.5))
    alike = only("CookieJar", chunk("cookie_jar.py", text, bm25=0.5))
    assert parts(plain) == pytest.approx(0.5 + DEFINES_ASKED + NAME_SHARE + NEAR_WORDS / 2)
    names = NEAR_WORDS / 2 + EXACT_NAME + PATH_WORDS
    assert parts(alike) == pytest.approx(0.5 + DEFINES_ASKED + NAME_SHARE + names)
    assert 'defines "CookieJar"' in plain.reasons
    assert 'defines "CookieJar"' in alike.reasons


def test_definition_counts_most_if_the_query_is_only_a_name() -> None:
    """An identifier or a question about a definition asks for a name; a plain word may be a topic."""
    for query in ("Cookie", "where is cookie defined?", "definition of cookie"):
        name = parse_query(query).symbols[0]
        assert value(query, chunk("x.py", f"class {name}:\n", bm25=0.5)) == pytest.approx(
            0.5 + DEFINES_ASKED + NAME_SHARE
        )
    assert value("cookie", chunk("x.py", "class cookie:\n", bm25=0.5)) == pytest.approx(0.5 + DEFINES + NAME_SHARE)


def test_words_in_names_raise_the_score_of_a_file() -> None:
    """The gain depends on their share of the query's words."""
    plain, folder, part, exact = (
        value("cookie storage", chunk(path, bm25=0.5)) for path in ("x", "cookie/x", "cookie_box", "cookie_storage")
    )
    assert plain == pytest.approx(0.5)
    assert folder == pytest.approx(0.5 + FOLDER_WORDS / 2 + PATH_WORDS)  # scaled so that the best file has 1
    assert part == pytest.approx(0.5 + PATH_WORDS)
    assert exact == pytest.approx(0.5 + PATH_WORDS + EXACT_NAME)
    assert only("cookie storage", chunk("cookie/x")).reasons[0] == 'path has "cookie"'
    assert only("cookie storage", chunk("cookie_storage")).reasons[:2] == [
        "its file is named by words of the query",
        'path has "cookie", "storage"',
    ]


def test_rare_word_in_a_file_name_counts_more_than_a_common_one() -> None:
    query = parse_query("common rare")
    worths = word_worths(query.words, {"common": 90, "rare": 1}, 100)
    ranked = rank_candidates(query, [chunk("common.py"), chunk("rare.py")], worths=worths)
    assert [entry.candidate.path for entry in ranked] == ["rare.py", "common.py"]
    assert worths["rare"] > worths["common"] > 0
    assert word_worths(["absent"], {}, 0)["absent"] > 0


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("cookie storage", 1 / 2),
        ("CookieStorage", 1 / 2),
        ("the COOKIES_in_storage", 1 / 2),
        ("cookie storage; cookie storage", 2.5 / 3.5),
        ("storage of a cookie", 0.5 / 1.5),
        ("a cookie is kept for a long time in the storage", 0),
        ("uncookie storage", 0),
        ("", 0),
    ],
)
def test_neighbouring_words_near_each_other_raise_the_score(text: str, near: float) -> None:
    """C / (c + 1) for c times within 24 characters; the reversed order counts half."""
    entry = only("cookie storage", chunk("x.py", text, bm25=0.5))
    assert parts(entry) == pytest.approx(0.5 + NEAR_WORDS * near)
    assert ('has "cookie" near "storage"' in entry.reasons) == (near > 0)


def test_equal_chunks_are_one_entry_with_their_number() -> None:
    same = [ChunkCandidate(f"{number}.py", 1, 1, TextContent("x"), number / 9) for number in range(3)]
    copied = ChunkCandidate("9.py", 4, 4, TextContent("x"), 0.1, copies=5)
    ranked = rank_candidates(QUERY, [*same, copied, chunk("other.py", "x", 0.01)])
    assert [entry.candidate.path for entry in ranked] == ["2.py", "other.py"]
    assert ranked[0].reasons[-1] == "the first of 9 equal chunks; 8 left out"
    shown = rank_candidates(QUERY, [*same, copied], shown=lambda path: path in ("0.py", "1.py"))
    assert [entry.candidate.path for entry in shown] == ["1.py"]
    assert shown[0].reasons[-1] == "the first of 2 equal chunks; 1 left out"


def test_reasons_say_that_the_query_has_the_name_of_the_file() -> None:
    """A file that the query names is what it asks for, also if its kind is a test."""
    pool = [chunk("examples/shop_cart.py"), chunk("examples/other.py")]
    named, other = rank_candidates(parse_query("where is shop_cart.py"), pool)
    assert named.reasons[0] == "the query has the name of its file"
    assert not [reason for reason in named.reasons if "does not ask for" in reason or "named by words" in reason]
    assert any("does not ask for" in reason for reason in other.reasons)
    assert "the query has the name of its file" not in other.reasons


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 90)), min_size=1, max_size=9))
def test_bm25_is_that_of_sqlite(chunks: list[tuple[int, int, int]]) -> None:
    counts = [{word: number for word, number in (("a", a), ("b", b)) if number} for a, b, _ in chunks]
    lengths = [a + b + others for a, b, others in chunks]
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE fts USING fts5(body)")
        bodies = [(row, "a " * a + "b " * b + "x " * others) for row, (a, b, others) in enumerate(chunks)]
        database.executemany("INSERT INTO fts(rowid, body) VALUES (?, ?)", bodies)
        found = dict(database.execute("SELECT rowid, -bm25(fts) FROM fts WHERE fts MATCH 'a OR b'"))
    having = [sum(word in one for one in counts) for word in "ab"]
    worths = [max(math.log((len(chunks) - number + 0.5) / (number + 0.5)), 1e-6) for number in having]
    expected = [found.get(row, 0.0) for row in range(len(chunks))]
    assert bm25(counts, lengths, dict(zip("ab", worths, strict=True))) == pytest.approx(expected)


def test_rows_of_one_text_do_not_hide_other_texts_with_equal_scores() -> None:
    """The search is repeated until the places of rows with equal scores can decide between them."""
    copies, others = range(POOL_SIZE + 50), range(1_000, 1_900)
    rows = [*((row, 2.0) for row in copies), *((row, 1.0) for row in others), (5_000, 0.5)]
    asked: list[int] = []

    def search(wanted: int) -> list[tuple[int, float]]:
        asked.append(wanted)
        return rows[:wanted]

    def locate(found: Collection[int]) -> dict[int, tuple[int, int, int]]:
        return {row: (0, -row, row if row in others else 0) for row in found}  # the last row of the file is the first

    found = [row for row, _ in best_rows(search, locate, wanted=200)]
    assert found == [*copies[::-1], *others[:-POOL_SIZE:-1], 5_000]  # all rows of a text are counted
    assert asked == [200, 800, 3_200]


def test_proximity_counts_in_the_best_files_only() -> None:
    pool = [chunk(f"{number:02}", "cookie storage", bm25=1 - number / 100) for number in range(40)]
    ranked = rank_candidates(QUERY, pool)
    assert [any("near" in reason for reason in entry.reasons) for entry in ranked] == [True] * 30 + [False] * 10


def test_scripts_without_spaces_have_words_near_each_other() -> None:
    entry = only("会话过期", chunk("x.py", "用户会话过期", bm25=0.5))
    assert parts(entry) > 0.5


def test_file_with_three_good_chunks_ranks_higher() -> None:
    """The best chunk, half of the second and a quarter of the third; and their number a little."""
    many = [chunk("many", bm25=0.9, line=line) for line in (1, 2, 3, 4)]
    assert order("cookie", chunk("one", bm25=1.0), *many)[0] == "many"
    best, second, *_ = rank_candidates(QUERY, [chunk("one", bm25=1.0), *many])
    assert parts(best) == pytest.approx(1 + MANY_CHUNKS * math.log(5 / 2))
    assert parts(second) == pytest.approx(1 / (0.9 * 1.75))
    assert best.reasons == ["BM25 0.9", "the best of 4 chunks of its file"]


def test_equal_texts_count_once_as_files_whose_words_are_near() -> None:
    copies = [ChunkCandidate(f"{number:02}", 1, 1, TextContent("cookie"), 1.0) for number in range(40)]
    (best, copy) = rank_candidates(QUERY, [*copies, chunk("other", "cookie storage", bm25=0.9)])
    assert (best.candidate.path, 'has "cookie" near "storage"' in best.reasons) == ("other", True)
    assert copy.reasons[-1] == "the first of 40 equal chunks; 39 left out"


def test_shown_chunk_defines_the_symbol_or_has_the_words_together() -> None:
    plain, defining = chunk("a", "CookieJar()", bm25=2.0), chunk("a", "class CookieJar:\n", bm25=1.0, line=9)
    assert rank_candidates(parse_query("CookieJar"), [plain, defining])[0].candidate is defining
    apart, together = chunk("a", "cookie", bm25=1.0), chunk("a", "cookie storage", bm25=0.9, line=9)
    assert rank_candidates(QUERY, [apart, together])[0].candidate is together


def test_cosine_scores_range_from_the_fiftieth_file_to_the_best() -> None:
    """The cosine is added to the score; there is no separate ranking by vectors."""
    pool = [ChunkCandidate(f"{number:02}", 1, 1, OwnText(""), 0.0, 1 - number / 100) for number in range(60)]
    ranked = rank_candidates(QUERY, pool[::-1], vector_weight=0.34)
    assert [entry.candidate for entry in ranked[:50]] == pool[:50]
    assert [parts(ranked[place]) for place in (0, 49, 59)] == pytest.approx([0.34, 0, 0])
    assert ranked[0].reasons == ["cosine 1.00"]
    few = rank_candidates(QUERY, pool[50:], vector_weight=0.34)
    assert parts(few[-1]) == pytest.approx(0.34 * 0.41 / 0.5)


@pytest.mark.parametrize(("weight", "first"), [(0.0, "words"), (0.34, "words"), (0.9, "vector"), (1.0, "vector")])
def test_weight_of_vectors_decides_between_words_and_vectors(weight: float, first: str) -> None:
    pool = [
        ChunkCandidate("vector", 1, 1, OwnText(""), 0.1, 0.9),
        ChunkCandidate("words", 1, 1, OwnText(""), 1.0, 0.1),
    ]
    assert rank_candidates(QUERY, pool, vector_weight=weight)[0].candidate.path == first


def test_bm25_near_zero_is_not_given_as_a_reason() -> None:
    """The reason `BM25 0.0` explains nothing."""
    assert [only("cookie", chunk("y.py", bm25=bm25)).reasons for bm25 in (0.0, 1e-6, 0.04)] == [[], [], []]
    assert only("cookie", chunk("y.py", bm25=0.06)).reasons == ["BM25 0.1"]


def test_test_code_ranks_lower_and_has_a_reason() -> None:
    entry = only("cookie", chunk("tests/x.py", bm25=1.0))
    assert parts(entry) == pytest.approx(1 - 0.7)
    assert entry.reasons[-1] == f"{OTHER_CODE}, which the query does not ask for"
    assert order("cookie", chunk("tests/x.py", bm25=2.0), chunk("y.py", bm25=1.5)) == ["y.py", "tests/x.py"]


def test_second_chunks_rank_below_the_best_chunk_of_every_file() -> None:
    """Third chunks rank below second ones; among equal ones, the order is that of their files."""
    pool = [chunk("a", bm25=4.0 - line / 10, line=line) for line in (1, 2, 3)]
    pool += [chunk("b", bm25=0.1, line=line) for line in (1, 2)] + [chunk("tests/c.py", bm25=0.0)]
    ranked = rank_candidates(QUERY, pool)
    places = [(entry.candidate.path, entry.candidate.start_line) for entry in ranked]
    assert places == [("a", 1), ("b", 1), ("tests/c.py", 1), ("a", 2), ("b", 2), ("a", 3)]
    scores = [entry.score for entry in ranked]
    assert scores == sorted(set(scores), reverse=True) and scores[-1] > 0
    assert ranked[3].reasons == ["BM25 3.8", "1 better chunk in its file"]
    assert ranked[5].reasons == ["BM25 3.7", "2 better chunks in its file"]


def test_equal_scores_are_ordered_by_path_and_line() -> None:
    pool = [chunk(path, line=line) for path in "ba" for line in (2, 1)]
    places = [(entry.candidate.path, entry.candidate.start_line) for entry in rank_candidates(QUERY, pool)]
    assert places == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert rank_candidates(QUERY, pool[::-1]) == rank_candidates(QUERY, pool)


def test_no_candidates_give_an_empty_ranking() -> None:
    assert rank_candidates(QUERY, []) == []
    assert rank_candidates(QUERY, [chunk(bm25=0.0)])[0].score == 1.0


def test_most_relevant_lines_define_the_symbol_or_have_most_words() -> None:
    text = "# cookie storage\nx = 1\nclass CookieJar:\n"
    assert most_relevant_lines(text, parse_query("CookieJar"), [(2, "CookieJar")]) == [2]
    assert most_relevant_lines(text, parse_query("how cookies are stored in storage")) == [0]
    assert most_relevant_lines("a\nb", parse_query("cookie")) == [0, 1]
    assert most_relevant_lines("a\n\n", parse_query("cookie")) == [0, 1]


SESSION = """\
'''Sessions.'''


class Session:
    def login(self, password): ...

    def logout(self): ...


class Other:
    def login(self): ...
"""


@pytest.mark.parametrize(
    ("query", "symbol", "name"),
    [
        ("session login", None, "Session.login"),
        ("session login", "Session", "Session.login"),
        ("session logout", "Session", "Session.logout"),
        ("session password", None, "Session.login"),
        ("login", "Session", "Session.login"),
        ("Other.login", None, "Other.login"),
        ("Session", "Session", "Session"),
        ("session", None, "Session"),
        ("zebra", None, None),
    ],
)
def test_symbol_of_a_chunk_is_its_most_relevant_method(query: str, symbol: str | None, name: str | None) -> None:
    """The chunk of a method had the symbol of its class, or none."""
    source = SourceText("session.py", SESSION, exact=True)
    entry = RankedCandidate(ChunkCandidate("session.py", 1, 11, TextContent(SESSION), 1.0), 1.0)
    assert to_ranked_chunk(parse_query(query), entry, source, symbol).symbol == name


def test_chunk_above_a_definition_does_not_get_its_name() -> None:
    """Lines 1 to 3 of `import os`, above `class Big`, had the symbol `Big`."""
    source = SourceText("big.py", "import os\n\n\nclass Big:\n    size = 1\n", exact=True)
    entry = RankedCandidate(ChunkCandidate("big.py", 1, 3, TextContent("import os\n\n\n"), 1.0), 1.0)
    assert to_ranked_chunk(parse_query("Big"), entry, source).symbol is None


# Selection of the files to read


def picked(query: WordQuery, counts: dict[str, dict[str, int]], sizes: dict[str, int] | None = None) -> list[str]:
    roots = {root for one in counts.values() for root in one}
    having = {root: sum(root in one for one in counts.values()) for root in roots}
    return choose_files(query, counts, sizes or dict.fromkeys(counts, 1000), having, len(counts))


def test_file_with_several_query_words_precedes_one_with_many_hits_of_one_word() -> None:
    counts = {"both": {"x": 6, "y": 6}, "often": {"y": 500}, "one": {"x": 1}}
    assert picked(QUERY, counts)[0] == "both"


def test_rare_word_counts_more_than_a_common_one() -> None:
    counts = {"z": {"x": 2}, **{f"a{number}": {"y": 2} for number in range(9)}}
    assert picked(QUERY, counts)[0] == "z"


def test_file_named_by_the_query_precedes_equal_ones() -> None:
    root = rough_stem("cookie")
    assert picked(QUERY, {"a.py": {root: 3}, "cookies.py": {root: 3}})[0] == "cookies.py"


def test_word_that_only_a_path_has_chooses_among_files_of_one_name() -> None:
    """`rank("where is index.js of cart")` read the first 40 of many files with this name."""
    query = parse_query("where is index.js of cart")
    counts = {f"a{number:02}/index.js": {NAME_TERM: 1} for number in range(50)} | {"cart/index.js": {NAME_TERM: 1}}
    sizes = {path: number for number, path in enumerate(counts)}
    for total in (0, 9):
        assert choose_files(query, counts, sizes, {}, total)[0] == "cart/index.js"


def test_number_of_copies_among_the_chosen_files_is_limited() -> None:
    """Copies count as one file, and at most three times the limit are read."""
    root = rough_stem("cookie")
    copies = {f"a{number:03}.py": {root: 99} for number in range(4 * MAX_FILES_READ)}
    others = {f"b{number:03}.py": {root: 98 - number} for number in range(MAX_FILES_READ)}
    counts = copies | others
    chosen = choose_files(QUERY, counts, dict.fromkeys(counts, 100), {root: len(counts)}, len(counts))
    assert chosen == [*[*copies][: 1 + 3 * MAX_FILES_READ], *[*others][: MAX_FILES_READ - 1]]


def test_small_files_precede_large_ones_and_tests_come_last() -> None:
    root = rough_stem("cookie")
    counts = {name: {root: 5} for name in ("large", "small", "tests/a.py")}
    assert picked(QUERY, counts, {"large": 1_000_000, "small": 1000, "tests/a.py": 1000})[0] == "small"
    assert picked(QUERY, counts)[-1] == "tests/a.py"


def test_file_that_may_define_a_symbol_precedes_its_users() -> None:
    query = parse_query("CookieJar")
    roots = query_stems(query)
    uses = {f"a{number}.py": dict.fromkeys(roots, 50) for number in range(50)}
    for path in ("z.py", "z/__init__.py"):
        counts = {**uses, path: {DEFINITION_TERM: 1, **dict.fromkeys(roots, 1)}}
        assert picked(query, counts)[0] == path


@pytest.mark.parametrize(
    "line", ["class CookieJar:", "  def\tCookieJar(", "func (j *Jar) CookieJar(", "var shop.CookieJar ="]
)
def test_file_pattern_matches_definitions_of_symbols(line: str) -> None:
    """Also without Unicode's slow word boundary, which only names with letters outside of ASCII need."""
    query = parse_query("where is CookieJar defined?")
    roots = query_stems(query)
    found = re.search(file_pattern(roots, query.symbols).replace(r"(?-u:\b)", r"\b"), line)
    assert found is not None
    for stems, symbols in ((roots, query.symbols), (roots, ()), (["größ"], ["Größe"]), (["größ"], [])):
        ascii_only = all(map(str.isascii, (*stems, *symbols)))
        assert (r"\b" not in file_pattern(stems, symbols).replace(r"(?-u:\b)", "")) is ascii_only
    assert sorted(matched_stems(found[0], roots)) == sorted([DEFINITION_TERM, *roots])
    assert DEFINITION_TERM not in matched_stems("Cookie", roots)


@pytest.mark.parametrize(
    ("line", "defines"),
    [
        ("const absl::CookieJar jar;", False),
        ("const absl::CookieJar& jar", False),
        ("const CookieJar *jar", False),
        ("const CookieJar& jar", False),
        ("static CookieJar make();", False),
        ("private static\tCookieJar jar = null;", False),
        ("const CookieJar = 1", True),
        ("static CookieJar: Jar = 1;", True),
        ("let CookieJar: Jar", True),
        ("static CookieJar() {", True),
        ("type CookieJar struct {", True),
        ("class CookieJar final {", True),
        ("struct http::CookieJar {", True),
    ],
)
def test_variable_does_not_define_its_type(line: str, *, defines: bool) -> None:
    query = parse_query("where is CookieJar defined?")
    pattern = file_pattern(query_stems(query), query.symbols).replace(r"(?-u:\b)", r"\b")
    stems = [stem for found in re.finditer(pattern, line) for stem in matched_stems(found[0], query_stems(query))]
    assert (DEFINITION_TERM in stems) == defines
    assert {*query_stems(query)} <= {*stems}


def test_vanished_file_is_left_out() -> None:
    assert picked(QUERY, {"a": {"x": 1}, "gone": {"x": 1}}, {"a": 1}) == ["a"]


@given(
    st.lists(
        st.sampled_from(sorted(STOP_WORDS | {"cookie", "cook", "Größe", "fi.le", "HTTPServer", "a_b", "会话过期"})),
        min_size=1,
    )
)
def test_file_pattern_matches_each_stem_in_any_case_and_position(words: list[str]) -> None:
    roots = query_stems(parse_query(" ".join(words)))
    pattern = re.compile(file_pattern(roots).replace(r"(?-u:\b)", r"\b"))
    for root in roots:
        for text in (root, root.upper(), root.capitalize(), f"x_{root}ing", f"x{root.capitalize()}"):
            found = pattern.search(text)
            assert found is not None
            assert any(root.startswith(one) or one.startswith(root) for one in matched_stems(found[0], roots))
    assert matched_stems("WARNING: stopped", roots) == ()


def test_identifier_parts_are_its_lower_case_words() -> None:
    assert identifier_parts("HTTPServer_v2") == ["http", "server", "v2"]
    assert identifier_parts("x") == ["x"]
    assert identifier_parts("xY") == ["x", "y"]

"""What ranks chunks by a query: words, chunks, names and scores, without a file or a database."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ripwrap._ranking.choose import DEFINITION, chosen, pattern_of, roots_of, words_of
from ripwrap._ranking.chunks import LONGEST, chunks_of
from ripwrap._ranking.definitions import defines
from ripwrap._ranking.names import named, stem_of, weight_of
from ripwrap._ranking.score import COHERENCE, Candidate, Ranked, ranked, telling_line
from ripwrap._ranking.tokens import (
    LONGEST_WORD,
    STOP_WORDS,
    Query,
    parts_of,
    root_of,
    split_humps,
    spread,
    understood,
)

QUERY = understood("cookie storage")


def chunk(path: str = "x.py", text: str = "", bm25: float = 1.0, line: int = 1) -> Candidate:
    return Candidate(path, line, line, text, bm25)


def order(query: str, *pool: Candidate) -> list[str]:
    return [entry.candidate.path for entry in ranked(understood(query), pool)]


def only(query: str, candidate: Candidate) -> Ranked:
    """The ranking of a chunk beside a better one of another file, which takes the coherence."""
    rival = chunk("rival", bm25=1.0)
    (entry,) = (one for one in ranked(understood(query), [candidate, rival]) if one.candidate is candidate)
    return entry


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
        ("x", ("x",)),
    ],
)
def test_a_query_becomes_its_words_in_lower_case_without_stop_words_unless_there_are_no_others(
    text: str, words: tuple[str, ...]
) -> None:
    assert understood(text).words == words


@pytest.mark.parametrize("text", ["", "  ", "?!", "__", "→"])
def test_a_query_without_a_word_is_an_error_that_says_so(text: str) -> None:
    with pytest.raises(ValueError, match="there is no word in the query"):
        understood(text)


def test_a_page_of_text_is_asked_for_by_the_words_that_say_most_and_the_rest_is_told() -> None:
    prose = [f"word{number}" for number in range(100, 1000)]
    query = understood(" ".join(["7", *prose, "by 20261122 expireSessions or a serializer"]))
    assert query.words == (*prose[:29], "expire", "sessions", "serializer")
    assert query.left_out == len(prose) - 29 + 2
    assert query.remark.startswith(f"{query.left_out} of the query's words and names are not looked for: at most 32")
    assert understood(" ".join(prose[:32])).words == tuple(prose[:32])
    assert understood(" ".join(prose[:32])).remark == ""
    many = understood(" ".join(f"get_x{number}" for number in range(40)))
    assert (len(many.symbols), len(many.words), many.left_out) == (32, 32, 8 + 9)


def test_a_word_that_is_too_long_is_left_out_and_told_and_an_error_if_there_is_no_other() -> None:
    query = understood("cookie " + "x" * 100_000 + "Y()")
    assert (query.words, query.symbols, query.left_out) == (("cookie",), (), 2)
    assert len(query.match) < 100
    assert understood("x" * LONGEST_WORD).words == ("x" * LONGEST_WORD,)
    with pytest.raises(ValueError, match=r"^no word of the query 'x{100}…' has 200 characters or less; ask with"):
        understood("x" * 100_000)
    with pytest.raises(ValueError, match=r"^there is no word in the query '[?]{100}…'; ask with"):
        understood("?" * 1_000_000)


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
def test_where_words_have_no_blanks_two_characters_are_one(text: str, words: tuple[str, ...]) -> None:
    query = understood(text)
    assert query.words == words
    assert not query.symbolic


def test_a_name_in_such_a_script_is_one_if_it_is_asked_for() -> None:
    query = understood("where is 会话过期 defined?")
    assert (query.symbols, query.symbolic) == (("会话过期",), True)
    assert '"class 会话 话过 过期"' in query.definitions


def test_accents_are_the_same_however_they_are_written() -> None:
    assert understood("nai\u0308ve").words == understood("na\u00efve").words == ("na\u00efve",)
    assert defines("def nai\u0308ve(): pass", "na\u00efve")
    assert named("src/nai\u0308ve.py", ("na\u00efve",)) == ["na\u00efve"]
    assert telling_line("z\nnai\u0308ve\n", understood("na\u00efve x_y")) == 1


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
def test_identifiers_in_a_query_are_symbols_and_who_asks_where_one_is_defined_asks_for_it(
    text: str, symbols: tuple[str, ...], symbolic: bool
) -> None:
    query = understood(text)
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
def test_camel_case_is_taken_apart(text: str, split: str) -> None:
    assert split_humps(text) == split


@given(st.text())
def test_taking_camel_case_apart_adds_nothing_but_spaces(text: str) -> None:
    assert split_humps(text).replace(" ", "") == text.replace(" ", "")


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
def test_text_is_indexed_as_it_is_asked_for(text: str, spread_out: str) -> None:
    assert spread(text).split() == spread_out.split()


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
def test_forms_of_a_word_have_one_root(family: tuple[str, ...]) -> None:
    assert len({root_of(word) for word in family}) == 1


@given(st.text(min_size=1))
def test_a_root_begins_its_word(word: str) -> None:
    assert word.startswith(root_of(word))
    assert root_of(word)


@given(st.text())
def test_any_text_is_a_query_or_an_error_that_says_so(text: str) -> None:
    try:
        query = understood(text)
    except ValueError as error:
        assert "there is no word" in str(error)  # noqa: PT017 - or it is a query
        return
    assert query.words
    assert query.match.count('"') % 2 == 0
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
def test_chunks_have_every_line_of_a_file_once_in_order(lines: list[str], ended: bool) -> None:
    text = "\n".join(lines) + ("\n" if ended else "")
    at, line = 0, 1
    for piece in chunks_of(text):
        assert (piece.start, piece.start_line) == (at, line)
        assert piece.end > piece.start
        assert piece.end == len(text) or text[piece.end - 1] == "\n"
        body = text[piece.start : piece.end]
        assert len(body) <= LONGEST or body.rstrip("\n").count("\n") == 0
        assert piece.end_line == line + body.removesuffix("\n").count("\n")
        at, line = piece.end, piece.end_line + 1
    assert at == len(text)


@given(st.binary(max_size=5000))
def test_any_bytes_become_chunks(raw: bytes) -> None:
    text = raw.decode("utf-8", "surrogateescape")
    assert "".join(text[piece.start : piece.end] for piece in chunks_of(text)) == text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_chunk_ends_before_a_definition_with_what_stands_above_it(newline: str) -> None:
    body = newline.join(["    x = 1"] * 40)
    text = newline.join(["def first():", body, "", "x = 2", "", "# Why.", "@decorated", "def second():", body, body])
    first, second, *_ = chunks_of(text)
    assert text[first.end :].startswith("# Why.")
    assert second.start_line == text[: first.end].count("\n") + 1


def test_where_no_definition_is_a_chunk_ends_behind_a_blank_line() -> None:
    text = "\n".join(["a = 1"] * 100) + "\n\n" + "\n".join(["b = 2"] * 100)
    first = next(chunks_of(text))
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
def test_words_are_found_in_the_names_of_file_and_folder_in_any_form(path: str, words: list[str]) -> None:
    assert named(path, ("cookie", "storage", "http")) == words
    assert named(path.replace("/", "\\"), ("cookie", "storage", "http")) == words


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
        ("src/compat.py", 0.3),
        ("legacy/cookies.py", 0.3),
        ("src/__init__.py", 0.5),
        ("tests/__init__.py", 0.15),
        ("src/latest/attest.py", 1.0),
        ("contest/cookies.py", 1.0),
    ],
)
def test_tests_examples_legacy_code_and_init_count_less(path: str, weight: float) -> None:
    assert weight_of(path, QUERY)[0] == pytest.approx(weight)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("tests of cookies", "tests/cookies.py"),
        ("an example of cookies", "examples/cookies.py"),
        ("legacy cookies", "legacy/cookies.py"),
        ("what the package exports", "cookies/__init__.py"),
    ],
)
def test_but_not_if_the_query_asks_for_them(query: str, path: str) -> None:
    assert weight_of(path, understood(query)) == (1.0, ())


@pytest.mark.parametrize(
    ("path", "stem"), [("a/http-client.test.js", "httpclient"), ("CookieJar.py", "cookiejar"), (".bashrc", "bashrc")]
)
def test_the_stem_of_a_file_is_one_word(path: str, stem: str) -> None:
    assert stem_of(path) == stem


# Scores, each by what it is worth


@pytest.mark.parametrize(
    "line",
    [
        "class CookieJar(Base):",
        "async def CookieJar():",
        "function CookieJar(a) {",
        "export default class CookieJar extends A {",
        "const CookieJar = () => 1",
        "func (jar *Jar) CookieJar(a int) error {",
        "pub struct CookieJar<T> {",
        "exports.CookieJar = function () {",
        "  CookieJar: function (a) {",
        "CookieJar: TypeAlias = dict",
        "static int CookieJar(struct jar *jar) {",
        "std::string Shop::CookieJar(int a) const {",
        "#define CookieJar 1",
        "macro_rules! CookieJar {",
        "class CookieJar",
        "  def CookieJar!",
        "class CookieJar < Base",
        "type CookieJar struct {",
        "type CookieJar map[string]int",
        "type CookieJar jars.Jar",
        "type CookieJar = number",
        "public sealed partial class CookieJar : Jar",
        "class CookieJar final : public Jar {",
        "pub(crate) async fn CookieJar<T>(",
        "  let x = class CookieJar extends Jar {",
        "object CookieJar extends Jar",
        "val CookieJar: Jar by lazy {",
        "sub CookieJar {",
        "def CookieJar: Int = 1",
    ],
)
def test_definitions_are_known_in_the_usual_languages(line: str) -> None:
    assert defines(f"x = 1\n{line}\n", "CookieJar")


@pytest.mark.parametrize(
    "line",
    [
        "return CookieJar()",
        "class CookieJars:",
        "class OldCookieJar:",
        "jar = CookieJar(1)",
        "if CookieJar == 1:",
        "isinstance(jar, CookieJar)",
        "import CookieJar",
        "# a class CookieJar, which is large",
        "This class CookieJar is deprecated; use another type",
        "    # Guard the sniffer's type CookieJar against others",
        "something of type CookieJar",
        "  when you let CookieJar go on",
        "static CookieJar jar;",
    ],
)
def test_a_use_is_no_definition(line: str) -> None:
    assert not defines(f"x = 1\n{line}\n", "CookieJar")


def test_without_anything_else_bm25_decides() -> None:
    assert order("cookie storage", chunk("a", bm25=1.0), chunk("b", bm25=3.0), chunk("c", bm25=2.0)) == ["b", "c", "a"]


def test_a_chunk_that_defines_the_symbol_gets_three_and_four_and_a_half_if_its_file_is_named_like_it() -> None:
    text = "class CookieJar:\n"
    plain = only("CookieJar", chunk("shop.py", text, bm25=0.5))
    alike = only("CookieJar", chunk("cookie_jar.py", text, bm25=0.5))
    assert plain.score == pytest.approx(0.5 + 3 + COHERENCE)
    assert alike.score == pytest.approx(0.5 + 4.5 + 1 + COHERENCE)
    assert 'defines "CookieJar"' in plain.reasons
    assert 'defines "CookieJar", as its file is called' in alike.reasons


def test_a_file_whose_name_has_the_words_gets_their_share() -> None:
    plain, half, whole = (only("cookie storage", chunk(path, bm25=0.5)) for path in ("x", "cookie", "storage/cookie"))
    assert half.reasons[0] == 'path has "cookie"'
    assert whole.reasons[0] == 'path has "cookie", "storage"'
    assert plain.score < half.score < whole.score
    assert whole.score == pytest.approx(0.5 + 1 + COHERENCE)


def test_the_best_chunk_of_a_file_that_has_many_is_lifted() -> None:
    many = [chunk("many", bm25=0.9, line=line) for line in (1, 2, 3)]
    assert order("cookie", chunk("one", bm25=1.0), *many)[0] == "many"
    (best, *_) = ranked(QUERY, [chunk("one", bm25=1.0), *many])
    assert best.score == pytest.approx(0.9 + COHERENCE)
    assert best.reasons == ["BM25 0.9", "the best of 3 chunks of its file"]


def test_a_test_comes_behind_what_it_tests_and_says_why() -> None:
    entry = only("cookie", chunk("tests/x.py", bm25=1.0))
    assert entry.score == pytest.approx((1.0 + COHERENCE) * 0.3)
    assert entry.reasons[-1] == "test code, which was not asked for"
    assert order("cookie", chunk("tests/x.py", bm25=2.0), chunk("y.py", bm25=1.0)) == ["y.py", "tests/x.py"]


def test_further_chunks_of_a_file_count_a_quarter_each() -> None:
    pool = [chunk("a", bm25=4.0, line=line) for line in (1, 2, 3)]
    first, second, third = ranked(QUERY, pool)
    assert [first.candidate.start_line, second.candidate.start_line, third.candidate.start_line] == [1, 2, 3]
    assert (second.score, third.score) == pytest.approx((0.25, 0.0625))
    assert second.reasons == ["BM25 4.0", "its file has 1 better"]


def test_equal_chunks_are_in_the_order_of_their_paths_and_lines_however_they_come() -> None:
    pool = [chunk(path, line=line) for path in "ba" for line in (2, 1)]
    places = [(entry.candidate.path, entry.candidate.start_line) for entry in ranked(QUERY, pool)]
    assert places == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert ranked(QUERY, pool[::-1]) == ranked(QUERY, pool)


def test_an_empty_pool_is_an_empty_ranking() -> None:
    assert ranked(QUERY, []) == []
    assert ranked(QUERY, [chunk(bm25=0.0)])[0].score == 0.0


def test_the_limit_counts_chunks() -> None:
    assert len(ranked(QUERY, [chunk(str(number)) for number in range(9)], 4)) == 4


def test_the_telling_line_defines_the_symbol_or_has_most_of_the_words() -> None:
    text = "# cookie storage\nx = 1\nclass CookieJar:\n"
    assert telling_line(text, understood("CookieJar")) == 2
    assert telling_line(text, understood("how cookies are stored in storage")) == 0
    assert telling_line("a\nb", understood("cookie")) == 0


# Which files are read


def picked(query: Query, counts: dict[str, dict[str, int]], sizes: dict[str, int] | None = None) -> list[str]:
    roots = {root for one in counts.values() for root in one}
    having = {root: sum(root in one for one in counts.values()) for root in roots}
    return chosen(query, counts, sizes or dict.fromkeys(counts, 1000), having, len(counts))


def test_a_file_with_several_of_the_words_is_before_one_that_has_one_of_them_very_often() -> None:
    counts = {"both": {"x": 6, "y": 6}, "often": {"y": 500}, "one": {"x": 1}}
    assert picked(QUERY, counts)[0] == "both"


def test_a_rare_word_counts_more_than_one_that_all_files_have() -> None:
    counts = {"z": {"x": 2}, **{f"a{number}": {"y": 2} for number in range(9)}}
    assert picked(QUERY, counts)[0] == "z"


def test_a_file_that_is_named_by_the_query_is_before_its_like() -> None:
    root = root_of("cookie")
    assert picked(QUERY, {"a.py": {root: 3}, "cookies.py": {root: 3}})[0] == "cookies.py"


def test_a_large_file_needs_more_hits_and_tests_come_behind() -> None:
    root = root_of("cookie")
    counts = {name: {root: 5} for name in ("large", "small", "tests/a.py")}
    assert picked(QUERY, counts, {"large": 1_000_000, "small": 1000, "tests/a.py": 1000})[0] == "small"
    assert picked(QUERY, counts)[-1] == "tests/a.py"


def test_a_file_that_may_define_a_symbol_is_before_all_that_use_it() -> None:
    query = understood("CookieJar")
    roots = roots_of(query)
    uses = {f"a{number}.py": dict.fromkeys(roots, 50) for number in range(50)}
    for path in ("z.py", "z/__init__.py"):
        counts = {**uses, path: {DEFINITION: 1, **dict.fromkeys(roots, 1)}}
        assert picked(query, counts)[0] == path


@pytest.mark.parametrize(
    "line", ["class CookieJar:", "  def\tCookieJar(", "func (j *Jar) CookieJar(", "var shop.CookieJar ="]
)
def test_rg_is_asked_for_definitions_of_symbols_too(line: str) -> None:
    query = understood("where is CookieJar defined?")
    roots = roots_of(query)
    found = re.search(pattern_of(roots, query.symbols).replace(r"(?-u:\b)", r"\b"), line)
    assert found is not None
    assert sorted(words_of(found[0], roots)) == sorted([DEFINITION, *roots])
    assert DEFINITION not in words_of("Cookie", roots)


def test_a_file_that_has_gone_is_left_out() -> None:
    assert picked(QUERY, {"a": {"x": 1}, "gone": {"x": 1}}, {"a": 1}) == ["a"]


@given(
    st.lists(
        st.sampled_from(sorted(STOP_WORDS | {"cookie", "cook", "Größe", "fi.le", "HTTPServer", "a_b", "会话过期"})),
        min_size=1,
    )
)
def test_the_pattern_for_rg_matches_each_root_as_a_word_a_hump_and_in_capitals(words: list[str]) -> None:
    roots = roots_of(understood(" ".join(words)))
    pattern = re.compile(pattern_of(roots).replace(r"(?-u:\b)", r"\b"))
    for root in roots:
        for text in (root, root.upper(), root.capitalize(), f"x_{root}ing", f"x{root.capitalize()}"):
            found = pattern.search(text)
            assert found is not None
            assert any(root.startswith(one) or one.startswith(root) for one in words_of(found[0], roots))
    assert words_of("WARNING: stopped", roots) == ()


def test_parts_are_what_identifiers_are_made_of() -> None:
    assert parts_of("HTTPServer_v2") == ["http", "server", "v2"]
    assert parts_of("x") == ["x"]
    assert parts_of("xY") == ["x", "y"]

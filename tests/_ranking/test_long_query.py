"""Tests for the reading of long queries, such as pasted issues: titles, tracebacks, paths and weights of words."""

import pytest

from ripwrap._ranking.long_query import MAX_QUERY_CHARS, mention_score, read_long_text
from ripwrap._ranking.names import names_in
from ripwrap._ranking.word_query import parse_query

PYTHON = """\
Traceback (most recent call last):
  File "/home/me/app.py", line 22, in <module>
    main()
  File "/usr/lib/python3/site-packages/django/db/models/query.py", line 803, in bulk_create
    objs
ValueError: the order of rows is wrong"""
JAVASCRIPT = """\
TypeError: x is not a function
    at Object.parseHeaders (/srv/app/node_modules/axios/lib/core/parse.js:12:5)
    at async Promise.all (index 0)
    at /srv/app/server.js:3:1"""
JAVA = """\
java.lang.IllegalStateException: closed
	at com.google.gson.stream.JsonReader.doPeek(JsonReader.java:455)
	at com.example.Main.main(Main.java:7)"""
GO = """\
panic: runtime error: index out of range

goroutine 1 [running]:
github.com/gin-gonic/gin.(*Context).BindJSON(0xc000)
	/root/go/pkg/mod/github.com/gin-gonic/gin/context.go:700 +0x1d"""
RUST = """\
thread 'main' panicked at crates/searcher/src/lines.rs:40:9:
   4: grep_searcher::lines::LineIter::next
             at ./crates/searcher/src/lines.rs:40:9"""
CSHARP = """\
System.NullReferenceException: oops
   at Serilog.Core.Logger.Dispatch(LogEvent e) in C:\\src\\serilog\\Core\\Logger.cs:line 378"""
PYTEST = "E   assert 1 == 2\n\ntests/test_jar.py:12: AssertionError\nsrc/shop/jar.py:7:3: error: no"

TRACEBACKS = {
    "python": (PYTHON, "django/db/models/query.py", "bulk_create"),
    "javascript": (JAVASCRIPT, "lib/core/parse.js", "parseHeaders"),
    "java": (JAVA, "gson/src/main/java/com/google/gson/stream/JsonReader.java", "doPeek"),
    "go": (GO, "context.go", "BindJSON"),
    "rust": (RUST, "crates/searcher/src/lines.rs", "next"),
    "csharp": (CSHARP, "src/Serilog/Core/Logger.cs", "Dispatch"),
    "pytest": (PYTEST, "src/shop/jar.py", ""),
}


def issue(body: str, title: str = "Rows come in the wrong order when they are created together") -> str:
    prose = "It should keep the order of the rows that were given, as it did in the versions before."
    return f"{title}\n\n{prose}\n\n```\n{body}\n```\n"


@pytest.mark.parametrize(("body", "path", "function"), TRACEBACKS.values(), ids=TRACEBACKS)
def test_tracebacks_name_files_and_functions(body: str, path: str, function: str) -> None:
    long = read_long_text(issue(body))
    assert mention_score(path, long.mentions) >= 0.5
    assert mention_score("docs/other.py", long.mentions) == 0
    if function:
        assert function in long.functions
        assert function in (parse_query(issue(body)).symbols)
    assert "at Object" not in long.prose and "line 803" not in long.prose


def test_innermost_frame_counts_most() -> None:
    for body, inner, outer in (
        (PYTHON, "db/models/query.py", "me/app.py"),
        (JAVASCRIPT, "core/parse.js", "app/server.js"),
    ):
        mentions = read_long_text(issue(body)).mentions
        assert mention_score(inner, mentions) > mention_score(outer, mentions) > 0


@pytest.mark.parametrize(
    ("text", "path", "score"),
    [
        ("see django/db/models.py", "django/db/models.py", 1.0),
        ("see django/db/models.py:12:3", "lib/django/db/models.py", 1.0),
        (r"see C:\work\django\db\models.py", "django/db/models.py", 1.0),
        ("see https://github.com/a/b/blob/main/db/models.py#L12", "db/models.py", 1.0),
        ("see `models.py`", "django/db/models.py", 0.7),
        ("import django.db.models", "django/db/models.py", 0.8),
        ("import django.db.models", "django/db/models/__init__.py", 0.8),
        ("from django.db.models.Model", "django/db/models.py", 0.72),
        ("the folder db/models", "django/db/models.py", 0.6),
        ("see other/models.py", "django/db/models.py", 0.0),
        ("models and views", "django/db/models.py", 0.0),
        ("version 1.2.3 of it", "1/2/3.py", 0.0),
    ],
)
def test_paths_and_modules_are_mentioned(text: str, path: str, score: float) -> None:
    mentions = read_long_text(issue(text)).mentions
    assert mention_score(path, mentions) == pytest.approx(score)
    names = names_in(parse_query(issue(text)))
    assert (names.weight(path) > 0) == (score > 0)


def test_title_is_the_first_line_with_words_or_the_error_of_a_traceback() -> None:
    assert read_long_text("<!-- a template -->\n\n## Wrong order\nbody").title == "## Wrong order"
    assert read_long_text(f"{PYTHON}\n").title == "ValueError: the order of rows is wrong"
    assert read_long_text(GO).title.startswith("panic: runtime error")
    long = read_long_text("word " * 200)
    assert len(long.title) == 400 and len(long.prose.split()) == 120


def test_words_of_the_title_and_of_code_have_higher_weights() -> None:
    query = parse_query(issue("the cache of the parser, when it is reset, is stale `cache`", title="Cookies are lost"))
    assert query.long is not None
    weights = query.long.weights
    assert query.title == ("cookies", "lost")
    assert weights["cookies"] > weights["cache"] > weights["parser"] > 0
    assert not {"the", "traceback"} & weights.keys()
    assert "example" in parse_query(issue("an example", title="The example is wrong")).title


@pytest.mark.parametrize(
    "text",
    [
        "Wrong order\n" + "x" * 1_000_000,
        "Wrong order\n" + "word " * 200_000,
        "Wrong order\n" + "a.b/" * 250_000,
        "Wrong order\n" + "at (" * 250_000,
        "Wrong order\n" + ">" * 1_000_000,
        "Wrong order\n" + "<!--" * 250_000,
        "Wrong order\n" + "`" * 1_000_000,
        "Wrong order\n" + "at x (" + "a:" * 500_000,
        "Wrong order\n" + "\n".join(f"name_{number}" for number in range(100_000)),
        "Wrong order\n" + "\u4e2d\u6587" * 500_000,
    ],
    ids=["x", "words", "paths", "frames", "quotes", "comments", "ticks", "positions", "names", "chinese"],
)
@pytest.mark.timeout(20)
def test_very_long_queries_are_cut_and_answered(text: str) -> None:
    query = parse_query(text)
    assert query.words[:2] == ("wrong", "order")
    assert len(query.words) <= 32 and len(query.symbols) <= 32
    assert query.remark.startswith(f"only the first {MAX_QUERY_CHARS} characters of the query are searched, ")


def test_long_queries_without_telling_words_search_what_they_have() -> None:
    assert set(parse_query("where is the\n" * 40).words) == {"where", "is", "the"}
    assert parse_query("Steps to reproduce\n" * 20).title == ("steps", "reproduce")
    for text in ("?! \n" * 100, "\n" * 1_000):
        with pytest.raises(ValueError, match="there is no word in the query"):
            parse_query(text)
    with pytest.raises(ValueError, match="more than 200 characters"):
        parse_query("x" * 300 + "\n" + "y" * 300)


def test_lists_of_paths_and_short_lines_are_short_queries() -> None:
    assert parse_query(" ".join(f"a{number}.py" for number in range(100))).long is None
    assert parse_query("cookies\nare lost").long is None
    assert parse_query("cookies\n" + " " * 1_000_000 + "lost").words == ("cookies", "lost")
    assert parse_query(" ".join(f"word{number}" for number in range(21))).long is not None

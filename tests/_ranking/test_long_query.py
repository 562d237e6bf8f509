"""Tests for the reading of long queries, such as pasted issues: titles, tracebacks, paths and weights of words."""

import pytest

from ripwrap._ranking.paths import names_in
from ripwrap._ranking.word_query import MAX_QUERY_CHARS, mention_score, parse_query, read_long_text

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
JAVA_MODULE = """\
java.lang.IllegalStateException: closed
	at java.base/java.util.ArrayList.get(ArrayList.java:427)
Caused by: com.example.LidError: stuck
	at app//com.example.Lid.lambda$open$0(Lid.java:9) ~[shop.jar:1.2]
	at com.example.Lid.<init>(Lid.java:3)"""
BROWSER = """\
TypeError: x is not a function
    at Object.<anonymous> (https://example.com/lid.js:1:23456)
    at open (http://localhost:3000/static/js/main.chunk.js?v=3:12:5)"""
FIREFOX = "TypeError: x is not a function\nopen@https://example.com/src/app.js:10:3"
WINDOWS = "Error: x\n    at Foo.bar [as baz] (C:\\work\\app\\lib\\parse.js:12:5)"
GO_GENERIC = "panic: x\n\ngoroutine 1 [running]:\nmain.Map[...](...)\n\t/home/me/jar/map.go:3 +0x1d"
GO_CREATED = "created by net/http.(*Server).Serve in goroutine 1\n\t/usr/go/src/net/http/server.go:3086 +0x5cb"
RUST_IMPL = "   1: <alloc::vec::Vec<T> as shop::Jar>::open_lid\n             at ./src/jar.rs:3:4"
RUST_CLOSURE = "   2: shop::run::{{closure}}\n             at ./src/run.rs:1:1"
CSHARP_ASYNC = "   at Shop.Jar.<OpenAsync>d__3.MoveNext() in C:\\src\\shop\\Jar.cs:line 7"
CSHARP_GENERIC = "   at Shop.Lid`1.Close[T](T x, Int32 y) in /src/shop/Lid.cs:line 9"
CSHARP_LAMBDA = "   at Shop.Run.<>c.<Main>b__0_0() in /src/Run.cs:line 1"
QUOTED = '> Traceback (most recent call last):\n>   File "C:\\work\\shop\\jar.py", line 3, in Jar.open\n>     x'
IPYTHON = "KeyError\nFile ~/work/shop/jar.py:12, in Jar.open(self, x)\n     11 def"
RUBY = "lib/jar.rb:12:in `open': x (Error)\n\tfrom lib/lid.rb:3:in 'Lid#close'"

TRACEBACKS = {
    "java module": (JAVA_MODULE, "com/example/Lid.java", "open"),
    "browser": (BROWSER, "static/js/main.chunk.js", "open"),
    "firefox": (FIREFOX, "src/app.js", "open"),
    "windows": (WINDOWS, "lib/parse.js", "bar"),
    "go closure": ("main.main.func1()\n\t/home/me/run.go:3 +0x1d", "me/run.go", "main"),
    "go generic": (GO_GENERIC, "jar/map.go", "Map"),
    "go created": (GO_CREATED, "net/http/server.go", "Serve"),
    "rust impl": (RUST_IMPL, "src/jar.rs", "open_lid"),
    "rust closure": (RUST_CLOSURE, "src/run.rs", "run"),
    "csharp async": (CSHARP_ASYNC, "shop/Jar.cs", "OpenAsync"),
    "csharp generic": (CSHARP_GENERIC, "shop/Lid.cs", "Close"),
    "csharp lambda": (CSHARP_LAMBDA, "src/Run.cs", "Main"),
    "quoted": (QUOTED, "shop/jar.py", "open"),
    "ipython": (IPYTHON, "shop/jar.py", "open"),
    "pytest short": ("src/shop/jar.py:12: in open_lid\n    x", "src/shop/jar.py", "open_lid"),
    "ruby": (RUBY, "lib/jar.rb", "open"),
    "ruby caller": (RUBY, "lib/lid.rb", "close"),
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
    assert not any(frame in long.prose for frame in ("at Object", "line 803", "https:", "0x1d", "~["))


@pytest.mark.parametrize("name", ["<init>", "<module>", "Object.<anonymous>"])
def test_names_that_no_file_defines_are_left_out(name: str) -> None:
    lines = f'    at {name} (/srv/a.js:1:2)\n    at com.shop.Jar.{name}(Jar.java:1)\n  File "a.py", line 1, in {name}'
    functions = read_long_text(issue(lines)).functions
    assert not functions


def test_message_behind_a_place_is_read() -> None:
    text = "src/jar.py:7:3: error: the lid is stuck"
    assert "the lid is stuck" in read_long_text(issue(text)).prose
    long = read_long_text(issue("", title=text))
    assert long.title == text and mention_score("src/jar.py", long.mentions) == 1


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
        "Wrong order\nat" + " " * 19_000 + "x" * 1_000_000,
        "Wrong order\n" + ("at" + " " * 2_000 + "(x\n") * 500,
        "Wrong order\n" + ">" * 1_000_000,
        "Wrong order\n" + "<!--" * 250_000,
        "Wrong order\n" + "`" * 1_000_000,
        "Wrong order\n" + "at x (" + "a:" * 500_000,
        "Wrong order\n" + "\n".join(f"name_{number}" for number in range(100_000)),
        "Wrong order\n" + "\u4e2d\u6587" * 500_000,
    ],
    ids=[
        "x",
        "words",
        "paths",
        "frames",
        "spaces",
        "more spaces",
        "quotes",
        "comments",
        "ticks",
        "positions",
        "names",
        "chinese",
    ],
)
@pytest.mark.timeout(20)
def test_very_long_queries_are_cut_and_answered(text: str) -> None:
    query = parse_query(text)
    assert query.words[:2] == ("wrong", "order")
    assert len(query.words) <= 32 and len(query.symbols) <= 32
    assert query.remark.startswith(f"only the first {MAX_QUERY_CHARS} characters of the query are searched, ")


def test_words_behind_the_limit_are_not_read() -> None:
    query = parse_query("Wrong order\n" + "word\n" * (MAX_QUERY_CHARS // 5) + "behind getBehind() a/behind.py")
    assert query.long is not None
    assert "behind" not in query.long.weights
    assert not query.symbols and not query.long.mentions


def test_number_of_mentions_and_length_of_names_are_bounded() -> None:
    """Each mention is compared with each path, and each name with each definition."""
    paths = "\n".join(f"src/part{number}.py" for number in range(200))
    query = parse_query(f"Wrong order in src/last.py\n\n{paths}\n\nget_{'x' * 300}() and get_it()")
    assert query.long is not None
    assert len(query.long.mentions) == 24
    assert query.long.mentions[0][0] == "src/last.py"  # the title counts most
    assert query.symbols == ("get_it",)


def test_comment_of_a_template_without_an_end_hides_the_rest() -> None:
    query = parse_query(issue("<!-- secret") + "word " * 20)
    assert query.long is not None and "order" in query.long.weights
    assert not {"secret", "word"} & query.long.weights.keys()


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


WRAPPED = """\
how does the parser split quoted strings when a string
has a line break inside, and where are the tokens that it
makes from it joined again before the writer
prints them to the file?"""
PARSE_HEADER = """\
def parse_header(value):
    key, _, rest = value.partition(';')
    options = dict(read_options(rest))
    if not key:
        raise BadHeader(value)
    return key, options
"""


@pytest.mark.parametrize(
    "text",
    [
        WRAPPED,
        PARSE_HEADER.replace("\n", "\r\n"),
        "\n".join(f"order_of_word{number}" for number in range(10)),
        "\n".join(f"word{number}" for number in range(30)),
        "\u89e3\u6790\u5668\u5982\u4f55\u5904\u7406\u5f15\u53f7\n" * 18,
    ],
    ids=["wrapped", "code", "list", "words", "chinese"],
)
def test_one_paragraph_is_read_as_one_line(text: str) -> None:
    query, line = parse_query(text), parse_query(" ".join(text.split()))
    assert (query.words, query.title, query.symbols) == (line.words, line.title, line.symbols)
    assert (query.long is None) == (line.long is None)


def test_heading_of_a_template_is_no_title() -> None:
    for heading in ("### Describe the bug", "**Steps to reproduce**", "> ## Description"):
        long = parse_query(issue(PYTEST, title=f"{heading}\n\nThe lid of the jar is stuck")).long
        assert long is not None
        assert long.title == ("lid", "jar", "stuck")
    assert parse_query(issue(PYTEST, title="Windows setup")).title == ("windows", "setup")


def test_pairs_of_chinese_characters_tell_as_much_as_words() -> None:
    text = issue("\u89e3\u6790\u5668 parser\n" + PYTEST, title="Wrong order")
    assert (long := parse_query(text).long) is not None
    assert long.weights["\u89e3\u6790"] == long.weights["parser"]
    assert long.spare.index("\u89e3\u6790") < long.spare.index("parser")

"""Ranked search without an index, on planted trees: results, their order, and skipped files."""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

import ripwrap
from ripwrap import RankedChunk, sync
from ripwrap._operations import rank as _rank
from ripwrap._operations.rank import MAX_FILES_READ, RankingDeadline, rank_request, run_rank
from ripwrap._ranking.document import MAX_FILE_BYTES, SourceText, cut_to_limit, decode_source
from ripwrap._ranking.scoring import POOL_SIZE
from ripwrap._ranking.word_query import parse_query
from ripwrap._ripgrep.command import words_query
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.page_collector import TermCounts
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap.binary import RgBinary
from ripwrap.index import Index
from support.opening import before_opening
from support.paths import native, slashed
from support.waiting import until

Plant = Callable[..., Path]
T = TypeVar("T")

SHOP: dict[str | bytes, str | bytes] = {
    "src/shop/cookies.py": (
        '"""Cookies of a browser."""\n\n\nclass CookieJar:\n    """Keeps cookies."""\n\n'
        "    def store(self, cookie):\n        self.jar.append(cookie)\n"
    ),
    "src/shop/cart.py": "def total(items):\n    # a cookie is no item\n    return sum(items)\n",
    "src/shop/http.js": "function setCookie(name) {\n  return jar.store(name);\n}\n",
    "tests/test_cookies.py": "def test_cookies_are_stored():\n    CookieJar().store('cookie')  # cookies stored\n",
    "README.md": "# Shop\n\nIt sells things.\n",
}


def paths(places: list[RankedChunk]) -> list[str]:
    return [slashed(place.path) for place in places]


@pytest.fixture
def shop(plant: Plant) -> Path:
    return plant(SHOP)


def test_rank_orders_places_for_a_question_best_first(shop: Path, rg: RgBinary) -> None:
    places = sync.rank("how are cookies stored", cwd=shop, rg=rg.path)
    assert places[0].path == os.path.join("src", "shop", "cookies.py")
    assert sorted(paths(places)) == sorted(set(SHOP) - {"README.md"})
    best = places[0]
    assert (best.start_line, best.end_line) == (1, 8)
    assert best.text == SHOP["src/shop/cookies.py"]
    assert best.score > places[1].score > places[-1].score > 0
    assert 'path has "cookies"' in best.reasons
    assert not any("BM25 0.0" in place.reasons for place in places)


def test_rank_puts_definitions_of_a_name_first_and_tests_later(shop: Path, rg: RgBinary) -> None:
    for query in ("CookieJar", "where is CookieJar defined?", "class CookieJar"):
        places = sync.rank(query, cwd=shop, rg=rg.path)
        assert (places[0].path, places[0].symbol) == (native("src/shop/cookies.py"), "CookieJar")
        assert 'defines "CookieJar"' in places[0].reasons
        (test,) = (place for place in places if place.path.startswith("tests"))
        assert "a test, an example or vendored code, which the query does not ask for" in test.reasons


@pytest.mark.slow
def test_rank_reads_the_definition_of_a_widely_used_name(plant: Plant, rg: RgBinary) -> None:
    uses = {f"src/cookie_jar/{number}.py": "jar = CookieJar()  # a CookieJar of cookies\n" * 20 for number in range(60)}
    folder = plant({**uses, "src/x/__init__.py": "import a\n\n\nclass CookieJar:\n    pass\n" + "import b\n" * 5000})
    for query in ("CookieJar", "where is CookieJar defined?", "x.CookieJar"):
        places = sync.rank(query, cwd=folder, rg=rg.path)
        assert (places[0].path, places[0].symbol) == (native("src/x/__init__.py"), "CookieJar")


@pytest.mark.slow
def test_rank_splits_identifiers_into_words_in_any_case(shop: Path, rg: RgBinary) -> None:
    assert paths(sync.rank("set cookie", cwd=shop, rg=rg.path))[0] == "src/shop/http.js"
    assert paths(sync.rank("setCookie", cwd=shop, rg=rg.path))[0] == "src/shop/http.js"
    assert paths(sync.rank("SET_COOKIE", cwd=shop, rg=rg.path))[0] == "src/shop/http.js"


@pytest.mark.slow
@pytest.mark.anyio
async def test_async_and_blocking_rank_are_equal(shop: Path, rg: RgBinary) -> None:
    for query in ("how are cookies stored", "CookieJar", "nothing of that kind"):
        assert await ripwrap.rank(query, cwd=shop, rg=rg.path) == sync.rank(query, cwd=shop, rg=rg.path)


def test_rank_is_deterministic(plant: Plant, rg: RgBinary) -> None:
    folder = plant({f"{number % 7}/{number}.txt": f"the same cookie {number:02}\n" for number in range(60)})
    first = sync.rank("cookie", cwd=folder, rg=rg.path, limit=None)
    assert len(first) == MAX_FILES_READ
    for _ in range(3):
        assert sync.rank("cookie", cwd=folder, rg=rg.path, limit=None) == first
    assert paths(first) == sorted(paths(first))


@pytest.mark.slow
def test_rank_applies_ignore_rules_globs_and_types(plant: Plant, rg: RgBinary) -> None:
    folder = plant(
        {
            ".gitignore": "secret*\n",
            "secret.py": "cookie 1\n",
            "a.py": "cookie 2\n",
            "b.js": "cookie 3\n",
            ".c": "cookie 4\n",
        }
    )

    def found(**options: Any) -> set[str]:
        return set(paths(sync.rank("cookie", cwd=folder, rg=rg.path, **options)))

    assert found() == found(hidden=False) == {"a.py", "b.js"}
    assert found(hidden=True) == {"a.py", "b.js", ".c"}
    assert found(no_ignore=True) == {"a.py", "b.js", "secret.py"}
    assert found(glob="*.js") == {"b.js"}
    assert found(type="py") == {"a.py"}
    assert found(paths=["a.py", "secret.py"]) == {"a.py", "secret.py"}
    assert found(paths=folder / "b.js") == {slashed(str(folder / "b.js"))}


@pytest.mark.slow
@pytest.mark.posix
def test_hidden_files_and_links_are_ranked_only_if_asked_for(plant: Plant, rg: RgBinary, tmp_path: Path) -> None:
    """`.env` was the first result, and a linked package came twice."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key.py").write_text("cookie = 1\n")
    folder = plant({"pkg/a.py": "cookie = 1\n", ".env": "COOKIE=1\n"})
    (folder / "linked").symlink_to("pkg")
    (folder / "etc").symlink_to(outside)
    (outside / "key.py").write_text("the_cookie = 1\n")

    async def both(**options: Any) -> set[str]:
        found = paths(await ripwrap.rank("cookie", cwd=folder, rg=rg.path, **options))
        assert paths(sync.rank("cookie", cwd=folder, rg=rg.path, **options)) == found
        return set(found)

    def found(**options: Any) -> set[str]:
        return anyio.run(partial(both, **options))

    assert found() == {"pkg/a.py"}
    assert found(hidden=True) == {"pkg/a.py", ".env"}
    assert found(follow=True) == {"linked/a.py", "etc/key.py"}  # the linked copy is one result
    assert found(paths=[".env", "etc"]) == {".env", "etc/key.py"}


def test_rank_returns_at_most_limit_results(shop: Path, rg: RgBinary) -> None:
    everything = sync.rank("cookie", cwd=shop, rg=rg.path, limit=None)
    assert sync.rank("cookie", cwd=shop, rg=rg.path, limit=2) == everything[:2]
    assert sync.rank("cookie", cwd=shop, rg=rg.path, limit=0) == []


def test_rank_without_results_is_an_empty_list(shop: Path, rg: RgBinary) -> None:
    assert sync.rank("zebra crossing", cwd=shop, rg=rg.path) == []


@pytest.mark.parametrize(
    ("query", "options", "error"),
    [
        ("", {}, ValueError),
        ("?!", {}, ValueError),
        (b"x", {}, TypeError),
        ("x", {"limit": -1}, ValueError),
        ("x", {"cwd": "a\0b"}, ValueError),
        ("x", {"ignore_case": True}, ValidationError),
        ("x", {"timeout": -1}, ValueError),
        ("x", {"cwd": "no such place"}, FileNotFoundError),
        ("x", {"glob": "{"}, ripwrap.GlobError),
        ("x", {"type": "pyton"}, ripwrap.UnknownTypeError),
    ],
)
def test_invalid_query_or_option_raises(query: Any, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        sync.rank(query, **{"cwd": ".", **options})


def test_query_of_stop_words_alone_is_searched_as_it_is(plant: Plant, rg: RgBinary) -> None:
    folder = plant({"a": "to be or not to be\n", "b": "nothing\n"})
    assert paths(sync.rank("to be or not to be", cwd=folder, rg=rg.path)) == ["a"]


@pytest.mark.slow
@given(st.text(min_size=1, max_size=40))
def test_any_query_is_read_as_words(query: str) -> None:
    """Quotes, operators of FTS5, flags and regular expressions have no special meaning."""
    with suppress(ValueError):
        for place in sync.rank(query, cwd=Path(__file__).parents[1] / "data", limit=1):
            assert place.score > 0 or place.reasons


@pytest.mark.slow
@pytest.mark.parametrize(
    "query", ['cookie" OR "x', "cookie NEAR(x)", "path:cookie", "-cookie", "cookie*", "^cookie$", "--files cookie"]
)
def test_operators_in_a_query_have_no_special_meaning(query: str, shop: Path, rg: RgBinary) -> None:
    assert "src/shop/cookies.py" in paths(sync.rank(query, cwd=shop, rg=rg.path))


FOREIGN: dict[str | bytes, str | bytes] = {
    "composed.txt": "a na\u00efve cookie\n",
    "decomposed.txt": "a nai\u0308ve cookie\n",
    "plain.txt": "a naive cookie\n",
    "zh.py": "def f():\n    # 用户会话已过期\n    pass\n",
    "apart.py": "x = 1  # 过 期\n",
    "ja.py": "# セッションの期限が切れた\n",
    "th.txt": "เซสชันหมดอายุแล้ว\n",
    "ko.txt": "세션이 만료되었습니다\n",
    "hi.txt": "सत्र समाप्त हो गया\n",
}


@pytest.mark.slow
@pytest.mark.loops("asyncio")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("naïve", {"composed.txt", "decomposed.txt"}),
        ("nai\u0308ve", {"composed.txt", "decomposed.txt"}),
        ("NAÏVE", {"composed.txt", "decomposed.txt"}),
        ("naive", {"plain.txt"}),
        ("会话过期", {"zh.py"}),
        ("会", {"zh.py"}),
        ("期", {"zh.py", "ja.py", "apart.py"}),
        ("会话 naive", {"zh.py", "plain.txt"}),
        ("期限", {"ja.py"}),
        ("หมดอายุ", {"th.txt"}),
        ("만료", {"ko.txt"}),
        ("समाप्त", {"hi.txt"}),
        ("सम", set[str]()),
        ("用期", set[str]()),
    ],
)
async def test_accents_and_unspaced_scripts_match_with_and_without_an_index(
    plant: Plant, rg: RgBinary, query: str, found: set[str]
) -> None:
    folder = plant(FOREIGN)
    assert set(paths(await ripwrap.rank(query, cwd=folder, rg=rg.path))) == found
    async with Index(folder, location=folder.parent / "kept", chunker="windows", rg=rg.path) as index:
        assert set(paths(await index.search(query))) == found


@pytest.mark.loops("asyncio")
@pytest.mark.slow
@pytest.mark.anyio
async def test_ignored_query_words_are_reported(plant: Plant, caplog: pytest.LogCaptureFixture) -> None:
    folder = plant({"a.py": "cookie\n"})
    page = "cookie " + "y" * 100_000 + "".join(f" word{number}(x)" for number in range(20_000))
    one = "1 word or name of the query is not searched: the limits are 32 words"
    several = "words and names of the query are not searched: the limits are 32 words"
    async with Index(folder, location=folder.parent / "kept", chunker="windows") as index:
        await index.refresh()
        for search in (index.search, partial(ripwrap.rank, cwd=folder)):
            caplog.clear()
            (place,) = await search("cookie " + "y" * 100_000)
            assert any(one in reason for reason in place.reasons)
            assert caplog.text.count(one) == 1
            caplog.clear()
            assert await search(page) == []
            assert several in caplog.text


@pytest.mark.posix
def test_rank_finds_files_that_are_not_utf8_and_keeps_their_names(plant: Plant, rg: RgBinary) -> None:
    latin = b"# caf\xe9\ncookie\n"
    folder = plant(
        {
            b"latin\xe9.txt": latin,
            "utf16.txt": "cookie im Café\n".encode("utf-16"),
            "bom.txt": b"\xef\xbb\xbfcookie\n",
        }
    )
    found = {place.path: place for place in sync.rank("cookie", cwd=folder, rg=rg.path)}
    assert set(found) == {os.fsdecode(b"latin\xe9.txt"), "utf16.txt", "bom.txt"}
    place = found[os.fsdecode(b"latin\xe9.txt")]
    assert place.text == "# caf\ufffd\ncookie\n"
    assert found["utf16.txt"].text == "cookie im Café\n"
    assert found["bom.txt"].text == "cookie\n"
    adapter = TypeAdapter(list[RankedChunk])
    assert adapter.validate_json(adapter.dump_json(list(found.values()))) == list(found.values())


def test_invalid_utf8_does_not_shift_line_numbers(plant: Plant, rg: RgBinary) -> None:
    cut = b"".join(b"// \xe2\x82 \xe2\x82 \xe2\x82 \xe2\x82 line %d\n" % number for number in range(200))
    folder = plant({"a.c": cut + b"\nint zebra_stripes(int x) { return x; }\n" + cut})
    best, *_ = sync.rank("zebra stripes", cwd=folder, rg=rg.path)
    assert "zebra_stripes" in best.text
    assert best.start_line <= 202 <= best.end_line


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("line", ["é\U0001f36a" * 300_000, "a" + "é\U0001f36a" * 300_000, "ab\U0001f36aä\n" * 200_000])
def test_large_file_is_not_cut_within_a_character(encoding: str, line: str) -> None:
    raw = line.encode(encoding) if encoding.startswith("utf-8") else f"\ufeff{line}".encode(encoding)
    whole = cut_to_limit(raw[: MAX_FILE_BYTES + 1])
    assert MAX_FILE_BYTES - 20 < len(whole) <= MAX_FILE_BYTES
    source = decode_source("a.txt", whole)
    assert source is not None and source.exact
    assert line.startswith(source.text)


def test_rank_skips_binary_files_even_if_named(plant: Plant, rg: RgBinary) -> None:
    folder = plant(
        {
            "early.bin": b"cookie\0\n",
            "late.bin": b"cookie\n" + b"hay\n" * 50_000 + b"\0\ncookie\n",
            "a.txt": "cookie\n",
            "z.txt": "a cookie\n",
        }
    )
    assert set(paths(sync.rank("cookie", cwd=folder, rg=rg.path))) == {"a.txt", "z.txt"}
    named = ["early.bin", "a.txt", "late.bin", "z.txt"]
    assert set(paths(sync.rank("cookie", cwd=folder, rg=rg.path, paths=named))) == {"a.txt", "z.txt"}


@pytest.mark.slow
def test_one_file_full_of_query_words_does_not_crowd_out_others(plant: Plant, rg: RgBinary) -> None:
    folder = plant({"all.py": "cookie = cookie\n" * 20_000, "a.py": "# A cookie.\n" + "x = 1\n" * 50})
    assert set(paths(sync.rank("cookie", cwd=folder, rg=rg.path, limit=3))) == {"all.py", "a.py"}


@pytest.mark.slow
def test_rank_reads_only_the_beginning_of_a_large_file(plant: Plant, rg: RgBinary) -> None:
    line = b"const cookie = cookie + cookie;\n"
    folder = plant(
        {
            "generated.js": line * (20_000_000 // len(line)),
            "minified.js": b"cookie;" * 1_000_000,
            "a.py": "def cookie():\n    pass\n",
        }
    )
    places = sync.rank("cookie", cwd=folder, rg=rg.path, limit=None)
    assert set(paths(places)) == {"generated.js", "minified.js", "a.py"}
    assert max(place.end_line for place in places) <= MAX_FILE_BYTES // len(line)


def test_symbol_is_the_definition_around_the_best_line(plant: Plant, rg: RgBinary) -> None:
    filler = "".join(f"    def other_{number}(self):\n        return {number}\n\n" for number in range(60))
    folder = plant(
        {
            "a.py": f"class Shop:\n{filler}    @cached\n    def bake(self):\n        return cookie\n\n\nprint(cake)\n",
            "b.go": "package shop\n\nfunc (s *Shop) Bake() {\n\tcookie()\n}\n",
            "c.md": "# Shop\n\n## Baking\n\nA cookie.\n",
            "d.txt": "cookie\n",
        }
    )
    places = sync.rank("cookie", cwd=folder, rg=rg.path, limit=None)
    symbols = {place.path: place.symbol for place in places}
    assert symbols == {"a.py": "Shop.bake", "b.go": "Shop.Bake", "c.md": "Baking", "d.txt": None}
    (place,) = (place for place in places if place.path == "a.py")
    assert place.start_line > 100
    (cake,) = sync.rank("cake", cwd=folder, rg=rg.path)
    assert cake.symbol is None


def test_rank_finds_a_definition_among_many_uses_of_its_name(plant: Plant, rg: RgBinary) -> None:
    use = "jar = CookieJar(CookieJar, CookieJar)\n"
    folder = plant(
        {"z.py": "import x\n" * 90 + "\n\nclass CookieJar:\n" + "    x = 1\n" * 80, "uses.py": (use * 25 + "\n") * 150}
    )
    best, *_ = sync.rank("CookieJar", cwd=folder, rg=rg.path)
    assert (best.path, best.symbol) == ("z.py", "CookieJar")


def test_candidate_pool_keeps_definitions_beyond_the_bm25_limit() -> None:
    uses, rest = "jar = CookieJar(CookieJar)\n" * 4_000, "    other = 1\n" * 60
    source = SourceText("a.py", f"{uses}\n" + f"class Other:\n{rest}class CookieJar:\n{rest}" * 3, exact=True)
    worths = {"cookie": 1.0, "jar": 1.0}
    pool = _rank._pool(parse_query("CookieJar"), [source], {}, RankingDeadline(), worths)
    assert len(pool) == POOL_SIZE + 3
    assert all("CookieJar" in one.content.names() for one in pool[-3:])


@pytest.mark.parametrize("variable", ["const absl::string_view text = get();", "static string_view text(get());"])
def test_rank_reads_the_file_that_defines_a_type_not_those_with_variables_of_it(
    plant: Plant, rg: RgBinary, variable: str
) -> None:
    users = {f"a{number:02}.cc": f"{variable}\n" * 3 for number in range(MAX_FILES_READ + 5)}
    folder = plant({**users, "base/text.h": "// A text.\n" * 400 + "class string_view {\n  int size;\n};\n"})
    best, *_ = sync.rank("where is string_view defined", cwd=folder, rg=rg.path)
    assert (best.path, best.symbol) == ("base/text.h", "string_view")


def test_further_chunks_of_a_file_come_behind_all_files(plant: Plant, rg: RgBinary) -> None:
    """One score per file, its best chunk shown."""
    folder = plant({"long.py": "cookie = cookie(cookie)\n" * 200, "a.py": "# A cookie.\n", "tests/b.py": "cookie\n"})
    found = paths(sync.rank("cookie", cwd=folder, rg=rg.path, limit=None))
    assert sorted(found[:3]) == ["a.py", "long.py", "tests/b.py"] and found[2] == "tests/b.py"
    assert set(found[3:]) == {"long.py"}


def test_unreadable_file_is_logged_and_the_others_are_ranked(
    plant: Plant, unprivileged: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = plant({"a.py": "cookie\n", "closed.py": "cookie\n"})
    (folder / "closed.py").chmod(0)
    with caplog.at_level(logging.WARNING, "ripwrap"):
        assert paths(sync.rank("cookie", cwd=folder, rg=unprivileged)) == ["a.py"]
    assert "closed.py" in caplog.text


@pytest.mark.slow
def test_rank_skips_files_that_vanish_during_the_call(
    plant: Plant, rg: RgBinary, stand_in: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    folder = plant({"a.py": "cookie 1\n", "b.py": "cookie 2\n", "c.py": "cookie 3\n"})
    removing = stand_in(f"code = real({rg.path!r}); os.path.exists('b.py') and os.remove('b.py'); sys.exit(code)")
    with before_opening(str(folder / "a.py"), (folder / "c.py").unlink):
        assert paths(sync.rank("cookie", cwd=folder, rg=removing, follow=True)) == ["a.py"]
    assert "c.py could not be read: No such file or directory" in caplog.text


def test_timeout_ends_a_blocking_rank(plant: Plant, stand_in: Callable[..., Path]) -> None:
    folder = plant({"a.py": "cookie\n"})
    slow = stand_in("import time; time.sleep(600)")  # longer than a test may take
    with pytest.raises(TimeoutError, match=r"after 0\.3 seconds.*, or pass a larger timeout$"):
        sync.rank("cookie", cwd=folder, rg=slow, timeout=0.3)
    with pytest.raises(TimeoutError, match=r"took more than 1 second; search fewer files, or pass a larger timeout"):
        _rank.RankingDeadline(1, time.monotonic() - 6).check()
    end = Exit(words_query("x", ".", (), {}, 1), ("rg",), 0, b"", wrote=False)
    with pytest.raises(TimeoutError, match="rg was stopped after 1 second, before all files were counted"):
        TermCounts(lambda hit: (hit,), 1).finish(end, timed_out=True)


@pytest.mark.anyio
@pytest.mark.usefixtures("leaks_nothing")
async def test_rank_reads_in_a_thread_and_cancelling_stops_it(shop: Path) -> None:
    reading, cancelled, ended = threading.Event(), threading.Event(), threading.Event()
    asked: list[str] = []

    def allowed(path: str) -> bool:
        asked.append(path)
        reading.set()
        return cancelled.wait(20)

    class Noting(AsyncRunner):
        """A runner that sets `ended` when its worker thread is done."""

        async def call(self, work: Callable[[], T], **limits: Any) -> T:
            def noted() -> T:
                try:
                    return work()
                finally:
                    ended.set()

            return await super().call(noted, **limits)

    request = rank_request("cookie", shop, (), None, {}, timeout=None, allowed=allowed)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_rank, Noting(None), request)
        await until(reading.is_set)
        tasks.cancel_scope.cancel()
    cancelled.set()
    await until(ended.is_set)
    assert len(asked) == 1  # no other file was looked at


@pytest.mark.slow
@pytest.mark.python
def test_rank_does_not_load_sqlite(shop: Path) -> None:
    """Some Pythons are built without it."""
    code = "import sys; sys.modules['sqlite3'] = None; from ripwrap import sync; print(sync.rank('CookieJar')[0].path)"
    done = subprocess.run([sys.executable, "-c", code], cwd=shop, capture_output=True, text=True, check=True)
    assert done.stdout == "src/shop/cookies.py\n"


# Counts from rg's output


def counted(*chunks: bytes, returncode: int = 0, most: int = 5000) -> TermCounts:
    hits = TermCounts(lambda hit: () if " " in hit else (hit.lower(),), max_files=most)
    for chunk in chunks:
        hits.feed(chunk)
    command = words_query("x", ".", (), {}, 1)
    end = Exit(command, ("rg",), returncode, b"", wrote=bool(chunks))
    hits.end_run(end)
    hits.finish(end, timed_out=False)
    return hits


STREAM = b"./d/new\nline\n\0cookie\nCookie\n\n./a.txt\0cookie\njar\n\n./b.txt\0jar\n".replace(
    b"./", os.fsencode(os.path.join(".", ""))
)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=10))
def test_chunking_does_not_change_term_counts(sizes: list[int]) -> None:
    chunks, at = list[bytes](), 0
    while at < len(STREAM):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(STREAM[at : at + size])
        at += size
    hits = counted(*chunks)
    assert hits.files == {"d/new\nline\n": {"cookie": 2}, "a.txt": {"cookie": 1, "jar": 1}, "b.txt": {"jar": 1}}
    assert (hits.having, hits.total) == ({"cookie": 2, "jar": 2}, 3)


def test_rgs_remarks_on_binary_files_are_not_counted() -> None:
    remark = b'bin.dat: binary file matches (found "\\0" byte around offset 10)\n'
    assert counted(remark + b"\na.txt\0cookie\n").files == {"a.txt": {"cookie": 1}}
    assert counted(b"a.txt\0cookie\n\n" + remark).files == {"a.txt": {"cookie": 1}}
    late = (
        b'b.dat\0cookie\nb.dat: WARNING: stopped searching binary file after match (found "\\0" byte around offset 9)\n'
    )
    assert counted(late).files == {"b.dat": {"cookie": 1}}


def test_term_counts_keep_the_best_files_and_count_all() -> None:
    stream = b"\n\n".join([*(b"./%d\0cookie" % number for number in range(30)), b"best\0cookie\njar\n"])
    hits = counted(stream, most=5)
    assert "best" in hits.files
    assert len(hits.files) == 5
    assert (hits.total, hits.having["cookie"]) == (31, 31)


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_term_counts_keep_rare_words_in_any_order_of_files(random: Random) -> None:
    often = {f"o{number}": [b"parse"] * (number % 7 + 1) + [b"cookie"] * (number % 3) for number in range(200)}
    files = [*often.items(), *((f"r{number}", [b"zebra"]) for number in range(6))]
    random.shuffle(files)
    hits = TermCounts(lambda hit: (hit,), max_files=10)
    for path, found in files:
        hits.feed(os.fsencode(path) + b"\0" + b"\n".join(found) + b"\n\n")
        assert len(hits.files) <= 60  # twice `max_files` for each of three words
    end = Exit(words_query("x", ".", (), {}, 1), ("rg",), 0, b"", wrote=True)
    hits.end_run(end)
    hits.finish(end, timed_out=False)

    def first(word: bytes) -> list[str]:
        having = [(-len(set(found)), -len(found), path) for path, found in files if word in found]
        return [path for _, _, path in sorted(having)[:10]]

    assert set(hits.files) == {path for word in (b"parse", b"cookie", b"zebra") for path in first(word)}
    assert {f"r{number}" for number in range(6)} < set(hits.files)
    assert (hits.total, hits.having) == (206, {"parse": 200, "cookie": 133, "zebra": 6})


def test_term_counts_refuse_a_truncated_path() -> None:
    with pytest.raises(ripwrap.DecodeError, match="an incomplete path"):
        counted(b"a.txt\0cookie\n\nb.t")

"""`encoding="detect"`: a tree of mixed encodings gives the matches of the same tree in UTF-8."""

import logging
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import End, Match, RipwrapError, Summary, sync
from ripwrap.binary import RgBinary

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")

CHINESE = "这是一个测试文件\n搜索应该能够找到每一行中文文字\n今天天气很好\n我们去公园散步\n"
JAPANESE = "これは日本語のテストファイルです。\n検索で見つかるはずの行があります。\n今日は天気がいいので散歩します。\n"
RUSSIAN = "Это тестовый файл на нашем языке.\nПоиск должен найти каждую строку.\nНынче хорошая погода.\n"  # noqa: RUF001
FRENCH = """\
Les élèves de la première année étaient très fatigués après la journée à l'école.
Où est passé le garçon qui a mangé le gâteau de sa grand-mère ? Il s'est caché derrière la fenêtre.
L'été dernier, nous avons visité une forêt près de la frontière, où les chênes sont protégés.
Être prêt à tout, même à échouer, voilà ce que répète le père à sa fille aînée.
"""
TEXTS = {
    "zh.txt": (CHINESE, "gb18030"),
    "ja.txt": (JAPANESE, "shift_jis"),
    "sub/ja-euc.txt": (JAPANESE, "euc_jp"),
    "ru.txt": (RUSSIAN, "cp1251"),
    "sub/ru.txt": (RUSSIAN, "koi8_r"),
    "fr.txt": (FRENCH, "latin_1"),
    "utf8.txt": (CHINESE + RUSSIAN, "utf-8"),
    "utf16.txt": (RUSSIAN, "utf-16"),
}
PATTERNS = ["中文", "天気|天气", r"\bПоиск\b", "élève|très", "файл", r"^\w+ ", "nothing"]  # noqa: RUF001


@pytest.fixture
def mixed(plant: Plant) -> Path:
    """A folder with a text in each encoding."""
    return plant({f"mixed/{path}": (text * 3).encode(encoding) for path, (text, encoding) in TEXTS.items()}) / "mixed"


@pytest.fixture
def plain(plant: Plant) -> Path:
    """The same folder in UTF-8."""
    return plant({f"plain/{path}": (text * 3).encode() for path, (text, _) in TEXTS.items()}) / "plain"


def rows(matches: Any) -> list[tuple[Any, ...]]:
    return sorted((match.path, match.line_number, match.text, match.spans()) for match in matches)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
def test_matches_are_those_of_the_tree_in_utf8(pattern: str, newest: RgBinary, mixed: Path, plain: Path) -> None:
    compare(pattern, newest, mixed, plain)


@pytest.mark.slow
@pytest.mark.rg_ends
def test_every_rg_finds_the_matches_of_the_tree_in_utf8(rg: RgBinary, mixed: Path, plain: Path) -> None:
    compare("|".join(PATTERNS[:5]), rg, mixed, plain)


def compare(pattern: str, rg: RgBinary, mixed: Path, plain: Path) -> None:
    found = rows(sync.search(pattern, cwd=mixed, rg=rg, encoding="detect"))
    assert found == rows(sync.search(pattern, cwd=plain, rg=rg))
    page = sync.grep(pattern, cwd=mixed, rg=rg, encoding="detect", limit=5, offset=2)
    expected = sync.grep(pattern, cwd=plain, rg=rg, limit=5, offset=2)
    assert rows(page.matches) == rows(expected.matches)
    assert [file.path for file in page.files] == [file.path for file in expected.files]  # in path order
    totals = (page.total_matches, page.files_matched, page.exact, page.next_offset)
    assert totals == (expected.total_matches, expected.files_matched, expected.exact, expected.next_offset)


@pytest.mark.slow
@pytest.mark.anyio
async def test_async_search_finds_the_same(mixed: Path, plain: Path) -> None:
    expected = rows(sync.search("天", cwd=plain))
    assert rows([one async for one in ripwrap.search("天", cwd=mixed, encoding="detect")]) == expected
    page = await ripwrap.grep("天", cwd=mixed, encoding="detect")
    assert rows(page.matches) == expected
    *messages, summary = [one async for one in ripwrap.search_messages("天", cwd=mixed, encoding="detect")]
    assert rows(one for one in messages if isinstance(one, Match)) == expected
    assert isinstance(summary, Summary)
    assert summary.stats.matched_lines == len(expected)


@pytest.mark.slow
def test_ends_have_the_encodings_and_the_summary_adds_up(mixed: Path) -> None:
    *messages, summary = sync.search_messages(r"\S", cwd=mixed, encoding="detect")
    ends = {one.path: one for one in messages if isinstance(one, End)}
    assert len(ends) == len(TEXTS) == sum(isinstance(one, End) for one in messages)
    assert ends["zh.txt"].encoding == "gb18030"
    assert ends["ja.txt"].encoding == "shift_jis"
    assert ends["ru.txt"].encoding == "windows-1251"
    assert (ends["utf8.txt"].encoding, ends["utf16.txt"].encoding) == (None, None)
    assert isinstance(summary, Summary)
    assert summary.stats.matched_lines == sum(one.stats.matched_lines for one in ends.values())
    assert summary.stats.searches_with_match == len(ends)


@pytest.mark.slow
def test_summary_counts_each_file_once(mixed: Path, plain: Path) -> None:
    for pattern in ("файл", "nothing"):
        *_, found = sync.search_messages(pattern, cwd=mixed, encoding="detect")
        *_, expected = sync.search_messages(pattern, cwd=plain)
        assert isinstance(found, Summary)
        assert isinstance(expected, Summary)
        for name in ("searches", "searches_with_match", "matched_lines", "matches"):
            assert getattr(found.stats, name) == getattr(expected.stats, name), name


def test_encoding_is_guessed_from_the_lines_that_are_not_ascii(plant: Plant) -> None:
    code = "x = 1  # nothing else here\n" * 3000
    folder = plant({"a.py": (code + "".join(f"# {line}\n" for line in RUSSIAN.splitlines()) + code).encode("cp1251")})
    (match,) = sync.search("Поиск", cwd=folder, encoding="detect")
    assert match.line_number == 3002


def test_other_operations_say_that_they_do_not_detect(mixed: Path) -> None:
    with pytest.raises(ValueError, match=r"replace\(\) cannot be combined with encoding='detect': a wrong guess"):
        sync.replace("x", "y", cwd=mixed, encoding="detect")


@pytest.mark.slow
@pytest.mark.rg_ends
def test_every_form_of_an_answer_is_that_of_the_tree_in_utf8(mixed: Path, plain: Path, rg: RgBinary) -> None:
    counted, inverted = "файл|天", "файл|Поиск|Нынче"
    forms: dict[str, Callable[..., list[Any]]] = {
        "counts": lambda **given: [(one.path, one.count) for one in sync.count(counted, **given)],
        "matches": lambda **given: [(one.path, one.count) for one in sync.count_matches(counted, **given)],
        "zeros": lambda **given: [(one.path, one.count) for one in sync.count("файл", include_zero=True, **given)],
        "files": lambda **given: [*sync.files_with_matches("файл", **given)],
        "others": lambda **given: [*sync.files_without_match("файл", **given)],
        "inverted": lambda **given: [*sync.files_with_matches(inverted, invert_match=True, **given)],
        "columns": lambda **given: [
            row
            for batch in sync.search_columns("天", **given)
            for row in zip(batch.path, batch.line_number, batch.text, strict=True)
        ],
        "near": lambda **given: rows(sync.grep("Поиск", near="погода", within=1, **given).matches),
    }
    for form, call in forms.items():
        found, expected = sorted(call(cwd=mixed, rg=rg, encoding="detect")), sorted(call(cwd=plain, rg=rg))
        assert found == expected != [], form


@pytest.mark.slow
def test_progress_and_groups_of_detected_files(mixed: Path, plain: Path, newest: RgBinary) -> None:
    reports: list[ripwrap.Progress] = []
    options: dict[str, Any] = {"captures": True, "on_progress": reports.append, "rg": newest}
    found = sorted((one.path, one.text, one.groups) for one in sync.search("(天)(.)", cwd=plain, **options))
    reports.clear()
    assert found == sorted(
        (one.path, one.text, one.groups) for one in sync.search("(天)(.)", cwd=mixed, encoding="detect", **options)
    )
    assert reports[-1].matches == len(found)
    reports.clear()
    page = sync.grep("天", cwd=mixed, encoding="detect", on_progress=reports.append)
    assert (reports[-1].files, reports[-1].matches) == (page.files_matched, page.total_matches)


class TestOverlay:
    """Texts of `overlay()` are searched in their encodings, too."""

    TEXT = ("Поиск должен найти каждую строку.\n" * 9).encode("cp1251")

    def test_text_in_another_encoding_is_found(self, tmp_path: Path) -> None:
        with ripwrap.overlay({"new.txt": self.TEXT}, cwd=tmp_path):
            options: dict[str, Any] = {"cwd": tmp_path, "encoding": "detect"}
            assert len(list(sync.search("Поиск", **options))) == 9
            assert sync.grep("Поиск", **options).total_matches == 9
            assert [one.count for one in sync.count("Поиск", **options)] == [9]
            assert list(sync.files_with_matches("Поиск", **options)) == ["new.txt"]

    def test_text_is_guessed_and_not_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("Поиск\n", "utf-8")
        (tmp_path / "b.txt").write_bytes(self.TEXT)
        (tmp_path / "gone.txt").write_bytes(self.TEXT)
        with ripwrap.overlay({"a.txt": self.TEXT, "b.txt": "Поиск\n", "gone.txt": None}, cwd=tmp_path):
            stream = sync.search("Поиск", cwd=tmp_path, encoding="detect")
            page = sync.grep("Поиск", cwd=tmp_path, encoding="detect")
        assert sorted(str(one.path) for one in stream) == ["a.txt"] * 9 + ["b.txt"]  # read after the block has ended
        assert [(file.path, file.total_matches) for file in page.files] == [("a.txt", 9), ("b.txt", 1)]


@pytest.mark.slow
def test_globs_limit_and_max_count_hold(mixed: Path) -> None:
    assert {one.path for one in sync.search(r"\S", cwd=mixed, encoding="detect", glob="ja*")} == {
        "ja.txt",
        str(Path("sub/ja-euc.txt")),
    }
    assert len(list(sync.search(r"\S", cwd=mixed, encoding="detect", limit=4))) == 4
    assert len(list(sync.search("日", cwd=mixed, encoding="detect", limit=1))) == 1
    assert list(sync.search(r"\S", cwd=mixed, encoding="detect", limit=0)) == []
    assert len(list(sync.search(r"\S", cwd=mixed, encoding="detect", max_count=1))) == len(TEXTS)
    (one,) = sync.search("散歩", cwd=mixed, encoding="detect", paths="ja.txt", max_count=1)
    assert one.path == "ja.txt"


def test_binary_files_stay_unsearched(plant: Plant) -> None:
    folder = plant({"a.bin": b"\0\xff\xfeneedle\n", "b.txt": "needle\n"})
    assert [one.path for one in sync.search("needle", cwd=folder, encoding="detect")] == ["b.txt"]


def test_file_without_a_guess_is_searched_as_utf8(plant: Plant, caplog: pytest.LogCaptureFixture) -> None:
    noise = bytes(range(0x80, 0x100)) * 20
    folder = plant({"noise": b"needle " + noise + b"\n"})
    with caplog.at_level(logging.WARNING, "ripwrap"):
        assert len(list(sync.search("needle", cwd=folder, encoding="detect"))) == 1
    guessed = "could not guess the encoding of noise" not in caplog.text
    (end,) = (one for one in sync.search_messages("needle", cwd=folder, encoding="detect") if isinstance(one, End))
    assert (end.encoding is not None) is guessed


@pytest.mark.slow
def test_limit_counts_only_matches_that_are_yielded(plant: Plant) -> None:
    # The second bytes of Shift-JIS are ASCII letters, so the search of the raw bytes finds matches that do not count.
    folder = plant({"a.txt": (JAPANESE * 200).encode("shift_jis")} | {f"{number}.txt": "t\n" for number in range(9)})
    for limit in (1, 8, 9, 10):
        matches = sync.search(r"[a-z\\]", cwd=folder, encoding="detect", limit=limit)
        assert len(list(matches)) == min(limit, 9)
    *_, last = sync.search_messages(r"[a-z\\]", cwd=folder, encoding="detect", limit=10)
    assert isinstance(last, Summary)
    assert (last.stats.searches_with_match, last.stats.matched_lines) == (9, 9)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [b"caf\xe9\n", b"\xa9 2020\n", b"abc \xd6\xd0\n", b"cut \xe4\xb8\n"])
def test_text_in_utf8_with_a_few_errors_is_searched_as_utf8(plant: Plant, wrong: bytes) -> None:
    texts = {"fr.txt": FRENCH, "ru.txt": RUSSIAN, "zh.txt": CHINESE}
    folder = plant({name: text.encode() * 2 + wrong + text.encode() for name, text in texts.items()})
    for pattern in ("forêt", "Поиск", "天气"):
        assert len(list(sync.search(pattern, cwd=folder, encoding="detect"))) == 3


@pytest.mark.slow
def test_encoding_is_guessed_from_a_long_line_that_is_cut_within_a_character(plant: Plant) -> None:
    texts = {"gb18030": CHINESE, "shift_jis": JAPANESE, "euc_jp": JAPANESE}
    for start in ("", "x"):
        folder = plant(
            {name: (start + text.replace("\n", "") * 2000).encode(name) + b"\n" for name, text in texts.items()}
        )
        found = sync.search("天气|天気", cwd=folder, encoding="detect")
        assert sorted(str(one.path) for one in found) == sorted(texts)


@pytest.mark.slow
def test_encoding_is_guessed_from_text_that_comes_late(plant: Plant) -> None:
    folder = plant({"a.log": b"a line of a log\n" * 100_000 + (RUSSIAN * 3).encode("cp1251")})
    assert len(list(sync.search("Поиск", cwd=folder, encoding="detect"))) == 3


@pytest.mark.slow
@pytest.mark.rg_ends
def test_encodings_of_files_with_nul_bytes_are_detected_if_these_are_searched(plant: Plant, rg: RgBinary) -> None:
    text = (RUSSIAN * 2).encode("cp1251")
    options: dict[str, Any] = {"rg": rg, "encoding": "detect"}
    folder = plant({"a.txt": text * 1000 + b"\0" + text})  # after the first block, so that it is searched
    assert len(list(sync.search("Поиск", cwd=folder, **options))) >= 1000
    folder = plant({"a.txt": text + b"\0" + text})
    assert list(sync.search("Поиск", cwd=folder, **options)) == []
    assert len(list(sync.search("Поиск", cwd=folder, text=True, **options))) == 4
    assert len(list(sync.search("Поиск", cwd=folder, null_data=True, **options))) == 2


def test_unreadable_path_is_logged_once(mixed: Path, unprivileged: Path, caplog: pytest.LogCaptureFixture) -> None:
    (mixed / "closed").mkdir(mode=0)
    assert list(sync.search("散歩", cwd=mixed, encoding="detect", rg=unprivileged))
    assert caplog.text.count("closed") == 1


@pytest.mark.slow
def test_explanation_searches_each_file_in_its_encoding(mixed: Path) -> None:
    said = sync.grep("ПОИСК", cwd=mixed, glob="*ru.txt", encoding="detect", explain=True).message
    assert "There would be 6 matches in 2 files if case is ignored" in said


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.anyio
async def test_files_that_are_not_known_in_time_make_the_result_inexact(
    tmp_path: Path, mixed: Path, rg: RgBinary
) -> None:
    slow = tmp_path / "rg"
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *--invert-match*) sleep 60;; esac\nexec {shlex.quote(str(rg.path))} "$@"\n'
    )
    slow.chmod(0o755)
    options: dict[str, Any] = {"cwd": mixed, "encoding": "detect", "rg": slow, "timeout": 1}
    for result in (await ripwrap.grep("天气", **options), sync.grep("天气", **options)):
        assert (result.total_matches, result.exact, result.stop_reason) == (3, False, "timeout")
    with pytest.raises(TimeoutError, match="timeout=1 seconds"):
        list(sync.search("天气", **options))


@pytest.mark.slow
def test_options_that_do_not_apply_are_refused(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"cwd": mixed, "encoding": "detect"}
    with pytest.raises(ValueError, match=r"sort.* cannot be combined with encoding='detect'; leave one of them out"):
        sync.search("x", **given, sort="path")
    nothing: dict[str, Any] = {"inside": [], "near": []}
    assert sync.grep("散歩", **given, **nothing).total_matches == 6
    assert len(list(sync.search("散歩", **given, sort="none"))) == 6
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    for call in (sync.search, sync.search_messages, sync.grep):
        with pytest.raises(
            RipwrapError, match=r'needs the package charset-normalizer: pip install "ripwrap\[detect\]"'
        ):
            call("x", **given)

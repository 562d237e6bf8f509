"""Guesses of encodings: no ASCII text is lost by a wrong guess."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from support.effort import times

pytestmark = pytest.mark.usefixtures("leaks_nothing")

WORDS = ["wait", "sec", "error", "config", "needle", "request", "id", "user", "code", "10", "x1", "foo_bar", "README"]
TEXTS = {
    "cp1252": "élève très Größe señor µ © ° ñandú naïve garçon Über façade ß £5 ½ «à»",
    "cp1250": "zażółć gęślą jaźń łódź świat Příliš žluťoučký kůň",
    "cp1251": "Это тестовый файл на нашем языке Поиск должен найти каждую строку",
    "koi8_r": "Это тестовый файл на нашем языке Поиск должен найти каждую строку",
    "iso8859_7": "Αυτό είναι ένα δοκιμαστικό αρχείο",
    "cp1254": "çok güzel şehir İstanbul dağ",
    "cp1255": "שלום עולם קובץ בדיקה",
    "gb18030": "这是一个测试文件 搜索应该能够找到 每一行中文文字 今天天气很好",
    "big5": "這是一個測試檔案 搜尋應該能夠找到 每一行中文文字 今天天氣很好 功能",
    "cp932": "これは日本語のテストファイルです 検索で見つかるはずの行 ソース 表示 能力",
    "cp949": "이것은 테스트 파일입니다 검색은 모든 줄을 찾아야 합니다",
}
"""Texts by their encodings. The last four have characters of two bytes, the second of which may be ASCII."""

LINES = ["wait 10 {}sec", "copyright {}acme 2020", "temp 20{}C outside", "pay {}5 now", "caf{} is open", "se{}or sec"]


def counts(folder: Path, pattern: str, encoding: str | None = None) -> Counter[str | None]:
    """Return the number of matching lines of each file."""
    options: Any = {} if encoding is None else {"encoding": encoding}
    return Counter(match.path for match in sync.search(pattern, cwd=folder, no_ignore=True, **options))


@pytest.mark.slow
def test_one_sign_is_no_double_byte_text(plant: Callable[..., Path]) -> None:
    """One Latin-1 sign was guessed as big5, and swallowed the letter after it."""
    signs = "µ©éß°ñ£ü½"
    texts = {f"{ord(sign)}-{at}": line.format(sign) for sign in signs for at, line in enumerate(LINES)}
    folder = plant({name: f"{text}\n".encode("latin1") for name, text in texts.items()})
    for pattern in ("sec", "acme", "C outside", "5 now", "[a-z]", "(?-u)[A-Z]"):
        plain, detected = counts(folder, pattern), counts(folder, pattern, "detect")
        assert plain
        assert {path: detected[path] for path in plain if detected[path] < plain[path]} == {}


def text_of(chance: random.Random, words: list[str]) -> str:
    """Return some lines of words, with ASCII words among them that often touch the others."""
    signs = chance.choice([words, [*"".join(words)]])
    parts = chance.choice([0.3, 0.7, 0.95, 0.95])
    return "\n".join(
        "".join(
            chance.choice(WORDS if chance.random() < parts else signs) + chance.choice([" ", " ", "", "_", ","])
            for _ in range(chance.randint(1, 9))
        )
        for _ in range(chance.choice([1, 1, 1, 1, 2, 20]))
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(times(2, 40)))
def test_detection_never_finds_fewer_ascii_words(tmp_path: Path, seed: int) -> None:
    """Each line of the text that has an ASCII word is found with detection.

    In texts of one byte for each character, these are the lines that a search without detection finds. In other texts,
    that search also finds second bytes of characters.
    """
    chance = random.Random(seed)
    expected: dict[str, Counter[str]] = {word: Counter() for word in WORDS}
    for number in range(120):
        encoding = chance.choice([*TEXTS])
        text = text_of(chance, TEXTS[encoding].split())
        name = f"{number}-{encoding}.txt"
        (tmp_path / name).write_bytes(text.encode(encoding))
        for word in WORDS:
            expected[word][name] = sum(word in line for line in text.split("\n"))
    for word in WORDS:
        plain, detected = counts(tmp_path, word), counts(tmp_path, word, "detect")
        for name, number in expected[word].items():
            single = name.removesuffix(".txt").partition("-")[2] in [*TEXTS][:7]
            assert detected[name] >= (plain[name] if single else number), (name, word, (tmp_path / name).read_bytes())


def test_short_texts_of_two_bytes_are_still_guessed(plant: Callable[..., Path]) -> None:
    """The neighbor, texts in which the second bytes are rightly no letters."""
    texts = {
        "gb18030": "今天天气很好, 我们去公园散步 ok\n",
        "cp932": "表示 ソース1 これは日本語のテストファイルです x2\n検索で見つかるはずの行\n",
        "big5": "這是一個測試檔案 功能1\n搜尋應該能夠找到\n",
        "cp949": "이것은 테스트 파일입니다 v1\n검색은 모든 줄을 찾아야\n",
    }
    folder = plant({name: text.encode(name) for name, text in texts.items()})
    assert set(counts(folder, "天气|日本語|測試|검색", "detect")) == set(texts)

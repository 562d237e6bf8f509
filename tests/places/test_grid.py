"""Every operation in every place: the answer is that of the same files in a directory, or a reason says why not."""

import subprocess
import zipfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import ripwrap
from ripwrap import sync
from ripwrap.places import History
from ripwrap.places.where import HOLES
from ripwrap.places.where import PLACES as KINDS
from support.git import require_git
from support.hosts import ThisMachine

pytestmark = pytest.mark.usefixtures("leaks_nothing")

WORDS = "Поиск должен найти каждую строку needle в файле\n"
FILES = {
    "a.py": "import os\n\n\ndef needle():\n    return os.needle  # hay\n",
    "sub/b.py": "needle = 'needle'\nhay = needle\n",
    "sub/c.txt": "hay\n" * 30 + "nothing\n" + "needle\n",
    "d.txt": "nothing at all\n",
    "sub/deep/ru.txt": WORDS * 9,
}
Answer: TypeAlias = Any


def plain(path: str | None) -> str:
    """Return the name of a file, without the archive that it is in."""
    return (path or "").removeprefix("all.zip!/")


def match(one: Any) -> Answer:
    return plain(one.path), one.line_number, one.text, one.spans()


def page(result: Any) -> Answer:
    files = [
        (plain(file.path), [(*match(one), [line.text for line in (*one.before, *one.after)]) for one in file.matches])
        for file in result.files
    ]
    return sorted(files), result.total_matches, result.files_matched, result.exact


def rows(columns: Any) -> Answer:
    return [
        (plain(path), number, text, spans)
        for one in columns
        for path, number, text, spans in zip(one.path, one.line_number, one.text, one.spans, strict=True)
    ]


def paths(found: Any) -> Answer:
    return sorted(plain(path) for path in found if path != "all.zip")


def messages(found: Any) -> Answer:
    found = list(found)
    ends = sorted((plain(one.path), one.stats.matches) for one in found if one.type == "end")
    return ends, sorted(match(one) for one in found if one.type == "match"), found[-1].stats.matches


OPERATIONS: Mapping[str, Callable[..., Answer]] = {
    "search()": lambda **given: sorted(map(match, sync.search("needle", **given))),
    "search(captures=True)": lambda **given: sorted(
        (plain(one.path), one.line_number, one.groups) for one in sync.search("(ne)(e)dle", captures=True, **given)
    ),
    "search_messages()": lambda **given: messages(sync.search_messages("needle", context=1, **given)),
    "search_columns()": lambda **given: sorted(rows(sync.search_columns("needle", **given))),
    "grep()": lambda **given: page(sync.grep("needle", **given)),
    "grep(near=)": lambda **given: page(sync.grep("needle", near="hay", within=1, **given)),
    "grep(explain=True)": lambda **given: sync.grep("NEEDLE()", explain=True, **given).message.partition(", first")[0],
    "count()": lambda **given: sorted((plain(one.path), one.count) for one in sync.count("needle", **given)),
    "count_matches()": lambda **given: sorted(
        (plain(one.path), one.count) for one in sync.count_matches("needle", **given)
    ),
    "files_with_matches()": lambda **given: paths(sync.files_with_matches("needle", **given)),
    "files_without_match()": lambda **given: paths(sync.files_without_match("needle", **given)),
    "files()": lambda **given: paths(sync.files(**given)),
    "tree()": lambda **given: sorted(one.name for one in sync.tree(**given) if "zip" not in one.name),
    "tree_text()": lambda **given: sorted(set(str(sync.tree_text(**given)).split()) - {"all.zip", "all.zip!/"}),
    "files_matching()": lambda **given: paths(sync.files_matching(all_of=["needle", "hay"], none_of="os", **given)),
    "scan()": lambda **given: sorted(
        (plain(one.path), one.line_number, one.rule, one.submatches[0].match)
        for one in sync.scan({"call": r"needle\(", "word": "каждую|hay"}, **given)
    ),
    "rank()": lambda **given: [one.path for one in sync.rank("needle", **given)],
    "search_code()": lambda **given: list(sync.search_code("needle", lang="python", **given)),
    "replace()": lambda **given: sync.replace("needle", "pin", **given),
    "coverage()": sync.coverage,
}
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "places.md"
PLACES = ("overlay", "rev", "history", "inside", "detect", "host")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with the files, in UTF-8."""
    return planted(tmp_path_factory.mktemp("whole"), FILES)


def planted(folder: Path, files: Mapping[str, str], encoding: str = "utf-8") -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode(encoding if not text.isascii() else "utf-8"))
    return folder


def arranged(place: str, folder: Path) -> tuple[dict[str, Any], Any]:
    """Put the files into a place; return the options that name it, and the context in which it is searched."""
    options: dict[str, Any] = {"cwd": folder}
    match place:
        case "overlay":
            planted(folder, {"a.py": "needle needle needle\n", "gone.py": "needle\n"})
            return options, ripwrap.overlay({**FILES, "gone.py": None}, cwd=folder)
        case "rev" | "history":
            require_git()
            planted(folder, FILES)
            git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
            for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
                subprocess.run([*git, *words], check=True)
            for name in FILES:
                (folder / name).write_text("needle needle on the disk\n")
            return {**options, **({"rev": "HEAD"} if place == "rev" else {"where": History()})}, nullcontext()
        case "inside":
            with zipfile.ZipFile(folder / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for name, text in FILES.items():
                    archive.writestr(name, text)
            return {**options, "inside": "zip"}, nullcontext()
        case "detect":
            planted(folder, FILES, "cp1251")
            return {**options, "encoding": "detect"}, nullcontext()
        case _:
            planted(folder, FILES)
            return {"cwd": ".", "on": ThisMachine(str(folder))}, nullcontext()


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_operations_answer_in_every_place_or_say_why_not(place: str, whole: Path, tmp_path: Path) -> None:
    options, block = arranged(place, tmp_path)
    with block:
        for name, call in OPERATIONS.items():
            reason = HOLES.get(name, {}).get(place)
            if reason is None:
                assert call(**options) == expected(name, whole), (name, place)
            else:
                with pytest.raises(ValueError, match="cannot be combined with") as raised:
                    call(**options)
                assert reason in str(raised.value) or HOLES[name]["place"] in str(raised.value)


ANSWERS: dict[str, Answer] = {}


def expected(name: str, whole: Path) -> Answer:
    """Return the answer of an operation for the files in a directory."""
    if name not in ANSWERS:
        from contextvars import Context  # an overlay is active in the caller

        ANSWERS[name] = Context().run(lambda: OPERATIONS[name](cwd=whole))
        assert ANSWERS[name]
    return ANSWERS[name]


def test_most_operations_work_in_most_places() -> None:
    works = [(name, place) for name in OPERATIONS for place in PLACES if place not in HOLES.get(name, {})]
    print(f"{len(works)} of {len(OPERATIONS) * len(PLACES)} combinations work")  # noqa: T201 - the figure of interest
    assert len(works) >= 0.75 * len(OPERATIONS) * len(PLACES)
    assert f" {len(works)} of {len(OPERATIONS) * len(PLACES)} combinations " in PAGE.read_text("utf-8")


NAMES = {
    "items": "`Items`",
    "history": "`History`",
    "place": "a place of your own",
    "async": "`Items` of an async iterable",
    "detect": '`encoding="detect"`',
    "coverage": "`grep(coverage=True)`",
    "an index": "an index",
    "ls without rg": "the tool `ls` without rg",
}
"""Names of operations and places in the table, if they are not those of the errors."""


def test_page_has_the_table_of_what_cannot_be_combined() -> None:
    def named(what: str) -> str:
        return NAMES.get(what) or f"`{KINDS.get(what, what)}`"

    rows = ["| what | with | why not |", "|---|---|---|"]
    for what, kinds in HOLES.items():
        for reason in dict.fromkeys(kinds.values()):
            others = ", ".join(named(kind) for kind, why in kinds.items() if why == reason)
            rows.append(f"| {named(what)} | {others} | {reason} |")
    table = "\n".join(rows)
    assert f"\n\n{table}\n" in PAGE.read_text("utf-8")

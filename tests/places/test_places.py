"""Places and their combinations: composed two at a time they equal the same files in a directory, searched plainly."""

import io
import subprocess
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripwrap
from ripwrap import sync
from ripwrap._ripgrep.exit_status import Exit
from ripwrap.places import Detected, Directory, Host, Inside, Items, Overlay, Part, Place, Plan, Revision
from support.effort import times
from support.git import require_git
from support.hosts import ThisMachine
from support.outcomes import without_context

Plant = Callable[..., Path]
Files: TypeAlias = dict[str, str]
pytestmark = pytest.mark.usefixtures("leaks_nothing")

CYRILLIC = "Поиск должен найти каждую строку в этом файле\n" * 9
LINES = st.sampled_from(["needle\n", "hay\n", "needle needle\n", "\n", "a needle in hay\n"])
TEXTS = st.lists(LINES, max_size=6).map("".join) | st.just(CYRILLIC)
NAMES = st.sampled_from(["a.py", "b.txt", "sub/a.py", "sub/b.md", ".hidden", "sub/deep/c.py"])
TREES = st.dictionaries(NAMES, TEXTS, min_size=1, max_size=5)
OPTIONS = st.sampled_from(
    [{}, {"glob": "*.py"}, {"type": "py"}, {"hidden": False}, {"max_count": 1}, {"context": 1}, {"ignore_case": True},
     {"max_depth": 1}, {"invert_match": True}]
)  # fmt: skip
TOPS = st.sampled_from(["overlay", "inside", "detected", "inside+overlay", "overlay+detected", "inside+detected"])


def write(folder: Path, files: Files, encoding: str = "utf-8") -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(encoded(text, encoding))


def encoded(text: str, encoding: str) -> bytes:
    return text.encode("utf-8" if text.isascii() else encoding)


def based(base: str, folder: Path, files: dict[str, bytes]) -> Place:
    """Put files where a place begins."""
    if base == "items":
        return Items(sorted(files.items()))
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    if base == "directory":
        return Directory(folder.name)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-f", "."], ["commit", "-qm", "all", "--allow-empty"]):
        subprocess.run([*git, *words], check=True)
    for name in files:
        (folder / name).unlink()
    return Revision("HEAD")


def composed(base: str, tops: str, folder: Path, files: Files, instead: Files) -> Place:
    """Return a place that has the files: those of the base, with the texts of `instead` in place of some."""
    codec = "cp1251" if "detected" in tops else "utf-8"
    below = {name: encoded(text, codec) for name, text in files.items()}
    texts: dict[str, str | bytes | None] = {}
    if "overlay" in tops:
        texts = {name: encoded(text, codec) for name, text in instead.items()}
        below |= dict.fromkeys(list(instead)[:1], b"needle needle needle of the base\n")
        below["gone.py"], texts["gone.py"] = b"needle\n", None
        below = {name: content for name, content in below.items() if name not in list(instead)[1:]}
    if "inside" in tops:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in below.items():
                archive.writestr(name, content)
        below = {"all.zip": packed.getvalue()}
        if texts:  # the text is an archive, too
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, text in {**files, **instead}.items():
                    archive.writestr(name, encoded(text, codec))
            below, texts = {"all.zip": b"no archive"}, {"all.zip": packed.getvalue()}
    place = based(base, folder, below)
    for top in tops.split("+"):
        match top:
            case "overlay":
                place = Overlay(place, texts)
            case "inside":
                place = Inside(place, "zip")
            case _:
                place = Detected(place)
    return place


def line(one: Any) -> tuple[Any, ...]:
    return one.path.removeprefix("all.zip!/"), one.line_number, one.text, one.spans()


def answers(**options: Any) -> dict[str, object]:
    """Return what the operations find, blocking, in any order."""
    page = sync.grep("needle|строку", timeout=None, **options)
    plain = without_context(options)
    columns = sync.search_columns("needle|строку", **plain)
    return {
        "stream": sorted(map(line, sync.search("needle|строку", **plain))),
        "page": sorted((line(one), len(one.before), len(one.after)) for file in page.files for one in file.matches),
        "total": (page.total_matches, page.files_matched, page.exact),
        "columns": sorted(
            (path.removeprefix("all.zip!/"), number, text)
            for one in columns
            for path, number, text in zip(one.path, one.line_number, one.text, strict=True)
        ),
        "counts": sorted((one.path.removeprefix("all.zip!/"), one.count) for one in sync.count("needle", **options)),
        "listed": sorted(
            path.removeprefix("all.zip!/") for path in sync.files_with_matches("needle|строку", **options)
        ),
    }


async def answers_async(**options: Any) -> dict[str, object]:
    page = await ripwrap.grep("needle|строку", timeout=None, **options)
    return {
        "stream": sorted([line(one) async for one in ripwrap.search("needle|строку", **without_context(options))]),
        "total": (page.total_matches, page.files_matched, page.exact),
        "counts": sorted(
            [(one.path.removeprefix("all.zip!/"), one.count) async for one in ripwrap.count("needle", **options)]
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("base", ["directory", "revision", "items"])
@settings(max_examples=times(5, 667), deadline=None)
@given(TOPS, TREES, TREES, OPTIONS)
def test_places_on_top_of_places_equal_the_same_files_in_a_directory(
    base: str, tops: str, files: Files, instead: Files, options: dict[str, Any]
) -> None:
    require_git()
    if "max_depth" in options and "inside" in tops:  # counts the directories on the disk, not those of an archive
        options = {}
    with tempfile.TemporaryDirectory() as above:
        here, flat = Path(above, "here"), Path(above, "flat")
        here.mkdir()
        flat.mkdir()
        write(flat, {**files, **instead} if "overlay" in tops else files)
        place = composed(base, tops, here, files, instead)
        cwd = here.parent if base == "directory" else here
        plain = answers(cwd=flat, **options)
        assert answers(cwd=cwd, where=place, **options) == plain
        found = anyio.run(lambda: answers_async(cwd=cwd, where=place, **options))
        assert found == {name: plain[name] for name in found}


def test_place_of_a_caller_makes_runs_of_rg(plant: Plant) -> None:
    folder = plant({"one/a.txt": "needle\n", "two/b.txt": CYRILLIC.encode("cp1251"), "three/c.txt": "needle\n"})

    class Worktrees:
        """Several directories as one place."""

        async def plan(self, query: Any, run: Any, seconds: float | None) -> ripwrap.places.Plan:
            names = ("one", "two")
            return ripwrap.places.Plan([ripwrap.places.Part(replace(query, paths=(name,))) for name in names])

    assert [one.path for one in sync.search("needle", cwd=folder, where=Worktrees())] == ["one/a.txt"]
    found = list(sync.search("строку", cwd=folder, where=Detected(Worktrees())))
    assert [one.path for one in found] == ["two/b.txt"] * 9
    with pytest.raises(
        ValueError, match=r"where= cannot be combined with inside=: ripwrap does not know how the place"
    ):
        sync.search("needle", cwd=folder, where=Inside(Worktrees(), "zip"))


def test_short_ways_and_places_mean_the_same(plant: Plant) -> None:
    folder = plant({"a.txt": "needle\n"})
    with zipfile.ZipFile(folder / "b.zip", "w") as archive:
        archive.writestr("c.txt", "needle\n")
    host = ThisMachine(str(folder))
    assert sync.grep("needle", cwd=folder, inside="zip") == sync.grep(
        "needle", cwd=folder, where=Inside(Directory(), "zip")
    )
    assert sync.grep("needle", cwd=".", on=host).files == sync.grep("needle", cwd=".", where=Host(host)).files
    with ripwrap.overlay({"a.txt": "x\n"}, cwd=folder):
        short = list(sync.count("needle", cwd=folder))
    assert list(sync.count("needle", cwd=folder, where=Overlay(Directory(), {"a.txt": "x\n"}))) == short == []


@pytest.mark.parametrize("names", [("where", "rev"), ("where", "on"), ("rev", "on")])
def test_two_places_to_begin_are_refused(names: tuple[str, str], plant: Plant) -> None:
    known: dict[str, Any] = {"where": Directory(), "rev": "HEAD", "on": ThisMachine(".")}
    with pytest.raises(ValueError, match=f"{names[0]} cannot be combined with {names[1]}; leave one of them out"):
        sync.search("x", cwd=plant({}), **{name: known[name] for name in names})


async def items() -> AsyncIterator[tuple[str, bytes]]:
    yield "a.txt", b"needle\n"


@pytest.mark.anyio
async def test_async_items_are_a_place() -> None:
    assert [one.path async for one in ripwrap.search("needle", where=Items(items()))] == ["a.txt"]
    assert (await ripwrap.grep("needle", where=Items(items()))).total_matches == 1
    with pytest.raises(ValueError, match="an async iterable of items is read in the event loop; pass an iterable"):
        ripwrap.search("needle", where=Inside(Items(items()), "zip"))


def test_error_of_an_operation_without_places_names_it(plant: Plant) -> None:
    given: Any = {"cwd": plant({"a.txt": "needle\n"}), "where": Directory()}
    calls: dict[str, Callable[[], object]] = {
        "why": lambda: sync.why("a.txt", **given),
        "coverage": lambda: sync.coverage(**given),
        "rank": lambda: sync.rank("needle", **given),
        "watch": lambda: sync.watch("needle", **given),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=rf"^{name}\(\) cannot be combined with where=: it reads files from the"):
            call()


def test_blocking_functions_refuse_async_items() -> None:
    for call in (sync.search, sync.grep, sync.search_columns, sync.count):
        with pytest.raises(TypeError, match="a blocking function cannot take an async iterable as items"):
            list(cast("Any", call)("needle", where=Items(items())))


def test_items_are_read_again_by_each_search() -> None:
    def once() -> Iterator[tuple[str, str]]:
        yield "a.txt", "needle\nhay\n"

    assert sync.grep("needle", near="hay", where=Items([*once()])).total_matches == 1
    with pytest.raises(ValueError, match="paths do not apply to items"):
        sync.grep("needle", paths=["a.txt"], where=Items([*once()]))


class Own:
    """Place of a caller, whose runs are in other places: made all at once, or one by one."""

    def __init__(self, *places: Place | None, later: bool = False, in_order: bool = False) -> None:
        self.places, self.later, self.in_order = places, later, in_order

    async def plan(self, query: Any, run: Any, seconds: float | None) -> Plan:
        parts = [Part(replace(query, place=place), in_order=self.in_order) for place in self.places]

        async def more() -> list[Part] | None:
            return [parts.pop(0)] if parts else None

        return Plan((), more=more) if self.later else Plan(parts)


@pytest.mark.slow
@pytest.mark.parametrize("base", ["directory", "revision", "items"])
@settings(max_examples=times(5, 200), deadline=None)
@given(TOPS, TREES, TREES, OPTIONS, st.booleans(), st.sampled_from(["", "own+", "+own"]))
def test_runs_of_a_place_of_a_caller_may_be_in_any_place(
    base: str, tops: str, files: Files, instead: Files, options: dict[str, Any], later: bool, detected: str
) -> None:
    """What such a place found only after its first runs was lost, without an error."""
    require_git()
    if "max_depth" in options and "inside" in tops:
        options = {}
    with tempfile.TemporaryDirectory() as above:
        here, flat = Path(above, "here"), Path(above, "flat")
        here.mkdir()
        flat.mkdir()
        write(flat, {**files, **instead} if "overlay" in tops else files)
        write(flat, {"zz/more.py": "needle\nhay\n", "zz/more.txt": "needle\n"})
        place = composed(base, tops, here, files, instead)
        further = Items([("zz/more.py", "needle\nhay\n"), ("zz/more.txt", "needle\n")])
        own: Place = Own(Own(place) if detected == "own+" else place, further, later=later)
        if detected == "+own" and "detected" in tops:
            own = Detected(own)
        cwd = here.parent if base == "directory" else here
        plain = answers(cwd=flat, **options)
        assert answers(cwd=cwd, where=own, **options) == plain
        found = anyio.run(lambda: answers_async(cwd=cwd, where=own, **options))
        assert found == {name: plain[name] for name in found}


@pytest.mark.parametrize("later", [False, True])
def test_runs_in_order_come_after_all_of_the_runs_before(plant: Plant, later: bool) -> None:
    folder = plant({"m.txt": "needle\n"})
    items = [Items([(name, "needle\n")]) for name in ("z", "a")]
    own = Own(items[0], None, items[1], later=later, in_order=True)
    assert [one.path for one in sync.search("needle", cwd=folder, where=own)] == ["z", "m.txt", "a"]
    assert [file.path for file in sync.grep("needle", cwd=folder, where=own).files] == ["z", "m.txt", "a"]
    assert list(sync.files(cwd=folder, where=own)) == ["z", "m.txt", "a"]


def test_items_keep_their_order_in_a_place_of_a_caller(plant: Plant) -> None:
    folder = plant({"m.txt": "needle\n", "b.txt": "needle\n"})
    own = Own(Items([("z", "needle\n"), ("a", "needle\n")]), None)
    assert [file.path for file in sync.grep("needle", cwd=folder, where=own).files] == ["b.txt", "m.txt", "z", "a"]


def test_errors_of_all_places_are_in_the_answer(plant: Plant) -> None:
    folder = plant({"a.zip": b"no archive", "b.tar": b"no archive", "c.txt": "needle\n"})
    own = Own(Inside(Directory(), "zip"), Inside(Directory(), "tar"))
    page = sync.grep("needle", cwd=folder, where=own)
    assert sorted(error.path or "" for error in page.errors) == ["a.zip", "b.tar"]


def test_listing_in_a_place_of_a_caller_guesses_no_encodings(plant: Plant) -> None:
    folder = plant({"a.txt": CYRILLIC.encode("cp1251"), "b.txt": "x\n"})
    assert sorted(sync.files(cwd=folder, where=Own(Detected()))) == ["a.txt", "b.txt"]
    assert sorted(sync.files(cwd=folder, where=Detected(Own(Detected())))) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("detects", [False, True])
def test_detected_place_of_a_caller_guesses_in_each_of_its_places(plant: Plant, detects: bool) -> None:
    items = [(name, CYRILLIC.encode("cp1251")) for name in ("a", "b")]
    own: Place = Own(Items(items), Directory("sub"), later=True)
    folder = plant({"sub/c": CYRILLIC.encode("cp1251")})
    found = [one.path for one in sync.search("строку", cwd=folder, where=Detected(own) if detects else own)]
    assert found == (["a"] * 9 + ["b"] * 9 + ["c"] * 9 if detects else [])


def test_run_of_a_place_of_a_caller_cannot_be_on_a_host(plant: Plant) -> None:
    folder = plant({"a.txt": "needle\n"})
    with pytest.raises(ValueError, match="a run of another place cannot be on a host; search the host by itself"):
        list(sync.search("needle", cwd=folder, where=Own(Host(ThisMachine(str(folder))))))


@pytest.mark.parametrize("later", [False, True])
def test_plans_are_closed_after_an_error_in_a_later_one(plant: Plant, later: bool) -> None:
    closed: list[str] = []

    class Closing:
        async def plan(self, query: Any, run: Any, seconds: float | None) -> Plan:
            return Plan([Part(query)], close=lambda: closed.append("closed"))

    class Broken:
        async def plan(self, query: Any, run: Any, seconds: float | None) -> Plan:
            raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        list(sync.search("x", cwd=plant({"a": "x\n"}), where=Own(Closing(), Broken(), later=later)))
    assert closed == ["closed"]


def test_plan_that_was_not_made_in_time_ends_the_search(plant: Plant) -> None:
    closed: list[str] = []

    class Ended:
        async def plan(self, query: Any, run: Any, seconds: float | None) -> Plan:
            return Plan((), end=Exit(query, (), -9, b""), close=lambda: closed.append("closed"))

    page = sync.grep("x", cwd=plant({"a": "x\n"}), timeout=60, where=Own(None, Ended(), None))
    assert (page.exact, page.stop_reason, page.total_matches, closed) == (False, "timeout", 0, ["closed"])


@pytest.mark.parametrize("later", [False, True])
def test_limit_that_is_reached_by_a_plan_within_a_plan_makes_the_answer_inexact(plant: Plant, later: bool) -> None:
    seconds_left: list[float | None] = []

    class Late:
        async def plan(self, query: Any, run: Any, seconds: float | None) -> Plan:
            seconds_left.append(seconds)
            return Plan([Part(query)], late=True)

    page = sync.grep("x", cwd=plant({"a": "x\n"}), timeout=60, where=Own(None, Late(), later=later))
    assert (page.exact, page.stop_reason, page.files[0].path) == (False, "timeout", "a")
    assert [0 < (left or 0) <= 60 for left in seconds_left] == [True] * len(seconds_left)


def test_further_runs_of_a_place_are_in_the_other_place_too(plant: Plant) -> None:
    folder = plant({"one/a.txt": "x\n", "two/b.txt": CYRILLIC.encode("cp1251")})

    class Later:
        """Directories of which each is searched when it is asked for."""

        async def plan(self, query: Any, run: Any, seconds: float | None) -> Plan:
            left = ["one", "two"]

            async def more() -> list[Part] | None:
                return [Part(replace(query, paths=(left.pop(0),)), in_order=True)] if left else None

            return Plan((), more=more)

    found = list(sync.search("строку", cwd=folder, where=Detected(Later())))
    assert [one.path for one in found] == ["two/b.txt"] * 9


@pytest.mark.slow
def test_named_path_may_exist_only_in_the_place(plant: Plant) -> None:
    """Only a path that the place lacks is missing."""
    folder = plant({"base/a.txt": "needle\n", "base/gone.txt": "needle\n", "cp/b.txt": CYRILLIC.encode("cp1251")})
    texts: dict[str, str | bytes | None] = {"new.txt": "needle\n", "dir/new.txt": "needle\n", "gone.txt": None}
    (folder / "rev").mkdir()
    for base in (Directory("base"), based("rev", folder / "rev", {"a.txt": b"needle\n", "gone.txt": b"needle\n"})):
        cwd = folder / "rev" if isinstance(base, Revision) else folder
        for place in (Overlay(base, texts), Detected(Overlay(base, texts)), Inside(Overlay(base, texts), "zip")):
            for path in ("new.txt", "dir", "dir/new.txt", "a.txt"):
                (found,) = sync.search("needle", cwd=cwd, where=place, paths=path)
                assert found.path in (path, "dir/new.txt")
                assert [one.path for one in sync.count("needle", cwd=cwd, where=place, paths=[path])] == [found.path]
            for path in ("nope", "gone.txt"):
                with pytest.raises(FileNotFoundError, match=path):
                    list(sync.search("needle", cwd=cwd, where=place, paths=["a.txt", path]))
                assert [
                    one.path for one in sync.grep("needle", cwd=cwd, where=place, paths=["a.txt", path]).errors
                ] == [path]
    assert list(sync.search("строку", cwd=folder, where=Detected(), paths="cp/b.txt"))
    with pytest.raises(FileNotFoundError, match="'cp/nope'"):
        list(sync.search("строку", cwd=folder, where=Detected(), paths=["cp/b.txt", "cp/nope"]))
    with pytest.raises(FileNotFoundError, match=r"'nope\.zip'"):
        list(sync.files(cwd=folder, inside="zip", paths=["nope.zip", "base"]))


def test_place_of_a_caller_knows_its_paths(plant: Plant) -> None:
    folder = plant({"real/a.txt": "needle\n"})

    class Renaming:
        """Place whose path `virtual` is a directory with another name."""

        async def plan(self, query: Any, run: Any, seconds: float | None) -> Plan:
            assert query.paths == ("virtual",)
            return Plan([Part(replace(query, paths=("real",)))])

    for place in (Renaming(), Detected(Renaming())):
        assert [one.path for one in sync.search("needle", cwd=folder, where=place, paths="virtual")] == ["real/a.txt"]


def test_text_outside_of_the_paths_is_not_searched(plant: Plant) -> None:
    """A text that replaces no file of a revision was found below every path."""
    folder = plant({"rev/x": ""}) / "rev"
    texts: dict[str, str | bytes | None] = {"other.txt": "needle\n", "./src/b.txt": "needle\n"}
    place = Overlay(based("rev", folder, {"src/a.txt": b"needle\n"}), texts)
    assert [*sync.files_with_matches("needle", cwd=folder, where=place, paths="src")] == ["src/a.txt", "src/b.txt"]
    assert len(list(sync.search("needle", cwd=folder, where=place))) == 3


@pytest.mark.parametrize("call", [sync.files, lambda **given: sync.count("x", **given)])
def test_names_that_cannot_be_listed_are_an_error(call: Any) -> None:
    with pytest.raises(ValueError, match="the name of an item has a NUL, so it cannot be listed"):
        list(call(where=Items([("a\0b", "x\n")])))
    assert [one.path for one in sync.search("x", where=Items([("a\0b", "x\n")]))] == ["a\0b"]

"""Live queries: after any edits, the changes add up to what a new search finds."""

import math
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

import ripwrap
from ripwrap import Match, MatchChange, RipwrapError, sync
from support.waiting import until_blocking

pytest.importorskip("watchfiles")

Plant = Callable[..., Path]
pytestmark = pytest.mark.extra

SECONDS = 60  # for a change to be seen on a busy machine
QUIET = 0.1


@pytest.fixture(autouse=True)
def leaves_nothing(children: Callable[[], list[Any]]) -> Iterator[None]:
    """Check that no child is left, and that the thread of watchfiles closes its descriptors, which takes a moment."""
    me = psutil.Process()
    before = me.num_fds()
    yield
    assert children() == []
    until_blocking(lambda: me.num_fds() <= before)


def lines(matches: Any) -> list[tuple[str | None, str]]:
    return sorted((match.path, match.text) for match in matches)


async def following(changes: AsyncGenerator[MatchChange]) -> MatchChange:
    with anyio.fail_after(SECONDS):
        return await anext(changes)


def watching(folder: Path, **options: Any) -> aclosing[AsyncGenerator[MatchChange]]:
    return aclosing(ripwrap.watch("needle", cwd=folder, quiet=QUIET, **options))


@pytest.mark.anyio
async def test_items_have_the_matches_that_came_and_went(plant: Plant) -> None:
    folder = plant({"a.txt": "needle 1\n", "b.txt": "needle 2\nneedle 3\n"})
    async with watching(folder) as changes:
        first = await following(changes)
        assert lines(first.added) == [("a.txt", "needle 1"), ("b.txt", "needle 2"), ("b.txt", "needle 3")]
        assert (first.removed, first.total) == ((), 3)
        (folder / "b.txt").write_text("hay\nneedle 3\nneedle 4\n")  # one line stays, and moves
        change = await following(changes)
        assert (lines(change.added), lines(change.removed)) == ([("b.txt", "needle 4")], [("b.txt", "needle 2")])
        assert change.total == 3
        (folder / "a.txt").unlink()
        change = await following(changes)
        assert (change.added, lines(change.removed), change.total) == ((), [("a.txt", "needle 1")], 2)


@pytest.mark.anyio
async def test_equal_lines_are_counted(plant: Plant) -> None:
    folder = plant({"a.txt": "needle\nneedle\n"})
    async with watching(folder) as changes:
        await following(changes)
        (folder / "a.txt").write_text("needle\nneedle\nneedle\n")
        change = await following(changes)
        assert (len(change.added), len(change.removed), change.total) == (1, 0, 3)


@pytest.mark.anyio
async def test_ignore_files_that_change_count(plant: Plant) -> None:
    folder = plant({"a.log": "needle\n", "b.txt": "needle\n", ".git/info/exclude": "", "deep/c.log": "needle\n"})
    async with watching(folder) as changes:
        assert (await following(changes)).total == 3
        (folder / ".gitignore").write_text("a.log\n")
        assert lines((await following(changes)).removed) == [("a.log", "needle")]
        (folder / ".git" / "info" / "exclude").write_text("*.log\n")
        assert lines((await following(changes)).removed) == [(str(Path("deep/c.log")), "needle")]
        (folder / ".gitignore").write_text("!a.log\n")
        assert lines((await following(changes)).added) == [("a.log", "needle")]


@pytest.mark.anyio
async def test_storm_of_changes_is_one_item(plant: Plant) -> None:
    folder = plant({"a.txt": "hay\n"})
    async with watching(folder) as changes:
        assert (await following(changes)).total == 0
        for number in range(300):
            (folder / f"{number}.txt").write_text("needle\n")
        total = 0
        while total < 300:  # a busy machine may divide it
            total = (await following(changes)).total
        assert total == 300


@pytest.mark.anyio
async def test_renamed_directory_moves_its_matches(plant: Plant) -> None:
    folder = plant({"old/a.txt": "needle\n"})
    async with watching(folder) as changes:
        await following(changes)
        (folder / "old").rename(folder / "new")
        change = await following(changes)
        if not change.added:  # the system has told of both steps apart
            change = (await following(changes)).model_copy(update={"removed": change.removed})
        assert lines(change.removed) == [(str(Path("old/a.txt")), "needle")]
        assert lines(change.added) == [(str(Path("new/a.txt")), "needle")]


@pytest.mark.anyio
async def test_git_and_files_without_matches_cause_no_item(plant: Plant) -> None:
    folder = plant({"a.txt": "needle\n", ".git/HEAD": "ref: refs/heads/main\n"})
    async with watching(folder) as changes:
        await following(changes)
        (folder / ".git" / "index").write_text("needle\n")
        (folder / "b.txt").write_text("hay\n")
        (folder / "c.txt").write_text("needle c\n")
        assert lines((await following(changes)).added) == [("c.txt", "needle c")]


@pytest.mark.anyio
async def test_random_edits_add_up_to_a_new_search(plant: Plant) -> None:
    folder = plant({f"{number}.txt": "needle\n" for number in range(5)})
    chosen = random.Random(7)
    texts = ["needle\n", "needle\nneedle x\n", "hay\n", "hay\nneedle\n", ""]
    state: Counter[tuple[str | None, str]] = Counter()

    def apply(change: MatchChange) -> None:
        state.update(lines(change.added))
        state.subtract(lines(change.removed))
        assert min(state.values(), default=0) >= 0
        assert change.total == state.total()

    async with watching(folder) as changes:
        apply(await following(changes))
        for number in range(12):
            for _ in range(chosen.randint(1, 4)):
                path = folder / f"{chosen.randrange(8)}.txt"
                if chosen.random() < 0.25:
                    path.unlink(missing_ok=True)
                else:
                    path.write_text(chosen.choice(texts))
            (folder / "mark.txt").write_text(f"needle {number}\n")  # so that there is an item
            while not state["mark.txt", f"needle {number}"]:
                apply(await following(changes))
        assert sorted(state.elements()) == lines(sync.search("needle", cwd=folder))


@pytest.mark.anyio
async def test_cancelled_watch_ends_at_once(plant: Plant) -> None:
    async with watching(plant({"a.txt": "needle\n"})) as changes:
        await following(changes)
        with anyio.move_on_after(0.2) as scope:
            await anext(changes)
        assert scope.cancelled_caught


def test_blocking_watch_sees_changes_until_its_timeout(plant: Plant) -> None:
    folder = plant({"a.txt": "needle\n"})
    with closing(sync.watch("needle", cwd=folder, quiet=QUIET, timeout=SECONDS)) as changes:
        assert next(changes).total == 1
        (folder / "b.txt").write_text("needle\n")
        assert lines(next(changes).added) == [("b.txt", "needle")]
    ended: Iterator[MatchChange] = sync.watch("needle", cwd=folder, quiet=QUIET, timeout=1)
    assert next(ended).total == 2
    with pytest.raises(TimeoutError, match="stopped watching"):
        next(ended)


@pytest.mark.posix
@pytest.mark.anyio
async def test_directory_in_place_of_the_watched_one_is_watched(plant: Plant) -> None:
    folder = plant({"a.txt": "needle 1\n"})
    other = folder.with_name("other")
    other.mkdir()
    (other / "b.txt").write_text("needle 2\n")
    async with watching(folder) as changes:
        await following(changes)
        folder.rename(folder.with_name("moved"))
        other.rename(folder)
        change = await following(changes)
        assert (lines(change.added), lines(change.removed)) == ([("b.txt", "needle 2")], [("a.txt", "needle 1")])
        (folder / "c.txt").write_text("needle 3\n")
        assert lines((await following(changes)).added) == [("c.txt", "needle 3")]


@pytest.mark.posix
@pytest.mark.anyio
async def test_deleted_directory_ends_the_watch_with_an_error(plant: Plant) -> None:
    folder = plant({"a.txt": "needle\n"})
    async with watching(folder) as changes:
        await following(changes)
        shutil.rmtree(folder)
        with pytest.raises(FileNotFoundError, match="cwd"):
            while True:
                await following(changes)


@pytest.mark.anyio
async def test_path_may_be_missing_for_a_while(plant: Plant) -> None:
    folder = plant({"a.txt": "needle\n", "b.txt": "needle\n"})
    async with watching(folder, paths="a.txt") as changes:
        assert (await following(changes)).total == 1
        (folder / "a.txt").unlink()
        change = await following(changes)
        assert (lines(change.removed), change.total) == ([("a.txt", "needle")], 0)
        (folder / "a.txt").write_text("needle again\n")
        assert lines((await following(changes)).added) == [("a.txt", "needle again")]


@pytest.mark.anyio
async def test_one_path_may_be_missing_for_a_while(plant: Plant) -> None:
    """In the first search it is an error; later, the matches of the other paths stay."""
    folder = plant({"a.txt": "needle\n", "b.txt": "needle\n"})
    async with watching(folder, paths=["a.txt", "nope"]) as changes:
        with pytest.raises(FileNotFoundError, match="'nope'"):
            await following(changes)
    async with watching(folder, paths=["a.txt", "b.txt"]) as changes:
        assert (await following(changes)).total == 2
        (folder / "a.txt").unlink()
        change = await following(changes)
        assert (lines(change.removed), change.total) == ([("a.txt", "needle")], 1)


@pytest.mark.anyio
async def test_ignore_file_must_not_go_missing(plant: Plant) -> None:
    """Without it, the search would find more."""
    folder = plant({"a.txt": "needle\n", "rules": "b.txt\n", "b.txt": "needle\n"})
    async with watching(folder, ignore_file="rules") as changes:
        assert (await following(changes)).total == 1
        (folder / "rules").unlink()
        with pytest.raises(FileNotFoundError, match="'rules'"):
            await following(changes)


@pytest.mark.anyio
async def test_directory_below_one_called_git_is_watched(plant: Plant) -> None:
    folder = plant({".git/hooks/a.txt": "needle\n"}) / ".git" / "hooks"
    async with watching(folder) as changes:
        await following(changes)
        (folder / "b.txt").write_text("needle\n")
        assert lines((await following(changes)).added) == [("b.txt", "needle")]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"quiet": -1}, ValueError, "quiet must be a finite number of seconds, 0 or more; got -1"),
        ({"quiet": math.inf}, ValueError, "quiet must be a finite number of seconds, 0 or more; got inf"),
        ({"quiet": math.nan}, ValueError, "quiet must be a finite number of seconds, 0 or more; got nan"),
        ({"quiet": None}, TypeError, "quiet must be a number of seconds, got NoneType"),
        ({"quiet": True}, TypeError, "quiet must be a number of seconds, got bool"),
        ({"limit": 3}, ValueError, r"limit does not apply to watch\(\); leave it out"),
        ({"paths": ["a.txt", "../b.txt"]}, ValueError, r"paths must be below cwd, which is watched; got \S+b\.txt;"),
    ],
)
def test_arguments_are_checked_by_the_call(
    options: dict[str, Any], error: type[Exception], says: str, folder: Path
) -> None:
    for call in (ripwrap.watch, sync.watch):
        with pytest.raises(error, match=says):
            call("needle", cwd=folder, **options)


def test_wrong_arguments_are_refused(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = plant({"a.txt": "needle\n"})
    refused = pytest.raises(ValueError, match=r"watch\(\) cannot be combined with overlay\(\)")
    with ripwrap.overlay({"a.txt": ""}, cwd=folder), refused:
        sync.watch("needle", cwd=folder)
    with pytest.raises(FileNotFoundError):
        next(sync.watch("needle", cwd=folder / "missing"))
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(RipwrapError, match=r'watching needs the package watchfiles: pip install "ripwrap\[watch\]"'):
        next(sync.watch("needle", cwd=folder))


def test_error_of_the_limit_of_watches_names_the_setting(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the error of watchfiles. Its text is that of notify (`impl Display for Error` in notify's `error.rs`)."""
    folder = plant({"a.txt": "needle\n"})

    def watch(path: str, **_: object) -> Iterator[set[Any]]:
        raise RuntimeError(f'OS file watch limit reached. about ["{path}"]')
        yield set()

    monkeypatch.setattr("watchfiles.watch", watch)
    with pytest.raises(RipwrapError) as caught:
        next(sync.watch("needle", cwd=folder))
    assert str(caught.value) == (
        f'could not watch {folder}: OS file watch limit reached. about ["{folder.resolve()}"]; '
        "raise the limit fs.inotify.max_user_watches"
    )


def test_matches_are_those_of_search(plant: Plant) -> None:
    folder = plant({"a.py": "Needle\n", "b.txt": "needle\n"})
    with closing(sync.watch("needle", cwd=folder, ignore_case=True, type="py")) as changes:
        assert next(changes).added == tuple[Match, ...](sync.search("needle", cwd=folder, ignore_case=True, type="py"))


def test_switch_of_branches_is_seen(folder: Path) -> None:
    def git(*arguments: str) -> None:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(folder), *arguments]
        subprocess.run(command, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    (folder / "a.txt").write_text("hay\n")
    git("add", ".")
    git("commit", "-m", "hay")
    git("checkout", "-b", "other")
    for number in range(20):
        (folder / f"{number}.txt").write_text("needle\n")
    git("add", ".")
    git("commit", "-m", "needles")
    with closing(sync.watch("needle", cwd=folder, quiet=QUIET, timeout=SECONDS)) as changes:
        assert next(changes).total == 20
        git("checkout", "main")
        while next(changes).total:
            pass
        git("checkout", "other")
        while next(changes).total < 20:
            pass

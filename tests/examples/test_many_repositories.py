"""`many_repositories.py` searches each repository once, shows the first hits, and counts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.runs import run

pytestmark = pytest.mark.slow

LOOPS = pytest.mark.parametrize("loop", [(), ("--trio",)], ids=["asyncio", "trio"])


@pytest.fixture
def repos(plant: Callable[..., Path]) -> Path:
    """Two repositories, one of them a worktree, and a plain folder."""
    return plant(
        {
            "one/.git/config": "TODO: not searched\n",
            "one/a.py": "# TODO: a\n",
            "two/.git": "gitdir: elsewhere\n",
            "two/b.py": "TODO: 1\nTODO: 2\nTODO: 3\n",
            "none/c.py": "TODO: none\n",
        }
    )


def hits(out: str) -> tuple[list[str], list[str]]:
    """Return the hits, sorted because the repositories are searched concurrently, and the counts."""
    shown, _, counts = out.rpartition("\n\n")
    return sorted(shown.splitlines()), counts.splitlines()


@pytest.mark.loops("asyncio")
@LOOPS
def test_every_repository_below_a_folder_is_searched(repos: Path, loop: tuple[str, ...]) -> None:
    code, out, err = run("many_repositories.py", "TODO", repos, "--limit", "2", *loop)
    assert hits(out) == (
        [f"{repos}/one/a.py:1: # TODO: a", f"{repos}/two/b.py:1: TODO: 1", f"{repos}/two/b.py:2: TODO: 2"],
        [f"1 in {repos}/one", f"2+ in {repos}/two"],
    )
    assert (code, err) == (0, "")


def test_named_folders_are_searched_once_even_without_git(repos: Path) -> None:
    code, out, err = run("many_repositories.py", "TODO", repos / "none", repos / "one", repos / "one", "--limit=3")
    assert hits(out) == (
        [f"{repos}/none/c.py:1: TODO: none", f"{repos}/one/a.py:1: # TODO: a"],
        [f"1 in {repos}/none", f"1 in {repos}/one"],
    )
    assert (code, err) == (0, "")


@pytest.mark.loops("asyncio")
@LOOPS
def test_limit_ends_each_search(
    stand_in: Callable[..., Path], repos: Path, monkeypatch: pytest.MonkeyPatch, loop: tuple[str, ...]
) -> None:
    # This rg does not end by itself; the limit has to end all twenty searches, four at a time.
    monkeypatch.setenv("RIPWRAP_RG", str(stand_in("endless()")))
    folders = [repos / f"{number:02}" for number in range(20)]
    for folder in folders:
        folder.mkdir()
    code, out, err = run("many_repositories.py", "x", *folders, "--limit", "3", *loop)
    shown, counts = hits(out)
    assert shown == [f"{folder}/f:1: x" for folder in folders for _ in range(3)]
    assert counts == [f"3+ in {folder}" for folder in folders]
    assert (code, err) == (0, "")


def test_at_once_limits_the_number_of_rgs(
    stand_in: Callable[..., Path], repos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Each rg waits until others can start, and logs how many run.
    log, here = tmp_path / "log", tmp_path / "here"
    here.mkdir()
    body = f"""
        mine = {str(here)!r} + "/" + str(os.getpid())
        open(mine, "x").close()
        time.sleep(0.1)
        with open({str(log)!r}, "a") as log: print(len(os.listdir({str(here)!r})), file=log)
        os.remove(mine)
        say(SUMMARY)
        sys.exit(1)
    """
    monkeypatch.setenv("RIPWRAP_RG", str(stand_in(body)))
    folders = [repos / f"{number}" for number in range(6)]
    for folder in folders:
        folder.mkdir()
    assert run("many_repositories.py", "x", *folders, "--at-once", "2")[0] == 1
    seen = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(seen) == 6
    assert max(seen) <= 2


def test_no_match_is_exit_code_1(repos: Path) -> None:
    code, out, err = run("many_repositories.py", "no such thing", repos)
    assert (code, out, err) == (1, f"\n0 in {repos}/one\n0 in {repos}/two\n", "")


@pytest.mark.loops("asyncio")
@LOOPS
def test_error_of_all_repositories_is_printed_once(repos: Path, loop: tuple[str, ...]) -> None:
    code, out, err = run("many_repositories.py", "(", repos, *loop)
    assert (code, out) == (2, f"\n0+ in {repos}/one (failed)\n0+ in {repos}/two (failed)\n")
    assert (err.count("error: "), err.count("unclosed group")) == (2, 1)  # the example's and rg's
    assert err.startswith((f"error: {repos}/one, {repos}/two: ", f"error: {repos}/two, {repos}/one: "))


@pytest.mark.parametrize("option", ["--limit=0", "--at-once=0", "--limit=x"])
def test_invalid_number_is_refused(repos: Path, option: str) -> None:
    code, out, err = run("many_repositories.py", "x", repos, option)
    assert (code, out) == (2, "")
    assert "invalid positive value" in err


def test_names_that_are_not_utf8_are_shown(plant: Callable[..., Path]) -> None:
    folder = plant({b"re\xffpo/.git/config": "", b"re\xffpo/\xfe.txt": "TODO\n"})
    assert run("many_repositories.py", "TODO", folder) == (
        0,
        f"{folder}/re�po/�.txt:1: TODO\n\n1 in {folder}/re�po\n",
        "",
    )


def test_many_repositories_searches_the_demo_by_default(clone: Path) -> None:
    code, out, _ = run("many_repositories.py", "taxes", cwd=clone)
    assert (code, out) == (0, "demo/shop/cart.py:5: # TODO: taxes\n\n1 in demo\n")

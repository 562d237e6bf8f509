"""Directories to search: the standard library, and the Linux sources of Debian, which are fetched once and stored."""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # for `support.rgs`, which extracts Debian's packages

from support.rgs import extract_debian

# Outside this repository, whose ignore files would apply.
CACHE = user_cache_path("ripwrap-benchmarks")
LINUX = "linux-source-6.1"


def standard_library() -> Path:
    """Return the folder of the running Python's standard library, which includes installed packages."""
    return Path(sysconfig.get_paths()["stdlib"])


def linux() -> Path:
    """Return the folder of the Linux sources, 1.3 GB in 78,000 files; fetch them if they are missing.

    Raises:
        rgs.UnavailableError: This machine is not Debian, or Debian's repositories lack the sources.
    """
    stored = CACHE / LINUX
    if not stored.exists():
        with _fetched(LINUX) as folder:
            packed = folder / "usr/src" / f"{LINUX}.tar.xz"
            subprocess.run(["tar", "-xJf", str(packed), "-C", str(folder)], check=True)
            # Debian's .gitignore excludes everything outside its folder `debian`.
            (folder / LINUX / ".gitignore").unlink()
            (folder / LINUX).rename(stored)
    return stored


def valgrind() -> tuple[str, dict[str, str]]:
    """Return the path of valgrind and the environment variables that it needs; fetch it if it is missing.

    Raises:
        rgs.UnavailableError: valgrind is not installed and cannot be fetched, because this machine is not Debian, or
            Debian's repositories lack valgrind.
    """
    if found := shutil.which("valgrind"):
        return found, {}
    stored = CACHE / "valgrind"
    if not stored.exists():
        with _fetched("valgrind") as folder:
            (folder / "usr").rename(stored)
    return str(stored / "bin/valgrind"), {"VALGRIND_LIB": str(stored / "libexec/valgrind")}


@contextmanager
def _fetched(package: str) -> Iterator[Path]:
    """Yield a temporary folder in the cache, with the extracted files of a Debian package."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        extract_debian(Path(folder), package)
        yield Path(folder)

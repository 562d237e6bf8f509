"""What is searched: the interpreter's own standard library, and Debian's Linux sources, fetched once and kept."""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # which fetch Debian's packages, too

from support.rgs import extract_debian

# Not in here, where our own ignore files count.
CACHE = user_cache_path("ripwrap-benchmarks")
LINUX = "linux-source-6.1"


def standard_library() -> Path:
    """The standard library of the Python that runs, with what is installed beside it."""
    return Path(sysconfig.get_paths()["stdlib"])


def linux() -> Path:
    """Linux, 1.3 GB in 78,000 files.

    Raises:
        rgs.UnavailableError: This is no Debian, or it has them not.
    """
    kept = CACHE / LINUX
    if not kept.exists():
        with _fetched(LINUX) as folder:
            packed = folder / "usr/src" / f"{LINUX}.tar.xz"
            subprocess.run(["tar", "-xJf", str(packed), "-C", str(folder)], check=True)
            (folder / LINUX / ".gitignore").unlink()  # Debian's has everything ignored but its own folder
            (folder / LINUX).rename(kept)
    return kept


def valgrind() -> tuple[str, dict[str, str]]:
    """The program that counts instructions, and what it needs in its environment.

    Raises:
        rgs.UnavailableError: It is not installed, and this is no Debian, or it has it not.
    """
    if found := shutil.which("valgrind"):
        return found, {}
    kept = CACHE / "valgrind"
    if not kept.exists():
        with _fetched("valgrind") as folder:
            (folder / "usr").rename(kept)
    return str(kept / "bin/valgrind"), {"VALGRIND_LIB": str(kept / "libexec/valgrind")}


@contextmanager
def _fetched(package: str) -> Iterator[Path]:
    """What a package of Debian's has, in a folder from which it can be moved into the cache."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        extract_debian(Path(folder), package)
        yield Path(folder)

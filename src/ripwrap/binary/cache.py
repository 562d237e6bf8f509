"""The cache: where an installed rg lies, and whether what lies there can be trusted and is whole.

A release is a folder of its own, `ripgrep-{version}-{target}`, with `rg` and, beside it, its size and hash: an rg
that a killed disk cut short is not run. The folder belongs to one user; one that others can write to is not used.
"""

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

RECORD = "rg.json"
NAME = "rg.exe" if os.name == "nt" else "rg"


def folder() -> Path:
    """The cache's folder, which may not exist: `RIPWRAP_CACHE_DIR`, or the user's own."""
    try:
        if setting := os.environ.get("RIPWRAP_CACHE_DIR"):
            return Path(setting).expanduser().absolute()
        from platformdirs import user_cache_path  # only reached where no rg was found before

        return user_cache_path("ripwrap", appauthor=False)
    except RuntimeError:  # nobody knows this user's home
        return Path("~", "ripwrap")


def distrust(path: Path) -> str:
    """Why a folder is not to be used, or empty: nobody knows where it is, or another user could change it."""
    if not path.is_absolute():  # `~` that nothing stands for would be a folder of the current one
        return "this user has no home directory"
    if os.name == "nt":
        return ""
    me = (os.geteuid(), 0)
    try:
        if path.is_symlink() and path.lstat().st_uid not in me:
            return "it is a link that belongs to another user"
        state = path.stat()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"it cannot be looked at: {error.strerror}"
    if not stat.S_ISDIR(state.st_mode):
        return "it is not a directory"
    if state.st_uid not in me:
        return "it belongs to another user"
    return "other users may write to it" if state.st_mode & 0o022 and not state.st_mode & stat.S_ISVTX else ""


def release_of(rg: Path) -> tuple[str, str]:
    """The version and target that the name of an rg's folder tells; empty if it does not."""
    found = re.fullmatch(r"ripgrep-(\d[\w.]*)-(.+)", rg.parent.name)
    return (found[1], found[2]) if found else ("", "")


def installed(path: Path) -> Iterator[Path]:
    """Every rg in a cache, newest release first, whole or not."""
    found = [rg for rg in path.glob(f"ripgrep-*/{NAME}") if release_of(rg)[0]]
    return iter(
        sorted(found, key=lambda rg: [int(part) for part in re.findall(r"\d+", rg.parent.name)[:3]], reverse=True)
    )


def damage(rg: Path) -> str:
    """Why an installed rg is not to be run, or empty."""
    if not rg.is_file():
        return "no such file"
    if any(map(_foreign, (rg.parent, rg, rg.parent / RECORD))):
        return "another user could have put it there"
    try:
        expected = json.loads((rg.parent / RECORD).read_bytes())["size"]
    except (OSError, ValueError, KeyError, TypeError):
        return "its installation is not complete"
    actual = rg.stat().st_size
    if actual != expected:
        return f"damaged: it has {actual} of {expected} bytes"
    return "" if os.access(rg, os.X_OK) else "not executable"


def _foreign(path: Path) -> bool:
    """Whether a part of an installation is a link, another user's, or open to others (POSIX only)."""
    if os.name == "nt" or not os.path.lexists(path):
        return False
    state = path.lstat()
    return path.is_symlink() or state.st_uid not in (os.geteuid(), 0) or bool(state.st_mode & 0o022)


def write_record(rg: Path, sha256: str) -> None:
    """Write beside a new rg what `damage()` reads; the hash is the archive's."""
    about = {"size": rg.stat().st_size, "sha256": sha256}
    (rg.parent / RECORD).write_text(json.dumps(about))

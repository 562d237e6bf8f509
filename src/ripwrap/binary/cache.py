"""Settings of finding and installing rg, and the installed rgs: is each complete, and can it be trusted?

Each release has a directory, `ripgrep-{version}-{target}`, with `rg` and a record: the size of this rg, and the hash of
the archive that it came from. If the size of an rg differs from its record, for example after a crash, the rg is not
run. The cache belongs to one user; a directory that others can write to is not used.
"""

import json
import os
import re
import stat
import sys
from pathlib import Path

from ripwrap._text import shown
from ripwrap.binary.platforms import BASE_URL, DEFAULT_VERSION, parse_folder_name

if sys.platform != "win32":
    import grp
    import pwd

RECORD = "rg.json"
NAME = "rg.exe" if os.name == "nt" else "rg"


def folder() -> Path:
    """Return the directory of the cache, which may not exist: `RIPWRAP_CACHE_DIR`, or `ripwrap` in the user's cache."""
    try:
        if setting := os.environ.get("RIPWRAP_CACHE_DIR"):
            return Path(setting).expanduser().absolute()
        from platformdirs import user_cache_path  # late: needed only if no other step found an rg

        return user_cache_path("ripwrap", appauthor=False)
    except RuntimeError:  # the user has no home directory
        return Path("~", "ripwrap")


def why_untrusted(path: Path) -> str:
    """Return the reason not to trust a directory, e.g. that other users can write to it; empty if it can be trusted.

    Whoever may write to a directory above it could replace it. So every directory above it, and above the targets of
    links in the path, must belong to root or this user, and other users must not be able to write to it, except to a
    sticky directory such as `/tmp`, in which they cannot replace what belongs to root or this user (as in `safe_path()`
    of OpenSSH). The user's private group may write, as in Debian's OpenSSH. Directories that do not exist are trusted;
    so is everything on Windows. A relative path is never trusted.
    """
    if not path.is_absolute():  # an unexpanded `~` would be relative to the current directory
        return "this user has no home directory"
    if sys.platform == "win32":
        return ""
    for one in _passed(path):
        try:
            why = _why_foreign(one)
        except FileNotFoundError:
            continue
        except OSError as error:
            why = f"it cannot be read: {error.strerror}"
        if why:
            return why if one == path else f"of {shown(str(one))}, above it: {why}"
    return ""


def _passed(path: Path) -> list[Path]:
    """Return the directories that the system passes to open a directory, the directory itself first, without repeats.

    These are the directory and all above it; for each link among them, also its target and all directories above that.
    """
    passed: dict[Path, None] = {}
    rest = [path]
    while rest:
        for one in (rest[0], *rest.pop(0).parents):
            if one not in passed and one.is_symlink():
                rest.append(Path(os.path.normpath(one.parent / os.readlink(one))))
            passed[one] = None
    return [*passed]


def _why_foreign(path: Path) -> str:
    """Return why other users may replace the content of a directory, or a link to it; empty if they cannot."""
    if sys.platform == "win32":
        return ""
    me = (os.geteuid(), 0)
    if path.is_symlink() and path.lstat().st_uid not in me:
        return "it is a link that belongs to another user"
    state = path.stat()
    if not stat.S_ISDIR(state.st_mode):
        return "it is not a directory"
    if state.st_uid not in me:
        return "it belongs to another user"
    if state.st_mode & stat.S_ISVTX or not state.st_mode & 0o022:
        return ""
    by_others = state.st_mode & 0o002 or not _is_private_group(state.st_gid)
    return "other users may write to it" if by_others else ""


def _is_private_group(number: int) -> bool:
    """Return True if a group has the name of this user and no other member, as on systems with the umask 002."""
    if sys.platform != "win32":
        try:
            group, name = grp.getgrgid(number), pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            return False
        return group.gr_name == name and not {*group.gr_mem} - {name}
    return False


def parse_release(rg: Path) -> tuple[str, str]:
    """Return the version and target (platform) of an installed rg from its directory's name."""
    return parse_folder_name(rg.parent.name)


def installed(path: Path) -> list[Path]:
    """Return the paths of all rgs in a cache, also of damaged rgs; the newest release comes first."""
    found = [rg for rg in path.glob(f"ripgrep-*/{NAME}") if parse_release(rg)[0]]
    return sorted(found, key=lambda rg: [int(part) for part in re.findall(r"\d+", rg.parent.name)[:3]], reverse=True)


def damage(rg: Path) -> str:
    """Return the reason why an installed rg must not be run; empty if it may be run."""
    if not rg.is_file():
        return "no such file"
    if any(map(why_writable, (rg.parent, rg, rg.parent / RECORD))):
        return "another user could have put it there"
    try:
        expected = json.loads((rg.parent / RECORD).read_bytes())["size"]
    except (OSError, ValueError, KeyError, TypeError):
        return "its installation is not complete"
    actual = rg.stat().st_size
    if actual != expected:
        return f"damaged: it has {actual} of {expected} bytes"
    return "" if os.access(rg, os.X_OK) else "not executable"


def why_writable(path: Path) -> str:
    """Return the reason why another user could have written a file or directory; empty if nobody but root could."""
    if sys.platform == "win32" or not os.path.lexists(path):
        return ""
    state = path.lstat()
    if stat.S_ISLNK(state.st_mode):
        return "it is a link"
    if state.st_uid not in (os.geteuid(), 0):
        return "it belongs to another user"
    return "other users may write to it" if state.st_mode & 0o022 else ""


def write_record(rg: Path, sha256: str) -> None:
    """Write the record of a new rg for `damage()`: its size, and the hash of its archive."""
    about = {"size": rg.stat().st_size, "sha256": sha256}
    (rg.parent / RECORD).write_text(json.dumps(about))


VARIABLES = tuple(f"RIPWRAP_{name}" for name in ("RG", "CACHE_DIR", "OFFLINE", "MIRROR", "VERSION", "SHA256"))
"""Environment variables that this package reads."""


def offline() -> bool:
    """Return True if `RIPWRAP_OFFLINE` forbids the network: if it is not empty, and not `0`, `false` or `no`."""
    return os.environ.get("RIPWRAP_OFFLINE", "").lower() not in ("", "0", "false", "no")


def mirrors() -> list[str]:
    """Return the mirrors in `RIPWRAP_MIRROR`, or GitHub if it is not set."""
    # Commas separate mirrors. Split at a comma only if an address follows, because a password may contain a comma.
    named = re.split(r",(?=\s*(?:$|,|\w+:))", os.environ.get("RIPWRAP_MIRROR") or BASE_URL)
    return allowed_offline([mirror.strip() for mirror in named if mirror.strip()])


def allowed_offline(mirrors: list[str]) -> list[str]:
    """Return the given mirrors; with `RIPWRAP_OFFLINE`, only `file://` mirrors, which need no network."""
    return [mirror for mirror in mirrors if not offline() or mirror.startswith("file:")]


def version() -> str | None:
    """Return the version of rg in `RIPWRAP_VERSION`, or `None` if it is not set."""
    return os.environ.get("RIPWRAP_VERSION") or None


def version_to_install() -> str:
    """Return the version of rg in `RIPWRAP_VERSION`, or the newest version with pinned hashes."""
    return version() or DEFAULT_VERSION


def sha256() -> str | None:
    """Return the hash in `RIPWRAP_SHA256`, for an archive that the owner of a mirror made; `None` if it is not set."""
    return os.environ.get("RIPWRAP_SHA256") or None


def redact(text: str) -> str:
    """Replace credentials and queries of the addresses in a text by `***`; a query may contain a signature."""
    return re.sub(r"(://[^\s?]*)\?\S+", r"\1?***", re.sub(r"://\S*@", "://***@", text))

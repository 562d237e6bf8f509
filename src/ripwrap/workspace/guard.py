"""Limits for searches in directories where a search may take forever: `/`, `$HOME`, `/proc`, network file systems.

Without limits, agents hang in `$HOME` (opencode#22139), in `/proc` and `/sys` (ripgrep#311, #916), and on network
mounts, where each access to a file takes a round trip.
"""

import os
import re
from dataclasses import dataclass
from pathlib import PurePath

SYSTEM_DIRECTORIES = ("/proc", "/sys")
DEVICE_DIRECTORIES = ("/dev", "/run")  # without their subdirectories, such as /dev/shm/project and /run/media/disk
NETWORK_FILE_SYSTEMS = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|smb3|afs|afpfs|9p|ceph|lustre|gpfs|beegfs|glusterfs|ncpfs|coda|davfs|webdav"
    r"|fuse\.(?:sshfs|s3fs|gcsfuse|rclone|glusterfs|davfs2?|ceph|blobfuse2?|goofys|juicefs)"
)
ESCAPED_BYTE = re.compile(r"\\([0-7]{3})")  # `/proc/self/mountinfo` writes a space as \040 (proc_pid_mountinfo(5))


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """Limits for a search in a directory where a search may take forever."""

    max_depth: int
    timeout: float
    place: str

    @property
    def note(self) -> str:
        """Sentence that names the limits, to add to an answer."""
        return (
            f"This is {self.place}, so the search is limited to {self.max_depth} levels, one file system and "
            f"{self.timeout:g} seconds; pass a directory in it as path to search deeper."
        )


def guard_limits(path: str, home: str, mounts: str) -> GuardLimits | None:
    """Return the limits for a search in a real path, or None for a usual directory; no I/O."""
    here = PurePath(path)
    if here == PurePath(here.anchor):
        return GuardLimits(4, 5.0, "the whole file system")
    if path in DEVICE_DIRECTORIES or any(here.is_relative_to(system) for system in SYSTEM_DIRECTORIES):
        return GuardLimits(4, 5.0, f"{path}, a system directory")
    if PurePath(home).is_relative_to(here):
        return GuardLimits(6, 10.0, "a home directory or a directory above one")
    if kind := _network(here, mounts):
        return GuardLimits(16, 10.0, f"a network file system ({kind})")
    return None


def _network(path: PurePath, mounts: str) -> str:
    """Return the type of a path's file system if it is a network file system; otherwise an empty string."""
    deepest, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = PurePath(ESCAPED_BYTE.sub(lambda octal: chr(int(octal[1], 8)), fields[4]))
        if path.is_relative_to(point) and len(point.parts) >= deepest:
            deepest, kind = len(point.parts), right.split(" ")[0]
    return kind if NETWORK_FILE_SYSTEMS.fullmatch(kind) else ""


def mounted() -> str:
    """Return Linux's list of mounts, or an empty string on other systems."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def home() -> str:
    """Return the real path of the user's home directory."""
    return os.path.realpath(os.path.expanduser("~"))

"""Places where a search has no end, or brings a machine to its knees, and the bounds that tools keep there.

Seen in the field: agents that hang in `$HOME` (opencode#22139), in `/proc` and `/sys` (ripgrep#311, #916), and on
network mounts, where every look at a file is a journey.
"""

import os
import re
from dataclasses import dataclass
from pathlib import PurePath

_SYSTEM = ("/proc", "/sys")
_DEVICES = ("/dev", "/run")  # but not /dev/shm/project, or a disk at /run/media
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|smb3|afs|afpfs|9p|ceph|lustre|gpfs|beegfs|glusterfs|ncpfs|coda|davfs|webdav"
    r"|fuse\.(?:sshfs|s3fs|gcsfuse|rclone|glusterfs|davfs2?|ceph|blobfuse2?|goofys|juicefs)"
)
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Rails:
    """The bounds in such a place.

    Attributes:
        max_depth: How many levels are looked into.
        timeout: After how many seconds the search is ended.
        note: What is said of it in an answer.
    """

    max_depth: int
    timeout: float
    note: str


def rails(path: str, home: str, mounts: str) -> Rails | None:
    """The bounds that apply to a real path; `None` almost everywhere; pure.

    Args:
        path: What is searched.
        home: The user's home directory, as a real path.
        mounts: Linux's `/proc/self/mountinfo`; empty elsewhere, where network mounts are not told apart.
    """
    here = PurePath(path)
    if here == PurePath(here.anchor):
        return _rails("the whole file system", 4, 5.0)
    if path in _DEVICES or any(here.is_relative_to(system) for system in _SYSTEM):
        return _rails(f"{path}, which is no folder of files", 4, 5.0)
    if PurePath(home).is_relative_to(here):
        return _rails("a home directory", 6, 10.0)
    if kind := _network(here, mounts):
        return _rails(f"a network file system ({kind})", 16, 10.0)
    return None


def _rails(what: str, depth: int, seconds: float) -> Rails:
    note = (
        f"This is {what}: not searched deeper than {depth} levels, on other file systems, or for more than {seconds:g} "
        "seconds; name a directory in it for more."
    )
    return Rails(depth, seconds, note)


def _network(path: PurePath, mounts: str) -> str:
    """The kind of the file system that holds a path, if that is one that is reached through a network."""
    deepest, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = PurePath(_ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields[4]))
        if path.is_relative_to(point) and len(point.parts) >= deepest:
            deepest, kind = len(point.parts), right.split(" ")[0]
    return kind if _NETWORK.fullmatch(kind) else ""


def mounted() -> str:
    """Linux's list of what is mounted; empty where there is none."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def home() -> str:
    """The user's home directory, as a real path."""
    return os.path.realpath(os.path.expanduser("~"))

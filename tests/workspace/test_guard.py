"""Limits for searches in `/`, `$HOME`, system folders and network file systems."""

import pytest

from ripwrap.workspace.scope import guard_limits, home, mounted

MOUNTS = r"""22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
30 22 0:26 / /proc rw - proc proc rw
90 22 0:50 / /mnt/team\040share rw,relatime shared:40 - nfs4 server:/export rw
91 22 0:51 / /home/me/remote rw - fuse.sshfs me@host: rw
92 90 0:52 / /mnt/team\040share/local rw - ext4 /dev/sdb rw
93 22 0:53 / /media/stick rw - fuse.exfat /dev/sdc rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/", "whole file system"),
        ("/proc", "a system directory"),
        ("/proc/1", "a system directory"),
        ("/sys/kernel", "a system directory"),
        ("/dev", "a system directory"),
        ("/home", "home directory"),
        ("/home/me", "home directory"),
        ("/mnt/team share", "network file system (nfs4)"),
        ("/mnt/team share/a/b", "network file system (nfs4)"),
        ("/home/me/remote/x", "network file system (fuse.sshfs)"),
    ],
)
def test_guard_limits_apply_to_unbounded_places(path: str, says: str) -> None:
    bounds = guard_limits(path, "/home/me", MOUNTS)
    assert bounds is not None
    assert says in bounds.note
    assert f"{bounds.max_depth} levels" in bounds.note
    assert f"{bounds.timeout:g} seconds" in bounds.note


@pytest.mark.parametrize(
    "path",
    [
        "/work/project",
        "/home/me/project",
        "/home/you",
        "/process",
        "/mnt/team share/local/a",
        "/mnt/team",
        "/media/stick",
        "/dev/shm/project",
        "/run/media/disk",
    ],
)
def test_guard_limits_do_not_apply_to_ordinary_folders(path: str) -> None:
    assert guard_limits(path, "/home/me", MOUNTS) is None


@pytest.mark.posix
def test_guard_reads_the_home_and_mounts_of_this_machine() -> None:
    assert home().startswith("/")
    assert " - " in mounted()

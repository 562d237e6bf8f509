"""Where tools keep to narrower bounds."""

import pytest

from ripwrap._rails import home, mounted, rails

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
        ("/proc", "no folder of files"),
        ("/proc/1", "no folder of files"),
        ("/sys/kernel", "no folder of files"),
        ("/dev", "no folder of files"),
        ("/home", "home directory"),
        ("/home/me", "home directory"),
        ("/mnt/team share", "network file system (nfs4)"),
        ("/mnt/team share/a/b", "network file system (nfs4)"),
        ("/home/me/remote/x", "network file system (fuse.sshfs)"),
    ],
)
def test_bounds_are_set_where_a_search_has_no_end(path: str, says: str) -> None:
    bounds = rails(path, "/home/me", MOUNTS)
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
def test_elsewhere_there_are_none(path: str) -> None:
    assert rails(path, "/home/me", MOUNTS) is None


def test_the_machine_tells_its_home_and_its_mounts() -> None:
    assert home().startswith("/")
    assert " - " in mounted()

"""The file that ends the tasks of a call in other processes."""

import os
import socket
import time
from pathlib import Path

import anyio
import pytest

from ripwrap.repositories.requests import Lease, hold_lease, wait_for_lease

pytestmark = pytest.mark.anyio

BOUND = 30
"""Seconds after which a wait has failed."""


async def test_task_ends_when_the_call_ends(tmp_path: Path) -> None:
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group, hold_lease(str(tmp_path)) as lease:
            group.start_soon(wait_for_lease, lease)
            assert os.listdir(tmp_path) == [os.path.basename(lease.path)]
    assert not os.listdir(tmp_path)


async def test_task_ends_when_the_file_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "lease").touch()
    with anyio.fail_after(BOUND):
        await wait_for_lease(Lease(str(tmp_path / "lease"), "elsewhere"), 0.2)


async def test_task_goes_on_while_the_file_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "lease"
    path.touch()
    with anyio.move_on_after(0.5) as scope:
        async with anyio.create_task_group() as group:

            async def touch() -> None:
                for number in range(10_000):
                    os.utime(path, (number, number))
                    await anyio.sleep(0.05)

            group.start_soon(touch)
            begun = time.monotonic()
            await wait_for_lease(Lease(str(path), socket.gethostname()), BOUND)
            raise AssertionError(f"ended after {time.monotonic() - begun} s")
    assert scope.cancelled_caught


async def test_task_that_starts_after_the_end_of_the_call_ends_at_once(tmp_path: Path) -> None:
    with anyio.fail_after(BOUND):
        await wait_for_lease(Lease(str(tmp_path / "gone"), socket.gethostname()))


async def test_lease_that_another_machine_cannot_see_does_not_end_its_task(tmp_path: Path) -> None:
    with anyio.move_on_after(0.3) as scope:
        await wait_for_lease(Lease(str(tmp_path / "gone"), "elsewhere"))
    assert scope.cancelled_caught

"""Searches over ssh, with a real sshd on loopback: answers, errors, and the end of rg on the other side."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import psutil
import pytest

import ripwrap
from ripwrap import RemoteError, remote, sync
from ripwrap.remote import SshHost
from support.waiting import until, until_blocking

pytestmark = pytest.mark.slow

Plant = Callable[..., Path]
RunningIn = Callable[[Path], list[psutil.Process]]


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_remote_search_gives_the_answers_of_a_local_search(box: SshHost, there: str, plant: Plant) -> None:
    names = [b"\xff\xfe", b"a\nb", b"-x", b"$(touch y)", b"'\"`\\", "ä".encode(), b"~"]
    folder = plant(dict.fromkeys(names, b"caf\xe9 needle\r\n"))
    found = [one async for one in ripwrap.search(r"needle\r?$", on=box, rg=there, sort="path")]
    assert found == list(sync.search(r"needle\r?$", cwd=folder, sort="path"))
    assert [os.fsencode(path) async for path in ripwrap.files(on=box, rg=there, sort="path")] == sorted(names)
    assert await ripwrap.grep("needle", on=box, rg=there) == sync.grep("needle", cwd=folder)
    assert [os.fsencode(one) for one in sync.files(on=box, rg=there, paths=["$(touch y)"])] == [b"$(touch y)"]
    assert list(sync.search("nothing", on=box, rg=there)) == []
    assert sorted(map(os.fsencode, os.listdir(folder))) == sorted(names)


def test_large_answer_is_complete(box: SshHost, there: str, plant: Plant) -> None:
    folder = plant({f"{number}": "needle and more\n" * 2000 for number in range(20)})
    result = sync.grep("needle", on=box, rg=there, timeout=None)
    assert result == sync.grep("needle", cwd=folder, timeout=None)
    assert result.total_matches == 40_000


def test_errors_of_ssh_are_errors_and_not_empty_answers(box: SshHost, sshd: Path, there: str) -> None:
    with pytest.raises(
        RemoteError, match=r"ssh:stranger: ssh ended with exit code 255, .*Permission denied \(publickey"
    ) as raised:
        list(sync.files(on=remote.ssh("stranger", config=sshd), rg=there))
    assert "Load a key into ssh-agent" in str(raised.value)
    with pytest.raises(RemoteError, match="Connection refused"):
        sync.grep("x", on=remote.ssh("closed", config=sshd), rg=there)
    options = {"UserKnownHostsFile": "/dev/null"}
    with pytest.raises(RemoteError, match="Host key verification failed"):
        list(sync.files(on=remote.ssh("box", config=sshd, options=options), rg=there))
    with pytest.raises(FileNotFoundError, match=r"cwd does not exist on ssh:box: '.*gone'"):
        list(sync.files(on=box, rg=there, cwd="gone"))
    with pytest.raises(ripwrap.BinaryError, match="the given rg cannot be used on ssh:box"):
        list(sync.files(on=box, rg="no-such-rg"))


@pytest.mark.anyio
@pytest.mark.usefixtures("leaks_nothing")
@pytest.mark.parametrize("how", ["close", "exception", "limit", "cancel"])
async def test_leaving_ends_rg_there(how: str, stuck: Path, box: SshHost, there: str, running_in: RunningIn) -> None:
    search = ripwrap.search("needle", on=box, rg=there, paths=["sparse", "fifo"], threads=1,
                            limit=1 if how == "limit" else None)  # fmt: skip
    with anyio.CancelScope() as scope:
        try:
            async with aclosing(search) as found:
                await anext(found)
                if how == "limit":
                    assert [one async for one in found] == []
                else:
                    assert len(running_in(stuck)) == 1
                if how == "exception":
                    raise ZeroDivisionError
                if how == "cancel":
                    scope.cancel()
                    await anyio.sleep_forever()
        except ZeroDivisionError:
            assert how == "exception"
    await until(lambda: not running_in(stuck))


def test_timeout_ends_rg_there_and_keeps_what_was_found(
    stuck: Path, box: SshHost, there: str, running_in: RunningIn
) -> None:
    list(sync.files(on=box, rg=there, paths=["sparse"]))
    for timeout in (3, 12, 48):
        result = sync.grep("needle", on=box, rg=there, paths=["sparse", "fifo"], threads=1, timeout=timeout, limit=5)
        assert (result.stop_reason, result.exact) == ("timeout", False)
        until_blocking(lambda: not running_in(stuck))
        if result.total_matches:
            break
    assert result.total_matches


KILLED = """
import sys
from ripwrap import remote, sync
host = remote.ssh("box", config=sys.argv[1], cwd=sys.argv[2])
found = sync.search("needle", on=host, rg=sys.argv[3], paths=["sparse", "fifo"], threads=1)
next(found)
print("found", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("whom", ["python", "ssh"])
def test_killed_process_takes_its_rg_along(
    whom: str, stuck: Path, box: SshHost, there: str, running_in: RunningIn
) -> None:
    argv = [sys.executable, "-c", KILLED, box.config, box.cwd, there]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"found\n"
        assert len(running_in(stuck)) == 1
        [ssh] = psutil.Process(running.pid).children()
        os.kill(running.pid if whom == "python" else ssh.pid, signal.SIGKILL)
        until_blocking(lambda: not running_in(stuck))
        until_blocking(lambda: not ssh.is_running() or ssh.status() == psutil.STATUS_ZOMBIE)
        running.kill()


def test_lost_connection_is_an_error(stuck: Path, box: SshHost, there: str, running_in: RunningIn) -> None:
    found = sync.search("needle", on=box, rg=there, paths=["sparse", "fifo"], threads=1)
    next(found)
    [rg] = running_in(stuck)
    session = next(one for one in rg.parents() if one.name().startswith("sshd"))
    session.kill()
    with pytest.raises(RemoteError, match="ssh:box: ssh ended with exit code 255, without a result from rg"):
        list(found)
    until_blocking(lambda: not running_in(stuck))


def test_killed_rg_is_an_error(stuck: Path, box: SshHost, there: str, running_in: RunningIn) -> None:
    found = sync.search("needle", on=box, rg=there, paths=["sparse", "fifo"], threads=1)
    next(found)
    [rg] = running_in(stuck)
    rg.kill()
    with pytest.raises(ripwrap.SearchError, match="rg was killed by signal 9"):
        list(found)


def test_shared_connection_works(sshd: Path, folder: Path, there: str, plant: Plant, tmp_path: Path) -> None:
    plant({"a": "needle\n"})
    options = {"ControlMaster": "auto", "ControlPath": str(tmp_path / "socket"), "ControlPersist": "60"}
    host = remote.ssh("box", cwd=folder, config=sshd, options=options)
    try:
        for _ in range(3):
            assert list(sync.files(on=host, rg=there)) == ["a"]
        assert (tmp_path / "socket").exists()
    finally:
        subprocess.run(["ssh", "-F", sshd, f"-oControlPath={tmp_path / 'socket'}", "-O", "exit", "box"], check=True)

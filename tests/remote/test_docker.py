"""Searches in a container, with a stand-in for docker: answers, errors, bytes, and the end of rg."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

import ripwrap
from ripwrap import BinaryError, BinaryNotFoundError, CapabilityError, PatternError, RemoteError, remote, sync
from ripwrap.cli.flags import spell_as_flag
from ripwrap.errors import spell_error
from ripwrap.remote import Container, finding
from support import mirror
from support.cli import output, run
from support.waiting import TIMEOUTS, until, until_blocking

Plant = Callable[..., Path]
RunningIn = Callable[[Path], list[psutil.Process]]


@pytest.mark.slow
@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_remote_search_gives_the_answers_of_a_local_search(
    container: Container, there: str, plant: Plant
) -> None:
    folder = plant(
        {"a.py": "x = 1\nneedle\n", "b/c.txt": "needle needle\n", ".gitignore": "*.log\n", "d.log": "needle"}
    )
    local: dict[str, Any] = {"cwd": folder, "sort": "path"}
    distant: dict[str, Any] = {"on": container, "rg": there, "sort": "path"}
    assert [one async for one in ripwrap.search("needle", **distant)] == list(sync.search("needle", **local))
    assert [one async for one in ripwrap.files(**distant)] == list(sync.files(**local))
    assert [one async for one in ripwrap.count("needle", **distant)] == list(sync.count("needle", **local))
    assert (await ripwrap.grep("needle", **distant)).model_dump() == sync.grep("needle", **local).model_dump()
    assert sync.grep("needle", **distant) == sync.grep("needle", **local)
    assert list(sync.files(**distant, paths=["b"])) == ["b/c.txt"]
    assert list(sync.files(on=container, rg=there, cwd="b")) == ["c.txt"]


@pytest.mark.slow
def test_no_match_is_an_empty_answer(container: Container, there: str, plant: Plant) -> None:
    plant({"a": "x\n"})
    assert list(sync.search("needle", on=container, rg=there)) == []
    assert list(sync.files(on=container, rg=there, glob="*.py")) == []
    assert list(sync.files_with_matches("needle", on=container, rg=there)) == []
    assert sync.grep("needle", on=container, rg=there).total_matches == 0


@pytest.mark.slow
def test_explain_searches_on_the_host(container: Container, there: str, plant: Plant) -> None:
    plant({"b/a": "Needle\n"})
    result = sync.grep("needle", on=remote.docker("box", program=container.program, cwd=container.cwd), rg=there,
                       cwd="b", explain=True, case_sensitive=True)  # fmt: skip
    assert "There would be 1 match in 1 file" in result.message
    assert result.root == str(Path(container.cwd, "b"))


@pytest.mark.slow
def test_names_and_bytes_are_exact(container: Container, there: str, plant: Plant) -> None:
    names = [b"\xff\xfe", b"a\nb", b"-x", b"$(touch y)", b"'\"`\\", "ä".encode(), b" ", b"~"]
    folder = plant(dict.fromkeys(names, b"caf\xe9 it's $x\r\n"))
    found = {os.fsencode(match.path or ""): match for match in sync.search("it's", on=container, rg=there)}
    assert set(found) == set(names)
    assert all(match.raw_lines == b"caf\xe9 it's $x\r\n" for match in found.values())
    for name in names:
        given = [os.fsdecode(name)]
        assert [os.fsencode(path) for path in sync.files(on=container, rg=there, paths=given)] == [name]
    assert sorted(map(os.fsencode, os.listdir(folder))) == sorted(names)


@pytest.mark.slow
def test_stdout_and_stderr_of_login_scripts_are_left_out(
    container: Container, there: str, plant: Plant, docker: Path
) -> None:
    plant({"a": "needle\n"})
    noise = b"Welcome!\n\0\0ripwra\nbash: warning: setlocale\n"
    (docker.parent / "noise").write_bytes(noise * 100)
    assert list(sync.files(on=container, rg=there)) == ["a"]
    (docker.parent / "noise").write_bytes(noise * 5000)  # more than one read
    assert [match.path for match in sync.search("needle", on=container, rg=there)] == ["a"]
    assert list(sync.files(on=container, rg=there)) == ["a"]
    assert list(sync.files(on=container, rg=there, glob="*.py")) == []
    with pytest.raises(FileNotFoundError, match="no such file"):
        list(sync.search("needle", on=container, rg=there, paths=["b"]))


@pytest.mark.slow
@pytest.mark.parametrize("code", [*range(4), 30, 101, 126, 127])
def test_watchdog_maps_exit_codes_to_a_range_of_its_own(code: int) -> None:
    argv = [*finding.SHELL, finding.WATCHDOG, "x", ".", "sh", "-c", f"exit {code}"]
    ended = subprocess.run(argv, stdin=subprocess.PIPE, capture_output=True, check=False, timeout=60)
    held = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert finding.returncode(held.wait(60)) == code
    assert held.stdin is not None
    held.stdin.close()
    assert ended.stdout.startswith(b"\0ripwrap\n")
    assert ended.stderr.startswith(b"\0ripwrap\n")
    assert not {0, 1, 2, 125, 126, 127, 255, *range(128, 160)} & {held.returncode}


@pytest.mark.slow
def test_watchdog_reports_the_signal_that_killed_rg() -> None:
    argv = [*finding.SHELL, finding.WATCHDOG, "x", ".", "sh", "-c", "kill -9 $$"]
    held = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert finding.returncode(held.wait(60)) == -9
    assert held.stdin is not None
    assert held.stderr is not None
    assert held.stderr.read() == b"\0ripwrap\n"  # the shell says nothing about its killed child
    held.stdin.close()
    held.stderr.close()


@pytest.mark.parametrize("code", [0, 1, 2, 125, 126, 127, 129, 137, 143, 255, -9])
def test_other_exit_codes_are_not_those_of_rg(code: int) -> None:
    assert finding.returncode(code) is None


def test_container_that_is_not_there_is_an_error_and_not_an_empty_answer(docker: Path, there: str) -> None:
    gone = remote.docker("gone", program=docker)
    with pytest.raises(
        RemoteError, match=r"docker:gone: docker ended with exit code 1, .* No such container: gone"
    ) as raised:
        list(sync.files(on=gone, rg=there))
    assert raised.value.returncode == 1
    assert raised.value.argv[:4] == (str(docker), "exec", "--interactive", "gone")
    assert raised.value.stderr == "Error response from daemon: No such container: gone\n"


@pytest.mark.slow
def test_container_that_ends_between_two_searches_is_an_error(
    container: Container, there: str, plant: Plant, docker: Path
) -> None:
    plant({"a": "x\n"})
    assert list(sync.files(on=container, rg=there)) == ["a"]
    docker.write_text('#!/bin/sh\necho "Error response from daemon: container box is not running" >&2\nexit 1\n')
    for search in (sync.files, partial(sync.grep, "x"), partial(sync.files_with_matches, "x")):
        with pytest.raises(RemoteError, match="container box is not running"):
            list(search(on=container, rg=there))


@pytest.mark.slow
def test_container_without_a_shell_is_an_error(docker: Path, there: str) -> None:
    with pytest.raises(RemoteError, match="needs a POSIX shell, sh, in its PATH"):
        list(sync.files(on=remote.docker("bare", program=docker), rg=there))


@pytest.mark.slow
def test_missing_docker_is_an_error(tmp_path: Path, there: str) -> None:
    program = tmp_path / "no-docker"
    with pytest.raises(
        RemoteError, match=r"could not start .*no-docker: .*; install it, or pass .* as program="
    ) as caught:
        list(sync.files(on=remote.docker("box", program=program), rg=there))
    assert spell_error(caught.value, spell_as_flag).endswith("; install it")


@pytest.mark.slow
def test_docker_that_is_removed_between_two_searches_is_an_error(
    container: Container, there: str, docker: Path
) -> None:
    assert list(sync.files(on=container, rg=there)) == []
    docker.unlink()
    with pytest.raises(RemoteError, match=r"could not start .*docker: .*; install it, or pass .* as program="):
        list(sync.files(on=container, rg=there))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cwd", "kind", "text"),
    [
        ("gone", FileNotFoundError, "cwd does not exist on docker:box"),
        ("file", NotADirectoryError, "cwd is not a directory on docker:box"),
    ],
)
def test_directory_that_cannot_be_entered_is_an_error(
    cwd: str, kind: type[OSError], text: str, container: Container, there: str, plant: Plant
) -> None:
    plant({"file": "x"})
    for search in (lambda: list(sync.files(on=container, rg=there, cwd=cwd)),
                   lambda: sync.grep("x", on=container, rg=there, cwd=cwd)):  # fmt: skip
        with pytest.raises(kind, match=text):
            search()


@pytest.mark.slow
def test_directory_with_a_hostile_name_is_entered(container: Container, there: str, plant: Plant) -> None:
    for name in ("-", "-P", "a\nb", "$(x)", "it's", os.fsdecode(b"\xff")):
        plant({f"{name}/file": "x"})
        assert list(sync.files(on=container, rg=there, cwd=name)) == ["file"]


def hide_rg(docker: Path) -> None:
    """Let the container have the programs of /bin, but for an rg."""
    programs = docker.parent / "programs"
    programs.mkdir()
    for file in Path("/bin").iterdir():
        if file.name != "rg":
            (programs / file.name).symlink_to(file)
    docker.write_text(docker.read_text().replace("mkdir -p", f"PATH={programs}\nmkdir -p"))


@pytest.mark.slow
def test_missing_rg_says_how_to_install_it(container: Container) -> None:
    line = "rg \\(ripgrep\\) was not found on docker:box:\n.*\nInstall it with host.install\\(\\), or"
    env = remote.docker("box", cwd=container.cwd, program=container.program)
    hide_rg(Path(container.program))
    with pytest.raises(BinaryNotFoundError, match=line):
        list(sync.files(on=env))
    with pytest.raises(BinaryNotFoundError, match=line):
        sync.grep("x", on=env)


@pytest.mark.slow
def test_rg_that_is_not_usable_is_refused_with_the_reason(
    container: Container, stand_in: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(BinaryError, match=r"rg 12\.1\.1 is too old: 13 or later is needed"):
        list(sync.files(on=container, rg=stand_in("", says="ripgrep 12.1.1")))
    with pytest.raises(BinaryError, match="no such program"):
        list(sync.files(on=container, rg=tmp_path / "no-rg"))
    with pytest.raises(BinaryError, match="/bin/cat: not ripgrep"):
        list(sync.files(on=container, rg="cat"))


@pytest.mark.slow
def test_option_that_an_older_rg_lacks_is_refused(container: Container, stand_in: Callable[..., Path]) -> None:
    old = stand_in("", says="ripgrep 14.1.0")
    with pytest.raises(CapabilityError) as raised:
        list(sync.search("x", on=container, rg=old, replace="y"))
    assert str(raised.value) == (
        f"replace needs rg 15 or later: on {container}, {old} is 14.1.0\n"
        "Leave replace out, or use a newer rg: host.install()."
    )


@pytest.mark.slow
def test_remote_pattern_errors_equal_those_of_a_local_search(container: Container, there: str) -> None:
    with pytest.raises(PatternError) as raised:
        list(sync.search("a(", on=container, rg=there))
    assert (raised.value.pattern, raised.value.offset) == ("a(", 1)
    for _ in range(20):  # the types of the host are listed for two seconds at most
        with pytest.raises(ripwrap.UnknownTypeError) as unknown:
            list(sync.search("a", on=container, rg=there, type="pyt"))
        if unknown.value.suggestions:
            break
    assert "py" in unknown.value.suggestions


@pytest.mark.slow
def test_only_missing_path_raises_and_one_of_two_is_reported(container: Container, there: str, plant: Plant) -> None:
    plant({"a": "needle\n"})
    with pytest.raises(FileNotFoundError, match="no such file or directory; check paths or cwd"):
        list(sync.search("needle", on=container, rg=there, paths=["./b"]))
    result = sync.grep("needle", on=container, rg=there, paths=["a", "b"])
    assert [(error.path, error.kind) for error in result.errors] == [("b", "missing")]
    assert result.total_matches == 1


@pytest.mark.posix
@pytest.mark.slow
def test_broken_link_is_harmless(container: Container, there: str, plant: Plant) -> None:
    folder = plant({"a": "needle\n"})
    (folder / "link").symlink_to("gone")
    result = sync.grep("needle", on=container, rg=there)
    assert [(error.path, error.kind) for error in result.errors] == [("link", "broken_link")]


@pytest.mark.slow
def test_host_is_asked_for_its_rg_once(container: Container, there: str, calls: Callable[[], list[str]]) -> None:
    for _ in range(3):
        assert list(sync.files(on=container, rg=there)) == []
    assert calls().count("exec") == 4
    container.forget()
    assert list(sync.files(on=container, rg=there)) == []
    assert calls().count("exec") == 6


@pytest.mark.posix
@pytest.mark.slow
def test_rg_that_is_removed_is_looked_for_again(container: Container, there: str, tmp_path: Path) -> None:
    link = tmp_path / "rg-link"
    link.symlink_to(there)
    assert list(sync.files(on=container, rg=link)) == []
    link.unlink()
    with pytest.raises(BinaryNotFoundError, match=r"rg cannot be run on docker:box any more: .*not found"):
        list(sync.files(on=container, rg=link))
    with pytest.raises(BinaryError, match="no such program"):
        list(sync.files(on=container, rg=link))


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.usefixtures("leaks_nothing", "reading")
class TestLeaving:
    async def test_break_and_close_end_rg(
        self, stuck: Path, container: Container, there: str, running_in: RunningIn
    ) -> None:
        async with aclosing(
            ripwrap.search("needle", on=container, rg=there, paths=["sparse", "fifo"], threads=1)
        ) as found:
            assert (await anext(found)).lines == "needle\n"
            assert len(running_in(stuck)) == 1
        await until(lambda: not running_in(stuck))

    async def test_cancellation_ends_rg(
        self, stuck: Path, container: Container, there: str, running_in: RunningIn
    ) -> None:
        async with anyio.create_task_group() as group:

            async def consume() -> None:
                async for _ in ripwrap.search("nothing", on=container, rg=there, paths=["fifo"]):
                    raise AssertionError

            group.start_soon(consume)
            await until(lambda: len(running_in(stuck)) == 1)
            group.cancel_scope.cancel()
        await until(lambda: not running_in(stuck))

    async def test_limit_ends_rg(self, stuck: Path, container: Container, there: str, running_in: RunningIn) -> None:
        found = ripwrap.search("needle", on=container, rg=there, paths=["sparse", "fifo"], threads=1, limit=3)
        assert len([one async for one in found]) == 3
        await until(lambda: not running_in(stuck))


@pytest.mark.slow
@pytest.mark.usefixtures("leaks_nothing")
def test_timeout_ends_rg_and_keeps_what_was_found(
    stuck: Path, container: Container, there: str, running_in: RunningIn
) -> None:
    options: dict[str, Any] = {"on": container, "rg": there, "paths": ["sparse", "fifo"], "threads": 1}
    for timeout in TIMEOUTS:
        result = sync.grep("needle", **options, timeout=timeout, limit=5)
        assert (result.stop_reason, result.exact) == ("timeout", False)
        until_blocking(lambda: not running_in(stuck))
        if result.total_matches:
            break
    assert len(result.matches) == 5
    for timeout in TIMEOUTS:
        found = 0
        with pytest.raises(TimeoutError, match=f"timeout={timeout} seconds"):
            for _ in sync.search("needle", **options, timeout=timeout):
                found += 1
        until_blocking(lambda: not running_in(stuck))
        if found:
            break
    assert found == 10


KILLED = """
import sys
from ripwrap import remote, sync
host = remote.docker("box", program=sys.argv[1], cwd=sys.argv[2])
found = sync.search("needle", on=host, rg=sys.argv[3], paths=["sparse", "fifo"], threads=1)
next(found)
print("found", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_killed_process_takes_its_rg_along(
    stuck: Path, container: Container, there: str, running_in: RunningIn
) -> None:
    argv = [sys.executable, "-c", KILLED, container.program, container.cwd, there]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"found\n"
        assert len(running_in(stuck)) == 1
        os.kill(running.pid, signal.SIGKILL)
    until_blocking(lambda: not running_in(stuck))


@pytest.mark.slow
@pytest.mark.usefixtures("docker_in_path")
class TestCommandLine:
    @pytest.fixture
    def docker_in_path(self, docker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")

    def test_search_and_files_print_results_of_the_host(
        self, container: Container, there: str, plant: Plant, tmp_path: Path
    ) -> None:
        folder = plant({"a.py": "needle\n", "b/c": "x\n"})
        on = ("--on", f"docker:box:{folder}", "--rg", there)
        assert output("search", "needle", *on, cwd=tmp_path) == "a.py:1:needle\n"
        assert output("search", "needle", "-l", *on, cwd=tmp_path) == "a.py\n"
        assert output("search", "needle", "-c", *on, cwd=tmp_path) == "a.py:1\n"
        assert output("search", "x", "--cwd=b", *on, cwd=tmp_path) == "c:1:x\n"
        assert output("search", "none", *on, cwd=tmp_path, code=1) == ""
        assert output("files", "--sort=path", *on, cwd=tmp_path) == "a.py\nb/c\n"

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (
                ["search", "x", "--on", "box:/srv"],
                "--on must be ssh:HOST[:DIR], docker:NAME[:DIR] or podman:NAME[:DIR], got 'box:/srv'",
            ),
            (["search", "x", "--on", "ssh:-oX"], ("--on ssh:-oX: host must be a name such as build-7 or "
             "user@build-7, got '-oX'")),
            (["search", "x", "--on", "docker:box", "--coverage"], ("--coverage cannot be combined with --on: it reads "
             "files of this machine; leave one of them out")),
            (["install", "--on", "docker:box", "--dest", "x"], ("--dest cannot be combined with --on: it is a "
             "directory of this machine; leave one of them out")),
            (["files", "--on", "docker:gone"], ("docker:gone: docker ended with exit code 1, without a result from rg: "
             "Error response from daemon: No such container: gone")),
            (["files", "--on", "docker:box:~/x"], ("--on docker:box:~/x: cwd '~/x' begins with ~, which is not "
             "expanded; pass an absolute path, or, if the name itself begins with ~, write './' before it")),
            (["files", "--on", "docker:box:/gone"], "--cwd does not exist on docker:box: '/gone'"),
        ],
    )  # fmt: skip
    def test_errors_name_flags(self, arguments: list[str], text: str, there: str, folder: Path) -> None:
        rg = ["--rg", there] if arguments[0] != "install" else []
        assert run(*arguments, *rg, cwd=folder, code=2).stderr.decode() == f"ripwrap: {text}\n"

    def test_missing_rg_names_the_command_that_installs_it(self, folder: Path, docker: Path) -> None:
        hide_rg(docker)
        said = run("files", "--on", "docker:box", cwd=folder, code=2).stderr.decode()
        assert "Install it with `ripwrap install --on HOST`, or" in said

    def test_install_puts_rg_on_the_host(
        self, folder: Path, docker: Path, program: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        name = mirror.FOLDER
        monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "own-cache"))
        archive = mirror.targz(name, program)
        digest = mirror.write(tmp_path / "mirror", mirror.VERSION, mirror.ASSET, archive)
        options = ("--on", "docker:box", "--sha256", digest, "--mirror", f"file://{tmp_path / 'mirror'}")
        assert "installed: docker:box: /" in output("install", *options, cwd=folder)
        assert "is already installed: docker:box: /" in output("install", *options, cwd=folder)
        [installed] = (docker.parent / "home").rglob("rg")
        assert installed.read_bytes() == program


@pytest.mark.slow
def test_answer_of_another_script_is_an_error(container: Container, docker: Path) -> None:
    docker.write_text("#!/bin/sh\nprintf '\\000ripwrap\\nx\\000'\nexit 160\n")
    with pytest.raises(RemoteError, match="docker:box gave an answer that ripwrap does not understand") as caught:
        list(sync.files(on=container))
    assert str(caught.value).endswith(": ['x']; check that docker and the shell on the host print no other text")


@pytest.mark.slow
@pytest.mark.parametrize("timeout", [None, 20])
def test_host_that_prints_too_much_is_an_error(container: Container, docker: Path, timeout: float | None) -> None:
    docker.write_text("#!/bin/sh\nwhile :; do echo welcome; done\n")
    with pytest.raises(RemoteError, match="docker:box did not answer: the program wrote more than 64 KiB; check what"):
        list(sync.files(on=container, timeout=timeout))


@pytest.mark.slow
def test_silent_host_is_an_error_after_the_time_limit(container: Container, docker: Path) -> None:
    docker.write_text("#!/bin/sh\nexec sleep 3600\n")
    with pytest.raises(TimeoutError, match=r"docker:box did not answer within timeout=0\.2 seconds; allow more time"):
        list(sync.files(on=container, timeout=0.2))

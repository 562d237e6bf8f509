"""Hosts for tests: a real sshd on loopback, and a stand-in for docker."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.sshd import find as find_sshd
from support.waiting import until_blocking

if TYPE_CHECKING:
    from ripwrap import binary
    from ripwrap.remote import Container, SshHost

# `ripwrap.remote` refuses to run on Windows.
collect_ignore_glob = ["test_*.py"] if os.name == "nt" else []

SSHD_CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {home}/host_key
AuthorizedKeysFile {home}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
LogLevel ERROR
AcceptEnv LANG LC_* XDG_CACHE_HOME
SetEnv SHLVL=1
"""
"""`SHLVL` keeps bash from running this user's `.bashrc`, which it does for the first shell below sshd."""

SSH_CONFIG = """\
Host box stranger
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {home}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  HostKeyAlias box
  SendEnv LANG LC_*
Host box
  IdentityFile {home}/user_key
Host stranger
  IdentityFile {home}/other_key
Host closed
  HostName 127.0.0.1
  Port 1
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def accepts(port: int, sshd: subprocess.Popen[bytes]) -> bool:
    assert sshd.poll() is None, "sshd ended"
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="session")
def sshd(needs_posix: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the configuration file of ssh for a running sshd, which has its own keys and no file of the system."""
    import pwd  # only POSIX has it

    program = find_sshd()
    if os.geteuid() == 0:  # sshd of root wants this folder, and its service makes it
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    home = tmp_path_factory.mktemp("sshd")
    for name in ("host_key", "user_key", "other_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / name], check=True)
    port = free_port()
    names = {"home": home, "port": port, "user": pwd.getpwuid(os.geteuid()).pw_name}
    (home / "sshd_config").write_text(SSHD_CONFIG.format(**names))
    (home / "ssh_config").write_text(SSH_CONFIG.format(**names))
    (home / "known_hosts").write_text(f"box {(home / 'host_key.pub').read_text()}")
    with (home / "log").open("wb") as log:
        running = subprocess.Popen([program, "-D", "-e", "-f", home / "sshd_config"], stderr=log)
    try:
        until_blocking(lambda: accepts(port, running))
        yield home / "ssh_config"
    finally:
        running.terminate()
        running.wait(10)


@pytest.fixture
def box(sshd: Path, folder: Path) -> SshHost:
    """Return the host of the running sshd, with the folder of the test as its directory."""
    from ripwrap import remote

    return remote.ssh("box", cwd=folder, config=sshd)


DOCKER = """\
#!/bin/sh
# As docker, it runs a command in another session, which does not end when this program is killed.
printf '%s\\n' "$@" >>"$(dirname "$0")/calls"
[ "$1 $2" = "exec --interactive" ] || { echo "unknown command: docker $1 $2" >&2; exit 125; }
shift 2
case $1 in --user=*) shift ;; esac
case $1 in
box) ;;
bare) echo 'OCI runtime exec failed: exec: "sh": executable file not found in $PATH' >&2; exit 127 ;;
*) echo "Error response from daemon: No such container: $1" >&2; exit 1 ;;
esac
shift
export HOME="$(dirname "$0")/home" XDG_CACHE_HOME=
mkdir -p "$HOME"
[ -e "$(dirname "$0")/noise" ] && { cat "$(dirname "$0")/noise"; cat "$(dirname "$0")/noise" >&2; }
exec {python} -ISc 'import os, sys  # subprocess would take twice as long to start
child = os.fork()
if not child:
    os.setsid()
    os.execvp(sys.argv[1], sys.argv[1:])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))' "$@"
"""


@pytest.fixture
def docker(needs_posix: None, tmp_path: Path) -> Path:
    """Return a program that takes the arguments of `docker exec`, and runs the command on this machine."""
    (tmp_path / "docker").mkdir()
    program = tmp_path / "docker" / "docker"
    program.write_text(DOCKER.replace("{python}", sys.executable))
    program.chmod(0o755)
    return program


@pytest.fixture
def container(docker: Path, folder: Path) -> Container:
    """Return a container of the stand-in, with the folder of the test as its directory."""
    from ripwrap import remote

    return remote.docker("box", cwd=folder, program=docker)


@pytest.fixture
def there(rg: binary.RgBinary) -> str:
    """Return the path of rg on the hosts, which are this machine."""
    return os.path.realpath(rg.path)


@pytest.fixture
def calls(docker: Path) -> Callable[[], list[str]]:
    """Return a function that lists the arguments of all calls of the stand-in, without the scripts."""
    return lambda: (docker.parent / "calls").read_text().splitlines()


@pytest.fixture
def stuck(needs_posix: None, plant: Callable[..., Path]) -> Path:
    """A folder in which rg yields the matches of `sparse`, and then waits for ever for a FIFO and writes nothing."""
    folder = plant({"sparse": "needle\n" * 10})
    os.mkfifo(folder / "fifo")
    return folder

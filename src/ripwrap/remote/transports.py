"""Hosts that are reached by ssh, and containers that are reached by docker or podman."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from ripwrap._system.windows import IS_WINDOWS
from ripwrap.errors import Hint, HintedText, RemoteError
from ripwrap.options import StrPath
from ripwrap.remote.finding import join, quote
from ripwrap.remote.host import Host, check_directory, shell_line

SSH_OPTIONS: Mapping[str, str | int] = {
    "BatchMode": "yes",  # ask no question on the terminal
    "ConnectTimeout": 10,
    "ServerAliveInterval": 15,  # ssh sends three of these messages, so a dead connection ends within a minute
    "LogLevel": "ERROR",  # no banner
    "RequestTTY": "no",  # a terminal would change bytes of the output
    "RemoteCommand": "none",
    "ClearAllForwardings": "yes",
    "ForwardX11": "no",
    "ForwardAgent": "no",
}
"""Default options of ssh. The caller's options come before them, and ssh uses the first value (ssh_config(5))."""

_BAD_HOST = re.compile(r"""['"`$\\;&<>|(){}\s\x00-\x1f\x7f]|(?:^|[@:/\[])(?:-|@|$)""")
"""Characters that OpenSSH 9.6 and later refuses in host and user names, because a ProxyCommand may pass them to a shell
(CVE-2023-51385); and a user, host or port that is empty or begins with a dash, which a program may take for an option
(CVE-2017-1000117)."""

_CONTAINER = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
"""Pattern for names of containers (moby, daemon/names/names.go); ids also match it."""

_OPTION = re.compile(r"[A-Za-z][A-Za-z0-9]*")

_NO_KEY = "Load a key into ssh-agent, or set IdentityFile in the configuration of ssh; ripwrap passes no password."
_SSH_ADVICE = (
    ("Permission denied (", _NO_KEY),
    ("Host key verification failed", "Connect once with ssh in a terminal, and check the key of the host."),
    ("Could not resolve hostname", "Check the name of the host."),
)
"""Error messages of ssh, each with advice."""

_NO_SHELL = "The host must be a POSIX system, and the login shell must be like sh, e.g. bash, zsh or fish."


@dataclass(frozen=True, slots=True, kw_only=True)
class SshHost(Host):
    """A machine that is reached by the program `ssh` of this system; the function `ssh()` returns it.

    Attributes:
        host: Host name, alias from the ssh configuration, or `user@host`.
        options: Options of ssh, as `-o` takes them, in the order of their names.
        config: Configuration file of ssh; empty is the configuration of the user.
        program: The ssh to run.
    """

    host: str
    options: tuple[tuple[str, str], ...] = ()
    config: str = ""
    program: str = "ssh"

    @property
    def name(self) -> str:
        """Name of the host without a directory, e.g. `ssh:build-7`."""
        user, at, machine = self.host.rpartition("@")
        return f"ssh:{user}{at}[{machine}]" if ":" in machine else f"ssh:{self.host}"

    def script_line(self, script: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """Return the local command line that runs a POSIX shell script, with these arguments, on the host."""
        given = dict(self.options)
        named = {name.lower() for name in given}
        defaults = {name: value for name, value in SSH_OPTIONS.items() if name.lower() not in named}
        options = [f"-o{name}={value}" for name, value in (given | defaults).items()]
        config = ("-F", self.config) if self.config else ()
        # `exec` replaces the login shell by sh, so the login shell need not understand the script.
        command = join(("exec", *shell_line(script, arguments)))
        return (self.program, *config, "-T", *options, "--", self.host, command)

    def cost(self, argument: str) -> int:
        """Return the size of a quoted argument, in bytes, with the space that follows it."""
        return len(quote(os.fsencode(argument))) + 1

    def advice(self, code: int, stderr: str) -> str:
        """Return advice about a failed command line; empty if ssh was killed, or if the message of ssh says enough."""
        if code != 255:
            return "" if code < 0 else _NO_SHELL
        return next((advice for text, advice in _SSH_ADVICE if text in stderr), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container(Host):
    """A container that is reached by the program `docker` or `podman` of this system; `docker()` returns it.

    Attributes:
        container: Name or id.
        user: User that runs rg, e.g. `1000:1000`; empty is the default user of the container.
        program: The docker or podman to run.
    """

    container: str
    user: str = ""
    program: str = "docker"

    @property
    def name(self) -> str:
        """Name of the container without a directory, e.g. `docker:web` or `podman:web`."""
        return f"{'podman' if os.path.basename(self.program) == 'podman' else 'docker'}:{self.container}"

    def script_line(self, script: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """Return the local command line that runs a POSIX shell script, with these arguments, in the container."""
        user = (f"--user={self.user}",) if self.user else ()
        return (self.program, "exec", "--interactive", *user, self.container, *shell_line(script, arguments))

    def cost(self, argument: str) -> int:
        """Return the size of an argument, in bytes, with the byte that ends it."""
        return len(os.fsencode(argument)) + 1

    def advice(self, code: int, stderr: str) -> str:  # noqa: ARG002 - for ssh
        """Return advice about a failure of docker or podman; empty if the message of the program says enough."""
        return "The container needs a POSIX shell, sh, in its PATH." if code in (126, 127) else ""


def ssh(
    host: str,
    *,
    cwd: StrPath = ".",
    options: Mapping[str, str | int] | None = None,
    config: StrPath | None = None,
    program: StrPath = "ssh",
) -> SshHost:
    """Return a machine that is reached by ssh, for the argument `on=` of the operations; this does not connect yet.

    Each search runs the system's ssh, with the user's keys and configuration. It asks for no password, so it fails if
    no key works. When the search, the connection or this process ends, rg on the host ends within about a second.

    Args:
        host: Host name, alias from the ssh configuration, or `user@host`.
        cwd: Directory on the host; searches are relative to it. A relative path starts at the login directory. `~` is
            not expanded.
        options: Options of ssh (ssh_config(5)), e.g. `{"Port": 2222}`. They override the options of ripwrap:
            `BatchMode=yes`, `ConnectTimeout=10`, `ServerAliveInterval=15`, `LogLevel=ERROR`, `RequestTTY=no`,
            `RemoteCommand=none`, `ClearAllForwardings=yes`, `ForwardX11=no` and `ForwardAgent=no`. Pass only options
            that you trust, because some of them start programs.
        config: Configuration file of ssh; `None` is the configuration of the user.
        program: The ssh to run, a path or a name in PATH.

    Raises:
        ValueError: `host` is empty, has a user, host or port that is empty or begins with a dash, or has white space or
            a character that a shell expands; `cwd`
            begins with `~` or has a NUL; a name in `options` cannot be an option of ssh; or a value in `options` has a
            line end or a NUL.
        RemoteError: This machine runs Windows.
    """
    check_system()
    # ssh decodes the percent-escapes of ssh://USER@HOST:PORT.
    if not host or any(_BAD_HOST.search(text) or not text.isprintable() for text in (host, unquote(host))):
        raise ValueError(
            HintedText(Hint("host", kind="correct"), f" must be a name such as build-7 or user@build-7, got {host!r}")
        )
    for name, value in (options or {}).items():
        if not _OPTION.fullmatch(name) or re.search(r"[\x00\n]", str(value)):
            raise ValueError(
                "an option of ssh must be like {'Port': 2222}, with a name of letters and digits, and a value on one "
                f"line; got {{{name!r}: {value!r}}}"
            )
    return SshHost(
        host=host,
        cwd=check_directory(os.fspath(cwd)),
        options=tuple(sorted((name, str(value)) for name, value in (options or {}).items())),
        config="" if config is None else os.fspath(config),
        program=os.fspath(program),
    )


def docker(name: str, *, cwd: StrPath = ".", user: str = "", program: StrPath = "docker") -> Container:
    """Return a container, for the argument `on=` of the operations; this does not run docker yet.

    The container must run when it is searched.

    Each search runs `docker exec`. The container needs a POSIX shell, `sh`, and an rg, which `install()` can
    put into it.

    Args:
        name: Name or id of the container.
        cwd: Directory in the container; searches are relative to it. A relative path starts at the working directory of
            the container. `~` is not expanded.
        user: User that runs rg, e.g. `1000:1000`; empty is the default user of the container.
        program: The program to run, a path or a name in PATH, such as `podman`.

    Raises:
        ValueError: `name` cannot be the name of a container, `user` is malformed, or `cwd` begins with `~` or has a
            NUL.
        RemoteError: This machine runs Windows.
    """
    check_system()
    if not _CONTAINER.fullmatch(name):
        raise ValueError(f"the name of a container may have only letters, digits, '_', '.' and '-', got {name!r}")
    if user and not re.fullmatch(r"[a-zA-Z0-9_][a-zA-Z0-9_.-]*(:[a-zA-Z0-9_.-]+)?", user):
        raise ValueError(f"user must be an id or name, or USER:GROUP, such as 1000 or 1000:1000; got {user!r}")
    return Container(container=name, cwd=check_directory(os.fspath(cwd)), user=user, program=os.fspath(program))


def parse_host(text: str) -> Host:
    """Return the host in a text such as `ssh:build-7:/srv/src`, `docker:web:/app` or `podman:web`.

    An IPv6 address is written in brackets: `ssh:[::1]:/srv`. Set the port and the user's key in the configuration of
    ssh.

    Raises:
        ValueError: The text is not of this form, or `ssh()` or `docker()` refuses a part of it.
        RemoteError: This machine runs Windows.
    """
    found = re.fullmatch(r"(ssh|docker|podman):((?:[^:\[\]]*@)?\[[^\]]*\]|[^:]*)(?::(.*))?", text, re.DOTALL)
    if found is None:
        said = f" must be ssh:HOST[:DIR], docker:NAME[:DIR] or podman:NAME[:DIR], got {text!r}"
        raise ValueError(HintedText(Hint("on", kind="correct"), said))
    kind, name, cwd = found[1], found[2], found[3] or "."
    if kind == "ssh":
        return ssh(name.replace("[", "").replace("]", ""), cwd=cwd)
    return docker(name, cwd=cwd, program=kind)


def check_system(*, windows: bool = IS_WINDOWS) -> None:
    """Raise `RemoteError` on Windows, on which ssh and docker were not tested."""
    if windows:
        raise RemoteError("ripwrap.remote does not run on Windows; run Python in WSL, where ssh and docker work")

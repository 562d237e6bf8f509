"""Hosts as values: their command lines, and what they refuse. Nothing is run."""

import pickle
import re
from pathlib import Path

import pytest

from ripwrap import RemoteError, remote, sync
from ripwrap._ripgrep.command import files_query, render, search_query
from ripwrap._ripgrep.process import split
from ripwrap.remote.finding import WATCHDOG
from ripwrap.remote.transports import check_system


def test_ssh_runs_the_watchdog_with_quoted_arguments() -> None:
    host = remote.ssh("me@build-7", cwd="/srv/my src")
    *start, command = host.command_line(("/usr/bin/rg", "--regexp=it's"), host.path("."))
    assert start == [
        "ssh", "-T", "-oBatchMode=yes", "-oConnectTimeout=10", "-oServerAliveInterval=15", "-oLogLevel=ERROR",
        "-oRequestTTY=no", "-oRemoteCommand=none", "-oClearAllForwardings=yes", "-oForwardX11=no", "-oForwardAgent=no",
        "--", "me@build-7",
    ]  # fmt: skip
    assert command.startswith("exec sh -c '\nunset RIPGREP_CONFIG_PATH")
    assert command.endswith(" ripwrap '/srv/my src' /usr/bin/rg '--regexp=it'\\''s'")


def test_options_of_the_caller_replace_the_defaults() -> None:
    host = remote.ssh("h", options={"Port": 2222, "batchmode": "no"}, config="/c", program="/bin/ssh")
    start = host.command_line(("rg",), ".")[:-1]
    assert start[:6] == ("/bin/ssh", "-F", "/c", "-T", "-oPort=2222", "-obatchmode=no")
    assert "-oBatchMode=yes" not in start


def test_docker_passes_arguments_without_a_shell_of_this_machine() -> None:
    host = remote.docker("web", cwd="app", user="1000:1000", program="podman")
    assert host.command_line(("/usr/bin/rg", "it's"), host.path("src")) == (
        "podman", "exec", "--interactive", "--user=1000:1000", "web", "sh", "-c", WATCHDOG, "ripwrap", "./app/src",
        "/usr/bin/rg", "it's",
    )  # fmt: skip


@pytest.mark.parametrize(
    "name", ["", "-oProxyCommand=touch x", "-h", "a b", "a\nb", "$(x)", "a;b", "`x`", "a'b", "a\\", "a\0", "a|b", "(a)"]
)
def test_ssh_refuses_names_that_are_options_or_shell_code(name: str) -> None:
    with pytest.raises(ValueError, match="host must be a name such as build-7"):
        remote.ssh(name)


@pytest.mark.parametrize(
    "name",
    [
        "u@-oProxyCommand=x", "ssh://-oPort=1", "ssh://u@-oPort=1", "ssh://%2doPort=1", "ssh://u@%2DoPort=1",
        "%2doPort=1", "a@b@-oPort=1", "-u@h", "ssh://-u@h", "ssh://h:-oPort=1", "[-oPort=1]", "u@[-oPort=1]", "ssh://[-oPort=1]",
        "@h", "u@", "@", "ssh://", "ssh://u@", "ssh://h:", " h", "h ", "h\t", "ssh://%20h", "ssh://h%0a", "u@\u202eh",
        "u@h\x9b", "u@\u200bh", "u@h\u2028",
    ],
)  # fmt: skip
def test_ssh_refuses_users_hosts_and_ports_that_a_program_may_take_for_options(name: str) -> None:
    for made in (lambda: remote.ssh(name), lambda: sync.grep("x", on=remote.ssh(name))):
        with pytest.raises(ValueError, match="host must be a name such as build-7") as raised:
            made()
        assert "\n" not in str(raised.value) and str(raised.value).isprintable()


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "u@-oProxyCommand=x", "[-oPort=1]", "u@[-oPort=1]"])
def test_host_in_a_text_is_refused_too(name: str) -> None:
    with pytest.raises(ValueError, match="host must be a name such as build-7"):
        remote.parse_host(f"ssh:{name}:/srv")


@pytest.mark.parametrize(
    "name",
    ["build-7", "me@build-7", "::1", "me@fe80::1%eth0", "ssh://me@build-7:2222", "ssh://[::1]:22", "a-.b-", "alias_1",
     "me@corp@gateway", "host."],
)  # fmt: skip
def test_ssh_passes_names_that_begin_with_no_dash(name: str) -> None:
    assert remote.ssh(name).command_line(("rg",), ".")[-3:-1] == ("--", name)


@pytest.mark.parametrize("name", ["", "-it", "a b", "a/b", "--user=0", "a\n", "$(x)", ".a"])
def test_docker_refuses_names_that_no_container_has(name: str) -> None:
    with pytest.raises(ValueError, match="the name of a container"):
        remote.docker(name)


@pytest.mark.parametrize("options", [{"-oX": 1}, {"Port=1 ": 1}, {"": 1}, {"User": "a\nProxyCommand x"}])
def test_ssh_refuses_malformed_options(options: dict[str, str | int]) -> None:
    with pytest.raises(ValueError, match="an option of ssh must be like"):
        remote.ssh("h", options=options)


def test_docker_refuses_a_user_that_is_an_option() -> None:
    with pytest.raises(ValueError, match="user must be an id or name"):
        remote.docker("web", user="-x")


@pytest.mark.parametrize("cwd", ["~", "~/src", "~me/src"])
def test_tilde_is_refused_because_nothing_expands_it(cwd: str) -> None:
    with pytest.raises(ValueError, match="begins with ~, which is not expanded; pass an absolute path"):
        remote.ssh("h", cwd=cwd)
    with pytest.raises(ValueError, match="begins with ~"):
        files_query(cwd, (), {}, on=remote.ssh("h"))


@pytest.mark.parametrize(
    ("directory", "cwd", "expected"),
    [
        (".", ".", "."),
        ("/srv", ".", "/srv"),
        ("/srv", "a", "/srv/a"),
        ("/srv", "/etc", "/etc"),
        ("srv", "../a", "srv/../a"),
        ("./~", ".", "./~"),
        ("-", ".", "-"),
    ],
)
def test_directory_of_a_search_is_relative_to_that_of_the_host(directory: str, cwd: str, expected: str) -> None:
    host = remote.ssh("h", cwd=directory)
    assert search_query("x", cwd, (), {}, on=host).cwd == expected


@pytest.mark.parametrize(
    "text",
    ["ssh:build-7", "ssh:me@build-7:/srv/src", "ssh:[::1]:/a:b", "ssh:me@[::1]", "docker:web:/app", "podman:web"],
)
def test_host_is_parsed_from_its_own_text(text: str) -> None:
    assert str(remote.parse_host(text)) == text


def test_parsed_hosts_equal_those_of_the_functions() -> None:
    assert remote.parse_host("ssh:h:/srv:x") == remote.ssh("h", cwd="/srv:x")
    assert remote.parse_host("ssh:u@[fe80::1]:a") == remote.ssh("u@fe80::1", cwd="a")
    assert remote.parse_host("podman:web:") == remote.docker("web", program="podman")


@pytest.mark.parametrize("text", ["", "h", "h:/srv", "ftp:h:/srv", "ssh", "SSH:h"])
def test_invalid_host_text_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=re.escape(f"on must be ssh:HOST[:DIR], docker:NAME[:DIR] or podman:NAME[:DIR], got {text!r}")
    ):
        remote.parse_host(text)


def test_windows_is_refused() -> None:
    with pytest.raises(RemoteError, match="does not run on Windows"):
        check_system(windows=True)


@pytest.mark.parametrize("host", [remote.ssh("h", cwd="/srv", options={"Port": 1}), remote.docker("web")])
def test_hosts_can_be_pickled_and_hashed(host: remote.Host) -> None:
    assert {pickle.loads(pickle.dumps(host))} == {host}
    assert pickle.loads(pickle.dumps(search_query("x", ".", (), {}, on=host))).on == host


def test_long_path_lists_are_split_by_their_quoted_size() -> None:
    paths = [f"it's {'x' * 90} {number}" for number in range(2000)]
    host = remote.ssh("h")
    parts = split(search_query("x", ".", paths, {}, on=host))
    assert [path for part in parts for path in part.paths] == paths
    lines = [host.command_line(("rg", *render(part)), part.cwd)[-1] for part in parts]
    assert 1 < len(lines) < 5
    assert max(map(len, lines)) < 128 * 1024  # MAX_ARG_STRLEN of Linux


def test_binary_of_this_machine_is_refused(rg: object, folder: Path) -> None:
    with pytest.raises(TypeError, match="rg must be a path or a name on ssh:h, got an RgBinary"):
        list(sync.files(on=remote.ssh("h"), rg=rg))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "-x", "a\0"])
def test_names_of_rg_that_are_options_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="rg must be a path or a name on the host"):
        list(sync.files(on=remote.docker("web"), rg=name))


def test_coverage_is_refused_on_a_host() -> None:
    with pytest.raises(ValueError, match="coverage cannot be combined with on=: it reads files of this machine;"):
        sync.grep("x", on=remote.ssh("h"), coverage=True)

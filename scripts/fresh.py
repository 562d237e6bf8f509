"""Run README's two commands on fresh Debians: `python scripts/fresh.py [--whole] [SUITE]...`.

Each Debian is made by mmdebstrap or debootstrap in a temporary directory, with Python, venv, pip and git. It gets a
clone of the project at HEAD, and a user without rights, who runs the commands of README.md in a chroot. The second
command runs only a part of the tests (`PART`), or all with `--whole`. The variable `MIRROR` names another mirror of
Debian. The exit code is 1 if a command fails.

All this happens in namespaces, which end with their processes and mounts. Without root, user ids are mapped, too.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
SUITES = {"bookworm": "Debian 12", "trixie": "Debian 13", "sid": "Debian sid"}
PACKAGES = "python3,python3-venv,python3-pip,git,ca-certificates"
MIRROR = os.environ.get("MIRROR", "http://deb.debian.org/debian")
PART = "test_readme or test_search or test_fresh_machine"
COPIED = ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")
"""Files of this machine that pip needs to reach a package index."""
PASSED = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "http_proxy", "https_proxy", "no_proxy")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
HOME = "/home/user"
SECONDS = 5400
INSIDE = "--inside"
"""Argument of the process that runs in the namespaces."""


def run(*argv: str | Path) -> None:
    """Run a program; `CalledProcessError` is raised if it fails."""
    subprocess.run(argv, check=True, timeout=SECONDS)


def need(package: str, *programs: str) -> str:
    """Return the first program that is installed, or exit with the name of a package that has one."""
    if found := next(filter(None, map(shutil.which, programs)), None):
        return found
    sys.exit(f"{' or '.join(programs)} is missing: apt install {package}")


def namespaces() -> list[str]:
    """Return the start of a command line that runs a program in namespaces of its own."""
    argv = [need("util-linux", "unshare"), "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() == 0:
        return argv
    need("uidmap", "newuidmap")
    return [*argv, "--map-root-user", "--map-auto"]


def make(suite: str, root: Path) -> None:
    """Make a Debian in a directory."""
    maker = need("mmdebstrap", "mmdebstrap", "debootstrap")
    if maker.endswith("mmdebstrap"):
        # A mirror may have an old snapshot, whose Release file has expired. Tests get rg 13 with the lists of packages.
        options = ["--quiet", "--aptopt=Acquire::Check-Valid-Until false", "--skip=cleanup/apt/lists"]
        run(maker, *options, "--variant=minbase", f"--include={PACKAGES}", suite, root, MIRROR)
    else:
        run(maker, "--variant=minbase", f"--include={PACKAGES}", suite, root, MIRROR)


def furnish(root: Path) -> None:
    """Give a Debian its file systems, its network and a user who has a clone of the project."""
    run("mount", "--bind", root, root)  # as on a machine, / is a mount point
    run("mount", "-t", "proc", "proc", root / "proc")
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", root / "dev")
    for device in DEVICES:
        (root / "dev" / device).touch()
        run("mount", "--bind", f"/dev/{device}", root / "dev" / device)
    (root / "dev" / "fd").symlink_to("/proc/self/fd")
    for folder in ("pts", "shm"):
        (root / "dev" / folder).mkdir()
    run("mount", "-t", "devpts", "-o", "newinstance,ptmxmode=0666", "devpts", root / "dev" / "pts")
    (root / "dev" / "ptmx").symlink_to("pts/ptmx")
    run("mount", "-t", "tmpfs", "-o", "size=1g,mode=1777", "tmpfs", root / "dev" / "shm")
    for file in filter(os.path.exists, COPIED):
        shutil.copyfile(file, f"{root}{file}")
    run("chroot", root, "/usr/sbin/useradd", "--create-home", f"--home-dir={HOME}", "--shell=/bin/bash", "user")
    run("git", "clone", "--quiet", "--no-hardlinks", PROJECT, f"{root}{HOME}/ripwrap")
    run("chroot", root, "/usr/bin/chown", "--recursive", "user:user", HOME)


def inside(root: Path, command: str) -> int:
    """Run a command as the user, in the clone, and return its exit code."""
    environment = {"HOME": HOME, "USER": "user", "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    environment |= {name: os.environ[name] for name in PASSED if name in os.environ}
    argv = [need("coreutils", "chroot"), "--userspec=user:user", str(root), "bash", "-c"]
    done = subprocess.run([*argv, f"cd {HOME}/ripwrap && {command}"], env=environment, check=False, timeout=SECONDS)
    return done.returncode


def commands(readme: str, whole: bool) -> list[str]:
    """Return the two commands that README prints; without `whole`, the second one selects `PART` of the tests."""
    block, *_ = re.findall("^```(?:sh|console)\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    first, second = block.splitlines()
    return [first, second if whole else f"{second} -- -k {shlex.quote(PART)}"]


def megabytes(folder: Path) -> int:
    """Return the size of a directory on the disk, in MB of 1,000,000 bytes."""
    argv = ["du", "--summarize", "--one-file-system", "--block-size=1", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return round(int(done.stdout.split()[0]) / 1e6)


def check(suite: str, root: Path, whole: bool) -> tuple[bool, str]:
    """Run the commands on a fresh Debian; return True if both succeed, and text with exit codes, times and sizes."""
    start = time.monotonic()
    make(suite, root)
    lines = [f"{SUITES.get(suite, suite)}: made in {time.monotonic() - start:.0f} s, {megabytes(root)} MB"]
    furnish(root)
    home, codes = Path(f"{root}{HOME}"), list[int]()
    readme = (home / "ripwrap" / "README.md").read_text("utf-8")
    for command in commands(readme, whole):
        before, start = megabytes(home), time.monotonic()
        print(f"{suite}$ {command}", flush=True)
        codes.append(inside(root, command))
        took = f"{time.monotonic() - start:.0f} s, {megabytes(home) - before:+} MB"
        lines.append(f"  rc {codes[-1]}, {took}: {command}")
    lines.append(f"  in the end, {HOME} has {megabytes(home)} MB, and /tmp {megabytes(root / 'tmp')} MB")
    return not any(codes), "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Check each suite in namespaces, print what was measured, and return the exit code."""
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"  # of root; it has chroot and debootstrap
    whole = "--whole" in arguments
    named = [one for one in arguments if one != "--whole"]
    if named[:1] == [INSIDE]:
        suite, folder = named[1], Path(named[2])
        succeeded, text = check(suite, folder / "root", whole)
        (folder / "measured").write_text(text, "utf-8")
        return 0 if succeeded else 1
    apart, failed, measured = namespaces(), False, list[str]()
    for suite in named or SUITES:
        folder = Path(tempfile.mkdtemp(prefix=f"fresh-{suite}-", dir="/var/tmp"))
        folder.chmod(0o755)
        try:
            argv = [*apart, sys.executable, __file__, INSIDE, suite, str(folder), *(["--whole"] if whole else [])]
            done = subprocess.run(argv, check=False)
            failed |= done.returncode != 0
            file = folder / "measured"
            measured.append(file.read_text("utf-8") if file.exists() else f"{suite}: not made, see above")
        finally:
            run(*apart, "rm", "--recursive", "--force", "--one-file-system", folder)
    print("\n".join(measured))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

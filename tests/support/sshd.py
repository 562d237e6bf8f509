"""The programs ssh and sshd. Tests never install them: `.ci/run` does."""

import os
import shutil

import pytest


def find() -> str:
    """Return the path of sshd; skip the test if ssh or sshd is missing, or fail if RIPWRAP_ALL_SERVERS is set."""
    found = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if found is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        why = "these tests need ssh and sshd, which are not installed (apt install openssh-client openssh-server)"
        (pytest.fail if os.environ.get("RIPWRAP_ALL_SERVERS") else pytest.skip)(why)
    return found

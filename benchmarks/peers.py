"""Find the compared libraries that cannot be imported: rpygrep 0.2.1, for example, needs Python 3.12."""

import subprocess

from cases import PEERS


def module(peer: str) -> str:
    """Return the name of the module of a library."""
    return peer.replace("-", "_")


def import_errors(python: str) -> dict[str, str]:
    """Return the import errors of the libraries that a Python cannot import, by name; the caller reports them."""
    reasons: dict[str, str] = {}
    for peer in PEERS:
        done = subprocess.run([python, "-c", f"import {module(peer)}"], capture_output=True, text=True, check=False)
        if done.returncode:
            reasons[peer] = done.stderr.strip().rpartition("\n")[2]
    return reasons

"""Which of the libraries that ripwrap is compared with run where they were installed: rpygrep 0.2.1 not before 3.12."""

import subprocess

from cases import PEERS


def module(peer: str) -> str:
    """What is imported of it."""
    return peer.replace("-", "_")


def left_out(python: str) -> dict[str, str]:
    """Return the peers that an environment cannot import, each with the reason; the caller has to report them."""
    reasons: dict[str, str] = {}
    for peer in PEERS:
        done = subprocess.run([python, "-c", f"import {module(peer)}"], capture_output=True, text=True, check=False)
        if done.returncode:
            reasons[peer] = done.stderr.strip().rpartition("\n")[2]
    return reasons

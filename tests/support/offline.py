"""Audit hook that refuses connections to other machines; `python offline.py SCRIPT …` runs a script with it."""

import runpy
import sys
from typing import Any

HERE = ("127.0.0.1", "::1", "localhost", b"localhost", None)
DISCARD = 9  # closed port, which tests set as the proxy for processes without this hook

attempts: list[str] = []
on = False


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse connections to other machines and record them, because callers may swallow the error."""
    if not on or event not in ("socket.connect", "socket.getaddrinfo"):
        return
    address = arguments[1] if event == "socket.connect" else arguments[:2]
    if isinstance(address, tuple) and (address[0] not in HERE or address[1] == DISCARD):
        attempts.append(f"{event} {address}")
        raise OSError(f"no network in this test: {address}")


sys.addaudithook(refuse)

if __name__ == "__main__":
    on = True
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    if attempts:
        sys.exit(f"it tried to reach {attempts}")

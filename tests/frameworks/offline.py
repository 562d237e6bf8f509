"""A process that reaches nothing but itself; as a program, `python offline.py SCRIPT …`, it runs a script so."""

import runpy
import sys
from typing import Any

HERE = ("127.0.0.1", "::1", "localhost", b"localhost", None)
DISCARD = 9  # Nobody listens at this port; it is where the tests say that a proxy is, for processes without this hook.

attempts: list[str] = []
on = False


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what leaves this machine, and note it, since who tries may well swallow the error."""
    if not on or event not in ("socket.connect", "socket.getaddrinfo"):
        return
    address = arguments[1] if event == "socket.connect" else arguments[:2]
    if isinstance(address, tuple) and (address[0] not in HERE or address[1] == DISCARD):
        attempts.append(f"{event} {address}")
        raise OSError(f"no network here: {address}")


sys.addaudithook(refuse)

if __name__ == "__main__":
    on = True
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    if attempts:
        sys.exit(f"it tried to reach {attempts}")

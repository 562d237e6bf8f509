"""The network guard of the frameworks' tests detects every attempt to connect."""

import subprocess
import sys
from pathlib import Path

import pytest

from support import offline

pytestmark = [pytest.mark.extra, pytest.mark.slow]

SWALLOWED = "import contextlib, socket, urllib.request\nwith contextlib.suppress(OSError):\n    {attempt}\n"


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('192.0.2.1', 443), timeout=1)",
        "socket.getaddrinfo('example.invalid', 443)",
        "urllib.request.urlopen('http://example.invalid', timeout=1)",
    ],
)
def test_network_attempt_is_refused_and_reported_even_if_swallowed(attempt: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SWALLOWED.format(attempt=attempt))
    command = [sys.executable, offline.__file__, str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 1
    assert "it tried to reach" in done.stderr

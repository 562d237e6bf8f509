"""That nothing is reached is worth only as much as what would notice it."""

import subprocess
import sys
from pathlib import Path

import pytest

from frameworks import offline

SWALLOWED = "import contextlib, socket, urllib.request\nwith contextlib.suppress(OSError):\n    {attempt}\n"


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('192.0.2.1', 443), timeout=1)",
        "socket.getaddrinfo('example.invalid', 443)",
        "urllib.request.urlopen('http://example.invalid', timeout=1)",
    ],
)
def test_an_attempt_is_refused_and_told_even_if_its_error_is_swallowed(attempt: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SWALLOWED.format(attempt=attempt))
    command = [sys.executable, offline.__file__, str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 1
    assert "it tried to reach" in done.stderr

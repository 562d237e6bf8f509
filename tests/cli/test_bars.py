"""Progress bars on a terminal that Ctrl-C cuts: a clean screen, the cursor, and one line."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from pathlib import Path

import pytest

from ripwrap.cli.terminal import DownloadBar
from support.cli import RIPWRAP, read_terminal

Plant = Callable[..., Path]
CLEAR = "\x1b[2K"


def lines_on_screen(written: str) -> list[str]:
    """Return the lines that a terminal shows: returns, erased lines and moves up are obeyed, colors are not."""
    lines, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", written):
        if token == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif token == "\r":
            column = 0
        elif token == CLEAR:
            lines[row] = ""
        elif token == "\x1b[1A":
            row = max(row - 1, 0)
        elif not token.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + token + lines[row][column + len(token) :]
            column += len(token)
    return [line for line in lines if line]


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.python
def test_ctrl_c_removes_the_bar_and_leaves_one_line(plant: Plant, tmp_path: Path) -> None:
    """Nothing said that the index is not complete."""
    import pty  # only POSIX has it

    folder = plant({f"{number}.py": f"def cookie{number}(): ...\n" * 20 for number in range(2_000)})
    leader, follower = pty.openpty()
    command = [*RIPWRAP, "index", "build", f"--location={tmp_path / 'home'}", "--chunker=windows"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    written = b""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=follower,
        process_group=0,
    ) as program:
        os.close(follower)
        while b"files" not in written:
            written += os.read(leader, 65536)
        os.killpg(program.pid, signal.SIGINT)
        written += read_terminal(leader)
        program.communicate(timeout=30)
    os.close(leader)
    assert program.returncode == 130
    assert lines_on_screen(written.decode()) == ["ripwrap: interrupted"]
    assert written.rfind(b"\x1b[?25h") > written.rfind(b"\x1b[?25l")  # the cursor is shown


@pytest.mark.slow
@pytest.mark.posix
def test_cut_download_leaves_one_line_and_a_finished_one_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    import pty

    monkeypatch.setenv("TERM", "xterm-256color")
    for interrupted in (True, False):
        leader, follower = pty.openpty()
        with (
            open(follower, "w", encoding="utf-8") as terminal,
            redirect_stderr(terminal),
            suppress(KeyboardInterrupt),
            DownloadBar() as bar,
        ):
            bar(100, 100)
            if interrupted:
                raise KeyboardInterrupt
        shown = lines_on_screen(read_terminal(leader).decode())
        os.close(leader)
        if interrupted:
            assert shown == ["ripwrap: interrupted"]
        else:
            assert len(shown) == 1 and shown[0].startswith("downloading rg ")

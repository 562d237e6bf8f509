"""Make the pictures of the documentation in `docs/pictures`; `nox -s docs` runs it.

Each capture shows the output of a command in a terminal. Paths of this machine are shortened.
"""

import os
import platform
import pty
import re
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

import pipeline
from ripwrap.binary.platforms import current, targets
from ripwrap.binary.probe import format_version
from ripwrap.binary.releases import asset_name, folder_name
from ripwrap.sync import resolve
from support.mirror import Mirror, serving, targz

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs/pictures"
NOTEBOOK = ROOT / "examples/notebook.ipynb"
COLUMNS, LINES = 92, 30
COMMANDS = {
    "search": ["search", r"TODO: (\w+)", "--cwd", "docs/demo", "--glob", "*.py", "--sort", "path"],
    "tree": ["tree", "--cwd", "docs/demo"],
    "doctor": ["doctor"],
    "install": ["install"],
}


def printed(arguments: Sequence[str], environment: dict[str, str]) -> str:
    """Run a command in a terminal and return what it prints."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (LINES, COLUMNS))
    command = [sys.executable, "-m", "ripwrap", *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as child:
        os.close(theirs)
        said = b""
        killer = threading.Timer(60, child.kill)
        killer.start()
        with suppress(OSError):  # Linux reports the end of a terminal as an error
            while piece := os.read(ours, 65536):
                said += piece
        os.close(ours)
        child.wait()
        killer.cancel()
    if child.returncode != 0:
        raise SystemExit(f"{command} failed with {child.returncode}:\n{said.decode()}")
    return said.decode()


def capture(name: str, arguments: Sequence[str], environment: dict[str, str], shorter: dict[str, str]) -> str:
    """Run a command, and return a picture of its terminal as SVG."""
    text = printed(arguments, environment)
    for folder, short in shorter.items():
        text = text.replace(folder, short)
    shown = " ".join(f'"{one}"' if re.search(r"[^\w./=-]", one) else one for one in arguments)
    console = Console(record=True, width=COLUMNS, file=StringIO(), color_system="truecolor", force_terminal=True)
    console.print(Text(f"$ ripwrap {shown}", "bold"), soft_wrap=True)
    console.print(Text.from_ansi(text.replace("\r\n", "\n")))
    made = console.export_svg(title="", theme=MONOKAI, unique_id=f"ripwrap-{name}")
    return re.sub(r"@font-face {.*?}\n", "", made, flags=re.DOTALL)  # browsers load no fonts for a picture


def keep(path: Path, picture: str) -> None:
    """Write a picture; keep the present picture if only the speed of a download differs."""
    speed = re.compile(r"[\d.]+&#160;[kMG]?B/s")
    if not path.exists() or speed.sub("", path.read_text()) != speed.sub("", picture):
        path.write_text(picture)


def captures() -> None:
    """Make the pictures of commands in a new home directory; `install` gets a real rg from a mirror on this machine."""
    rg = resolve()
    version = format_version(rg.version)
    mirror, target = Mirror(), targets(current(), version)[0]
    with tempfile.TemporaryDirectory() as home, serving(mirror):
        digest = mirror.put(
            version, asset_name(version, target), targz(folder_name(version, target), Path(rg.path).read_bytes())
        )
        environment = {
            "HOME": home,
            "PATH": os.path.dirname(sys.executable),
            "TERM": "xterm-256color",
        }
        from_mirror = {"RIPWRAP_MIRROR": mirror.url, "RIPWRAP_SHA256": digest, "RIPWRAP_VERSION": version}
        shorter = {home: "~", sys.prefix: ".venv"}
        for name, arguments in COMMANDS.items():
            more = from_mirror if name == "install" else {}
            keep(PICTURES / f"{name}.svg", capture(name, arguments, environment | more, shorter))


def notebook(path: Path) -> None:
    """Run the notebook in its folder, and store it with its output for Sphinx."""
    run: Any = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(
        run, timeout=120, startup_timeout=120, kernel_name="python3", resources={"metadata": {"path": NOTEBOOK.parent}}
    ).execute()
    path.parent.mkdir(exist_ok=True)
    nbformat.write(run, path)


def main() -> None:
    """Make all pictures."""
    PICTURES.mkdir(exist_ok=True)
    keep(PICTURES / "pipeline.svg", pipeline.picture())
    captures()
    notebook(ROOT / "docs/_generated/notebook.ipynb")
    print(f"pictures made on {platform.system()} with Python {platform.python_version()}")


if __name__ == "__main__":
    main()

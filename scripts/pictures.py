"""Make the pictures of the documentation in `docs/pictures`; `nox -s docs` runs it.

Each capture shows the output of a command in a terminal, and the recording shows several commands one after the other.
Paths of this machine are shortened.
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

import demo
import pipeline
from ripwrap.binary.platforms import asset_name, current, folder_name, targets
from ripwrap.binary.probe import format_version
from ripwrap.sync import resolve
from support.mirror import Mirror, serving, targz

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs/pictures"
NOTEBOOK = ROOT / "examples/notebook.ipynb"
COLUMNS, LINES = 92, 30
COMMANDS = {
    "search": ["search", r"TODO: (\w+)", "--cwd", "demo", "--glob", "*.py", "--sort", "path"],
    "tree": ["tree", "--cwd", "demo"],
    "doctor": ["doctor"],
    "install": ["install"],
}
RECORDED = [
    COMMANDS["search"],
    ["rank", "where is pay defined?", "--cwd", "demo", "--limit", "1"],
    ["replace", "cards", "coins", "--cwd", "demo"],
]
PROGRAM = "from ripwrap import errors; errors._source = lambda: '.'; from ripwrap.__main__ import main; main()"
"""The command line, with hints that do not name the directory of this clone."""
SECONDS_PER_KEY, SECONDS_TO_ANSWER, SECONDS_TO_READ = 0.04, 0.3, 1.5
RECORDING_STYLE = """
@keyframes typed { from { clip-path: inset(0 100% 0 0) } to { clip-path: inset(0) } }
@keyframes hidden { from, to { visibility: hidden } }
@media (prefers-reduced-motion: reduce) { text { animation: none !important } }
"""


def printed(arguments: Sequence[str], environment: dict[str, str]) -> str:
    """Run a command in a terminal, in its home directory, and return what it prints."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (LINES, COLUMNS))
    command = [sys.executable, "-c", PROGRAM, *arguments]
    with subprocess.Popen(
        command, cwd=environment["HOME"], env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as child:
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


def show(console: Console, arguments: Sequence[str], environment: dict[str, str], shorter: dict[str, str]) -> None:
    """Run a command, and print it and its output on a console that records."""
    text = printed(arguments, environment)
    for folder, short in shorter.items():
        text = text.replace(folder, short)
    shown = " ".join(f'"{one}"' if re.search(r"[^\w./=-]", one) else one for one in arguments)
    console.print(Text(f"$ ripwrap {shown}", "bold"), soft_wrap=True)
    console.print(Text.from_ansi(text.replace("\r\n", "\n")))


def recorder() -> Console:
    """Return a console that records, and writes to nothing."""
    return Console(record=True, width=COLUMNS, file=StringIO(), color_system="truecolor", force_terminal=True)


def export(console: Console, name: str) -> str:
    """Return a picture of what a console has recorded, as SVG."""
    made = console.export_svg(title="", theme=MONOKAI, unique_id=f"ripwrap-{name}")
    return re.sub(r"@font-face {.*?}\n", "", made, flags=re.DOTALL)  # browsers load no fonts for a picture


def capture(name: str, arguments: Sequence[str], environment: dict[str, str], shorter: dict[str, str]) -> str:
    """Run a command, and return a picture of its terminal as SVG."""
    console = recorder()
    show(console, arguments, environment, shorter)
    return export(console, name)


def recording(environment: dict[str, str]) -> str:
    """Run the commands of `RECORDED`, and return a picture in which they are typed one after the other, as SVG.

    The output is that of the commands; the speed is set, so that the picture is the same each time. It plays once, and
    shows the whole terminal at its end, or at once to people who want no motion.
    """
    console = recorder()
    for arguments in RECORDED:
        show(console, arguments, environment, {})
    lines = console.export_text(clear=False).splitlines()
    style, now = RECORDING_STYLE, 0.5
    for number, line in enumerate(lines):
        how = f"hidden 1ms {now:.2f}s backwards"
        if line.startswith("$ "):
            now += SECONDS_TO_READ if number else 0
            seconds = len(line) * SECONDS_PER_KEY
            how = f"typed {seconds:.2f}s {now:.2f}s steps({len(line)}) backwards"
            now += seconds + SECONDS_TO_ANSWER
        style += f'[clip-path="url(#ripwrap-recording-line-{number})"] {{ animation: {how} }}\n'
    return export(console, "recording").replace("</style>", f"{style}</style>")


def keep(path: Path, picture: str) -> None:
    """Write a picture; keep the present picture if only the speed of a download differs."""
    speed = re.compile(r"[\d.]+&#160;[kMG]?B/s")
    if not path.exists() or speed.sub("", path.read_text()) != speed.sub("", picture):
        path.write_text(picture)


def captures() -> None:
    """Make the pictures of commands in a new home with the demo; `install` gets a real rg from a mirror here."""
    rg = resolve()
    version = format_version(rg.version)
    mirror, target = Mirror(), targets(current(), version)[0]
    with tempfile.TemporaryDirectory() as home, serving(mirror):
        demo.make(Path(home, "demo"))
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
        keep(PICTURES / "recording.svg", recording(environment))


def notebook(path: Path) -> None:
    """Run the notebook in a folder beside the demo, and store it with its output for Sphinx."""
    run: Any = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        demo.make(Path(folder, "demo"))
        examples = Path(folder, "examples")
        examples.mkdir()
        resources = {"metadata": {"path": examples}}
        NotebookClient(run, timeout=120, startup_timeout=120, kernel_name="python3", resources=resources).execute()
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

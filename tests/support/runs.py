"""Functions that run an example as a user does, or load it as a module."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from support import forks

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"


def command(name: str, *arguments: str | Path) -> list[str]:
    """Return the command line of an example, with warnings as errors."""
    return [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, arguments)]


def run(name: str, *arguments: str | Path, cwd: Path = ROOT) -> tuple[int, str, str]:
    """Run an example and return its exit code, stdout and stderr."""
    example = EXAMPLES / name
    done = forks.run([str(example), *map(str, arguments)], example.read_text("utf-8"), cwd=cwd, env=os.environ)
    return done.returncode, done.stdout, done.stderr


EXECUTE = """
import sys

import nbformat
from nbclient.cli import main

nbformat.validate(nbformat.read(sys.argv[1], as_version=4))
main()
"""


def executed(notebook: Path, home: Path) -> list[dict[str, Any]]:
    """Run a notebook with this Python and without user settings, and return its code cells."""
    places = ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(notebook), "--inplace", "--timeout=40"],
        env={**os.environ, "RIPWRAP_OFFLINE": "1", "JUPYTER_PATH": "", **dict.fromkeys(places, str(home))},
        capture_output=True,
        encoding="utf-8",
        timeout=55,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def load(name: str) -> ModuleType:
    """Import an example as a module without running it."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

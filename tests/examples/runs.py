"""Running an example as its user does, and loading it as a module."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"
DEMO = ROOT / "docs" / "demo"


def command(name: str, *arguments: str | Path) -> list[str]:
    """The command line of an example, with warnings as errors."""
    return [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, arguments)]


def run(name: str, *arguments: str | Path, cwd: Path = ROOT) -> tuple[int, str, str]:
    """The exit code of an example, and what it writes to stdout and stderr."""
    done = subprocess.run(
        command(name, *arguments), cwd=cwd, capture_output=True, encoding="utf-8", timeout=50, check=False
    )
    return done.returncode, done.stdout, done.stderr


def load(name: str) -> ModuleType:
    """An example as a module, which runs nothing."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

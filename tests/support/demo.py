"""Demo of the documentation as a git repository, for the page of recipes."""

import gzip
import os
import shutil
import subprocess
from pathlib import Path

from support.git import require_git

DEMO = Path(__file__).parents[2] / "docs" / "demo"


def plant(folder: Path) -> Path:
    """Copy the demo, and add a hidden, an ignored and a compressed file; return the folder.

    It has two commits by Ada and Ben. Only the first one has a token.
    """
    require_git()
    shutil.copytree(DEMO, folder)
    files = {".gitignore": "build/\n", ".env": "SHOP=demo\n", "build/prices.txt": "tea 3\n"}
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8", newline="\n")
    (folder / "logs").mkdir()
    (folder / "logs" / "till.log.gz").write_bytes(gzip.compress(b"card accepted\ncard refused\n"))
    till = folder / "shop" / "till.py"
    code = till.read_bytes()
    till.write_text(f'charge("ghp_{"0aB1" * 9}")\n', "utf-8")
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _commit(folder, "Ada", day=1)
    till.write_bytes(code)
    _commit(folder, "Ben", day=2)
    return folder


def _commit(folder: Path, author: str, day: int) -> None:
    identity = {"NAME": author, "EMAIL": f"{author}@example.com", "DATE": f"2024-03-{day:02}T12:00:00Z"}
    names = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in identity.items()}
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message=change", **names)


def _git(folder: Path, command: str, *arguments: str, **environment: str) -> None:
    argv = ["git", "-c", "core.autocrlf=false", command, *arguments]
    subprocess.run(argv, cwd=folder, env={**os.environ, **environment}, check=True)

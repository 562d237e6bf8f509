"""Make the demo that the documentation searches: `python3 scripts/demo.py [DIRECTORY]`; the default is `demo`.

The demo is a small shop: a git repository with commits by Ada and Ben, of which only the first one has a token. It has
a hidden file, a compressed file, and the directory `build`, which `.gitignore` ignores and in which examples write.
There is `stuck`, a named pipe without a writer, for which rg waits for ever. This script needs only Python and git.
"""

import gzip
import os
import subprocess
import sys
from pathlib import Path

FILES = {
    ".env": "SHOP=demo\n",
    ".gitignore": "build/\n",
    "README.txt": "Nothing is sold here. TODO: open.\n",
    "build/prices.txt": "tea 3\n",
    "shop/cart.py": """\
PRICES = {"tea": 3}


def total(items):
    # TODO: taxes
    return sum(PRICES[item] for item in items)
""",
    "shop/till.py": """\
def pay(amount):  # TODO: cards
    return amount
""",
}
TOKEN = f"ghp_{'0aB1' * 9}"  # in two parts, so that no scan finds one in this script


def make(folder: Path) -> None:
    """Write the demo into a directory that does not exist."""
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        _write(folder / name, text.encode())
    _write(folder / "logs" / "till.log.gz", gzip.compress(b"card accepted\ncard refused\n", mtime=0))
    _write(folder / "shop" / "till.py", f'charge("{TOKEN}")\n'.encode())
    if sys.platform != "win32":
        os.mkfifo(folder / "build" / "stuck")
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _commit(folder, "Ada", day=1)
    _write(folder / "shop" / "till.py", FILES["shop/till.py"].encode())
    _commit(folder, "Ben", day=2)


def _write(path: Path, contents: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(contents)


def _commit(folder: Path, author: str, day: int) -> None:
    identity = {"NAME": author, "EMAIL": f"{author}@example.com", "DATE": f"2024-03-{day:02}T12:00:00Z"}
    names = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in identity.items()}
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message=change", **names)


def _git(folder: Path, command: str, *arguments: str, **environment: str) -> None:
    """Run git without settings of the user, such as hooks and signed commits."""
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **environment}
    subprocess.run(["git", command, *arguments], cwd=folder, env={**os.environ, **alone}, check=True)


if __name__ == "__main__":
    demo = Path(*sys.argv[1:2] or ["demo"])
    if str(demo).startswith("-") or sys.argv[2:]:
        raise SystemExit("usage: python3 scripts/demo.py [DIRECTORY]")
    if demo.exists():
        raise SystemExit(f"{demo} exists; delete it to make the demo again")
    make(demo)
    print(f"The demo is in {demo}.")

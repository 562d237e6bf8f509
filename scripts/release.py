"""Build the wheel and the sdist twice, and compare them byte by byte: `python scripts/release.py DIR`.

Each build has its own copy of the commit, with other times and permissions of the files. So the comparison shows if any
of these gets into the built files. `DIR` gets the files of the first build.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def build(to: Path, umask: int, seconds: int) -> dict[str, str]:
    """Build the current commit into a directory, and return the SHA-256 of each file by its name.

    Args:
        to: Directory for the files.
        umask: Permission bits that are removed from the files of the copy.
        seconds: Modification time of the files of the copy, in seconds since 1970.
    """
    with tempfile.TemporaryDirectory() as folder:
        archive, copy = Path(folder, "commit.tar"), Path(folder, "copy")
        subprocess.run(["git", "archive", f"--output={archive}", "HEAD"], cwd=ROOT, check=True)
        copy.mkdir()
        subprocess.run(["tar", "--extract", "--file", archive, "--directory", copy], check=True)
        for path in copy.rglob("*"):
            path.chmod(path.stat().st_mode & ~umask)
            os.utime(path, (seconds, seconds))
        subprocess.run([sys.executable, "-m", "build", f"--outdir={to}", str(copy)], check=True)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(to.iterdir())}


def main() -> int:
    """Build twice and print the hashes; the exit code is 1 if the builds differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="empty directory for the files of the first build")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        print(f"{folder} is not empty; name another directory", file=sys.stderr)
        return 2
    first = build(folder, 0o022, 1_000_000_000)
    with tempfile.TemporaryDirectory() as other:
        second = build(Path(other), 0o077, 1_700_000_000)
    for name, digest in first.items():
        print(f"{digest}  {name}")
    if first != second:
        print(f"the second build differs: {second}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

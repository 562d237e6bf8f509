"""Replace in 10,000 files: compare `replace().apply()` with one rg for each file, and with sd if sd is in PATH.

`python benchmarks/replace.py [FILES]` checks that all write the same bytes, and prints the times and their ratios.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ripwrap import sync

PATTERN, REPLACEMENT = r"old_(\w+)", "new_$1"
TEXT = "def old_name(first, second):\n    return first + second\n\n\nclass Other:\n    value = old_value  # unchanged\n"


def plant(folder: Path, files: int) -> None:
    """Write files with 40 copies of the text; in a fifth of the files, each copy has matches, in all others none."""
    for number in range(files):
        path = folder / f"{number % 100:02}" / f"{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = TEXT * 40 if number % 5 == 0 else TEXT.replace("old_", "new-") * 40
        path.write_text(f"# {number}\n{text}", "utf-8", newline="\n")


def digest(folder: Path) -> str:
    """Return a hash of all files."""
    known = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        known.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return known.hexdigest()


def by_ripwrap(folder: Path) -> None:
    """Replace with ripwrap: make a plan and apply it."""
    sync.replace(PATTERN, REPLACEMENT, cwd=folder).apply(journals=folder.parent / "journals")


def by_rg(folder: Path) -> None:
    """List the files with matches with rg, and write the output of one rg for each file."""
    rg = sync.resolve().path
    listed = subprocess.run([rg, "-l", "--null", PATTERN, "."], cwd=folder, capture_output=True, check=True).stdout
    for name in listed.split(b"\0")[:-1]:
        command: list[str | bytes] = [
            rg,
            "--no-config",
            "--passthru",
            "--no-line-number",
            f"--replace={REPLACEMENT}",
            PATTERN,
            name,
        ]
        made = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
        Path(folder, os.fsdecode(name)).write_bytes(made)


def by_sd(folder: Path) -> None:
    """List the files with matches with rg, and let one sd write them all."""
    rg = sync.resolve().path
    listed = subprocess.run([rg, "-l", "--null", PATTERN, "."], cwd=folder, capture_output=True, check=True).stdout
    names = [os.fsdecode(name) for name in listed.split(b"\0")[:-1]]
    subprocess.run(["sd", PATTERN, REPLACEMENT, *names], cwd=folder, check=True)


def main() -> None:
    """Measure each way in a tree of its own, and print the times."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    ways: dict[str, Callable[[Path], None]] = {"ripwrap": by_ripwrap, "rg --passthru for each file": by_rg}
    if shutil.which("sd"):
        ways["sd"] = by_sd
    seconds: dict[str, float] = {}
    digests: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as above:
        for number, (name, way) in enumerate(ways.items()):
            folder = Path(above, str(number), "tree")
            plant(folder, files)
            os.sync()  # so that the time does not include writing the new files to the disk
            begun = time.perf_counter()
            way(folder)
            seconds[name] = time.perf_counter() - begun
            digests[name] = digest(folder)
    for name, taken in seconds.items():
        same = "same bytes" if digests[name] == digests["ripwrap"] else "OTHER BYTES"
        print(f"{name:<30} {taken:7.2f} s  {taken / seconds['ripwrap']:6.2f} x  {same}")


if __name__ == "__main__":
    main()

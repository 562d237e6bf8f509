"""Install each extra alone, and compare its size with the table in `docs/reference/extras.md`."""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^\| (?:`([\w-]+)`|none) \| .* \| (\d+) \|$", re.MULTILINE)


def weigh(extra: str) -> float:
    """Return the size of ripwrap with an extra and all that both need, in MB of 2**20 bytes."""
    pip = ["uv", "pip"] if shutil.which("uv") else [sys.executable, "-m", "pip"]
    with tempfile.TemporaryDirectory() as folder:
        wanted = f"{ROOT}[{extra}]" if extra else f"{ROOT}"
        subprocess.run([*pip, "install", "--quiet", "--target", folder, wanted], check=True)
        return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 2**20


def main() -> int:
    """Print the sizes; return 1 if the table lacks an extra, or if a size is not within half of its figure."""
    figures = {extra: int(size) for extra, size in ROW.findall((ROOT / "docs/reference/extras.md").read_text())}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wrong = sorted({"", *declared} ^ figures.keys())
    print(f"not in the table, or not an extra: {', '.join(wrong)}" if wrong else "the table has every extra")
    for extra, figure in figures.items():
        size = weigh(extra)
        bad = not figure / 1.5 <= size <= figure * 1.5
        print(f"{extra or 'none':12} {size:6.0f} MB, table {figure:4}{'  WRONG' if bad else ''}", flush=True)
        wrong += [extra] if bad else []
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

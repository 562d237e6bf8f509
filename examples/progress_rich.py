"""Show a progress bar of rich while a search runs: `python examples/progress_rich.py PATTERN [DIR]`.

It needs rich: `pip install rich`.
"""

import sys
from collections import Counter

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import ripwrap
from ripwrap import sync


def main(pattern: str, folder: str = ".") -> int:
    """Count the matches of a pattern, and print the number of matches in each file."""
    try:
        counts = count(pattern, folder)
    except (OSError, ripwrap.RipwrapError) as error:
        print(error, file=sys.stderr)
        return 2
    for path, number in sorted(counts.items()):
        print(f"{number:6} {path}")
    return 0 if counts else 1


def count(pattern: str, folder: str) -> Counter[str]:
    """Return the number of matches in each file, and show a bar on stderr if it is a terminal."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("searching", total=None)

        def show(now: ripwrap.Progress) -> None:
            bar.update(task, description=f"{now.matches:,} matches in {now.files:,} files")

        return Counter(match.path for match in sync.search(pattern, cwd=folder, on_progress=show))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))

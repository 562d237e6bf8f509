"""Show a progress bar of tqdm while files are listed: `python examples/progress_tqdm.py [DIR]`.

It needs tqdm: `pip install tqdm`.
"""

import asyncio
import sys

import ripwrap


async def main(folder: str = ".") -> int:
    """List the files below a directory, and print their number."""
    try:
        from tqdm import tqdm
    except ImportError as error:
        print(f"{error}; run: pip install tqdm", file=sys.stderr)
        return 2
    number = 0
    try:
        with tqdm(unit=" files") as bar:

            def show(now: ripwrap.Progress) -> None:
                bar.update(now.files - bar.n)

            async for _path in ripwrap.files(cwd=folder, on_progress=show):
                number += 1
    except (OSError, ripwrap.RipwrapError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{number} files")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:2])))

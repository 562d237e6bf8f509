"""Replace files that a program may have mapped."""

import os
from pathlib import Path


def replace_file(file: Path, content: bytes) -> None:
    """Write the content of a file beside it, and rename it into place.

    To write into a file, `open(…, "wb")` first truncates it. A thread that then reads a page of its mapping beyond the
    end gets SIGBUS (mmap(2)), which ends the process; a program that has mapped the replaced file keeps its pages.
    """
    beside = file.with_name(f"{file.name}.new")
    beside.write_bytes(content)
    os.replace(beside, file)

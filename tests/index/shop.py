"""A small tree to index, and another process that writes its index."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ripwrap.index.store import NAME

SHOP = {
    "src/cart.py": "class Cart:\n    def add_item(self, item):\n        self.items.append(item)\n",
    "src/cookies.py": "def store_cookie(jar, cookie):\n    jar.cookies.append(cookie)\n",
    "README.md": "# Shop\n\nA shop that sells cookies.\n",
}


@contextmanager
def held(home: Path) -> Generator[sqlite3.Connection]:
    """While another process writes the index, by this connection; in the end what it wrote is taken back."""
    other = sqlite3.connect(home / NAME, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield other
    finally:
        other.close()

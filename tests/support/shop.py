"""A small tree to index, and a lock on its index."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ripwrap.index.storage.files import NAME

SHOP = {
    "src/cart.py": "class Cart:\n    def add_item(self, item):\n        self.items.append(item)\n",
    "src/cookies.py": "def store_cookie(jar, cookie):\n    jar.cookies.append(cookie)\n",
    "README.md": "# Shop\n\nA shop that sells cookies.\n",
}


@contextmanager
def held(home: Path) -> Generator[sqlite3.Connection]:
    """Hold the write lock of an index during a block, as another process would."""
    other = sqlite3.connect(home / NAME, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield other
    finally:
        other.close()

"""The code index: refresh, search, definitions, and a watch that sees changes."""

import shutil
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from ripwrap import index
from ripwrap.index.blocking import Index as BlockingIndex

SECONDS = 60


def test_refresh_and_search(shop: Path, tmp_path: Path) -> None:
    with BlockingIndex(shop, location=tmp_path / "index") as made:
        first = made.refresh()
        assert (first.added, first.changed, first.removed) == (3, 0, 0)
        found = made.search("store cookies")[0]
        assert (found.path, found.symbol) == (r"src\cookies.py", "store_cookie")
        (shop / "src" / "new.py").write_text("def pay():\n    pass\n")
        (shop / "README.md").unlink()
        again = made.refresh()
        assert (again.added, again.changed, again.removed) == (1, 0, 1)
        assert made.check().ok
    with BlockingIndex(shop, location=tmp_path / "index") as made:
        assert made.search("pay", refresh=False)[0].path == r"src\new.py"
    shutil.rmtree(tmp_path / "index")  # no process has it open


@pytest.mark.anyio
async def test_watch_refreshes_after_each_change(shop: Path, tmp_path: Path, anyio_backend: str) -> None:
    async with index.Index(shop, location=tmp_path / "index") as made, aclosing(made.watch()) as refreshes:
        with anyio.fail_after(SECONDS):
            assert (await anext(refreshes)).added == 3
            (shop / "new.py").write_text("def pay():\n    pass\n")
            assert (await anext(refreshes)).added == 1
            (shop / "new.py").unlink()
            assert (await anext(refreshes)).removed == 1

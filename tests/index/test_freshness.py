"""Searches that skip the refresh, because the last one is younger than `max_age`."""

import math
import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap.binary import RgBinary
from ripwrap.index import Index
from support.counting import CountingRg

pytestmark = pytest.mark.slow  # the behaviour depends on SQLite and files, not on the Python version

Plant = Callable[..., Path]


@pytest.fixture
def counting(tmp_path: Path, rg: RgBinary) -> CountingRg:
    return CountingRg(tmp_path, rg)


@pytest.fixture
def root(plant: Plant) -> Path:
    return plant({"a.py": "alpha\n", "b.py": "bravo\n"})


@pytest.fixture
async def index(root: Path, home: Path, counting: CountingRg, anyio_backend: str) -> AsyncIterator[Index]:
    async with Index(root, location=home, rg=counting.path) as index:
        yield index


async def paths(index: Index, query: str, **options: Any) -> list[str]:
    return [found.path for found in await index.search(query, **options)]


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_search_within_max_age_lists_no_files(index: Index, counting: CountingRg, plant: Plant) -> None:
    assert await paths(index, "alpha", max_age=math.inf) == ["a.py"]  # builds the index
    assert counting.listings == 1
    plant({"new.py": "new alpha\n"})
    assert await paths(index, "alpha", max_age=3600) == ["a.py"]
    assert counting.listings == 1
    assert set(await paths(index, "alpha", max_age=1e-9)) == {"a.py", "new.py"}
    assert counting.listings == 2
    for max_age in (0, None):
        os.unlink(index.root / "new.py")
        assert await paths(index, "alpha", max_age=max_age) == ["a.py"]
        plant({"new.py": "new alpha\n"})
        assert len(await paths(index, "alpha", max_age=max_age)) == 2
    assert counting.listings == 6


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_max_age_considers_only_refreshes_of_the_same_object(
    index: Index, counting: CountingRg, home: Path
) -> None:
    async with Index(index.root, location=home, rg=counting.path) as other:
        await other.refresh()
    await index.search("alpha", max_age=3600)
    assert counting.listings == 2
    await index.refresh()
    await index.search("alpha", max_age=3600)
    assert counting.listings == 3


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_another_branch_is_refreshed_within_max_age(index: Index, counting: CountingRg, plant: Plant) -> None:
    plant({".git/HEAD": "ref: refs/heads/main\n"})
    await index.search("alpha", max_age=3600)
    plant({".git/HEAD": "ref: refs/heads/other\n", "new.py": "new alpha\n"})
    assert set(await paths(index, "alpha", max_age=3600)) == {"a.py", "new.py"}
    assert counting.listings == 2


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_index_that_is_deleted_within_max_age_is_rebuilt(index: Index, counting: CountingRg) -> None:
    await index.search("alpha")
    shutil.rmtree(index.location)
    assert await paths(index, "alpha", max_age=3600) == ["a.py"]
    await index.refresh(rebuild=True)
    assert await paths(index, "alpha", max_age=3600) == ["a.py"]
    assert counting.listings == 3


@pytest.mark.loops("asyncio")
@pytest.mark.anyio
async def test_max_age_has_no_effect_without_refresh(index: Index, counting: CountingRg, plant: Plant) -> None:
    await index.refresh()
    plant({"new.py": "new alpha\n"})
    assert await paths(index, "alpha", refresh=False, max_age=0) == ["a.py"]
    assert counting.listings == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("max_age", "error"), [(-1, ValueError), (math.nan, ValueError), (True, TypeError), ("5", TypeError)]
)
async def test_invalid_max_age_raises(index: Index, max_age: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^max_age must be .* got "):
        await index.search("alpha", max_age=max_age)


def test_blocking_search_within_max_age_lists_no_files(
    root: Path, home: Path, counting: CountingRg, plant: Plant
) -> None:
    with sync.Index(root, location=home, rg=counting.path) as index:
        for _ in range(3):
            assert [found.path for found in index.search("alpha", max_age=3600, timeout=60)] == ["a.py"]
        plant({"new.py": "new alpha\n"})
        assert len(index.search("alpha")) == 2
    assert counting.listings == 2

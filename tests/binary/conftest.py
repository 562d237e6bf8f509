"""Check after each test in this folder that no download thread is left."""

from collections.abc import Iterator

import pytest

from support.mirror import downloading


@pytest.fixture(autouse=True)
def no_download_thread_is_left() -> Iterator[None]:
    yield
    assert downloading() == []

"""A check of every test of finding and installing rg: no thread of a download is left."""

from collections.abc import Iterator

import pytest

from support.mirror import downloading


@pytest.fixture(autouse=True)
def no_download_goes_on() -> Iterator[None]:
    yield
    assert downloading() == []

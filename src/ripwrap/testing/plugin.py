"""pytest plugin, loaded through the entry point `pytest11`: fixtures for tests of code that uses ripwrap."""

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ripwrap.testing.builders import write_tree
from ripwrap.testing.fakes import FakeRg, fake


@pytest.fixture
def rg_tree(tmp_path: Path) -> Callable[[Mapping[str, str | bytes]], Path]:
    """Return a function that writes files into `tmp_path` and returns `tmp_path`; see `ripwrap.testing.tree()`."""
    return lambda files: write_tree(tmp_path, files)


@pytest.fixture
def fake_rg() -> Generator[Callable[..., FakeRg]]:
    """Return a function that replaces rg until the end of the test, with the arguments of `ripwrap.testing.fake()`."""
    with ExitStack() as stack:

        def replace(*arguments: Any, **keywords: Any) -> FakeRg:
            return stack.enter_context(fake(*arguments, **keywords))

        yield replace

"""Run the command line faster in the tests of this directory."""

from collections.abc import Iterator

import pytest

from support.cli import arguments_assembled_once


@pytest.fixture(scope="package", autouse=True)
def fast_command_line() -> Iterator[None]:
    """Assemble the arguments of a command once; `test_program.py` runs real programs, which assemble their own."""
    with arguments_assembled_once():
        yield

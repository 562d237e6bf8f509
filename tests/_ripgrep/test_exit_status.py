"""Exit codes of a listing: which of them are an answer."""

import pytest

from ripwrap import SearchError
from ripwrap._ripgrep.command import files_command, search_command
from ripwrap._ripgrep.exit_status import Exit

LISTING = files_command(".", (), {})
COUNTS = search_command("x", ".", (), {}, "count", include_zero=True)


@pytest.mark.parametrize(
    ("returncode", "wrote", "answered"),
    [(0, True, True), (1, False, True), (1, True, False), (15, True, False), (15, False, False), (-9, True, False)],
)
def test_listing_that_was_ended_is_no_answer(returncode: int, wrote: bool, answered: bool) -> None:
    """A program that is killed on Windows ends with 1, as an rg does that found nothing."""
    end = Exit(LISTING, ("rg",), returncode, b"", wrote=wrote)
    if answered:
        end.check_listing()
    else:
        with pytest.raises(SearchError):
            end.check_listing()


def test_counts_of_zero_come_with_exit_code_1() -> None:
    Exit(COUNTS, ("rg",), 1, b"", wrote=True).check_listing()

"""Exit codes of a listing: those of a complete list, and those of errors."""

import pytest

from ripwrap import SearchError
from ripwrap._ripgrep.command import files_query, search_query
from ripwrap._ripgrep.exit_status import Exit

LISTING = files_query(".", (), {})
COUNTS = search_query("x", ".", (), {}, "count", include_zero=True)


@pytest.mark.parametrize(
    ("returncode", "wrote", "answered"),
    [(0, True, True), (1, False, True), (1, True, False), (15, True, False), (15, False, False), (-9, True, False)],
)
def test_listing_with_an_error_exit_code_raises(returncode: int, wrote: bool, answered: bool) -> None:
    """On Windows a killed program exits with 1, like an rg without results; only the latter has written nothing."""
    end = Exit(LISTING, ("rg",), returncode, b"", wrote=wrote)
    if answered:
        end.check_listing()
    else:
        with pytest.raises(SearchError):
            end.check_listing()


def test_exit_code_1_with_counts_is_no_error() -> None:
    Exit(COUNTS, ("rg",), 1, b"", wrote=True).check_listing()

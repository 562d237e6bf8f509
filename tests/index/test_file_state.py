"""Stamps of files: their digests differ exactly if the stamps differ."""

import random

from hypothesis import given
from hypothesis import strategies as st

from ripwrap.index.file_state import Stamps

NUMBERS = st.integers(-(2**63), 2**63 - 1)
FILES = st.dictionaries(st.text(st.sampled_from("ab/\udcff"), min_size=1), st.tuples(NUMBERS, NUMBERS, NUMBERS))


def stamps(files: dict[str, tuple[int, int, int]]) -> Stamps:
    return Stamps.of(sorted(files), [files[path] for path in sorted(files)])


@given(FILES, FILES, st.randoms())
def test_digests_are_equal_only_for_equal_stamps(
    one: dict[str, tuple[int, int, int]], other: dict[str, tuple[int, int, int]], shuffle: random.Random
) -> None:
    assert (stamps(one).digest() == stamps(other).digest()) is (one == other)
    assert stamps(one).by_path() == one
    values = list(one.values())
    shuffle.shuffle(values)
    swapped = dict(zip(one, values, strict=True))
    assert (stamps(one).digest() == stamps(swapped).digest()) is (one == swapped)
    assert stamps(dict(sorted(one.items(), reverse=True))).digest() == stamps(one).digest()


def test_numbers_beyond_64_bits_are_stored_and_differ() -> None:
    late = stamps({"a": (1, 12 * 10**18, 2)})
    assert late.digest() != stamps({"a": (1, 12 * 10**18 + 1, 2)}).digest()
    assert all(-(2**63) <= number < 2**63 for number in late.by_path()["a"])

"""What a program does all day long, for a moment; `nox -s stress` does it for longer, and with a clock."""

from collections.abc import Callable

import pytest

from load import SCENARIOS, Row


@pytest.mark.parametrize(
    ("scenario", "number", "colour"),
    [(scenario, number, colour) for scenario, number, _, colours in SCENARIOS for colour in colours],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_promise_is_held(scenario: Callable[[int, str], Row], number: int, colour: str) -> None:
    row = scenario(number, colour)
    assert row.failures == []
    assert row.tries == number

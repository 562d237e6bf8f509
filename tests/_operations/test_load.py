"""Load scenarios of long-running programs, in short runs; `nox -s stress` runs them longer and measures them."""

from collections.abc import Callable

import pytest

from support.load import SCENARIOS, Row

pytestmark = [pytest.mark.slow, pytest.mark.python]


@pytest.mark.parametrize(
    ("scenario", "number", "api"),
    [(scenario, number, api) for scenario, number, _, apis in SCENARIOS for api in apis],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_load_scenario_keeps_its_promise(scenario: Callable[[int, str], Row], number: int, api: str) -> None:
    row = scenario(number, api)
    assert row.failures == []
    assert row.tries == number

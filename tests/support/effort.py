"""How much the tests with random or many inputs try: less in CI, more in `nox -s stress`, which sets RIPWRAP_STRESS."""

import os

STRESS = bool(os.environ.get("RIPWRAP_STRESS"))


def times(usual: int, stress: int) -> int:
    """Return how often to try something: `usual` times, or `stress` times in `nox -s stress`."""
    return stress if STRESS else usual

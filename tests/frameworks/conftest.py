"""Shared fixtures of the frameworks' tests: a folder, a workspace over it, and no network or telemetry."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ripwrap import Workspace, sync
from support import offline

SHOP = {
    "shop/cart.py": "def total(items):\n    # TODO: taxes\n    return 0\n",
    "shop/till.py": "def pay(amount):  # TODO: cards\n    return amount\n",
    "shop/README.md": "Nothing is sold here.\n",
    "secret.txt": "TODO: outside of the root\n",
}


counted: list[tuple[str, str, int, dict[str, int]]] = []
"""For each framework of the table in the docs: package, version, number of arguments, and how many have what."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the schemas of each framework have."""
    if counted:
        terminalreporter.section("arguments of the tools in the schemas of each framework")
    for package, version, arguments, having in counted:
        numbers = ", ".join(f"{number} {what}" for what, number in having.items())
        terminalreporter.line(f"{package:18}{version:10}{arguments} arguments: {numbers}")


@pytest.fixture
def shop(plant: Callable[..., Path]) -> Path:
    """A folder to search; the file beside it may not appear in any answer."""
    return plant(SHOP) / "shop"


@pytest.fixture
def ws(shop: Path) -> Workspace:
    return Workspace(shop)


@pytest.fixture
def blocking_ws(shop: Path) -> sync.Workspace:
    return sync.Workspace(shop)


@contextmanager
def without_network() -> Iterator[None]:
    """Block the network here and, by a proxy that does not exist, in child processes; fail on any attempt."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            patch.setenv(name, f"http://127.0.0.1:{offline.DISCARD}")
        for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "HAYSTACK_TELEMETRY_ENABLED", "CREWAI_TESTING"):
            patch.setenv(name, "false")
        for name in (
            "CREWAI_DISABLE_TELEMETRY",
            "HF_HUB_DISABLE_TELEMETRY",
            "HF_HUB_OFFLINE",
            "LITELLM_LOCAL_MODEL_COST_MAP",
            "OPENAI_AGENTS_DISABLE_TRACING",
            "OTEL_SDK_DISABLED",
            "RIPWRAP_OFFLINE",
        ):
            patch.setenv(name, "true" if name.startswith("OTEL") else "1")
        patch.setattr(offline, "on", True)
        yield
    assert offline.attempts == []


@pytest.fixture(autouse=True)
def no_network() -> Iterator[None]:
    with without_network():
        yield

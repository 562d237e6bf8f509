"""What the frameworks' tests share: a folder to search, a workspace over it, and no network nor telemetry."""

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from frameworks import offline
from ripwrap import Workspace, sync

FRAMEWORKS = {
    "langchain": "langchain_core",
    "llama_index": "llama_index",
    "mcp_client": "mcp",
    "openai": "agents",
    "pydantic_ai": "pydantic_ai",
    "smolagents": "smolagents",
}
left_out = [name for name, module in FRAMEWORKS.items() if find_spec(module) is None]
collect_ignore = [f"test_{name}.py" for name in left_out]
if left_out and os.environ.get("RIPWRAP_ALL_FRAMEWORKS"):
    raise pytest.UsageError(f"not installed: {', '.join(left_out)}")

SHOP = {
    "shop/cart.py": "def total(items):\n    # TODO: taxes\n    return 0\n",
    "shop/till.py": "def pay(amount):  # TODO: cards\n    return amount\n",
    "shop/README.md": "Nothing is sold here.\n",
    "secret.txt": "TODO: outside of the root\n",
}


def pytest_report_header() -> str:
    return f"frameworks LEFT OUT: {', '.join(left_out) or 'none'}"


@pytest.fixture
def shop(plant: Callable[..., Path]) -> Path:
    """A folder with a file beside it that no tool may show."""
    return plant(SHOP) / "shop"


@pytest.fixture
def ws(shop: Path) -> Workspace:
    return Workspace(shop)


@pytest.fixture
def blocking_ws(shop: Path) -> sync.Workspace:
    return sync.Workspace(shop)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither here, nor in what is started, by way of a proxy that is not there; and nobody tries."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{offline.DISCARD}")
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "false")
    for name in ("OPENAI_AGENTS_DISABLE_TRACING", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_OFFLINE", "RIPWRAP_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr(offline, "on", True)
    yield
    assert offline.attempts == []

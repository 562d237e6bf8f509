"""Adapters for frameworks say which extra they need."""

import importlib
import sys
import tomllib
from pathlib import Path

import pytest

import ripwrap.frameworks

MODULES = {
    "deepagents": "deepagents",
    "langchain": "langchain_core",
    "openai": "openai",
    "pydantic_ai": "pydantic_ai",
}
EXTRAS = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize("module", MODULES)
def test_import_without_the_framework_names_its_extra(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, extra = MODULES[module], module.replace("_", "-")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"ripwrap.frameworks.{module}", raising=False)
    with pytest.raises(
        ImportError, match=rf"ripwrap\.frameworks\.{module} needs .* pip install \"ripwrap\[{extra}\]\""
    ) as raised:
        importlib.import_module(f"ripwrap.frameworks.{module}")
    assert raised.value.name is not None
    (requirement,) = EXTRAS[extra]
    name, _, version = requirement.partition(">=")
    assert f"needs {name.partition('[')[0]} {version} or later" in str(raised.value)


def test_each_adapter_is_tested_for_its_extra() -> None:
    folder = Path(ripwrap.frameworks.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == {*MODULES}
